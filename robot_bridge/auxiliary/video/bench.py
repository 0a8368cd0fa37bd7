"""ClipBench: clips that all contenders are compared on, a base model that knows the words, and tokens worked out once for all runs."""

from __future__ import annotations

import fcntl
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from robot_bridge.auxiliary.image_files import read_images
from robot_bridge.auxiliary.video.clip_data import STILLS, make
from robot_bridge.auxiliary.video.clips import ClipData, read_shards
from robot_bridge.auxiliary.video.schedule import PLAIN, MergeSchedule, matched_frames, matched_per_frame, multiply_adds, plan_blocks
from robot_bridge.auxiliary.video.training import ClipTokens, clip_tokens
from robot_bridge.auxiliary.vlm.contrastive import ContrastiveConfig
from robot_bridge.auxiliary.vlm.recipe import VLMRecipe, save_vlm, train_vlm
from robot_bridge.auxiliary.vlm.small import SmallVLM, SmallVLMConfig
from sim_envs.clips.behaviours import every_word

TRAIN_SEED, TEST_SEED, STILLS_SEED = 8100, 8200, 8300
"""Each has scenes of its own; no other data use them."""


class ClipBench:
    """Clips to train and to test on, and the model under all contenders.

    Args:
        config: `clips` {train, test}, `stills` that the base model is trained on, `frames`, `size` in pixels, `model` (fields of
            `SmallVLMConfig`), `training` (of `ContrastiveConfig`), `schedule` (of `MergeSchedule`), and optionally `seeds` {train, test,
            stills} in place of the module's.
        folder: where all that is kept; runs side by side share it, the first one makes it.
    """

    def __init__(self, config: dict[str, Any], folder: Path) -> None:
        self._config, self.folder = config, folder
        self._seeds = {"train": TRAIN_SEED, "test": TEST_SEED, "stills": STILLS_SEED, **config.get("seeds", {})}
        self.schedule = MergeSchedule.from_dict(config["schedule"])

    @cached_property
    def train(self) -> ClipData:
        """Clips to train on."""
        return self._clips("train")

    @cached_property
    def test(self) -> ClipData:
        """Clips to search in."""
        return self._clips("test")

    @cached_property
    def vlm(self) -> SmallVLM:
        """The frozen base model: trained on stills, so that it knows what things and doings look like in one picture."""
        place = self.folder / "vlm"
        with self._alone():
            if not (place / "bundle.json").is_file():
                stills = self.folder / "base"
                make(stills, clips=2, stills=self._config["stills"], size=self._config["size"], seed=self._seeds["stills"], say=_quiet)
                data = read_images(stills / STILLS)
                recipe = VLMRecipe(
                    model=SmallVLMConfig(**self._config["model"]), training=ContrastiveConfig(**self._config.get("training", {}))
                )
                model = train_vlm(data, recipe, self._seeds["stills"], words=every_word(), cache=self.folder / "maps")
                save_vlm(model, place, data, recipe, self._seeds["stills"], {})
        return SmallVLM.load(place)

    def tokens(self, data: ClipData) -> ClipTokens:
        """The clips' tokens of the base model."""
        vlm = self.vlm  # has a lock of its own
        with self._alone():
            return clip_tokens(vlm, data, self.folder / "tokens")

    @property
    def sizes(self) -> dict[str, int]:
        """Of the vision tower, for the functions of `schedule`."""
        grid = self.vlm.backbone.grid
        return {"blocks": self.vlm.config.blocks, "frames": self._config["frames"], "tokens": 1 + grid**2, "width": self.vlm.config.width}

    def budget(self) -> int:
        """Multiply-adds of a clip with the schedule."""
        return self.cost(self.schedule, self.sizes["frames"])

    def cost(self, schedule: MergeSchedule, frames: int) -> int:
        """Multiply-adds of a clip."""
        plans = plan_blocks(schedule, blocks=self.sizes["blocks"], frames=schedule.padded(frames), tokens=self.sizes["tokens"])
        return multiply_adds(plans, self.sizes["width"])

    def contender(self, name: str) -> tuple[MergeSchedule, int]:
        """Schedule and frames of `tempme`, `lora` (nothing merges), `tome` (inside frames alone) and `dropped` (fewer frames); the latter
        two cost as much as `tempme`, or a little more."""
        frames = self.sizes["frames"]
        if name == "tome":
            return PLAIN.override(per_frame=matched_per_frame(self.budget(), **self.sizes)), frames
        if name == "dropped":
            return PLAIN, matched_frames(self.budget(), **self.sizes)
        return {"tempme": self.schedule, "lora": PLAIN}[name], frames

    def _clips(self, kind: str) -> ClipData:
        count, frames, size = self._config["clips"][kind], self._config["frames"], self._config["size"]
        place = self.folder / f"{kind}-{count}-{frames}-{size}"
        with self._alone():
            make(place, clips=count, frames=frames, size=size, seed=self._seeds[kind], say=_quiet)
        return read_shards(place)

    def _alone(self) -> IO[str]:
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = open(self.folder / "lock", "w")  # held until it is closed
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock


def _quiet(line: str) -> None:
    """Every run would repeat what the first one said."""
