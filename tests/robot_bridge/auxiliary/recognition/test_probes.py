"""Probes on layers, and the two checks that the paper's claim is measured by: digits with noise, and a label behind a spurious cue."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from robot_bridge.auxiliary.recognition.errors import RecognitionError
from robot_bridge.auxiliary.recognition.ilc import best_probe, candidates
from robot_bridge.auxiliary.recognition.probes import ProbeConfig, _Grid, fit_probes


def trained_mlp(
    inputs: torch.Tensor, labels: torch.Tensor, widths: tuple[int, ...], classes: int, seed: int, epochs: int = 40
) -> nn.Sequential:
    """A classifier trained in the ordinary way until it fits."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        sizes = (inputs.shape[1], *widths)
        layers = [layer for a, b in zip(sizes[:-1], sizes[1:], strict=True) for layer in (nn.Linear(a, b), nn.ReLU())]
        net = nn.Sequential(*layers, nn.Linear(sizes[-1], classes))
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
        for _ in range(epochs):
            for batch in torch.randperm(len(labels)).split(64):
                optimizer.zero_grad()
                F.cross_entropy(net(inputs[batch]), labels[batch]).backward()
                optimizer.step()
    return net


@torch.no_grad()
def hidden(net: nn.Sequential, inputs: torch.Tensor) -> list[torch.Tensor]:
    """Post-activation outputs of all hidden layers."""
    found = []
    for layer in net[:-1]:
        inputs = layer(inputs)
        if isinstance(layer, nn.ReLU):
            found.append(inputs)
    return found


def accuracy(probe, layers, labels) -> float:
    return float((probe.logits(layers[probe.layer]).argmax(dim=1) == labels).float().mean())


def cued(count: int, agreement: float, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Inputs (n, 22), labels (n,) and groups (n,): the label is the parity of two signs, a cue agrees with it in `agreement` of all."""
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randint(2, (count, 2), generator=generator)
    labels = signs.sum(dim=1) % 2
    cue = torch.where(torch.rand(count, generator=generator) < agreement, labels, 1 - labels)
    core = (2 * signs - 1).float() + 0.3 * torch.randn(count, 2, generator=generator)
    colour = 2.0 * (2 * cue[:, None] - 1).float() + 0.3 * torch.randn(count, 4, generator=generator)
    return torch.cat((core, colour, torch.randn(count, 16, generator=generator)), dim=1), labels, 2 * labels + cue


def worst_group(probe, layers, labels, groups) -> float:
    right = (probe.logits(layers[probe.layer]).argmax(dim=1) == labels).float()
    return min(float(right[groups == group].mean()) for group in groups.unique())


def test_few_shot_probes_on_an_early_layer_see_behind_a_spurious_cue():
    """The last layer has kept the cue alone, so that no re-training of it helps; the first still has both (test set: no correlation)."""
    early, last = [], []
    config = ProbeConfig(rates=(1e-2,), strengths=(0.0, 1e-3), epochs=60, batch_size=64)
    for seed in range(2):
        inputs, labels, _ = cued(2000, 0.97, seed)
        net = trained_mlp(inputs, labels, (128, 64, 32), 2, seed, epochs=8)
        few, few_labels, _ = cued(160, 0.5, 100 + seed)
        held, held_labels, _ = cued(160, 0.5, 200 + seed)
        test, test_labels, groups = cued(1500, 0.5, 300 + seed)
        probes = fit_probes(hidden(net, few), few_labels, hidden(net, held), held_labels, config, classes=2, seed=seed)
        layers = hidden(net, test)
        early.append(worst_group(best_probe(probes, candidates(3)), layers, test_labels, groups))
        last.append(worst_group(probes[2], layers, test_labels, groups))
    assert np.mean(early) > np.mean(last) + 0.05


def test_zero_shot_probes_hold_under_noise_on_digits():
    datasets = pytest.importorskip("sklearn.datasets")
    digits = datasets.load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    inputs = torch.tensor(digits.data[order] / 16, dtype=torch.float32)
    labels = torch.tensor(digits.target[order])
    noisy = inputs + 0.35 * torch.randn(inputs.shape, generator=torch.Generator().manual_seed(0))
    best, last, head = [], [], []
    for seed in range(2):
        net = trained_mlp(inputs[:900], labels[:900], (256, 128, 64, 32), 10, seed)
        config = ProbeConfig(rates=(1e-2,), strengths=(0.0, 1e-3), epochs=15)
        held, test = hidden(net, noisy[900:1200]), hidden(net, noisy[1200:])
        probes = fit_probes(hidden(net, inputs[:900]), labels[:900], held, labels[900:1200], config, classes=10, seed=seed)
        best.append(accuracy(best_probe(probes, candidates(4)), test, labels[1200:]))
        last.append(accuracy(probes[3], test, labels[1200:]))
        head.append(float((net(noisy[1200:]).argmax(dim=1) == labels[1200:]).float().mean()))
    assert np.mean(best) > np.mean(last) + 0.01 and np.mean(best) > np.mean(head) + 0.01


def features(count: int, seed: int) -> tuple[list[torch.Tensor], torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 3
    clear = F.one_hot(labels, 3).float() + 0.1 * torch.randn(count, 3, generator=generator)
    return [torch.randn(count, 5, generator=generator), 1000 * clear + 5000, torch.randn(count, 4, generator=generator)], labels


def test_probes_of_a_sum_of_losses_are_those_trained_alone():
    layers, labels = features(60, 0)
    held, held_labels = features(30, 1)
    config = ProbeConfig(rates=(1e-2,), strengths=(1e-3,), epochs=5, batch_size=16)
    together = fit_probes(layers, labels, held, held_labels, ProbeConfig(rates=(1e-3, 1e-2), strengths=(0.0, 1e-3), epochs=5), classes=3)
    alone = fit_probes(layers[1:2], labels, held[1:2], held_labels, config, classes=3)[0]
    joint = fit_probes(layers, labels, held, held_labels, config, classes=3)[1]
    torch.testing.assert_close(joint.weight, alone.weight)
    assert len(together) == 3 and all(probe.epoch in range(1, 6) for probe in together)


def test_the_layer_is_chosen_on_validation_data_and_features_are_standardised():
    layers, labels = features(120, 0)
    held, held_labels = features(60, 1)
    probes = fit_probes(layers, labels, held, held_labels, ProbeConfig(epochs=20), classes=3)
    chosen = best_probe(probes, candidates(3))
    assert chosen.layer == 1 and chosen.accuracy > 0.95
    assert accuracy(chosen, *features(300, 2)) > 0.95  # whatever the scale of the layer


def test_a_constant_feature_does_no_harm():
    layers, labels = features(60, 0)
    layers[1] = torch.cat((layers[1], torch.full((60, 1), 7.0)), dim=1)
    held = [torch.zeros(3, 5), torch.cat((layers[1][:3, :3], torch.full((3, 1), 7.0)), dim=1), torch.zeros(3, 4)]
    probes = fit_probes(layers, labels, held, labels[:3], ProbeConfig(epochs=2), classes=3)
    assert all(bool(torch.isfinite(probe.logits(layer)).all()) for probe, layer in zip(probes, held, strict=True))


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_a_strong_penalty_shrinks_the_weights(penalty):
    layers, labels = features(60, 0)
    config = ProbeConfig(rates=(1e-2,), penalty=penalty, strengths=(0.0, 0.3))
    grid = _Grid(0, layers[1], layers[1], config, 3)
    for _ in range(200):
        grid.update(torch.arange(60), labels)
    free, held = grid._weights[0].detach().abs().sum(dim=(1, 2))
    assert float(held) < 0.5 * float(free)


def test_the_earlier_of_equal_layers_is_taken():
    layers, labels = features(60, 0)
    probes = fit_probes([layers[1], layers[1]], labels, [layers[1], layers[1]], labels, ProbeConfig(epochs=5), classes=3)
    assert probes[0].accuracy == probes[1].accuracy and best_probe(probes, (0, 1)).layer == 0


def test_features_without_samples_are_refused():
    layers, labels = features(6, 0)
    with pytest.raises(RecognitionError, match="validation features of"):
        fit_probes(layers, labels, [layer[:0] for layer in layers], labels[:0], ProbeConfig(), classes=3)
