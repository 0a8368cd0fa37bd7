"""Part classifiers for changed pixels: TRADES, and the confusional spectral regulariser for its worst class (arXiv 2501.13273).

The adversary, bounded noise on every pixel, stands for the worst that light and sensor do in a cell. Both methods train `SmallCNN` from
scratch with TRADES; `csr` then fine-tunes for the worst class, `trades` goes on as it began for the same number of epochs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rl_core.bundle import Bundle
from rl_core.training.config import Config
from rl_core.training.seeding import preserved_rng, seed_everything, torch_generator
from robot_bridge.auxiliary.bundles import fingerprint, image_channel, recogniser_bundle, recognition_of
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.protocols import Prediction
from robot_bridge.auxiliary.recognition.evaluation import accuracies, evaluate, known_labels
from robot_bridge.auxiliary.recognition.prompt_tuning import Say
from robot_bridge.auxiliary.recognition.robust_training import AdversaryConfig, Weighting, attacked_logits, train_trades, tune_worst_class
from robot_bridge.auxiliary.recognition.shots import chosen_shots
from robot_bridge.auxiliary.recognition.small_cnn import SmallCNN, pixels

_TEST_STEPS = 20
"""PGD steps of an evaluation, twice those of training [code]."""


@dataclass(frozen=True, kw_only=True)
class CSRConfig(Config):
    """Settings of CSR; TRADES uses those before `tune_lr` and the number of epochs of both parts."""

    shots: int = 0
    """Pictures of each class to train on; 0 = all there are [here]."""
    side: int = 48
    """Pixels of the classifier's input, height and width [here]."""
    width: int = 16
    """Channels of its first convolution [here]."""
    epochs: int = 30
    """Of TRADES from scratch [here; the code starts from a checkpoint]."""
    lr: float = 0.05
    """SGD's learning rate there [here]."""
    tune_epochs: int = 6
    """Of fine-tuning [here; 2 in the code, on 50,000 images]."""
    tune_lr: float = 0.01
    """SGD's learning rate there [code: 1e-3 with TRADES, 1e-2 with AWP]."""
    share: float = 0.3
    """Of the regulariser in the loss; the rest is the clean cross-entropy [code]."""
    margin: float = 0.1
    """By this share of its size the true logit is lowered when confusion is counted [code]."""
    weighting: Weighting = "spectral"
    """Direction of the confusion matrix's spectral norm, or all ones."""
    adversary: AdversaryConfig = AdversaryConfig()
    """What changes pixels."""

    def __post_init__(self) -> None:
        self.require_least(shots=0, side=8, width=1, epochs=1, tune_epochs=1, share=0, margin=0)
        self.require_above_zero("lr", "tune_lr")


def fit_trades(net: nn.Module, images: Tensor, labels: Tensor, config: CSRConfig, *, seed: int) -> None:
    """TRADES for `epochs` at `lr`: where both methods begin."""
    train_trades(net, images, labels, config.adversary, epochs=config.epochs, lr=config.lr, generator=torch_generator(seed, "trades"))


def continue_trades(net: nn.Module, images: Tensor, labels: Tensor, config: CSRConfig, *, seed: int) -> None:
    """The baseline: TRADES for as long and at the same rate as `fine_tune`."""
    generator = torch_generator(seed, "tune")
    train_trades(net, images, labels, config.adversary, epochs=config.tune_epochs, lr=config.tune_lr, generator=generator)


def fine_tune(net: nn.Module, images: Tensor, labels: Tensor, config: CSRConfig, *, classes: int, seed: int) -> None:
    """The method: see `robust_training.tune_worst_class`."""
    tune_worst_class(
        net,
        images,
        labels,
        config.adversary,
        classes=classes,
        epochs=config.tune_epochs,
        lr=config.tune_lr,
        share=config.share,
        margin=config.margin,
        weighting=config.weighting,
        generator=torch_generator(seed, "tune"),
    )


def robust_accuracies(net: nn.Module, images: Tensor, labels: Tensor, config: AdversaryConfig, *, seed: int) -> dict[str, float]:
    """Rates under PGD-20 by class: `robust_accuracy`, `..._mean_class`, `..._worst_class`, `..._worst_two` (less noisy than a minimum)."""
    logits = attacked_logits(net, images, labels, config, torch_generator(seed, "test attack"), steps=_TEST_STEPS)
    right = (logits.argmax(dim=1) == labels).numpy()
    by_class = sorted(float(right[labels.numpy() == label].mean()) for label in labels.unique().tolist())
    figures = accuracies(logits.argmax(dim=1).numpy(), labels.numpy())
    return {**{f"robust_{name}": rate for name, rate in figures.items()}, "robust_accuracy_worst_two": float(np.mean(by_class[:2]))}


class PixelRecogniser:
    """A classifier of pixels.

    Attributes:
        class_robustness: accuracy of each class under attack, on the pictures that were held out; tells a planner where to look twice.

    Args:
        net: images (n, 3, side, side) in [0, 1] -> logits.
        classes: names.
        config: side of its input, and the adversary it was trained against.
        class_robustness: see above.
    """

    def __init__(self, net: nn.Module, classes: Sequence[str], config: CSRConfig, class_robustness: Mapping[str, float]) -> None:
        self.net, self._classes, self.config = net, tuple(classes), config
        self.class_robustness = dict(class_robustness)

    @property
    def classes(self) -> tuple[str, ...]:
        """See `protocols.Recogniser`."""
        return self._classes

    def predict(self, frames: NDArray[np.uint8], condition: Mapping[str, Any] | None = None) -> Prediction:
        """See `protocols.Recogniser`. `values["robustness"]`: `class_robustness` of the class that is most likely."""
        with torch.no_grad():
            scores = torch.softmax(self.net(pixels(frames, self.config.side)), dim=-1).numpy()
        robust = np.array([self.class_robustness[self._classes[index]] for index in scores.argmax(axis=1)], np.float32)
        return Prediction(scores=scores, values={"robustness": robust})


def train(data: ImageData, config: CSRConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """TRADES, then the regulariser. A fifth of the objects is held out and gives each class's robustness."""
    return _train("csr", data, config, seed, say)


def train_baseline(data: ImageData, config: CSRConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """TRADES all the way."""
    return _train("trades", data, config, seed, say)


def load(bundle: Bundle) -> PixelRecogniser:
    """The recogniser of a bundle of `csr` or `trades`."""
    recognition = recognition_of(bundle)
    config = recognition.config(CSRConfig)
    net = SmallCNN(len(recognition.classes), config.width)
    net.load_state_dict(dict(bundle.weights))
    return PixelRecogniser(net.eval(), recognition.classes, config, recognition.calibration)


def evaluate_robust(loaded: PixelRecogniser, data: ImageData) -> dict[str, float]:
    """`evaluation.evaluate` and the rates under attack, with the adversary it was trained against."""
    labels = torch.from_numpy(known_labels(loaded.classes, data))
    robust = robust_accuracies(loaded.net, pixels(data.frames, loaded.config.side), labels, loaded.config.adversary, seed=0)
    return {**evaluate(loaded, data), **robust}


def _train(method: str, data: ImageData, config: CSRConfig, seed: int, say: Say) -> Bundle:
    training, held = data.split((0.8, 0.2), seed)
    training = chosen_shots(training, config.shots, seed)
    images, labels = pixels(training.frames, config.side), torch.from_numpy(training.labels)
    net = new_classifier(len(data.classes), config, seed)
    fit_trades(net, images, labels, config, seed=seed)
    say("TRADES done")
    if method == "csr":
        fine_tune(net, images, labels, config, classes=len(data.classes), seed=seed)
    else:
        continue_trades(net, images, labels, config, seed=seed)
    held_images, held_labels = pixels(held.frames, config.side), torch.from_numpy(held.labels)
    logits = attacked_logits(net, held_images, held_labels, config.adversary, torch_generator(seed, "held out"), steps=_TEST_STEPS)
    right = (logits.argmax(dim=1) == held_labels).float()
    robustness = {name: float(right[held_labels == label].mean()) for label, name in enumerate(data.classes)}
    say(f"weakest class under attack: {min(robustness, key=lambda name: robustness[name])}")
    return recogniser_bundle(
        method,
        config,
        net.state_dict(),
        classes=data.classes,
        camera=image_channel(data.frames.shape),
        data_fingerprint=fingerprint(data),
        calibration=robustness,
    )


def new_classifier(classes: int, config: CSRConfig, seed: int) -> SmallCNN:
    """With initial weights of that seed."""
    with preserved_rng():
        seed_everything(seed)
        return SmallCNN(classes, config.width)
