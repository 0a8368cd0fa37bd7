"""Demonstrations that others recorded, as the commands read them."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import mujoco
import numpy as np
import pytest

from rl_core.data.replay import ReplayBuffer
from robot_bridge.demonstrations import read_demonstrations
from sim_envs.arm.observation import world_contract
from sim_envs.robosuite_tasks import RobosuiteEnv
from tests.robot_bridge.command_line import TINY_BC, Cli

OSC_POSE = {"type": "OSC_POSE", "input_max": 1, "output_max": [0.05, 0.05, 0.05, 0.5, 0.5, 0.5], "input_type": "delta"}
STEPS = 6


@pytest.fixture(scope="module")
def states_only(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, np.ndarray]], np.ndarray]:
    """A file as robosuite's `collect_human_demonstrations.py` leaves it; what was seen before each action; the actions."""
    path, env = tmp_path_factory.mktemp("robosuite") / "demo.hdf5", RobosuiteEnv("Lift", horizon=30)
    actions = np.random.default_rng(0).uniform(-1, 1, (STEPS, 7))
    seen, states = [], []
    observation, _ = env.reset(seed=0)
    sim = env._world.sim
    mujoco.MjModel.from_xml_string(env._world.model.get_xml())  # get_xml gives what MuJoCo loaded last
    xml = sim.model.get_xml()
    for action in actions:
        seen.append(observation)
        states.append(sim.get_state().flatten())
        observation, *_ = env.step(action)
    env.close()
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs.update({"date": "1-2-2025", "repository_version": "1.5.2", "env": "Lift"})
        controllers = {"type": "BASIC", "body_parts": {"right": OSC_POSE}}
        data.attrs["env_info"] = json.dumps({"env_name": "Lift", "robots": "Panda", "controller_configs": controllers})
        demo = data.create_group("demo_1")
        demo["states"], demo["actions"] = np.array(states), actions
        demo.attrs["model_file"] = xml
    return path, seen, actions


def test_states_alone_become_the_observations_that_were_seen(states_only) -> None:
    path, seen, actions = states_only
    dataset = read_demonstrations(path)
    (episode,) = dataset.episodes
    assert len(episode) == STEPS - 1  # the state after the last action isn't in the file
    np.testing.assert_allclose(episode.actions, actions[: STEPS - 1], rtol=1e-6)
    for name, values in episode.observations.items():
        np.testing.assert_allclose(values, [row[name] for row in seen], atol=1e-6)
    assert episode.truncated and not episode.terminal and "note" not in episode.meta


def test_states_alone_fit_the_native_world_and_can_be_trained_on(states_only, cli: Cli, tmp_path: Path) -> None:
    path, *_ = states_only
    dataset = read_demonstrations(path)
    dataset.contract.accepts(world_contract("lift", "ee_delta"))
    assert len(ReplayBuffer.from_dataset(dataset, dataset.contract)) == STEPS - 1
    assert cli("train", "bc", "--dataset", path, "--run-dir", tmp_path, *TINY_BC, "--updates", 2).status == 0
    assert cli("eval", tmp_path / "bundle", "--episodes", 1, "--horizon", 2, "--json").figures["episodes"] == 1


def test_the_demo_says_that_states_alone_hold_no_rewards(states_only, cli: Cli, tmp_path: Path) -> None:
    path, *_ = states_only
    outcome = cli("demo", "--dataset", path, "--out", tmp_path)
    assert outcome.status == 2 and str(path) in outcome.err and "rewards" in outcome.err and "observation '" not in outcome.err
