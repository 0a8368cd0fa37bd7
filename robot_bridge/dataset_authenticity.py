"""`armstack doctor DATA --authenticity BUNDLE`: are there generated frames in a dataset, and a copy of it without their episodes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from rl_core.bundle import bundle_sha256
from rl_core.data.editing import filter_episodes
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.formats.base import losses
from rl_core.data.formats.convert import choose_writer, require_place, save
from robot_bridge.auxiliary.bundle_folders import read_bundle
from robot_bridge.auxiliary.bundles import Recognition, recognition_of
from robot_bridge.auxiliary.monitoring.manifold.recogniser import AuthenticityRecogniser
from robot_bridge.auxiliary.monitoring.manifold.screening import Screened, Screening, screen
from robot_bridge.auxiliary.registry import find_method, load_auxiliary
from robot_bridge.commands.output import console
from robot_bridge.dataset_output import working
from robot_bridge.diagnosis import Finding

METHOD = "manifold"


@dataclass(frozen=True, kw_only=True, eq=False)
class Detector:
    """A bundle of `manifold`, ready to judge: where it lies, what it judges with, and what it says of its camera."""

    folder: Path
    recogniser: AuthenticityRecogniser
    made_for: Recognition


def read_detector(folder: Path) -> Detector:
    """The detector of a bundle's folder.

    Raises:
        BundleError: no such bundle, or one of another method.
    """
    made = read_bundle(folder, METHOD)
    return Detector(folder=folder, recogniser=load_auxiliary(find_method(METHOD), made), made_for=recognition_of(made))


def screen_dataset(dataset: Dataset, detector: Detector) -> tuple[Screening, list[Finding], dict[str, Any]]:
    """Judges a dataset's pictures: what was found, a finding each channel and suspicious episode, figures.

    Raises:
        AuthenticityError: no pictures that the detector takes.
    """
    with working() as progress:
        found = screen(dataset, detector.recogniser, detector.made_for, progress)
    expected = detector.recogniser.calibration.false_positive_rate
    figures = {
        "bundle": str(detector.folder),
        "sha256": bundle_sha256(detector.folder),
        "false_positive_rate": expected,
        "episodes": [{**asdict(row), "suspicious": row.suspicious} for row in found.episodes],
        "channels": [{**asdict(row), "suspicious": row.suspicious} for row in found.channels],
        "skipped": found.skipped,
        "suspicious": list(found.suspicious),
    }
    return found, _findings(found, expected), figures


def _findings(found: Screening, expected: float) -> list[Finding]:
    findings = [
        Finding(subject=f"authenticity of {name}", level="warning", found=f"not judged: {why}") for name, why in found.skipped.items()
    ]
    for row in (*found.channels, *(each for each in found.episodes if each.suspicious)):
        share = f"{row.flagged:.1%} of {row.frames} frames look generated; real ones explain {row.allowed:.1%}"
        subject = f"authenticity of {row.channel}" + (f", episode {row.uuid}" if row.uuid else "")
        if not row.can_tell:
            advice = "train the detector on real frames of more objects or scenes, several of each"
            findings.append(Finding(subject=subject, level="warning", found=f"{share}: cannot be judged", advice=advice))
            continue
        if not row.suspicious:
            findings.append(Finding(subject=subject, level="ok", found=f"{share} ({expected:.1%} are expected)"))
            continue
        advice = "leave it out with --cleaned" if row.uuid else "look at its episodes; a camera that the bundle does not know looks alike"
        findings.append(Finding(subject=subject, level="error", found=share, advice=advice))
    if blind := sum(not row.can_tell for row in found.episodes):
        findings.append(
            Finding(
                subject="authenticity of single episodes",
                level="warning",
                found=f"{blind} of {len(found.episodes)} cannot be judged: real frames of one scene err together, whatever share they are",
                advice="look at the channel as a whole; --cleaned leaves none of them out",
            )
        )
    return findings


def show_shares(found: Screening) -> None:
    """A row each episode and channel, for people."""
    table = Table(title="frames that look generated", box=None, pad_edge=False)
    for heading in ("episode", "channel", "frames", "share", "explained"):
        table.add_column(heading, justify="left" if heading in ("episode", "channel") else "right")
    for row in found.episodes:
        table.add_row(
            row.uuid, row.channel, str(row.frames), f"{row.flagged:.1%}", f"{row.allowed:.1%}", style="red" if row.suspicious else ""
        )
    console.print(table)


def check_place(source: Path, out: Path, *, overwrite: bool) -> None:
    """Checks before anything is read that a copy may be written.

    Raises:
        DatasetError: it may not, or its ending says no format.
    """
    choose_writer(out)
    require_place(out, overwrite=overwrite, sources=[source])


def check_format(dataset: Dataset, out: Path) -> None:
    """Checks before anything is judged that the format of a copy holds all of the dataset.

    Raises:
        DatasetError: it does not; says what it cannot hold.
    """
    writer = choose_writer(out)
    writer.check_contract(dataset.contract, out)
    # the copy's history, which says how its episodes were chosen, has to go along
    if lost := losses(writer, filter_episodes(dataset, uuids=[episode.uuid for episode in dataset.episodes])):
        found = "; ".join(f"{name} ({text})" for name, text in lost.items())
        raise DatasetError(f"--cleaned {out}: {writer.name} cannot hold {found}; valid: {out.with_suffix('.hdf5')}, which holds all")


def write_cleaned(dataset: Dataset, found: Screening, detector: Detector, out: Path) -> tuple[list[Finding], dict[str, Any]]:
    """Writes the episodes that are not suspicious; they keep their uuids, and their history says how they were chosen.

    Returns:
        What is still suspicious in the copy, or that none was left for one, and figures.
    """
    kept = [episode.uuid for episode in dataset.episodes if episode.uuid not in found.suspicious]
    if not kept:
        return [
            Finding(
                subject=f"copy {out}",
                level="error",
                found=f"not written, all {len(dataset)} episodes look generated; valid: one or more that do not",
                advice="look at their frames (--sheet)",
            )
        ], {"out": None, "episodes": 0, "left_out": len(dataset)}
    with working() as progress:
        written = save(filter_episodes(dataset, uuids=kept), out, choose_writer(out), progress=progress)
    nothing = "" if len(kept) < len(dataset) else "; no episode is suspicious by itself, so nothing was left out"
    console.print(f"wrote {written.path}: {written.episodes} of {len(dataset)} episodes{nothing}")
    left = _left(found, detector, kept)
    findings = [
        Finding(
            subject=f"copy {written.path}, authenticity of {row.channel}",
            level="error",
            found=f"{row.flagged:.1%} of {row.frames} frames look generated; real ones explain {row.allowed:.1%}{nothing}",
            advice="look at the channel's frames (--sheet); do not use them as they are",
        )
        for row in left
    ]
    figures = {"out": str(written.path), "episodes": written.episodes, "steps": written.steps, "fingerprint": written.fingerprint}
    return findings, {**figures, "left_out": len(dataset) - len(kept), "suspicious_channels": [row.channel for row in left]}


def _left(found: Screening, detector: Detector, kept: list[str]) -> list[Screened]:
    """The channels that are suspicious as a whole in the episodes that stay."""
    tests, rows = len(found.episodes) + len(found.channels), []
    for channel in found.channels:
        those = [row for row in found.episodes if row.channel == channel.channel and row.uuid in kept]
        counts = np.array([row.frames for row in those])
        if len(counts):
            share = float(np.average([row.flagged for row in those], weights=counts))
            allowed = detector.recogniser.calibration.allowed_share(counts, tests)
            rows.append(Screened(uuid="", channel=channel.channel, frames=int(counts.sum()), flagged=share, allowed=allowed))
    return [row for row in rows if row.suspicious]
