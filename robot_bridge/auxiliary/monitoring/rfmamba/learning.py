"""How a radar network is trained: one loss of three parts, AdamW, warm-up and cosine."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from rl_core.training.checkpoint import CheckpointStore
from rl_core.training.seeding import preserved_rng, torch_generator
from robot_bridge.auxiliary.epochs import Epochs, warm_up_cosine
from robot_bridge.auxiliary.monitoring.rfmamba.config import RFMambaConfig
from robot_bridge.auxiliary.monitoring.rfmamba.echoes import Windows
from robot_bridge.auxiliary.monitoring.rfmamba.imaging import network_for
from robot_bridge.auxiliary.monitoring.rfmamba.network import Outputs, RadarNetwork

Say = Callable[[str], None]
_WARM_UP = 0.1


def antenna_scale(echoes: NDArray[np.complex64]) -> Tensor:
    """(antennas,) root mean square of each pair of antennas over all training windows (n, T, tx, rx, F).

    One number an antenna for the whole set: a window of its own scale would lose how strong, and so how far, its echo is.
    """
    power = (np.abs(echoes) ** 2).mean(axis=(0, 1, 4), dtype=np.float64)
    return torch.from_numpy(np.sqrt(np.maximum(power, 1e-20)).reshape(-1)).float()


def normalised(echoes: NDArray[np.complex64], scale: Tensor) -> Tensor:
    """Echoes (n, T, tx, rx, F) as a network takes them, (n, T, antennas, F)."""
    return torch.from_numpy(np.ascontiguousarray(echoes)).flatten(2, 3) / scale[:, None]


def new_network(windows: Windows, config: RFMambaConfig, seed: int) -> RadarNetwork:
    """A network for windows like these, with random weights."""
    with preserved_rng():
        torch.manual_seed(torch_generator(seed, "weights").initial_seed())
        network = network_for(windows.geometry, config.network, current=config.current, activities=len(windows.activities))
    network.heads.mean_pose.copy_(torch.from_numpy(windows.joints.mean(axis=0)))
    return network


def loss_of(found: Outputs, joints: Tensor, activity: Tensor, body: Tensor, config: RFMambaConfig) -> Tensor:
    """The loss of a batch: joints (B, 14, 3), activity (B,), body (B, antennas, bins) of 0 and 1."""
    # L1 of the joints, metres.
    loss = config.pose_weight * (found.joints - joints).abs().mean()
    # Cross-entropy of what the person does.
    loss = loss + config.activity_weight * F.cross_entropy(found.activity, activity)
    # Cross-entropy of person or clutter in each range bin of each pair of antennas.
    return loss + config.segmentation_weight * F.binary_cross_entropy_with_logits(found.body, body)


def fit(
    network: RadarNetwork,
    windows: Windows,
    config: RFMambaConfig,
    *,
    seed: int,
    say: Say = lambda text: None,
    store: CheckpointStore | None = None,
) -> Tensor:
    """Trains in place.

    Args:
        network: of `new_network`.
        windows: to learn from.
        config: settings.
        seed: of the order.
        say: told the loss of each epoch, and how long the rest takes.
        store: where whole epochs are kept, of a run with equal arguments; it goes on behind the last of them.

    Returns:
        The antennas' scale (antennas,), which belongs to the network.

    Raises:
        CheckpointError: nothing that was kept can be read.
    """
    scale = antenna_scale(windows.echoes)
    joints, activity = torch.from_numpy(windows.joints), torch.from_numpy(windows.activity)
    generator = torch_generator(seed, "order")
    optimizer = torch.optim.AdamW(network.parameters(), lr=config.lr, weight_decay=config.weight_decay, fused=True)
    steps = config.epochs * math.ceil(len(windows) / config.batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warm_up_cosine(step, steps, _WARM_UP))

    def epoch(number: int) -> float:
        losses = []
        for batch in torch.randperm(len(windows), generator=generator).split(config.batch_size):
            rows = batch.numpy()
            body = torch.from_numpy(windows.body[rows]).flatten(1, 2).float()
            found = network(normalised(windows.echoes[rows], scale))
            loss = loss_of(found, joints[batch], activity[batch], body, config)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), config.clip)
            optimizer.step()
            schedule.step()
            losses.append(float(loss.detach()))
        return float(np.mean(losses))

    trained: dict[str, Any] = {"parameters": list(network.parameters()), "optimizer": optimizer, "schedule": schedule}
    network.train()
    Epochs(count=config.epochs, **trained, generator=generator, store=store, say=say).run(epoch)
    network.eval()
    return scale


def outputs_of(network: RadarNetwork, echoes: NDArray[np.complex64], scale: Tensor, *, batch_size: int = 64) -> Outputs:
    """Of windows (n, T, tx, rx, F) without background."""
    with torch.no_grad():
        starts = range(0, len(echoes), batch_size)
        parts = [network(normalised(echoes[start : start + batch_size], scale)) for start in starts]
    return Outputs(**{name: torch.cat([getattr(part, name) for part in parts]) for name in ("joints", "activity", "body")})
