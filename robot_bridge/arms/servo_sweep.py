"""Recording a sweep from the servos, and storing in them what they keep of a calibration themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from robot_bridge.arms.base import ArmLost
from robot_bridge.arms.calibration_file import CalibrationError
from robot_bridge.arms.calibration_sweep import Sweep
from robot_bridge.arms.dynamixel import DYNAMIXEL, DynamixelBus
from robot_bridge.arms.feetech import FEETECH, FeetechBus
from robot_bridge.arms.servo_bus import ServoBus
from robot_bridge.arms.servo_calibration import Calibration
from robot_bridge.arms.servo_family import ServoFamily
from robot_bridge.arms.servo_model import ServoArmModel
from robot_bridge.arms.servo_setup import configure, identify, write_registers
from sim_envs.servo_bus.tables import TICKS

_TIMEOUT_S = 0.02


@contextmanager
def _opened(port: str, model: ServoArmModel) -> Iterator[tuple[ServoBus, ServoFamily]]:
    kind, family = {"dynamixel": (DynamixelBus, DYNAMIXEL), "feetech": (FeetechBus, FEETECH)}[model.protocol]
    bus = kind(port, model.baudrate, _TIMEOUT_S)
    try:
        bus.open()
        identify(bus, model)
        yield bus, family
    except ArmLost as error:
        raise CalibrationError(str(error)) from error
    finally:
        bus.close()


def record_sweep(port: str, model: ServoArmModel, hold: Callable[[], None], ready: Callable[[], None], done: Callable[[], bool]) -> Sweep:
    """Switches torque off and reads the encoders until `done`.

    Args:
        port: serial port.
        model: the arm.
        hold: called once every servo answers, before torque goes off.
        ready: returns when the arm is in its zero pose.
        done: asked after every reading; may wait for a moment.

    Raises:
        CalibrationError: the port or a servo does not answer.
    """
    with _opened(port, model) as (bus, family):
        hold()
        for joint in model.joints:
            bus.write(joint.id, joint.servo.registers["Torque_Enable"], 0)
            configure(bus, family, joint)
        offsets = {joint.name: bus.read(joint.id, joint.servo.registers["Homing_Offset"]) for joint in model.joints}
        ready()
        ids = [joint.id for joint in model.joints]
        register = model.joints[0].servo.registers["Present_Position"]
        positions = {joint.name: [bus.read(joint.id, register)] for joint in model.joints}
        while True:
            finished = done()
            replies = bus.sync_read(ids, register.address, register.size)
            for joint in model.joints:
                if joint.id in replies:
                    positions[joint.name].append(register.decode(replies[joint.id].data))
            if finished:
                break
    if model.protocol == "feetech":  # these know one turn, yet with a Homing_Offset some show more
        positions = {name: [shown % TICKS for shown in ticks] for name, ticks in positions.items()}
    return Sweep(arm=model.name, positions=positions, register_offsets=offsets)


def store_offsets(port: str, model: ServoArmModel, calibration: Calibration) -> None:
    """Writes each servo's own part of the calibration, its Homing_Offset; torque goes off where it changes.

    Raises:
        CalibrationError: the port or a servo does not answer.
    """
    with _opened(port, model) as (bus, family):
        for joint in model.joints:
            offset = calibration.joints[joint.name].register_offset
            write_registers(bus, family, joint.id, joint.servo, {"Homing_Offset": offset})
