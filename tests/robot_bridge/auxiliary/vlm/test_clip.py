import builtins
from pathlib import Path

import numpy as np
import pytest
import torch

from robot_bridge.auxiliary.vlm.clip import ClipVLM
from robot_bridge.auxiliary.vlm.interface import VLMError
from tests.robot_bridge.auxiliary.vlm.conftest import clip_model, clip_tokenizer


@pytest.mark.parametrize("eos", [None, 2])
def test_both_towers_equal_transformers_own(eos: int | None, frames: np.ndarray) -> None:
    model, tokenizer = clip_model(eos), clip_tokenizer()
    vlm = ClipVLM(model, tokenizer)
    texts = ["a red mug.", "a nut"]
    ids = tokenizer(texts, padding="max_length", max_length=24, return_tensors="pt")["input_ids"]
    x = vlm.preprocess(frames)
    with torch.no_grad():
        torch.testing.assert_close(vlm.encode_text(texts), model.get_text_features(input_ids=ids).pooler_output, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(vlm.encode_image(x), model.get_image_features(pixel_values=x).pooler_output, atol=1e-5, rtol=1e-4)


def test_pictures_of_any_shape_are_cut_to_the_middle(clip: ClipVLM) -> None:
    wide = np.zeros((1, 40, 100, 3), np.uint8)
    wide[:, :, 30:70] = 255
    x = clip.preprocess(wide)
    assert x.shape == (1, 3, 32, 32)
    assert float(x.min()) > 1.8  # only the white middle is left: (1 - mean) / deviation


def test_a_saved_clip_is_read_from_its_folder(clip: ClipVLM, tmp_path: Path) -> None:
    clip.model.save_pretrained(tmp_path)
    clip_tokenizer().save_pretrained(tmp_path)
    again = ClipVLM.from_folder(tmp_path)
    assert again.identity == clip.identity
    assert torch.equal(again.encode_text(["a mug"]), clip.encode_text(["a mug"]))


def test_absent_weights_say_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(VLMError, match=r"no CLIP at .*valid: a folder with config.json, model.safetensors"):
        ClipVLM.from_folder(tmp_path)


def test_an_absent_package_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = builtins.__import__

    def without(name: str, *args, **kwargs):
        if name == "transformers":
            raise ImportError("No module named 'transformers'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(VLMError, match=r"armstack\[vlm\]"):
        ClipVLM.from_folder(tmp_path)
