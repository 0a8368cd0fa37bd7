"""Both backends keep the interface's promises."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from robot_bridge.auxiliary.vlm.blocks import forward
from robot_bridge.auxiliary.vlm.interface import VLM, VLMError

TEXTS = ["a red mug.", "a photo of a nut"]


def test_text_is_tokens_embedded_and_encoded(vlm: VLM) -> None:
    ids = vlm.tokenize(TEXTS)
    assert ids.shape == (2, vlm.context_length) and ids.dtype == torch.int64
    embedded = vlm.token_embedding(ids)
    assert embedded.shape == (2, vlm.context_length, vlm.text_width)
    assert torch.equal(vlm.encode_text(TEXTS), vlm.encode_text_embeds(embedded, ids))
    assert vlm.encode_text(TEXTS).shape == (2, vlm.embed_dim)


def test_words_after_the_eot_do_not_count(vlm: VLM) -> None:
    ids = vlm.tokenize(TEXTS)
    embedded = vlm.token_embedding(ids)
    noisy = embedded.clone()
    for row, end in enumerate(vlm.eot(ids)):
        noisy[row, int(end) + 1 :, 0] += 1.0
    torch.testing.assert_close(vlm.encode_text_embeds(noisy, ids), vlm.encode_text_embeds(embedded, ids))
    noisy[0, 1, 0] += 1.0
    assert not torch.allclose(vlm.encode_text_embeds(noisy, ids)[0], vlm.encode_text_embeds(embedded, ids)[0])


def test_too_long_a_text_is_refused_with_its_length(vlm: VLM) -> None:
    with pytest.raises(VLMError, match=rf"valid: at most {vlm.context_length}"):
        vlm.tokenize(["nut " * vlm.context_length])


def test_weights_are_frozen_but_gradients_reach_embeddings(vlm: VLM) -> None:
    ids = vlm.tokenize(TEXTS)
    embedded = vlm.token_embedding(ids).detach().requires_grad_(True)
    vlm.encode_text_embeds(embedded, ids).sum().backward()
    assert embedded.grad is not None and embedded.grad[0, 1].abs().sum() > 0
    assert not any(weight.requires_grad for weight in vlm.parameters())  # type: ignore[attr-defined]
    assert not vlm.training  # type: ignore[attr-defined]


def test_local_tokens_follow_the_value_path(vlm: VLM, frames: np.ndarray) -> None:
    x = vlm.preprocess(frames)
    image, tokens = vlm.encode_image(x, tokens=True)
    assert torch.equal(image, vlm.encode_image(x))
    hidden = vlm.vision_tokens(x)
    assert tokens.shape == (len(frames), hidden.shape[1] - 1, vlm.embed_dim)
    *body, last = vlm.vision_blocks()
    for block in body:
        hidden = forward(block, hidden)
    torch.testing.assert_close(image, vlm.vision_head(forward(last, hidden)[:, 0]))
    value = last.proj(last.qkv(last.ln_1(hidden))[2]) + hidden
    value = value + last.mlp(last.ln_2(value))
    torch.testing.assert_close(tokens, vlm.vision_head(value[:, 1:]))


def test_a_block_input_is_what_the_block_gets(vlm: VLM) -> None:
    ids = vlm.tokenize(TEXTS)
    embedded = vlm.token_embedding(ids)
    calls: list[int] = []

    def same(index: int, hidden: torch.Tensor) -> torch.Tensor:
        calls.append(index)
        return hidden

    torch.testing.assert_close(vlm.encode_text_embeds(embedded, ids, same), vlm.encode_text(TEXTS))
    assert calls == list(range(len(vlm.text_blocks())))
    changed = vlm.encode_text_embeds(
        embedded, ids, lambda index, hidden: hidden + (index == 1) * F.one_hot(torch.tensor(0), hidden.shape[-1])
    )
    assert not torch.allclose(changed, vlm.encode_text(TEXTS))


def test_outputs_are_not_normalised(vlm: VLM, frames: np.ndarray) -> None:
    assert not torch.allclose(vlm.encode_text(TEXTS).norm(dim=-1), torch.ones(2))
    assert not torch.allclose(vlm.encode_image(vlm.preprocess(frames)).norm(dim=-1), torch.ones(len(frames)))
