"""The auxiliary node: a lifecycle node that runs any method of the registry beside the arm, on a camera where its kind needs one.

It configures and activates itself unless `autostart` is false. Configuring loads the bundle; once active it waits for the camera's
contract, warms up, judges the newest frame over and over, and answers requests. With `hold_on` it is a guard under its own name: it says
on `safety/holds` whether the arm must hold, five times a second and at every frame, and holds until it has judged one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import Image
from std_msgs.msg import String

from rl_core.bundle import Bundle
from rl_core.camera_channel import channel_from_json
from rl_core.errors import ArmstackError
from robot_bridge.auxiliary.annotate import annotate
from robot_bridge.auxiliary.bundles import Recognition, recognition_of
from robot_bridge.auxiliary.explanations import Explainer, lines_of
from robot_bridge.auxiliary.first_frames import FirstFrames
from robot_bridge.auxiliary.hold_rule import Guard, HoldRule
from robot_bridge.nodes.auxiliary_messages import explanation, result
from robot_bridge.nodes.auxiliary_requests import AuxiliaryRequests
from robot_bridge.nodes.auxiliary_worker import AuxiliaryWorker, Judged
from robot_bridge.nodes.guard_message import guard_message
from robot_bridge.nodes.messages import MessageError, began, rgb_image
from robot_bridge.nodes.qos import EVENTS, LATCHED, SENSOR, STREAM, advertise, subscribe
from robot_bridge.nodes.spin import NodeError, run
from robot_bridge.nodes.stamps import to_ns
from robot_bridge.nodes.watching_node import WatchingNode

_HOLDS_S = 0.2


class AuxiliaryNode(WatchingNode[AuxiliaryWorker]):
    """Parameters besides a `WatchingNode`'s: `camera`, whose pictures it judges; `hold_on`, values or classes joined by commas (empty: no
    guard), and `hold_above`, the limit; `max_age_s`, an older frame is not judged, and an older judgement holds; `first_frames`, judge each
    episode by the mean of so many of its first frames and hold until they have come (0: each frame by itself); `store`, folder for bytes
    too large for a message.

    Args:
        options: arguments of `LifecycleNode`.
    """

    def __init__(self, **options: Any) -> None:
        given: dict[str, Any] = {"camera": "front", "hold_on": "", "hold_above": 0.5, "max_age_s": 0.5, "first_frames": 0, "store": ""}
        super().__init__("auxiliary", given, **options)
        self._loaded: Any = None
        self._recognition: Recognition | None = None
        self._rule: HoldRule
        self._guard: Guard | None = None
        self._explanations: Any = None
        self._requests: AuxiliaryRequests | None = None
        self._condition: Mapping[str, Any] | None = None
        self._clock_ns: int | None = None
        self._holds = advertise(self, DiagnosticArray, "safety/holds", LATCHED)  # the arm node hears it in both of its ways
        subscribe(self, ClockMessage, "/clock", self._clock_came, STREAM)
        subscribe(self, String, "task", self._task_came, LATCHED)
        subscribe(self, String, "episode", self._episode_came, EVENTS)
        self.create_timer(_HOLDS_S, self._say_holds)
        self._start_itself()

    # -- lifecycle ------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        self._rule = HoldRule(
            on=tuple(name.strip() for name in str(self._given["hold_on"]).split(",") if name.strip()),
            above=float(self._given["hold_above"]),
            max_age_s=float(self._given["max_age_s"]),
        )

    def _use(self, loaded: Any, bundle: Bundle) -> None:
        if self._method.kind != "recogniser" and self._rule.on:
            on, kind = self._given["hold_on"], self._method.kind
            raise ArmstackError(f"parameter hold_on: {on!r} with kind {kind}; valid: empty, only a recogniser holds the arm")
        self._loaded = loaded
        self._recognition = recognition_of(bundle) if self._method.kind == "recogniser" else None
        frames = int(self._given["first_frames"] or 0)
        self._guard = Guard(self.get_name(), self._rule, FirstFrames(frames) if frames > 0 else None) if self._rule.on else None
        if self._requests is None:  # configured for the first time
            self._results = advertise(self, String, f"{self._method.topic}/result", STREAM)
            if isinstance(self._loaded, Explainer):
                self._explanations = advertise(self, String, f"{self._method.topic}/explanation", STREAM)
            self._images = advertise(self, Image, f"{self._method.topic}/image", SENSOR)
            store = str(self._given["store"])
            self._requests = AuxiliaryRequests(self, self._method, lambda: self._worker, self._images, Path(store) if store else None)

    def _forget(self) -> None:
        self._loaded = self._recognition = self._guard = None

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Waits for the camera's contract, then works."""
        if self._recognition is None:
            self._work(None)
        else:
            camera = self._given["camera"]
            self._inputs.append(subscribe(self, String, f"camera/{camera}/contract", self._contract_came, LATCHED))
            self._inputs.append(subscribe(self, Image, f"camera/{camera}/image_raw", self._image_came, SENSOR))
        return super().on_activate(state)

    def _work(self, shape: tuple[int, ...] | None) -> None:
        self._begin(
            AuxiliaryWorker(
                self._loaded,
                judged=self._judged,
                failed=self._failed,
                now_ns=self._now_ns,
                max_age_s=self._rule.max_age_s,
                shape=shape,
                condition=lambda: self._condition,
                warmed=self._warmed,
            )
        )

    # -- what comes -----------------------------------------------------------------------------------------------------

    def _contract_came(self, message: String) -> None:
        assert self._recognition is not None
        try:
            offered = channel_from_json(message.data)
            for caution in self._recognition.accepts(offered):
                self.get_logger().warning(f"{self._method.name}: {caution}; expect worse results")
        except ArmstackError as error:
            self._failed(NodeError(f"camera {self._given['camera']}: {error}\nUse a bundle trained for this camera, or set its size."))
            return
        if self._worker is None:
            self._work(offered.shape)
        elif self._worker.shape != offered.shape:
            self._failed(NodeError(f"camera {self._given['camera']}: its pictures became {offered.shape}, they were {self._worker.shape}"))

    def _image_came(self, message: Image) -> None:
        if self._worker is not None:
            self._worker.offer(message)

    def _clock_came(self, message: ClockMessage) -> None:
        self._clock_ns = to_ns(message.clock)

    def _episode_came(self, message: String) -> None:
        try:
            index, stamp_ns = began(message.data)
        except MessageError as error:
            self.get_logger().error(str(error), throttle_duration_sec=2.0)
            return
        if self._guard is not None:
            self._guard.begin(index, stamp_ns)
            self._say_holds()

    def _task_came(self, message: String) -> None:
        try:
            task = json.loads(message.data)
        except ValueError as error:
            self.get_logger().error(f"task cannot be used: {error}", throttle_duration_sec=2.0)
            return
        self._condition = task if isinstance(task, dict) else None

    def _now_ns(self) -> int:
        return self._clock_ns if self._clock_ns is not None else time.time_ns()

    # -- what goes ------------------------------------------------------------------------------------------------------

    def _warmed(self, names: tuple[str, ...]) -> None:
        self._rule.check(names)
        self.get_logger().info(f"{self._method.name} ready on camera {self._given['camera']}: {', '.join(names)}")

    def _judged(self, judged: Judged) -> None:
        alarm = ""
        if self._guard is not None:
            self._guard.judged(judged.stamp_ns, {**judged.scores, **judged.values})
            alarm = self._rule.judge({**judged.scores, **judged.values})
            self._say_holds()
        origin = {"method": self._method.name, "bundle": self._sha256, "camera": str(self._given["camera"])}
        self._results.publish(result(judged, **origin))
        words: Sequence[str] = ()
        if judged.explanation is not None:
            self._explanations.publish(explanation(judged, **origin))
            words = lines_of(judged.explanation)
        if self._images.get_subscription_count() > 0:
            heat = None if judged.prediction.map is None else judged.prediction.map[0]
            sheet = annotate(judged.frame, judged.scores, judged.values, heat, title=self._method.name, alarm=alarm, explanation=words)
            self._images.publish(rgb_image(sheet, frame="", stamp_ns=judged.stamp_ns))

    def _say_holds(self) -> None:
        if self._guard is not None and self._inputs:
            self._holds.publish(guard_message(self._guard.report(self._now_ns())))

    def _failed(self, error: Exception) -> None:
        told = self._told(error)
        if self._guard is not None:
            self._guard.fail(str(told))
            self._say_holds()
        super()._failed(told)

    def _tells(self) -> Mapping[str, Any]:
        return {"camera": self._given["camera"]}


def main() -> int:
    """Entry point of `auxiliary_node`."""
    return run(AuxiliaryNode)


if __name__ == "__main__":
    raise SystemExit(main())
