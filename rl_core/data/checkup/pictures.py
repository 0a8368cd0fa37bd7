"""Checks of cameras: black and empty pictures, and pictures that stand still while the arm moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Channel
from rl_core.data.checkup.motion import still_steps
from rl_core.data.checkup.report import Finding
from rl_core.data.episode import Dataset

BLACK = 10
"""Of 255; a picture without a brighter value is black."""
FROZEN_S = 1.0
"""A picture that stays the same for longer while the arm moves is a frozen camera."""
REPEATED_SHARE = 0.1
"""Share of repeated pictures, beyond what the camera's rate explains, that is worth a warning."""
_PROBES = 64
"""Pixels looked at first; only pictures that agree in these are looked at whole."""


def check_pictures(dataset: Dataset, figures: dict[str, Any]) -> Finding:
    """Every camera's pictures; which way up they are cannot be seen from numbers, so what is declared is said."""
    cameras = [channel for channel in dataset.contract.observation if channel.kind == "image"]
    figures["pictures"] = {camera.name: _camera(dataset, camera) for camera in cameras}
    if not cameras:
        return Finding(subject="pictures", level="ok", found="no camera")
    said, faults = [], []
    for camera in cameras:
        of = figures["pictures"][camera.name]
        said.append(f"{camera.name} {camera.shape[1]} x {camera.shape[0]} {camera.encoding} {camera.row_order}")
        if of["black"] or of["one_colour"]:
            faults.append(f"{camera.name}: of {of['frames']} pictures {of['black']} are black, {of['one_colour']} of one other colour")
        explained = max(0.0, 1 - camera.rate_hz * dataset.contract.action.period_s) if camera.rate_hz else 0.0
        if of["longest_freeze_s"] > FROZEN_S or of["repeated_while_moving"] > explained + REPEATED_SHARE:
            repeated, longest = of["repeated_while_moving"], of["longest_freeze_s"]
            faults.append(f"{camera.name}: {repeated:.1%} of the moving steps repeat the picture before, for up to {longest:.3g} s")
    declared = f"declared {', '.join(said)}"
    if faults:
        advice = "look at the pictures in `--html`; find the camera that was covered, unplugged or too slow"
        return Finding(subject="pictures", level="warning", found=f"{'; '.join(faults)}; {declared}", advice=advice)
    advice = "numbers don't tell which way up they are: look at the pictures in `--html`"
    return Finding(subject="pictures", level="ok", found=f"{declared}; none black, empty or frozen", advice=advice)


def _camera(dataset: Dataset, camera: Channel) -> dict[str, Any]:
    frames = black = one_colour = repeated = moving = 0
    longest = 0.0
    for episode in dataset.episodes:
        pictures = np.asarray(episode.observations[camera.name])
        frames += len(pictures)
        for picture in _empty(pictures):
            black, one_colour = (black + 1, one_colour) if picture.max() < BLACK else (black, one_colour + 1)
        if not len(episode):
            continue
        still = still_steps(episode)
        moves = np.ones(len(episode), bool) if still is None else ~still
        same = _same_as_before(pictures) & moves
        repeated, moving = repeated + int(same.sum()), moving + int(moves.sum())
        longest = max(longest, _longest_s(same, episode.stamps_ns))
    return {
        "encoding": camera.encoding,
        "row_order": camera.row_order,
        "frames": frames,
        "black": black,
        "one_colour": one_colour,
        "repeated_while_moving": repeated / max(moving, 1),
        "longest_freeze_s": longest,
    }


def _probe(pictures: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(T, pixels, channels) some pixels of each picture."""
    flat = pictures.reshape(len(pictures), -1, pictures.shape[-1])
    return flat[:, :: max(1, flat.shape[1] // _PROBES)]


def _empty(pictures: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
    """The pictures that are black or of one colour."""
    probe = _probe(pictures)
    candidates = (probe == probe[:, :1]).all(axis=(1, 2)) | (probe.max(axis=(1, 2)) < BLACK)
    for picture in pictures[candidates]:
        if picture.max() < BLACK or (picture == picture[:1, :1]).all():
            yield picture


def _same_as_before(pictures: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """(T,) whether picture t + 1 equals picture t."""
    probe = _probe(pictures)
    same = (probe[1:] == probe[:-1]).all(axis=(1, 2))
    for index in np.flatnonzero(same):
        same[index] = np.array_equal(pictures[index], pictures[index + 1])
    return same


def _longest_s(flags: NDArray[np.bool_], stamps_ns: NDArray[np.int64]) -> float:
    """Seconds of the longest run of steps that are flagged."""
    edges = np.diff(np.concatenate([[0], flags.astype(np.int8), [0]]))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    return float((stamps_ns[ends] - stamps_ns[starts]).max() * 1e-9) if len(starts) else 0.0
