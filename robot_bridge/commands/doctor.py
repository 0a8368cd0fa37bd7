"""`armstack doctor`: what is wrong with this machine, a dataset, a bundle or an environment."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.table import Table
from rich.text import Text

from rl_core.data.episode import Dataset
from rl_core.data.formats import locate
from rl_core.errors import ArmstackError
from robot_bridge.commands.output import console, emit_json
from robot_bridge.diagnosis import Finding, Level, check_machine, not_finite
from robot_bridge.output_places import check_file, check_page

if TYPE_CHECKING:
    from robot_bridge.dataset_authenticity import Detector

_ENVIRONMENT = re.compile(r"([\w.-]+:)?([\w.-]+/)?[\w.-]+-v\d+")
_COLOURS = {"ok": "green", "warning": "yellow", "error": "red"}


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Without a target: versions, conflicts, GL and ROS of this machine. With one: checks it.

    The exit status is 1 where an error was found.
    """

    target: Annotated[str | None, tyro.conf.Positional] = None
    """A dataset (HDF5 file or folder), a bundle folder, or an environment id such as armstack/Lift-v0."""
    html: Path | None = None
    """Of a dataset: write a page with findings, plots and pictures to this file."""
    authenticity: Path | None = None
    """Of a dataset: a bundle of `armstack aux train manifold`; says how many of each episode's frames look generated."""
    cleaned: Path | None = None
    """With --authenticity: write a copy without the episodes that look generated to this file or folder."""
    sheet: Path | None = None
    """With --authenticity: write the frames that look most generated to this PNG."""
    overwrite: bool = False
    """Replace a dataset that is there already."""
    json: bool = False
    """Print one JSON object on the last line."""


def _is_bundle(target: str) -> bool:
    return (Path(target) / "bundle.json").is_file()


def _bundle_findings(path: Path) -> list[Finding]:
    from rl_core.bundle import Bundle, bundle_sha256, library_versions
    from rl_core.methods import load_policy

    bundle = Bundle.load(path)
    findings = [
        Finding(subject="sha256", level="ok", found=bundle_sha256(path)),
        Finding(subject="method", level="ok", found=f"{bundle.method} ({bundle.kind})"),
    ]
    bad = not_finite(bundle.weights)
    advice = "train again; these weights cannot act" if bad else ""
    findings.append(
        Finding(subject="weights", level="error" if bad else "ok", found=f"not finite: {bad}" if bad else "finite", advice=advice)
    )
    now = library_versions()
    for name, version in bundle.versions.items():
        level: Level = "ok" if now.get(name) == version else "warning"
        advice = "" if level == "ok" else "actions may differ in the last digits"
        findings.append(Finding(subject=name, level=level, found=f"made with {version}, here {now.get(name)}", advice=advice))
    if bundle.kind == "policy":
        policy = load_policy(bundle)
        findings.append(Finding(subject="contract", level="ok", found=", ".join(c.name for c in policy.contract.observation)))
    return findings


def _environment_findings(name: str) -> list[Finding]:
    from gymnasium.utils.env_checker import check_env

    from rl_core.training.worlds import make_world

    env = make_world(name)
    try:
        check_env(env.unwrapped, skip_render_check=True)
        return [Finding(subject=name, level="ok", found="passes Gymnasium's checks")]
    except AssertionError as error:
        return [Finding(subject=name, level="error", found=str(error), advice="see https://gymnasium.farama.org")]
    finally:
        env.close()


def _dataset_report(path: Path, arguments: Arguments) -> tuple[list[Finding], dict[str, Any]]:
    from rl_core.data.checkup import Finding as Remark
    from rl_core.data.checkup import check_dataset
    from rl_core.data.formats.reader_notes import listening
    from robot_bridge.demonstrations import read_demonstrations

    html = arguments.html
    if html is not None:
        check_page(html, "--html")
    if arguments.cleaned is not None:
        from robot_bridge.dataset_authenticity import check_place

        check_place(path, arguments.cleaned, overwrite=arguments.overwrite)
    if arguments.sheet is not None:
        check_file(arguments.sheet, "--sheet")
        if arguments.sheet.suffix.lower() != ".png":
            raise ArmstackError(f"--sheet {arguments.sheet}: the ending is {arguments.sheet.suffix!r}, valid: .png")
    detector = None
    if arguments.authenticity is not None:
        from robot_bridge.dataset_authenticity import read_detector

        detector = read_detector(arguments.authenticity)
    with listening() as heard:
        dataset = read_demonstrations(path)
    said = tuple(Remark(subject="reading", level="warning", found=record.getMessage()) for record in heard)
    report = check_dataset(dataset)
    report = replace(report, findings=(*said, *report.findings))
    findings = [Finding(subject=f.subject, level=f.level, found=f.found, advice=f.advice) for f in report.findings]
    figures = report.to_dict()
    if detector is not None:
        about_frames, about_them = _authenticity(dataset, arguments, detector)
        findings += about_frames
        figures |= about_them
    if html is not None:
        from robot_bridge.checkup_page import write_checkup_page

        figures["page"] = str(write_checkup_page(dataset, report, html, name=path.resolve().name))
        console.print(f"wrote {figures['page']}")
    return findings, figures


def _authenticity(dataset: Dataset, arguments: Arguments, detector: Detector) -> tuple[list[Finding], dict[str, Any]]:
    from robot_bridge.auxiliary.monitoring.manifold.suspect_sheet import write_sheet
    from robot_bridge.dataset_authenticity import check_format, screen_dataset, show_shares, write_cleaned

    if arguments.cleaned is not None:
        check_format(dataset, arguments.cleaned)
    screened, findings, judged = screen_dataset(dataset, detector)
    show_shares(screened)
    figures: dict[str, Any] = {"authenticity": judged}
    if arguments.sheet is not None and screened.suspects:
        figures["sheet"] = str(write_sheet(screened.suspects, arguments.sheet))
        console.print(f"wrote {figures['sheet']}")
    elif arguments.sheet is not None:
        console.print(f"{arguments.sheet}: not written, no frame looks generated")
    if arguments.cleaned is not None:
        still, figures["cleaned"] = write_cleaned(dataset, screened, detector, arguments.cleaned)
        findings += still
    return findings, figures


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack doctor")
    extra: dict[str, Any] = {}
    target = str(locate(arguments.target)) if arguments.target is not None else None
    is_dataset = target is not None and Path(target).exists() and not _is_bundle(target)
    if target is not None and not Path(target).exists() and not _ENVIRONMENT.fullmatch(target):
        raise FileNotFoundError(f"{target}: no such dataset or bundle, and no environment id (armstack/Lift-v0)")
    if arguments.html is not None and not is_dataset:
        raise ArmstackError(f"--html {arguments.html}: valid with a dataset, found {target or 'no target'}")
    if arguments.authenticity is not None and not is_dataset:
        raise ArmstackError(f"--authenticity {arguments.authenticity}: valid with a dataset, found {target or 'no target'}")
    if arguments.cleaned is not None and arguments.authenticity is None:
        raise ArmstackError(f"--cleaned {arguments.cleaned}: valid with --authenticity, which says what to leave out")
    if arguments.sheet is not None and arguments.authenticity is None:
        raise ArmstackError(f"--sheet {arguments.sheet}: valid with --authenticity, which finds the frames")
    if arguments.overwrite and arguments.cleaned is None:
        raise ArmstackError("--overwrite: valid with --cleaned, whose dataset it replaces")
    if target is None:
        findings = check_machine()
    elif is_dataset:
        findings, extra = _dataset_report(Path(target), arguments)
    elif _is_bundle(target):
        findings = _bundle_findings(Path(target))
    else:
        findings = _environment_findings(target)
    table = Table("what", "", "found", "what to do")
    for finding in findings:
        table.add_row(finding.subject, Text(finding.level, _COLOURS[finding.level]), finding.found, finding.advice)
    console.print(table)
    if arguments.json:
        emit_json({**extra, "findings": [asdict(finding) for finding in findings]})
    return 1 if any(finding.level == "error" for finding in findings) else 0
