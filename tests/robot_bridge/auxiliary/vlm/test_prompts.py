import pytest
import torch

from robot_bridge.auxiliary.vlm.interface import VLM, VLMError
from robot_bridge.auxiliary.vlm.prompts import assemble, context_of


def test_words_of_the_context_give_the_written_prompt(vlm: VLM) -> None:
    context = context_of(vlm, "a photo of a")
    prompts = assemble(vlm, ["red mug", "square_nut"], len(context))
    written = vlm.encode_text(["a photo of a red mug.", "a photo of a square nut."])
    assert prompts.n_ctx == len(context)
    torch.testing.assert_close(prompts.encode(vlm, context), written)
    torch.testing.assert_close(prompts.encode(vlm, context.expand(2, -1, -1)), written)


def test_gradients_reach_context_vectors_alone(vlm: VLM) -> None:
    prompts = assemble(vlm, ["mug", "nut"], 3)
    context = torch.zeros(2, 3, vlm.text_width).normal_(std=0.02).requires_grad_(True)
    prompts.encode(vlm, context).square().sum().backward()
    assert context.grad is not None and (context.grad.abs().sum(dim=(1, 2)) > 0).all()
    assert not prompts.prefix.requires_grad and not prompts.suffix.requires_grad


def test_a_prompt_without_a_name_is_its_context_and_a_full_stop(vlm: VLM) -> None:
    prompts = assemble(vlm, [""], 3)
    assert int(vlm.eot(prompts.ids)[0]) == 5  # SOS, three places, the full stop, EOT


def test_a_prompt_longer_than_the_context_is_refused(small: VLM) -> None:
    fits = small.context_length - 3 - 1  # SOS, full stop and EOT, and a name of one word
    assert assemble(small, ["mug"], fits).n_ctx == fits
    with pytest.raises(VLMError, match=rf"n_ctx = {fits + 1}.*valid: at most {small.context_length}"):
        assemble(small, ["mug"], fits + 1)
    with pytest.raises(VLMError, match="valid"):
        assemble(small, ["square nut"], fits)


@pytest.mark.parametrize(("names", "n_ctx"), [([], 4), (["mug"], 0)])
def test_no_names_or_no_context_is_refused(small: VLM, names: list[str], n_ctx: int) -> None:
    with pytest.raises(VLMError, match="valid: at least one name and n_ctx >= 1"):
        assemble(small, names, n_ctx)


def test_a_context_of_another_shape_is_refused(small: VLM) -> None:
    prompts = assemble(small, ["mug", "nut"], 3)
    with pytest.raises(VLMError, match=r"valid: \(3, 16\) or \(2, 3, 16\)"):
        prompts.embeddings(torch.zeros(4, 16))
