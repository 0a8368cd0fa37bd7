"""Station: the camera over the place where parts are fed to the task `sort`, and what is fed.

Physics knows one small box. The camera shows in its place, and as it moves, a part of `sim_envs.parts`, beside the arm as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sim_envs.arm.tasks.sort import BINS
from sim_envs.arm.world import ArmWorld
from sim_envs.parts.catalogue import NAMES
from sim_envs.parts.crate import Crate, build_crate
from sim_envs.parts.factors import Factors, PartsError, draw_factors
from sim_envs.parts.renderer import PartsRenderer
from sim_envs.parts.stage import show_arm

Feed = Literal["known", "light", "damaged", "foreign"]
FEEDS: tuple[Feed, ...] = get_args(Feed)
SORTED: dict[str, tuple[str, ...]] = {
    "left": ("can", "milk carton", "mug", "gear", "hex nut", "square block"),
    "right": ("bottle", "lemon", "bowl", "bolt", "star nut", "round block"),
}
"""Bin -> the classes that belong there; every other class is foreign here."""
OBJECT_SEED = 7400
"""Seed of the parts that are fed; no data to train on are made with it."""
CRATES = 2
"""Objects of each class that there are."""


@dataclass(frozen=True, kw_only=True)
class Fed:
    """What lies at the station in an episode.

    Attributes:
        crate: number of the crate that the object is from.
        label: its class, an index into `catalogue.NAMES`.
        factors: what its picture is drawn from.
    """

    crate: int
    label: int
    factors: Factors


def fed(feed: Feed, seed: int, place: str) -> Fed:
    """What is fed in the episode of `seed`.

    Args:
        feed: `known` parts, known ones under the shift `light`, `damaged` known ones, or `foreign` classes.
        seed: of the episode.
        place: the bin that the episode's part belongs to; of no meaning for a foreign one.

    Raises:
        PartsError: no such feed; lists them.
    """
    if feed not in FEEDS:
        raise PartsError(f"feed {feed!r}; valid: {', '.join(FEEDS)}")
    rng = np.random.default_rng([seed, OBJECT_SEED])
    known = {name for names in SORTED.values() for name in names}
    choice = [name for name in NAMES if name not in known] if feed == "foreign" else SORTED[place]
    crate, label = int(rng.integers(CRATES)), NAMES.index(choice[int(rng.integers(len(choice)))])
    drawn = draw_factors(label, OBJECT_SEED, crate, seed, "light" if feed == "light" else "none", float(feed == "damaged"))
    factors = replace(
        drawn, azimuth_deg=20.0, elevation_deg=40.0, distance=5.0, aside=(0.0, 0.0), others=(), in_bin=False, arm=True
    )  # the camera stands still, and one part at a time is fed
    return Fed(crate=crate, label=label, factors=factors)


class Station:
    """Draws what the station's camera sees. To be used from the thread that made it, as graphics contexts are.

    Args:
        feed: see `fed`.
        size: pixels of width and height.

    Raises:
        PartsError: no such feed.
        RenderingUnavailable: no graphics library draws here.
        RobosuiteMissing: robosuite, whose meshes and textures are used, is not installed.
    """

    def __init__(self, feed: Feed, size: int) -> None:
        fed(feed, 0, "left")
        self._feed = feed
        self._world = ArmWorld("sort")
        crates = (build_crate(OBJECT_SEED, number, damaged=feed == "damaged") for number in range(CRATES))
        self._renderers = [PartsRenderer(crate, size) for crate in crates]
        self.reset(0)

    def reset(self, seed: int) -> None:
        """An episode begins."""
        self._world.reset(seed)
        state = self._world.state()
        self._start = state.objects["part"][0]
        place = next(name for name, middle in BINS.items() if np.allclose(middle, state.objects["bin"][0][:2]))
        self.fed = fed(self._feed, seed, place)

    def render(self, positions: NDArray[np.float64]) -> NDArray[np.uint8]:
        """(size, size, 3) RGB, first row on top, of the world's positions (`ArmWorld.qpos`)."""
        arm, part = positions[:9], positions[9:12]  # nothing but the part follows the arm in this world

        def arrange(crate: Crate, data: Any) -> None:
            crate.model.body_pos[crate.bodies[self.fed.label]] += part - self._start
            show_arm(crate, data, (-self._start[0], -self._start[1]), arm)

        return self._renderers[self.fed.crate].render(self.fed.label, self.fed.factors, arrange)[0]

    def close(self) -> None:
        """Frees the graphics memory; calling it again does nothing."""
        for renderer in self._renderers:
            renderer.close()
