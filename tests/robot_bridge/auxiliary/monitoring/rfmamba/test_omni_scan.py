"""The six ways through a window."""

from __future__ import annotations

import pytest
import torch

from robot_bridge.auxiliary.monitoring.rfmamba.omni_scan import OmniScan, omni_ways

GRID = (4, 3, 6)


@pytest.mark.parametrize("grid", [GRID, (5, 4, 4), (3, 3, 5), (1, 2, 3), (2, 1, 1)])
@pytest.mark.parametrize("place", [0, -1])
def test_every_axis_reaches_every_token_by_steps_to_neighbours(grid: tuple[int, int, int], place: int) -> None:
    current = range(grid[0])[place]
    ways = omni_ways(grid, current)
    assert set(ways) == {"time", "antenna", "frequency"}
    for axis, paths in ways.items():
        assert set(torch.cat([path.flatten() for path in paths]).tolist()) == set(range(grid[0] * grid[1] * grid[2])), axis
        for sequence in (sequence for path in paths for sequence in path):
            places = torch.stack(torch.unravel_index(sequence, grid), dim=1)
            assert (places.diff(dim=0).abs().sum(dim=1) == 1).all(), axis  # a snake: no jumps


def test_scans_in_time_meet_at_the_current_frame() -> None:
    plane = GRID[1] * GRID[2]
    for current in range(GRID[0]):
        forward, backward = (sequence for path in omni_ways(GRID, current)["time"] for sequence in path)
        assert forward[0] == 0 and backward[0] == GRID[0] * plane - 1
        assert set((forward // plane).tolist()) == set(range(current + 1))
        assert set((backward // plane).tolist()) == set(range(current, GRID[0]))


def test_scans_of_a_plane_start_at_both_corners_and_meet_in_the_middle() -> None:
    ways = omni_ways(GRID, 3)
    for axis, along in (("antenna", 2), ("frequency", 1)):
        (path,) = ways[axis]
        first, last = path[0], path[GRID[0]]  # of frame 0: forward, mirrored
        assert (first[0], last[0]) == (0, GRID[0] * GRID[1] * GRID[2] - 1) and len(first) == GRID[1] * GRID[2] // 2 + 1
        places = torch.stack(torch.unravel_index(first, GRID), dim=1)
        assert places[1, along] == places[0, along] and places[:, 0].unique().numel() == 1


def test_a_window_mirrored_in_all_axes_has_the_mirrored_output() -> None:
    torch.manual_seed(0)
    for current in range(GRID[0]):
        scan = OmniScan(GRID, 5, 3, current=current)
        mirror = OmniScan(GRID, 5, 3, current=GRID[0] - 1 - current)
        mirror.load_state_dict(scan.state_dict())
        tokens = torch.randn(GRID[0] * GRID[1] * GRID[2], 2, 5)
        torch.testing.assert_close(mirror(tokens.flip(0)).flip(0), scan(tokens), atol=1e-5, rtol=1e-5)


def test_the_raster_scan_has_a_direction_and_no_axes() -> None:
    torch.manual_seed(0)
    raster = OmniScan(GRID, 5, 3, current=3, scan="raster")
    tokens = torch.randn(GRID[0] * GRID[1] * GRID[2], 1, 5)
    assert set(raster.axes) == {"raster"}
    assert not torch.allclose(raster(tokens.flip(0)).flip(0), raster(tokens), atol=1e-3)
    changed = tokens.clone()
    changed[40] += 1.0
    moved = (raster(changed) - raster(tokens)).abs().sum(dim=(1, 2)) > 1e-7
    assert not moved[:40].any() and moved[41:].any()


def test_what_the_current_frame_sees() -> None:
    """Centred, past and future; causal, all of the past."""
    torch.manual_seed(0)
    plane = GRID[1] * GRID[2]
    for current in (1, 3):
        scan = OmniScan(GRID, 4, 2, current=current)
        tokens = torch.randn(GRID[0] * plane, 1, 4, requires_grad=True)
        scan(tokens)[current * plane : (current + 1) * plane].sum().backward()
        seen = tokens.grad.abs().sum(dim=(1, 2)).unflatten(0, (GRID[0], plane)).sum(dim=1) > 0
        assert seen.all()


def test_a_current_frame_outside_the_window_is_refused() -> None:
    with pytest.raises(ValueError, match=r"current frame 4, valid: 0\.\.3"):
        omni_ways(GRID, 4)
