"""A person's stroke as a motion of an arm's hand."""

from __future__ import annotations

import numpy as np
import pytest

from rl_core.data.episode import DatasetError
from rl_core.errors import ArmstackError
from robot_bridge.drawing import check_reach, drawing, drawing_contract, hand_of, stroke

START = np.array([0.45, 0.02, 0.1])


def test_a_stroke_begins_at_the_hand_lies_upright_and_is_as_large_and_long_as_asked_for() -> None:
    path = stroke("Sine", START, size=0.25, seconds=8.0)
    assert path.shape == (161, 3)
    assert path[0] == pytest.approx(START) and np.ptp(path[:, 0]) == 0.0
    assert np.linalg.norm(path - path[-1], axis=1).max() == pytest.approx(0.25)
    assert path[-1, 1] > START[1] + 0.2  # to the right of who faces the robot


def test_demonstrations_of_a_shape_differ() -> None:
    first, second = (stroke("Angle", START, size=0.2, seconds=5.0, demonstration=index) for index in (0, 1))
    assert np.abs(first - second).max() > 1e-3


def test_a_drawing_is_a_demonstration_whose_actions_lead_from_each_pose_to_the_next() -> None:
    position, quaternion, _ = hand_of("simulated")
    path = stroke("Worm", position, size=0.25, seconds=4.0)
    (episode,) = drawing(path, quaternion).episodes
    scale = np.array(drawing_contract().action.scale)
    moved = path[0] + np.cumsum(episode.actions * scale, axis=0)[:, :3]
    assert moved == pytest.approx(path[1:], abs=1e-5)
    assert np.abs(episode.actions).max() <= 1.0 and not episode.actions[:, 3:6].any()
    assert np.linalg.norm(episode.observations["eef_quat"], axis=1) == pytest.approx(1.0)


def test_the_simulated_hand_is_where_an_episode_begins() -> None:
    from sim_envs.arm.world import ArmWorld

    position, quaternion, limits = hand_of("simulated")
    world = ArmWorld("reach")
    hands = []
    for seed in range(8):
        world.reset(seed)
        hands.append(world.state().eef_pos)
    assert np.linalg.norm(np.mean(hands, axis=0) - position) < 0.03
    assert np.linalg.norm(quaternion) == pytest.approx(1.0) and limits.names[-1] == "gripper"


def test_a_drawing_that_leaves_the_arms_workspace_is_refused_with_both_boxes() -> None:
    position, _, limits = hand_of("simulated")
    check_reach(stroke("Sine", position, size=0.25, seconds=4.0), limits)
    with pytest.raises(ArmstackError, match=r"the drawing spans .*valid: inside the arm's workspace.*smaller size"):
        check_reach(stroke("GShape", position, size=0.4, seconds=4.0), limits)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"size": 0.0}, "size 0.0, valid"),
        ({"seconds": 0.1}, "seconds 0.1, valid"),
        ({"demonstration": 9}, "demonstration 9 of Sine, valid: 0..6"),
    ],
)
def test_what_cannot_be_drawn_is_refused(changes: dict[str, float], said: str) -> None:
    with pytest.raises(ArmstackError, match=said):
        stroke("Sine", START, **{"size": 0.2, "seconds": 5.0, **changes})  # type: ignore[arg-type]


def test_an_unknown_shape_lists_the_shapes() -> None:
    with pytest.raises(DatasetError, match="Sine"):
        stroke("Cosine", START, size=0.2, seconds=5.0)
