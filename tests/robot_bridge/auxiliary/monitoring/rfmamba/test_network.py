"""The network, its ablations, and that they learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rl_core.training.config import ConfigError
from robot_bridge.auxiliary.monitoring.rfmamba.branches import FrequencyBranch, SpatioTemporalBranch
from robot_bridge.auxiliary.monitoring.rfmamba.config import NetworkConfig, RFMambaConfig
from robot_bridge.auxiliary.monitoring.rfmamba.echoes import Recordings
from robot_bridge.auxiliary.monitoring.rfmamba.learning import antenna_scale, fit, loss_of, new_network, normalised, outputs_of
from robot_bridge.auxiliary.monitoring.rfmamba.network import RadarNetwork
from robot_bridge.auxiliary.monitoring.rfmamba.omni_scan import OmniScan
from robot_bridge.auxiliary.monitoring.rfmamba.transformer import TransformerTrunk, build_network

SHAPE = (3, 8, 16)


def network(current: int = 2, **settings: Any) -> RadarNetwork:
    torch.manual_seed(0)
    small = {"embedding": 4, "widths": (6, 8), "states": 2, "head": 16, "attention_width": 16}
    return build_network(SHAPE, NetworkConfig().override(**small, **settings), current=current, activities=4)


def echo(*, batch: int = 2, seed: int = 1) -> torch.Tensor:
    return torch.randn(batch, *SHAPE, dtype=torch.complex64, generator=torch.Generator().manual_seed(seed))


def kinds(of: RadarNetwork, kind: type) -> list[Any]:
    return [module for module in of.modules() if isinstance(module, kind)]


def count(of: RadarNetwork) -> int:
    return sum(parameter.numel() for parameter in of.parameters())


def test_what_a_network_gives() -> None:
    found = network()(echo())
    assert found.joints.shape == (2, 14, 3) and found.activity.shape == (2, 4)
    assert found.body is not None and found.body.shape == (2, 8, 16)
    assert len(kinds(network(), FrequencyBranch)) == len(kinds(network(), SpatioTemporalBranch)) == 2


@pytest.mark.parametrize(
    ("settings", "gone", "left"),
    [
        ({"frequency_branch": False, "selection": False}, FrequencyBranch, SpatioTemporalBranch),
        ({"spatiotemporal_branch": False}, SpatioTemporalBranch, FrequencyBranch),
    ],
)
def test_a_branch_that_is_switched_off_is_gone(settings: dict[str, Any], gone: type, left: type) -> None:
    whole, part = network(), network(**settings)
    assert not kinds(part, gone) and len(kinds(part, left)) == 2 and count(part) < count(whole)
    assert part(echo()).joints.shape == (2, 14, 3)


def test_without_w_the_frequency_branch_is_what_w_of_one_gives() -> None:
    whole, part = network(), network(selection=False)
    assert count(whole) - count(part) == sum(2 * branch.selection.numel() // 2 for branch in kinds(whole, FrequencyBranch))
    assert all(branch.selection is None for branch in kinds(part, FrequencyBranch))
    part.load_state_dict({name: value for name, value in whole.state_dict().items() if not name.endswith("selection")})
    torch.testing.assert_close(part(echo()).joints, whole(echo()).joints)  # W starts at 1
    with torch.no_grad():
        kinds(whole, FrequencyBranch)[0].selection[0].zero_()  # the lowest frequency is not listened to
    assert not torch.allclose(part(echo()).joints, whole(echo()).joints, atol=1e-5)


def test_the_raster_scan_is_another_way_through_the_same_tokens() -> None:
    assert {tuple(scan.axes) for scan in kinds(network(), OmniScan)} == {("time", "antenna", "frequency")}
    assert {tuple(scan.axes) for scan in kinds(network(scan="raster"), OmniScan)} == {("raster",)}
    assert network(scan="raster")(echo()).joints.shape == (2, 14, 3)


@pytest.mark.parametrize("kind", ["rfmamba", "transformer"])
def test_the_answer_sees_all_frames_of_the_window(kind: str) -> None:
    for current in (1, 2):
        given, of = echo(batch=1).requires_grad_(), network(current=current, kind=kind)
        of(given).joints.sum().backward()
        assert (given.grad.abs().sum(dim=(0, 2, 3)) > 1e-8).all()
    assert bool(kinds(of, TransformerTrunk)) == (kind == "transformer")


def test_causal_or_centred() -> None:
    causal, centred = RFMambaConfig(frames=12), RFMambaConfig(frames=12, causal=False)
    assert (causal.current, centred.current) == (11, 6)  # T-11..T; T-6..T+5


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"frequency_branch": False, "selection": False, "spatiotemporal_branch": False}, "both off, valid: one of them"),
        ({"frequency_branch": False}, "selection: true without the frequency branch"),
        ({"attention_width": 18}, r"attention_width: 18, valid: a multiple of attention_heads \(4\)"),
        ({"states": 0}, "states: 0, valid: 1 or more"),
        ({"scan": "spiral"}, "'spiral', valid: 'omni', 'raster'"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        NetworkConfig().override(**settings)


def test_patches_have_to_divide_the_window() -> None:
    with pytest.raises(ConfigError, match="tokens of 2 antennas x 3 frequencies after stage 0, valid: such that they divide 8 x 16"):
        network(patch=(2, 3))


def test_presets_are_networks() -> None:
    for config in RFMambaConfig.presets().values():
        build_network((config.frames, 16, 32), config.network, current=config.current, activities=4)
    default = build_network((4, 16, 32), NetworkConfig(), current=3, activities=4)
    rival = build_network((4, 16, 32), NetworkConfig(kind="transformer"), current=3, activities=4)
    assert 80_000 < count(default) < 200_000 and 0.8 < count(rival) / count(default) < 1.25


@pytest.mark.parametrize("kind", ["rfmamba", "transformer", "imaging"])
def test_training_lowers_the_loss(recordings: Recordings, tiny: RFMambaConfig, kind: str) -> None:
    config = tiny.override(network={**tiny.to_dict()["network"], "kind": kind}, epochs=4, lr=6e-3)
    windows = recordings.windows(config.frames, config.current)
    said: list[str] = []
    trained = new_network(windows, config, seed=0)
    before = {name: value.clone() for name, value in trained.state_dict().items()}
    scale = fit(trained, windows, config, seed=0, say=said.append)
    losses = [float(text.split("loss ")[1].split(",")[0]) for text in said]
    assert len(losses) == 4 and losses[-1] < 0.95 * losses[0]
    still = {name for name, value in trained.state_dict().items() if torch.equal(value, before[name])}
    assert still <= {"heads.mean_pose"}  # every parameter learns
    again = new_network(windows, config, seed=0)
    fit(again, windows, config, seed=0)
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in trained.state_dict().items())
    found = outputs_of(trained, windows.echoes, scale, batch_size=7)
    torch.testing.assert_close(found.joints, outputs_of(trained, windows.echoes, scale).joints, atol=1e-5, rtol=1e-5)


def test_the_loss_has_three_parts(recordings: Recordings, tiny: RFMambaConfig) -> None:
    windows = recordings.windows(tiny.frames, tiny.current)
    found = new_network(windows, tiny, seed=0)(normalised(windows.echoes[:8], antenna_scale(windows.echoes)))
    truth = torch.from_numpy(windows.joints[:8]), torch.from_numpy(windows.activity[:8])
    body = torch.from_numpy(windows.body[:8]).flatten(1, 2).float()

    def weighed(pose: float, activity: float, segmentation: float) -> float:
        config = tiny.override(pose_weight=pose, activity_weight=activity, segmentation_weight=segmentation)
        return float(loss_of(found, *truth, body, config).detach())

    parts = weighed(1, 0, 0), weighed(0, 1, 0), weighed(0, 0, 1)
    assert parts[0] == pytest.approx(float((found.joints.detach() - truth[0]).abs().mean())) and min(parts) > 0
    assert weighed(2, 3, 4) == pytest.approx(2 * parts[0] + 3 * parts[1] + 4 * parts[2], rel=1e-5)


def test_echoes_are_normalised_by_antenna_over_the_whole_set() -> None:
    """By window, the strength of an echo, which tells how far it comes from, would be lost."""
    rng = np.random.default_rng(0)
    echoes = (rng.normal(size=(50, 2, 2, 3, 8)) + 1j * rng.normal(size=(50, 2, 2, 3, 8))).astype(np.complex64)
    echoes *= np.arange(1, 7).reshape(2, 3, 1)
    echoes[0] *= 10
    scale = antenna_scale(echoes)
    ready = normalised(echoes, scale)
    assert ready.shape == (50, 2, 6, 8)
    torch.testing.assert_close((ready.abs() ** 2).mean(dim=(0, 1, 3)), torch.ones(6), atol=1e-4, rtol=1e-4)
    assert ready[0].abs().mean() > 5 * ready[1].abs().mean()
    np.testing.assert_allclose(np.angle(ready.numpy()), np.angle(echoes.reshape(50, 2, 6, 8)), atol=1e-4)
