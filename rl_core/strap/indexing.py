"""build_index: a corpus embedded into an index, once. What is there already is not read again, so a stopped build goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from rl_core.contract import RobotContract
from rl_core.data.annotations import LANG
from rl_core.data.episode import Episode
from rl_core.strap.corpus import Demo, find_datasets, list_demos, read_corpus_demo, read_demos
from rl_core.strap.embedding import Embedder, Embedding, embedder_from_spec, fit_embedder
from rl_core.strap.index import Index, IndexWriter
from rl_core.strap.sdtw import RetrievalError

_SAMPLE = 16
"""Demonstrations, spread evenly over the corpus, from which means and scales are taken."""

Progress = Callable[[int, int], None]
"""Takes how many demonstrations are done, and how many there are."""


def build_index(
    corpus: Sequence[Path], folder: Path, wanted: Embedding, progress: Progress = lambda done, total: None
) -> tuple[Index, Embedder]:
    """Embeds what of `corpus` is not in the index at `folder` yet.

    Args:
        corpus: datasets, or folders of them.
        folder: the index, made if needed. What it holds of other corpora stays and is searched too.
        wanted: the features; an index there already must hold equal ones.
        progress: see `Progress`.

    Raises:
        RetrievalError: the index holds other features, or a file changed since it was indexed.
        DatasetError: a demonstration cannot be read; what was embedded before it is kept.
    """
    demos = [demo for source in find_datasets(corpus) for demo in list_demos(source)]
    if not demos:
        raise RetrievalError(f"{', '.join(map(str, corpus))}: no finished demonstration")
    if (folder / "index.json").is_file():
        embedder = embedder_from_spec(Index(folder).embedder, wanted)
    else:
        embedder = fit_embedder(wanted, *_sample(demos))
    with IndexWriter(folder, embedder.size, embedder.spec) as writer:
        there = {(known.source, known.demo): known.stamp for known in writer.trajectories}
        missing = []
        for demo in demos:
            stamp = there.get((str(demo.source), demo.name))
            if stamp is None:
                missing.append(demo)
            elif list(stamp) != demo.stamp:
                raise RetrievalError(f"{demo.file}: changed since it was put into the index {folder}; valid: the same file, or a new index")
        progress(len(demos) - len(missing), len(demos))
        for done, (demo, episode, contract) in enumerate(read_demos(missing), len(demos) - len(missing) + 1):
            writer.add(
                embedder.embed(episode, contract),
                source=str(demo.source),
                demo=demo.name,
                uuid=episode.uuid,
                lang=str(episode.meta.get(LANG, "")),
                stamp=tuple(demo.stamp),
            )
            progress(done, len(demos))
    return Index(folder), embedder


def _sample(demos: Sequence[Demo]) -> tuple[list[Episode], RobotContract]:
    chosen = [demos[i] for i in sorted(set(np.linspace(0, len(demos) - 1, min(_SAMPLE, len(demos))).astype(int).tolist()))]
    read = [read_corpus_demo(demo) for demo in chosen]
    return [episode for episode, _ in read], read[0][1]
