"""Stable Diffusion as the prior, as in the paper's code: latents of a VAE, and angles between CLIP vectors of decoded pictures.

Weights come from a local folder and never from a hub. They are not copied into a bundle (4 GB): it names the folder and their hash.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError
from robot_bridge.auxiliary.vlm.interface import VLM

ALPHA = 0.01
"""Share of noise in the paper's code."""
_BORDER = 515 / 512
"""The picture is resized to a little more than its crop [code]."""
_AT_ONCE = 4
FILES = "model_index.json with the folders unet, vae, text_encoder, tokenizer and scheduler, weights as *.safetensors"


class StableDiffusionPrior:
    """See `prior.Prior`; d = 16384 and d_feat = 768 for Stable Diffusion 1.4 with CLIP ViT-L/14.

    Args:
        unet: a diffusers `UNet2DConditionModel`.
        vae: its `AutoencoderKL`.
        signal: alpha_bar of the scheduler (T,), `alphas_cumprod`.
        text: what the U-Net is conditioned on (1, tokens, width).
        clip: gives the vectors of `embed`.
        prediction: what the U-Net predicts, `epsilon` or `v_prediction`.

    Raises:
        AuthenticityError: a U-Net that predicts something else.
    """

    def __init__(self, unet: Any, vae: Any, *, signal: Tensor, text: Tensor, clip: VLM, prediction: str = "epsilon") -> None:
        if prediction not in ("epsilon", "v_prediction"):
            raise AuthenticityError(f"a U-Net that predicts {prediction!r}, valid: epsilon, v_prediction")
        self._unet, self._vae, self._text, self._clip, self._prediction = unet, vae, text, clip, prediction
        self._scaling = float(vae.config.scaling_factor)
        self._shape = (int(unet.config.in_channels), int(unet.config.sample_size), int(unet.config.sample_size))
        self._side = self._shape[1] * 2 ** (len(vae.config.block_out_channels) - 1)
        self.size, self.d_feat = int(np.prod(self._shape)), clip.embed_dim
        self.alphas = torch.cat((torch.zeros(1), 1 - signal.float()))
        self._drawn: tuple[Tensor, Tensor] | None = None

    @classmethod
    def from_folder(cls, folder: str, clip: VLM, caption: str = "") -> StableDiffusionPrior:
        """Of what diffusers' `save_pretrained` wrote.

        Args:
            folder: local.
            clip: see the class.
            caption: what the U-Net is told of every frame.

        Raises:
            AuthenticityError: diffusers is not installed, or no Stable Diffusion lies there; says what is needed.
        """
        if not folder:
            raise AuthenticityError(f"field diffusion_weights is empty; valid: a folder with {FILES}")
        try:
            from diffusers import StableDiffusionPipeline
        except ImportError as error:
            raise AuthenticityError(f"Stable Diffusion needs diffusers ({error}): pip install 'armstack[diffusion]'") from error
        try:
            pipe = StableDiffusionPipeline.from_pretrained(
                folder, local_files_only=True, use_safetensors=True, safety_checker=None, requires_safety_checker=False
            )
        except (OSError, ValueError, ImportError, AttributeError) as error:
            first = (str(error).strip() or repr(error)).splitlines()[0]
            raise AuthenticityError(f"no Stable Diffusion at {folder}: {first}; valid: a folder with {FILES}") from error
        words = pipe.tokenizer(
            caption, padding="max_length", max_length=pipe.tokenizer.model_max_length, truncation=True, return_tensors="pt"
        )
        with torch.no_grad():
            text = pipe.text_encoder(words.input_ids)[0]
        scheduler = pipe.scheduler
        return cls(
            pipe.unet.requires_grad_(False).eval(),
            pipe.vae.requires_grad_(False).eval(),
            signal=scheduler.alphas_cumprod,
            text=text,
            clip=clip,
            prediction=scheduler.config.prediction_type,
        )

    def encode(self, crops: NDArray[np.uint8]) -> Tensor:
        """See `prior.Prior`: resized to a little more than the model's side, the middle cut out, mean of the VAE's posterior."""
        images = torch.from_numpy(np.ascontiguousarray(crops)).permute(0, 3, 1, 2).float() / 127.5 - 1
        side = round(self._side * _BORDER)
        images = F.interpolate(images, size=(side, side), mode="bicubic", antialias=True, align_corners=False).clamp(-1, 1)
        at = (side - self._side) // 2
        images = images[:, :, at : at + self._side, at : at + self._side]
        with torch.no_grad():
            found = [self._vae.encode(piece).latent_dist.mean for piece in images.split(_AT_ONCE)]
        return torch.cat(found).flatten(1) * self._scaling

    def noise(self, x: Tensor, step: int) -> Tensor:
        """See `prior.Prior`."""
        found = []
        with torch.no_grad():
            for piece in x.split(_AT_ONCE):
                latent, text = piece.unflatten(1, self._shape), self._text.expand(len(piece), -1, -1)
                found.append(self._unet(latent, step - 1, encoder_hidden_states=text).sample.flatten(1))
        predicted = torch.cat(found)
        if self._prediction == "epsilon":
            return predicted
        share = self.alphas[step]
        return (1 - share).sqrt() * predicted + share.sqrt() * x

    def embed(self, samples: Tensor, predicted: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """See `prior.Prior`: all are decoded and seen by CLIP [code]. Samples and noise get length 1, so that products are cosines."""
        if self._drawn is None or self._drawn[0] is not noise:
            self._drawn = noise, F.normalize(self._seen(noise), dim=1)
        return F.normalize(self._seen(samples), dim=1), self._seen(predicted), self._drawn[1]

    def _seen(self, latents: Tensor) -> Tensor:
        found = []
        with torch.no_grad():
            for piece in latents.split(_AT_ONCE):
                decoded = self._vae.decode(piece.unflatten(1, self._shape) / self._scaling).sample
                pictures = ((decoded.clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
                found.append(self._clip.encode_image(self._clip.preprocess(pictures)).float())
        return torch.cat(found)


def weights_sha256(folder: str) -> str:
    """sha256 over the weights of U-Net and VAE: a bundle names them by it."""
    digest = hashlib.sha256()
    for file in sorted(file for part in ("unet", "vae") for file in (Path(folder) / part).glob("*.safetensors")):
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()
