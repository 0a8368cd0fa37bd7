"""DAC's policy without torch in its arithmetic: NumPy arrays prepared once, so that one action on a robot costs a fraction of eager torch.

Everything that does not depend on the observation is folded at load time: time embeddings, the scale of the observations, the mean
over the critics' last layers. With the same noise the actions equal the torch policy's to 1e-5.
"""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import torch
from numpy.typing import NDArray
from tensordict import TensorDict

from rl_core.bundle import Bundle
from rl_core.dac.policy import DACPolicy, torch_policy_from_bundle
from rl_core.policy import ActionChunk, PolicyState, StatelessPolicy, flatten_observation

Array = NDArray[np.float32]


def export_bundle(bundle: Bundle) -> Bundle:
    """The same policy as a bundle that loads as `NumpyDACPolicy`."""
    torch_policy_from_bundle(bundle)  # a bundle that would not load is refused here
    return dataclasses.replace(bundle, config={**bundle.config, "runtime": "numpy"})


def mish(x: Array) -> Array:
    """Mish in place: with e = exp(x), w = e (e + 2): x w / (w + 2). Beyond 20 it is x to float32."""
    w = np.minimum(x, np.float32(20.0))
    np.exp(w, out=w)
    w *= w + np.float32(2.0)
    x *= w
    w += np.float32(2.0)
    x /= w
    return x


class NumpyDACPolicy(StatelessPolicy):
    """Acts like the `DACPolicy` it was made from.

    Args:
        policy: the torch policy; its weights are copied.
    """

    def __init__(self, policy: DACPolicy) -> None:
        self.contract = policy.contract
        self.config = policy.config
        self.normalizer = policy.normalizer
        self._read_actor(policy)
        self._read_critic(policy)

    def _read_actor(self, policy: DACPolicy) -> None:
        actor = copy.deepcopy(policy.actor).cpu()
        layers = [(layer.get_parameter("weight"), layer.get_parameter("bias")) for layer in actor.net.layers]
        weight, bias = layers[0]
        with torch.no_grad():
            of_condition, of_sample, of_time = weight.split(actor.sizes, dim=1)
            times = actor.time.net(actor.sinusoids) @ of_time.T + bias
        self._actor_condition, self._actor_sample, self._actor_times = (_array(w) for w in (of_condition.T, of_sample.T, times))
        self._actor_layers = [(_array(weight.T), _array(bias)) for weight, bias in layers[1:]]
        schedule = policy.schedule.to("cpu")
        alpha, alpha_bar, beta = (table.double().numpy() for table in (schedule.alpha, schedule.alpha_bar, schedule.beta))
        self._steps: list[tuple[np.float32, ...]] = [()]
        for t in range(1, schedule.steps + 1):
            remaining = 1.0 - alpha_bar[t]
            coefficients = (
                1.0 / np.sqrt(alpha_bar[t]),
                np.sqrt(remaining / alpha_bar[t]),
                np.sqrt(alpha_bar[t - 1]) * beta[t] / remaining,
                np.sqrt(alpha[t]) * (1.0 - alpha_bar[t - 1]) / remaining,
                np.sqrt(beta[t]) if t > 1 else 0.0,
            )
            self._steps.append(tuple(np.float32(value) for value in coefficients))

    def _read_critic(self, policy: DACPolicy) -> None:
        net = copy.deepcopy(policy.critic).cpu().net
        heads, _, width = net.weights[0].shape
        size = self.contract.observation_size
        joined = net.weights[0].detach().permute(1, 0, 2).reshape(-1, heads * width)
        self._critic_condition, self._critic_action = _array(joined[:size]), _array(joined[size:])
        self._critic_bias = _array(net.biases[0].reshape(-1))
        middle = zip(list(net.weights)[1:-1], list(net.biases)[1:-1], strict=True)
        self._critic_layers = [(_array(weight), _array(bias)) for weight, bias in middle]
        # The mean over heads of a linear layer is one linear layer over all heads' features.
        self._critic_out = _array(net.weights[-1].squeeze(-1).unsqueeze(1) / heads)
        self._critic_out_bias = np.float32(net.biases[-1].mean().item())
        self._heads = heads

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`; `info["value"]` (n,) is the mean target Q of the action taken."""
        observation = flatten_observation(self.contract, obs).numpy()
        if self.normalizer is not None:
            observation = self.normalizer.normalize("observation", observation)
        noise = state.normal(self.config.diffusion_steps, self.config.action_candidates, self.contract.action.size).numpy()
        action, value = self.actions(observation, noise)
        if self.normalizer is not None:
            action = self.normalizer.unnormalize("action", action)
        values = torch.from_numpy(action).unsqueeze(1)
        return ActionChunk(values=values, period_s=self.contract.action.period_s, info={"value": torch.from_numpy(value)}), state

    def actions(self, observation: Array, noise: Array) -> tuple[Array, Array]:
        """Observations (n, S) as the networks take them and noise (n, T, N, A) -> best actions (n, A) and their values (n,)."""
        rows, steps, candidates, size = noise.shape
        noise = np.ascontiguousarray(noise.swapaxes(0, 1)).reshape(steps, rows * candidates, size)
        x = self._sample(observation, noise, candidates)
        values = self._values(observation, x, candidates).reshape(rows, candidates)
        best = values.argmax(axis=1)
        chosen = x.reshape(rows, candidates, size)[np.arange(rows), best]
        return np.clip(chosen, -1.0, 1.0), values[np.arange(rows), best]

    def _sample(self, observation: Array, noise: Array, candidates: int) -> Array:
        base = np.repeat(observation @ self._actor_condition, candidates, axis=0)
        x, steps = noise[0], len(noise)
        for t in range(steps, 0, -1):
            hidden = x @ self._actor_sample
            hidden += base
            hidden += self._actor_times[t]
            for weight, bias in self._actor_layers:
                hidden = mish(hidden) @ weight
                hidden += bias
            inverse_signal, ratio, of_clean, of_x, of_noise = self._steps[t]
            clean = inverse_signal * x - ratio * hidden
            if self.config.clip_denoised:
                np.minimum(np.maximum(clean, np.float32(-1.0), out=clean), np.float32(1.0), out=clean)
            x = of_clean * clean + of_x * x
            if t > 1:
                x += of_noise * noise[steps - t + 1]
        return x

    def _values(self, observation: Array, x: Array, candidates: int) -> Array:
        hidden = x @ self._critic_action
        hidden += np.repeat(observation @ self._critic_condition + self._critic_bias, candidates, axis=0)
        mish(hidden)
        hidden = hidden.reshape(len(x), self._heads, -1).swapaxes(0, 1)
        for weight, bias in self._critic_layers:
            hidden = np.matmul(hidden, weight)
            hidden += bias
            mish(hidden)
        return np.einsum("hnf,hof->n", hidden, self._critic_out) + self._critic_out_bias


def _array(tensor: torch.Tensor) -> Array:
    return np.ascontiguousarray(tensor.detach().numpy(), dtype=np.float32)
