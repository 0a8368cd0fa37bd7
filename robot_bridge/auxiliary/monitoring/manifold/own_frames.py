"""Generated frames for a first look at a detector: samples of its own DDPM, in the tone and place of real frames."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rl_core.training.seeding import derive_seed
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.monitoring.manifold.ddpm import PixelPrior
from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError
from robot_bridge.auxiliary.monitoring.manifold.frames import require_shape
from robot_bridge.auxiliary.monitoring.manifold.pixels import as_crops, cut, put_back
from robot_bridge.auxiliary.monitoring.manifold.recogniser import AuthenticityRecogniser


def make_frames(detector: AuthenticityRecogniser, real: ImageData, steps: int, seed: int) -> NDArray[np.uint8]:
    """As many frames as there are real ones, each with a sample in the place of the square that the detector looks at.

    Args:
        detector: with a DDPM.
        real: frames of its camera, which give tone and surroundings.
        steps: of the sampler; the DDPM's share of noise was chosen on samples of `sampling_steps`.
        seed: of the samples; they are other ones than those of the training.

    Raises:
        AuthenticityError: a detector without a DDPM, or frames of another size.
    """
    prior = detector.scorer.prior
    if not isinstance(prior, PixelPrior):
        raise AuthenticityError("a detector on Stable Diffusion makes no frames here; valid: one with a DDPM (--config.prior ddpm)")
    require_shape(real, detector.shape, "real frames")
    crops = cut(real.frames, detector.side, detector.tiles)
    return put_back(as_crops(prior.sample(len(crops), derive_seed(seed, "frames"), steps), crops), real.frames, detector.tiles)
