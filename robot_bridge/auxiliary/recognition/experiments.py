"""The runs behind docs/auxiliary/recognition.md. See experiments/recognition.yaml."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.recognition import coop, dekg, kgcoop
from robot_bridge.auxiliary.recognition.class_prompts import class_logits, template_vectors
from robot_bridge.auxiliary.recognition.contenders import CONTENDERS
from robot_bridge.auxiliary.recognition.evaluation import milliseconds
from robot_bridge.auxiliary.recognition.parts_bench import TEST_SETS, PartsBench
from robot_bridge.auxiliary.recognition.shared_context import context_vectors


def few_shot(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """A method trained on 1, 2, 4, 16 shots, judged on clean pictures and under each shift.

    Figures: `SET_SHOTS` in percent; `late_SET_SHOTS` over the second half of a stream, of an adapting method; `ms_per_frame`;
    `train_s_SHOTS`.

    Args:
        config: as `PartsBench`'s, `contender` (of `CONTENDERS`), `settings` (of its configuration), `shots`.
        seed: of the shots and of training.
        run_dir: of the run; pictures and features lie beside it.
    """
    bench = PartsBench(config, run_dir.parent / "data")
    figures: dict[str, Any] = {}
    for shots in config["shots"]:
        chosen = bench.pool.few_shot(shots, seed)
        bench.joint(chosen)
        begun = time.monotonic()
        contender = CONTENDERS[config["contender"]](bench, chosen, config.get("settings", {}), seed)
        figures[f"train_s_{shots}"] = time.monotonic() - begun
        for name in TEST_SETS:
            right = contender.label(name) == bench.tests[name].labels
            figures[f"{name}_{shots}"] = 100 * float(right.mean())
            if config["contender"] == "ecalp":
                order = bench.shuffled(name, seed)
                figures[f"late_{name}_{shots}"] = 100 * float(right[order[len(order) // 2 :]].mean())
        figures["ms_per_frame"] = milliseconds(contender.recogniser, bench.tests["clean"])
    return figures


def base_to_new(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Prompts tuned on half of the classes, judged on those and on the other half, each among its own. `h`: harmonic mean.

    Args:
        config: as `PartsBench`'s, `prompts` (`zero-shot`, `coop`, `kgcoop`, `dekg`), `settings`, `shots`, `template`.
        seed: of the split, the shots and training.
        run_dir: of the run; pictures and features lie beside it.
    """
    bench = PartsBench(config, run_dir.parent / "data")
    order = np.random.default_rng(seed).permutation(bench.pool.classes).tolist()
    base, new = order[: len(order) // 2], order[len(order) // 2 :]
    shots = bench.pool.only(base).few_shot(config["shots"], seed)
    settings = config.get("settings", {})
    features, labels = bench.joint(shots)
    if config["prompts"] == "dekg":
        tuned = dekg.DeKgConfig().override(**settings)
        prompts = dekg.fit(bench.vlm, features, labels, base, tuned, seed=seed)
        vectors = [prompts.vectors(bench.vlm, names, tuned.template) for names in (base, new)]
    elif config["prompts"] == "zero-shot":
        vectors = [template_vectors(bench.vlm, names, (config["template"],)) for names in (base, new)]
    else:
        context = (
            kgcoop.fit(bench.vlm, features, labels, base, kgcoop.KgCoOpConfig().override(**settings), seed=seed)
            if config["prompts"] == "kgcoop"
            else coop.fit(bench.vlm, features, labels, base, coop.CoOpConfig().override(**settings), seed=seed)
        )
        vectors = [context_vectors(bench.vlm, context, names) for names in (base, new)]
    rates = [_percent(bench, bench.tests["clean"].only(names), each) for names, each in zip((base, new), vectors, strict=True)]
    return {"base": rates[0], "new": rates[1], "h": 2 * rates[0] * rates[1] / max(sum(rates), 1e-9)}


def _percent(bench: PartsBench, data: ImageData, vectors: Tensor) -> float:
    features, labels = bench.joint(data)
    return 100 * float((class_logits(features, vectors, bench.vlm.logit_scale).argmax(dim=1) == labels).float().mean())
