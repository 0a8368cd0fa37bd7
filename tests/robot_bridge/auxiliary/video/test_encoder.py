"""The clip encoder on tiny models of both kinds: equal to the model itself without merging, and what merging keeps."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from robot_bridge.auxiliary.video import encoder as module
from robot_bridge.auxiliary.video.encoder import ClipEncoder
from robot_bridge.auxiliary.video.errors import VideoError
from robot_bridge.auxiliary.video.schedule import PLAIN, MergeSchedule
from robot_bridge.auxiliary.vlm.clip import ClipVLM
from robot_bridge.auxiliary.vlm.towers import Towers
from tests.robot_bridge.auxiliary.vlm.conftest import clip, clip_model, clip_tokenizer, small, vlm

__all__ = ["clip", "small", "vlm"]

JOINS = MergeSchedule(per_frame=2, clip_blocks=(1,), groups=(2,))


def encoder(model: Towers, schedule: MergeSchedule, frames: int = 4, rank: int = 2) -> ClipEncoder:
    torch.manual_seed(1)
    return ClipEncoder(model, schedule, frames=frames, rank=rank)


def pictures(model: Towers, clips: int = 3, frames: int = 4) -> Tensor:
    """Input tokens (clips, frames, 1 + P, w) of random pictures."""
    generator = torch.Generator().manual_seed(0)
    rgb = torch.randint(0, 256, (clips * frames, 32, 32, 3), generator=generator, dtype=torch.uint8).numpy()
    with torch.no_grad():
        return model.vision_tokens(model.preprocess(rgb)).unflatten(0, (clips, frames))  # type: ignore[attr-defined]


def plain_vectors(model: Towers, tokens: Tensor) -> Tensor:
    """Mean over frames of the model's own unit vectors."""
    with torch.no_grad():
        per_frame = F.normalize(model.encode_tokens(tokens.flatten(0, 1))[0], dim=-1)
    return F.normalize(per_frame.unflatten(0, tokens.shape[:2]).mean(dim=1), dim=-1)


@pytest.mark.parametrize(
    "schedule", [PLAIN, MergeSchedule(per_frame=0, clip_blocks=(0, 1), groups=(1, 1), keep_across=1.0, keep_inside=1.0)]
)
def test_nothing_removed_and_groups_of_one_are_the_model_itself(vlm: Towers, schedule: MergeSchedule) -> None:
    tokens = pictures(vlm)
    made = encoder(vlm, schedule)
    with torch.no_grad():
        cls = made.cls_tokens(tokens).flatten(0, 1)
        hidden = tokens.flatten(0, 1)
        for block in vlm.vision_blocks():
            hidden = module._forward(block, hidden, None, made.plans(4, tokens.shape[2])[0])[0]
        assert torch.equal(cls, hidden[:, 0])
        torch.testing.assert_close(made.encode_tokens(tokens), plain_vectors(vlm, tokens), atol=1e-6, rtol=1e-5)
        assert torch.equal(made.encode_text(["a red mug."]), F.normalize(vlm.encode_text(["a red mug."]), dim=-1))


@pytest.mark.parametrize("schedule", [JOINS, PLAIN.override(per_frame=3)])
def test_sizes_of_a_clip_sum_to_its_tokens_and_every_cls_survives(
    vlm: Towers, schedule: MergeSchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Tensor] = []
    real = module._forward

    def spy(block, x, size, plan):
        found = real(block, x, size, plan)
        seen.append(found[1])
        assert found[0].shape[:2] == (3 * plan.clips, plan.tokens_out)
        return found

    monkeypatch.setattr(module, "_forward", spy)
    tokens, made = pictures(vlm), encoder(vlm, schedule)
    with torch.no_grad():
        assert made.cls_tokens(tokens).shape == (3, 4, made.width)
    for size, plan in zip(seen, made.plans(4, tokens.shape[2]), strict=True):
        per_clip = size.unflatten(0, (3, plan.clips)).sum(dim=(1, 2, 3))
        assert per_clip.tolist() == [4 * tokens.shape[2]] * 3
        assert (size[:, : plan.cls] == 1).all() and size.max() > 1


def test_equal_frames_merge_almost_without_a_loss(vlm: Towers) -> None:
    tokens = pictures(vlm)[:, :1].expand(-1, 4, -1, -1)
    across_alone = MergeSchedule(per_frame=0, clip_blocks=(1,), groups=(2,), keep_across=0.6, keep_inside=1.0)
    made = encoder(vlm, across_alone)
    with torch.no_grad():
        merged = made.encode_tokens(tokens)
    assert (merged * plain_vectors(vlm, tokens)).sum(dim=1).min() > 0.999


def test_the_order_of_frames_matters_through_positions_alone(vlm: Towers) -> None:
    tokens, made = pictures(vlm), encoder(vlm, MergeSchedule(per_frame=0, clip_blocks=(1,), groups=(4,), keep_across=1.0, keep_inside=1.0))
    with torch.no_grad():
        forwards, backwards = made.encode_tokens(tokens), made.encode_tokens(tokens.flip(1))
        torch.testing.assert_close(forwards, backwards, atol=1e-5, rtol=1e-4)
        made.positions[0].normal_()
        assert (made.encode_tokens(tokens) - made.encode_tokens(tokens.flip(1))).abs().max() > 1e-3


def test_tokens_are_compared_before_positions_are_added(small: Towers, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics: list[Tensor] = []
    real = module.match
    monkeypatch.setattr(module, "match", lambda metric, cls, removed: metrics.append(metric) or real(metric, cls, removed))
    tokens, made = pictures(small), encoder(small, JOINS)
    with torch.no_grad():
        made.cls_tokens(tokens)
        made.positions[0].normal_()
        made.cls_tokens(tokens)
    per_call = len(metrics) // 2
    assert per_call == 3 and torch.equal(metrics[1], metrics[1 + per_call]) and not torch.equal(metrics[2], metrics[2 + per_call])


def test_padding_repeats_the_last_frame_and_does_not_count(vlm: Towers) -> None:
    tokens, made = pictures(vlm), encoder(vlm, JOINS)
    short = tokens[:, :3]
    repeated = torch.cat([short, short[:, -1:]], dim=1)
    mask = torch.tensor([[True, True, True, False]]).expand(3, 4)
    with torch.no_grad():
        padded, masked, counted = made.encode_tokens(short), made.encode_tokens(repeated, mask), made.encode_tokens(repeated)
    assert torch.equal(padded, masked) and not torch.allclose(padded, counted)
    with pytest.raises(VideoError, match="clips of 5 frames; valid: 1..4"):
        made.encode_tokens(pictures(vlm, frames=5))


def test_a_call_leaves_nothing_behind(vlm: Towers) -> None:
    tokens, made = pictures(vlm), encoder(vlm, JOINS)
    with torch.no_grad():
        first = made.encode_tokens(tokens)
        made.encode_tokens(tokens[:, :2])
        assert torch.equal(made.encode_tokens(tokens), first)


def test_the_trainable_parameters_of_clip_b32_are_counted_right() -> None:
    """294,912 of vision, 196,608 of text and 16,128 positions, and nothing of the frozen model."""
    from transformers import CLIPConfig, CLIPModel

    text = dict(vocab_size=190, hidden_size=512, intermediate_size=8, num_hidden_layers=12, num_attention_heads=8, projection_dim=8)
    text |= dict(max_position_embeddings=24, eos_token_id=189, bos_token_id=188, pad_token_id=189)
    vision = dict(hidden_size=768, intermediate_size=8, num_hidden_layers=12, num_attention_heads=12, image_size=64, patch_size=32)
    model = CLIPModel(CLIPConfig(text_config=text, vision_config=vision | dict(projection_dim=8), projection_dim=8))
    made = ClipEncoder(ClipVLM(model, clip_tokenizer()), MergeSchedule(), frames=12, rank=8)
    counts = [sum(values.numel() for values in part.parameters()) for part in (made.towers.vision, made.towers.text, made.positions)]
    assert counts == [294_912, 196_608, 16_128]
    assert sum(values.numel() for values in made.parameters()) == sum(counts)
    assert all(not values.any() for values in made.positions)


def test_both_towers_are_tuned_and_the_model_is_not() -> None:
    frozen = ClipVLM(clip_model(), clip_tokenizer())
    before = {name: values.clone() for name, values in frozen.state_dict().items()}
    made = encoder(frozen, JOINS)
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1)
    for _ in range(2):  # adapters start with B = 0, so A learns from the second step on
        video = made.encode_tokens(pictures(frozen))
        words = made.towers.tokenize(["a b", "c d", "e f"])
        text = made.towers.encode_text_embeds(made.towers.token_embedding(words), words)
        optimizer.zero_grad()
        (video * text).sum().backward()
        optimizer.step()
    assert all(values.grad is not None and values.grad.abs().max() > 0 for values in made.parameters())
    assert all(torch.equal(values, before[name]) for name, values in frozen.state_dict().items())
