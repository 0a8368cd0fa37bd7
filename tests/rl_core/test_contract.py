"""RobotContract: what fits what, and how the errors read."""

from __future__ import annotations

import dataclasses
import json
import logging

import pytest

from rl_core.camera_calibration import CameraCalibration
from rl_core.contract import Action, Channel, ContractError, ContractMismatch, Gripper, RobotContract

QUARTER_TURN = (0.0, 0.0, 0.5**0.5, 0.5**0.5)
CALIBRATION = CameraCalibration(frame="base", position=(0.5, 0.0, 1.0), quaternion=(1.0, 0.0, 0.0, 0.0), matrix=(300.0, 300.0, 3.0, 2.0))
GRIPPER = Gripper(name="gripper", open=0.08, closed=0.0)
CONTRACT = RobotContract(
    robot="panda",
    observation=(
        Channel(name="joint_pos", names=("a", "b"), unit="rad", wraps=("b",)),
        Channel(name="eef_quat", kind="quaternion", frame="base"),
        Channel(name="front_image", kind="image", shape=(4, 6, 3), encoding="rgb8", row_order="top_down", calibration=CALIBRATION),
    ),
    condition=(Channel(name="goal", names=("x", "y", "z"), unit="m", frame="base"),),
    action=Action(
        names=("a", "b", "gripper"), meaning="delta", space="joint", scale=(0.1, 0.1, 1.0), units=("rad", "rad", "m"), gripper=GRIPPER
    ),
)


def with_channel(**changes) -> RobotContract:
    first, *others = CONTRACT.observation
    return dataclasses.replace(CONTRACT, observation=(dataclasses.replace(first, **changes), *others))


def with_action(**changes) -> RobotContract:
    return dataclasses.replace(CONTRACT, action=dataclasses.replace(CONTRACT.action, **changes))


def test_json_gives_an_equal_contract():
    assert RobotContract.from_json(CONTRACT.to_json()) == CONTRACT


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "version 99; this Armstack reads version 1"),
        ({"action": {}}, "wrong or missing field"),
        ({"observation": [{"name": "x", "colour": "red"}]}, "colour"),
    ],
)
def test_json_of_another_version_or_with_other_fields_is_refused(change, message):
    with pytest.raises(ContractError, match=message):
        RobotContract.from_json(json.dumps({**json.loads(CONTRACT.to_json()), **change}))
    with pytest.raises(ContractError, match="not JSON"):
        RobotContract.from_json("{")


def test_more_may_be_offered_than_is_needed():
    need = dataclasses.replace(CONTRACT.select(["eef_quat"]), condition=())
    need.accepts(CONTRACT)
    with pytest.raises(ContractMismatch, match=r"observation.joint_pos: needed, but only \['eef_quat'\] offered"):
        CONTRACT.accepts(need)


@pytest.mark.parametrize(
    ("offered", "difference"),
    [
        (with_channel(unit="deg"), "observation.joint_pos.unit: needs 'rad', offered 'deg'"),
        (with_channel(names=("b", "a")), "observation.joint_pos.names: needs ('a', 'b'), offered ('b', 'a')"),
        (with_channel(frame="world"), "observation.joint_pos.frame: needs '', offered 'world'"),
        (with_action(meaning="absolute"), "action.meaning: needs 'delta', offered 'absolute'"),
        (with_action(period_s=0.02), "action.period_s: needs 0.05, offered 0.02"),
        (with_action(scale=(0.2, 0.1, 1.0)), "action.scale: needs (0.1, 0.1, 1.0), offered (0.2, 0.1, 1.0)"),
        (with_action(gripper=dataclasses.replace(GRIPPER, open=0.0, closed=0.08)), "action.gripper: needs"),
        (dataclasses.replace(CONTRACT, condition=()), "condition.goal: needed, but only [] offered"),
    ],
)
def test_a_mismatch_prints_both_sides_of_each_difference(offered, difference):
    with pytest.raises(ContractMismatch) as caught:
        CONTRACT.accepts(offered, needed_by="policy", offered_by="arm")
    assert difference in str(caught.value) and str(caught.value).startswith("policy does not fit arm:")


def test_all_differences_are_named_at_once():
    offered = dataclasses.replace(with_channel(unit="deg"), action=with_action(meaning="velocity").action)
    with pytest.raises(ContractMismatch) as caught:
        CONTRACT.accepts(offered)
    assert len(caught.value.differences) == 2


@pytest.mark.parametrize(
    ("need", "have", "warned"), [("osc_pose", "joint_position", True), ("osc_pose", "osc_pose", False), ("", "osc_pose", False)]
)
def test_another_controller_is_a_warning(caplog, need, have, warned):
    with caplog.at_level(logging.WARNING):
        with_action(controller=need).accepts(with_action(controller=have))
    assert ("expect less success" in caplog.text) is warned


@pytest.mark.parametrize(
    ("change", "warned"),
    [
        ({"position": (0.5, 0.005, 1.0)}, ""),
        ({"quaternion": (-1.0, 0.0, 0.0, 0.0)}, ""),  # the same rotation
        ({"position": (0.5, 0.03, 1.0)}, "front_image stands 0.030 m and 0.0 degrees from where it was"),
        ({"quaternion": QUARTER_TURN}, "180.0 degrees"),
        ({"frame": "ee"}, "calibrated in frame base, now in ee"),
    ],
)
def test_a_camera_that_looks_from_elsewhere_is_a_warning(caplog, change, warned):
    *others, image = CONTRACT.observation
    moved = dataclasses.replace(image, calibration=dataclasses.replace(CALIBRATION, **change))
    with caplog.at_level(logging.WARNING):
        CONTRACT.accepts(dataclasses.replace(CONTRACT, observation=(*others, moved)))
        CONTRACT.accepts(dataclasses.replace(CONTRACT, observation=(*others, dataclasses.replace(image, calibration=None))))
    assert warned in caplog.text and bool(caplog.text) is bool(warned)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dataclasses.replace(CALIBRATION, frame="world"), "frame 'world', valid: base, ee"),
        (lambda: dataclasses.replace(CALIBRATION, position=(0.0, 1.0)), "position .*valid: 3 finite numbers"),
        (lambda: dataclasses.replace(CALIBRATION, position=("here", 0.0, 1.0)), "position .*valid: 3 numbers"),
        (lambda: dataclasses.replace(CALIBRATION, quaternion=(1.0, 0.0, 0.0, 1.0)), "norm 1.4142"),
        (lambda: dataclasses.replace(CALIBRATION, matrix=(0.0, 300.0, 3.0, 2.0)), "fx, fy"),
        (lambda: with_channel(calibration=CALIBRATION), "belongs to an image"),
        (lambda: Channel(name="", names=("a",)), "needs a name"),
        (lambda: Channel(name="x"), "dimension names are missing"),
        (lambda: Channel(name="x", names=("a", "a")), "repeat"),
        (lambda: Channel(name="x", names=("a",), shape=(2,)), "shape"),
        (lambda: Channel(name="x", names=("a",), history=0), "history 0"),
        (lambda: Channel(name="x", names=("a",), max_age_s=0.0), "max_age_s"),
        (lambda: Channel(name="x", names=("a",), wraps=("b",)), "wraps names"),
        (lambda: Channel(name="q", kind="quaternion", names=("w", "x", "y", "z")), "quaternion's names"),
        (lambda: Channel(name="i", kind="image", shape=(4, 6, 3), encoding="bgr8", row_order="top_down"), "encoding 'bgr8'"),
        (lambda: Channel(name="i", kind="image", shape=(4, 6, 3), encoding="rgb8"), "row_order"),
        (lambda: with_action(scale=(0.1, float("nan"), 1.0)), "scale"),
        (lambda: with_action(period_s=1.0), "period_s 1.0"),
        (lambda: with_action(execute=2), "execute 2"),
        (lambda: with_action(names=("gripper", "a", "b")), "last name must be the gripper"),
        (lambda: Gripper(name="g", open=1.0, closed=1.0), "both 1.0"),
        (lambda: dataclasses.replace(CONTRACT, observation=CONTRACT.observation * 2), "channel names repeat"),
    ],
)
def test_a_contract_that_contradicts_itself_is_refused(make, message):
    with pytest.raises(ContractError, match=message):
        make()


def test_the_flat_observation_is_the_low_dimensional_channels_with_their_history():
    contract = with_channel(history=2)
    assert contract.observation_size == 2 * 2 + 4
    assert contract.observation_names[:4] == ("joint_pos.a", "joint_pos.b", "joint_pos.a", "joint_pos.b")
    with pytest.raises(ContractError, match="no observation channel 'wrist'"):
        contract.select(["wrist"])
