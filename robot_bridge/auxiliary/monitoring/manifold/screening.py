"""Which episodes of a dataset hold generated frames: world-model or inpainted frames must not pass as demonstrations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Channel
from rl_core.data.episode import Dataset
from robot_bridge.auxiliary.bundles import Recognition
from robot_bridge.auxiliary.monitoring.manifold.dataset_frames import chosen_frames
from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError
from robot_bridge.auxiliary.monitoring.manifold.recogniser import AuthenticityRecogniser

SHOWN = 24
"""Frames that are kept to be looked at."""
_BATCH = 32


@dataclass(frozen=True, kw_only=True)
class Screened:
    """What was found in one image channel of one episode, or (uuid "") of all together.

    Attributes:
        uuid: of the episode.
        channel: name.
        frames: judged.
        flagged: share of them above the threshold.
        allowed: share that real frames explain.
    """

    uuid: str
    channel: str
    frames: int
    flagged: float
    allowed: float

    @property
    def suspicious(self) -> bool:
        """More than real frames explain."""
        return self.flagged > self.allowed

    @property
    def can_tell(self) -> bool:
        """Whether any share would be more than real frames explain."""
        return self.allowed < 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Suspect:
    """A flagged frame.

    Attributes:
        uuid: of its episode.
        channel: name.
        step: of the episode.
        deviations: above the mean of real frames.
        frame: (H, W, 3), first row on top.
    """

    uuid: str
    channel: str
    step: int
    deviations: float
    frame: NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class Screening:
    """What was found in a dataset.

    Attributes:
        episodes: a row each episode and channel.
        channels: a row each channel.
        skipped: channel -> why it was not judged.
        suspects: up to `SHOWN` flagged frames, the most suspicious first.
    """

    episodes: tuple[Screened, ...]
    channels: tuple[Screened, ...]
    skipped: dict[str, str]
    suspects: tuple[Suspect, ...] = ()

    @property
    def suspicious(self) -> tuple[str, ...]:
        """Uuids of the episodes of which a channel is."""
        return tuple(dict.fromkeys(row.uuid for row in self.episodes if row.suspicious))


def screen(
    dataset: Dataset, recogniser: AuthenticityRecogniser, made_for: Recognition, told: Callable[[str], None] = lambda text: None
) -> Screening:
    """Judges up to `dataset_frames.FRAMES` frames of every episode and image channel.

    Args:
        dataset: with pictures.
        recogniser: of a bundle of `manifold`.
        made_for: what that bundle says of its camera.
        told: what is being done.

    Raises:
        AuthenticityError: no channel of pictures that the detector takes; says why of each.
    """
    taken, skipped = _channels(dataset.contract.observation, made_for)
    episodes = [episode for episode in dataset.episodes if len(episode)]
    if not taken or not episodes:
        why = "; ".join(f"{name}: {reason}" for name, reason in skipped.items()) or "no image channel, or no steps"
        raise AuthenticityError(f"{dataset.source or 'dataset'}: nothing to judge ({why}); valid: rgb8 pictures of the bundle's size")
    tests = len(taken) * (len(episodes) + 1)
    rows: list[Screened] = []
    sums: list[Screened] = []
    suspects: list[Suspect] = []
    for channel in taken:
        counts, flagged = [], []
        for number, episode in enumerate(episodes):
            told(f"{channel.name}: episode {number + 1} of {len(episodes)}")
            chosen, upright = chosen_frames(episode, channel)
            found = [recogniser.predict(upright[at : at + _BATCH]) for at in range(0, len(upright), _BATCH)]
            made = np.concatenate([each.scores[:, 1] > 0.5 for each in found])
            deviations = np.concatenate([each.values["deviations"] for each in found])
            suspects += [
                Suspect(
                    uuid=episode.uuid,
                    channel=channel.name,
                    step=int(chosen[at]),
                    deviations=float(deviations[at]),
                    frame=upright[at].copy(),
                )
                for at in np.flatnonzero(made)
            ]
            suspects = sorted(suspects, key=lambda each: -each.deviations)[:SHOWN]
            counts.append(len(upright))
            flagged.append(float(made.mean()))
            allowed = recogniser.calibration.allowed_share(np.array(counts[-1:]), tests)
            rows.append(Screened(uuid=episode.uuid, channel=channel.name, frames=counts[-1], flagged=flagged[-1], allowed=allowed))
        share, allowed = float(np.average(flagged, weights=counts)), recogniser.calibration.allowed_share(np.array(counts), tests)
        sums.append(Screened(uuid="", channel=channel.name, frames=sum(counts), flagged=share, allowed=allowed))
    return Screening(episodes=tuple(rows), channels=tuple(sums), skipped=skipped, suspects=tuple(suspects))


def _channels(observation: Sequence[Channel], made_for: Recognition) -> tuple[list[Channel], dict[str, str]]:
    """Those whose pictures the detector takes, and why not of the others; a picture that stands on its head is turned."""
    taken, skipped = [], {}
    for channel in observation:
        if channel.kind != "image":
            continue
        needed = made_for.camera
        differences = [
            f"{name} {getattr(channel, name)}, the bundle needs {getattr(needed, name)}"
            for name in ("shape", "encoding")
            if needed is not None and getattr(channel, name) != getattr(needed, name)
        ]
        if differences:
            skipped[channel.name] = ", ".join(differences)
        else:
            taken.append(channel)
    return taken, skipped
