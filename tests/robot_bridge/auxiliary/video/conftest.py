"""The tiny base model in place of the one that a folder names, and a bundle trained on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from robot_bridge.auxiliary.recognition import bundled_vlm
from robot_bridge.auxiliary.video import tempme
from robot_bridge.auxiliary.vlm import small
from tests.robot_bridge.auxiliary.conftest import graph, ros
from tests.robot_bridge.auxiliary.tiny_vlm import AverageColours
from tests.robot_bridge.auxiliary.video.colour_clips import tiny_base, trained

__all__ = ["graph", "ros"]


@pytest.fixture(scope="session")
def searcher_bundle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folder of a bundle of TempMe that knows the colours of `colour_clips` and their order."""
    folder = tmp_path_factory.mktemp("tempme")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempme, "vlm_at", lambda folder: tiny_base())
        trained(folder).save(folder / "bundle")
    yield folder / "bundle"


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of models and bundles give the tiny one."""
    monkeypatch.setattr(tempme, "vlm_at", lambda folder: tiny_base())
    monkeypatch.setattr(small, "EfficientNetMaps", lambda stage: AverageColours())
    monkeypatch.setattr(bundled_vlm, "bundle_sha256", lambda folder: "0" * 64)
