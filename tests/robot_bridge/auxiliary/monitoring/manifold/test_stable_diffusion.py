"""Stable Diffusion as the prior, with parts of the same interface whose numbers are known; no weights are needed."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from rl_core.bundle import Bundle, BundleError
from robot_bridge.auxiliary.monitoring.manifold.bundled_prior import prior_of, stable_diffusion
from robot_bridge.auxiliary.monitoring.manifold.config import ManifoldConfig
from robot_bridge.auxiliary.monitoring.manifold.criterion import spherical_noises, step_of, terms
from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError
from robot_bridge.auxiliary.monitoring.manifold.stable_diffusion import StableDiffusionPrior, weights_sha256

SIGNAL = torch.linspace(0.99, 0.01, 50)
SCALING = 0.5


class Blocks:
    """A VAE whose latents are averages of 4 x 4 blocks."""

    config = SimpleNamespace(scaling_factor=SCALING, block_out_channels=(1, 2, 3))

    def encode(self, images: Tensor) -> Any:
        return SimpleNamespace(latent_dist=SimpleNamespace(mean=F.avg_pool2d(images, 4)))

    def decode(self, latents: Tensor) -> Any:
        return SimpleNamespace(sample=F.interpolate(latents, scale_factor=4.0).clamp(-1.5, 1.5))


class Exact:
    """The denoiser of latents ~ N(0, I); says what it was asked."""

    config = SimpleNamespace(in_channels=3, sample_size=4)

    def __init__(self, velocity: bool = False) -> None:
        self.velocity, self.asked = velocity, []

    def __call__(self, latents: Tensor, timestep: int, encoder_hidden_states: Tensor) -> Any:
        self.asked.append((timestep, encoder_hidden_states.shape))
        signal = SIGNAL[timestep]
        noise = (1 - signal).sqrt() * latents
        clean = signal.sqrt() * latents
        return SimpleNamespace(sample=signal.sqrt() * noise - (1 - signal).sqrt() * clean if self.velocity else noise)


class Colours:
    """A CLIP: the mean colour and the mean of its square, four numbers."""

    embed_dim = 4

    def preprocess(self, rgb: np.ndarray) -> Tensor:
        assert rgb.dtype == np.uint8 and rgb.shape[1:] == (16, 16, 3)
        return torch.from_numpy(rgb).float() / 127.5 - 1

    def encode_image(self, x: Tensor) -> Tensor:
        return torch.cat((x.mean((1, 2)), x.square().mean((1, 2, 3))[:, None]), dim=1)


def prior(unet: Exact | None = None, prediction: str = "epsilon") -> StableDiffusionPrior:
    return StableDiffusionPrior(
        unet or Exact(),
        Blocks(),
        signal=SIGNAL,
        text=torch.zeros(1, 7, 5),
        clip=Colours(),
        prediction=prediction,  # type: ignore[arg-type]
    )


def frames(count: int = 6) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, 24, 24, 3), dtype=np.uint8)


def test_latents_steps_and_text_are_those_of_the_model() -> None:
    unet = Exact()
    model = prior(unet)
    assert (model.size, model.d_feat) == (48, 4) and len(model.alphas) == 51
    step = step_of(model, 0.0101)
    latents = model.encode(frames())
    assert step == 1 and latents.shape == (6, 48) and latents.abs().max() <= SCALING
    found = model.noise(latents, 5)
    assert torch.allclose(found, (1 - SIGNAL[4]).sqrt() * latents)
    assert unet.asked == [(4, (4, 7, 5)), (4, (2, 7, 5))]


def test_a_flat_picture_keeps_its_colour_through_crop_and_vae() -> None:
    latents = prior().encode(np.full((1, 40, 40, 3), 255, np.uint8))
    assert torch.allclose(latents, torch.full((1, 48), SCALING), atol=1e-5)


def test_velocity_is_turned_into_noise() -> None:
    latents = prior().encode(frames())
    assert torch.allclose(prior(Exact(velocity=True), "v_prediction").noise(latents, 20), prior().noise(latents, 20), atol=1e-5)
    with pytest.raises(AuthenticityError, match="predicts 'sample', valid: epsilon, v_prediction"):
        prior(prediction="sample")


def test_angles_are_cosines_between_clip_vectors() -> None:
    model, noises = prior(), spherical_noises(48, 16, 0)
    found = terms(model, frames(), 3, noises)
    assert found["kappa"].abs().max() <= 1 and found["bias"].abs().max() <= model.d_feat**0.5
    clean = model.encode(frames())
    noisy = SIGNAL[2].sqrt() * clean[0] + (1 - SIGNAL[2]).sqrt() * noises
    samples, predicted, drawn = model.embed(clean[:1], model.noise(noisy, 3), noises)
    assert torch.allclose(drawn.norm(dim=1), torch.ones(16)) and torch.allclose(samples.norm(), torch.tensor(1.0))
    assert float(found["kappa"][0]) == pytest.approx(float(F.cosine_similarity(predicted, drawn, dim=1).mean()), abs=1e-5)
    assert float(found["bias"][0]) == pytest.approx(2 * float(F.cosine_similarity(predicted, samples, dim=1).mean()), abs=1e-5)
    assert float(found["gradient"][0]) == pytest.approx(float(predicted.norm(dim=1).mean()), rel=1e-5)


def test_without_weights_or_diffusers_it_says_what_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AuthenticityError, match="diffusion_weights is empty; valid: a folder with model_index.json"):
        StableDiffusionPrior.from_folder("", Colours())  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "diffusers", None)
    with pytest.raises(AuthenticityError, match=r"needs diffusers .*pip install 'armstack\[diffusion\]'"):
        StableDiffusionPrior.from_folder(str(tmp_path), Colours())  # type: ignore[arg-type]

    class Missing:
        @staticmethod
        def from_pretrained(folder: str, **options: Any) -> Any:
            assert options["local_files_only"] and options["use_safetensors"]
            raise OSError(f"no file named model_index.json found in directory {folder}.")

    monkeypatch.setitem(sys.modules, "diffusers", SimpleNamespace(StableDiffusionPipeline=Missing))  # type: ignore[arg-type]
    with pytest.raises(AuthenticityError, match="no Stable Diffusion at .*model_index.json found.*valid: a folder with"):
        StableDiffusionPrior.from_folder(str(tmp_path), Colours())  # type: ignore[arg-type]


@pytest.mark.parametrize(("named", "missing"), [({}, "diffusion-weights"), ({"diffusion_weights": "sd"}, "clip")])
def test_folders_that_are_not_named_are_called_by_their_options(named: dict[str, str], missing: str) -> None:
    with pytest.raises(AuthenticityError, match=f"--config.{missing} is empty; .* needs --config.diffusion-weights .* and --config.clip"):
        stable_diffusion(ManifoldConfig(prior="stable-diffusion", **named))


def test_a_bundle_names_the_weights_it_was_made_with(tmp_path: Path) -> None:
    for part, text in (("unet", b"one"), ("vae", b"two")):
        (tmp_path / part).mkdir()
        (tmp_path / part / "diffusion_pytorch_model.safetensors").write_bytes(text)
    config = ManifoldConfig(prior="stable-diffusion", diffusion_weights=str(tmp_path))
    before = weights_sha256(str(tmp_path))
    (tmp_path / "vae" / "diffusion_pytorch_model.safetensors").write_bytes(b"three")
    bundle = Bundle(kind="recogniser", method="manifold", config={"stable_diffusion": {"sha256": before}}, weights={})
    with pytest.raises(BundleError, match=f"made with Stable Diffusion {before[:12]}; in .* is {weights_sha256(str(tmp_path))[:12]}"):
        prior_of(bundle, config)


def test_all_terms_weigh_one_unless_told() -> None:
    weights = ManifoldConfig().weights
    assert (weights.a, weights.b, weights.c) == (1, 1, 1) and ManifoldConfig(c=0.5).weights.c == 0.5
