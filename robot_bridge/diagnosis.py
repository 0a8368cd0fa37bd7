"""What `armstack doctor` finds out about a machine: versions against what is known to work, GL, ROS."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from packaging.requirements import Requirement

if TYPE_CHECKING:
    from torch import Tensor

Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the report: what was looked at, what was found, and what to do where it is not fine."""

    subject: str
    level: Level
    found: str
    advice: str = ""


_LAST_DOMAIN = 232  # above it DDS would need UDP ports beyond 65535

# robosuite is installed without its requirements (they want a compiler and libGL); this is what it needs here.
_ROBOSUITE_NEEDS = ("mujoco>=3.3,<3.9", "mink==0.0.5", "numpy<2", "opencv-python-headless", "numba", "termcolor")


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _check(requirement: Requirement, needed_by: str) -> Finding:
    found = _version(requirement.name)
    wanted = f"{requirement.name}{requirement.specifier}"
    if found is None:
        return Finding(
            subject=requirement.name, level="error", found="not installed", advice=f"pip install '{wanted}' (needed by {needed_by})"
        )
    if not requirement.specifier.contains(found, prereleases=True):
        advice = f"{needed_by} works with {wanted}: pip install '{wanted}'"
        return Finding(subject=requirement.name, level="error", found=found, advice=advice)
    return Finding(subject=requirement.name, level="ok", found=found)


def check_packages() -> list[Finding]:
    """Every requirement of the installed Armstack against what is installed, then robosuite's where it is there."""
    findings = [Finding(subject="python", level="ok", found=f"{platform.python_version()} on {platform.system()} {platform.machine()}")]
    if sys.version_info[:2] not in ((3, 11), (3, 12)):
        findings[0] = Finding(subject="python", level="error", found=platform.python_version(), advice="use Python 3.11 or 3.12")
    for text in importlib.metadata.requires("armstack") or []:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            findings.append(_check(requirement, "armstack"))
    robosuite = _version("robosuite")
    if robosuite is None:
        advice = "optional: `make setup`, or pip install --no-deps robosuite==1.5.2"
        findings.append(Finding(subject="robosuite", level="warning", found="not installed", advice=advice))
    else:
        findings.append(_check(Requirement("robosuite==1.5.2"), "sim_envs.robosuite_tasks"))
        findings += [f for f in (_check(Requirement(need), "robosuite") for need in _ROBOSUITE_NEEDS) if f.level != "ok"]
    return findings


def check_graphics() -> Finding:
    """Whether pictures can be drawn without a screen, found out in a child process."""
    from sim_envs.arm.rendering import RenderingUnavailable, working_backend

    try:
        backend = working_backend()
    except RenderingUnavailable as error:
        return Finding(subject="GL", level="warning", found="no EGL or OSMesa library draws", advice=f"for pictures and videos: {error}")
    return Finding(subject="GL", level="ok", found=f"{backend} (MUJOCO_GL={os.environ.get('MUJOCO_GL', 'unset')})")


def not_finite(weights: Mapping[str, Tensor]) -> list[str]:
    """Names of the weights that hold NaN or infinity: a policy with these cannot act."""
    return [name for name, tensor in weights.items() if tensor.is_floating_point() and not bool(tensor.isfinite().all())]


def check_ros() -> Finding:
    """Which rclpy is used, if any, and in which domain."""
    if importlib.util.find_spec("rclpy") is None:
        return Finding(
            subject="ROS 2", level="warning", found="no rclpy", advice="pip install 'armstack[ros]', or source a ROS 2 installation"
        )
    distro = os.environ.get("ROS_DISTRO")
    domain = os.environ.get("ROS_DOMAIN_ID") or "0"
    if not (domain.isdecimal() and domain.isascii() and int(domain) <= _LAST_DOMAIN):
        advice = f"export ROS_DOMAIN_ID=0, or another number up to {_LAST_DOMAIN}; robots and commands meet in one domain alone"
        return Finding(subject="ROS 2", level="error", found=f"ROS_DOMAIN_ID={domain}, valid: 0..{_LAST_DOMAIN}", advice=advice)
    where = f"ROS {distro}, sourced" if distro else f"rclpy {_version('ros-rclpy') or '?'} from wheels"
    reach = os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET")
    return Finding(subject="ROS 2", level="ok", found=f"{where}; domain {domain}, discovery {reach}")


def check_machine() -> list[Finding]:
    """All findings about this machine."""
    return [*check_packages(), check_graphics(), check_ros()]
