"""Setting up the servos of an arm: who answers, with what model and calibration; then they hold where they stand."""

from __future__ import annotations

from collections.abc import Mapping

from robot_bridge.arms.base import ArmLost
from robot_bridge.arms.servo_bus import ServoBus
from robot_bridge.arms.servo_calibration import Calibration
from robot_bridge.arms.servo_family import ServoFamily
from robot_bridge.arms.servo_model import ServoArmModel, ServoJoint
from sim_envs.servo_bus.tables import ServoModel, servo_models

_WATCHDOG = 25  # x 20 ms


def set_up(bus: ServoBus, family: ServoFamily, model: ServoArmModel, calibration: Calibration) -> list[int]:
    """Makes the servos ready and turns their torque on at the position they have.

    Returns:
        The encoders' ticks in the order of the model's joints.

    Raises:
        ArmLost: see `ServoArm.connect`.
    """
    identify(bus, model)
    for joint in model.joints:
        _check(bus, family, joint, calibration)
    for joint in model.joints:
        configure(bus, family, joint)
    return [_hold(bus, family, joint) for joint in model.joints]


def identify(bus: ServoBus, model: ServoArmModel) -> None:
    """Finds every servo of the arm.

    Raises:
        ArmLost: one does not answer (names those that do), or is of another model.
    """
    found = bus.scan(model.servos)
    missing = sorted(set(model.servos) - set(found))
    if missing:
        others = bus.scan((id for id in range(1, 21) if id not in model.servos), tries=1)
        answered = sorted(found | others)
        raise ArmLost(f"{bus.port}: no answer of id {missing}, answered: {answered or 'none'}; check power, cables, ids and baud rate")
    names = {servo.number: servo.name for servo in servo_models().values() if servo.protocol == model.protocol}
    wrong = {id: names.get(found[id], f"model number {found[id]}") for id, name in model.servos.items() if names.get(found[id]) != name}
    if wrong:
        raise ArmLost(f"{bus.port}: found {wrong}, valid for {model.name}: { {id: model.servos[id] for id in wrong} }")


def write_registers(bus: ServoBus, family: ServoFamily, id: int, servo: ServoModel, values: Mapping[str, int]) -> None:
    """Writes what differs; only for the EEPROM torque goes off: an arm that is set up anew is not dropped, nor its EEPROM worn."""
    different = {name: value for name, value in values.items() if bus.read(id, servo.registers[name]) != value}
    eeprom = any(servo.registers[name].address < servo.ram_from for name in different)
    if eeprom:
        bus.write(id, servo.registers["Torque_Enable"], 0)
    if eeprom and family.lock:
        bus.write(id, servo.registers[family.lock], 0)
    for name, value in different.items():
        bus.write(id, servo.registers[name], value)
    if eeprom and family.lock:
        bus.write(id, servo.registers[family.lock], 1)


def _check(bus: ServoBus, family: ServoFamily, joint: ServoJoint, calibration: Calibration) -> None:
    registers = joint.servo.registers
    bits = bus.read(joint.id, registers[family.error_register or "Status"])
    if bits:
        raise ArmLost(f"servo {joint.id} ({joint.name}): {family.meaning(bits)}; relieve the arm and switch its power off and on")
    offset, expected = bus.read(joint.id, registers["Homing_Offset"]), calibration.joints[joint.name].register_offset
    if offset != expected:
        raise ArmLost(
            f"servo {joint.id} ({joint.name}): Homing_Offset is {offset}, its calibration says {expected}: it is of another arm or another "
            "day; run `armstack calibrate`"
        )


def configure(bus: ServoBus, family: ServoFamily, joint: ServoJoint) -> None:
    """Puts a joint's servos into the mode that the driver needs."""
    registers = joint.servo.registers
    if family.watchdog:
        bus.write(joint.id, registers[family.watchdog], 0)  # also clears one that tripped
    mode = {"Operating_Mode": family.position_mode}
    write_registers(bus, family, joint.id, joint.servo, {**mode, **joint.registers})
    if joint.shadow:  # after the first servo, whose instructions it obeys once its Secondary_ID is set
        write_registers(bus, family, joint.shadow.id, joint.servo, {**mode, **joint.shadow.registers})


def _hold(bus: ServoBus, family: ServoFamily, joint: ServoJoint) -> int:
    registers = joint.servo.registers
    ticks = bus.read(joint.id, registers["Present_Position"])
    bus.write(joint.id, registers["Goal_Position"], ticks)
    bus.write(joint.id, registers["Torque_Enable"], 1)
    if family.watchdog:
        bus.write(joint.id, registers[family.watchdog], _WATCHDOG)
    return ticks
