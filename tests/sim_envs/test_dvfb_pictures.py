from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from rl_core.errors import ArmstackError
from sim_envs.reward_free.coverage import CellCoverage
from sim_envs.reward_free.pictures import draw_coverage, draw_paths, film, tile, write_skill_grid
from sim_envs.reward_free.worlds import make
from sim_envs.rooms.layout import FOUR_ROOMS

BOX = ((-1.0, -1.0), (1.0, 1.0))


def colours(file: Path) -> np.ndarray:
    return np.unique(np.asarray(Image.open(file).convert("RGB")).reshape(-1, 3), axis=0)


def test_coverage_maps_show_more_where_more_was_visited(tmp_path: Path) -> None:
    random, coverage = np.random.default_rng(0), CellCoverage(*BOX)
    moments = {}
    for steps in (100, 5000):
        coverage.add(random.uniform(-1, 1, (steps, 2)) ** 3)
        moments[steps] = coverage.visits.copy()
    file = draw_coverage(
        {"random": moments, "none": {0: np.zeros((20, 20), np.int64)}}, tmp_path / "coverage.png", box=BOX, walls=FOUR_ROOMS.segments
    )
    few = draw_coverage({"none": {0: np.zeros((20, 20), np.int64)}}, tmp_path / "none.png", box=BOX)
    saturated = [len(colours(f)[np.ptp(colours(f).astype(int), axis=1) > 60]) for f in (file, few)]
    assert saturated[0] > 20 and saturated[1] == 0
    with pytest.raises(ArmstackError, match="no coverage"):
        draw_coverage({}, tmp_path / "empty.png", box=BOX)


def test_paths_are_drawn_each_in_its_colour(tmp_path: Path) -> None:
    paths = {f"z{i}": np.outer(np.linspace(0, 0.8, 30), way) for i, way in enumerate(((1, 0.3), (-0.4, 1), (-1, -0.6)))}
    file = draw_paths(paths, tmp_path / "paths.png", box=BOX, walls=FOUR_ROOMS.segments)
    found = {tuple(colour) for colour in colours(file)}
    assert {(31, 119, 180), (255, 127, 14), (44, 160, 44)} <= found
    with pytest.raises(ArmstackError, match="no paths"):
        draw_paths({}, tmp_path / "empty.png", box=BOX)


def test_tiles_stand_row_by_row_on_white() -> None:
    grid = tile([np.full((6, 8, 3), shade, np.uint8) for shade in (10, 20, 30)], columns=2)
    assert grid.shape == (16, 20, 3)
    assert (grid[:6, :8] == 10).all() and (grid[:6, 12:] == 20).all() and (grid[10:, :8] == 30).all()
    assert (grid[6:10] == 255).all() and (grid[10:, 8:] == 255).all()
    with pytest.raises(ArmstackError, match="one size"):
        tile([np.zeros((6, 8, 3), np.uint8), np.zeros((6, 9, 3), np.uint8)], columns=2)


def test_skill_grid_is_a_video_as_long_as_its_longest_film(tmp_path: Path) -> None:
    films = [
        film(make("FourRooms", horizon=horizon, render_mode="rgb_array"), lambda observation, way=way: np.array(way), seed=0)
        for horizon, way in ((4, (1.0, 0.0)), (9, (0.0, 1.0)), (6, (1.0, 1.0)))
    ]
    file = write_skill_grid(films, tmp_path / "skills.mp4", fps=20.0, columns=2)
    with av.open(str(file)) as container:
        pictures = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert len(pictures) == 10 and pictures[0].shape == (324, 324, 3)

    def red(picture: np.ndarray) -> np.ndarray:
        rows, columns = np.nonzero(picture[..., 0].astype(int) - picture[..., 1] > 90)
        return np.array([rows.mean(), columns.mean()])

    first, last = pictures[0], pictures[-1]
    assert red(last[:160, :160])[1] > red(first[:160, :160])[1] + 5  # to the right, then still
    assert red(last[:160, 164:])[0] < red(first[:160, 164:])[0] - 15  # up
    with pytest.raises(ArmstackError, match="without pictures"):
        write_skill_grid([iter(()), iter([np.zeros((4, 4, 3), np.uint8)])], tmp_path / "none.mp4", fps=20.0)


def test_a_world_without_pictures_cannot_be_filmed() -> None:
    with pytest.raises(ArmstackError, match="render_mode='rgb_array'"):
        next(film(make("FourRooms"), lambda observation: np.zeros(2), seed=0))
