"""The runs behind docs/auxiliary/monitoring.md: guards on known, damaged and unknown parts. See experiments/recognition.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.monitoring import local_prompt
from robot_bridge.auxiliary.monitoring.guard import GlobalLocalConcept, GuardRecogniser, MaximumConcept, Rule, as_grid
from robot_bridge.auxiliary.monitoring.guard_evaluation import Judged, damaged_pictures, guard_figures
from robot_bridge.auxiliary.monitoring.local_prompt import LocalPromptConfig
from robot_bridge.auxiliary.recognition.class_prompts import template_vectors
from robot_bridge.auxiliary.recognition.evaluation import milliseconds
from robot_bridge.auxiliary.recognition.parts_bench import TEST_SEED, PartsBench
from robot_bridge.auxiliary.vlm.feature_cache import Features, image_cache


def guards(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """A guard that knows some classes, judged on damaged objects of those (near) and on the other classes (far).

    Args:
        config: as `PartsBench`'s, `guard` (`mcm`, `gl-mcm`, `local-prompt`), `known` (how many classes), `shots`, `damaged` (pictures),
            `templates`, `settings` (of Local-Prompt).
        seed: of which classes are known, of the shots and of training.
        run_dir: of the run; pictures and features lie beside it.
    """
    bench = PartsBench(config, run_dir.parent / "data")
    order = torch.randperm(len(bench.pool.classes), generator=torch.Generator().manual_seed(seed)).tolist()
    known = tuple(bench.pool.classes[index] for index in order[: config["known"]])
    texts = template_vectors(bench.vlm, known, config["templates"])
    damaged = bench.pictures("damaged", images=config["damaged"], seed=TEST_SEED, defects=1.0).only(known)
    sets = [bench.tests["clean"], damaged]
    cache = image_cache(bench.vlm, bench.features, tokens=True)
    vectors = [cache.features(data.frames) for data in sets]
    figures: dict[str, Any] = {}
    for shots in config["shots"]:
        rule: Rule
        if config["guard"] == "local-prompt":
            settings = LocalPromptConfig().override(**{"templates": config["templates"], **config.get("settings", {})})
            chosen = bench.pool.only(known).few_shot(shots, seed)
            image, tokens = local_prompt.crop_vectors(bench.vlm, chosen, settings.crops, bench.features)
            crops = local_prompt.sort_crops(image, tokens, torch.from_numpy(chosen.labels), texts, settings.positives)
            rule = local_prompt.fit(bench.vlm, crops, known, settings, seed=seed)
            figures[f"negatives_cosine_{shots}"] = _mean_cosine(rule.negative)
        else:
            rule = MaximumConcept(texts=texts) if config["guard"] == "mcm" else GlobalLocalConcept(texts=texts)
        found = guard_figures(_judged(rule, bench, known, sets, vectors), known)
        figures |= {f"{name}_{shots}": 100 * rate for name, rate in found.items()}
        figures["ms_per_frame"] = milliseconds(GuardRecogniser(bench.vlm, known, rule, 0.0), bench.tests["clean"])
    return figures


def _judged(rule: Rule, bench: PartsBench, known: tuple[str, ...], sets: list[ImageData], vectors: list[Features]) -> Judged:
    image, tokens = (torch.from_numpy(np.concatenate([each[name] for each in vectors])) for name in ("image", "tokens"))
    found = rule.judge(image, tokens, bench.vlm.logit_scale.exp())
    masks = [data.segmentation for data in sets if data.segmentation is not None]
    return Judged(
        names=np.concatenate([np.array(data.classes)[data.labels] for data in sets]),
        damaged=np.concatenate([damaged_pictures(data) for data in sets]),
        predicted=np.array(known)[found.classes.argmax(dim=1).numpy()],
        known=found.known.numpy(),
        maps=None if found.outliers is None else as_grid(found.outliers).numpy(),
        masks=np.concatenate(masks) if len(masks) == len(sets) else None,
    )


def _mean_cosine(vectors: torch.Tensor) -> float:
    """Of different rows of length 1."""
    count = len(vectors)
    return float(((vectors @ vectors.T).sum() - count) / (count * (count - 1)))
