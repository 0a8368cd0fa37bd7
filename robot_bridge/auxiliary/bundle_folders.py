"""Where the bundle of an auxiliary method lies: `armstack aux train` writes it as RUN/bundle, and people give RUN."""

from __future__ import annotations

from pathlib import Path

from rl_core.bundle import Bundle, BundleError


def read_bundle(folder: Path, method: str, *others: str) -> Bundle:
    """The bundle of a folder.

    Args:
        folder: of the bundle.
        method: which is expected there.
        others: which will do as well.

    Raises:
        BundleError: no bundle there, or one of another method; says where one is, or what writes one.
    """
    if not (folder / "bundle.json").is_file():
        inside = folder / "bundle"
        valid = (
            f"{inside}, which is one" if (inside / "bundle.json").is_file() else f"RUN/bundle, as `armstack aux train {method}` writes it"
        )
        raise BundleError(f"{folder}: no bundle.json; valid: {valid}")
    bundle = Bundle.load(folder)
    if bundle.method not in (method, *others):
        valid = ", ".join((method, *others))
        raise BundleError(f"{folder}: bundle of method {bundle.method!r}, valid: {valid}, as `armstack aux train {method}` writes it")
    return bundle
