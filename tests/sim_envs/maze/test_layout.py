"""Mazes: four rooms, joined by four gates, by seed."""

import numpy as np
import pytest
from scipy.ndimage import label

from sim_envs.maze.layout import CELL, COLUMNS, GOAL_CELL, HIGH, LOW, ROWS, START_CELL, cell_of, centre, four_rooms


@pytest.mark.parametrize("seed", range(20))
def test_two_walls_make_four_rooms_and_four_gates_join_them(seed):
    maze = four_rooms(seed)
    (row,), (column,) = (np.flatnonzero(maze.walls.mean(axis=axis) > 0.7) for axis in (1, 0))
    closed = maze.walls.copy()
    closed[row], closed[:, column] = True, True
    assert label(~closed)[1] == 4 and label(~maze.walls)[1] == 1
    gates = np.argwhere(closed & ~maze.walls)
    assert len(gates) == 4 and all((gate == (row, column)).sum() == 1 for gate in gates)
    for ends in (slice(0, row), slice(row + 1, None)):
        assert (~maze.walls[ends, column]).sum() == 1
    for ends in (slice(0, column), slice(column + 1, None)):
        assert (~maze.walls[row, ends]).sum() == 1


def test_the_seed_decides():
    assert np.array_equal(four_rooms(3).walls, four_rooms(3).walls)
    assert len({four_rooms(seed).walls.tobytes() for seed in range(200)}) > 150


@pytest.mark.parametrize("seed", [0, 2**31 - 1, 1_000_000])
def test_any_seed_makes_a_maze(seed):
    assert four_rooms(seed).walls.shape == (ROWS, COLUMNS)


def test_corners_start_and_end_where_the_papers_code_does():
    maze = four_rooms(5)
    assert tuple(cell_of(maze.start)) == START_CELL and tuple(cell_of(maze.goal)) == GOAL_CELL
    np.testing.assert_allclose(centre((0, 0)), LOW + CELL / 2)


def test_rooms_start_in_the_first_room_and_end_in_the_one_across():
    starts, goals = set(), set()
    for seed in range(50):
        maze = four_rooms(seed, "rooms")
        (row,), (column,) = (np.flatnonzero(maze.walls.mean(axis=axis) > 0.7) for axis in (1, 0))
        start, goal = cell_of(maze.start), cell_of(maze.goal)
        assert (start < (row, column)).all() and (goal > (row, column)).all()
        assert (maze.start > LOW).all() and (maze.goal < HIGH).all()
        starts.add(tuple(start))
        goals.add(tuple(goal))
    assert len(starts) > 10 and len(goals) > 10


def test_unknown_ends_are_refused():
    with pytest.raises(ValueError, match="'middle', valid: corners, rooms"):
        four_rooms(0, "middle")  # type: ignore[arg-type]
