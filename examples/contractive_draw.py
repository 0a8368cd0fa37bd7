"""The arm draws what a person drew (LASA's handwriting), is pushed on its way, and comes back: a contractive policy under its certificate.

python examples/contractive_draw.py                                   # trains, draws over ROS 2, writes runs/draw/report.html
python examples/contractive_draw.py --arm franka --host 172.16.0.2    # trains for where that arm's hand is; then start the launch file
armstack launch contractive_draw arm:=franka host:=172.16.0.2 bundle:=runs/draw/train/bundle
"""

from __future__ import annotations

from rl_core.example import running, take_interrupts

if __name__ == "__main__":
    take_interrupts()  # what follows takes seconds to import

from pathlib import Path
from typing import Any

import numpy as np
import tyro

from rl_core.data.formats.bag import next_folder
from rl_core.training.run import train
from robot_bridge.drawing import TASK, check_reach, drawing, hand_of, stroke

HORIZON = 400  # periods; a motion that follows the arm takes longer than the stroke


def learn(out: Path, path: np.ndarray, quaternion: np.ndarray, updates: int) -> Path:
    """Trains on one drawing; returns the bundle. `jitter` is also how far from the stroke the certificate reaches, in units of its size."""
    settings = {"jitter": 0.4, "push_copies": 6, "lag": 1, "lr_decay_steps": updates}
    result = train(
        "contractive", drawing(path, quaternion), out / "train", preset="cpu", overrides=settings, trainer={"updates": updates}, resume=True
    )
    if result.bundle is None:
        raise SystemExit(result.exit_code)
    return result.bundle


def draw(out: Path, bundle: Path, path: np.ndarray, push: dict[str, Any], shape: str) -> Path:
    """Draws twice over ROS 2, pushed and undisturbed; returns the report."""
    from robot_bridge.bag_video import write_bag_video
    from robot_bridge.motion_report import draw_drawing, write_drawing_report
    from robot_bridge.motion_trace import read_motions
    from robot_bridge.pushed_motion import run_pushes
    from sim_envs.arm.rendering import RenderingUnavailable

    bag = next_folder(out / "bag")
    arguments = {"bundle": str(bundle), "task": TASK, "sim_mode": "lockstep", "horizon": str(HORIZON)}
    run_pushes(out / "bag", arguments, [(0, push), (0, None)], say=print)
    pushed, undisturbed = read_motions(bag)
    draw_drawing(out / "drawing.png", pushed, undisturbed, path)
    try:
        video, no_video = write_bag_video(bag, TASK, out / "drawing.mp4", seconds=HORIZON / 20), ""
    except RenderingUnavailable as error:
        video, no_video = None, str(error)
    return write_drawing_report(
        out / "report.html", pushed, undisturbed, path, shape=shape, bundle=bundle, bag=bag, video=video, no_video=no_video
    )


def main(
    shape: str = "Sine",
    out: Path = Path("runs/draw"),
    arm: str = "simulated",
    host: str = "",
    size: float = 0.25,
    seconds: float = 8.0,
    updates: int = 3000,
    push: tuple[float, float, float] = (0.0, 0.0, 0.065),
) -> None:
    """Trains a policy that draws, and lets the simulated arm draw with it.

    Args:
        shape: of LASA's handwriting.
        out: folder of bundle, recording and report.
        arm: driver; for any but the simulated one only the bundle is made.
        host: address of the arm's controller.
        size: of the drawing, m.
        seconds: that the stroke takes.
        updates: of the training.
        push: x, y, z m by which the hand is dragged aside half-way.
    """
    position, quaternion, limits = hand_of(arm, host)
    path = stroke(shape, position, size=size, seconds=seconds)
    check_reach(path, limits)
    bundle = learn(out, path, quaternion, updates)
    print(f"the bundle is {bundle}")
    if arm == "simulated":
        print(f"the report is {draw(out, bundle, path, {'displacement': list(push), 'duration_s': 0.5, 'at_s': seconds / 2}, shape)}")


if __name__ == "__main__":
    with running():
        tyro.cli(main)
