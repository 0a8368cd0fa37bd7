"""The fair opponent of an exported DAC policy: the same weights, the same noise, in eager PyTorch.

`plain` is the text-book form (concatenate, embed the time at every step, PyTorch's Mish, one module a head); `ours` is the torch policy
that training and evaluation use, which already computes the observation's share once a chain.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rl_core.dac.policy import DACPolicy
from rl_core.models import sinusoids


def plain_policy(policy: DACPolicy) -> Callable[[Tensor, Tensor], Tensor]:
    """(observation (1, S), noise (1, T, N, A)) -> action (1, A) with `policy`'s weights."""
    actor, schedule, net = policy.actor, policy.schedule, policy.critic.net
    heads = []
    for head in range(net.heads):
        layers: list[nn.Module] = []
        for weight, bias in zip(net.weights, net.biases, strict=True):
            layer = nn.Linear(weight.shape[1], weight.shape[2])
            layer.weight.data, layer.bias.data = weight[head].detach().t().contiguous(), bias[head, 0].detach()
            layers += [layer, nn.Mish()]
        heads.append(nn.Sequential(*layers[:-1]))

    def mlp(layers: nn.ModuleList, x: Tensor) -> Tensor:
        for layer in layers[:-1]:
            x = F.mish(layer(x))
        return layers[-1](x)

    @torch.no_grad()
    def act(observation: Tensor, noise: Tensor) -> Tensor:
        candidates = noise.shape[2]
        state = observation.repeat(candidates, 1)
        x = noise[0, 0]
        for t in range(schedule.steps, 0, -1):
            time = mlp(actor.time.net.layers, sinusoids(torch.full((candidates,), t)))
            predicted = mlp(actor.net.layers, torch.cat([state, x, time], dim=-1))
            remaining = 1 - schedule.alpha_bar[t]
            clean = ((x - remaining.sqrt() * predicted) / schedule.alpha_bar[t].sqrt()).clamp(-1, 1)
            last = schedule.alpha_bar[t - 1]
            x = (last.sqrt() * schedule.beta[t] * clean + schedule.alpha[t].sqrt() * (1 - last) * x) / remaining
            if t > 1:
                x = x + schedule.beta[t].sqrt() * noise[0, schedule.steps - t + 1]
        values = torch.stack([head(torch.cat([state, x], dim=-1)) for head in heads]).mean(0)
        return x[values.argmax()].clamp(-1, 1).unsqueeze(0)

    return act
