import json

import numpy as np
import pytest
import torch

from rl_core.bundle import Bundle, bundle_sha256
from rl_core.data.replay import ReplayBuffer
from rl_core.dvfb.inference import InferenceError
from rl_core.dvfb.policy import policy_from_bundle
from rl_core.dvfb.pretraining import pretrain
from rl_core.dvfb.sampler import LaterSampler
from rl_core.dvfb.solving import make_goal_policy, solve, solve_by_interaction
from rl_core.dvfb.states import CarriedStates
from rl_core.training.config import ConfigError
from rl_core.training.evaluation import evaluate
from rl_core.training.metrics import read_metrics
from rl_core.training.sources import transition_columns
from rl_core.training.trainer import Trainer
from tests.rl_core.dvfb.conftest import WORLD
from tests.rl_core.dvfb.small import CONTRACT, SMALL, PointWorld, left


def run(folder, *, updates: int = 60, resume: bool = False, **options):
    overrides = {**SMALL, **options.pop("overrides", {})}
    trainer = {"updates": updates, "log_every": 20, "checkpoint_every": 10}
    return pretrain("dvfb", WORLD, folder, overrides=overrides, trainer=trainer, resume=resume, eval_episodes=2, **options)


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    return run(tmp_path_factory.mktemp("dvfb") / "run").bundle


def test_the_bundle_carries_different_states_without_rewards(pretrained):
    bundle = Bundle.load(pretrained)
    states = CarriedStates.from_bundle(bundle)
    assert len(states) == 100 and not any("reward" in name for name in bundle.arrays)
    assert len(torch.unique(states.next_observation, dim=0)) == 100
    torch.testing.assert_close(states.next_observation[:, 1:], (states.observation[:, 1:] + 0.1 * states.action).clamp(-1, 1))


def test_rewards_never_reach_the_replay(pretrained):
    replay = ReplayBuffer.load(pretrained.parent / "replay")
    rows = replay.gather(np.arange(len(replay)))
    assert len(replay) >= 60 * 2 and not rows["reward"].any()  # PointWorld's own reward is 1 at every step


def test_zero_shot_returns_are_logged_for_each_named_reward(tmp_path):
    run(tmp_path / "run", updates=20, rewards=("left", "still"))
    last = list(read_metrics(tmp_path / "run"))[-1]
    assert last["eval/return_mean"] == pytest.approx((last["eval/left_return"] + last["eval/still_return"]) / 2)
    assert 0 <= last["eval/left_return"] <= 20 and -60 <= last["eval/still_return"] <= -20
    with pytest.raises(ConfigError, match="reward 'right', valid: left, still, never"):
        run(tmp_path / "other", rewards=("right",))
    with pytest.raises(ConfigError, match="none, the world offers no rewards"):
        pretrain("dvfb", "Pendulum-v1", tmp_path / "third", overrides=SMALL, rewards=("left",))


def test_a_reward_that_no_state_has_yet_ends_no_training(tmp_path):
    run(tmp_path / "run", updates=20, rewards=("left", "never"))
    last = list(read_metrics(tmp_path / "run"))[-1]
    assert last["eval/unseen_tasks"] == 1 and "eval/never_return" not in last and last["eval/return_mean"] == last["eval/left_return"]


def test_the_replay_is_kept_whole_though_the_last_checkpoint_is_older(tmp_path):
    run(tmp_path / "run", updates=27)  # ends within an episode of 20 steps
    assert ReplayBuffer.load(tmp_path / "run" / "replay").added >= 40 + 27 * 2 - 1


def test_methods_that_need_rewards_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="armstack train"):
        pretrain("sac", WORLD, tmp_path)


@pytest.mark.parametrize("options", [{}, {"n_envs": 3}, {"goal": "pair_compat", "n_envs": 2}, {"goal_channels": ["position"]}], ids=str)
def test_resume_is_resume(tmp_path, monkeypatch, options):
    whole = run(tmp_path / "whole", overrides=options)
    loop = Trainer._loop

    def stop_early(self, step, metrics_log, progress):
        if step == 0:
            self.stop()
        return loop(self, step, metrics_log, progress)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_loop", stop_early)
        cut = run(tmp_path / "cut", overrides=options)
    assert not cut.finished and 0 < cut.step < 60
    resumed = run(tmp_path / "cut", overrides=options, resume=True)
    assert resumed.finished
    assert bundle_sha256(resumed.bundle) == bundle_sha256(whole.bundle)


def test_a_solved_task_acts_alone_and_names_its_parent(pretrained, tmp_path):
    solution = solve(pretrained, tmp_path / "left", reward=left)
    bundle = Bundle.load(solution.bundle)
    assert bundle.parents == (bundle_sha256(pretrained),) and solution.states == 100
    assert torch.equal(bundle.arrays["skill"], solution.skill)
    assert evaluate(policy_from_bundle(bundle), lambda: PointWorld(reward="left"), [1_000_000]).episodes == 1
    assert torch.equal(solve(pretrained, tmp_path / "again", reward=left).skill, solution.skill)
    with pytest.raises(InferenceError, match="either a reward or a goal"):
        solve(pretrained, tmp_path / "none")


def test_a_pose_file_is_a_goal(pretrained, tmp_path):
    place = Bundle.load(pretrained).arrays["states.next_observation"][7, 1:].tolist()
    pose = json.loads(json.dumps({"channel": "position", "position": place, "radius": 0.05}))
    told = policy_from_bundle(Bundle.load(make_goal_policy(pretrained, tmp_path / "goal", "position")))
    solution = solve(pretrained, tmp_path / "pose", goal={**pose, "radius": 0.02})
    assert torch.equal(solution.skill, told.prepare({"goal_position": place})["skill"])
    for wrong in ({"channel": "position"}, {**pose, "z": 1}, {**pose, "position": "here"}, {**pose, "radius": 0}):
        with pytest.raises(InferenceError, match="valid"):
            solve(pretrained, tmp_path / "wrong", goal=wrong)


def test_a_task_is_solved_from_rewards_that_a_world_gives(pretrained, tmp_path):
    """The authors' protocol: random actions first, then the policy with a new z every step; rewards are the world's."""
    made = []

    def make_env():
        made.append(PointWorld(reward="left"))
        return made[-1]

    solution = solve_by_interaction(pretrained, tmp_path / "task", make_env, steps=130, random_steps=50)
    assert solution.states == 130 and len(made) == 1
    assert solution.skill.norm().item() == pytest.approx(2.0, abs=1e-5)
    again = solve_by_interaction(pretrained, tmp_path / "again", make_env, steps=130, random_steps=50)
    assert torch.equal(again.skill, solution.skill)


@pytest.mark.parametrize("stride", [1, 2])
def test_the_later_state_is_the_worlds_own_and_of_the_same_episode(stride):
    replay = ReplayBuffer(60, transition_columns(CONTRACT))
    for step in range(40):  # `stride` worlds in turn, episodes of 5 steps, states count their steps
        for world in range(stride):
            now = 1000.0 * world + 100 * (step // 5) + step % 5
            replay.add(observation=[now] * 3, action=[0, 0], reward=0, terminal=0, next_observation=[now + 1] * 3)
    batch = LaterSampler(replay, stride=stride, batch_size=400, seed=0).next_batch()
    last = batch["observation"][:, 0] % 100 == 4
    expected = torch.where(last.unsqueeze(-1), batch["next_observation"], batch["next_observation"] + 1)
    newest = batch["next_observation"][:, 0] % 1000 > 735  # nothing is known after the newest row
    assert torch.equal(batch["later_observation"][~newest], expected[~newest]) and 0 < last.sum() < 400
