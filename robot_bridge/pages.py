"""Self-contained HTML pages: templates with pictures and videos inside, so that one file can be passed on."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".mp4": "video/mp4"}


def render_page(template: str, file: str | Path, **context: Any) -> Path:
    """Fills `robot_bridge/templates/TEMPLATE` and writes it to `file`; text is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("robot_bridge"), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    file = Path(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(environment.get_template(template).render(**context), encoding="utf-8")
    return file


def file_uri(file: str | Path) -> str:
    """A PNG, JPEG or MP4 file as a data URI."""
    file = Path(file)
    return f"data:{_TYPES[file.suffix]};base64,{base64.b64encode(file.read_bytes()).decode()}"


def figure_uri(figure: Figure) -> str:
    """A matplotlib figure as a PNG data URI; the figure is closed."""
    from matplotlib import pyplot

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    pyplot.close(figure)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def film_strip_uri(frames: NDArray[np.uint8], count: int = 8) -> str:
    """`count` evenly spaced frames of (T, H, W, 3) RGB, or (T, H, W, 1) grey, side by side, as a PNG data URI."""
    from PIL import Image

    picked = frames[np.linspace(0, len(frames) - 1, min(count, len(frames))).astype(int)]
    buffer = io.BytesIO()
    strip = np.concatenate(list(picked), axis=1)
    Image.fromarray(strip[..., 0] if strip.shape[-1] == 1 else strip).save(buffer, format="png")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
