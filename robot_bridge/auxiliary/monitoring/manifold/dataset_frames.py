"""Frames of a dataset's image channels, as a class each; an episode counts as one scene."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Channel
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.formats import find_format, read_dataset
from robot_bridge.auxiliary.image_data import ImageData, ImageDataError

FRAMES = 50
"""Frames of an episode that are taken, spread evenly; more are near copies."""


def is_dataset(path: Path) -> bool:
    """Whether a file or folder has one of the formats of `rl_core.data.formats`."""
    try:
        find_format(path)
    except DatasetError:
        return False
    return True


def dataset_frames(path: Path) -> ImageData:
    """Up to `FRAMES` frames of every episode and rgb8 channel.

    Raises:
        DatasetError: not readable.
        ImageDataError: no such channel, or channels of two sizes.
    """
    dataset = read_dataset(path)
    channels = colour_channels(dataset)
    shapes = {channel.name: tuple(channel.shape) for channel in channels}
    if len(set(shapes.values())) != 1:
        found = ", ".join(f"{name} {shape}" for name, shape in shapes.items()) or "none"
        raise ImageDataError(f"{path}: rgb8 image channels: {found}; valid: one or more, all of one size (others go into another dataset)")
    frames, labels, instances = [], [], []
    for number, episode in enumerate(dataset.episodes):
        for label, channel in enumerate(channels):
            taken = chosen_frames(episode, channel)[1]
            frames.append(taken)
            labels += [label] * len(taken)
            instances += [number] * len(taken)
    return ImageData(
        frames=np.concatenate(frames), labels=np.array(labels, np.int64), classes=tuple(shapes), instances=np.array(instances, np.int64)
    )


def colour_channels(dataset: Dataset) -> list[Channel]:
    """The channels with RGB pictures."""
    return [channel for channel in dataset.contract.observation if channel.kind == "image" and channel.encoding == "rgb8"]


def chosen_frames(episode: Episode, channel: Channel) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Steps, spread evenly, and their frames (n, H, W, 3), first row on top."""
    pictures = episode.observations[channel.name]
    steps = np.unique(np.linspace(0, len(pictures) - 1, FRAMES).round().astype(np.int64))
    frames = np.asarray(pictures[steps])
    return steps, np.ascontiguousarray(frames[:, ::-1] if channel.row_order == "bottom_up" else frames)
