"""MazeWorlds: many grippers, each in a maze of its own, moved in a few array operations. Kinematic: nothing has mass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Action, Channel, RobotContract
from rl_core.pear.worlds import Demonstration, GoalObservation, GoalSpace, GoalWorldError
from sim_envs.maze.layout import CELL, COLUMNS, HALF_WIDTH, HEIGHT, HIGH, LOW, ROWS, Ends, Maze, four_rooms
from sim_envs.maze.pictures import draw_maze
from sim_envs.maze.planner import plan

STEP = 0.05
"""Metres along each axis of an action of 1."""
SUBSTEPS = 5
PERIOD_S = 0.05
_HALF = HALF_WIDTH / CELL
_SIDE = COLUMNS + 2

CONTRACT = RobotContract(
    robot="maze_gripper",
    observation=(
        Channel(name="eef_pos", names=("x", "y", "z"), unit="m", frame="base", rate_hz=1 / PERIOD_S),
        Channel(name="walls", names=tuple(f"r{row}c{column}" for row in range(ROWS) for column in range(COLUMNS))),
        Channel(name="desired_goal", names=("x", "y", "z"), unit="m", frame="base"),
    ),
    action=Action(names=("x", "y"), meaning="delta", space="end_effector", scale=(STEP, STEP), units=("m", "m"), period_s=PERIOD_S),
)


class MazeWorlds:
    """`n` mazes; a `rl_core.pear.worlds.GoalWorlds`, registered as `armstack/Maze-v0`.

    Observation: the gripper (3,), metres, and the walls (110,), 1 where a cell is one. Goal: where the gripper shall be, to 5 cm.

    Args:
        n: how many.
        ends: see `four_rooms`.
        demonstration_speed: of the demonstrations, as a share of the fastest the gripper moves; about 13 steps at 1, 52 at 0.25.

    Raises:
        GoalWorldError: a speed outside (0, 1].
    """

    contract = CONTRACT
    goal = GoalSpace(centre=np.append((LOW + HIGH) / 2, HEIGHT), half_width=np.append((HIGH - LOW) / 2, 0.0), threshold=0.05)
    horizon = 225

    def __init__(self, n: int, ends: Ends = "corners", demonstration_speed: float = 0.25) -> None:
        if not 0.0 < demonstration_speed <= 1.0:
            raise GoalWorldError(f"demonstration_speed {demonstration_speed}, valid: above 0, at most 1")
        self.n = n
        self.ends = ends
        self.demonstration_speed = demonstration_speed
        self.primitives = GoTo()
        self._walls = np.ones((n, ROWS + 2, _SIDE), bool)  # with a wall all around
        self._first = np.arange(n) * self._walls[0].size
        self.reset(range(n))

    def reset(self, seeds: Sequence[int]) -> GoalObservation:
        """See `GoalWorlds.reset`."""
        if len(seeds) != self.n:
            raise GoalWorldError(f"{len(seeds)} seeds, valid: one for each of the {self.n} rows")
        self.mazes: list[Maze] = [four_rooms(seed, self.ends) for seed in seeds]
        self._walls[:, 1:-1, 1:-1] = [maze.walls for maze in self.mazes]
        self._seen_walls = self._walls[:, 1:-1, 1:-1].reshape(self.n, -1).astype(np.float32)
        self._goals = np.array([[*maze.goal, HEIGHT] for maze in self.mazes], np.float32)
        self._path = [np.array([maze.start for maze in self.mazes])]
        return self._observe()

    def step(self, actions: NDArray[np.float32]) -> GoalObservation:
        """Moves by actions (n, 2) times 5 cm in five parts, each first along x, then along y. A part into a wall is not made.

        Raises:
            GoalWorldError: not finite, or of another shape.
        """
        actions = np.asarray(actions, np.float64)
        if actions.shape != (self.n, 2) or not np.isfinite(actions).all():
            raise GoalWorldError(f"actions of shape {actions.shape}, valid: finite, {(self.n, 2)}")
        x, y = ((self._path[-1] - LOW) / CELL + 1.0).T  # in cells; the wall all around begins at 0
        part_x, part_y = np.clip(actions, -1.0, 1.0).T * (STEP / CELL / SUBSTEPS)
        for _ in range(SUBSTEPS):
            x = np.where(self._blocked(x + part_x, y), x, x + part_x)
            y = np.where(self._blocked(x, y + part_y), y, y + part_y)
        self._path.append(LOW + CELL * (np.stack([x, y], axis=1) - 1.0))
        return self._observe()

    def demonstrations(self, seeds: Sequence[int]) -> list[Demonstration]:
        """Shortest ways at `demonstration_speed`: see `plan`."""
        worlds = MazeWorlds(len(seeds), self.ends)
        seen = [worlds.reset(seeds)]
        ways = [plan(maze, STEP * self.demonstration_speed) for maze in worlds.mazes]
        actions = []
        for step in range(1, max(map(len, ways))):
            there = np.array([way[min(step, len(way) - 1)] for way in ways])
            actions.append(((there - worlds._path[-1]) / STEP).astype(np.float32))
            seen.append(worlds.step(actions[-1]))
        return [
            Demonstration(
                seed=seed,
                observation=np.array([values["observation"][row] for values in seen[: len(way)]]),
                achieved=np.array([values["achieved_goal"][row] for values in seen[: len(way)]]),
                actions=np.array([values[row] for values in actions[: len(way) - 1]]),
                goal=seen[0]["desired_goal"][row],
            )
            for row, (seed, way) in enumerate(zip(seeds, ways, strict=True))
        ]

    def render(self, row: int = 0, subgoals: Sequence[NDArray[np.float32]] = ()) -> NDArray[np.uint8]:
        """The maze of a row from above with the way so far; see `draw_maze`."""
        return draw_maze(self.mazes[row], path=[position[row] for position in self._path], subgoals=subgoals)

    def close(self) -> None:
        """Nothing to free."""

    def _blocked(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether grippers there would touch a wall: (n,)."""
        near, far = self._first + (x - _HALF).astype(np.int64) * _SIDE, self._first + (x + _HALF).astype(np.int64) * _SIDE
        left, right = (y - _HALF).astype(np.int64), (y + _HALF).astype(np.int64)
        walls = self._walls.reshape(-1)
        return walls[near + left] | walls[near + right] | walls[far + left] | walls[far + right]

    def _observe(self) -> GoalObservation:
        gripper = np.full((self.n, 3), HEIGHT, np.float32)
        gripper[:, :2] = self._path[-1]
        observation = np.concatenate([gripper, self._seen_walls], axis=1)
        return {"observation": observation, "achieved_goal": gripper, "desired_goal": self._goals.copy()}


class GoTo:
    """The one scripted primitive: straight to a point of the maze, whatever stands between."""

    names: tuple[str, ...] = ("go_to",)
    arguments: int = 2

    def act(
        self, observation: NDArray[np.float32], chosen: NDArray[np.int64], argument: NDArray[np.float32], age: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """See `Primitives.act`; the argument is the point, from -1 to 1 across the maze."""
        way = MazeWorlds.goal.decode(np.pad(argument, ((0, 0), (0, 1))))[:, :2] - observation[:, :2]
        return way / np.maximum(np.abs(way).max(axis=1, keepdims=True), STEP)
