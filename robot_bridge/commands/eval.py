"""`armstack eval BUNDLE`: success rate and return, in-process or over a real ROS 2 graph."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from rl_core.bundle import Bundle, BundleError, bundle_sha256
from rl_core.contract import RobotContract
from rl_core.contractive.certificate import PREFIX
from rl_core.errors import ArmstackError
from rl_core.methods import load_policy
from rl_core.pear.policy import HierarchicalPolicy
from rl_core.policy import Policy
from rl_core.training.evaluation import EvaluationResult, check_disjoint, evaluate, evaluation_seeds
from rl_core.training.worlds import MakeEnv
from robot_bridge.collection import World, make_world
from robot_bridge.commands.output import console, emit_json, figures_table
from robot_bridge.control.hand_policy import fitted
from robot_bridge.diagnosis import not_finite
from robot_bridge.judged_world import JudgedWorld
from robot_bridge.output_places import check_file, check_folder
from robot_bridge.reward_free_world import reward_kwargs
from sim_envs.arm.observation import world_contract
from sim_envs.arm.scene import Controller
from sim_envs.arm.tasks import TASKS


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Judge a policy on fixed seeds that no demonstration was collected with.

    Examples:
      armstack eval runs/dac/bundle --task lift --episodes 50 --video lift.mp4
      armstack eval runs/dac/bundle --task lift --episodes 10 --ros --record runs/recording
      armstack eval runs/sac/bundle --env Pendulum-v1
      armstack eval runs/maze/bundle --env armstack/Maze-v0 --video maze.mp4
      armstack eval runs/rooms/ne --env armstack/FourRooms-v0 --reward ne
    """

    bundle: Annotated[Path, tyro.conf.Positional]
    """Folder of the bundle."""
    task: str = "lift"
    """Task of the native arm: reach, lift, pick_place, sort, goal_pick, goal_bin, goal_ring or one of the workbench."""
    world: World = "filtered"
    """`filtered`: position-controlled arm behind decoding, IK and the command filter, as over ROS. `osc_pose`: robosuite's control law."""
    env: str | None = None
    """Any Gymnasium id instead of a task of the native arm."""
    reward: str = ""
    """Named reward of --env, where that gives none of its own."""
    episodes: int = 50
    """How many, one seed each."""
    seed: int = 0
    """Which of the fixed sets of evaluation seeds."""
    horizon: int = 200
    """Steps of an episode."""
    n_envs: int = 1
    """Worlds that are acted for together; 1 is what a robot computes, to the last bit."""
    ros: bool = False
    """Start the ROS 2 graph and judge the policy over its topics."""
    sim_mode: Literal["lockstep", "realtime"] = "lockstep"
    """With --ros: repeatable step by step, or by the clock."""
    record: Path | None = None
    """With --ros: folder for the MCAP recording (`bag`, then `bag_1`, ...), its episodes' figures (`episodes.json`, ...) and, of a policy
    with a certificate, V over time with its bound (`certificate.png`, ...)."""
    video: Path | None = None
    """MP4 of the first episode (in-process); of a policy in two levels, with the subgoals it asks for."""
    data: Path | None = None
    """The training data: checks that no evaluation seed was collected with."""
    json: bool = False
    """Print one JSON object on the last line."""


def _make_env(arguments: Arguments, need: RobotContract, **options: object) -> MakeEnv:
    if arguments.env is not None:
        options |= reward_kwargs(arguments.env, arguments.reward)

    def make() -> JudgedWorld:
        if arguments.env is not None:
            from rl_core.training.worlds import make_world as make_named

            return JudgedWorld(make_named(arguments.env, **options), arguments.env)
        from sim_envs.arm.pictured_env import pictured_for

        env = pictured_for(make_world(arguments.task, arguments.world, arguments.horizon, **options), need)
        return JudgedWorld(env, f"task {arguments.task} ({arguments.world} world)")

    return make


def _load(folder: Path) -> Policy:
    bundle = Bundle.load(folder)
    if bad := not_finite(bundle.weights):
        raise BundleError(
            f"{folder}: weights {', '.join(bad)} hold NaN or infinity, valid: finite numbers; this policy cannot act, train again"
        )
    return load_policy(bundle)


def _over_ros(arguments: Arguments, policy: Policy, seeds: list[int]) -> EvaluationResult:
    if arguments.env is not None or arguments.world != "filtered":
        raise ArmstackError("--ros drives the native arm: leave out --env and --world")
    env = _make_env(arguments, policy.contract)()  # what does not fit is said before a graph is started
    policy.contract.accepts(env.get_wrapper_attr("contract"), needed_by=str(arguments.bundle), offered_by=str(env))
    env.close()
    from robot_bridge.ros_evaluation import evaluate_over_ros

    return evaluate_over_ros(
        arguments.bundle,
        arguments.task,
        seeds,
        horizon=arguments.horizon,
        sim_mode=arguments.sim_mode,
        record=arguments.record,
        console=console,
    )


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack eval")
    if arguments.record is not None and not arguments.ros:
        raise ArmstackError("--record writes what the ROS 2 graph said: add --ros")
    for name, least in (("episodes", 1), ("seed", 0), ("n_envs", 1), ("horizon", 1)):
        if getattr(arguments, name) < least:
            raise ArmstackError(f"--{name.replace('_', '-')}: {getattr(arguments, name)}, valid: {least} or more")
    if arguments.episodes > 10_000:
        raise ArmstackError(f"--episodes: {arguments.episodes}, valid: at most 10000, the seeds of a set")
    policy = _load(arguments.bundle)
    if arguments.env is None:
        if arguments.reward:
            raise ArmstackError(f"--reward {arguments.reward}: names a reward of --env, tasks of the arm have their own")
        if arguments.task in TASKS:  # another one is refused where its world is made
            controller: Controller = "osc_pose" if arguments.world == "osc_pose" else "joint_position"
            policy = fitted(policy, (world_contract(arguments.task, controller=controller),))
    if arguments.video is not None:
        check_file(arguments.video, "--video")
    bag = None
    if arguments.record is not None:
        from rl_core.data.formats.bag import next_folder

        check_folder(arguments.record, "--record")
        bag = next_folder(arguments.record / "bag")  # the recorder's choice
    seeds = evaluation_seeds(arguments.seed, arguments.episodes)
    if arguments.data is not None:
        from robot_bridge.demonstrations import read_demonstrations

        check_disjoint(seeds, read_demonstrations(arguments.data))
    if arguments.ros:
        result = _over_ros(arguments, policy, seeds)
    else:
        with console.status(f"running {len(seeds)} episodes"):
            make = _make_env(arguments, policy.contract)
            result = evaluate(policy, make, seeds, n_envs=arguments.n_envs, sha256=bundle_sha256(arguments.bundle))
    figures = result.to_dict(rows=False)
    if arguments.video is not None:
        make = _make_env(arguments, policy.contract, render_mode="rgb_array")
        if isinstance(policy, HierarchicalPolicy):
            from robot_bridge.subgoal_video import record_subgoals

            record_subgoals(policy, make, seeds[0], arguments.video)
        else:
            from rl_core.training.video import record_episode

            record_episode(policy, make, seeds[0], arguments.video)
        figures["video"] = str(arguments.video)
    if bag is not None:
        rows = bag.with_name(f"{bag.name.replace('bag', 'episodes', 1)}.json")
        rows.write_text(json.dumps(result.to_dict()["rows"], indent=1))
        figures |= {"bag": str(bag), "episodes_file": str(rows)}
        if any(name.startswith(PREFIX) for name in Bundle.load(arguments.bundle).arrays):
            from robot_bridge.motion_report import draw_certificates

            picture = rows.with_name(rows.name.replace("episodes", "certificate", 1)).with_suffix(".png")
            if draw_certificates(bag, picture) is not None:
                figures["certificate_file"] = str(picture)
    figures_table(f"{arguments.bundle} in {arguments.env or arguments.task}", figures)
    if arguments.json:
        emit_json(figures)
    return 0
