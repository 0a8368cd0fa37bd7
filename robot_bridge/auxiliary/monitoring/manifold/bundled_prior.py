"""The prior in a bundle: a DDPM's weights go along, of a Stable Diffusion folder and hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from rl_core.bundle import Bundle, BundleError
from rl_core.data.atomic import write_atomically
from rl_core.models.diffusion import cosine_schedule
from robot_bridge.auxiliary.monitoring.manifold.config import ManifoldConfig
from robot_bridge.auxiliary.monitoring.manifold.ddpm import DDPMConfig, PixelPrior, Say, train_ddpm
from robot_bridge.auxiliary.monitoring.manifold.prior import Prior
from robot_bridge.auxiliary.monitoring.manifold.spectrum import SpectrumPrior
from robot_bridge.auxiliary.monitoring.manifold.stable_diffusion import StableDiffusionPrior, weights_sha256
from robot_bridge.auxiliary.monitoring.manifold.unet import UNet
from robot_bridge.auxiliary.recognition.bundled_vlm import vlm_at

FIELD = "stable_diffusion"
_CLIP, _COLOURS, _POWER = "sample_bound", "spectrum.colours", "spectrum.power"


def kept_ddpm(folder: Path, crops: NDArray[np.uint8], config: DDPMConfig, *, seed: int, say: Say) -> PixelPrior:
    """The DDPM of these crops, settings and seed: read from `folder`, or trained and kept there for a run that is repeated."""
    digest = hashlib.sha256(f"{config.sha256()} {seed} {crops.shape}".encode() + np.ascontiguousarray(crops).tobytes())
    file = folder / f"ddpm-{digest.hexdigest()[:32]}.safetensors"
    if file.is_file():
        try:
            prior = ddpm_of(load_file(file), config)
            say(f"the DDPM is there already: {file}")
            return prior
        except (SafetensorError, RuntimeError, KeyError):
            file.unlink()  # damaged: it is disposable
    prior = train_ddpm(crops, config, seed=seed, say=say)
    folder.mkdir(parents=True, exist_ok=True)
    with write_atomically(file) as opened:
        opened.write(save(ddpm_weights(prior)))
    return prior


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
        AuthenticityError: diffusers or the weights are missing.
        VLMError: no CLIP.
    """
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
