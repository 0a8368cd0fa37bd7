"""SelfStartingNode: a lifecycle node that configures and activates itself, and ends alike however it is ended."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from robot_bridge.nodes.spin import Failure, NodeError


class SelfStartingNode(LifecycleNode, ABC):
    """Parameter `autostart`: false leaves configuring and activating to whoever manages the graph.

    Attributes:
        failure: what ends the process.

    Args:
        name: of the node.
        options: arguments of `LifecycleNode`.
    """

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._autostart = bool(self.declare_parameter("autostart", True).value)
        self.failure = Failure()
        self._error: NodeError | None = None

    def _start_itself(self) -> None:
        """The end of the subclass's `__init__`."""
        done = TransitionCallbackReturn.SUCCESS
        if self._autostart and (self.trigger_configure() != done or self.trigger_activate() != done):
            raise self._error or NodeError(f"the node {self.get_name()} could not be activated")

    def _refuse(self, why: str) -> TransitionCallbackReturn:
        """What `on_configure` returns where it cannot be done."""
        self._error = NodeError(why)
        self.get_logger().error(why)
        return TransitionCallbackReturn.FAILURE

    @abstractmethod
    def _end(self) -> None:
        """Ends what was begun; called again it does nothing."""

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Ends, and says and sends no more; what relies on it holds the arm."""
        self._end()
        return super().on_deactivate(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Ends."""
        self._end()
        return TransitionCallbackReturn.SUCCESS

    def close(self) -> None:
        """Ends."""
        self._end()
