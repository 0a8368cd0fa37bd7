"""One policy for every arm: it learns from a proportional expert to bring a hand to a goal pose.

python examples/goal_reaching.py [FOLDER]
armstack launch arm_policy arm:=simulated bundle:=FOLDER/bundle     # then publish a PoseStamped in frame base on goal_pose
"""

from rl_core.example import running, take_interrupts

if __name__ == "__main__":
    take_interrupts()  # what follows takes seconds to import

import dataclasses
import sys
from pathlib import Path

import numpy as np
import torch
from tensordict import TensorDict

from rl_core.bundle import Bundle
from rl_core.conditioned_policy import with_condition
from rl_core.data.episode import Dataset, Episode
from rl_core.methods import load_policy
from rl_core.training.run import train
from robot_bridge.control.any_arm import GOAL, any_arm_contract
from robot_bridge.control.rotation import from_rotation_vector, inverse, multiply, to_rotation_vector
from sim_envs.arm.observation import world_contract

LOW, HIGH = np.array([0.15, -0.3, 0.05]), np.array([0.65, 0.3, 0.7])  # of starts and goals, metres, frame base: inside all arms' reach
TURN, STEPS = 0.6, 30  # a goal is turned by at most TURN rad from the start; STEPS actions an episode
OPEN = -1.0
OWN = any_arm_contract(world_contract("reach"))
CONTRACT = dataclasses.replace(OWN, robot="any_arm", observation=(*OWN.observation, *GOAL))
POSITION_STEP, ROTATION_STEP = OWN.action.scale[0], OWN.action.scale[3]  # m and rad of an action of 1


def expert(position, quaternion, goal, goal_quaternion):
    """Half of what is left, straight, at most 2 cm and 0.1 rad a step."""
    move = 0.5 * (goal - position) / POSITION_STEP
    turn = 0.5 * to_rotation_vector(multiply(goal_quaternion, inverse(quaternion))) / ROTATION_STEP
    limited = [v * min(1.0, most / max(np.linalg.norm(v), 1e-9)) for v, most in ((move, 0.4), (turn, 0.2))]
    return np.concatenate([*limited, [OPEN]])


def follow(position, quaternion, action):
    """A hand that goes where it is asked to: what inverse kinematics and command filter make of an action, without their delay."""
    turned = multiply(from_rotation_vector(ROTATION_STEP * action[3:6]), quaternion)
    return position + POSITION_STEP * action[:3], turned / np.linalg.norm(turned)


def near(rng, quaternion, angle):
    """`quaternion`, turned by up to `angle` rad about any axis."""
    axis = rng.standard_normal(3)
    return multiply(from_rotation_vector(rng.uniform(0, angle) * axis / np.linalg.norm(axis)), quaternion)


def demonstration(rng) -> Episode:
    """From anywhere to a goal within reach of the episode; what is done is noisy, what is recorded is what the expert would do."""
    position, quaternion = rng.uniform(LOW, HIGH), near(rng, np.array([0.0, 0.0, 0.0, 1.0]), np.pi)
    goal = np.clip(position + rng.uniform(0, 0.5) * rng.uniform(-1, 1, 3), LOW, HIGH)
    goal_quaternion = near(rng, quaternion, TURN)
    signs = rng.choice([-1.0, 1.0], 2)  # q and -q are the same orientation, and arms send either
    poses, actions = [(position, quaternion)], []
    for _ in range(STEPS):
        actions.append(expert(*poses[-1], goal, goal_quaternion))
        poses.append(follow(*poses[-1], np.clip(actions[-1] + np.append(0.1 * rng.standard_normal(6), 0.0), -1, 1)))
    openings = rng.uniform(0, 1) + np.zeros((STEPS + 1, 1))
    distances = [float(np.linalg.norm(goal - position)) for position, _ in poses[1:]]
    values = {
        "eef_pos": np.array([p for p, _ in poses]),
        "eef_quat": signs[0] * np.array([q for _, q in poses]),
        "gripper_opening": openings,
        "goal_pos": np.tile(goal, (STEPS + 1, 1)),
        "goal_quat": np.tile(signs[1] * goal_quaternion, (STEPS + 1, 1)),
    }
    return Episode(
        observations={name: value.astype(np.float32) for name, value in values.items()},
        actions=np.array(actions, np.float32),
        rewards=-np.array(distances, np.float32),
        terminal=False,
        truncated=True,
        stamps_ns=np.arange(STEPS + 1) * 50_000_000,
        success=distances[-1] < 0.01,
    )


def main(folder: Path, updates: int = 10_000, episodes: int = 1500) -> Path:
    """Trains; returns the bundle."""
    rng = np.random.default_rng(0)
    dataset = Dataset(contract=CONTRACT, episodes=tuple(demonstration(rng) for _ in range(episodes)))
    faster = {"batch_size": 256, "lr": 2e-3}
    result = train("bc", dataset, folder / "run", preset="cpu", overrides=faster, trainer={"updates": updates}, resume=True)
    if result.bundle is None:  # Ctrl-C
        raise SystemExit(result.exit_code)
    return with_condition(Bundle.load(result.bundle), [channel.name for channel in GOAL]).save(folder / "bundle")


def judge(bundle: Path, episodes: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Distance (n,), m, and angle (n,), rad, from the goal after 100 actions, for starts and goals it was not trained on."""
    policy, rng = load_policy(bundle), np.random.default_rng(1)
    left = []
    for _ in range(episodes):
        start = demonstration(rng)
        position, quaternion, goal, goal_quaternion = (
            start.observations[name][0].astype(np.float64) for name in ("eef_pos", "eef_quat", "goal_pos", "goal_quat")
        )
        condition, state = policy.prepare({"goal_pos": goal, "goal_quat": goal_quaternion}), policy.reset([0])
        for _ in range(100):
            seen = {"eef_pos": position, "eef_quat": quaternion, "gripper_opening": np.ones(1)}
            chunk, state = policy.act(
                TensorDict({k: torch.tensor(v, dtype=torch.float32)[None] for k, v in seen.items()}, [1]), condition, state
            )
            position, quaternion = follow(position, quaternion, chunk.values[0, 0].double().numpy())
        turn = to_rotation_vector(multiply(goal_quaternion, inverse(quaternion)))
        left.append((np.linalg.norm(goal - position), np.linalg.norm(turn)))
    return tuple(np.array(left).T)


if __name__ == "__main__":
    with running():
        made = main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/goal_reaching"))
        distances, angles = judge(made)
        print(f"from the goal after 5 s: {1000 * np.median(distances):.1f} mm, {np.median(angles):.3f} rad;", end=" ")
        print(f"at most {1000 * distances.max():.1f} mm, {angles.max():.2f} rad; the bundle is {made}")
