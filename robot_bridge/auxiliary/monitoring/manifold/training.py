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
from robot_bridge.auxiliary.image_files import read_images
from robot_bridge.auxiliary.monitoring.manifold.bundled_prior import ddpm_weights, kept_ddpm, prior_facts, prior_of, stable_diffusion
from robot_bridge.auxiliary.monitoring.manifold.calibration import Calibration, calibrate, frame_scores, verdict_correlation
from robot_bridge.auxiliary.monitoring.manifold.config import ManifoldConfig
from robot_bridge.auxiliary.monitoring.manifold.criterion import TERMS, spherical_noises, step_of, terms
from robot_bridge.auxiliary.monitoring.manifold.ddpm import PixelPrior, Say
from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError
from robot_bridge.auxiliary.monitoring.manifold.few_shot import Mixture, fit_mixture
from robot_bridge.auxiliary.monitoring.manifold.pixels import as_crops, cut
from robot_bridge.auxiliary.monitoring.manifold.prior import Prior
from robot_bridge.auxiliary.monitoring.manifold.recogniser import CLASSES, AuthenticityRecogniser
from robot_bridge.auxiliary.monitoring.manifold.scoring import Reference, Scorer, frozen_features
from robot_bridge.auxiliary.monitoring.manifold.stable_diffusion import ALPHA
from robot_bridge.auxiliary.monitoring.manifold.sweep import Level, best_level, sweep, table

_WEAK = 0.6


def train(data: ImageData, config: ManifoldConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """Trains the prior on the objects that are not held out, sweeps alpha, and calibrates on those that are.

    A DDPM that was trained is kept in `run_dir`; interrupted later, the same command goes on from there.

    Raises:
        AuthenticityError: frames too small, or labelled frames that cannot be used.
        ImageDataError: too few objects to hold some out.
    """
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
            say(f"judging {config.samples} samples of its own")
            own = own_samples(pixel_prior, crops, config.samples, config.sampling_steps, seed)
            chosen = numpy_generator(seed, "sweep").permutation(len(real))[: config.samples]
            levels = sweep(pixel_prior, own, real[chosen], noises, config.weights)
            for level in levels:
                say(f"alpha {level.alpha:.3f}  " + "  ".join(f"{name} {auc:.3f}" for name, auc in level.auc.items()))
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
    scorer = replace(scorer, mixture=few_shot(scorer, config, side, data.frames.shape, seed))
    calibration = on_real_frames(scorer, real, checked, config, side)
    say(
        f"alpha {float(prior.alphas[step]):.3f}; {100 * calibration.false_positive_rate:.1f} % of {calibration.checked} real frames "
        "of further objects are above the threshold"
    )
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
    return AuthenticityRecogniser(scorer, calibration, side=crop_side(config, (0, *recognition.camera.shape)), tiles=config.tiles)


def crop_side(config: ManifoldConfig, shape: tuple[int, ...]) -> int:
    """Pixels of a crop of frames (n, H, W, 3): the DDPM's, or of a Stable Diffusion, which enlarges them itself, all there are."""
    return config.ddpm.side if config.prior == "ddpm" else min(shape[1:3]) // config.tiles


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


def few_shot(scorer: Scorer, config: ManifoldConfig, side: int, shape: tuple[int, ...], seed: int) -> Mixture | None:
    """The mixture of the labelled frames that a configuration names; None without.

    Raises:
        AuthenticityError: its classes are not `real` and `generated`, or its frames are of another size than those of the camera.
    """
    if not config.labelled:
        return None
    data = read_images(config.labelled, side=min(shape[1:3]))
    if set(data.classes) != set(CLASSES):
        raise AuthenticityError(f"{config.labelled}: classes {', '.join(data.classes)}; valid: {', '.join(CLASSES)}")
    labels = torch.from_numpy((data.labels == data.classes.index("generated")).astype(np.int64)).repeat_interleave(config.tiles**2)
    crops = cut(data.frames, side, config.tiles)
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
