"""`armstack teleop`: starts an arm, a recorder and, for corrections, a policy, and lets a person move the arm from this terminal."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro
from rich.live import Live

from rl_core.errors import ArmstackError
from robot_bridge.commands.output import console
from robot_bridge.launch_file import read_launch_file
from robot_bridge.launch_places import find_launch_file
from robot_bridge.launch_runner import Launch
from robot_bridge.output_places import check_folder
from robot_bridge.ros_environment import prepare_ros_environment
from robot_bridge.teleop.keyboard import Keyboard
from robot_bridge.teleop.registry import make_source

if TYPE_CHECKING:
    from robot_bridge.nodes.teleop_node import TeleopNode

_LAUNCH_FILE = "teleop"
_SHOWN_S = 0.1
_RECORDER_S = 5.0


class TeleopError(ArmstackError):
    """Teleoperation cannot begin or go on; says what happened and what to do."""


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Move an arm, and record what you do as demonstrations.

    Press t to take the arm, b to begin an episode (the simulated arm goes back to its start), move, then y for a success, n for a failure,
    x to discard. w s a d r f move the gripper, i k j l u o turn it, space opens and closes it, + - change the speed; h hands the arm back,
    q quits. Every command goes through the command filter; without a key the arm stays where it is.

    With --bundle a policy acts once an episode begins: t takes its place, h lets it go on. What you did meanwhile is recorded as
    corrections: armstack filter data/run data/corrections --corrections.

    Example: armstack teleop --arm sim --source keyboard --out data/demos
    """

    arm: str = "sim"
    """sim, or an arm's driver: franka, trossen, ur, ros2_control, dynamixel, feetech."""
    source: Literal["keyboard", "spacemouse", "leader", "script"] = "keyboard"
    """What you move: keyboard, spacemouse, leader, script. Keys mark episodes with every source."""
    source_config: Path | None = None
    """YAML file of the source's settings; see launch/config/teleop_leader.yaml and teleop_script.yaml."""
    out: Path | None = None
    """Folder of the dataset to record into, appended to; nothing is recorded without."""
    bundle: Path | None = None
    """A policy that acts, for corrections."""
    host: str = ""
    """Address of the arm's controller (franka, trossen, ur)."""
    arm_config: Path | None = None
    """Parameters of the arm node, instead of launch/config/teleop_arm.yaml."""
    task: str = ""
    """Kept in the recording; of the simulated arm its world: lift, reach, pick_place or one of the workbench."""
    action: Literal["end_effector", "joint"] | None = None
    """Kind of action to record; the source's own by default. While a policy acts, it is the policy's."""
    speed: float = 0.3
    """Share of the highest speed at first (0.25 m/s and 1.2 rad/s)."""
    seed: int = 0
    """Of the first episode; each further one has the next."""
    namespace: str = ""
    """Of the arm: two arms in one graph have two."""


def _launch_arguments(arguments: Arguments) -> dict[str, str]:
    given = {
        "arm": "simulated" if arguments.arm == "sim" else arguments.arm,
        "teleop": "false",
        "host": arguments.host,
        "task": arguments.task,
        "namespace": arguments.namespace,
        "record": "false" if arguments.out is None else "true",
        "policy": "false" if arguments.bundle is None else "true",
    }
    paths = {"out": arguments.out, "bundle": arguments.bundle, "arm_config": arguments.arm_config}
    return given | {name: str(path) for name, path in paths.items() if path is not None}


def _parameters(arguments: Arguments) -> dict[str, Any]:
    config = "" if arguments.source_config is None else str(arguments.source_config)
    return {
        "source": arguments.source,
        "source_config": config,
        "action": arguments.action or "",
        "speed": arguments.speed,
        "seed": arguments.seed,
        "record": arguments.out is not None,
    }


def _check_source(arguments: Arguments) -> None:
    """What can be known of the source at once: its settings, and of a keyboard the terminal."""
    source = make_source(arguments.source, arguments.source_config or "")
    if isinstance(source, Keyboard):
        source.open()
        source.close()


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack teleop")
    if arguments.out is not None:
        check_folder(arguments.out, "--out")
    if arguments.bundle is not None:
        from rl_core.bundle import Bundle

        Bundle.load(arguments.bundle)
    _check_source(arguments)
    specs = read_launch_file(find_launch_file(_LAUNCH_FILE), _launch_arguments(arguments))
    prepare_ros_environment()
    import rclpy
    from rclpy.signals import SignalHandlerOptions

    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    try:
        _run(arguments, specs)
    finally:
        rclpy.try_shutdown()
    return 0


def _run(arguments: Arguments, specs: Any) -> None:
    from rclpy.logging import LoggingSeverity
    from rclpy.parameter import Parameter

    from robot_bridge.nodes.spin import NodeError, SpinThread
    from robot_bridge.nodes.teleop_node import TeleopNode
    from robot_bridge.teleop.view import page

    ended = threading.Event()
    title = f"armstack teleop: {arguments.source} -> {arguments.arm}{f' ({arguments.namespace})' if arguments.namespace else ''}"
    parameters = [Parameter(name, value=value) for name, value in _parameters(arguments).items()]
    moves = arguments.source == "keyboard"
    node: TeleopNode | None = None
    try:
        # before the arm is started: a device that cannot be used is said at once
        node = TeleopNode(quit=ended.set, namespace=arguments.namespace, parameter_overrides=parameters)
        node.get_logger().set_level(LoggingSeverity.ERROR)  # the page says it
        with (
            Launch(specs, emit=console.print) as launch,
            SpinThread(node, failure=node.failure),
            Live(page(None, title, moves=moves), console=console, refresh_per_second=1 / _SHOWN_S) as live,
        ):
            quit = False
            while not quit:
                quit = ended.wait(_SHOWN_S)
                node.failure.raise_reported()
                if launch.over():
                    raise TeleopError("without the arm node nothing goes on; what it said last is above")
                live.update(page(node.status(), title, moves=moves))
            _await_recorder(node)
    except NodeError as error:
        raise TeleopError(str(error)) from error
    finally:
        if node is not None:
            node.close()
            node.destroy_node()


def _await_recorder(node: TeleopNode) -> None:
    """How the last episode went must have reached the recorder before it is ended."""
    deadline = time.monotonic() + _RECORDER_S
    while not node.recorded() and time.monotonic() < deadline:
        time.sleep(_SHOWN_S)
    if not node.recorded():
        console.print("[yellow]the episode recorder did not say that it has the last episode; look at the dataset[/yellow]")
