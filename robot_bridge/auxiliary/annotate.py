"""A judged frame for people: its map as a glow, its best classes, values and explanation as text below."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

_LEAST_PX = 256
_LINE_PX = 14
_LETTER_PX = 7
_TOP = 3
_GLOW = np.array([255.0, 32.0, 32.0])


def annotate(
    frame: NDArray[np.uint8],
    scores: Mapping[str, float],
    values: Mapping[str, float],
    heat: NDArray[np.float32] | None = None,
    *,
    title: str,
    alarm: str = "",
    explanation: Sequence[str] = (),
) -> NDArray[np.uint8]:
    """(H', W', 3) uint8: the frame enlarged to 256 pixels or more, with lines of text below that are broken to fit.

    The bar of text is red where there is an `alarm`.

    Args:
        frame: (H, W, 3) uint8 RGB.
        scores: class -> score; the best three are shown.
        values: further numbers, all shown.
        heat: (h, w), drawn over the frame from its smallest (clear) to its largest number (red).
        title: name of the method.
        alarm: why the arm holds; empty where it need not.
        explanation: further lines.
    """
    scale = max(1, -(-_LEAST_PX // min(frame.shape[:2])))
    picture = Image.fromarray(frame).resize((frame.shape[1] * scale, frame.shape[0] * scale), Image.Resampling.NEAREST)
    if heat is not None and np.ptp(heat) > 0:
        share = ((heat - heat.min()) / np.ptp(heat)).astype(np.float32)
        glow = np.asarray(Image.fromarray(share).resize(picture.size, Image.Resampling.BILINEAR))[..., None] * 0.6
        picture = Image.fromarray((np.asarray(picture) * (1 - glow) + _GLOW * glow).astype(np.uint8))
    best = sorted(scores.items(), key=lambda item: -item[1])[:_TOP]
    lines = [title, _numbers(best), *([_numbers(list(values.items()))] if values else []), *([f"HOLD: {alarm}"] if alarm else [])]
    lines = [part for line in (*lines, *explanation) for part in textwrap.wrap(line, picture.width // _LETTER_PX)]
    sheet = Image.new("RGB", (picture.width, picture.height + _LINE_PX * len(lines) + 4), (120, 0, 0) if alarm else (24, 24, 24))
    sheet.paste(picture)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(12)
    for row, line in enumerate(lines):
        draw.text((4, picture.height + 2 + row * _LINE_PX), line, fill=(255, 255, 255), font=font)
    return np.asarray(sheet, np.uint8)


def _numbers(pairs: Sequence[tuple[str, float]]) -> str:
    return "  ".join(f"{name} {value:.2f}" for name, value in pairs)
