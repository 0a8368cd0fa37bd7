"""What a reward-free pre-training found, as pictures in its run's folder: coverage, skills, and how right their values are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import gymnasium
import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from rl_core.bundle import Bundle
from rl_core.data.replay import ReplayBuffer
from rl_core.dvfb.calibration import calibrate
from rl_core.dvfb.figures import visited
from rl_core.dvfb.solving import blind_skill
from rl_core.methods import load_policy
from rl_core.policy import Policy
from rl_core.training.rollout import rollout
from rl_core.training.seeding import derive_seed
from rl_core.training.worlds import contract_of, make_world
from sim_envs.reward_free.coverage import CellCoverage
from sim_envs.reward_free.pictures import draw_calibration, draw_coverage, write_skill_grid
from sim_envs.reward_free.plane import plane_of

MOMENTS = 4
"""Coverage maps, each after as many more steps."""
FILMED, LONGEST = 8, 200
"""Skills in the video, and steps of each."""
CALIBRATED = 32
"""Skills whose values are measured."""


def draw_exploration(run_dir: Path, world: str) -> list[Path]:
    """Writes `coverage.png` (where the world has a plane), `calibration.png` (dvfb) and `skills.mp4`; the files written.

    Args:
        run_dir: of a finished `armstack pretrain`.
        world: what was explored.

    Raises:
        ArmstackError: the world does not render; the other pictures have been written then.
    """
    bundle, make_env = Bundle.load(run_dir / "bundle"), partial(make_world, world)
    files = []
    if (coverage := _draw_coverage(run_dir, bundle, make_env)) is not None:
        files.append(coverage)
    if bundle.method == "dvfb":
        files.append(draw_calibration(*calibrate(bundle, make_env, skills=CALIBRATED), run_dir / "calibration.png"))
    return [*files, _film_skills(run_dir, bundle, partial(make_world, world, render_mode="rgb_array"))]


def _draw_coverage(run_dir: Path, bundle: Bundle, make_env: Callable[[], gymnasium.Env]) -> Path | None:
    env = make_env()
    plane = plane_of(env)
    env.close()
    if plane is None:
        return None
    points = visited(bundle, ReplayBuffer.load(run_dir / "replay"), plane.channel)[:, :2].numpy()
    cells, moments = CellCoverage(plane.low, plane.high), {}
    for moment in range(MOMENTS):
        end = len(points) * (moment + 1) // MOMENTS
        cells.add(points[len(points) * moment // MOMENTS : end])
        moments[end] = cells.visits.copy()
    return draw_coverage({bundle.method: moments}, run_dir / "coverage.png", box=(plane.low, plane.high), walls=plane.walls)


def _film_skills(run_dir: Path, bundle: Bundle, make_env: Callable[[], gymnasium.Env]) -> Path:
    policy, envs = load_policy(bundle), [make_env() for _ in range(FILMED)]
    films = [_film(policy, env, blind_skill(bundle, derive_seed(0, "filmed", index))) for index, env in enumerate(envs)]
    try:
        return write_skill_grid(films, run_dir / "skills.mp4", fps=1.0 / contract_of(envs[0]).action.period_s)
    finally:
        for env in envs:
            env.close()


def _film(policy: Policy, env: gymnasium.Env, skill: Tensor) -> Iterator[NDArray[np.uint8]]:
    for _ in islice(rollout(policy, [env], [derive_seed(0, "filmed episode")], condition={"skill": skill}), LONGEST):
        yield np.asarray(env.render())
