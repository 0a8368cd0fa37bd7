"""Pictures of a two-level policy: subgoals in its videos, and the curriculum of its training."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import av
import numpy as np
import pytest

from rl_core.errors import ArmstackError
from rl_core.pear.config import PEARConfig
from rl_core.pear.learner import PEARLearner
from rl_core.training import video
from rl_core.training.worlds import make_world
from robot_bridge.curriculum_picture import draw_curriculum
from robot_bridge.subgoal_video import ArmDrawer, record_subgoals
from sim_envs.arm.goal_worlds import ArmGoalWorlds
from sim_envs.maze.worlds import MazeWorlds
from tests.robot_bridge.command_line import Cli

ORANGE = np.array((222, 140, 30))


def make_policy(worlds, **overrides):
    config = PEARConfig.preset("cpu").override(hidden=(8,), primitive_steps=3, **overrides)
    return PEARLearner(config, worlds.contract, worlds.goal, seed=1).policy()


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The pictures of the videos written, which are written too."""
    kept, write = [], video.write_mp4
    monkeypatch.setattr(video, "write_mp4", lambda file, pictures, fps: write(file, (kept.append(p) or p for p in pictures), fps))
    monkeypatch.setattr(MazeWorlds, "horizon", 7)
    return kept


def orange(picture: np.ndarray) -> int:
    return int((np.abs(picture.astype(int) - ORANGE).max(-1) < 12).sum())


def test_a_maze_video_shows_every_subgoal_asked_for_so_far(frames: list[np.ndarray], tmp_path: Path) -> None:
    make = partial(make_world, "armstack/Maze-v0", render_mode="rgb_array")
    file = record_subgoals(make_policy(MazeWorlds(1)), make, 0, tmp_path / "maze.mp4")
    with av.open(str(file)) as video:
        assert sum(1 for _ in video.decode(video=0)) == 7
    counts = [orange(picture) for picture in frames]
    assert counts[0] > 0 and counts[3] > counts[2] and counts[6] > counts[5]  # a new one every three steps


def test_a_flat_policys_video_has_no_subgoals(frames: list[np.ndarray], tmp_path: Path) -> None:
    make = partial(make_world, "armstack/Maze-v0", render_mode="rgb_array")
    record_subgoals(make_policy(MazeWorlds(1), variant="flat"), make, 0, tmp_path / "maze.mp4")
    assert len(frames) == 7 and orange(frames[-1]) == 0
    with pytest.raises(ArmstackError, match="render_mode is None"):
        record_subgoals(make_policy(MazeWorlds(1)), partial(make_world, "armstack/Maze-v0"), 0, tmp_path / "maze.mp4")


def test_the_arms_subgoals_lie_where_the_camera_sees_these_points() -> None:
    worlds = ArmGoalWorlds(1)
    try:
        seen, draw = worlds.reset([0]), ArmDrawer(worlds)
        thing = worlds.worlds[0]
        before = worlds.render(0).astype(int)
        joint = thing.model.joint(thing.model.body(worlds.task.thing).jntadr[0])
        thing.data.qpos[joint.qposadr[0] + 1] += 0.08  # to its left
        moved = np.abs(worlds.render(0).astype(int) - before).sum(-1) > 60
        rows, columns = np.nonzero(moved)
        there = seen["achieved_goal"][0, 3:]
        x, y, scale = draw.pixels(there + [0.0, 0.04, 0.0], *moved.shape)
        assert abs(columns.mean() - x) < 4 and abs(rows.mean() - y) < 4 and 100 < scale < 1000
        drawn = draw([np.concatenate([there, there + [0.0, 0.1, 0.1]])])
        assert orange(drawn) > 20 and (drawn != worlds.render(0)).any()
    finally:
        worlds.close()


def test_a_run_without_a_curriculum_gets_no_picture_of_it(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"step": 1, "collect/episodes": 1, "loss/critic": 0.1}) + "\n")
    assert draw_curriculum(tmp_path) is None and not (tmp_path / "curriculum.png").exists()


def test_training_draws_the_curriculum_and_evaluation_the_subgoals(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MazeWorlds, "horizon", 12)
    settings = ("--config.hidden", "8", "--config.demonstrations", "2", "--config.primitive-steps", "4", "--config.batch-size", "64")
    run = cli(
        "train", "pear", "--world", "armstack/Maze-v0", "--preset", "cpu", "--run-dir", str(tmp_path), "--updates", "20", *settings,
        "--eval-episodes", "2", "--eval-every", "10",
    )  # fmt: skip
    assert run.status == 0 and "curriculum.png" in run.err.replace("\n", ""), run.err
    assert (tmp_path / "curriculum.png").read_bytes()[:4] == b"\x89PNG"
    video = tmp_path / "maze.mp4"
    judged = cli("eval", str(tmp_path / "bundle"), "--env", "armstack/Maze-v0", "--episodes", "1", "--video", str(video))
    assert judged.status == 0 and video.stat().st_size > 0, judged.err
