"""The network of STRAP's policy: one token a step, one for the instruction, a transformer, a mixture for each action of the chunk.

    token_t   = W [low-dimensional observation_t, camera features_t]      camera features: FiLM-ResNet-18, told the instruction
    features  = Transformer([W_l instruction, token_{t-context+1}, ..., token_t]), without a mask
    a_{t + i} ~ GMM(features at the (context - chunk + i)-th observation), i = 0 .. chunk - 1

The last line is robomimic's prediction of future actions. The instruction's own token is ours: it is what tells tasks apart where a policy
has no cameras.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from rl_core.contract import RobotContract
from rl_core.models.film import STRIDE, FiLMResNet18, crop_size
from rl_core.models.gmm import GaussianMixture, GMMHead
from rl_core.models.transformer import Transformer
from rl_core.strap.config import BCTransformerConfig
from rl_core.training.config import ConfigError
from rl_core.training.seeding import derive_seed


class ChunkNetwork(nn.Module):
    """See the module.

    Args:
        config: sizes.
        contract: of one step; its observation channels are what is seen.
        language: size of an instruction's vector.
    """

    def __init__(self, config: BCTransformerConfig, contract: RobotContract, language: int) -> None:
        super().__init__()
        self.config = config
        cameras = [channel for channel in contract.observation if channel.kind == "image"]
        for camera in cameras:
            if min(seen := crop_size(camera.shape, config.crop)) <= STRIDE:
                raise ConfigError(
                    f"channel {camera.name!r}: {seen[0]} x {seen[1]} pixels after the crop, valid: more than {STRIDE} a side, "
                    "below which the spatial softmax sees one place only"
                )
        self.cameras = nn.ModuleDict(
            {
                channel.name: FiLMResNet18(
                    channel.shape[-1],
                    language,
                    width=config.image_width,
                    keypoints=config.keypoints,
                    outputs=config.image_features,
                )
                for channel in cameras
            }
        )
        self.step_token = nn.Linear(contract.observation_size + config.image_features * len(cameras), config.width)
        self.language_token = nn.Linear(language, config.width)
        self.transformer = Transformer(config.context + 1, config.width, layers=config.layers, heads=config.heads, dropout=config.dropout)
        self.head = GMMHead(config.width, contract.action.size, modes=config.modes, min_std=config.min_std)

    def forward(self, observation: Tensor, images: Mapping[str, Tensor], language: Tensor) -> GaussianMixture:
        """Mixtures over the chunk's actions (B, chunk).

        Args:
            observation: (B, context, O) normalised.
            images: camera -> (B, context, H, W, C) uint8, cropped.
            language: (B, D).
        """
        seen = [observation]
        for name, camera in self.cameras.items():
            told = language.repeat_interleave(self.config.context, dim=0)
            seen.append(camera(images[name].flatten(0, 1), told).unflatten(0, (-1, self.config.context)))
        tokens = torch.cat([self.language_token(language).unsqueeze(1), self.step_token(torch.cat(seen, dim=-1))], dim=1)
        return self.head(self.transformer(tokens)[:, -self.config.chunk :])


def make_network(config: BCTransformerConfig, contract: RobotContract, language: int, *, seed: int = 0) -> ChunkNetwork:
    """A network whose weights depend on `seed` alone; the global generators stay as they were."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "bc_transformer", "weights"))
        return ChunkNetwork(config, contract, language).eval()
