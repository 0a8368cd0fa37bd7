"""WatchingNode: the life of a node that runs a bundle of the registry on the newest message beside the arm.

Configuring loads the bundle; a subclass begins its worker when what it waits for has come. What fails is told once and ends the process;
diagnostics go once a second.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn

from rl_core.bundle import Bundle, bundle_sha256
from rl_core.errors import ArmstackError
from robot_bridge.auxiliary.bundle_folders import read_bundle
from robot_bridge.auxiliary.method import AuxiliaryMethod
from robot_bridge.auxiliary.registry import find_method, load_auxiliary
from robot_bridge.nodes.auxiliary_messages import figures
from robot_bridge.nodes.newest_worker import Load, NewestWorker
from robot_bridge.nodes.qos import STREAM, advertise
from robot_bridge.nodes.self_starting import SelfStartingNode
from robot_bridge.nodes.spin import NodeError

Worker = TypeVar("Worker", bound=NewestWorker[Any])


class WatchingNode(SelfStartingNode, Generic[Worker]):
    """Parameters besides a `SelfStartingNode`'s: `method`, name in the registry or `module:ROW`; `bundle`, folder of its bundle; `threads`
    of torch; and those of the subclass, which may give `method` another default.

    Args:
        name: of the node.
        given: parameters of the subclass with their defaults.
        options: arguments of `SelfStartingNode`.
    """

    hears_radar: ClassVar[bool] = False
    """Whether it is made for methods that work on a radar's echoes, rather than for all others."""

    def __init__(self, name: str, given: Mapping[str, Any], **options: Any) -> None:
        super().__init__(name, **options)
        given = {"method": "", "bundle": "", "threads": 1, **given}
        self._given: dict[str, Any] = {key: self.declare_parameter(key, default).value for key, default in given.items()}
        self._method: AuxiliaryMethod
        self._sha256 = ""
        self._worker: Worker | None = None
        self._load = Load(time.monotonic())
        self._inputs: list[Any] = []
        self._diagnostics = advertise(self, DiagnosticArray, "diagnostics", STREAM)
        self.create_timer(1.0, self._publish_diagnostics)

    @abstractmethod
    def _check(self) -> None:
        """Checks the parameters of the subclass.

        Raises:
            ArmstackError: one that is not valid.
        """

    @abstractmethod
    def _use(self, loaded: Any, bundle: Bundle) -> None:
        """Takes what was loaded.

        Raises:
            ArmstackError: it is of no use here.
        """

    @abstractmethod
    def _forget(self) -> None:
        """Lets go of what was loaded."""

    def _tells(self) -> Mapping[str, Any]:
        """What diagnostics say besides rates, latencies, counts and the bundle."""
        return {}

    # -- lifecycle ------------------------------------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Loads the bundle."""
        method, folder = str(self._given["method"]), str(self._given["bundle"])
        try:
            self._check()
            self._method = find_method(method)
            if "radar" in self._method.needs and not self.hears_radar:
                raise ArmstackError(
                    "it hears a radar and sees no pictures; valid: `armstack launch separation radar:=true`, human_radar_node"
                )
            if not folder:
                raise ArmstackError(f"parameter bundle is empty; give the folder that `armstack aux train {self._method.name}` wrote")
            import torch  # here: it takes seconds, and a wrong parameter is told without it

            torch.set_num_threads(int(self._given["threads"] or 1))
            bundle = read_bundle(Path(folder), self._method.name)
            self._use(load_auxiliary(self._method, bundle), bundle)
            self._sha256 = bundle_sha256(folder)
        except (ArmstackError, ValueError, OSError, ImportError) as error:
            return self._refuse(f"method {method!r}, bundle {folder!r}: {error}")
        self.get_logger().info(f"{self._method.name}: bundle {folder} loaded, sha256 {self._sha256[:12]}")
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forgets the bundle."""
        self._forget()
        return TransitionCallbackReturn.SUCCESS

    def _begin(self, worker: Worker) -> None:
        self._load = Load(time.monotonic())
        self._worker = worker
        worker.start()

    def _end(self) -> None:
        for subscription in self._inputs:
            self.destroy_subscription(subscription)
        self._inputs = []
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()

    # -- what goes ------------------------------------------------------------------------------------------------------

    def _failed(self, error: Exception) -> None:
        self.failure.report(self._told(error))

    def _told(self, error: Exception) -> NodeError:
        return error if isinstance(error, NodeError) else NodeError(f"{self._method.name}: {type(error).__name__}: {error}")

    def _publish_diagnostics(self) -> None:
        worker = self._worker
        if worker is None:
            return
        rates, overload = self._load.report(time.monotonic(), worker.counts)
        title = f"{self.get_name()} {self._method.name}"
        self._diagnostics.publish(figures(title, worker, rates, overload=overload, bundle=self._sha256, **self._tells()))
        if overload:
            self.get_logger().warning(overload, throttle_duration_sec=10.0)
