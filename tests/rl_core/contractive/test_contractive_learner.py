"""Training: what the command line does with the real handwriting, resume, the picture, unequal durations, and that it learns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from rl_core.bundle import Bundle
from rl_core.contractive import ContractiveConfig, ContractiveLearner
from rl_core.contractive.evaluation import judge
from rl_core.contractive.learner import _rest
from rl_core.contractive.numpy_model import NumpyModel
from rl_core.data.episode import DatasetError
from rl_core.data.formats import read_dataset
from rl_core.methods import make_source
from rl_core.training.run import train
from tests.rl_core.contractive.motions import PLANE, arm_dataset, plane_dataset, trained

TINY = {"latent": 6, "horizon": 12, "blocks": 1, "block_width": 4, "jitter_copies": 1, "jitter_skip": 2, "lr_decay_steps": 8}


def test_n_and_n_equals_2n_on_the_real_handwriting(tmp_path: Path) -> None:
    """As `armstack train contractive --dataset lasa:Sine` runs it; a finished run made longer goes on to the bit, jitter included."""
    options = {"overrides": TINY, "preset": "cpu"}
    train("contractive", read_dataset("lasa:Sine"), tmp_path / "whole", trainer={"updates": 8}, **options)
    train("contractive", read_dataset("lasa:Sine"), tmp_path / "cut", trainer={"updates": 4}, **options)
    train("contractive", read_dataset("lasa:Sine"), tmp_path / "cut", trainer={"updates": 8}, resume=True, **options)
    whole, cut = (Bundle.load(tmp_path / name / "bundle") for name in ("whole", "cut"))
    assert whole.weights.keys() == cut.weights.keys()
    assert all(torch.equal(whole.weights[name], cut.weights[name]) for name in whole.weights)
    assert (tmp_path / "whole" / "motion.png").stat().st_size > 5_000
    assert {"certificate/k_theory", "certificate/bound_worst", "loss/bc"} <= whole.metrics.keys()


def test_it_learns_a_motion_and_comes_back_from_starts_beside_it() -> None:
    learner = trained(plane_dataset(episodes=1), 250, latent=12, c=1.3, jitter_copies=3)
    model, demos = NumpyModel(learner.model.double()), learner.demonstrations.states.double().numpy()
    figures = judge(lambda starts: model.rollout(starts)[1], demos, seed=0)
    assert figures["mse"] < 6e-3
    assert figures["oos_mse_0.2"] < 2e-2 and figures["contracted_20_0.2"] < 0.5
    assert figures["diverging_share_0.2"] == 0


@pytest.mark.parametrize("loss", ["mse", "soft_dtw"])
def test_demonstrations_of_other_durations_are_stretched_or_compared_by_soft_dtw(loss: str) -> None:
    learner = trained(arm_dataset(), 2, loss=loss, horizon=14, jitter_copies=1)
    points = learner.demonstrations.points.tolist()
    assert points == ([14, 14, 14] if loss == "mse" else [12, 13, 14])
    source = make_source("contractive", learner.config, arm_dataset())
    assert all(torch.isfinite(value) for value in learner.update(source.next_batch()).values())


def test_batches_hold_every_demonstration_once_an_epoch() -> None:
    dataset = plane_dataset(episodes=5)
    config = ContractiveConfig(batch_size=2)
    source = make_source("contractive", config, dataset, seed=1)
    heights = [batch["observation"][:, 12, 1].tolist() for batch in (source.next_batch() for _ in range(6))]
    epochs = [sum(heights[:3], []), sum(heights[3:], [])]
    assert [len(batch) for batch in heights] == [2, 2, 1, 2, 2, 1]
    assert sorted(epochs[0]) == sorted(epochs[1]) and len(set(epochs[0])) == 5 and epochs[0] != epochs[1]
    # a resumed source goes on in the middle of an epoch
    source.next_batch()
    state = source.state_dict()
    following = source.next_batch()["observation"]
    again = make_source("contractive", config, dataset, seed=9)
    again.load_state_dict(state)
    assert torch.equal(again.next_batch()["observation"], following)
    with pytest.raises(DatasetError, match="run over 5 episodes, this dataset has 3"):
        make_source("contractive", config, plane_dataset(episodes=3)).load_state_dict(state)


def test_jitter_is_drawn_anew_in_each_update_and_leaves_the_demonstrated_starts_alone() -> None:
    learner = trained(plane_dataset(), 0)
    rollouts: list[torch.Tensor] = []
    whole = learner.model.rollout

    def record(start: torch.Tensor):
        rollouts.append(start.clone())
        return whole(start)

    learner.model.rollout = record  # type: ignore[method-assign]
    source = make_source("contractive", learner.config, plane_dataset())
    for _ in range(2):
        learner.update(source.next_batch())
    demonstrated = learner.demonstrations.states[:, 0]
    first, second = rollouts
    assert torch.equal(first[:2], demonstrated) and torch.equal(second[:2], demonstrated)
    offsets = (first[2:] - demonstrated.repeat(2, 1)).abs()
    assert 0 < offsets.max() <= 0.2 and not torch.equal(first[2:], second[2:])


def test_pushes_on_the_way_are_drawn_anew_in_each_update() -> None:
    learner = trained(plane_dataset(), 0, push_copies=4)
    latent = learner.model.rollout(learner.demonstrations.states[:, 0])[0].detach()
    (first, of, when), (second, _, later) = learner._push(latent), learner._push(latent)
    assert of.tolist() == [0, 1] * 4 and len(set(when.tolist())) > 2 and not torch.equal(when, later)
    aside = learner.model.decode(first) - learner.model.decode(latent[of, when])
    assert 0.05 < aside.abs().max() <= 0.2 + 1e-5
    assert not torch.equal(first, second)


def test_a_motion_is_compared_with_what_is_left_of_the_demonstration_after_the_push() -> None:
    """A push of no size goes on along the motion itself: and its targets are the rest of the demonstration."""
    learner = trained(plane_dataset(), 0, jitter=0.0, jitter_skip=3, push_copies=2)
    demos = learner.demonstrations
    with torch.no_grad():
        latent, states = learner.model.rollout(demos.states[:, 0])
        begun, of, when = learner._push(latent)
        going_on = learner.model.go_on(begun)[1][:, 3:]
    rest = _rest(demos, of, when, 3)
    for row in range(4):
        motion, left = int(of[row]), max(states.shape[1] - 3 - int(when[row]), 0)
        torch.testing.assert_close(going_on[row, :left], states[motion, 3 + int(when[row]) :], atol=1e-4, rtol=1e-4)
        assert torch.equal(rest.states[row, :left], demos.states[motion, 3 + int(when[row]) :])
        assert (rest.states[row, left:] == demos.states[motion, -1]).all() and rest.states.shape[1] == states.shape[1] - 3


def test_pushes_change_the_training_and_name_their_loss() -> None:
    # One update: the jitter is the same, so only the term itself can make a difference.
    with_pushes, without = (trained(plane_dataset(), 1, push_copies=copies, end_weight=0.0) for copies in (2, 0))
    assert not torch.equal(with_pushes.model.readout, without.model.readout)
    source = make_source("contractive", with_pushes.config, plane_dataset())
    metrics = with_pushes.update(source.next_batch())
    assert metrics["loss/pushed"] > 0 and metrics["loss/jittered"] > 0


def test_without_demonstrations_there_is_no_goal() -> None:
    with pytest.raises(DatasetError, match="give `data`"):
        ContractiveLearner(ContractiveConfig(), PLANE)


def test_it_starts_from_a_bundle() -> None:
    bundle = trained(plane_dataset(), 3).bundle()
    learner = trained(plane_dataset(), 0)
    learner.init_from(bundle)
    assert all(torch.equal(value, bundle.weights[name]) for name, value in learner.model.state_dict().items())


def test_it_trains_without_a_bijection() -> None:
    learner = trained(plane_dataset(), 3, blocks=0)
    policy = learner.policy()
    starts = learner.demonstrations.states[:, 0].double().numpy()
    np.testing.assert_allclose(policy.model.read(starts), starts, atol=1e-12)  # read-outs are states
    np.testing.assert_allclose(policy.model.rollout(starts)[1][:, 0], starts, atol=1e-12)
    assert learner.bundle().metrics["certificate/gain"] > 0


def test_the_end_weight_brings_motions_to_their_goal() -> None:
    ends = []
    for weight in (0.0, 10.0):
        learner = trained(plane_dataset(), 60, end_weight=weight)
        states = learner.policy().model.rollout(learner.demonstrations.states[:, 0].double().numpy())[1]
        ends.append(float(np.linalg.norm(states[:, -1], axis=1).mean()))
    assert ends[1] < 0.5 * ends[0], ends
