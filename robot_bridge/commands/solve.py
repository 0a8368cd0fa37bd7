"""`armstack solve BUNDLE`: a policy for a reward or a goal, in seconds, from what was explored without either."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from rl_core.contract import RobotContract
from rl_core.errors import ArmstackError
from robot_bridge.commands.output import console, emit_json, figures_table


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Infer the skill z of one task from the states that a pre-trained bundle carries, and write a bundle that acts for it.

    Give one of --reward (a name of the world's, or FILE.py:NAME, a function of yours whose file is **run as code**), --goal (a pose file:
    {"channel": "eef_pos", "position": [x, y, z], "radius": 0.02}), or --goal-channel (the goal is told at run time, e.g. on goal_pose).

    Example: armstack solve runs/rooms/bundle --env armstack/FourRooms-v0 --reward ne --out runs/rooms/ne
    """

    bundle: Annotated[Path, tyro.conf.Positional]
    """Folder of the pre-trained bundle."""
    out: Path
    """Folder of the new bundle; an older bundle there is replaced."""
    env: str = ""
    """World whose named rewards --reward means."""
    reward: str = ""
    """Name of a reward of the world, or FILE.py:NAME."""
    goal: Path | None = None
    """JSON file of a goal."""
    goal_channel: str = ""
    """Observation channel whose goal the policy is told at run time."""
    json: bool = False
    """Print one JSON object on the last line."""


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack solve")
    given = [name for name in ("reward", "goal", "goal_channel") if getattr(arguments, name)]
    if len(given) != 1:
        found = ", ".join("--" + name.replace("_", "-") for name in given) or "none"
        raise ArmstackError(f"found {found}, valid: one of --reward, --goal, --goal-channel")
    if arguments.out.resolve() == arguments.bundle.resolve():
        raise ArmstackError(f"--out {arguments.out}: the pre-trained bundle itself, valid: another folder; it is needed for the next task")
    from rl_core.dvfb.solving import make_goal_policy, solve

    figures: dict[str, Any] = {"bundle": str(arguments.out)}
    if arguments.goal_channel:
        make_goal_policy(arguments.bundle, arguments.out, arguments.goal_channel)
        figures["goal"] = f"condition goal_{arguments.goal_channel}"
    else:
        task: dict[str, Any] = {"goal": _read_goal(arguments.goal)} if arguments.goal else {"reward": _reward(arguments)}
        solution = solve(arguments.bundle, arguments.out, **task)
        figures |= {"states": solution.states, "seconds": solution.seconds}
    figures_table("solved", figures)
    if arguments.goal_channel == "eef_pos":
        console.print(f"try it: armstack launch dvfb_goals bundle:={arguments.out}")
    elif arguments.env and ".py:" not in arguments.reward:
        console.print(f"try it: armstack eval {arguments.out} --env {arguments.env} --reward {arguments.reward}")
    if arguments.json:
        emit_json(figures)
    return 0


def _reward(arguments: Arguments) -> Any:
    from rl_core.bundle import Bundle
    from rl_core.restore import restore_contract
    from rl_core.training.worlds import contract_of, make_world
    from sim_envs.reward_free.rewards import find_reward

    named: Any = {}
    if arguments.env:
        env = make_world(arguments.env)
        named, offered = env.get_wrapper_attr("rewards"), contract_of(env)
        env.close()
        _check_columns(restore_contract(Bundle.load(arguments.bundle)), offered, arguments.env)
    elif ".py:" not in arguments.reward:
        raise ArmstackError(f"--reward {arguments.reward}: give --env, the world whose reward it is, or FILE.py:NAME")
    return find_reward(arguments.reward, named, say=console.print)


def _check_columns(explored: RobotContract, offered: RobotContract, env: str) -> None:
    """A world's rewards read columns of its whole observation: of other channels they would read other numbers, in silence."""
    found, valid = ([(channel.name, channel.size) for channel in contract.low_dimensional] for contract in (explored, offered))
    if found != valid:
        raise ArmstackError(f"--env {env}: its rewards are of {valid}, the bundle explored {found}; valid: the world that was explored")


def _read_goal(file: Path) -> dict[str, Any]:
    try:
        goal = json.loads(file.read_text())
    except ValueError as error:
        raise ArmstackError(f"{file}: no JSON ({error}); valid: {{'channel': 'eef_pos', 'position': [x, y, z]}}") from error
    if not isinstance(goal, dict):
        raise ArmstackError(f"{file}: a {type(goal).__name__}, valid: an object with channel, position and perhaps radius")
    return goal
