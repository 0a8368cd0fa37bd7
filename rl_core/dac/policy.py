"""DAC at run time: draw candidates from the online actor, take the one the target critics value most."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from rl_core.bundle import Bundle, BundleError
from rl_core.contract import RobotContract
from rl_core.dac.config import DACConfig
from rl_core.dac.networks import Critic, make_actor, make_schedule
from rl_core.data.normalizer import Normalizer
from rl_core.models.diffusion import NoiseMLP, ancestral_sample
from rl_core.policy import ActionChunk, Policy, PolicyState, StatelessPolicy, flatten_observation
from rl_core.restore import restore_contract, restore_normalizer, restore_weights


class DACPolicy(StatelessPolicy):
    """argmax over N_a actions of the online diffusion actor by the mean of the target critics, clipped to [-1, 1].

    Args:
        config: the method's configuration.
        contract: what the policy needs; `contract.action` is what it gives.
        actor: online noise network.
        critic: target critics; unused when `config.action_candidates` is 1.
        normalizer: its column `observation` is applied before the networks and its column `action` undone after them; None = none.
    """

    def __init__(
        self, config: DACConfig, contract: RobotContract, actor: NoiseMLP, critic: Critic, normalizer: Normalizer | None = None
    ) -> None:
        self.config = config
        self.contract = contract
        self.actor = actor
        self.critic = critic
        self.normalizer = normalizer
        self.device = next(actor.parameters()).device
        self.schedule = make_schedule(config).to(self.device)

    def candidates(self, observation: Tensor, noise: Tensor) -> Tensor:
        """Observations (n, S) as the networks take them and noise (n, T, N, A) -> candidate actions (n, N, A)."""
        predict = self.actor.denoiser(observation.unsqueeze(1))
        clip = 1.0 if self.config.clip_denoised else None
        return ancestral_sample(predict, self.schedule, noise.transpose(0, 1), clip=clip)

    def choose(self, observation: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
        """Observations (n, S), candidates (n, N, A) -> the best action of each row (n, A) in [-1, 1] and its mean target Q (n,)."""
        values = self.critic(observation.unsqueeze(1), candidates).mean(0)
        value, best = values.max(dim=1)
        action = candidates.gather(1, best[:, None, None].expand(-1, 1, candidates.shape[-1])).squeeze(1)
        return action.clamp(-1.0, 1.0), value

    @torch.no_grad()
    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`; `info["value"]` (n,) is the mean target Q of the action taken."""
        observation = flatten_observation(self.contract, obs)
        if self.normalizer is not None:
            observation = self.normalizer.normalize("observation", observation)
        observation = observation.to(self.device)
        config = self.config
        noise = state.normal(config.diffusion_steps, config.action_candidates, self.contract.action.size).to(self.device)
        action, value = self.choose(observation, self.candidates(observation, noise))
        if self.normalizer is not None:
            action = self.normalizer.unnormalize("action", action)
        chunk = ActionChunk(values=action.unsqueeze(1), period_s=self.contract.action.period_s, info={"value": value})
        return chunk, state


def policy_from_bundle(bundle: Bundle, device: str = "cpu") -> Policy:
    """The policy of a bundle that `DACLearner.bundle` or `rl_core.dac.export.export_bundle` wrote.

    Raises:
        BundleError: see `torch_policy_from_bundle`.
    """
    policy = torch_policy_from_bundle(bundle, device)
    if policy.config.runtime == "numpy":
        from rl_core.dac.export import NumpyDACPolicy

        return NumpyDACPolicy(policy)
    return policy


def torch_policy_from_bundle(bundle: Bundle, device: str = "cpu") -> DACPolicy:
    """The networks of a bundle, whatever its runtime.

    Raises:
        BundleError: the bundle is not DAC's, has no contract, or its weights do not fit its configuration.
    """
    if bundle.method != "dac":
        raise BundleError(f"bundle of method {bundle.method!r}, valid: dac")
    contract, config = restore_contract(bundle), DACConfig.from_dict(bundle.config)
    sizes = (contract.observation_size, contract.action.size)
    actor = restore_weights(make_actor(config, *sizes), bundle, device, prefix="actor.")
    critic = restore_weights(Critic(config, *sizes), bundle, device, prefix="critic.")
    normalizer = restore_normalizer(bundle, needed=config.normalize_observations or config.scale_actions)
    return DACPolicy(config, contract, actor, critic, normalizer)
