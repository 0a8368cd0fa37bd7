"""Frames to judge a detector of generated frames on: `real` of a folder, and `generated` ones that the detector's own DDPM makes.

python examples/generated_frames.py --bundle runs/authenticity/bundle --data data/parts-test --out data/frames
armstack aux eval manifold --bundle runs/authenticity/bundle --data data/frames
"""

from __future__ import annotations

from rl_core.example import running, take_interrupts

if __name__ == "__main__":
    take_interrupts()  # what follows takes seconds to import

from pathlib import Path

import numpy as np
import tyro
from PIL import Image

from rl_core.errors import ArmstackError
from robot_bridge.auxiliary.monitoring.manifold.config import ManifoldConfig
from robot_bridge.auxiliary.monitoring.manifold.frames import read_frames
from robot_bridge.auxiliary.monitoring.manifold.own_frames import make_frames
from robot_bridge.dataset_authenticity import read_detector


def main(bundle: Path, data: Path, out: Path, frames: int = 200, seed: int = 0) -> None:
    """Writes OUT/real/SCENE/NUMBER.png and OUT/generated/NUMBER.png.

    Args:
        bundle: of `armstack aux train manifold`, with a DDPM.
        data: frames of the same camera that the bundle was not trained on.
        out: a new folder.
        frames: of each kind, at most.
        seed: of the choice of real frames and of the generated ones.
    """
    if out.exists():
        raise ArmstackError(f"--out {out}: exists already; valid: a new folder")
    real = read_frames(data)
    real = real.select(np.random.default_rng(seed).permutation(len(real))[:frames])
    detector = read_detector(bundle)
    made = make_frames(detector.recogniser, real, detector.made_for.config(ManifoldConfig).sampling_steps, seed)
    for number, (frame, generated, scene) in enumerate(zip(real.frames, made, real.instances, strict=True)):
        for picture, folder in ((frame, out / "real" / f"{scene:05d}"), (generated, out / "generated")):
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(folder / f"{number:05d}.png")
    print(f"{out}: {len(real)} real and {len(made)} generated frames")


if __name__ == "__main__":
    with running():
        tyro.cli(main)
