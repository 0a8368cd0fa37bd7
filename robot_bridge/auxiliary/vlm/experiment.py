"""The runs behind the small VLM's figures: trained on parts of one seed, judged on objects of another, with and without shifts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.image_files import read_images
from robot_bridge.auxiliary.parts_data import make
from robot_bridge.auxiliary.vlm.contrastive import ContrastiveConfig
from robot_bridge.auxiliary.vlm.recipe import VLMRecipe, save_vlm, train_vlm, zero_shot_figures
from robot_bridge.auxiliary.vlm.small import SmallVLMConfig
from sim_envs.parts.captions import every_word

TRAIN_SEED, TEST_SEED = 0, 1
"""Objects of the training pictures, and those of the test pictures; no method's data use these seeds again."""


def run(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Makes the pictures, trains, and measures; the model lies in `run_dir/vlm`.

    Args:
        config: `images` {train, test}, `size` in pixels, `shifts` to judge beside none, and optionally `held_out`, `model` (fields of
            `SmallVLMConfig`) and `training` (fields of `ContrastiveConfig`).
        seed: of weights and batches; pictures are the same for all.
        run_dir: of the run; pictures and maps lie beside it and are shared.
    """
    shared = run_dir.parent / "vlm-data"
    recipe = VLMRecipe(
        held_out=tuple(config.get("held_out", ())),
        model=SmallVLMConfig(**config.get("model", {})),
        training=ContrastiveConfig(**config.get("training", {})),
    )
    data = _pictures(shared, "train", "none", config["images"]["train"], config["size"], TRAIN_SEED)
    begun = time.process_time()
    model = train_vlm(data, recipe, seed, words=every_word(), cache=shared / "maps")
    figures: dict[str, Any] = {"time/training_s": time.process_time() - begun}
    for shift in ("none", *config.get("shifts", ())):
        tests = _pictures(shared, "test", shift, config["images"]["test"], config["size"], TEST_SEED)
        found = zero_shot_figures(model, tests, recipe.held_out)
        figures |= {f"{shift}/{name}" if shift != "none" else name: value for name, value in found.items()}
    save_vlm(model, run_dir / "vlm", data, recipe, seed, figures)
    return figures


def _pictures(folder: Path, kind: str, shift: str, images: int, size: int, seed: int) -> ImageData:
    place = folder / f"{kind}-{shift}-{images}-{size}"
    make(place, images=images, size=size, shift=shift, seed=seed)  # type: ignore[arg-type]  # the names of shifts are checked there
    return read_images(place)
