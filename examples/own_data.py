"""Your own robot, your own arrays: build a dataset, write it, clone it, act. Run: python examples/own_data.py [FOLDER]"""

from rl_core.example import running, take_interrupts

if __name__ == "__main__":
    take_interrupts()  # what follows takes seconds to import

import sys
from pathlib import Path

import numpy as np
import torch
from tensordict import TensorDict

from rl_core.contract import Action, Channel, RobotContract
from rl_core.data.episode import Dataset, Episode
from rl_core.data.formats import write_dataset
from rl_core.methods import load_policy
from rl_core.training.run import train

JOINTS = ("shoulder", "elbow")
CONTRACT = RobotContract(
    robot="two_link",
    observation=(
        Channel(name="joint_pos", names=JOINTS, unit="rad", rate_hz=50, max_age_s=0.1),
        Channel(name="goal_pos", names=JOINTS, unit="rad", rate_hz=50, max_age_s=0.1),
    ),
    # A policy value of 1 moves a joint by 0.05 rad in one period of 20 ms.
    action=Action(names=JOINTS, meaning="delta", space="joint", scale=(0.05, 0.05), units=("rad", "rad"), period_s=0.02),
)


def demonstration(rng: np.random.Generator) -> Episode:
    """Moves to a random goal by half of what is left, at most a full step, for 40 periods."""
    position, goal = rng.uniform(-1, 1, 2), rng.uniform(-1, 1, 2)
    positions, actions = [position], []
    for _ in range(40):
        action = np.clip(0.5 * (goal - positions[-1]) / 0.05, -1, 1)
        actions.append(action)
        positions.append(positions[-1] + 0.05 * action)
    distances = np.abs(goal - np.array(positions[1:])).max(axis=1)
    return Episode(
        observations={"joint_pos": np.array(positions, np.float32), "goal_pos": np.tile(goal, (41, 1)).astype(np.float32)},
        actions=np.array(actions, np.float32),
        rewards=-distances.astype(np.float32),
        terminal=False,
        truncated=True,
        stamps_ns=np.arange(41) * 20_000_000,
        success=bool(distances[-1] < 0.02),
    )


def main(folder: Path) -> float:
    """Returns the largest distance to the goal after 40 periods, rad."""
    rng = np.random.default_rng(0)
    dataset = Dataset(contract=CONTRACT, episodes=tuple(demonstration(rng) for _ in range(40)))
    write_dataset(dataset, folder / "reach.hdf5")
    result = train("bc", folder / "reach.hdf5", folder / "run", preset="cpu", trainer={"updates": 1500}, resume=True)
    if result.bundle is None:  # Ctrl-C
        raise SystemExit(result.exit_code)
    policy = load_policy(result.bundle)
    position, goal = torch.tensor([[0.8, -0.8]]), torch.tensor([[-0.5, 0.5]])
    state, nothing = policy.reset([0]), policy.prepare({})
    for _ in range(40):
        chunk, state = policy.act(TensorDict({"joint_pos": position, "goal_pos": goal}, [1]), nothing, state)
        position = position + 0.05 * chunk.values[:, 0]
    return float((goal - position).abs().max())


if __name__ == "__main__":
    with running():
        target = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/own_data")
        print(f"{main(target):.3f} rad from the goal after 40 steps; the bundle is in {target / 'run/bundle'}")
