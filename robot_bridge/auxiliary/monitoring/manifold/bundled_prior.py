"""The prior in a bundle: a DDPM's weights go along, of a Stable Diffusion folder and hash."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rl_core.bundle import Bundle, BundleError
from rl_core.models.diffusion import cosine_schedule
from robot_bridge.auxiliary.monitoring.manifold.config import ManifoldConfig
from robot_bridge.auxiliary.monitoring.manifold.ddpm import DDPMConfig, PixelPrior
from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError
from robot_bridge.auxiliary.monitoring.manifold.prior import Prior
from robot_bridge.auxiliary.monitoring.manifold.spectrum import SpectrumPrior
from robot_bridge.auxiliary.monitoring.manifold.stable_diffusion import FILES, StableDiffusionPrior, weights_sha256
from robot_bridge.auxiliary.monitoring.manifold.unet import UNet
from robot_bridge.auxiliary.recognition.bundled_vlm import vlm_at

FIELD = "stable_diffusion"
_CLIP, _COLOURS, _POWER = "sample_bound", "spectrum.colours", "spectrum.power"


def ddpm_weights(prior: PixelPrior) -> dict[str, Tensor]:
    """Tensors of a bundle or file."""
    spectrum = {_COLOURS: prior.spectrum.colours, _POWER: prior.spectrum.power}
    return {**{name: tensor.contiguous() for name, tensor in prior.net.state_dict().items()}, **spectrum, _CLIP: torch.tensor([prior.clip])}


def ddpm_of(weights: Mapping[str, Tensor], config: DDPMConfig) -> PixelPrior:
    """What `ddpm_weights` gave."""
    net = UNet(config.side, config.width)
    net.load_state_dict({name: tensor for name, tensor in weights.items() if name not in (_CLIP, _COLOURS, _POWER)})
    schedule = cosine_schedule(config.levels)
    return PixelPrior(
        net.requires_grad_(False), SpectrumPrior(weights[_COLOURS], weights[_POWER], schedule), schedule, float(weights[_CLIP])
    )


def stable_diffusion(config: ManifoldConfig) -> StableDiffusionPrior:
    """That of the folders which a configuration names.

    Raises:
        AuthenticityError: a folder is not named; diffusers or the weights are missing.
        VLMError: no CLIP.
    """
    for name, value in (("diffusion-weights", config.diffusion_weights), ("clip", config.clip)):
        if not value:
            raise AuthenticityError(
                f"--config.{name} is empty; --config.prior stable-diffusion needs --config.diffusion-weights (a folder with {FILES}) "
                "and --config.clip (the folder of a CLIP with its tokenizer)"
            )
    return StableDiffusionPrior.from_folder(config.diffusion_weights, vlm_at(config.clip), config.caption)


def prior_facts(config: ManifoldConfig) -> dict[str, Any]:
    """What a bundle's configuration says of a prior whose weights are elsewhere."""
    return {} if config.prior == "ddpm" else {FIELD: {"sha256": weights_sha256(config.diffusion_weights)}}


def prior_of(bundle: Bundle, config: ManifoldConfig) -> Prior:
    """The prior of a bundle.

    Raises:
        BundleError: another Stable Diffusion lies in its folder.
    """
    if config.prior == "ddpm":
        return ddpm_of(bundle.weights, config.ddpm)
    needed, here = bundle.config[FIELD]["sha256"], weights_sha256(config.diffusion_weights)
    if needed != here:
        raise BundleError(
            f"bundle of {bundle.method}: made with Stable Diffusion {needed[:12]}; in {config.diffusion_weights} is {here[:12]}"
        )
    return stable_diffusion(config)
