"""The planner's ways: free, short, in steps that can be made."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from sim_envs.maze.layout import CELL, HALF_WIDTH, cell_of, centre, four_rooms
from sim_envs.maze.planner import plan, solid


def cells_between(walls: np.ndarray, start: tuple[int, int], goal: tuple[int, int]) -> int:
    """Moves of a shortest 4-connected way, by breadth-first search."""
    distance, queue = {start: 0}, deque([start])
    while queue:
        row, column = queue.popleft()
        for there in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
            inside = 0 <= there[0] < walls.shape[0] and 0 <= there[1] < walls.shape[1]
            if inside and not walls[there] and there not in distance:
                distance[there] = distance[row, column] + 1
                queue.append(there)
    return distance[goal]


@pytest.mark.parametrize("ends", ["corners", "rooms"])
def test_ways_lead_to_the_goal_in_short_steps_and_keep_off_the_walls(ends):
    for seed in range(40):
        maze = four_rooms(seed, ends)
        way = plan(maze, 0.05)
        np.testing.assert_array_equal(way[0], maze.start)
        np.testing.assert_allclose(way[-1], maze.goal, atol=1e-12)
        assert np.linalg.norm(np.diff(way, axis=0), axis=1).max() <= 0.05 + 1e-9
        fine = np.concatenate([np.linspace(a, b, 20) for a, b in zip(way, way[1:], strict=False)])
        corners = fine[:, None] + HALF_WIDTH * np.array([(1, 1), (1, -1), (-1, 1), (-1, -1)])
        assert not solid(maze.walls, corners).any()


def test_ways_are_shorter_than_along_the_cells_and_longer_than_the_crow_flies():
    for seed in range(40):
        maze = four_rooms(seed)
        length = np.linalg.norm(np.diff(plan(maze, 0.05), axis=0), axis=1).sum()
        start, goal = (tuple(map(int, cell_of(point))) for point in (maze.start, maze.goal))
        assert np.linalg.norm(maze.goal - maze.start) < length <= CELL * cells_between(maze.walls, start, goal)


def test_an_open_hall_is_crossed_straight():
    maze = replace(four_rooms(0), walls=np.zeros_like(four_rooms(0).walls))
    way = plan(maze, 0.05)
    assert np.linalg.norm(np.diff(way, axis=0), axis=1).sum() == pytest.approx(np.linalg.norm(maze.goal - maze.start))


def test_a_walled_in_goal_is_said():
    walls = np.zeros((10, 11), bool)
    walls[8, :] = True
    with pytest.raises(ValueError, match="no way leads from"):
        plan(replace(four_rooms(0), walls=walls, goal=centre((9, 9))), 0.05)
