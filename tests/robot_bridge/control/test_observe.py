"""From channels to the observation a contract asks for."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from rl_core.contract import Channel
from robot_bridge.control.names import JointNameError
from robot_bridge.control.observe import ObservationAssembler, ObservationError
from sim_envs.arm.observation import observation, world_contract
from sim_envs.arm.world import ArmWorld

MS = 1_000_000


def filled(stamp_ns: int = 0) -> tuple[ObservationAssembler, dict[str, np.ndarray]]:
    world = ArmWorld("lift")
    world.reset(3)
    values = observation(world.state(), "lift")
    assembler = ObservationAssembler(world_contract("lift"))
    for name in assembler.channels:
        assembler.put(name, values[name], stamp_ns)
    return assembler, values


def test_the_row_is_the_worlds_observation_and_derived_channels_follow() -> None:
    assembler, values = filled()
    assert "gripper_to_cube_pos" not in assembler.channels
    row, stamp_ns = assembler.assemble()
    assert stamp_ns == 0 and row.batch_size == torch.Size([1])
    assert list(row.keys()) == [channel.name for channel in assembler.contract.observation]
    for name, value in values.items():
        assert row[name].dtype == torch.float32
        assert (row[name][0].numpy() == value.astype(np.float32)).all(), name


def test_joint_order_of_a_message_is_by_name_never_by_index() -> None:
    assembler, values = filled()
    names = assembler.contract.channel("joint_pos").names
    backwards = (*reversed(names), "gripper")  # a driver may order as it likes and send more
    assembler.put("joint_pos", np.append(values["joint_pos"][::-1], 0.04), 1, backwards)
    assert assembler.assemble()[0]["joint_pos"][0].numpy() == pytest.approx(values["joint_pos"], abs=1e-6)
    with pytest.raises(JointNameError, match="missing"):
        assembler.put("joint_pos", np.zeros(6), 2, names[1:])
    with pytest.raises(JointNameError, match="duplicate"):
        assembler.put("joint_pos", np.zeros(8), 2, (*names, names[0]))


def test_what_was_never_received_or_is_too_old_is_named() -> None:
    assembler = ObservationAssembler(world_contract("lift"))
    assert any("cube_pos: nothing received" in problem for problem in assembler.missing(0))
    with pytest.raises(ObservationError, match="cube_pos"):
        assembler.assemble()
    assembler, values = filled()
    assert assembler.ready(200 * MS)
    assert not assembler.ready(201 * MS)
    for name in assembler.channels[1:]:
        assembler.put(name, values[name], 150 * MS)
    assert assembler.missing(201 * MS) == [f"{assembler.channels[0]}: 0.201 s old, valid: 0.2 s"]
    assert assembler.assemble()[1] == 0  # the oldest of the newest


def test_a_pose_that_stands_still_stays_ready() -> None:
    """Two equal observations are two observations: nothing is dropped for looking alike."""
    assembler, values = filled()
    for k in range(1, 100):
        for name in assembler.channels:
            assembler.put(name, values[name], 50 * k * MS)
        assert assembler.ready(50 * k * MS + 20 * MS) and assembler.assemble()[1] == 50 * k * MS


def test_samples_that_do_not_fit_are_refused() -> None:
    assembler, _ = filled()
    for channel, bad in (("eef_pos", np.zeros(2)), ("eef_pos", np.full(3, np.nan)), ("eef_quat", np.zeros(4)), ("eef_quat", np.ones(4))):
        with pytest.raises(ObservationError, match=channel):
            assembler.put(channel, bad, 1)
    assembler.put("somebody_elses_channel", np.zeros(3), 1)
    assembler.put("eef_pos", np.ones(3), -5)  # late news are no news
    assert assembler.assemble()[0]["eef_pos"].sum() != 3


def _with_history(channel: str, history: int) -> ObservationAssembler:
    contract = world_contract("lift")
    past = dataclasses.replace(contract.channel(channel), history=history)
    return ObservationAssembler(dataclasses.replace(contract.select(["eef_quat"]), observation=(past,)))


def test_history_is_filled_up_with_the_oldest_sample_then_slides() -> None:
    assembler = _with_history("eef_pos", 3)
    seen = []
    for k in range(5):
        for _ in range(2):  # what is said twice is one sample
            assembler.put("eef_pos", np.full(3, float(k)), 50 * k * MS)
        seen.append(assembler.assemble()[0]["eef_pos"][0, :, 0].tolist())
    assert seen == [[0, 0, 0], [0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4]]
    assembler.clear()
    assert not assembler.ready(4)


@pytest.mark.parametrize("every_ms", [10, 20, 33])
def test_a_history_is_a_policy_period_apart_however_fast_the_channel_comes(every_ms: int) -> None:
    """Five samples of a 100 Hz channel are not five policy periods: in training the policy saw 20 Hz."""
    assembler = _with_history("eef_pos", 5)
    for stamp_ms in range(0, 2000, every_ms):
        assembler.put("eef_pos", np.full(3, float(stamp_ms)), stamp_ms * MS)
    seen = assembler.assemble()[0]["eef_pos"][0, :, 0].numpy()
    newest = (1999 // every_ms) * every_ms
    assert np.abs(seen - (newest - np.array([200, 150, 100, 50, 0]))).max() <= every_ms / 2
    assert len(assembler._samples["eef_pos"]) <= 200 / every_ms + 2  # what nobody needs any more is let go


def test_a_derived_channel_has_its_own_history_also_where_its_sources_are_not_needed() -> None:
    assembler = _with_history("gripper_to_cube_pos", 3)
    for k in range(4):
        assembler.put("cube_pos", np.full(3, 10.0 * k), 50 * k * MS)
        assembler.put("eef_pos", np.full(3, float(k)), 50 * k * MS)
    assert assembler.assemble()[0]["gripper_to_cube_pos"][0, :, 0].tolist() == [9, 18, 27]


def test_images_stay_bytes() -> None:
    contract = dataclasses.replace(
        world_contract("lift"),
        observation=(Channel(name="front", kind="image", shape=(2, 3, 3), encoding="rgb8", row_order="top_down"),),
    )
    assembler = ObservationAssembler(contract)
    red = np.zeros((2, 3, 3), np.uint8)
    red[..., 0] = 255
    assembler.put("front", red, 0)
    image = assembler.assemble()[0]["front"]
    assert image.dtype == torch.uint8 and image.shape == (1, 2, 3, 3) and image[0, 0, 0].tolist() == [255, 0, 0]
