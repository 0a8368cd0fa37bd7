from pathlib import Path

import pytest
from PIL import Image

from robot_bridge.auxiliary import parts_sheet
from sim_envs.parts.factors import SHIFTS
from sim_envs.parts.pictures import Pictures
from tests.robot_bridge.auxiliary.test_parts_data import drawn


def test_the_sheet_has_a_column_for_each_shift_and_for_defects(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = []

    def counted(seed: int, crate: int, wanted: list[tuple[int, int]], *, size: int, **settings) -> Pictures:
        asked.append(settings)
        return drawn(seed, crate, wanted, size=size, done=None)

    monkeypatch.setattr(parts_sheet, "draw_crate", counted)
    file = parts_sheet.draw_sheet(tmp_path / "new" / "sheet.png", classes=("mug", "bolt"), size=32)
    assert [settings["shift"] for settings in asked if "shift" in settings] == list(SHIFTS)
    assert sum(settings.get("defects") == 1.0 for settings in asked) == 3
    with Image.open(file) as sheet:
        assert sheet.width > 500
