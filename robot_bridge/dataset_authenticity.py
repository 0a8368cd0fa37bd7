"""`armstack doctor DATA --authenticity BUNDLE`: are there generated frames in a dataset, and a copy of it without their episodes."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from rl_core.bundle import Bundle, bundle_sha256
from rl_core.data.editing import filter_episodes
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.formats.convert import choose_writer, require_place, save
from robot_bridge.auxiliary.bundles import recognition_of
from robot_bridge.auxiliary.monitoring.manifold.recogniser import AuthenticityRecogniser
from robot_bridge.auxiliary.monitoring.manifold.screening import Screening, screen
from robot_bridge.auxiliary.registry import find_method, load_auxiliary
from robot_bridge.commands.output import console
from robot_bridge.dataset_output import working
from robot_bridge.diagnosis import Finding

METHOD = "manifold"


def screen_dataset(dataset: Dataset, bundle: Path) -> tuple[Screening, list[Finding], dict[str, Any]]:
    """Judges a dataset's pictures with a bundle of `manifold`: what was found, a finding each channel and suspicious episode, figures.

    Raises:
        BundleError: no such bundle, or one of another method.
        AuthenticityError: no pictures that it takes.
    """
    made = Bundle.load(bundle)
    recogniser: AuthenticityRecogniser = load_auxiliary(find_method(METHOD), made)
    with working() as progress:
        found = screen(dataset, recogniser, recognition_of(made), progress)
    expected = recogniser.calibration.false_positive_rate
    figures = {
        "bundle": str(bundle),
        "sha256": bundle_sha256(bundle),
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
        if not row.suspicious:
            findings.append(Finding(subject=subject, level="ok", found=f"{share} ({expected:.1%} are expected)"))
            continue
        advice = "leave it out with --cleaned" if row.uuid else "look at its episodes; a camera that the bundle does not know looks alike"
        findings.append(Finding(subject=subject, level="error", found=share, advice=advice))
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
    """Checks before anything is judged that a copy may be written.

    Raises:
        DatasetError: it may not, or its ending says no format.
    """
    choose_writer(out)
    require_place(out, overwrite=overwrite, sources=[source])


def write_cleaned(dataset: Dataset, found: Screening, out: Path) -> dict[str, Any]:
    """Writes the episodes that are not suspicious; they keep their uuids, and their history says how they were chosen.

    Raises:
        DatasetError: none is left.
    """
    kept = [episode.uuid for episode in dataset.episodes if episode.uuid not in found.suspicious]
    if not kept:
        raise DatasetError(f"{out}: not written, all {len(dataset)} episodes look generated; valid: one or more that do not")
    with working() as progress:
        written = save(filter_episodes(dataset, uuids=kept), out, choose_writer(out), progress=progress)
    console.print(f"wrote {written.path}: {written.episodes} of {len(dataset)} episodes")
    return {"out": str(written.path), "episodes": written.episodes, "steps": written.steps, "fingerprint": written.fingerprint}
