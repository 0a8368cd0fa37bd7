"""The adversary, TRADES, and fine-tuning for the worst class, on blobs of ten pixels."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from rl_core.bundle import Bundle
from robot_bridge.auxiliary.recognition import csr, robust_training
from robot_bridge.auxiliary.recognition.adversary import pgd, trades_attack
from robot_bridge.auxiliary.recognition.csr import CSRConfig
from robot_bridge.auxiliary.recognition.robust_training import AdversaryConfig, attacked_logits, train_trades, tune_worst_class
from tests.robot_bridge.auxiliary.tiny_vlm import CLASSES, coloured_parts

ADVERSARY = AdversaryConfig(eps=0.08, step=0.02, steps=5, batch_size=40)


def blobs(count: int = 240, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Images (count, 10) in [0, 1] of 4 classes, of which 2 and 3 lie near each other."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.rand(4, 10, generator=torch.Generator().manual_seed(7))
    centres[3] = centres[2] + 0.15
    labels = torch.arange(count) % 4
    return (centres[labels] + 0.12 * torch.randn(count, 10, generator=generator)).clamp(0, 1), labels


def network(seed: int = 0) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def trained() -> nn.Module:
    net = network()
    train_trades(net, *blobs(), ADVERSARY, epochs=25, lr=0.1, generator=generator())
    return net


def test_attacked_images_stay_near_and_in_range_and_do_harm(trained):
    images, labels = blobs()
    attacked = pgd(trained, images, labels, eps=0.08, step=0.02, steps=5, generator=generator())
    assert float((attacked - images).abs().max()) <= 0.08 + 1e-6 and 0 <= float(attacked.min()) and float(attacked.max()) <= 1
    random = (images + 0.08 * torch.randn(images.shape, generator=generator()).sign()).clamp(0, 1)
    loss = [float(F.cross_entropy(trained(each), labels).detach()) for each in (images, random, attacked)]
    assert loss[2] - loss[0] > 2 * (loss[1] - loss[0]) > 0


def test_the_trades_attack_moves_predictions_without_labels(trained):
    images, _ = blobs()
    attacked = trades_attack(trained, images, eps=0.08, step=0.02, steps=5, generator=generator())
    assert float((attacked - images).abs().max()) <= 0.08 + 1e-6
    clean = F.softmax(trained(images), dim=-1)
    moved = float(F.kl_div(F.log_softmax(trained(attacked), dim=-1), clean, reduction="batchmean").detach())
    random = (images + 0.08 * torch.randn(images.shape, generator=generator()).sign()).clamp(0, 1)
    assert moved > 2 * float(F.kl_div(F.log_softmax(trained(random), dim=-1), clean, reduction="batchmean").detach())


def robust_accuracy(net: nn.Module) -> float:
    images, labels = blobs(400, seed=1)
    return float((attacked_logits(net, images, labels, ADVERSARY, generator()).argmax(dim=1) == labels).float().mean())


def test_trades_makes_a_classifier_harder_to_fool(trained):
    plain, (images, labels) = network(), blobs()
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
    for _ in range(300):
        optimizer.zero_grad()
        F.cross_entropy(plain(images), labels).backward()
        optimizer.step()
    assert robust_accuracy(trained) > robust_accuracy(plain)


def tuned(start: nn.Module, **settings) -> nn.Module:
    net = copy.deepcopy(start)
    options = {"classes": 4, "epochs": 2, "lr": 0.05, "share": 0.3, "margin": 0.1, "weighting": "spectral", "generator": generator(1)}
    tune_worst_class(net, *blobs(), ADVERSARY, **{**options, **settings})
    return net


def weights(net: nn.Module) -> torch.Tensor:
    return torch.cat([each.detach().flatten() for each in net.parameters()])


def test_without_a_share_of_the_regulariser_it_is_trades(trained):
    plain = copy.deepcopy(trained)
    train_trades(plain, *blobs(), ADVERSARY, epochs=2, lr=0.05, generator=generator(1))
    torch.testing.assert_close(weights(tuned(trained, share=0.0, weighting="uniform")), weights(plain))


def test_the_direction_counts_and_is_repeatable(trained):
    spectral = weights(tuned(trained))
    assert torch.equal(spectral, weights(tuned(trained)))
    assert not torch.allclose(spectral, weights(tuned(trained, weighting="uniform")), atol=1e-4)


def test_data_that_nothing_confuses_leave_the_term_out(trained, monkeypatch):
    monkeypatch.setattr(robust_training, "spectral_weights", lambda matrix: None)
    assert torch.isfinite(weights(tuned(trained))).all()


def test_fine_tuning_turns_to_the_pair_that_is_confused(trained):
    """Its weights are those of the two classes near each other."""
    images, labels = blobs()
    found = robust_training.spectral_weights(
        robust_training.confusion_matrix(attacked_logits(trained, images, labels, ADVERSARY, generator()).argmax(dim=1), labels, 4)
    )
    assert found is not None and divmod(int(found.argmax()), 4) in ((2, 3), (3, 2))


@pytest.mark.parametrize("method", ["csr", "trades"])
def test_a_bundle_says_the_same_after_saving_and_tells_the_weak_classes(method, tmp_path):
    adversary = {"steps": 2, "eps": 0.03, "step": 0.01}
    config = CSRConfig(side=16, width=4, epochs=12, tune_epochs=2, adversary=AdversaryConfig(**adversary))
    data, train = coloured_parts(each=10), csr.train if method == "csr" else csr.train_baseline
    bundle = train(data, config, tmp_path / "run", seed=0, say=lambda text: None)
    assert bundle.method == method
    bundle.save(tmp_path / "bundle")
    loaded = csr.load(Bundle.load(tmp_path / "bundle"))
    assert set(loaded.class_robustness) == set(CLASSES) and all(0 <= rate <= 1 for rate in loaded.class_robustness.values())
    prediction = loaded.predict(data.frames[:4])
    prediction.check(4, CLASSES)
    assert (prediction.scores == csr.load(bundle).predict(data.frames[:4]).scores).all()
    figures = csr.evaluate_robust(loaded, data)
    assert figures["robust_accuracy"] <= figures["accuracy"] + 1e-9
    assert figures["robust_accuracy_worst_class"] <= figures["robust_accuracy_worst_two"] <= figures["robust_accuracy_mean_class"]
