"""Acting: the step is the rollout's, deviations are corrected without losing the latent state, actions mean what the contract says."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from tensordict import TensorDict

from rl_core.bundle import Bundle, BundleError
from rl_core.conditioned_policy import with_condition
from rl_core.contract import ContractError
from rl_core.contractive import Certificate, ContractiveLearner, ContractivePolicy
from rl_core.contractive.motion import motion_contract
from rl_core.methods import load_policy
from tests.rl_core.contractive.motions import ARM, PERIOD_S, PLANE, arm_dataset, plane_dataset, trained

NOTHING = TensorDict({}, [])


def follow(
    policy: ContractivePolicy,
    start: np.ndarray,
    steps: int,
    *,
    push: dict[int, np.ndarray] | None = None,
    lag: int = 0,
    share: float = 1.0,
) -> np.ndarray:
    """Raw positions (steps + 1, n, 2) of pens that go `share` of the way to where they are sent, `lag` periods late."""
    position, state, asked, path = start.copy(), policy.reset(range(len(start))), [start] * lag, [start.copy()]
    for step in range(steps):
        if push and step in push:
            position = position + push[step]
        chunk, state = policy.act(TensorDict({"position": torch.from_numpy(position)}, [len(start)]), NOTHING, state)
        asked.append(position + chunk.values[:, 0].numpy() * np.array(PLANE.action.scale) * PERIOD_S)
        position = position + share * (asked.pop(0) - position)
        path.append(position.copy())
    return np.stack(path)


@pytest.fixture(scope="module")
def learner() -> ContractiveLearner:
    return trained(plane_dataset(end=(100.0, 20.0)), 60)


def test_following_the_policy_is_the_rollout(learner: ContractiveLearner) -> None:
    """One step of the model is one period here: 24 periods, 25 points."""
    policy = learner.policy()
    assert policy.frame.period_steps == pytest.approx(1.0)
    starts = learner.demonstrations.states[:, 0].double().numpy() + np.array([[0.1, -0.05], [0.0, 0.1]])
    expected = policy.model.rollout(starts)[1] * policy.frame.units + [100.0, 20.0]
    found = follow(policy, starts * policy.frame.units + [100.0, 20.0], 24)
    np.testing.assert_allclose(found.swapaxes(0, 1), expected, atol=1e-3)  # mm; actions are float32


def test_rollout_of_training_is_that_of_the_policy(learner: ContractiveLearner) -> None:
    starts = learner.demonstrations.states[:, 0]
    with torch.no_grad():
        trained_rollout = learner.model.rollout(starts)[1]
    np.testing.assert_allclose(learner.policy().model.rollout(starts.double().numpy())[1], trained_rollout.numpy(), atol=1e-5)


def test_between_two_steps_of_the_model_the_policy_follows_the_chord() -> None:
    """Demonstrations with four periods a step of the model: every fourth point is the rollout's."""
    learner = trained(plane_dataset(steps=96), 30)
    policy = learner.policy()
    assert policy.frame.period_steps == pytest.approx(0.25)
    starts = learner.demonstrations.states[:, 0].double().numpy()
    expected = policy.model.rollout(starts)[1] * policy.frame.units
    found = follow(policy, starts * policy.frame.units, 96)
    np.testing.assert_allclose(found[::4].swapaxes(0, 1), expected, atol=2e-3)


def test_a_push_is_corrected_and_what_the_readout_does_not_show_is_kept(learner: ContractiveLearner) -> None:
    policy, start = learner.policy(), learner.demonstrations.states[:1, 0].double().numpy()
    raw = start * policy.frame.units + [100.0, 20.0]
    nominal = follow(policy, raw, 60)
    pushed = follow(policy, raw, 60, push={8: np.array([[0.0, 8.0]])})
    apart = np.linalg.norm(pushed - nominal, axis=-1)[:, 0]
    assert apart[8] == 0 and apart[9] > 1.5 and apart[-1] < 0.2 * apart[9]
    # The latent state after the push is changed by as little as its read-out being what is measured needs; then it goes on.
    state = policy.reset([0])
    for _ in range(3):
        _, state = policy.act(TensorDict({"position": torch.from_numpy(raw)}, [1]), NOTHING, state)
    before = state.tensors["current"].numpy()
    moved = raw + np.array([[0.0, 8.0]])
    _, after = policy.act(TensorDict({"position": torch.from_numpy(moved)}, [1]), NOTHING, state)
    model = policy.model
    seen = model.read(policy.frame.states(moved, policy.frame.goal(moved)))
    readout = learner.model.readout.detach().double().numpy()
    corrected = before + (seen - before @ readout.T) @ model.right_inverse.T
    np.testing.assert_allclose(corrected @ readout.T, seen)
    other = corrected + np.random.default_rng(0).normal(size=(1, 8)) @ (np.eye(8) - model.right_inverse @ readout).T
    assert np.linalg.norm(corrected - before) < np.linalg.norm(other - before)
    np.testing.assert_allclose(after.tensors["current"].numpy(), model.step(corrected), atol=1e-9)


def test_an_arm_that_answers_late_is_not_taken_for_a_pushed_one() -> None:
    """With the lag declared, the late arm draws the same motion, later; undeclared, each period's lateness slows the motion down."""
    learner = trained(plane_dataset(), 60)
    raw = learner.demonstrations.states[:1, 0].double().numpy() * learner.frame.units
    nominal = follow(learner.policy(), raw, 30)

    def late(lag: int) -> np.ndarray:
        config = learner.config.override(lag=lag)
        return follow(ContractivePolicy(config, learner.frame, learner.model), raw, 32, lag=2)

    np.testing.assert_allclose(late(2)[3:33], nominal[1:31], atol=1e-2)
    assert np.abs(late(0)[3:33] - nominal[1:31]).max() > 1.0


def test_how_an_arm_follows_is_not_fed_back() -> None:
    """A fault once: each period's lateness moved the latent state, came out amplified, was followed late again, and the arm swung."""
    learner = trained(plane_dataset(steps=48), 200)
    raw = learner.demonstrations.states[:1, 0].double().numpy() * learner.frame.units
    nominal = follow(learner.policy(), raw, 80)[:, 0]
    sluggish = follow(learner.policy(), raw, 80, share=0.74)[:, 0]
    beside = np.linalg.norm(sluggish[:, None] - nominal[None], axis=-1).min(axis=1)
    assert beside.max() < 0.04 * learner.frame.units[0]
    np.testing.assert_allclose(sluggish[-1], nominal[-1], atol=0.5)


def test_rows_that_begin_anew_leave_the_others_alone(learner: ContractiveLearner) -> None:
    policy = learner.policy()
    obs = TensorDict({"position": torch.tensor([[60.0, 20.0], [70.0, 30.0]])}, [2])
    _, state = policy.act(obs, NOTHING, policy.reset([0, 1]))
    fresh = policy.reset_rows(state, [1], [7])
    assert torch.equal(fresh.tensors["current"][0], state.tensors["current"][0])
    assert float(fresh.tensors["begun"][1]) == 0 and float(fresh.tensors["begun"][0]) == 1
    assert fresh.generators[0] is state.generators[0]


def test_the_bundle_acts_alike_and_carries_the_certificate(learner: ContractiveLearner, tmp_path: Path) -> None:
    bundle = Bundle.load(learner.bundle().save(tmp_path / "bundle"))
    obs = TensorDict({"position": torch.tensor([[60.0, 20.0]])}, [1])
    ours, loaded = learner.policy(), load_policy(bundle)
    assert torch.equal(ours.act(obs, NOTHING, ours.reset([0]))[0].values, loaded.act(obs, NOTHING, loaded.reset([0]))[0].values)
    certificate = Certificate.from_bundle(bundle)
    latent = np.ones((1, certificate.metric.shape[0]))
    np.testing.assert_allclose(loaded.model.energy(latent), [certificate.metric.sum()])  # V is told in the certificate's metric
    assert certificate.holds and certificate.promised == pytest.approx(1.1**-0.5)
    assert bundle.metrics["certificate/k_empirical"] <= bundle.metrics["certificate/k_theory"]
    bare = dataclasses.replace(bundle, arrays={name: v for name, v in bundle.arrays.items() if name != "certificate.metric"})
    with pytest.raises(BundleError, match="arrays .'certificate.metric'. are missing"):
        Certificate.from_bundle(bare)
    with pytest.raises(BundleError, match="motion.period_steps"):
        load_policy(dataclasses.replace(bundle, arrays={}))


def test_an_arms_state_is_its_tool_pose_relative_to_the_goal() -> None:
    """Positions are shifted by each demonstration's end, on one scale; orientations are rotation vectors relative to the goal's, in rad."""
    dataset = arm_dataset()
    learner = trained(dataset, 0)
    frame = learner.frame
    assert [channel.name for channel in frame.contract.observation] == ["eef_pos", "eef_quat"]
    assert frame.names == ("x", "y", "z", "rx", "ry", "rz") and frame.extra.tolist() == [6]
    states = learner.demonstrations.states.numpy()
    np.testing.assert_allclose(states[:, -1], 0.0, atol=1e-5)
    assert np.linalg.norm(states[..., :3], axis=-1).max() == pytest.approx(1.0, abs=1e-3)
    np.testing.assert_allclose(states[:, 0, 3:], [[0, 0, 0.6]] * 3, atol=1e-4)  # rad
    assert frame.units[3:].tolist() == [1.0] * 3


def test_an_arms_action_leads_the_tool_to_the_next_pose_as_a_delta_is_decoded() -> None:
    """Position: p + d; orientation: exp(r) R, in the base frame, as `ActionDecoder` does."""
    dataset = arm_dataset()
    learner = trained(dataset, 20)
    policy = learner.policy()
    position = np.array([[0.35, 0.05, 0.25]], np.float32)
    turn = Rotation.from_rotvec([0.1, -0.2, 0.5]) * Rotation.from_rotvec([np.pi, 0, 0])
    obs = TensorDict({"eef_pos": torch.from_numpy(position), "eef_quat": torch.tensor(turn.as_quat()[None]).float()}, [1])
    chunk, state = policy.act(obs, NOTHING, policy.reset([0]))
    delta = chunk.values[0, 0].numpy().astype(np.float64) * np.array(ARM.action.scale)
    reached, turned = position + delta[:3], Rotation.from_rotvec(delta[3:6]) * turn
    wanted, _ = policy.model.decode(
        state.tensors["current"].numpy() + state.tensors["phase"].numpy() * (state.tensors["following"] - state.tensors["current"]).numpy()
    )
    raw = np.concatenate([reached, turned.as_quat()[None]], axis=1)
    np.testing.assert_allclose(policy.frame.states(raw, policy.frame.goal(raw)), wanted, atol=1e-4)
    assert abs(chunk.values[0, 0, 6]) <= 1


def test_the_gripper_is_read_out_of_the_latent_state() -> None:
    learner = trained(arm_dataset(), 120, horizon=15, jitter_copies=0)
    with torch.no_grad():
        latent, _ = learner.model.rollout(learner.demonstrations.states[:, 0])
        right = (learner.model.extra(latent).sign() == learner.demonstrations.extra.sign()).float().mean()
    assert right > 0.9


def test_a_goal_channel_moves_the_whole_motion_with_the_object() -> None:
    """The same policy ends at the object wherever it lies, also when the object is given as a condition."""
    learner = trained(arm_dataset(), 40, goal_channel="cube_pos")
    bundle = with_condition(learner.bundle(), ["cube_pos"])
    policy = load_policy(bundle)
    turn = torch.tensor(Rotation.from_rotvec([np.pi, 0, 0]).as_quat()[None]).float()
    chunks = []
    for cube in (np.array([0.5, 0.0, 0.02]), np.array([0.3, 0.2, 0.1])):
        obs = TensorDict({"eef_pos": torch.from_numpy(cube + [-0.15, 0.05, 0.2]).float().unsqueeze(0), "eef_quat": turn}, [1])
        chunks.append(policy.act(obs, policy.prepare({"cube_pos": cube}), policy.reset([0]))[0].values)
    torch.testing.assert_close(chunks[0], chunks[1], atol=1e-4, rtol=0)
    assert learner.frame.goal(np.array([[0.0] * 7 + [0.5, 0.0, 0.02]]))[0, 2] == pytest.approx(0.03, abs=1e-4)  # 1 cm above the cube


def test_a_state_that_moves_nothing_is_refused() -> None:
    with pytest.raises(ContractError, match="no action of .* is moved by the state"):
        motion_contract(dataclasses.replace(ARM.select(["joint_pos"])))
    with pytest.raises(ContractError, match="cubepos"):
        motion_contract(ARM, "cubepos")
