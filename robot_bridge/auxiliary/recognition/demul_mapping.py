"""DeMul's maps between the joint space of a VLM and the space of a text teacher, and back (arXiv 2507.07147).

    forward   L_f = 1 - cos(phi(g(n)), e(n))
    backward  L_b = 1 - cos(psi(e(n)), g(n))
    cycle     L_c = 1 - cos(psi(phi(g(n))), g(n))

g(n) is the VLM's text vector of a name n, e(n) the teacher's. Fitted once on a list of names, then frozen. psi keeps the orientation of the
VLM's space, so prompts cannot satisfy the teacher by leaving the texts that the VLM knows. The exact form of the losses is a
reconstruction: the paper gives the parts and no public code exists.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rl_core.models.mlp import MLP
from rl_core.training.config import Config, ConfigError
from rl_core.training.seeding import torch_generator
from robot_bridge.auxiliary.recognition.errors import RecognitionError

_LEAST_NAMES = 20


@dataclass(frozen=True, kw_only=True)
class MappingConfig(Config):
    """How the maps are fitted."""

    width: int = 256
    """Width of both hidden layers [here; none is public, and wider ones learn a few hundred names by heart at a high price]."""
    lr: float = 1e-3
    """Adam's learning rate [recalled]."""
    epochs: int = 100
    """Passes over the names [here]."""
    batch_size: int = 128
    """Names in a batch [here]."""
    held_out: float = 0.2
    """Share of the names that the maps are judged on and never see [here]."""

    def __post_init__(self) -> None:
        self.require_least(width=1, epochs=1, batch_size=1)
        self.require_above_zero("lr")
        if not 0 < self.held_out < 1:
            raise ConfigError(f"MappingConfig.held_out: {self.held_out}, valid: above 0, below 1")


class CycleMaps(nn.Module):
    """phi: R^d -> R^D and psi: R^D -> R^d, frozen after `fit_maps`.

    Attributes:
        centre: mean of the teacher's vectors over the name list, (D,): raw ones share it, and it would drown what tells names apart.
        held_out_cosine: mean cos(phi(g(n)), e(n)) over names that were held out.
    """

    centre: Tensor

    def __init__(self, joint: int, teacher: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.phi = MLP(joint, teacher, (width, width), activation="gelu", generator=generator)
        self.psi = MLP(teacher, joint, (width, width), activation="gelu", generator=generator)
        self.register_buffer("centre", torch.zeros(teacher))
        self.held_out_cosine = 0.0

    def target(self, teacher: Tensor) -> Tensor:
        """Teacher vectors (n, D) without what all names share, of length 1."""
        return F.normalize(teacher - self.centre, dim=-1)


def fit_maps(texts: Tensor, teacher: Tensor, config: MappingConfig, seed: int) -> CycleMaps:
    """Fits phi and psi on names; some are held out and tell whether phi learnt meanings or names by heart.

    Args:
        texts: g(n), (n, d); many more names than the target classes, normalised here.
        teacher: e(n), (n, D).
        config: schedule.
        seed: of initial weights, of batches and of the held-out names.

    Raises:
        RecognitionError: fewer than 20 names, which an MLP learns by heart.
    """
    if len(texts) < _LEAST_NAMES or len(texts) != len(teacher):
        raise RecognitionError(f"{len(texts)} text vectors and {len(teacher)} of the teacher; valid: equally many, {_LEAST_NAMES} or more")
    generator = torch_generator(seed, "maps")
    maps = CycleMaps(texts.shape[1], teacher.shape[1], config.width, generator)
    order = torch.randperm(len(texts), generator=generator)
    held = max(1, round(config.held_out * len(texts)))
    maps.centre.copy_(teacher[order[held:]].mean(dim=0))
    joint, target = F.normalize(texts, dim=-1), maps.target(teacher)
    seen, unseen = order[held:], order[:held]
    optimizer = torch.optim.Adam(maps.parameters(), lr=config.lr)
    for _ in range(config.epochs):
        for batch in seen[torch.randperm(len(seen), generator=generator)].split(config.batch_size):
            mapped = maps.phi(joint[batch])
            loss = _apart(mapped, target[batch])  # forward
            loss = loss + _apart(maps.psi(target[batch]), joint[batch])  # backward
            loss = loss + _apart(maps.psi(mapped), joint[batch])  # cycle
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    optimizer.zero_grad()
    maps.requires_grad_(False)
    maps.held_out_cosine = float(1 - _apart(maps.phi(joint[unseen]), target[unseen]))
    return maps


def distillation_loss(maps: CycleMaps, prompts: Tensor, teacher: Tensor, names: Tensor) -> Tensor:
    """(1 / NM) sum_ij [1 - cos(phi(g(t_ij)), e_i)] + [1 - cos(psi(phi(g(t_ij))), g(name_i))].

    Args:
        maps: frozen.
        prompts: g(t_ij) of class i under prompt j, (N, M, d), of length 1.
        teacher: e_i as `maps.target` gives it, (N, D).
        names: g(name_i), (N, d).
    """
    mapped = maps.phi(prompts)
    return _apart(mapped, teacher[:, None]) + _apart(maps.psi(mapped), names[:, None])


def _apart(found: Tensor, wanted: Tensor) -> Tensor:
    return (1 - F.cosine_similarity(found, wanted, dim=-1)).mean()
