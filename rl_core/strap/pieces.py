"""Cutting pieces out of demonstrations, and writing them with the target's: robomimic's layout, a mask for each of the two.

    data/demo_0..          the pieces, then the target's demonstrations; attribute `ep_meta` = {"lang": ...}, each its own instruction
    mask/retrieved, demos  names of the pieces
    mask/all               all names

A piece brings CONTEXT frames before and after the cut along, so that each of its frames has a whole window of observations and of
actions; at the ends of a demonstration its first or last row is repeated instead. `meta["retrieved"]` says where a piece is from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rl_core.data.annotations import RETRIEVED
from rl_core.data.demo_layout import create_data, write_demo
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.hdf5 import create_hdf5
from rl_core.strap.corpus import demo_at, read_corpus_demo
from rl_core.strap.index import Index
from rl_core.strap.selection import Piece, Segment

CONTEXT = 5
"""Frames at either side: the policy's frames of context, and its actions in a chunk (STRAP's released code)."""


def cut(episode: Episode, start: int, stop: int, context: int = CONTEXT) -> Episode:
    """Steps `start` to `stop` (exclusive) with `context` more at either side, as an episode of its own.

    Raises:
        DatasetError: those steps are not there.
    """
    steps = len(episode)
    if not 0 <= start < stop <= steps:
        raise DatasetError(f"episode {episode.uuid}: steps {start}..{stop}, valid: within 0..{steps}")
    wanted = np.arange(start - context, stop + context)
    rows = np.clip(wanted, 0, steps - 1)
    ends = np.append(rows, rows[-1] + 1)  # what was seen before each action, and after the last one
    repeated = np.append(wanted, wanted[-1] + 1) - ends
    period = int(np.median(np.diff(episode.stamps_ns)))
    rewards = np.where(rows == wanted, episode.rewards[rows], 0).astype(np.float32)
    return dataclasses.replace(
        episode,
        observations={name: np.asarray(values)[ends] for name, values in episode.observations.items()},
        actions=episode.actions[rows],
        rewards=rewards,
        terminal=False,
        truncated=True,
        stamps_ns=episode.stamps_ns[ends] + repeated * period,
        action_applied=None if episode.action_applied is None else episode.action_applied[rows],
        observation_age_ns={name: ages[ends] for name, ages in episode.observation_age_ns.items()},
        success=None,
        meta={},
    )


def write_retrieved(
    path: Path,
    pieces: Sequence[Piece],
    index: Index,
    target: Dataset,
    segments: Sequence[Segment],
    progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Writes pieces and target to `path`, which appears when it is whole.

    Args:
        path: HDF5 file.
        pieces: of trajectories of `index`; read from the datasets it names.
        index: the corpus.
        target: its episodes and its contract; pieces keep the channels it has.
        segments: of the target, by the numbers in `pieces`.
        progress: told after every piece.

    Raises:
        ContractMismatch: the corpus does not offer what the target has, in the same units, frames and names.
        DatasetError: a demonstration changed or is gone since it was indexed, or the disk is full.
    """
    with create_hdf5(path) as file:
        data = create_data(file, target.contract)
        steps = 0
        for number, piece in enumerate(pieces):
            episode = _piece(piece, number, index, target, segments)
            write_demo(data, f"demo_{number}", episode, target.contract)
            steps += len(episode)
            progress(1)
        for number, demo in enumerate(target.episodes, len(pieces)):
            write_demo(data, f"demo_{number}", demo, target.contract)
        data.attrs["total"] = steps + target.steps
        names = [f"demo_{number}" for number in range(len(pieces) + len(target))]
        mask = file.create_group("mask")
        for name, listed in ((RETRIEVED, names[: len(pieces)]), ("demos", names[: len(pieces)]), ("all", names)):
            mask.create_dataset(name, data=np.array(listed, dtype="S"))


def _piece(piece: Piece, number: int, index: Index, target: Dataset, segments: Sequence[Segment]) -> Episode:
    known = index.trajectories[piece.trajectory]
    source = Path(known.source)
    episode, contract = read_corpus_demo(demo_at(source, known.demo))
    if episode.uuid != known.uuid or len(episode) != known.frames:
        raise DatasetError(
            f"{source}: {known.demo} changed since it was indexed: {len(episode)} steps, valid: {known.frames}, the same uuid"
        )
    target.contract.accepts(contract, needed_by="the target", offered_by=str(source))
    facts: dict[str, Any] = {"source": known.source, "demo": known.demo, "uuid": known.uuid}
    facts |= {"start": piece.start, "stop": piece.stop, "cost": piece.cost, "context": CONTEXT}
    if piece.segment >= 0:
        segment = segments[piece.segment]
        facts["segment"] = {"target": target.episodes[segment.demo].uuid, "start": segment.start, "stop": segment.stop}
    return dataclasses.replace(
        cut(episode, piece.start, piece.stop), uuid=f"{known.uuid}-{number}", meta={**_kept(episode), RETRIEVED: facts}
    )


def _kept(episode: Episode) -> dict[str, Any]:
    """The facts that stay true of a piece; what is said of single steps does not."""
    return {name: value for name, value in episode.meta.items() if name in ("lang", "task", "expert", "seed")}
