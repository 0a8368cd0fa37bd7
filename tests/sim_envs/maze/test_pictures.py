"""Pictures of mazes: what is where."""

import numpy as np

from sim_envs.maze.layout import CELL, HIGH, centre, four_rooms
from sim_envs.maze.pictures import draw_maze
from sim_envs.maze.planner import plan


def colour_at(picture: np.ndarray, point: np.ndarray, cell_pixels: int = 32) -> np.ndarray:
    row, column = ((HIGH - point) / CELL * cell_pixels).astype(int)
    return picture[row, column].astype(int)


def test_walls_are_dark_and_the_goal_green_with_far_up_and_left_left():
    maze = four_rooms(2)
    picture = draw_maze(maze)
    assert picture.shape == (320, 352, 3)
    for cell in np.ndindex(*maze.walls.shape):
        if np.linalg.norm(centre(cell) - maze.goal) > 0.06 and np.linalg.norm(centre(cell) - maze.start) > 0.06:
            assert (colour_at(picture, centre(cell)).mean() < 100) == maze.walls[cell]
    red, green, blue = colour_at(picture, maze.goal)
    assert green > red + 30 and green > blue + 20


def test_ways_and_subgoals_are_drawn():
    maze = four_rooms(2)
    way = plan(maze, 0.05)
    plain = draw_maze(maze).astype(int)
    with_way = draw_maze(maze, path=way[:5])
    red, _, blue = colour_at(with_way, (way[1] + way[2]) / 2)
    assert blue > red + 60
    with_subgoals = draw_maze(maze, subgoals=[way[4], way[8]])
    red, _, blue = colour_at(with_subgoals, way[8])
    assert red > blue + 60
    assert np.abs(draw_maze(maze, planned=way) - plain).max() > 30
