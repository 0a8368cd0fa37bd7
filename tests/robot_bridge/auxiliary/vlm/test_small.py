import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from rl_core.bundle import Bundle
from robot_bridge.auxiliary.vlm.contrastive import MAX_LOGIT_SCALE, ContrastiveConfig, info_nce, local_cosines, train
from robot_bridge.auxiliary.vlm.interface import VLMError
from robot_bridge.auxiliary.vlm.small import SmallVLM, SmallVLMConfig
from robot_bridge.auxiliary.vlm.words import WordTokenizer, words_of
from tests.robot_bridge.auxiliary.vlm.conftest import SMALL, WORDS, MeanColours, small_model


def test_the_default_sizes_are_those_of_the_paper_recipe() -> None:
    backbone = MeanColours()
    backbone.channels, backbone.grid = 320, 7
    count = sum(weight.numel() for weight in SmallVLM(SmallVLMConfig(), WORDS, backbone).parameters())
    assert 2.4e6 < count < 2.9e6


def test_a_saved_model_computes_the_same(small: SmallVLM, frames: np.ndarray, tmp_path: Path) -> None:
    small.save(tmp_path / "vlm", metrics={"eval/accuracy": 0.5})
    assert sorted(file.name for file in (tmp_path / "vlm").iterdir()) == ["bundle.json", "weights.safetensors"]
    again = SmallVLM.load(tmp_path / "vlm", MeanColours())
    assert again.identity == small.identity
    x = small.preprocess(frames)
    assert torch.equal(again.encode_image(x), small.encode_image(x))
    assert torch.equal(again.encode_text(["a red mug"]), small.encode_text(["a red mug"]))


def test_the_identity_follows_the_weights(small: SmallVLM) -> None:
    other = small_model(seed=1)
    other.freeze()
    assert other.identity != small.identity


def test_a_bundle_of_another_kind_is_refused(tmp_path: Path) -> None:
    Bundle(kind="policy", method="dac", config={}, weights={"x": torch.zeros(1)}).save(tmp_path / "other")
    with pytest.raises(VLMError, match="kind 'policy'.*valid: 'vlm', 'small-vlm'"):
        SmallVLM.load(tmp_path / "other")


def test_another_backbone_is_refused(small: SmallVLM, tmp_path: Path) -> None:
    small.save(tmp_path / "vlm")
    backbone = MeanColours()
    backbone.identity = "something else"
    with pytest.raises(VLMError, match="trained on backbone 'mean colours'; here is 'something else'"):
        SmallVLM.load(tmp_path / "vlm", backbone)


def test_words_outside_the_vocabulary_stay_apart() -> None:
    words = WordTokenizer(WORDS, 12)
    assert words.unknown(["a red sprocket", "a flange"]) == ["flange", "sprocket"]
    ids = words(["a sprocket", "a flange", "a mug"])
    assert len(set(ids[:, 2].tolist())) == 3
    assert ids.max() == words.eot_id and (ids.argmax(dim=1) == 3).all()


def test_unknown_words_that_would_be_one_are_refused() -> None:
    words = WordTokenizer(WORDS, 12)
    names = [f"w{index}" for index in range(400)]  # more than there are spare tokens
    with pytest.raises(VLMError, match="share a token"):
        words(names)


def test_words_are_found_in_any_writing() -> None:
    assert words_of("A Hex-Nut, 12mm.") == ["a", "hex", "nut", ",", "12mm", "."]
    with pytest.raises(VLMError, match="vocabulary"):
        WordTokenizer(["Mug"], 12)


def test_info_nce_is_zero_for_sure_pairs_and_log_of_the_batch_for_none() -> None:
    same = torch.eye(4, dtype=torch.bool)
    assert float(info_nce(100.0 * torch.eye(4), same)) == pytest.approx(0.0, abs=1e-6)
    assert float(info_nce(torch.zeros(4, 4), same)) == pytest.approx(np.log(4))
    torch.testing.assert_close(info_nce(torch.eye(4), same), F.cross_entropy(torch.eye(4), torch.arange(4)))


def test_equal_captions_are_no_negatives() -> None:
    same = torch.tensor([[1, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=torch.bool)
    similarity = 50.0 * same.float()
    assert float(info_nce(similarity, same)) == pytest.approx(np.log(2) * 2 / 3, abs=1e-4)  # the least that a shared target allows


def test_local_cosines_average_the_best_places() -> None:
    tokens = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]])
    found = local_cosines(tokens, torch.tensor([[1.0, 0.0]]), top_k=2)
    assert found.tolist() == [[0.5]]
    assert local_cosines(tokens, torch.tensor([[1.0, 0.0]]), top_k=8).tolist() == [[0.0]]  # all three


def _coloured() -> tuple[np.ndarray, list[list[str]]]:
    generator = np.random.default_rng(0)
    frames = generator.integers(0, 60, (48, 16, 16, 3), np.uint8)
    red = np.arange(48) % 2 == 0
    frames[red, 4:12, 4:12, 0], frames[~red, 4:12, 4:12, 2] = 220, 220
    return frames, [["a red mug.", "red mug"] if is_red else ["a blue mug.", "blue mug"] for is_red in red]


@pytest.mark.parametrize("local_weight", [0.5, 0.0])
def test_training_learns_and_the_local_term_aligns_tokens(local_weight: float) -> None:
    frames, captions = _coloured()
    model = small_model()
    maps = model.backbone.maps(model.preprocess(frames)).half().numpy()
    config = ContrastiveConfig(epochs=24, batch=16, learning_rate=3e-3, local_weight=local_weight, top_k=4)
    losses = train(model, maps, captions, config, seed=0)
    assert losses["loss/global"] < 2.3  # batches hold each caption some eight times, so the least is log 8 = 2.08
    assert float(model.logit_scale) <= MAX_LOGIT_SCALE
    image, tokens = model.encode_image(model.preprocess(frames), tokens=True)
    text = F.normalize(model.encode_text(["a red mug.", "a blue mug."]), dim=-1)
    truth = torch.tensor([0 if "red" in sentences[0] else 1 for sentences in captions])
    assert float(((F.normalize(image, dim=-1) @ text.T).argmax(dim=1) == truth).float().mean()) == 1.0
    inside = F.normalize(tokens.unflatten(1, (4, 4))[:, 1:3, 1:3].flatten(1, 2), dim=-1) @ text.T
    if local_weight:
        assert float((inside.argmax(dim=2) == truth[:, None]).float().mean()) > 0.95


def test_training_is_deterministic() -> None:
    frames, captions = _coloured()
    hashes = set()
    for _ in range(2):
        model = small_model()
        maps = model.backbone.maps(model.preprocess(frames)).half().numpy()
        train(model, maps, captions, ContrastiveConfig(epochs=1, batch=16), seed=3)
        hashes.add(model.weights_hash())
    assert len(hashes) == 1


def test_training_wants_captions_for_each_picture() -> None:
    with pytest.raises(VLMError, match="4 pictures with 3 captions"):
        train(small_model(), np.zeros((4, 6, 4, 4), np.float16), [["a mug"]] * 3, ContrastiveConfig(), seed=0)


def test_efficientnet_maps_equal_the_network_in_pytorch(frames: np.ndarray) -> None:
    pytest.importorskip("efficientnet_lite_pytorch")
    from robot_bridge.auxiliary.vlm.backbone import EfficientNetMaps

    backbone = EfficientNetMaps("14x14x112")
    x = backbone.preprocess(frames[:2])
    maps = backbone.maps(x)
    assert x.shape == (2, 3, 224, 224) and maps.shape == (2, 112, 14, 14)
    with torch.no_grad():
        torch.testing.assert_close(maps, backbone._head(x), atol=1e-3, rtol=1e-3)
    model = SmallVLM(replace(SMALL, stage="14x14x112"), WORDS, backbone)
    assert model.encode_image(x, tokens=True)[1].shape == (2, 196, 12)


def test_an_absent_backbone_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(VLMError, match=r"efficientnet_lite_pytorch.*armstack\[vlm\]"):
        SmallVLM(SMALL, WORDS)
