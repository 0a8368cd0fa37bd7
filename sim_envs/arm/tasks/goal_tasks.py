"""Tasks with a goal for one object and the hand: lift a block to a point, drop it into a bin, put a ring over a rod.

The goal is of both, so that one threshold says that the object is there and the hand has it, or has let it go and gone up.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from sim_envs.arm.scene import TABLE_TOP
from sim_envs.arm.tasks.base import World, add_goal, add_object, reaching

REACHED = 0.1
"""Distance of hand and object together from their goals up to which a task is done, metres [code]."""
RETREAT = 0.16
"""How far the hand goes up after it has let go, metres: more than sqrt(2) * `REACHED`, so that nobody holding the object is done."""
BLOCK_HALF = 0.02
BIN_HALF, WALL, WALL_HEIGHT = 0.08, 0.005, 0.06
RING_INNER, RING_OUTER, RING_HALF_HEIGHT = 0.025, 0.037, 0.006
HANDLE = (-0.065, 0.0, 0.020)
"""Where the ring's handle is held, metres from the ring's middle."""
STAND_HEIGHT, STAND_RADIUS, ROD_HEIGHT, ROD_RADIUS = 0.10, 0.030, 0.05, 0.007
"""The ring comes to rest on the stand, which is wider than its hole; the rod is on top, metres."""

_RED, _BLUE, _GREEN, _GREY = (0.75, 0.12, 0.1, 1), (0.1, 0.45, 0.8, 1), (0.3, 0.55, 0.35, 1), (0.5, 0.5, 0.55, 1)
_BOX, _CYLINDER = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_CYLINDER


@dataclass(frozen=True, kw_only=True)
class GoalTask:
    """Bring `thing` to a goal.

    Attributes:
        name: of the task.
        thing: the object.
        decisions: steps of 0.1 s of an episode [code].
        grasp: where the thing is held, metres from its middle.
        start: box (low, high) of the thing's middle at the start in x and y, metres.
        place: box (low, high) of the goal's place in x, y and z, metres.
        precision: how exactly the thing must be grasped, metres.
        height: of the thing's middle over the table at the start, metres.
        distance: least distance from the start to the goal in x and y, metres.
        rest: where the thing shall be, metres from that place.
        retreat: how far over the grasp the hand shall be in the end, metres.
    """

    name: str
    thing: str
    decisions: int
    grasp: tuple[float, float, float] = (0.0, 0.0, 0.0)
    start: tuple[tuple[float, float], tuple[float, float]] = ((0.40, -0.10), (0.52, 0.10))
    place: tuple[tuple[float, float, float], tuple[float, float, float]]
    distance: float
    precision: float = 0.01
    height: float = BLOCK_HALF
    rest: tuple[float, float, float] = (0.0, 0.0, 0.0)
    retreat: float = 0.0
    goals: tuple[str, ...] = ("goal",)

    @property
    def objects(self) -> tuple[str, ...]:
        """The thing alone."""
        return (self.thing,)

    @property
    def horizon(self) -> int:
        """Policy steps at 20 Hz."""
        return 2 * self.decisions

    def build(self, spec: mujoco.MjSpec) -> None:
        _BUILDERS[self.name](spec)

    def reset(self, world: World, rng: np.random.Generator) -> None:
        while True:
            start, place = rng.uniform(*self.start), rng.uniform(*self.place)
            if np.linalg.norm(start - place[:2]) >= self.distance:
                break
        world.place(self.thing, (*start, TABLE_TOP + self.height), yaw=rng.uniform(-0.15, 0.15))
        world.place("goal", place)

    def achieved(self, world: World) -> np.ndarray:
        """Hand and thing (6,), metres."""
        return np.concatenate([world.eef_pos(), world.object_pos(self.thing)])

    def desired(self, world: World) -> np.ndarray:
        """Where hand and thing shall be (6,), metres."""
        return np.concatenate(list(self.targets(world.object_pos("goal")).values()))

    def targets(self, place: np.ndarray) -> dict[str, np.ndarray]:
        """Where hand and thing shall be (3,), metres, with `goal` at `place`; each gives a channel `NAME_pos`, as goals do."""
        thing = place + self.rest
        return {"goal_eef": thing + self.grasp + (0.0, 0.0, self.retreat), f"goal_{self.thing}": thing}

    def distance_left(self, world: World) -> float:
        """Of hand and thing together, metres."""
        return float(np.linalg.norm(self.achieved(world) - self.desired(world)))

    def success(self, world: World) -> bool:
        return self.distance_left(world) <= REACHED

    def reward(self, world: World, shaped: bool) -> float:
        if self.success(world):
            return 1.0
        return 0.9 * reaching(self.distance_left(world)) if shaped else 0.0


def _build_pick(spec: mujoco.MjSpec) -> None:
    add_object(spec, "block", _BOX, (BLOCK_HALF,) * 3, _RED, density=500.0)
    add_goal(spec, "goal", (0.1, 0.8, 0.2, 0.6))


def _build_bin(spec: mujoco.MjSpec) -> None:
    add_object(spec, "block", _BOX, (BLOCK_HALF,) * 3, _RED, density=500.0)
    body = spec.worldbody.add_body(name="goal", mocap=True)
    half = BIN_HALF + WALL
    for x, y, size in ((half, 0, (WALL, half + WALL)), (-half, 0, (WALL, half + WALL)), (0, half, (half, WALL)), (0, -half, (half, WALL))):
        body.add_geom(type=_BOX, pos=(x, y, WALL_HEIGHT / 2), size=(*size, WALL_HEIGHT / 2), rgba=_GREEN)


def _build_ring(spec: mujoco.MjSpec) -> None:
    """A ring of eight straight pieces with an upright handle beside it, and a stand with a rod."""
    ring = spec.worldbody.add_body(name="ring")
    ring.add_freejoint(name="ring")
    middle, half = (RING_INNER + RING_OUTER) / 2, (RING_OUTER - RING_INNER) / 2
    for turn in np.arange(8) * np.pi / 4:
        ring.add_geom(
            type=_BOX, size=(half, RING_OUTER * np.tan(np.pi / 8), RING_HALF_HEIGHT), rgba=_BLUE, density=300.0,
            pos=(middle * np.cos(turn), middle * np.sin(turn), 0), quat=(np.cos(turn / 2), 0, 0, np.sin(turn / 2)),
        )  # fmt: skip
    tab = (-HANDLE[0] - RING_INNER) / 2
    ring.add_geom(type=_BOX, size=(tab, 0.008, RING_HALF_HEIGHT), pos=(-RING_INNER - tab, 0, 0), rgba=_BLUE, density=300.0)
    ring.add_geom(name="ring", type=_BOX, size=(0.01, 0.012, 0.02), pos=(HANDLE[0], 0, 0.014), rgba=_BLUE, density=300.0)
    stand = spec.worldbody.add_body(name="goal", mocap=True)
    stand.add_geom(type=_CYLINDER, size=(STAND_RADIUS, STAND_HEIGHT / 2, 0), pos=(0, 0, STAND_HEIGHT / 2), rgba=_GREY)
    top = STAND_HEIGHT + ROD_HEIGHT / 2
    stand.add_geom(type=_CYLINDER, size=(ROD_RADIUS, ROD_HEIGHT / 2, 0), pos=(0, 0, top), rgba=_GREEN)


_BUILDERS = {"goal_pick": _build_pick, "goal_bin": _build_bin, "goal_ring": _build_ring}

GOAL_TASKS: dict[str, GoalTask] = {
    task.name: task
    for task in (
        GoalTask(
            name="goal_pick", thing="block", decisions=49, distance=0.12,
            place=((0.38, -0.22, TABLE_TOP + 0.16), (0.60, 0.22, TABLE_TOP + 0.30)),
        ),
        GoalTask(
            name="goal_bin", thing="block", decisions=64, distance=0.18, rest=(0.0, 0.0, BLOCK_HALF), retreat=RETREAT,
            start=((0.40, -0.18), (0.52, -0.02)), place=((0.42, 0.16, TABLE_TOP), (0.56, 0.26, TABLE_TOP)),
        ),
        GoalTask(
            name="goal_ring", thing="ring", decisions=100, grasp=HANDLE, precision=0.006, distance=0.18, height=RING_HALF_HEIGHT,
            start=((0.44, -0.18), (0.54, -0.04)), place=((0.44, 0.10, TABLE_TOP), (0.58, 0.22, TABLE_TOP)),
            rest=(0.0, 0.0, STAND_HEIGHT + RING_HALF_HEIGHT), retreat=RETREAT,
        ),
    )
}  # fmt: skip
"""By name."""
