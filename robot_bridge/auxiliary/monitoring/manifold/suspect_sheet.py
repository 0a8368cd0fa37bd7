"""The frames of a dataset that look most generated, on one sheet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageOps

from robot_bridge.auxiliary.monitoring.manifold.screening import Suspect

_SIDE, _TITLE, _COLUMNS = 192, 30, 6


def write_sheet(suspects: Sequence[Suspect], file: Path) -> Path:
    """Writes them as one PNG, in their order, each with its deviations above real frames' mean, its channel, and where it stands."""
    columns = min(_COLUMNS, len(suspects))
    sheet = Image.new("RGB", (columns * _SIDE, -(-len(suspects) // columns) * (_SIDE + _TITLE)), (20, 20, 20))
    draw = ImageDraw.Draw(sheet)
    for place, suspect in enumerate(suspects):
        left, top = place % columns * _SIDE, place // columns * (_SIDE + _TITLE)
        draw.text((left + 3, top + 2), f"{suspect.deviations:+.1f}  {suspect.channel}", fill=(255, 255, 255))
        draw.text((left + 3, top + 15), f"{suspect.uuid[:8]}  frame {suspect.step}", fill=(180, 180, 180))
        picture = ImageOps.contain(Image.fromarray(suspect.frame), (_SIDE, _SIDE), Image.Resampling.NEAREST)
        sheet.paste(picture, (left, top + _TITLE))
    sheet.save(file)
    return file
