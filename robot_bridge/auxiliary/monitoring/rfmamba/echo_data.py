"""Makes recordings of people by the simulated radar (`sim_envs.sensors`); a person who is finished is kept."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from rl_core.training.seeding import numpy_generator
from robot_bridge.auxiliary.monitoring.rfmamba.echoes import HEADER, Recordings, joined, made_from, read_recordings, write_recordings
from robot_bridge.auxiliary.monitoring.rfmamba.interface import RadarError, RadarGeometry
from sim_envs.sensors.humanoid import Build
from sim_envs.sensors.motions import ACTIVITIES
from sim_envs.sensors.radar import Wall
from sim_envs.sensors.recordings import RadarScene, Recorder, Waveform

UNFINISHED = "unfinished"
"""Folder of the people who are recorded, until all are."""


def make(
    out: str | Path,
    *,
    people: int = 300,
    recordings: int = 24,
    frames: int = 4,
    frequencies: int = 32,
    wall: float = 0.5,
    snr_db: float = 20.0,
    dropout: float = 0.4,
    waveform: Waveform = "sfcw",
    seed: int = 0,
    say: Callable[[str], None] = print,
) -> dict[str, float]:
    """Records walking, standing, waving and falling people; called again with equal settings it records only who is missing.

    Another seed gives other people and another cell.

    Args:
        out: folder of the recordings; new, or made with these settings.
        people: how many; each does every activity equally often.
        recordings: of each person.
        frames: of a recording, ten a second.
        frequencies: from 0.8 to 2.8 GHz.
        wall: share of the recordings with a wall between the radar and the person.
        snr_db: of a person at 2 m in free space.
        dropout: share of a body's scatterers that a frame does not show.
        waveform: stepped frequencies (sfcw), or a sweep (fmcw).
        seed: of everything.
        say: told what was done.

    Returns:
        `recordings`, `frames`, and of those made now `frames_per_s`.

    Raises:
        RadarError: settings that cannot be; says which are valid. Or `out` holds recordings of other settings.
    """
    out = Path(out)
    settings = {
        "maker": "simulated radar", "seed": seed, "people": people, "recordings": recordings, "frames": frames, "frequencies": frequencies,
        "wall": wall, "snr_db": snr_db, "dropout": dropout, "waveform": waveform,
    }  # fmt: skip
    if (out / HEADER).exists():
        _require_equal(out, settings)
        data = read_recordings(out)
        say(f"{out}: {len(data)} recordings of {people} people are there already")
        return {"recordings": len(data), "frames": len(data) * frames}

    def kept(person: int, record: Callable[[], Recordings]) -> Recordings:
        place = out / UNFINISHED / f"person-{person:04d}"
        if not (place / HEADER).exists():
            write_recordings(record(), place, settings)
        _require_equal(place, settings)
        return read_recordings(place)

    begun = time.monotonic()
    data = simulate(
        people=people, recordings=recordings, frames=frames, frequencies=frequencies, wall=wall, snr_db=snr_db, dropout=dropout,
        waveform=waveform, seed=seed, once=kept,
    )  # fmt: skip
    rate = len(data) * frames / (time.monotonic() - begun)
    write_recordings(data, out, settings)
    shutil.rmtree(out / UNFINISHED)
    say(f"{out}: {len(data)} recordings of {people} people, {len(data) * frames} frames ({rate:.0f}/s)")
    return {"recordings": len(data), "frames": len(data) * frames, "frames_per_s": rate}


def simulate(
    *,
    people: int,
    recordings: int,
    frames: int,
    wall: float,
    seed: int,
    frequencies: int = 32,
    snr_db: float = 20.0,
    dropout: float = 0.4,
    waveform: Waveform = "sfcw",
    once: Callable[[int, Callable[[], Recordings]], Recordings] = lambda person, record: record(),
) -> Recordings:
    """The recordings themselves; see `make`.

    `once` is given each person's number and what records them, and gives their recordings.
    """
    if people < 1 or recordings < len(ACTIVITIES) or frames < 2 or frequencies < 2:
        raise RadarError(
            f"people {people}, recordings {recordings}, frames {frames}, frequencies {frequencies}; "
            f"valid: at least 1, {len(ACTIVITIES)} (one an activity), 2, 2"
        )
    for name, share in (("wall", wall), ("dropout", dropout)):
        if not 0 <= share <= 1:
            raise RadarError(f"{name} {share}, valid: a share, 0..1")
    if not np.isfinite(snr_db):
        raise RadarError(f"snr_db {snr_db}, valid: a finite number")
    scene = RadarScene(frequencies=frequencies, snr_db=snr_db, dropout=dropout, waveform=waveform)
    array = scene.array
    geometry = RadarGeometry(
        transmitters=tuple(map(tuple, array.transmitters.tolist())),
        receivers=tuple(map(tuple, array.receivers.tolist())),
        frequencies=tuple(array.frequencies.tolist()),
        frames=frames,
        period_s=scene.period_s,
    )
    recorder, parts = Recorder(scene, numpy_generator(seed, "cell")), []
    columns = (TextColumn("recording"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        for person in bar.track(range(people)):
            rng = numpy_generator(seed, "person", person)
            parts.append(once(person, partial(_person, recorder, geometry, person, recordings, wall, rng)))
    return joined(parts)


def _person(recorder: Recorder, geometry: RadarGeometry, person: int, recordings: int, wall: float, rng: np.random.Generator) -> Recordings:
    build = Build(height=float(rng.normal(1.0, 0.05)), girth=float(rng.normal(1.0, 0.1)))
    found, walls = [], []
    for take in range(recordings):
        between = _wall(rng) if rng.random() < wall else None
        found.append(recorder.record(build, ACTIVITIES[take % len(ACTIVITIES)], geometry.frames, rng, wall=between))
        walls.append(between is not None)
    return Recordings(
        geometry=geometry,
        activities=ACTIVITIES,
        echoes=np.stack([each.echoes for each in found]),
        backgrounds=np.stack([each.background for each in found]),
        joints=np.stack([each.joints for each in found]),
        activity=np.stack([each.activity for each in found]),
        body=np.stack([each.body for each in found]),
        people=np.full(recordings, person, np.int64),
        behind_wall=np.array(walls, bool),
    )


def _require_equal(place: Path, settings: Mapping[str, Any]) -> None:
    if (found := made_from(place)) != settings:
        raise RadarError(f"{place}: holds recordings of {found}; asked for: {dict(settings)}; valid: equal settings, or a new folder")


def _wall(rng: np.random.Generator) -> Wall:
    return Wall(
        attenuation=float(rng.uniform(0.3, 0.7)), thickness_m=float(rng.uniform(0.1, 0.2)), permittivity=float(rng.uniform(3.0, 6.0))
    )
