"""SmolLM2 and LLaVA behind the protocol, on models of random weights that are built here."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from robot_bridge.auxiliary.lmm.causal import CausalLMM
from robot_bridge.auxiliary.lmm.interface import LMMError
from robot_bridge.auxiliary.lmm.llava import LlavaLMM
from robot_bridge.auxiliary.lmm.lora import LoRALinear, add_lora
from robot_bridge.auxiliary.lmm.smollm import SmolLMM
from tests.robot_bridge.auxiliary.tiny_vlm import coloured_parts, tiny_vlm

transformers = pytest.importorskip("transformers")
WORDS = "<unk> <|end|> <image> user assistant USER: ASSISTANT: what is this a red mug green bowl gear with teeth . , :".split()
QUESTION = "what is this"


def tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|end|>", unk_token="<unk>")


def llama(**more: Any) -> dict[str, Any]:
    sizes = dict(vocab_size=len(WORDS), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4)
    return sizes | dict(num_key_value_heads=2, max_position_embeddings=128, eos_token_id=1, bos_token_id=1, pad_token_id=1) | more


def smollm_model(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**llama())).eval()


def llava_model(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    vision = transformers.CLIPVisionConfig(
        hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=24, patch_size=8, projection_dim=8
    )
    config = transformers.LlavaConfig(
        vision_config=vision, text_config=transformers.LlamaConfig(**llama()), image_token_index=2, vision_feature_layer=-2
    )
    return transformers.LlavaForConditionalGeneration(config).eval()


@pytest.fixture(params=["smollm", "llava"])
def lmm(request: pytest.FixtureRequest) -> CausalLMM:
    if request.param == "smollm":
        return SmolLMM(smollm_model(), tokenizer(), tiny_vlm(), grid=2, r=4, alpha=8.0)
    return LlavaLMM(llava_model(), tokenizer(), r=4, alpha=8.0)


@pytest.fixture(scope="module")
def frames() -> np.ndarray:
    return coloured_parts(each=1).frames[:3]


ANSWERS = ("a red mug", "a green bowl .", "gear with teeth")


def test_fine_tuning_teaches_the_answers_and_leaves_frozen_weights_alone(lmm: CausalLMM, frames: np.ndarray) -> None:
    frozen = {name: tensor.clone() for name, tensor in lmm.model.state_dict().items() if not name.endswith((".down", ".up"))}
    before = lmm.log_likelihood(frames, [QUESTION] * 3, ANSWERS)
    first = lmm.sft(frames, [QUESTION] * 3, ANSWERS, 1, 1e-3)
    last = lmm.sft(frames, [QUESTION] * 3, ANSWERS, 25, 2e-2)
    assert last < first - 0.3 and (lmm.log_likelihood(frames, [QUESTION] * 3, ANSWERS) > before).all()
    now = lmm.model.state_dict()
    assert all(torch.equal(tensor, now[name]) for name, tensor in frozen.items())


def test_a_likelihood_depends_on_its_own_pair_alone(lmm: CausalLMM, frames: np.ndarray) -> None:
    prompts = [QUESTION, "what", "what is this a"]
    together = lmm.log_likelihood(frames, prompts, ANSWERS)
    alone = [lmm.log_likelihood(frames[row : row + 1], prompts[row : row + 1], ANSWERS[row : row + 1])[0] for row in range(3)]
    np.testing.assert_allclose(together, alone, atol=1e-3)
    swapped = lmm.log_likelihood(frames[[1, 0, 2]], prompts, ANSWERS)
    assert not np.allclose(swapped[:2], together[:2], atol=1e-5)  # the picture counts


def test_answers_come_n_a_prompt_and_again_with_the_seed(lmm: CausalLMM, frames: np.ndarray) -> None:
    said = lmm.generate(frames, [QUESTION] * 3, 2, 1.0, 0.9, 6, seed=1)
    assert [len(answers) for answers in said] == [2, 2, 2] and any(text for answers in said for text in answers)
    assert said == lmm.generate(frames, [QUESTION] * 3, 2, 1.0, 0.9, 6, seed=1)
    assert said != lmm.generate(frames, [QUESTION] * 3, 2, 1.0, 0.9, 6, seed=2)
    greedy = lmm.generate(frames, [QUESTION] * 3, 2, max_tokens=4)
    assert all(len(set(answers)) == 1 for answers in greedy)
    assert all(len(text.split()) <= 4 for answers in greedy for text in answers)  # the prompt is no part of them
    with pytest.raises(LMMError, match="3 pictures with 2 texts"):
        lmm.generate(frames, [QUESTION] * 2)


def test_what_was_trained_is_put_back(lmm: CausalLMM, frames: np.ndarray) -> None:
    weights, before = lmm.trained(), lmm.log_likelihood(frames, [QUESTION] * 3, ANSWERS)
    lmm.sft(frames, [QUESTION] * 3, ANSWERS, 2, 1e-2)
    assert not np.allclose(lmm.log_likelihood(frames, [QUESTION] * 3, ANSWERS), before, atol=1e-3)
    lmm.restore(weights)
    np.testing.assert_allclose(lmm.log_likelihood(frames, [QUESTION] * 3, ANSWERS), before, atol=1e-5)
    weights.popitem()
    with pytest.raises(LMMError, match="weights of another model"):
        lmm.restore(weights)


def test_a_saved_model_is_read_from_its_folder(tmp_path: Path, frames: np.ndarray) -> None:
    smollm_model().save_pretrained(tmp_path / "smollm")
    llava_model().save_pretrained(tmp_path / "llava")
    for name in ("smollm", "llava"):
        tokenizer().save_pretrained(tmp_path / name)
    smol = SmolLMM.from_folder(str(tmp_path / "smollm"), tiny_vlm(), grid=2, r=4)
    direct = SmolLMM(smollm_model(), tokenizer(), tiny_vlm(), grid=2, r=4)
    assert smol.identity == direct.identity and smol.generate(frames, [QUESTION] * 3) == direct.generate(frames, [QUESTION] * 3)
    llava = LlavaLMM.from_folder(str(tmp_path / "llava"), r=4)
    assert llava.generate(frames, [QUESTION] * 3) == LlavaLMM(llava_model(), tokenizer(), r=4).generate(frames, [QUESTION] * 3)


def test_the_identity_tells_models_of_equal_size_apart() -> None:
    first, again, other = (LlavaLMM(llava_model(seed), tokenizer(), r=4, seed=lora) for seed, lora in ((0, 0), (0, 1), (1, 0)))
    assert first.identity == again.identity != other.identity  # what is tuned is no part of it
    smol, another = (SmolLMM(smollm_model(seed), tokenizer(), tiny_vlm(), grid=2, r=4) for seed in (0, 1))
    assert smol.identity != another.identity


def test_absent_weights_say_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(LMMError, match=r"no LLaVA at .*: no such folder; valid: a folder with config.json, model.safetensors.*-7b-hf"):
        LlavaLMM.from_folder(str(tmp_path / "nothing"))
    with pytest.raises(LMMError, match=r"no SmolLM2: field weights \(--config.weights\) is empty; valid"):
        SmolLMM.from_folder("", tiny_vlm())
    smollm_model().save_pretrained(tmp_path / "pickled", max_shard_size="1GB")
    (tmp_path / "pickled" / "model.safetensors").unlink()
    torch.save(smollm_model().state_dict(), tmp_path / "pickled" / "pytorch_model.bin")
    with pytest.raises(LMMError, match="no SmolLM2 at .*pickled"):  # weights are never unpickled
        SmolLMM.from_folder(str(tmp_path / "pickled"), tiny_vlm())
    with pytest.raises(LMMError, match=r"no SmolLM2 at .*SmolLM2-135M-Instruct"):
        SmolLMM.from_folder(str(tmp_path), tiny_vlm())


@pytest.mark.parametrize("make", [lambda: LlavaLMM.from_folder("x"), lambda: SmolLMM.from_folder("x", tiny_vlm())])
def test_an_absent_package_names_the_extra(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name == "transformers":
            raise ImportError("No module named 'transformers'")
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(LMMError, match=r"armstack\[vlm\]"):
        make()


def test_lora_begins_as_the_layer_was_and_trains_its_correction_alone() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    x, before = torch.randn(5, 6), None
    before = model(x).detach()
    trained = add_lora(model, 2, 4.0)
    assert isinstance(model[0], LoRALinear) and torch.allclose(model(x), before)
    assert set(trained) == {"0.down", "0.up", "2.down", "2.up"}
    assert {name for name, parameter in model.named_parameters() if parameter.requires_grad} == set(trained)
    with torch.no_grad():
        trained["2.up"] += 1.0
    by_hand = before + 2.0 * (torch.relu(model[0](x)) @ trained["2.down"].T).sum(1, keepdim=True)
    assert torch.allclose(model(x), by_hand, atol=1e-5)
    with pytest.raises(LMMError, match="rank 0; valid: 1 or more"):
        add_lora(nn.Linear(2, 2), 0, 1.0)
    with pytest.raises(LMMError, match="no linear layers"):
        add_lora(nn.Sequential(nn.ReLU()), 1, 1.0)
