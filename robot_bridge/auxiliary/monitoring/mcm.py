"""The guards without training: MCM (arXiv 2211.13445) and GL-MCM (arXiv 2304.04521)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rl_core.bundle import Bundle
from rl_core.training.config import Config, ConfigError
from robot_bridge.auxiliary.bundles import recognition_of
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.monitoring.calibration import guard_bundle
from robot_bridge.auxiliary.monitoring.guard import GlobalLocalConcept, GuardRecogniser, MaximumConcept
from robot_bridge.auxiliary.recognition.bundled_vlm import vlm_at, vlm_of
from robot_bridge.auxiliary.recognition.class_prompts import template_vectors
from robot_bridge.auxiliary.recognition.prompt_tuning import Say

_RULES: dict[str, type[MaximumConcept] | type[GlobalLocalConcept]] = {"mcm": MaximumConcept, "gl-mcm": GlobalLocalConcept}


@dataclass(frozen=True, kw_only=True)
class MCMConfig(Config):
    """Settings of both guards."""

    vlm: str = ""
    """Folder of the VLM: a bundle of the small one, or a CLIP with its tokenizer."""
    templates: tuple[str, ...] = ("a photo of a {}.",)
    """Prompts, {} for the name; the vectors of several are averaged."""
    temperature: float = 1.0
    """T of the softmax over raw cosines [paper]."""
    held_out: float = 0.3
    """Share of each class's objects whose pictures set the threshold [here]."""

    def __post_init__(self) -> None:
        self.require_above_zero("temperature")
        if not 0 < self.held_out < 1:
            raise ConfigError(f"MCMConfig.held_out: {self.held_out}, valid: above 0, below 1")


def train(data: ImageData, config: MCMConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """MCM: sets the threshold."""
    return _train("mcm", data, config, run_dir, seed, say)


def train_global_local(data: ImageData, config: MCMConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """GL-MCM: sets the threshold."""
    return _train("gl-mcm", data, config, run_dir, seed, say)


def load(bundle: Bundle) -> GuardRecogniser:
    """The guard of a bundle of `mcm` or `gl-mcm`."""
    recognition = recognition_of(bundle)
    rule = _RULES[bundle.method](texts=bundle.weights["texts"], temperature=recognition.config(MCMConfig).temperature)
    return GuardRecogniser(vlm_of(bundle), recognition.classes, rule, recognition.calibration["threshold"])


def _train(method: str, data: ImageData, config: MCMConfig, run_dir: Path, seed: int, say: Say) -> Bundle:
    vlm = vlm_at(config.vlm)
    texts = template_vectors(vlm, data.classes, config.templates)
    rule = _RULES[method](texts=texts, temperature=config.temperature)
    _, held = data.split((1 - config.held_out, config.held_out), seed)
    places = {"vlm": vlm, "folder": config.vlm, "data": data, "held": held, "run_dir": run_dir, "say": say}
    return guard_bundle(method, config, {"texts": texts}, rule, **places)  # type: ignore[arg-type]
