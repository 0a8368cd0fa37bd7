"""Pictures of one crate with everything known about them, as plain arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim_envs.parts.captions import caption
from sim_envs.parts.crate import Crate, build_crate
from sim_envs.parts.factors import Factors, Shift, draw_factors
from sim_envs.parts.renderer import DEFECT, OBJECT, PartsRenderer

_VISIBLE = 0.006
"""Share of an object's pixels that its defect must cover to count as seen."""
_TRIES = 6


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """n pictures.

    Attributes:
        frames: (n, size, size, 3) uint8, RGB.
        labels: (n,) int64, index into `catalogue.EVERY`.
        instances: (n,) int64, number of the object.
        captions: n sentences.
        masks: (n, size, size) uint8: 0 background, 1 the object, 2 other objects, 3 its defect.
        factors: name -> (n, ...), see `describe`.
    """

    frames: NDArray[np.uint8]
    labels: NDArray[np.int64]
    instances: NDArray[np.int64]
    captions: tuple[str, ...]
    masks: NDArray[np.uint8]
    factors: dict[str, NDArray[Any]]


def draw_crate(
    seed: int,
    crate: int,
    wanted: Sequence[tuple[int, int]],
    *,
    size: int,
    shift: Shift = "none",
    defects: float = 0.0,
    done: Callable[[int], None] = lambda count: None,
) -> Pictures:
    """Draws pictures of a crate's objects; equal arguments give equal pictures on one machine.

    Args:
        seed: another one gives other objects.
        crate: which objects of that seed.
        wanted: (label, number of the picture) of each picture.
        size: pixels of width and height.
        shift: see `factors`; the objects stay the same, their surfaces change in `texture`.
        defects: share of pictures with a visible defect.
        done: told how many are drawn.

    Raises:
        PartsError: no such shift.
        RobosuiteMissing, HouseholdMissing: meshes are not installed.
        RenderingUnavailable: no graphics library draws here.
    """
    labels = {label for label, _ in wanted}
    box = build_crate(seed, crate, shifted=shift == "texture", damaged=defects > 0, also=labels)
    drawn = []
    with PartsRenderer(box, size) as renderer:
        for count, (label, number) in enumerate(wanted):
            drawn.append((label, *_draw(renderer, label, (seed, crate, number), shift, defects)))
            done(count + 1)
    described = [describe(box, label, factors, mask) for label, factors, _, mask in drawn]
    return Pictures(
        frames=np.stack([frame for _, _, frame, _ in drawn]),
        labels=np.array([label for label, *_ in drawn], np.int64),
        instances=np.array([box.instances[label].number for label, *_ in drawn], np.int64),
        captions=tuple(caption(box, label, factors) for label, factors, *_ in drawn),
        masks=np.stack([mask for *_, mask in drawn]),
        factors={name: np.array([row[name] for row in described]) for name in described[0]},
    )


def describe(crate: Crate, label: int, factors: Factors, mask: NDArray[np.uint8]) -> dict[str, Any]:
    """Everything worth keeping of a picture: `Factors`, the object's looks, and shares of pixels.

    `object_area` is the object's share of the picture, `defect_area` the defect's share of the object, `cut_off` whether it leaves the
    picture, `defect` the kind of a visible defect, "" for none.
    """
    instance = crate.instances[label]
    own = (mask == OBJECT) | (mask == DEFECT)
    border = np.concatenate([own[0], own[-1], own[:, 0], own[:, -1]])
    return {
        **{name: getattr(factors, name) for name in _PLAIN},
        "light": factors.light_word,
        "beside": " and ".join(crate.instances[other].part.name for other in factors.others),
        "colour": instance.colour,
        "size": instance.size,
        "surface": instance.surface,
        "defect": instance.defect.kind if factors.damaged and instance.defect else "",
        "object_area": np.float32(own.mean()),
        "defect_area": np.float32((mask == DEFECT).sum() / max(own.sum(), 1)),
        "cut_off": bool(border.any()),
    }


_PLAIN = (
    "azimuth_deg", "elevation_deg", "distance", "roll_deg", "pose", "brightness", "ambient", "tint", "table", "aligned", "in_bin", "arm",
    "noise", "blur",
)  # fmt: skip


def _draw(
    renderer: PartsRenderer, label: int, at: tuple[int, int, int], shift: Shift, defects: float
) -> tuple[Factors, NDArray[np.uint8], NDArray[np.uint8]]:
    # A defect that cannot be seen is drawn again from elsewhere, and after some tries the object is drawn whole.
    seed, crate, number = at
    for attempt in range(_TRIES):
        share = defects if attempt == 0 else 1.0
        factors = draw_factors(label, seed, crate, number + 100_000 * attempt, shift, share)
        frame, mask = renderer.render(label, factors)
        if not factors.damaged or (mask == DEFECT).sum() >= _VISIBLE * max((mask > 0).sum(), 1):
            return factors, frame, mask
    factors = draw_factors(label, seed, crate, number, shift, 0.0)
    return factors, *renderer.render(label, factors)
