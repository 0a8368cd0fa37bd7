"""Models and calibration of servo arms."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from rl_core.errors import ArmstackError
from robot_bridge.arms.calibration_file import CalibrationError
from robot_bridge.arms.calibration_sweep import Sweep
from robot_bridge.arms.feetech import FeetechArm
from robot_bridge.arms.servo_arm import servo_limits
from robot_bridge.arms.servo_calibration import Calibration, calibrate
from robot_bridge.arms.servo_model import ServoModelError, load_servo_arm, servo_arm_names
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.control.limits import LimitsError
from tests.robot_bridge.arms.servo_bench import GRIPPER_WAY, TICKS_PER_RAD, sweep, zeros

TICK = math.tau / 4096


def changed(text: str, folder: Path, **replacements: str) -> Path:
    """A YAML file like so101's with some text changed."""
    for old, new in replacements.items():
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


@pytest.fixture
def so101_text() -> str:
    return (Path(load_servo_arm.__code__.co_filename).parent / "models" / "so101.yaml").read_text()


def test_the_arms_described() -> None:
    assert servo_arm_names() == ("koch_v1_1", "so100", "so101", "vx300s", "wx250")
    assert load_servo_arm("wx250").servos == {1: "xm430-w350", 2: "xm430-w350", 3: "xm430-w350", 4: "xm430-w350", 5: "xm430-w350"} | {
        6: "xm430-w350",
        7: "xl430-w250",
        8: "xl430-w250",
    }


@pytest.mark.parametrize(("arm", "home"), [("wx250", (0.458325, 0.0, 0.36065)), ("vx300s", (0.536494, 0.0, 0.42705))])
def test_the_end_effector_at_zero_is_where_the_maker_says(arm: str, home: tuple[float, ...]) -> None:
    """Column 4 of M in "Kinematic Properties" of the maker's specification pages."""
    kinematics = Kinematics(load_servo_arm(arm).mjcf or "")
    position, quaternion = kinematics.fk(np.zeros(len(kinematics.joint_names)))
    assert position == pytest.approx(home, abs=1e-9) and quaternion == pytest.approx((0, 0, 0, 1), abs=1e-9)


@pytest.mark.parametrize("arm", ["so100", "so101"])
def test_both_sos_lower_their_hand_when_shoulder_elbow_and_wrist_grow(arm: str) -> None:
    model = load_servo_arm(arm)
    kinematics = Kinematics(model.mjcf or "")
    rest, _ = kinematics.fk(np.zeros(5))
    for joint in ("shoulder_lift", "elbow_flex", "wrist_flex"):
        assert kinematics.fk(np.where(np.array(model.names[:-1]) == joint, 0.2, 0.0))[0][2] < rest[2]


@pytest.mark.parametrize("arm", servo_arm_names())
def test_positions_come_back_from_ticks_to_half_a_tick(arm: str) -> None:
    model = load_servo_arm(arm)
    calibration = calibrate(model, sweep(model))
    for joint in model.joints:
        found = calibration.joints[joint.name]
        for position in np.linspace(found.range_min, found.range_max, 57):
            ticks = found.ticks(position)
            for turns in (-1, 0, 1):
                shown = ticks + 4096 * turns
                assert found.turns(shown) == turns
                assert found.position(shown - 4096 * found.turns(shown)) == pytest.approx(position, abs=found.scale * TICK * 0.51)


@pytest.mark.parametrize("arm", servo_arm_names())
def test_a_sweep_across_the_wrap_is_unwrapped(arm: str) -> None:
    model = load_servo_arm(arm)
    recorded = sweep(model)
    across = [name for name, ticks in recorded.positions.items() if max(abs(np.diff(ticks))) > 2048]
    assert across  # the sweep does pass 4095 -> 0
    calibration = calibrate(model, recorded)
    for joint in model.joints:
        found = calibration.joints[joint.name]
        assert found.range_min == pytest.approx(joint.range_min, abs=2 * TICK)
        assert found.range_max == pytest.approx(joint.range_max, abs=2 * TICK)
        if model.protocol == "feetech":  # a servo that cannot be sent across the wrap never has to be
            ends = sorted(found.ticks(position) for position in (found.range_min, found.range_max))
            assert 0 <= ends[0] < ends[1] <= 4095 and sum(ends) / 2 == pytest.approx(2048, abs=1)
            assert -2047 <= found.register_offset <= 2047


@pytest.mark.parametrize("offset", [-2000, -1, 700, 2047])
def test_a_servo_that_was_calibrated_before_is_calibrated_to_the_same(offset: int) -> None:
    """Feetech's encoders show the shaft less Homing_Offset."""
    model = load_servo_arm("so101")
    new = sweep(model)
    shown = {name: [(ticks - offset) % 4096 for ticks in positions] for name, positions in new.positions.items()}
    again = calibrate(model, Sweep(arm="so101", positions=shown, register_offsets=dict.fromkeys(shown, offset)))
    assert again == calibrate(model, new)


def test_a_joint_that_never_moved_is_refused_by_name() -> None:
    model = load_servo_arm("so101")
    recorded = sweep(model)
    still = {**recorded.positions, "elbow_flex": [2048 + i % 3 for i in range(50)]}
    with pytest.raises(CalibrationError, match="^elbow_flex did not move"):
        calibrate(model, Sweep(arm="so101", positions=still, register_offsets={}))


def test_a_joint_that_turned_further_than_its_encoder_can_tell_is_refused_by_name() -> None:
    model = load_servo_arm("so101")
    turned = {**sweep(model).positions, "wrist_roll": [i * 100 % 4096 for i in range(60)]}
    with pytest.raises(CalibrationError, match="^wrist_roll turned by more"):
        calibrate(model, Sweep(arm="so101", positions=turned, register_offsets={}))


def test_a_sweep_without_a_joint_or_of_another_arm_is_refused() -> None:
    model = load_servo_arm("so101")
    recorded = sweep(model)
    missing = {name: ticks for name, ticks in recorded.positions.items() if name != "gripper"}
    with pytest.raises(CalibrationError, match="gripper"):
        calibrate(model, Sweep(arm="so101", positions=missing, register_offsets={}))
    with pytest.raises(CalibrationError, match="'so101'.*'so100'"):
        calibrate(load_servo_arm("so100"), recorded)


@pytest.mark.parametrize("sense", [1, -1])
@pytest.mark.parametrize("arm", servo_arm_names())
def test_pain_5_the_gripper_is_closed_at_0_and_open_at_its_opening_whichever_way_its_servo_turns(arm: str, sense: int) -> None:
    model = load_servo_arm(arm)
    calibration = calibrate(model, sweep(model, sense))
    found, zero = calibration.joints["gripper"], zeros(model)["gripper"]
    gripper = servo_limits(model, calibration).gripper
    assert gripper is not None and gripper.closed == 0.0 and gripper.open == model.joints[-1].range_max
    assert gripper.unit == model.gripper_unit
    for opening, way in ((gripper.closed, 0), (gripper.open, GRIPPER_WAY)):
        shown = zero + sense * way - found.register_offset  # Homing_Offset is 0 on Dynamixel
        assert found.position(shown - 4096 * found.turns(shown)) == pytest.approx(opening, abs=found.scale * TICK)
        assert (found.ticks(opening) - shown) % 4096 in (0, 1, 4095)


def test_a_gripper_that_was_not_closed_at_first_is_refused() -> None:
    model = load_servo_arm("so101")
    half_open = {**sweep(model).positions, "gripper": [2000, 2300, 2600, 2300, 2000, 1700, 1400]}
    with pytest.raises(CalibrationError, match="gripper was not closed"):
        calibrate(model, Sweep(arm="so101", positions=half_open, register_offsets={}))


def test_limits_are_the_calibrated_range_within_the_models() -> None:
    model = load_servo_arm("so101")
    recorded = sweep(model)
    narrow = [round(2048 + angle * TICKS_PER_RAD) for angle in (0, -0.5, 0, 3.0, 0)]
    positions = {**recorded.positions, "shoulder_pan": narrow}
    limits = servo_limits(model, calibrate(model, Sweep(arm="so101", positions=positions, register_offsets={})))
    assert limits.position_min[0] == pytest.approx(-0.5, abs=TICK)  # as swept
    assert limits.position_max[0] == 1.91986  # the model's


def test_files_are_the_same_when_read_back(tmp_path: Path) -> None:
    model = load_servo_arm("vx300s")
    recorded = sweep(model)
    recorded.save(tmp_path / "sweep.json")
    assert Sweep.load(tmp_path / "sweep.json") == recorded
    calibration = calibrate(model, recorded)
    calibration.save(tmp_path / "arm.json")
    assert Calibration.load(tmp_path / "arm.json", model) == calibration


def changed_ticks(**ticks: list[int]) -> Sweep:
    """so101's sweep with the ticks of some joints changed, or of joints added."""
    return Sweep(arm="so101", positions={**sweep(load_servo_arm("so101")).positions, **ticks}, register_offsets={})


def swept(low: float, high: float) -> list[int]:
    """Ticks of a joint that is moved from its zero to both ends, rad."""
    return [round(2048 + end * TICKS_PER_RAD) for end in (0, low, 0, high, 0)]


@pytest.mark.parametrize(
    ("recorded", "named"),
    [
        (changed_ticks(elbow_flex=[2048, 3000, 4096]), r"^elbow_flex: 4096 ticks at 2, valid: 0 \.\. 4095$"),
        (changed_ticks(elbow_flex=[-1, 1000]), r"^elbow_flex: -1 ticks at 0, valid: 0 \.\. 4095$"),
        (changed_ticks(elbow=[2048, 3000], tail=[1, 2]), r"^a sweep of unknown joints: elbow, tail; valid: \['shoulder_pan'"),
        (changed_ticks(elbow_flex=[-1, 1, 0]), "^elbow_flex did not move: ticks are expected, these look like radians$"),
    ],
)
def test_ticks_that_no_encoder_shows_and_joints_that_the_arm_does_not_have_are_refused(recorded: Sweep, named: str) -> None:
    with pytest.raises(CalibrationError, match=named):
        calibrate(load_servo_arm("so101"), recorded)


def test_dynamixels_that_count_on_beyond_a_turn_are_calibrated_and_one_that_jumps_is_refused() -> None:
    model = load_servo_arm("koch_v1_1")
    recorded = sweep(model)
    counted = {name: [round(t) - 8192 for t in np.unwrap(ticks, period=4096)] for name, ticks in recorded.positions.items()}
    found, expected = (calibrate(model, Sweep(arm=model.name, positions=p, register_offsets={})) for p in (counted, recorded.positions))
    assert found == expected
    counted["elbow_flex"][7] = 99999
    with pytest.raises(CalibrationError, match=r"^elbow_flex: from -?\d+ to 99999 ticks between two readings, valid: 0 \.\. 4095, or"):
        calibrate(model, Sweep(arm=model.name, positions=counted, register_offsets={}))


def test_a_homing_offset_that_no_servo_holds_is_refused() -> None:
    recorded = Sweep(arm="so101", positions=changed_ticks().positions, register_offsets={"elbow_flex": 2048})
    with pytest.raises(CalibrationError, match="^register_offsets: elbow_flex: 2048 does not fit"):
        calibrate(load_servo_arm("so101"), recorded)


_OPEN = round(1.919863 * TICKS_PER_RAD)


@pytest.mark.parametrize(
    ("ticks", "warnings"),
    [
        ({}, ()),
        ({"shoulder_pan": swept(-1.6, 1.6)}, ()),
        (
            {"shoulder_pan": swept(-1.0, 1.2)},
            ("shoulder_pan: swept -1.00 .. 1.20 rad, the model's range is -1.92 .. 1.92 rad, 57% of it was swept; the arm will not leave",),
        ),
        (
            {"shoulder_pan": swept(-0.5, 2.9)},
            ("shoulder_pan: swept -0.50 .. 2.90 rad, the model's range is -1.92 .. 1.92 rad, which it goes",),
        ),
        ({"shoulder_pan": swept(-0.3, 2.8)}, ("-1.92 .. 1.92 rad, the zero pose was at an end of the sweep", "which it goes beyond")),
        ({"gripper": [1000, 1000 + round(_OPEN / 1.25)]}, ()),
        (
            {"gripper": [1000, 1000 + round(_OPEN / 1.5)]},
            ("gripper: its servo was moved by 1.28 rad, the model's opening is 1.92 rad: positions are stretched by 1.50;",),
        ),
        ({"gripper": [1000, 1000 + round(_OPEN * 1.5)]}, ("gripper: its servo was moved by 2.88 rad",)),
    ],
)
def test_a_doubtful_sweep_is_warned_about_with_both_numbers(tmp_path: Path, ticks: dict[str, list[int]], warnings: tuple[str, ...]) -> None:
    model = load_servo_arm("so101")
    calibration = calibrate(model, changed_ticks(**{"gripper": [1000, 1000 + _OPEN], **ticks}))
    assert len(calibration.warnings) == len(warnings)
    assert all(text in warning for text, warning in zip(warnings, calibration.warnings, strict=True))
    calibration.save(tmp_path / "arm.json")
    assert json.loads((tmp_path / "arm.json").read_text())["warnings"] == list(calibration.warnings)
    assert Calibration.load(tmp_path / "arm.json", model) == calibration


def test_a_zero_pose_at_an_end_is_warned_about_where_the_models_is_in_the_middle() -> None:
    at_an_end = calibrate(load_servo_arm("so101"), changed_ticks(elbow_flex=swept(-0.1, 3.0))).warnings
    said = "elbow_flex: swept -0.10 .. 3.00 rad, the model's range is -1.69 .. 1.69 rad, the zero pose was at an end of the sweep"
    assert any(said in warning for warning in at_an_end)
    folded = load_servo_arm("so100")  # its shoulder_lift and elbow_flex have their zero at an end
    assert not any("zero pose" in warning for warning in calibrate(folded, sweep(folded)).warnings)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda data: data["joints"].pop("elbow_flex"), "elbow_flex"),
        (lambda data: data.pop("arm"), "arm missing; valid: arm, joints"),
        (lambda data: data.update(arm="so100"), "so100"),
        (lambda data: data.update(joints=[1]), "joints: a list, valid: an object"),
        (lambda data: data.update(warnings="none"), "warnings: 'none', valid: a list"),
        (lambda data: data["joints"]["elbow_flex"].update(id=9), "servo 9 sts3215"),
        (lambda data: data["joints"]["elbow_flex"].update(id="3"), "elbow_flex: id: '3', valid: a whole number$"),
        (
            lambda data: data["joints"]["elbow_flex"].update(homing_offset=math.nan),
            "elbow_flex: homing_offset: nan, valid: a finite number$",
        ),
        (lambda data: data["joints"]["elbow_flex"].update(homing_offset=180.0), "homing_offset: 180.0, valid: within one turn.*radians"),
        (lambda data: data["joints"]["elbow_flex"].update(range_max=97.0), "elbow_flex: range_max: 97.0, valid: within one turn.*radians"),
        (lambda data: data["joints"]["elbow_flex"].update(range_min=-4.0, range_max=4.0), "at most one turn"),
        (lambda data: data["joints"]["gripper"].update(range_max=110.0), "gripper: range_max: 110.0, valid: within one turn"),
        (lambda data: data["joints"]["elbow_flex"].update(direction=0), "elbow_flex: direction: 0, valid: 1 or -1$"),
        (lambda data: data["joints"]["elbow_flex"].update(direction=math.nan), "elbow_flex: direction: nan, valid: 1 or -1$"),
        (lambda data: data["joints"]["elbow_flex"].update(scale=0), "elbow_flex: scale: 0, valid: above 0$"),
        (lambda data: data["joints"]["elbow_flex"].update(scale="1"), "elbow_flex: scale: '1', valid: a finite number$"),
        (lambda data: data["joints"]["elbow_flex"].update(scale=10**400), "elbow_flex: scale: 1000.*, valid: a finite number$"),
        (lambda data: data["joints"]["elbow_flex"].update(register_offset=3000), "elbow_flex: register_offset: 3000 does not fit"),
        (lambda data: data["joints"]["elbow_flex"].update(range_min=4.0, range_max=5.0), "elbow_flex was swept 4.00 .. 5.00"),
        (lambda data: data["joints"]["elbow_flex"].pop("scale"), "elbow_flex: scale missing; valid: "),
        (lambda data: data["joints"]["elbow_flex"].update(offset=1), "elbow_flex: offset unknown; valid: "),
        (lambda data: data["joints"].update(elbow_flex=3), "joints: elbow_flex: 3, valid: an object with"),
    ],
)
def test_a_calibration_that_cannot_be_meant_is_refused(tmp_path: Path, change, named: str) -> None:
    model = load_servo_arm("so101")
    path = tmp_path / "arm.json"
    calibrate(model, sweep(model)).save(path)
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    with pytest.raises(CalibrationError, match=named) as caught:
        Calibration.load(path, model)
    assert str(path) in str(caught.value)


def test_a_range_beyond_the_models_is_logged_when_the_file_is_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = load_servo_arm("so101")
    path = tmp_path / "arm.json"
    calibrate(model, sweep(model)).save(path)
    Calibration.load(path, model)
    assert not caplog.records
    data = json.loads(path.read_text())
    data["joints"]["elbow_flex"].update(range_max=3.1)
    path.write_text(json.dumps(data))
    Calibration.load(path, model)
    said = f"{path}: elbow_flex: swept -1.69 .. 3.10 rad, the model's range is -1.69 .. 1.69 rad, which it goes beyond"
    assert len(caplog.messages) == 1 and said in caplog.messages[0]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"positions": [1, 2]}, "positions: a list, valid: {joint"),
        ({"positions": {"gripper": 3}}, "positions: gripper: 3, valid: a list of ticks"),
        ({"positions": {"gripper": [1000, math.nan]}}, "positions: gripper: nan at 1, valid: whole encoder ticks$"),
        ({"positions": {"gripper": ["1000", 2000]}}, "positions: gripper: '1000' at 0, valid: whole encoder ticks$"),
        ({"positions": {"gripper": [1000, True]}}, "positions: gripper: True at 1"),
        ({"positions": {"gripper": [0.0, -1.57, 1.57]}}, "positions: gripper did not move: ticks are expected, these look like radians$"),
        ({"arm": 3}, "arm: 3, valid: the name"),
        ({"register_offsets": [0]}, "register_offsets: a list"),
        ({"register_offsets": {"gripper": "0"}}, "register_offsets: gripper: '0', valid: whole ticks"),
        ({"register_offsets": {"tail": 0}}, "register_offsets: tail without positions, valid: .'gripper'"),
    ],
)
def test_a_sweep_that_cannot_be_meant_is_refused(tmp_path: Path, change: dict[str, object], named: str) -> None:
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps({"arm": "so101", "positions": {"gripper": [1000, 2000.0]}} | change))
    with pytest.raises(CalibrationError, match=named) as caught:
        Sweep.load(path)
    assert str(path) in str(caught.value)


def test_a_sweep_is_no_calibration_nor_the_other_way_round(tmp_path: Path) -> None:
    model, path = load_servo_arm("so101"), tmp_path / "file.json"
    sweep(model).save(path)
    with pytest.raises(CalibrationError, match="file.json: is a sweep, valid: the calibration that `armstack calibrate --sweep"):
        Calibration.load(path, model)
    calibrate(model, sweep(model)).save(path)
    with pytest.raises(CalibrationError, match="file.json: is a calibration, valid: a sweep"):
        Sweep.load(path)


def test_a_file_that_cannot_be_read_or_written_is_named(tmp_path: Path) -> None:
    model = load_servo_arm("so101")
    with pytest.raises(CalibrationError, match=f"^{tmp_path}: cannot be read: Is a directory"):
        Calibration.load(tmp_path, model)
    with pytest.raises(CalibrationError, match="none/arm.json: cannot be written: No such file"):
        calibrate(model, sweep(model)).save(tmp_path / "none" / "arm.json")
    with pytest.raises(CalibrationError, match="no such file; `armstack calibrate --port PORT --record FILE` keeps a sweep"):
        Sweep.load(tmp_path / "none.json")


@pytest.mark.parametrize(("settings", "named"), [({"port": ""}, "^port ''"), ({"calibration": ""}, "^calibration ''")])
def test_an_arm_without_port_or_calibration_is_refused(settings: dict[str, str], named: str) -> None:
    with pytest.raises(ArmstackError, match=named):
        FeetechArm(**{"model": "so101", "port": "/dev/ttyACM0", "calibration": "so101.json", **settings})


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"arm": "so101"}', '{"arm": "so101", "positions": {"gripper": ["x"]}}'])
def test_a_file_that_is_no_calibration_and_no_sweep_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "arm.json"
    path.write_text(text)
    with pytest.raises(CalibrationError, match="arm.json"):
        Calibration.load(path, load_servo_arm("so101"))
    with pytest.raises(CalibrationError, match="arm.json"):
        Sweep.load(path)
    with pytest.raises(CalibrationError, match="no such file; `armstack calibrate`"):
        Calibration.load(tmp_path / "none.json", load_servo_arm("so101"))


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("servo: sts3215", "servo: sts9999", "sts9999"),
        ("id: 2", "id: 1", "each once"),
        ("P_Coefficient", "P_Coeff", "P_Coeff"),
        ("protocol: feetech", "protocol: dynamixel", "speak"),
        ("[-1.91986, 1.91986]", "[1.0, 1.0]", "range 1.0 .. 1.0"),
        ("{joint: shoulder_pan, xyz", "{joint: shoulder, xyz", "chain"),
        ("protocol: feetech", "protokoll: feetech", "protocol"),
        ("joints:", "joints: [", "mine.yaml"),
    ],
)
def test_a_description_that_cannot_be_meant_is_refused(tmp_path: Path, so101_text: str, old: str, new: str, named: str) -> None:
    path = changed(so101_text, tmp_path, **{old: new})
    with pytest.raises(ServoModelError, match=named) as caught:
        load_servo_arm(path)
    assert "mine.yaml" in str(caught.value)


def test_an_unknown_arm_lists_those_there_are() -> None:
    with pytest.raises(ServoModelError, match="koch_v1_1, so100, so101, vx300s, wx250"):
        load_servo_arm("so102")


@pytest.mark.parametrize("velocity", [".nan", ".inf", "-1", "0"])
def test_pain_14_a_limit_that_would_limit_nothing_is_refused_and_an_integer_is_a_number(
    tmp_path: Path, so101_text: str, velocity: str
) -> None:
    model = load_servo_arm(changed(so101_text, tmp_path, **{"velocity: 3.0": f"velocity: {velocity}"}))
    with pytest.raises(LimitsError, match="velocity"):
        servo_limits(model, calibrate(model, sweep(model)))
    model = load_servo_arm(changed(so101_text, tmp_path, **{"velocity: 3.0": "velocity: 3"}))
    assert servo_limits(model, calibrate(model, sweep(model))).velocity[0] == 3.0
