"""The language model of a run and of a bundle."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from rl_core.bundle import Bundle, BundleError
from rl_core.training.checkpoint import CheckpointStore
from robot_bridge.auxiliary.bundles import fingerprint
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.lmm.interface import LMM
from robot_bridge.auxiliary.lmm.llava import LlavaLMM
from robot_bridge.auxiliary.lmm.small import SmallLMM
from robot_bridge.auxiliary.lmm.smollm import SmolLMM
from robot_bridge.auxiliary.lmm.visual_tokens import VisualTokens
from robot_bridge.auxiliary.recognition.selfsynth.base_corpus import base_texts, vocabulary
from robot_bridge.auxiliary.recognition.selfsynth.concepts import Concepts
from robot_bridge.auxiliary.recognition.selfsynth.config import BaseConfig, SelfSynthConfig
from robot_bridge.auxiliary.run_folder import RunFolder
from robot_bridge.auxiliary.told_progress import ToldProgress
from robot_bridge.auxiliary.vlm.interface import VLM

Say = Callable[[str], None]
_FIELD, _PREFIX = "lmm", "lmm."
_CAMERA_PICTURES = 256
"""Pictures whose visual tokens a running recogniser remembers."""


def language_model(config: SelfSynthConfig, vlm: VLM | None, visual: VisualTokens | None, seed: int) -> LMM:
    """The model that a configuration names by its weights.

    Args:
        config: with `weights`.
        vlm: what a decoder or SmolLM2 sees through; None for LLaVA.
        visual: of that VLM.
        seed: of corrections that begin untrained.

    Raises:
        LMMError: not there, or made on another VLM.
    """
    if config.backend == "llava":
        return LlavaLMM.from_folder(config.weights, seed=seed)
    assert vlm is not None
    if config.backend == "smollm":
        return SmolLMM.from_folder(config.weights, vlm, grid=config.grid, visual=visual, seed=seed)
    return SmallLMM.load(config.weights, vlm, visual)


def kept_decoder(
    folder: Path,
    vlm: VLM,
    visual: VisualTokens,
    described: ImageData,
    concepts: Concepts,
    config: BaseConfig,
    seed: int,
    say: Say = lambda text: None,
) -> SmallLMM:
    """The decoder of `folder`, which has learnt to describe drawn pictures; made, and written there, if it is not there yet.

    Args:
        folder: of the decoder; a making that was stopped goes on behind its last whole epoch.
        vlm: it sees through.
        visual: of that VLM.
        described: drawn pictures; see `base_corpus`.
        concepts: of their classes.
        config: settings.
        seed: of everything.
        say: told how far it is.

    Raises:
        ArmstackError: the folder holds a decoder of other settings or pictures; names what differs.
        RecognitionError: pictures that cannot be described.
    """
    facts = {"base": config.to_dict(), "seed": seed, "described": fingerprint(described), "concepts": concepts.to_json()}
    RunFolder(folder, {**facts, "model": vlm.identity, "grid": visual.grid})
    place = folder / "decoder"
    if (place / "bundle.json").is_file():
        return SmallLMM.load(place, vlm, visual)
    texts = base_texts(described, concepts, config, seed)
    model = SmallLMM(vlm, vocabulary(concepts, described), grid=visual.grid, visual=visual, seed=seed)
    say(f"base: {len(texts)} texts on {len(described)} pictures, {model.vocabulary.size} words")
    frames, (prompts, answers) = described.frames[[row for row, _, _ in texts]], zip(*(text[1:] for text in texts), strict=True)
    told, store = ToldProgress(say, "base: steps"), CheckpointStore(folder / "epochs")
    try:
        loss = model.sft(frames, prompts, answers, config.epochs, config.lr, seed=seed, told=told, store=store)
    except KeyboardInterrupt:
        say("base: whole epochs are kept; the same command goes on behind the last of them")
        raise
    say(f"base: loss {loss:.3f}")
    model.save(place)
    shutil.rmtree(store.folder)
    return SmallLMM.load(place, vlm, visual)  # as every later run finds it


def bundled(lmm: LMM, config: SelfSynthConfig) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Weights and facts of a model for a bundle; of SmolLM2 and LLaVA what was trained, and the folder of the rest."""
    facts: dict[str, Any] = {"backend": config.backend, "folder": config.weights, "identity": lmm.identity}
    if isinstance(lmm, SmallLMM):
        facts["small"] = lmm.facts()
    return {f"{_PREFIX}{name}": tensor for name, tensor in lmm.trained().items()}, {_FIELD: facts}


def model_of(bundle: Bundle, config: SelfSynthConfig, vlm: VLM | None) -> LMM:
    """The model of a bundle that `bundled` went into.

    Raises:
        BundleError: none in it, or another one is found here.
        LMMError: its frozen weights are not there.
    """
    facts: Mapping[str, Any] | None = bundle.config.get(_FIELD)
    if not facts:
        raise BundleError(f"bundle of {bundle.method}: config has no {_FIELD!r}, the model that answers")
    weights = {name.removeprefix(_PREFIX): tensor for name, tensor in bundle.weights.items() if name.startswith(_PREFIX)}
    grid = facts["small"]["grid"] if "small" in facts else config.grid
    visual = VisualTokens(vlm, grid, most=_CAMERA_PICTURES) if vlm is not None else None
    if "small" in facts:
        assert vlm is not None
        return SmallLMM.from_facts(facts["small"], weights, vlm, visual)
    model = language_model(config, vlm, visual, seed=0)
    if model.identity != facts["identity"]:
        raise BundleError(f"bundle of {bundle.method}: trained with {facts['identity']!r}; here is {model.identity!r}")
    model.restore(weights)
    return model
