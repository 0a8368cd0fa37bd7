"""`armstack teleop`: starts an arm, a recorder and, for corrections, a policy, and lets a person move the arm from this terminal."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro
from rich.live import Live

from rl_core.errors import ArmstackError
from robot_bridge.arm_parameters import read_arm_file, settings_of
from robot_bridge.arms.registry import SIMULATED, ArmError
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
_RECORDER_S = 30.0
_FATAL = re.compile(r"^\[([^\]]*)-\d+\] \[FATAL\] \[[\d.]+\] \[[^\]]*\]: (.*)")
_LOST = re.compile(r"lost (episode .*); the others are kept")
_INTERRUPTED = "interrupted; what was recorded is kept, an episode under way with phase `cut` and its success unknown"


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


class _Output:
    """Passes on what the nodes say, and keeps what the end of the command repeats.

    Attributes:
        fatal: process -> the newest reason it gave for its end.
        lost: episodes that the recorder lost, each with the reason, also those it loses while it is being ended.
    """

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self.fatal: dict[str, str] = {}
        self.lost: list[str] = []

    def __call__(self, line: str) -> None:
        self._emit(line)
        if found := _FATAL.search(line):
            self.fatal[found[1]] = found[2]
        if found := _LOST.search(line):
            self.lost.append(found[1])


def _arm(arguments: Arguments) -> str:
    return SIMULATED if arguments.arm == "sim" else arguments.arm


def _launch_arguments(arguments: Arguments) -> dict[str, str]:
    given = {
        "arm": _arm(arguments),
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


def _check_arm(arguments: Arguments) -> None:
    """What can be known of the arm at once: that there is one, its world, the first seed, its file of parameters."""
    name = _arm(arguments)
    try:
        settings_of(name)
    except ArmError as error:
        raise TeleopError(f"--arm {arguments.arm}: {error} (sim is short for {SIMULATED})") from error
    if arguments.seed < 0:
        raise TeleopError(f"--seed {arguments.seed}, valid: 0 or more")
    if arguments.arm_config is not None:
        read_arm_file(arguments.arm_config, name)
    if name == SIMULATED and arguments.task:
        from sim_envs.arm.tasks import find_task

        try:
            find_task(arguments.task)
        except ValueError as error:
            raise TeleopError(f"--task {arguments.task}: {error}") from error


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack teleop")
    _check_arm(arguments)
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
        return _run(arguments, specs)
    finally:
        rclpy.try_shutdown()


def _run(arguments: Arguments, specs: Any) -> int:
    from rclpy.logging import LoggingSeverity
    from rclpy.parameter import Parameter

    from robot_bridge.nodes.spin import NodeError, SpinThread
    from robot_bridge.nodes.teleop_node import TeleopNode
    from robot_bridge.teleop.view import page

    ended = threading.Event()
    title = f"armstack teleop: {arguments.source} -> {arguments.arm}{f' ({arguments.namespace})' if arguments.namespace else ''}"
    parameters = [Parameter(name, value=value) for name, value in _parameters(arguments).items()]
    moves = arguments.source == "keyboard"
    output = _Output(console.print)
    node: TeleopNode | None = None
    said, code = "", 0
    try:
        # before the arm is started: a device that cannot be used is said at once
        node = TeleopNode(quit=ended.set, namespace=arguments.namespace, parameter_overrides=parameters)
        node.get_logger().set_level(LoggingSeverity.ERROR)  # the page says it
        with (
            Launch(specs, emit=output) as launch,
            SpinThread(node, failure=node.failure),
            Live(page(None, title, moves=moves), console=console, refresh_per_second=1 / _SHOWN_S) as live,
        ):
            quit = False
            while not quit:
                quit = ended.wait(_SHOWN_S)
                node.failure.raise_reported()
                if launch.over():
                    raise TeleopError(f"without the arm node nothing goes on: {output.fatal.get('arm', 'what it said last is above')}")
                live.update(page(node.status(), title, moves=moves))
            said = _await_recorder(node, lambda: live.update(page(node.status(), title, moves=moves)))
    except NodeError as error:
        raise TeleopError(str(error)) from error
    except KeyboardInterrupt:
        code = 130  # by now the recorder has been ended, which wrote what there was
    finally:
        if not console.is_terminal:
            console.line()  # a page that is no terminal's ends without
        if node is not None:
            node.close()
            node.destroy_node()
    if output.lost:
        raise TeleopError(f"the recorder lost {'; '.join(output.lost)}. The other episodes are in {arguments.out}")
    if said:
        why = f": {output.fatal['episode_recorder']}" if "episode_recorder" in output.fatal else ""
        raise TeleopError(f"{said}{why}; look at {arguments.out} (armstack doctor) before you rely on the last episode")
    if code:
        sys.stderr.write(f"armstack teleop: {_INTERRUPTED}\n")
    return code


def _await_recorder(node: TeleopNode, show: Callable[[], None]) -> str:
    """What was marked must have been written, or lost, before the recorder is ended; gives what is not known, empty where nothing is."""
    deadline = time.monotonic() + _RECORDER_S
    while not node.recorded() and node.recorder_heard and time.monotonic() < deadline:
        time.sleep(_SHOWN_S)
        show()
    recorded = node.recorded()
    show()
    if (status := node.status()) is not None and status.recorder and status.episode is not None and status.episode["phase"] == "running":
        console.print("an episode is under way: it is kept with phase `cut`, its success unknown")
    return "" if recorded else "the episode recorder did not say that it has written the last episode"
