"""retrieve: from target demonstrations and an index to the pieces of the corpus that resemble parts of them (STRAP, arXiv 2412.15182)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from numpy.typing import NDArray

from rl_core.data.annotations import LANG
from rl_core.data.episode import Dataset
from rl_core.data.training_data import require_trainable
from rl_core.strap.embedding import Embedder
from rl_core.strap.frame_retrieval import full_trajectories, nearest_runs
from rl_core.strap.index import Index
from rl_core.strap.latents import behaviour_latents, flow_latents
from rl_core.strap.sdtw import RetrievalError, Steps
from rl_core.strap.search import Match, search
from rl_core.strap.selection import Piece, Segment, matches_needed, select
from rl_core.strap.slicing import Stops, slice_episode

logger = logging.getLogger(__name__)

Retriever = Literal["strap", "single-state", "full-trajectory", "behavior", "flow"]
Search = Callable[[Sequence[NDArray[Any]], int, Steps], list[list[Match]]]
"""Takes queries, k and steps: `search` in this process, or over several machines."""


@dataclass(frozen=True, kw_only=True)
class RetrievalPlan:
    """What is retrieved, and how.

    Attributes:
        pieces: K, pieces in all. The baselines retrieve as many frames as K pieces of a segment's mean length have.
        retriever: `strap`; or a baseline: single states (D-S), whole trajectories by DTW (D-T), states and actions in the latent space of a
            variational autoencoder (Behavior Retrieval, arXiv 2304.08742), or optical flow in one (FlowRetrieval, arXiv 2408.16944).
        steps: step set of S-DTW; `strap` is the paper's.
        unique: a piece may come only once; by default it may come for several segments, as in the paper.
        stops: where target demonstrations are cut.
        threads: of this process.
        seed: of the autoencoders.
    """

    pieces: int = 100
    retriever: Retriever = "strap"
    steps: Steps = "strap"
    unique: bool = False
    stops: Stops = field(default_factory=Stops)
    threads: int = 1
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Retrieval:
    """The target's segments and the pieces retrieved."""

    segments: tuple[Segment, ...]
    pieces: tuple[Piece, ...]


def retrieve(target: Dataset, index: Index, embedder: Embedder, plan: RetrievalPlan, search_with: Search | None = None) -> Retrieval:
    """The pieces of the indexed corpus for `target`.

    Args:
        target: demonstrations of the new task.
        index: the corpus.
        embedder: that of the index.
        plan: see `RetrievalPlan`.
        search_with: searches the index for STRAP; None = in this process.

    Raises:
        DatasetError: the target cannot be trained on.
        RetrievalError: a target demonstration is in the corpus too, or nothing there is long enough to match.
    """
    require_trainable(target)  # what is trained on is what is searched for: a NaN is named by episode, field and step
    _require_apart(target, index)
    cuts = [slice_episode(episode, plan.stops) for episode in target.episodes]
    segments = [Segment(demo=demo, start=start, stop=stop) for demo, found in enumerate(cuts) for start, stop in found]
    frames = plan.pieces * sum(segment.stop - segment.start for segment in segments) // len(segments)
    if plan.retriever in ("behavior", "flow"):
        latents = behaviour_latents if plan.retriever == "behavior" else flow_latents
        prior, wanted = latents(index, target, plan.seed)
        pieces = nearest_runs(wanted, prior, frames)
    else:
        features = [embedder.embed(episode, target.contract) for episode in target.episodes]
        if plan.retriever == "single-state":
            pieces = nearest_runs(features, index, frames)
        elif plan.retriever == "full-trajectory":
            pieces = full_trajectories(features, index, frames)
        else:
            run = search_with or (lambda queries, k, steps: search(queries, index, k, steps=steps, threads=plan.threads))
            needed = matches_needed(plan.pieces, len(segments), unique=plan.unique)
            queries = [features[segment.demo][segment.start : segment.stop] for segment in segments]
            pieces = select(run(queries, needed, plan.steps), plan.pieces, unique=plan.unique)
    if not pieces:
        longest, shortest = index.lengths.max(initial=0), min(segment.stop - segment.start for segment in segments)
        raise RetrievalError(f"nothing to retrieve: {len(index)} trajectories of up to {longest} frames, segments of {shortest} or more")
    return Retrieval(segments=tuple(segments), pieces=tuple(pieces))


def _require_apart(target: Dataset, index: Index) -> None:
    uuids = {episode.uuid for episode in target.episodes}
    both = [trajectory for trajectory in index.trajectories if trajectory.uuid in uuids]
    if both:
        where = f"{both[0].source} {both[0].demo}"
        raise RetrievalError(
            f"{len(both)} target demonstrations are in the corpus too, e.g. {where}; valid: a corpus without the target's task"
        )
    words = {str(episode.meta.get(LANG, "")) for episode in target.episodes} - {""}
    same = sum(trajectory.lang in words for trajectory in index.trajectories)
    if same:
        logger.warning("%d demonstrations of the corpus have the target's instruction: is the target's task in it?", same)
