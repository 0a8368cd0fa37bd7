import torch
from tensordict import TensorDict

from rl_core.baselines.diffusion_bc import DiffusionBCConfig, DiffusionBCLearner
from rl_core.contract import Action, Channel, RobotContract
from rl_core.methods import load_policy

CONTRACT = RobotContract(
    robot="test",
    observation=(Channel(name="side", names=("s",)),),
    action=Action(names=("x",), meaning="absolute", space="joint", scale=(1.0,), units=("rad",)),
)
NOTHING = TensorDict({}, [])


def make_learner(seed: int = 0) -> DiffusionBCLearner:
    config = DiffusionBCConfig.preset("cpu").override(diffusion_steps=20, hidden=(64, 64, 64), lr=3e-3, normalize_observations=False)
    return DiffusionBCLearner(config, CONTRACT, seed=seed)


def batches(count: int, start: int = 0):
    """Two modes at +-0.5, shifted by the observation, std 0.1."""
    for index in range(start, start + count):
        generator = torch.Generator().manual_seed(index)
        side = (torch.rand(128, 1, generator=generator) < 0.5).float()
        mode = (torch.rand(128, 1, generator=generator) < 0.5).float() - 0.5
        yield TensorDict({"observation": side, "action": mode + 0.3 * side + 0.1 * torch.randn(128, 1, generator=generator)}, [128])


def test_both_modes_are_kept_and_follow_the_observation(tmp_path):
    learner = make_learner()
    for batch in batches(2000):
        learner.update(batch)
    learner.bundle().save(tmp_path / "bundle")
    policy = load_policy(tmp_path / "bundle")
    for side in (0.0, 1.0):
        obs = TensorDict({"side": torch.full((400, 1), side)}, [400])
        values = policy.act(obs, NOTHING, policy.reset(range(400)))[0].values.flatten() - 0.3 * side
        low, high = (values + 0.5).abs() < 0.2, (values - 0.5).abs() < 0.3
        assert low.float().mean() > 0.35 and high.float().mean() > 0.35
        assert (low | high).float().mean() > 0.85


def test_resume_is_to_the_bit():
    whole, first, second = make_learner(), make_learner(), make_learner(seed=9)
    for batch in batches(10):
        whole.update(batch)
    for batch in batches(5):
        first.update(batch)
    second.load_state_dict(first.state_dict())
    for batch in batches(5, start=5):
        second.update(batch)
    for name in ("actor", "average"):
        for a, b in zip(getattr(whole, name).parameters(), getattr(second, name).parameters(), strict=True):
            assert torch.equal(a, b)
