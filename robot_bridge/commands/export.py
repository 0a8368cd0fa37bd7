"""`armstack export BUNDLE`: the same policy, in the runtime that its method has for deployment."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rl_core.bundle import Bundle, bundle_sha256
from rl_core.errors import ArmstackError
from rl_core.methods import export_bundle, load_policy
from robot_bridge.commands.output import console, emit_json, figures_table


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Write the bundle again for deployment: DAC's acts in NumPy, at a fraction of torch's time for one robot.

    The new bundle holds the observation statistics and the contract too, and names its parent; every command takes it.

    Models of stable-baselines3 are no bundles, and their files would have to be unpickled. `armstack train sac` and
    `armstack train td3` write bundles; a model in memory becomes one with rl_core.baselines.sb3_export.export_sb3(model, contract).

    Example: armstack export runs/dac/bundle --out runs/dac/deployed
    """

    bundle: Annotated[Path, tyro.conf.Positional]
    """Folder of the bundle."""
    out: Path
    """Folder of the new bundle; an older bundle there is replaced."""
    json: bool = False
    """Print one JSON object on the last line."""


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack export")
    if arguments.bundle.is_file():
        raise ArmstackError(
            f"{arguments.bundle}: a file, valid: a bundle's folder. Files of stable-baselines3 are not unpickled: train with `armstack "
            "train sac`, or call rl_core.baselines.sb3_export.export_sb3(model, contract).save(folder) where the model is in memory"
        )
    bundle = Bundle.load(arguments.bundle)
    parent = bundle_sha256(arguments.bundle)
    dataclasses.replace(export_bundle(bundle), parents=(parent,)).save(arguments.out)
    runtime = type(load_policy(arguments.out)).__name__
    figures = {
        "bundle": str(arguments.out),
        "method": bundle.method,
        "policy": runtime,
        "bundle_sha256": bundle_sha256(arguments.out),
        "parent_sha256": parent,
    }
    figures_table("exported", figures)
    console.print(f"try it: armstack eval {arguments.out}")
    if arguments.json:
        emit_json(figures)
    return 0
