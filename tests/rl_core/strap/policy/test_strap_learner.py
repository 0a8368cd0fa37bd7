"""STRAP's policy and learner: the loss by hand, what acts, what a bundle keeps, and that it learns to do as it is told."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from tensordict import TensorDict

from rl_core.bundle import Bundle, BundleError
from rl_core.contract import ContractError, ContractMismatch
from rl_core.data.episode import Dataset, DatasetError
from rl_core.methods import load_policy, make_learner, make_source
from rl_core.models.gmm import GaussianMixture
from rl_core.strap.config import BCTransformerConfig
from rl_core.strap.learner import BCTransformerLearner, chunk_loss
from rl_core.strap.policy import ChunkPolicy
from rl_core.training.config import ConfigError
from rl_core.training.evaluation import evaluate
from rl_core.training.run import train
from tests.rl_core.strap.policy.test_chunk_windows import FROM_CORPUS
from tests.rl_core.strap.policy.told import CAMERA, CONTRACT, dataset, episode, with_camera

TINY = BCTransformerConfig.preset("cpu").override(layers=1, width=32, batch_size=16, image_width=4, keypoints=4, image_features=8)
TWO = dataset(
    episode(12, uuid="a", lang="go right", action=(0.5, 0.2)),
    episode(12, uuid="b", lang="go left", action=(-0.5, -0.2)),
)
"""Two tasks with the same observations, told apart by their instruction alone."""


def row(policy: ChunkPolicy, n: int = 1) -> TensorDict:
    shapes = {c.name: (n, c.history, *c.shape) for c in policy.contract.observation}
    values = {name: torch.zeros(shape, dtype=torch.uint8 if name == CAMERA.name else torch.float32) for name, shape in shapes.items()}
    return TensorDict(values, batch_size=[n])


def test_the_loss_is_the_mean_over_the_chunks_actions_inside_the_episode() -> None:
    """One component: the loss by hand is that of a Gaussian; every action of the chunk counts, padded ones do not."""
    means = torch.tensor([[[[0.1, 0.0]], [[0.2, 0.0]], [[0.3, 0.0]]]])  # (1, chunk 3, 1 component, 2)
    mixture = GaussianMixture(torch.zeros(1, 3, 1), means, torch.full((1, 3, 1, 2), 0.5))
    action = torch.tensor([[[0.1, 0.0], [0.7, 0.5], [9.0, 9.0]]])
    constant = 2 * (math.log(0.5) + 0.5 * math.log(2 * math.pi))
    by_hand = (constant + (constant + 0.5 * (0.5**2 + 0.5**2) / 0.25)) / 2
    assert chunk_loss(mixture, action, torch.tensor([[1.0, 1.0, 0.0]])).item() == pytest.approx(by_hand, rel=1e-6)
    later = action.clone()
    later[0, 1] += 0.1  # the second action is supervised too
    assert chunk_loss(mixture, later, torch.tensor([[1.0, 1.0, 0.0]])) > by_hand


def test_the_policys_contract_asks_for_a_history_and_gives_a_chunk() -> None:
    policy = make_learner("strap", TINY.override(execute=2), dataset(episode(12, lang="go"))).policy()
    assert [channel.history for channel in policy.contract.observation] == [5]
    assert (policy.contract.action.horizon, policy.contract.action.execute) == (5, 2)
    chunk, _ = policy.act(row(policy, 3), policy.prepare({}), policy.reset([0, 1, 2]))
    assert chunk.values.shape == (3, 5, 2) and chunk.execute == 2 and chunk.values.abs().max() <= 1
    with pytest.raises(ContractError, match=r"'position': shape \(1, 2\), valid: \(1, 5, 2\)"):
        policy.act(TensorDict({"position": torch.zeros(1, 2)}, [1]), policy.prepare({}), policy.reset([0]))
    past = dataclasses.replace(CONTRACT, observation=(dataclasses.replace(CONTRACT.observation[0], history=2),))
    with pytest.raises(ConfigError, match=r"a history in \['position'\], valid"):
        BCTransformerLearner(TINY, past, data=TWO)
    with pytest.raises(DatasetError, match="needs a dataset"):
        BCTransformerLearner(TINY, CONTRACT)


def test_low_noise_draws_lie_at_a_components_mean_one_component_a_chunk() -> None:
    policy = make_learner("bc_transformer", TINY, dataset(episode(12, lang="go"))).policy()
    mixture = policy.network(torch.zeros(1, 5, 2), {}, policy.prepare({})["language"].unsqueeze(0))
    policy.normalizer = None
    for seed in range(20):
        chunk, _ = policy.act(row(policy), policy.prepare({}), policy.reset([seed]))
        gaps = (chunk.values[0].unsqueeze(1) - mixture.means[0]).abs().amax(-1)  # (chunk, modes)
        assert gaps.min(1).values.max() < 6e-4
        assert len(set(gaps.argmin(1).tolist())) <= 2  # weights differ little from step to step, so the components hardly do
    different = {policy.act(row(policy), policy.prepare({}), policy.reset([seed]))[0].values[0, 0, 0].item() for seed in range(20)}
    assert len(different) == 20  # noise and component are the row's own


def fit(method: str, data: Dataset, updates: int, config: BCTransformerConfig = TINY):  # type: ignore[no-untyped-def]
    learner, source = make_learner(method, config, data), make_source(method, config, data)
    losses = [float(learner.update(source.next_batch())["loss/actor"]) for _ in range(updates)]
    return learner, losses


def test_two_tasks_that_differ_in_words_alone_are_told_apart() -> None:
    learner, losses = fit("bc_transformer", TWO, 300, TINY.override(lr=3e-3, warm_up=20))
    assert sum(losses[-20:]) / 20 < losses[0] - 2
    policy = learner.policy()
    assert policy.instructions == ("go left", "go right") and [channel.name for channel in policy.contract.condition] == ["task"]
    observed = row(policy, 4)
    observed["position"][..., 0] = torch.arange(3.0, 8.0)
    for said, expected in (("go right", (0.5, 0.2)), ("go left", (-0.5, -0.2))):
        chunk, _ = policy.act(observed, policy.prepare({"task": said}), policy.reset(range(4)))
        assert (chunk.values - torch.tensor(expected)).abs().max() < 0.1, said


def test_a_camera_is_seen_and_told_the_instruction() -> None:
    """Pictures alone say where the point is: the action is the position's sign, swapped by the instruction."""
    right = [episode(12, uuid=f"r{x}", first=x, lang="towards", action=(0.5 if x else -0.5, 0.0)) for x in (0, 16)]
    left = [episode(12, uuid=f"l{x}", first=x, lang="away", action=(-0.5 if x else 0.5, 0.0)) for x in (0, 16)]
    data = with_camera(dataset(*right, *left))
    seen = dataclasses.replace(data, contract=data.contract.select([CAMERA.name]))
    config = TINY.override(context=2, chunk=2, crop=1.0, image_width=8, keypoints=16, image_features=32, modes=1, warm_up=10)
    learner, losses = fit("bc_transformer", seen, 160, config)
    assert sum(losses[-10:]) / 10 < losses[0] - 1
    policy = learner.policy()
    for said, first in (("towards", 0.5), ("away", -0.5)):
        for x, sign in ((20, 1), (4, -1)):
            obs = row(policy)
            obs[CAMERA.name][:, :, :, 2 * x : 2 * x + 8] = 255
            chunk, _ = policy.act(obs, policy.prepare({"task": said}), policy.reset([0]))
            assert torch.sign(chunk.values[0, 0, 0]) == math.copysign(1, first * sign), (said, x)


class Line(gymnasium.Env):  # type: ignore[type-arg]
    """A point that actions move along x; ten steps."""

    contract = CONTRACT
    observation_space = gymnasium.spaces.Dict({"position": gymnasium.spaces.Box(-np.inf, np.inf, (2,))})
    action_space = gymnasium.spaces.Box(-1, 1, (2,))

    def reset(self, *, seed=None, options=None):  # type: ignore[no-untyped-def]
        self.position, self.steps = np.zeros(2, np.float32), 0
        return {"position": self.position.copy()}, {}

    def step(self, action):  # type: ignore[no-untyped-def]
        self.position[0] += 1.0
        self.steps += 1
        return {"position": self.position.copy()}, float(action[0]), False, self.steps == 10, {}


def test_in_process_a_policy_is_told_by_the_condition_of_the_evaluation() -> None:
    """The same rollouts as without instructions: a history a step, and the world need not offer a task that the caller gives."""
    learner, _ = fit("bc_transformer", TWO, 200, TINY.override(modes=1, lr=3e-3, warm_up=20))
    policy = learner.policy()
    for said, expected in (("go right", 5.0), ("go left", -5.0)):
        result = evaluate(policy, Line, [1_000_000, 1_000_001], condition={"task": said})
        assert result.return_mean == pytest.approx(expected, abs=0.5), said
    with pytest.raises(ContractMismatch, match="condition.task: needed"):
        evaluate(policy, Line, [1_000_000])


def test_a_bundle_acts_equally_without_an_encoder_and_keeps_every_instruction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = dataset(episode(12, uuid="t", lang="go right"), episode(20, uuid="p", lang="open", **FROM_CORPUS))
    learner, _ = fit("strap", with_camera(target), 3)
    folder = learner.bundle().save(tmp_path / "bundle")

    def refuse() -> None:
        raise AssertionError("a bundle needs no sentence encoder")

    monkeypatch.setattr("rl_core.strap.policy_instructions.sentence_encoder", refuse)
    policy, loaded = learner.policy(), load_policy(folder)
    assert Bundle.load(folder).method == "strap" and isinstance(loaded, ChunkPolicy)
    assert loaded.contract == policy.contract and loaded.instructions == ("go right", "open")
    for condition in ({}, {"task": "open"}):
        expected, _ = policy.act(row(policy, 2), policy.prepare(condition), policy.reset([1, 2]))
        found, _ = loaded.act(row(policy, 2), loaded.prepare(condition), loaded.reset([1, 2]))
        assert torch.equal(found.values, expected.values)
    damaged = dataclasses.replace(Bundle.load(folder), arrays={})
    with pytest.raises(BundleError, match="no instructions"):
        load_policy(damaged)


def test_dropout_and_crops_go_on_to_the_bit_after_a_resume(tmp_path: Path) -> None:
    data = with_camera(dataset(episode(12, lang="go")))
    config = TINY.override(dropout=0.2, crop=0.9, context=2, chunk=2)
    results = {}
    for name, first in (("whole", 6), ("cut", 3)):
        train("strap", data, tmp_path / name, config=config, trainer={"updates": first, "checkpoint_every": 3})
    results["whole"] = Bundle.load(tmp_path / "whole" / "bundle")
    train("strap", data, tmp_path / "cut", config=config, trainer={"updates": 6, "checkpoint_every": 3}, resume=True)
    results["cut"] = Bundle.load(tmp_path / "cut" / "bundle")
    assert all(torch.equal(results["whole"].weights[name], tensor) for name, tensor in results["cut"].weights.items())


def test_fine_tuning_starts_from_weights_and_statistics_and_takes_the_new_instructions(tmp_path: Path) -> None:
    before, _ = fit("strap", TWO, 5)
    folder = before.bundle().save(tmp_path / "bundle")
    new = make_learner("strap", TINY, dataset(episode(12, first=50, lang="stop", action=(0.0, 0.0))))
    new.init_from(Bundle.load(folder))
    assert all(torch.equal(a, b) for a, b in zip(new.network.state_dict().values(), before.network.state_dict().values(), strict=True))
    assert new.normalizer.to_dict() == before.normalizer.to_dict() and new.policy().instructions == ("stop",)
    assert all(parameter.requires_grad for parameter in new.network.parameters())
    wider = make_learner("strap", TINY.override(width=64), TWO)
    with pytest.raises(BundleError, match="does not fit the configuration"):
        wider.init_from(Bundle.load(folder))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"chunk": 6}, "chunk: 6, valid: at most 5"),
        ({"execute": 6}, "execute: 6, valid: at most 5"),
        ({"crop": 1.5}, "crop: 1.5, valid: at most 1"),
        ({"dropout": 1.0}, "dropout: 1.0, valid: below 1"),
        ({"width": 30}, r"width: 30, valid: a multiple of heads \(4\)"),
        ({"context": 0}, "context: 0, valid: 1 or more"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(changed: dict[str, float], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        BCTransformerConfig().override(**changed)


def test_pictures_too_small_for_key_points_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"'front_image': 32 x 58 pixels after the crop, valid: more than 32 a side"):
        make_learner("strap", TINY.override(crop=0.8), with_camera(TWO))


def test_the_default_is_the_papers_size() -> None:
    network = make_learner("strap", BCTransformerConfig(), dataset(episode(12, lang="go"))).network
    assert len(network.transformer.blocks) == 8 and network.transformer.positions.shape == (6, 256)
    assert network.head.linear.out_features == 5 * (2 * 2 + 1)
