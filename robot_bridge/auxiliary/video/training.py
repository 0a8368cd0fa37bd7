"""Training of a clip encoder: symmetric InfoNCE of clips and sentences over cached input tokens of the first block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_core.training.checkpoint import CheckpointStore
from robot_bridge.auxiliary.epochs import Epochs, warm_up_cosine
from robot_bridge.auxiliary.video.clips import ClipData
from robot_bridge.auxiliary.video.encoder import ClipEncoder
from robot_bridge.auxiliary.video.errors import VideoError
from robot_bridge.auxiliary.video.tempme_config import TempMeConfig
from robot_bridge.auxiliary.vlm.contrastive import info_nce
from robot_bridge.auxiliary.vlm.feature_cache import FeatureCache, Features
from robot_bridge.auxiliary.vlm.interface import VLM

Say = Callable[[str], None]
_BATCH = 32


@dataclass(frozen=True, kw_only=True, eq=False)
class ClipTokens:
    """n clips as input tokens of the first block.

    Attributes:
        tokens: (n, F, 1 + P, w) float16.
        mask: (n, F) bool, real frames.
    """

    tokens: Tensor
    mask: Tensor

    def __len__(self) -> int:
        return len(self.tokens)

    def batch(self, rows: NDArray[np.int64] | slice) -> tuple[Tensor, Tensor | None]:
        """Tokens (B, F, 1 + P, w) in float32, and the mask, None where all frames are real."""
        mask = self.mask[rows]
        return self.tokens[rows].float(), None if bool(mask.all()) else mask


def token_cache(vlm: VLM, folder: Path | None) -> FeatureCache:
    """Cache of the first block's input: feature `tokens` (m, 1 + P, w), float16."""

    def encode(frames: NDArray[np.uint8]) -> Features:
        with torch.no_grad():
            found = [vlm.vision_tokens(vlm.preprocess(frames[at : at + _BATCH])).half() for at in range(0, len(frames), _BATCH)]
        return {"tokens": torch.cat(found).cpu().numpy()}

    return FeatureCache(folder, f"first tokens {vlm.identity}", encode)


def clip_tokens(vlm: VLM, data: ClipData, folder: Path | None, say: Say = lambda text: None) -> ClipTokens:
    """The clips' tokens; every picture is worked out once and kept in `folder`."""
    count, frames = data.frames.shape[:2]
    flat = data.frames.reshape(count * frames, *data.frames.shape[2:])
    found = token_cache(vlm, folder).features(flat, lambda done: say(f"{done} pictures through the backbone"))["tokens"]
    return ClipTokens(tokens=torch.from_numpy(found).unflatten(0, (count, frames)), mask=torch.from_numpy(data.mask))


def encode_clips(encoder: ClipEncoder, clips: ClipTokens) -> Tensor:
    """Unit vectors (n, d) of clips."""
    with torch.no_grad():
        return torch.cat([encoder.encode_tokens(*clips.batch(slice(at, at + _BATCH))) for at in range(0, len(clips), _BATCH)])


def train_encoder(
    encoder: ClipEncoder,
    clips: ClipTokens,
    data: ClipData,
    config: TempMeConfig,
    *,
    seed: int,
    say: Say = lambda text: None,
    store: CheckpointStore | None = None,
) -> float:
    """Trains adapters and positions in place; gives the mean loss of the last epoch, 0 without epochs.

        L = InfoNCE(exp(logit_scale) cos(v_i, t_j)), symmetric; clips of equal meaning share the target

    Args:
        encoder: is trained.
        clips: input tokens of the clips.
        data: sentences of the clips.
        config: settings.
        seed: of the order and of which sentence is taken.
        say: told each epoch.
        store: where whole epochs are kept, of a run with equal arguments; it goes on behind the last of them.

    Raises:
        VideoError: fewer clips than two.
        CheckpointError: nothing that was kept can be read.
    """
    if len(data) < 2:
        raise VideoError("one clip; valid: two or more, which are told apart")
    generator = np.random.default_rng(seed)
    ids = [encoder.towers.tokenize(list(said)) for said in data.sentences]
    meanings = torch.from_numpy(np.unique(data.meanings, return_inverse=True)[1])
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=config.lr, weight_decay=config.weight_decay, betas=(0.9, 0.98))
    steps = config.epochs * len(_batches(data.groups, config.batch, np.random.default_rng(0)))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warm_up_cosine(step, steps, config.warm_up))

    def epoch(number: int) -> float:
        losses = []
        for rows in _batches(data.groups, config.batch, generator):
            words = torch.stack([ids[row][generator.integers(len(ids[row]))] for row in rows])
            video = encoder.encode_tokens(*clips.batch(rows))
            text = encoder.towers.encode_text_embeds(encoder.towers.token_embedding(words), words)
            similarity = encoder.scale() * video @ torch.nn.functional.normalize(text, dim=-1).T
            loss = info_nce(similarity, meanings[rows][:, None] == meanings[rows][None])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(encoder.parameters(), config.clip_norm)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        return float(np.mean(losses))

    trained: dict[str, Any] = {"parameters": list(encoder.parameters()), "optimizer": optimizer, "schedule": schedule}
    mean = Epochs(count=config.epochs, **trained, generator=generator, store=store, say=say).run(epoch)
    encoder.eval()
    return mean


def _batches(groups: NDArray[np.int64], size: int, generator: np.random.Generator) -> list[NDArray[np.int64]]:
    """Rows of an epoch's batches: groups in random order, none of them cut; a last one of a single clip is left out."""
    order = generator.permutation(np.unique(groups))
    rows = [np.flatnonzero(groups == group) for group in order]
    batches: list[list[int]] = [[]]
    for group in rows:
        if len(batches[-1]) + len(group) > size and batches[-1]:
            batches.append([])
        batches[-1].extend(group)
    return [np.array(batch, np.int64) for batch in batches if len(batch) > 1]
