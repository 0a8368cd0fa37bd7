"""The emulated servo bus, spoken to by the makers' own libraries, unmodified, in the order of their examples."""

from __future__ import annotations

import os
import termios
from collections.abc import Iterator
from pathlib import Path

import dynamixel_sdk
import pytest
import scservo_sdk

from sim_envs.servo_bus.bus import EmulatedBus
from sim_envs.servo_bus.faults import Faults
from sim_envs.servo_bus.protocol2 import Protocol2, crc16
from sim_envs.servo_bus.tables import Register, servo_models


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def x_bus(tmp_path: Path, clock: Clock) -> Iterator[EmulatedBus]:
    with EmulatedBus({1: "xl430-w250", 2: "xl330-m288"}, tmp_path / "ttyUSB0", clock=clock) as bus:
        yield bus


@pytest.fixture
def sts_bus(tmp_path: Path, clock: Clock) -> Iterator[EmulatedBus]:
    with EmulatedBus({1: "sts3215", 2: "sts3215"}, tmp_path / "ttyACM0", clock=clock) as bus:
        yield bus


def opened(sdk, bus: EmulatedBus, patience_ms: float = 3000.0):
    """The maker's port; it waits longer than its own 34 ms, which a busy machine can take to run the emulator's thread."""

    class Port(sdk.PortHandler):
        def setPacketTimeout(self, packet_length: int) -> None:
            self.setPacketTimeoutMillis(patience_ms)

    port = Port(bus.port)
    assert port.openPort() and port.setBaudRate(1_000_000)
    port.ser.timeout = 0.01  # waits for bytes instead of asking all the time
    return port


def test_the_dynamixel_examples_read_and_write(x_bus: EmulatedBus, clock: Clock) -> None:
    """ROBOTIS's ping, read_write and sync_read_write examples."""
    sdk, port, packets = dynamixel_sdk, opened(dynamixel_sdk, x_bus), dynamixel_sdk.PacketHandler(2.0)
    assert packets.ping(port, 1) == (1060, 0, 0)
    assert packets.ping(opened(sdk, x_bus, 20.0), 7)[1] == sdk.COMM_RX_TIMEOUT
    assert packets.broadcastPing(port) == ({1: [1060, 45], 2: [1200, 45]}, 0)
    assert packets.write1ByteTxRx(port, 1, 64, 1) == (0, 0)
    assert packets.write4ByteTxRx(port, 1, 116, 3000) == (0, 0)
    clock.now += 2.0
    assert packets.read4ByteTxRx(port, 1, 132) == (3000, 0, 0)
    writer = sdk.GroupSyncWrite(port, packets, 116, 4)
    for id, goal in ((1, 1000), (2, 2500)):
        packets.write1ByteTxRx(port, id, 64, 1)
        assert writer.addParam(id, list(goal.to_bytes(4, "little")))
    assert writer.txPacket() == 0
    reader = sdk.GroupSyncRead(port, packets, 132, 4)
    assert reader.addParam(1) and reader.addParam(2)
    assert reader.txRxPacket() == 0  # the reply is of after the write: one stream, in order
    clock.now += 3.0
    assert reader.txRxPacket() == 0
    assert [reader.getData(id, 132, 4) for id in (1, 2)] == [1000, 2500]
    port.closePort()


def test_the_feetech_examples_read_and_write(sts_bus: EmulatedBus, clock: Clock) -> None:
    """Feetech's ping, read_write and sync examples."""
    sdk, port, packets = scservo_sdk, opened(scservo_sdk, sts_bus), scservo_sdk.PacketHandler(0)
    assert packets.ping(port, 2) == (777, 0, 0)
    assert packets.ping(opened(sdk, sts_bus, 20.0), 9)[1] == sdk.COMM_RX_TIMEOUT
    assert packets.write1ByteTxRx(port, 1, 40, 1) == (0, 0)
    assert packets.write2ByteTxRx(port, 1, 42, 3000) == (0, 0)
    clock.now += 2.0
    assert packets.read2ByteTxRx(port, 1, 56) == (3000, 0, 0)
    writer = sdk.GroupSyncWrite(port, packets, 42, 2)
    for id, goal in ((1, 1000), (2, 2500)):
        packets.write1ByteTxRx(port, id, 40, 1)
        assert writer.addParam(id, list(goal.to_bytes(2, "little")))
    assert writer.txPacket() == 0
    reader = sdk.GroupSyncRead(port, packets, 56, 4)
    assert reader.addParam(1) and reader.addParam(2)
    assert reader.txRxPacket() == 0
    clock.now += 3.0
    assert reader.txRxPacket() == 0
    assert [reader.getData(id, 56, 2) for id in (1, 2)] == [1000, 2500]
    port.closePort()


def test_bytes_that_look_like_a_header_are_stuffed(x_bus: EmulatedBus) -> None:
    port, packets = opened(dynamixel_sdk, x_bus), dynamixel_sdk.PacketHandler(2.0)
    value = 0x00FDFFFF  # bytes FF FF FD 00
    assert packets.write4ByteTxRx(port, 1, 116, value) == (0, 0)
    assert packets.read4ByteTxRx(port, 1, 116) == (value, 0, 0)
    port.closePort()


def test_the_checksum_of_protocol_2_is_the_published_one() -> None:
    """The ping of servo 1 in ROBOTIS's description of the protocol."""
    assert crc16(bytes.fromhex("FFFFFD0001030001")) == 0x4E19
    ping = Protocol2().decode(bytes.fromhex("FFFFFD0001030001194E"))
    assert ping is not None and ping.kind == "ping" and ping.ids == (1,)
    assert Protocol2().decode(bytes.fromhex("FFFFFD0001030001194F")) is None


def test_negative_numbers_are_written_as_each_maker_does() -> None:
    assert Register(0, 2, 11).encode(-5) == bytes.fromhex("0508") and Register(0, 2, 11).decode(bytes.fromhex("0508")) == -5
    assert Register(0, 4, "twos").encode(-5) == bytes.fromhex("fbffffff") and Register(0, 4, "twos").decode(bytes.fromhex("fbffffff")) == -5
    with pytest.raises(OverflowError):
        Register(0, 2, 11).encode(2048)


def test_a_joint_keeps_to_its_speed(x_bus: EmulatedBus, clock: Clock) -> None:
    servo = x_bus.servos[1]
    servo.write(64, b"\x01")
    servo.write(116, (2048 + 1024).to_bytes(4, "little"))
    clock.now += 0.1
    half_way = servo.shaft - 2048
    fastest = servo_models()["xl430-w250"].speed * 4096 / 6.283185307 * 0.1
    assert 0.3 * fastest < half_way < fastest
    clock.now += 1.0
    assert servo.shaft == pytest.approx(3072, abs=0.5)


def test_without_torque_it_stays_and_gives_way_to_a_hand(sts_bus: EmulatedBus, clock: Clock) -> None:
    servo = sts_bus.servos[1]
    servo.write(42, (3000).to_bytes(2, "little"))
    clock.now += 1.0
    assert servo.shaft == 2048
    servo.turn_by_hand(100)
    assert servo.shaft == 2148
    servo.write(40, b"\x01")
    servo.turn_by_hand(100)
    clock.now += 1.0
    assert servo.shaft == 2148


def test_a_position_servo_never_takes_the_way_across_the_wrap(sts_bus: EmulatedBus, clock: Clock) -> None:
    """4000 -> 100 is 196 ticks the short way; the servo turns back through 2048 instead."""
    servo = sts_bus.servos[1]
    servo.turn_by_hand(4000 - 2048)
    servo.write(40, b"\x01")
    servo.write(42, (100).to_bytes(2, "little"))
    clock.now += 0.6
    assert 1000 < servo.shaft < 3500
    clock.now += 3.0
    assert servo.shaft == pytest.approx(100, abs=0.5)


def test_extended_position_counts_on_beyond_a_turn_and_drive_mode_turns_it_round(x_bus: EmulatedBus, clock: Clock) -> None:
    servo = x_bus.servos[1]
    for register, value in (("Operating_Mode", 4), ("Drive_Mode", 1), ("Torque_Enable", 1)):
        servo.set(register, value)
    servo.write(116, (-5000).to_bytes(4, "little", signed=True))
    clock.now += 5.0
    assert servo.shaft == pytest.approx(5000, abs=0.5)
    assert int.from_bytes(servo.read(132, 4), "little", signed=True) == -5000


def test_an_overload_shows_in_every_reply_until_a_reboot(x_bus: EmulatedBus) -> None:
    port, packets = opened(dynamixel_sdk, x_bus), dynamixel_sdk.PacketHandler(2.0)
    packets.write1ByteTxRx(port, 1, 64, 1)
    with x_bus.lock:
        x_bus.servos[1].overload()
    assert packets.read1ByteTxRx(port, 1, 64) == (0, 0, 0x80)
    assert packets.read1ByteTxRx(port, 1, 70) == (32, 0, 0x80)
    packets.write1ByteTxRx(port, 1, 64, 1)
    assert packets.read1ByteTxRx(port, 1, 64)[0] == 0  # torque stays off
    assert packets.reboot(port, 1) == (0, 0)
    packets.write1ByteTxRx(port, 1, 64, 1)
    assert packets.read1ByteTxRx(port, 1, 64) == (1, 0, 0)
    port.closePort()


def test_the_eeprom_is_refused_while_torque_is_on_and_read_only_registers_always(x_bus: EmulatedBus) -> None:
    port, packets = opened(dynamixel_sdk, x_bus), dynamixel_sdk.PacketHandler(2.0)
    packets.write1ByteTxRx(port, 1, 64, 1)
    assert packets.write1ByteTxRx(port, 1, 11, 4) == (0, dynamixel_sdk.protocol2_packet_handler.ERRNUM_ACCESS)
    assert packets.write4ByteTxRx(port, 1, 132, 5) == (0, dynamixel_sdk.protocol2_packet_handler.ERRNUM_ACCESS)
    port.closePort()


def test_the_bus_watchdog_stops_a_servo_on_a_silent_bus(x_bus: EmulatedBus, clock: Clock) -> None:
    port, packets = opened(dynamixel_sdk, x_bus), dynamixel_sdk.PacketHandler(2.0)
    packets.write1ByteTxRx(port, 1, 64, 1)
    packets.write1ByteTxRx(port, 1, 98, 5)  # 100 ms
    packets.write4ByteTxRx(port, 1, 116, 4095)
    clock.now += 1.0
    shaft = x_bus.servos[1].shaft
    assert 2048 < shaft < 2700
    assert packets.read1ByteTxRx(port, 1, 98)[0] == 255
    assert packets.write4ByteTxRx(port, 1, 116, 0) == (0, dynamixel_sdk.protocol2_packet_handler.ERRNUM_DATA_RANGE)
    packets.write1ByteTxRx(port, 1, 98, 0)
    assert packets.write4ByteTxRx(port, 1, 116, 0) == (0, 0)
    port.closePort()


def test_a_shadow_servo_does_as_its_first_and_answers_only_by_its_own_id(x_bus: EmulatedBus, clock: Clock) -> None:
    port, packets = opened(dynamixel_sdk, x_bus), dynamixel_sdk.PacketHandler(2.0)
    packets.write1ByteTxRx(port, 2, 12, 1)
    packets.write1ByteTxRx(port, 1, 64, 1)
    assert packets.write4ByteTxRx(port, 1, 116, 3000) == (0, 0)
    clock.now += 3.0
    assert [packets.read4ByteTxRx(port, id, 132) for id in (1, 2)] == [(3000, 0, 0)] * 2
    port.closePort()


def test_faults_are_the_same_for_the_same_seed_and_counted() -> None:
    packet = bytes(range(40))

    def arrives(seed: int) -> tuple[list[bytes], int]:
        faults = Faults(byte_loss=0.01, bad_checksum=0.1, lost_reply=0.1, seed=seed)
        replies = [faults.reply(packet) for _ in range(50)]
        return replies, faults.counts["missing_replies"]

    (first, count), (again, _), (other, _) = arrives(1), arrives(1), arrives(2)
    assert first == again != other
    assert count == sum(reply != packet for reply in first) > 0
    assert b"" in first and any(len(reply) == 39 for reply in first)


def test_a_damaged_sync_write_is_counted_and_moves_nothing(sts_bus: EmulatedBus, clock: Clock) -> None:
    port, packets = opened(scservo_sdk, sts_bus), scservo_sdk.PacketHandler(0)
    packets.write1ByteTxRx(port, 1, 40, 1)
    sts_bus.faults.byte_loss = 1.0
    packets.syncWriteTxOnly(port, 42, 2, [1, 0xB8, 0x0B], 3)
    assert packets.read2ByteTxRx(opened(scservo_sdk, sts_bus, 50.0), 1, 56)[1] != 0
    sts_bus.faults.byte_loss = 0.0
    clock.now += 1.0
    assert packets.read2ByteTxRx(port, 1, 42) == (0, 0, 0)
    counts = sts_bus.faults.counts
    assert (counts["damaged_sync_writes"], counts["damaged_instructions"], counts["missing_replies"]) == (1, 2, 1)
    port.closePort()


def test_an_unplugged_port_is_gone_and_comes_back_under_its_name(sts_bus: EmulatedBus) -> None:
    port, packets = opened(scservo_sdk, sts_bus), scservo_sdk.PacketHandler(0)
    assert packets.ping(port, 1)[1] == 0
    sts_bus.unplug()
    assert not os.path.exists(sts_bus.port)
    with pytest.raises(termios.error):
        packets.ping(port, 1)
    sts_bus.plug_in()
    port = opened(scservo_sdk, sts_bus)
    assert packets.ping(port, 1)[1] == 0
    port.closePort()


def test_servos_of_two_makers_do_not_share_a_bus(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one protocol"):
        EmulatedBus({1: "sts3215", 2: "xl330-m288"}, tmp_path / "port")
    with pytest.raises(ValueError, match="sts3215"):
        EmulatedBus({1: "mx28"}, tmp_path / "port")
