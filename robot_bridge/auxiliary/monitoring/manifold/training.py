"""From real frames to a detector: prior, share of noise, reference, threshold. Generated frames take part in a few-shot mixture alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_core.bundle import Bundle
from rl_core.training.seeding import derive_seed, numpy_generator
from robot_bridge.auxiliary.bundles import fingerprint, image_channel, recogniser_bundle, recognition_of
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.monitoring.manifold.bundled_prior import ddpm_weights, prior_facts, prior_of, stable_diffusion
from robot_bridge.auxiliary.monitoring.manifold.calibration import Calibration, calibrate, frame_scores, verdict_correlation
from robot_bridge.auxiliary.monitoring.manifold.config import ManifoldConfig
from robot_bridge.auxiliary.monitoring.manifold.criterion import TERMS, spherical_noises, step_of, terms
from robot_bridge.auxiliary.monitoring.manifold.ddpm import PixelPrior
from robot_bridge.auxiliary.monitoring.manifold.few_shot import Mixture, fit_mixture
from robot_bridge.auxiliary.monitoring.manifold.frames import CLASSES, read_labelled, require_real
from robot_bridge.auxiliary.monitoring.manifold.kept import Say, digest_of, kept_ddpm, kept_sweep
from robot_bridge.auxiliary.monitoring.manifold.pixels import as_crops, cut
from robot_bridge.auxiliary.monitoring.manifold.prior import Prior
from robot_bridge.auxiliary.monitoring.manifold.recogniser import AuthenticityRecogniser
from robot_bridge.auxiliary.monitoring.manifold.scoring import Reference, Scorer, frozen_features
from robot_bridge.auxiliary.monitoring.manifold.stable_diffusion import ALPHA
from robot_bridge.auxiliary.monitoring.manifold.sweep import Level, best_level, sweep, table

_WEAK, _USELESS = 0.6, 0.5


def train(data: ImageData, config: ManifoldConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """Trains the prior on the objects that are not held out, sweeps alpha, and calibrates on those that are.

    What takes long is kept in `run_dir` (`kept.py`): stopped and called again, it goes on from there. What it needs beside `data` is
    asked for first.

    Raises:
        AuthenticityError: frames too small or of a class `generated`, labelled frames that cannot be used, or a network not installed.
        ImageDataError: too few objects to hold some out, or labelled frames that cannot be read.
    """
    require_real(data.classes)
    shape = data.frames.shape[1:]
    labelled = read_labelled(config.labelled, shape, config.tiles**2) if config.labelled else None
    if config.score == "rigid" or (labelled is not None and config.features):
        frozen_features()
    seen, held, checked = data.split((1 - config.held_out, config.held_out / 2, config.held_out / 2), seed)
    side = crop_side(config, data.frames.shape)
    real = cut(held.frames, side, config.tiles)
    levels: list[Level] = []
    prior: Prior
    if config.prior == "ddpm":
        crops = cut(seen.frames, side, config.tiles)
        pixel_prior = kept_ddpm(run_dir, crops, config.ddpm, seed=seed, say=say)
        noises, prior, weights = spherical_noises(pixel_prior.size, config.noises, seed), pixel_prior, ddpm_weights(pixel_prior)
        if config.alpha is None:
            levels = _swept(pixel_prior, crops, real, noises, config, run_dir, seed, say)
            if max(level.auc["criterion"] for level in levels) < _WEAK:
                say(
                    f"at no alpha has the criterion an AUC of {_WEAK} on the prior's own samples: what it says of others rests on "
                    "frames of theirs alone; train longer (--config.ddpm.updates), or give labelled frames (--config.labelled)"
                )
    else:
        prior, weights = stable_diffusion(config), {}
        noises = spherical_noises(prior.size, config.noises, seed)
    step = best_level(levels, config.score).step if levels else step_of(prior, ALPHA if config.alpha is None else config.alpha)
    scorer = Scorer(
        score=config.score,
        prior=prior,
        step=step,
        noises=noises,
        reference=Reference.of(terms(prior, real, step, noises)),
        weights=config.weights,
    )
    if labelled is not None:
        scorer = replace(scorer, mixture=few_shot(scorer, labelled, config, side, seed))
    say(f"setting the threshold on {len(held)} real frames, and checking it on {len(checked)}")
    calibration = on_real_frames(scorer, real, checked, config, side)
    say(
        f"alpha {float(prior.alphas[step]):.3f}; {100 * calibration.false_positive_rate:.1f} % of {calibration.checked} real frames "
        "of further objects are above the threshold"
    )
    _warn(calibration, say)
    bundle = recogniser_bundle(
        "manifold",
        config,
        weights,
        classes=CLASSES,
        camera=image_channel(data.frames.shape),
        calibration={**calibration.numbers(), "step": step, "alpha": float(prior.alphas[step]), "d_feat": prior.d_feat},
        arrays=_arrays(scorer, levels),
        data_fingerprint=fingerprint(data),
        metrics=_metrics(calibration, levels),
    )
    return replace(bundle, config={**bundle.config, **prior_facts(config)})


def load(bundle: Bundle) -> AuthenticityRecogniser:
    """The recogniser of a bundle."""
    recognition = recognition_of(bundle)
    config, arrays = recognition.config(ManifoldConfig), bundle.arrays
    assert recognition.camera is not None
    reference = {name: dict(zip(TERMS, arrays[f"reference.{name}"].tolist(), strict=True)) for name in ("mean", "deviation")}
    scorer = Scorer(
        score=config.score,
        prior=prior_of(bundle, config),
        step=int(recognition.calibration["step"]),
        noises=arrays["noises"],
        reference=Reference(**reference),
        weights=config.weights,
        mixture=Mixture.from_arrays(arrays),
    )
    calibration = Calibration.from_numbers(recognition.calibration)
    shape = tuple(recognition.camera.shape)
    return AuthenticityRecogniser(scorer, calibration, shape=shape, side=crop_side(config, (0, *shape)), tiles=config.tiles)


def crop_side(config: ManifoldConfig, shape: tuple[int, ...]) -> int:
    """Pixels of a crop of frames (n, H, W, 3): the DDPM's, or of a Stable Diffusion, which enlarges them itself, all there are."""
    return config.ddpm.side if config.prior == "ddpm" else min(shape[1:3]) // config.tiles


def _swept(
    prior: PixelPrior,
    crops: NDArray[np.uint8],
    real: NDArray[np.uint8],
    noises: Tensor,
    config: ManifoldConfig,
    run_dir: Path,
    seed: int,
    say: Say,
) -> list[Level]:
    """Every alpha, judged on samples of the prior itself and as many held-out crops."""

    def make() -> list[Level]:
        say(f"judging {config.samples} samples of its own")
        own = own_samples(prior, crops, config.samples, config.sampling_steps, seed)
        chosen = numpy_generator(seed, "sweep").permutation(len(real))[: config.samples]
        return sweep(prior, own, real[chosen], noises, config.weights, told=say)

    settings = (config.ddpm.sha256(), config.samples, config.sampling_steps, config.noises, config.weights, seed)
    return kept_sweep(run_dir, digest_of(f"{settings}", crops, real), make, say)


def own_samples(prior: PixelPrior, crops: NDArray[np.uint8], count: int, steps: int, seed: int) -> NDArray[np.uint8]:
    """`count` pictures (count, side, side, 3) that the prior makes, in the tone of as many crops of those given."""
    rows = numpy_generator(seed, "tones").integers(len(crops), size=count)
    return as_crops(prior.sample(count, derive_seed(seed, "own"), steps), crops[rows])


def on_real_frames(scorer: Scorer, real: NDArray[np.uint8], checked: ImageData, config: ManifoldConfig, side: int) -> Calibration:
    """The threshold of crops of some objects, and how often frames of others exceed it."""
    found = calibrate(scorer(real), config.tiles, config.k)
    flagged = (found.excess(frame_scores(scorer(cut(checked.frames, side, config.tiles)), config.tiles)) > 0).numpy()
    return replace(
        found,
        false_positive_rate=float(flagged.mean()),
        correlation=verdict_correlation(flagged, checked.instances),
        checked=len(flagged),
    )


def _warn(calibration: Calibration, say: Say) -> None:
    if calibration.false_positive_rate >= _USELESS:
        say("so many real frames are flagged that nothing can be told from a flag: train longer, or on frames of more objects")
    if calibration.correlation == 1.0:
        say(
            "whether frames of one object or scene err together cannot be told from these, so no episode can be judged by itself: "
            "give several frames of each (CLASS/SCENE/FILE.png), of more scenes"
        )


def few_shot(scorer: Scorer, labelled: ImageData, config: ManifoldConfig, side: int, seed: int) -> Mixture:
    """The mixture of labelled frames, of the classes `real` and `generated`."""
    made = labelled.labels == labelled.classes.index("generated")
    labels = torch.from_numpy(made.astype(np.int64)).repeat_interleave(config.tiles**2)
    crops = cut(labelled.frames, side, config.tiles)
    return fit_mixture(scorer.columns(crops), labels, frozen_features()(crops) if config.features else None, seed=seed)


def _arrays(scorer: Scorer, levels: list[Level]) -> dict[str, Tensor]:
    reference = {
        f"reference.{name}": torch.tensor([values[term] for term in TERMS], dtype=torch.float64)
        for name, values in (("mean", scorer.reference.mean), ("deviation", scorer.reference.deviation))
    }
    mixture = {} if scorer.mixture is None else scorer.mixture.arrays()
    return {"noises": scorer.noises, **reference, **mixture, **({"sweep": table(levels)} if levels else {})}


def _metrics(calibration: Calibration, levels: list[Level]) -> dict[str, float]:
    swept = {f"auc {name} at {level.alpha:.3f}": auc for level in levels for name, auc in level.auc.items()}
    return {"false_positive_rate": calibration.false_positive_rate, **swept}
