"""The thread that reads a camera, on an injected clock."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator

import pytest

from robot_bridge.cameras.base import Camera, CameraError, CameraLost, Frame
from robot_bridge.cameras.grabbing import Grabber
from tests.robot_bridge.cameras.fakes import HangingCamera, ScriptedCamera, frame

_WAIT_S = 10.0


class _Rig:
    """A grabber on a clock that stands, with the cameras it makes in turn, and what it delivers."""

    def __init__(self, *cameras: Camera, noisy: bool = True) -> None:
        self.now = 100.0
        self.frames: queue.Queue[Frame] = queue.Queue()
        self.failures: queue.Queue[Exception] = queue.Queue()
        self.made = 0
        self._cameras = iter(cameras)
        self.grabber = Grabber(
            self._make,
            deliver=lambda frame, lens: self.frames.put(frame),
            failed=self.failures.put,
            frozen_s=1.0,
            noisy=noisy,
            clock=lambda: self.now,
        )
        self.grabber.start()

    def _make(self) -> Camera:
        self.made += 1
        return next(self._cameras)

    def next(self) -> Frame:
        return self.frames.get(timeout=_WAIT_S)

    def pass_s(self, seconds: float) -> None:
        self.now += seconds
        self.grabber.check()

    def until(self, condition: Callable[[], bool]) -> None:
        for _ in range(2000):
            if condition():
                return
            threading.Event().wait(0.005)
        raise AssertionError(f"not within {_WAIT_S} s; state {self.grabber.state}")


@pytest.fixture
def made(request: pytest.FixtureRequest) -> Iterator[list[_Rig]]:
    rigs: list[_Rig] = []
    yield rigs
    for rig in rigs:
        rig.grabber.close()


def _forever() -> Iterator[Frame | Exception | None]:
    value = 0
    while True:
        value += 1
        yield frame(value)
        yield None


def test_a_camera_that_hangs_is_left_behind_and_opened_again_with_growing_pauses(made: list[_Rig]) -> None:
    hanging = [HangingCamera(pictures) for pictures in (1, 0)]
    rig = _Rig(*hanging, ScriptedCamera(_forever))
    made.append(rig)
    rig.next()
    assert hanging[0].hangs.wait(_WAIT_S)
    rig.pass_s(0.9)
    assert rig.grabber.state == "running"
    rig.pass_s(0.2)
    assert rig.grabber.state == "frozen" and "no new picture for 1.1 s" in rig.grabber.last_error
    rig.pass_s(0.4)
    assert rig.made == 1  # the pause is half a second
    rig.pass_s(0.2)
    assert hanging[1].hangs.wait(_WAIT_S) and rig.grabber.reopened == 1
    rig.pass_s(1.1)
    rig.pass_s(0.9)
    assert rig.made == 2  # the second is twice as long
    rig.pass_s(0.2)
    rig.next()
    assert rig.grabber.state == "running" and rig.grabber.reopened == 2 and rig.failures.empty()
    # What hung and comes back is closed and heard no more.
    for camera in hanging:
        camera.release.set()
        assert camera.closed.wait(_WAIT_S)
    assert rig.grabber.state == "running"


def test_no_more_than_three_threads_hang(made: list[_Rig]) -> None:
    cameras = [HangingCamera(0) for _ in range(4)]
    rig = _Rig(*cameras)
    made.append(rig)
    for count, camera in enumerate(cameras[:3], 1):
        rig.until(lambda count=count: rig.made == count or rig.pass_s(0.5))
        assert camera.hangs.wait(_WAIT_S)
    for _ in range(40):
        rig.pass_s(1.0)
    assert rig.made == 3
    cameras[0].release.set()
    assert cameras[0].closed.wait(_WAIT_S)
    rig.until(lambda: rig.made == 4 or rig.pass_s(1.0))
    for camera in cameras:
        camera.release.set()


def test_a_picture_that_repeats_is_not_new_and_a_camera_that_only_repeats_is_frozen(made: list[_Rig]) -> None:
    def repeats() -> Iterator[Frame | Exception | None]:
        yield frame(1)
        while True:
            yield frame(2)

    first = ScriptedCamera(repeats)
    rig = _Rig(first, ScriptedCamera(_forever))
    made.append(rig)
    assert [int(rig.next().pixels[0, 0, 0]) for _ in range(2)] == [1, 2]
    rig.until(lambda: rig.grabber.repeated > 3)
    assert rig.frames.empty()
    rig.pass_s(1.1)
    assert rig.grabber.state == "frozen" and first.closed.wait(_WAIT_S)
    rig.pass_s(0.6)
    rig.next()
    assert rig.grabber.state == "running"


def test_a_source_without_noise_may_repeat(made: list[_Rig]) -> None:
    rig = _Rig(ScriptedCamera(lambda: iter([frame(1), frame(1), frame(1)])), noisy=False)
    made.append(rig)
    assert [rig.next() for _ in range(3)] and rig.grabber.repeated == 0


def test_a_camera_that_is_unplugged_comes_back_by_itself(made: list[_Rig]) -> None:
    rig = _Rig(
        ScriptedCamera(lambda: iter([frame(1), CameraLost("unplugged")])),
        ScriptedCamera(lambda: iter([CameraError("not there yet")])),
        ScriptedCamera(_forever),
    )
    made.append(rig)
    rig.next()
    rig.until(lambda: rig.grabber.state == "waiting")
    assert rig.grabber.last_error == "unplugged"
    rig.pass_s(0.6)
    rig.until(lambda: rig.grabber.last_error == "not there yet")
    rig.pass_s(0.9)
    assert rig.made == 2
    rig.pass_s(0.2)
    rig.next()
    assert rig.failures.empty()


def test_a_camera_that_never_gave_a_picture_and_fails_is_told(made: list[_Rig]) -> None:
    rig = _Rig(ScriptedCamera(lambda: iter([CameraError("no such camera")])))
    made.append(rig)
    assert str(rig.failures.get(timeout=_WAIT_S)) == "no such camera"
