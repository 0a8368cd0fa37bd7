"""The runs behind docs/auxiliary/explanations.md. See experiments/selfsynth.yaml."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rl_core.models.language import SentenceEncoder
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.image_files import read_images
from robot_bridge.auxiliary.lmm.small import SmallLMM
from robot_bridge.auxiliary.lmm.visual_tokens import VisualTokens
from robot_bridge.auxiliary.parts_data import make
from robot_bridge.auxiliary.recognition.bundled_vlm import vlm_at
from robot_bridge.auxiliary.recognition.selfsynth.backends import kept_decoder
from robot_bridge.auxiliary.recognition.selfsynth.baselines import best_of_n, tune_on_labels
from robot_bridge.auxiliary.recognition.selfsynth.citations import citation_figures
from robot_bridge.auxiliary.recognition.selfsynth.concepts import Concepts, read_concepts
from robot_bridge.auxiliary.recognition.selfsynth.config import SelfSynthConfig
from robot_bridge.auxiliary.recognition.selfsynth.embedder import sentence_vectors
from robot_bridge.auxiliary.recognition.selfsynth.queries import EXAM
from robot_bridge.auxiliary.recognition.selfsynth.rounds import MAX_WORDS, named_label
from robot_bridge.auxiliary.recognition.selfsynth.self_training import Evidence, SelfTraining
from robot_bridge.auxiliary.recognition.selfsynth.visibility import visible_features

SEEDS = {"described": 7400, "pool": 7500, "test": 7600}
"""Objects of each set; none is in another, nor in what the VLM learnt from."""
_BASE_SEED = 0
Visible = Sequence[Mapping[str, bool]]


class Bench:
    """Pictures, the VLM's tokens and the base decoder, which all runs beside each other share; the first run makes them.

    Args:
        config: `vlm` (folder), `size` (pixels), `images` {described, pool, test}, `settings` (of `SelfSynthConfig`).
        folder: where they are kept.
    """

    def __init__(self, config: dict[str, Any], folder: Path) -> None:
        self.settings = SelfSynthConfig().override(vlm=config["vlm"], **config.get("settings", {}))
        self.concepts: Concepts = read_concepts(self.settings.concepts)
        self.encoder: SentenceEncoder = sentence_vectors()
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._data = {kind: self._pictures(folder, kind, config["images"][kind], config["size"]) for kind in SEEDS}
            vlm = vlm_at(self.settings.vlm)
            visual = VisualTokens(vlm, self.settings.grid, folder / "tokens")
            place, base = folder / f"base-{self.settings.base.sha256()[:8]}", self.settings.base
            self._base = kept_decoder(place, vlm, visual, self._data["described"], self.concepts, base, _BASE_SEED)
            visual(np.concatenate([self._data["pool"].frames, self._data["test"].frames]))
        self._weights = self._base.trained()
        self.test = self._data["test"]
        self.visible: Visible = visible_features(self.test, self.concepts)

    def base(self) -> SmallLMM:
        """The base decoder as it was made."""
        self._base.restore(self._weights)
        return self._base

    def shots(self, count: int, seed: int) -> ImageData:
        """Training pictures of a run."""
        return self._data["pool"].few_shot(count, seed)

    def judge(self, lmm: SmallLMM, stage: str) -> dict[str, float]:
        """Figures of the greedy answer to one explain query on every test picture, in percent where they are rates."""
        said = lmm.generate(self.test.frames, [EXAM] * len(self.test), max_tokens=MAX_WORDS)
        return self.figures([answers[0] for answers in said], stage)

    def figures(self, answers: Sequence[str], stage: str) -> dict[str, float]:
        """`accuracy_STAGE`, `citing_two_STAGE`, `cited_precision_STAGE` in percent, `cited_STAGE` features an answer."""
        labels = [self.test.classes[label] for label in self.test.labels]
        right = [named_label(answer, self.test.classes) == label for answer, label in zip(answers, labels, strict=True)]
        found = citation_figures(answers, self.concepts.every_text(), self.visible)
        rates = {"accuracy": float(np.mean(right)), "citing_two": found["citing_two"], "cited_precision": found["cited_precision"]}
        return {**{f"{name}_{stage}": 100 * rate for name, rate in rates.items()}, f"cited_{stage}": found["cited"]}

    def _pictures(self, folder: Path, kind: str, images: int, size: int) -> ImageData:
        place = folder / f"{kind}-{images}-{size}"
        make(place, images=images, size=size, seed=SEEDS[kind], classes=tuple(self.concepts.classes), say=_quiet)
        return read_images(place)


def self_taught(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """All rounds of one setting, judged after each on objects that were never seen.

    Figures: see `Bench.figures` for stages `base` and 1, 2, ...; `accepted_N` in percent; `z_precision`, share of Z* that can be seen,
    `z_random`, of as many concepts of the label at random (expected value), both in percent; `z_count`; `time_s` of the processor.

    Args:
        config: as `Bench`'s, and `shots`: training pictures of each class.
        seed: of the shots and of all rounds.
        run_dir: of the run; pictures, tokens and the base decoder lie beside it.
    """
    bench = Bench(config, run_dir.parent / "data")
    begun = time.process_time()
    training = _training(bench, config, seed, run_dir)
    figures: dict[str, Any] = bench.judge(training.lmm, "base")  # type: ignore[arg-type]  # the bench's own decoder
    found = training.evidence()
    figures |= _evidence_figures(found, training.data, bench.concepts)
    for number in range(1, training.config.rounds + 1):
        figures[f"accepted_{number}"] = 100 * training.round(number, found)
        figures |= bench.judge(training.lmm, str(number))  # type: ignore[arg-type]
    return {**figures, "time_s": time.process_time() - begun}


def labels_alone(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Baselines that need no rounds: fine-tuning on labels alone (stage `1`, for its table beside round 1), and the best of n untrained.

    Args:
        config: see `self_taught`.
        seed: see `self_taught`.
        run_dir: see `self_taught`.
    """
    bench = Bench(config, run_dir.parent / "data")
    begun = time.process_time()
    training = _training(bench, config, seed, run_dir)
    best = best_of_n(training.lmm, bench.test.frames, bench.concepts, bench.encoder, training.config, seed)
    figures: dict[str, Any] = {**bench.judge(bench.base(), "base"), **bench.figures(best, "best_of_n")}
    tune_on_labels(training)
    return {**figures, **bench.judge(training.lmm, "1"), "time_s": time.process_time() - begun}  # type: ignore[arg-type]


def _training(bench: Bench, config: dict[str, Any], seed: int, run_dir: Path) -> SelfTraining:
    shots = bench.shots(config["shots"], seed)
    return SelfTraining(bench.base(), shots, bench.concepts, bench.encoder, bench.settings, run_dir / "rounds", seed=seed)


def _evidence_figures(found: Evidence, data: ImageData, concepts: Concepts) -> dict[str, float]:
    visible = visible_features(data, concepts)
    chosen = [np.mean([seen[text] for text in texts]) for texts, seen in zip(found.informative, visible, strict=True)]
    at_random = [np.mean(list(seen.values())) for seen in visible]
    count = float(np.mean([len(texts) for texts in found.informative]))
    return {"z_precision": 100 * float(np.mean(chosen)), "z_random": 100 * float(np.mean(at_random)), "z_count": count}


def _quiet(line: str) -> None:
    """Every run would repeat what the first one said."""
