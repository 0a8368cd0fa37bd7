"""One tester for all offline methods: fit, save, load, act equally, determinism, resume, device, no network."""

from __future__ import annotations

import math
import socket
from pathlib import Path

import pytest
import torch
from tensordict import TensorDict

from rl_core.bundle import Bundle
from rl_core.contract import Channel
from rl_core.method_list import METHODS
from rl_core.methods import get_method, load_policy, make_learner, make_source, offline_methods, training_data
from rl_core.training.config import TrainerConfig
from rl_core.training.trainer import Trainer
from tests.rl_core.training.synthetic import CONTRACT, synthetic_dataset

SMALL = {
    "dac": {"actor_hidden": (16, 16), "critic_hidden": (16, 16), "heads": 2, "next_actions": 2, "action_candidates": 3, "ema_start": 2},
    "bc": {"hidden": (16,)},
    "bc_best_half": {"hidden": (16,)},
    "diffusion_bc": {"hidden": (16, 16)},
    "contractive": {"latent": 8, "horizon": 10, "blocks": 2, "block_width": 8, "jitter_copies": 1, "jitter_skip": 2},
    "velocity_bc": {"hidden": (16,), "horizon": 10},
    "snds": {"hidden": (16,), "convex_hidden": (8,), "horizon": 10},
    "sds_ef": {"blocks": 2, "features": 16, "speed_hidden": (8,), "horizon": 10},
    "strap": {"layers": 1, "width": 16, "heads": 2, "dropout": 0.1},
    "bc_transformer": {"layers": 1, "width": 16, "heads": 2, "dropout": 0.1},
}
"""Overrides that make a method's networks tiny."""


def tiny(method: str, **overrides):
    config_class = get_method(method).config_class
    return config_class.preset("cpu").override(batch_size=8, **SMALL.get(method, {}), **overrides)


def parts(method: str, *, seed: int = 0, device: str = "cpu", config=None):
    config = config or tiny(method)
    data = training_data(method, synthetic_dataset())
    return make_learner(method, config, data, seed=seed, device=device), make_source(method, config, data, seed=seed)


def sample_shape(channel: Channel) -> tuple[int, ...]:
    """Of one row, as `Policy.act` takes it."""
    return channel.shape if channel.history == 1 else (channel.history, *channel.shape)


def observations(policy, n: int = 5) -> TensorDict:
    generator = torch.Generator().manual_seed(3)
    values = {c.name: torch.randn(n, *sample_shape(c), generator=generator) for c in policy.contract.observation}
    return TensorDict(values, batch_size=[n])


def actions(policy, n: int = 5) -> torch.Tensor:
    chunk, _ = policy.act(observations(policy, n), policy.prepare({}), policy.reset(range(n)))
    return chunk.values


def train(method: str, run_dir: Path, *, updates: int = 6, stop_at: int = 0, resume: bool = False, seed: int = 0):
    learner, source = parts(method, seed=seed)
    config = TrainerConfig(updates=updates, log_every=2, checkpoint_every=100, seed=seed)
    trainer = Trainer(learner, source, config, run_dir)
    if stop_at:
        update = learner.update

        def update_and_stop(batch):
            if learner_steps.append(1) or len(learner_steps) == stop_at:
                trainer.stop()
            return update(batch)

        learner_steps: list[int] = []
        learner.update = update_and_stop
    return learner, trainer.run(resume=resume)


def equal_states(a, b) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal_states(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(equal_states, a, b))
    return a == b


@pytest.fixture(params=offline_methods())
def method(request) -> str:
    return request.param


def test_trains_and_the_saved_bundle_acts_as_the_learner(method, tmp_path):
    learner, result = train(method, tmp_path / "run")
    assert result.finished and result.bundle == tmp_path / "run" / "bundle"
    assert Bundle.load(result.bundle).method == method
    before, after = actions(learner.policy()), actions(load_policy(result.bundle))
    assert torch.equal(before, after)
    assert after.shape[0] == 5 and after.shape[2] == CONTRACT.action.size
    assert after.abs().max() <= 1.0


def test_an_update_changes_the_weights_and_metrics_are_named_alike(method):
    learner, source = parts(method)
    before = actions(learner.policy()).clone()
    for _ in range(3):
        metrics = learner.update(source.next_batch())
    assert not torch.equal(before, actions(learner.policy()))
    assert {"loss/actor", "loss/bc"} & set(metrics)
    assert all("/" in name and math.isfinite(value) for name, value in metrics.items())


def test_equal_seeds_give_equal_weights_and_other_seeds_others(method, tmp_path):
    first, _ = train(method, tmp_path / "a")
    second, _ = train(method, tmp_path / "b")
    other, _ = train(method, tmp_path / "c", seed=1)
    assert equal_states(first.state_dict(), second.state_dict())
    assert not equal_states(dict(first.bundle().weights), dict(other.bundle().weights))


def test_resume_is_resume_for_every_method(method, tmp_path):
    whole, _ = train(method, tmp_path / "whole", updates=8)
    _, stopped = train(method, tmp_path / "cut", updates=8, stop_at=3)
    assert stopped.step == 3 and not stopped.finished
    resumed, result = train(method, tmp_path / "cut", updates=8, resume=True, seed=0)
    assert result.finished
    assert equal_states(whole.state_dict(), resumed.state_dict())


def test_a_row_acts_as_it_would_alone(method):
    learner, _ = parts(method)
    policy = learner.policy()
    together = actions(policy, 5)
    alone, _ = policy.act(observations(policy, 5)[3:4], policy.prepare({}), policy.reset([3]))
    torch.testing.assert_close(together[3:4], alone.values, rtol=1e-4, atol=1e-5)


def test_acting_twice_from_equal_states_is_equal(method):
    learner, _ = parts(method)
    policy = learner.policy()
    assert torch.equal(actions(policy), actions(policy))


def test_learner_lives_on_the_device_it_is_given(method):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    learner, source = parts(method, device=device)
    learner.update(source.next_batch())
    assert actions(learner.policy()).device.type == device
    assert all(torch.isfinite(value).all() for value in learner.bundle().weights.values())


def test_logger_needs_no_network(method, tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError(f"network used: {args}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    _, result = train(method, tmp_path / "run", updates=4)
    assert result.finished
    assert (tmp_path / "run" / "metrics.jsonl").read_text().count("\n") == 2
    assert list((tmp_path / "run" / "tensorboard").iterdir())


def test_config_goes_to_json_and_back(method):
    config_class = get_method(method).config_class
    for config in config_class.presets().values():
        assert config_class.from_dict(config.to_dict()) == config


def test_every_method_is_registered_under_its_own_name():
    assert all(name == entry.name and entry.default_updates() > 0 for name, entry in METHODS.items())
