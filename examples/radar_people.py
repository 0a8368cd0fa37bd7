"""Where a radar's bundle sees people, beside where they are: for each activity the window whose error is the median one.

python examples/radar_people.py --bundle runs/rfmamba/bundle --data data/radar-test --out people.png
"""

from __future__ import annotations

from rl_core.example import running, take_interrupts

if __name__ == "__main__":
    take_interrupts()  # what follows takes seconds to import

from pathlib import Path

import numpy as np
import tyro
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from robot_bridge.auxiliary.bundle_folders import read_bundle
from robot_bridge.auxiliary.monitoring.rfmamba.backprojection import SPEED_OF_LIGHT
from robot_bridge.auxiliary.monitoring.rfmamba.echoes import Windows, read_recordings
from robot_bridge.auxiliary.monitoring.rfmamba.interface import BONES
from robot_bridge.auxiliary.registry import find_method, load_auxiliary
from robot_bridge.output_places import check_picture

VIEWS = {"from the side": (2, "z, m"), "from above": (1, "y, m")}
COLOURS = {"true": "tab:blue", "found": "tab:orange"}
HALF_M = 1.2
"""Of what is shown to each side of the person's middle."""


def main(bundle: Path, data: Path, out: Path) -> None:
    """Draws OUT: a row for each activity, with the echoes by range and the person in two views.

    Args:
        bundle: of `armstack aux train rfmamba`.
        data: recordings of people that it was not trained on, of `armstack aux data rfmamba`.
        out: file of the picture.
    """
    check_picture(out, "--out")
    radar = load_auxiliary(find_method("rfmamba"), read_bundle(bundle, "rfmamba"))
    windows = read_recordings(data).windows(radar.geometry.frames, radar.current)
    radar.geometry.accepts(windows.geometry)
    found = radar.judge(windows.echoes, np.zeros(windows.echoes.shape[2:], np.complex64)).joints.numpy()
    error = np.linalg.norm(found - windows.joints, axis=-1).mean(axis=1)
    figure = Figure(figsize=(11, 2.8 * len(radar.activities)), layout="constrained")
    for row, axes in enumerate(figure.subplots(len(radar.activities), 3, squeeze=False)):
        ours = np.flatnonzero(windows.activity == row)
        if not len(ours):
            continue
        at = ours[np.argsort(error[ours])[len(ours) // 2]]
        wall = ", behind a wall" if windows.behind_wall[at] else ""
        axes[0].imshow(profile(windows, at), aspect="auto", extent=(0, radar_range_m(windows), radar.geometry.frames, 0))
        axes[0].set(title=f"{radar.activities[row]}{wall}", xlabel="range (repeats), m", ylabel="frame")
        for axis, (view, (other, label)) in zip(axes[1:], VIEWS.items(), strict=True):
            for joints, colour in ((windows.joints[at], COLOURS["true"]), (found[at], COLOURS["found"])):
                for bone in BONES:
                    axis.plot(*joints[list(bone)][:, [0, other]].T, color=colour, lw=2)
            middle = windows.joints[at].mean(axis=0)[[0, other]]
            (left, right), (low, high) = ((place - HALF_M, place + HALF_M) for place in middle)
            axis.set(title=f"{view}, {100 * error[at]:.0f} cm off", xlabel="x, m", ylabel=label, aspect="equal")
            axis.set(xlim=(left, right), ylim=(low, high))
    lines = [Line2D([], [], color=colour, lw=2) for colour in COLOURS.values()]
    figure.legend(lines, COLOURS, loc="outside upper right", ncols=2, frameon=False)
    figure.savefig(out, dpi=90)
    print(f"{out}: {len(windows)} windows, joints {100 * error.mean():.1f} cm off in the mean")


def profile(windows: Windows, at: int) -> NDArray[np.float32]:
    """(frames, bins) magnitude of the echo by range, mean over the pairs of antennas."""
    return np.abs(np.fft.ifft(windows.echoes[at], axis=-1)).mean(axis=(1, 2))


def radar_range_m(windows: Windows) -> float:
    """Range after which the bins repeat."""
    frequencies = windows.geometry.frequencies
    return SPEED_OF_LIGHT / (2 * (frequencies[1] - frequencies[0]))


if __name__ == "__main__":
    with running():
        tyro.cli(main)
