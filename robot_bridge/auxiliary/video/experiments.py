"""The runs behind docs/auxiliary/video.md; see experiments/tempme.yaml."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from robot_bridge.auxiliary.video.bench import ClipBench
from robot_bridge.auxiliary.video.clips import ClipData
from robot_bridge.auxiliary.video.encoder import ClipEncoder
from robot_bridge.auxiliary.video.ranking import best
from robot_bridge.auxiliary.video.retrieval_figures import retrieval_figures
from robot_bridge.auxiliary.video.tempme_config import TempMeConfig
from robot_bridge.auxiliary.video.training import ClipTokens, encode_clips, train_encoder

CONTENDERS = ("tempme", "lora", "tome", "dropped")
_ROUNDS, _INDEXED = 15, 10_000


def search(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """One contender, trained on the train clips and judged on the test clips; rates in percent.

    Figures: see `retrieval_figures`; `multiply_adds` in millions a clip, `multiply_adds_share` of those without merging, `train_s`.

    Args:
        config: as `ClipBench`'s, `contender` (see `ClipBench.contender`), `settings` (of `TempMeConfig`); with `epochs` 0 the model is
            judged untrained.
        seed: of adapters and batches.
        run_dir: of the run; clips, tokens and the base model lie beside it.
    """
    bench = ClipBench(config, run_dir.parent / "data")
    schedule, frames = bench.contender(config["contender"])
    settings = TempMeConfig().override(schedule=schedule.to_dict(), frames=bench.sizes["frames"], **config["settings"])
    torch.manual_seed(seed)
    encoder = ClipEncoder(bench.vlm, schedule, frames=bench.sizes["frames"], rank=settings.rank)
    begun = time.process_time()
    if settings.epochs:
        train_encoder(encoder, _thinned(bench.tokens(bench.train), frames), bench.train, settings, seed=seed)
    spent = time.process_time() - begun
    found = _judge(encoder, _thinned(bench.tokens(bench.test), frames), bench.test)
    cost, whole = bench.cost(schedule, frames), bench.cost(*bench.contender("lora"))
    figures = {name: value if name == "median_rank" else 100 * value for name, value in found.items()}
    return {**figures, "multiply_adds": cost / 1e6, "multiply_adds_share": cost / whole, "train_s": spent}


def costs(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """What a clip costs, all contenders in turn, and a query among 10,000 clips.

    Figures, all of processor time: `ms_CONTENDER`, median of the vision tower's a clip over rounds in which each had its turn;
    `ms_share_CONTENDER` of `lora`'s; `query_ms`, text tower and ranking, and `query_ms_max`.

    Args:
        config: as `ClipBench`'s, and `settings` (of `TempMeConfig`).
        seed: of weights.
        run_dir: of the run.
    """
    bench = ClipBench(config, run_dir.parent / "data")
    torch.manual_seed(seed)
    tokens = bench.tokens(bench.test).tokens[:4].float()
    encoders = {}
    for name in CONTENDERS:
        schedule, frames = bench.contender(name)
        encoder = ClipEncoder(bench.vlm, schedule, frames=bench.sizes["frames"], rank=TempMeConfig().override(**config["settings"]).rank)
        encoders[name] = (encoder, tokens[:, _evenly(tokens.shape[1], frames)])
    spent: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    with torch.no_grad():
        for _ in range(_ROUNDS):
            for name, (encoder, clips) in encoders.items():
                begun = time.process_time()
                encoder.encode_tokens(clips)
                spent[name].append(1000 * (time.process_time() - begun) / len(clips))
    figures = {f"ms_{name}": float(np.median(times)) for name, times in spent.items()}
    figures |= {f"ms_share_{name}": figures[f"ms_{name}"] / figures["ms_lora"] for name in CONTENDERS}
    queries = _query_times(encoders["tempme"][0], bench.test, seed)
    return {**figures, "query_ms": float(np.median(queries)), "query_ms_max": max(queries)}


def _query_times(encoder: ClipEncoder, data: ClipData, seed: int) -> list[float]:
    vectors = np.random.default_rng(seed).normal(size=(_INDEXED, encoder.towers.embed_dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    spent = []
    for sentences in data.sentences[:_ROUNDS]:
        begun = time.process_time()
        with torch.no_grad():
            text = encoder.encode_text(sentences[:1])[0].numpy()
        best(vectors, text, 10)
        spent.append(1000 * (time.process_time() - begun))
    return spent


def _judge(encoder: ClipEncoder, clips: ClipTokens, data: ClipData) -> dict[str, float]:
    with torch.no_grad():
        texts = encoder.encode_text([said[0] for said in data.sentences])
    return retrieval_figures((texts @ encode_clips(encoder, clips).T).numpy(), data)


def _thinned(clips: ClipTokens, frames: int) -> ClipTokens:
    """Some of the frames, evenly over the clip."""
    chosen = _evenly(clips.tokens.shape[1], frames)
    return ClipTokens(tokens=clips.tokens[:, chosen], mask=clips.mask[:, chosen])


def _evenly(there: int, wanted: int) -> torch.Tensor:
    return ((torch.arange(wanted) + 0.5) * there / wanted).long()
