"""A picture of the workbench's tasks: a film strip each, one frame where a primitive begins and one at the end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sim_envs.arm.env import ArmEnv
from sim_envs.arm.tasks.workbench import CORPUS, TARGETS
from sim_envs.experts import make_tagged_expert

SIZE = 160


def film_strip(task: str, seed: int = 0, size: int = SIZE) -> tuple[list[str], list[NDArray[np.uint8]]]:
    """Captions and pictures (size, size, 3) of a demonstration: where each primitive begins, then the end."""
    env = ArmEnv(task, render_mode="rgb_array", width=size, height=size)
    observation, info = env.reset(seed=seed)
    expert = make_tagged_expert(task, seed)
    captions: list[str] = []
    frames: list[NDArray[np.uint8]] = []
    truncated = False
    while not (truncated or expert.done and info["success"]):
        before, action = expert.primitive, expert.act(observation)
        if expert.primitive != before:
            captions.append(expert.primitive)
            frames.append(_picture(env))
        observation, _, _, truncated, info = env.step(action)
    captions.append("done" if info["success"] else "failed")
    frames.append(_picture(env))
    env.close()
    return captions, frames


def _picture(env: ArmEnv) -> NDArray[np.uint8]:
    picture = env.render()
    assert picture is not None  # it has a render mode
    return picture


def draw_sheet(path: Path) -> None:
    """Writes the picture, PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    strips = {task: film_strip(task.name) for task in (*CORPUS, *TARGETS)}
    columns = max(len(frames) for _, frames in strips.values())
    figure, axes = pyplot.subplots(len(strips), columns, figsize=(1.4 * columns, 1.85 * len(strips)), squeeze=False)
    for row, (task, (captions, frames)) in zip(axes, strips.items(), strict=True):
        for axis in row:
            axis.axis("off")
        for axis, caption, frame in zip(row, captions, frames, strict=False):
            axis.imshow(frame)
            axis.set_title(caption, fontsize=7, pad=2)
        target = "  (target: in no task of the corpus)" if task in TARGETS else ""
        row[0].text(0.0, 1.2, f"{task.name}: {task.instruction}{target}", transform=row[0].transAxes, fontsize=8, weight="bold")
    figure.subplots_adjust(left=0.01, right=0.99, top=0.975, bottom=0.005, wspace=0.04, hspace=0.35)
    figure.savefig(path, dpi=90)
    pyplot.close(figure)
