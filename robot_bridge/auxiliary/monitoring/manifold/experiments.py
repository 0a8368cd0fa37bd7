"""The runs behind docs/auxiliary/authenticity.md: real frames of parts against three generators. See experiments/manifold.yaml."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.image_files import read_images
from robot_bridge.auxiliary.monitoring.detection import auroc
from robot_bridge.auxiliary.monitoring.manifold import training
from robot_bridge.auxiliary.monitoring.manifold.config import ManifoldConfig
from robot_bridge.auxiliary.monitoring.manifold.criterion import Weights, spherical_noises, terms
from robot_bridge.auxiliary.monitoring.manifold.ddpm import DDPMConfig, PixelPrior, train_ddpm
from robot_bridge.auxiliary.monitoring.manifold.few_shot import fit_mixture
from robot_bridge.auxiliary.monitoring.manifold.pixels import as_crops, cut
from robot_bridge.auxiliary.monitoring.manifold.recogniser import AuthenticityRecogniser
from robot_bridge.auxiliary.monitoring.manifold.scoring import Reference, Scorer, frozen_features, image_score, scores_of_terms
from robot_bridge.auxiliary.monitoring.manifold.sweep import ALPHAS
from robot_bridge.auxiliary.monitoring.manifold.vae import VAEConfig, train_vae
from robot_bridge.auxiliary.parts_data import make
from robot_bridge.auxiliary.recognition.evaluation import milliseconds

Crops = NDArray[np.uint8]
GENERATORS = ("own", "vae", "ddpm")
"""Samples of the prior itself, and of two models that it has nothing to do with."""
_TERMS = ("kappa", "gradient", "bias")


def authenticity(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """A detector, made as `armstack aux train manifold` makes it, judged on frames of three generators in the tone of real ones.

    Figures, AUC in percent: `GENERATOR_SCORE` at the alpha that own samples chose; `GENERATOR_at_ALPHA` of the criterion at every alpha;
    `GENERATOR_one_noise`; `GENERATOR_few_shot`, `..._few_shot_features` and `..._best_term`, the best of the three terms whichever way
    round; `GENERATOR_detected` and `false_positive_rate` at the threshold, in percent; `alpha`; `ms_per_frame`; `train_s`.

    Args:
        config: `pictures` {images, size, seed}, `detector` (of `ManifoldConfig`), `vae` (of `VAEConfig`), `ddpm` (of `DDPMConfig`, of the
            other diffusion model), `test` (frames of each kind), `labels` (of the few-shot mixture, half of them generated).
        seed: of the split by objects, of training and of samples.
        run_dir: of the run; pictures lie beside it.
    """
    data, settings = _pictures(config["pictures"], run_dir.parent / "data"), ManifoldConfig().override(**config["detector"])
    begun = time.process_time()
    bundle = training.train(data, settings, run_dir, seed=seed, say=_quiet)
    figures: dict[str, Any] = {"train_s": time.process_time() - begun}
    detector = training.load(bundle)
    held_out = settings.held_out
    seen, held, checked = (cut(part.frames, settings.ddpm.side) for part in data.split((1 - held_out, held_out / 2, held_out / 2), seed))
    rng = np.random.default_rng(seed)
    real = checked[rng.permutation(len(checked))[: config["test"]]]
    half = config["labels"] // 2
    known = held[rng.permutation(len(held))[:half]]
    made = _generated(detector, seen, config, seed, count=half + config["test"])
    figures |= _by_alpha(detector.scorer, bundle.arrays["sweep"][:, 0].long().tolist(), real, {n: made[n][half:] for n in GENERATORS})
    scores = {name: _scores(detector.scorer, crops) for name, crops in {"real": real, **{n: made[n][half:] for n in GENERATORS}}.items()}
    for name in GENERATORS:
        figures |= {f"{name}_{score}": _percent(scores[name][score], scores["real"][score]) for score in scores[name]}
        figures[f"{name}_best_term"] = max(max(figures[f"{name}_{term}"], 100 - figures[f"{name}_{term}"]) for term in _TERMS)
        figures |= _few_shot(detector.scorer, name, known, made[name][:half], made[name][half:], real, seed)
        figures[f"{name}_detected"] = 100 * float((detector.calibration.excess(scores[name]["criterion"]) > 0).float().mean())
    calibration = detector.calibration
    figures |= {"false_positive_rate": 100 * calibration.false_positive_rate, "verdict_correlation": calibration.correlation}
    return {**figures, "alpha": float(bundle.config["calibration"]["alpha"]), "ms_per_frame": milliseconds(detector, data)}


def _pictures(pictures: dict[str, int], folder: Path) -> ImageData:
    place = folder / f"parts-{pictures['seed']}-{pictures['images']}-{pictures['size']}"
    make(place, images=pictures["images"], size=pictures["size"], seed=pictures["seed"], say=_quiet)
    return read_images(place)


def _generated(detector: AuthenticityRecogniser, seen: Crops, config: dict[str, Any], seed: int, count: int) -> dict[str, Crops]:
    """Frames of each generator; those of the prior itself are other ones than those of the sweep."""
    prior = detector.scorer.prior
    assert isinstance(prior, PixelPrior)
    steps = ManifoldConfig().override(**config["detector"]).sampling_steps
    tones = seen[np.random.default_rng([seed, 1]).integers(len(seen), size=count)]
    other = train_ddpm(seen, DDPMConfig().override(**config["ddpm"]), seed=seed + 1)
    vae = train_vae(seen, VAEConfig().override(**config["vae"]), seed=seed)
    images = {"own": prior.sample(count, seed + 1, steps), "vae": vae.sample(count, seed), "ddpm": other.sample(count, seed, steps)}
    return {name: as_crops(some, tones) for name, some in images.items()}


def _by_alpha(scorer: Scorer, steps: list[int], real: Crops, made: dict[str, Crops]) -> dict[str, float]:
    """`GENERATOR_at_ALPHA`, terms standardised on the real frames at hand."""
    figures = {}
    for alpha, step in zip(ALPHAS, steps, strict=True):
        of_real = terms(scorer.prior, real, step, scorer.noises)
        reference = Reference.of(of_real)
        true = scores_of_terms(reference.standardised(of_real), scorer.weights)["criterion"]
        for name, crops in made.items():
            found = scores_of_terms(reference.standardised(terms(scorer.prior, crops, step, scorer.noises)), scorer.weights)
            figures[f"{name}_at_{alpha}"] = _percent(found["criterion"], true)
    return figures


def _scores(scorer: Scorer, crops: Crops) -> dict[str, torch.Tensor]:
    """Every score at the chosen alpha, the criterion with the bias term, and with one noise of sixteen."""
    found = scorer.reference.standardised(terms(scorer.prior, crops, scorer.step, scorer.noises))
    one = replace(scorer, noises=spherical_noises(scorer.prior.size, 1, 0), score="criterion")
    return {
        **scores_of_terms(found, scorer.weights),
        "with_bias": scores_of_terms(found, Weights(c=1.0))["criterion"],
        "one_noise": one(crops),
        "rigid": image_score("rigid", crops),
        "contrast": image_score("contrast", crops),
        "slope": image_score("slope", crops),
    }


def _few_shot(scorer: Scorer, name: str, known: Crops, labelled: Crops, made: Crops, real: Crops, seed: int) -> dict[str, float]:
    """The mixture of terms, and of terms and features, trained on a few labelled frames of that generator."""
    crops = np.concatenate((known, labelled))
    labels = torch.from_numpy(np.repeat([0, 1], [len(known), len(labelled)]))
    columns, features, figures = scorer.columns(crops), frozen_features()(crops), {}
    for figure, given in (("few_shot", None), ("few_shot_features", features)):
        judge = replace(scorer, mixture=fit_mixture(columns, labels, given, seed=seed))
        figures[f"{name}_{figure}"] = _percent(judge(made), judge(real))
    return figures


def _percent(made: torch.Tensor, real: torch.Tensor) -> float:
    return 100 * auroc(made.numpy(), real.numpy())


def _quiet(line: str) -> None:
    """Figures say it all."""
