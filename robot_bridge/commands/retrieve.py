"""`armstack retrieve`: pieces of a large corpus that resemble parts of a few demonstrations, as one dataset to train on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import tyro
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from rl_core.data.episode import DatasetError
from rl_core.strap.corpus import read_target
from rl_core.strap.distributed import search_cluster
from rl_core.strap.embedding import Embedding
from rl_core.strap.index import Index
from rl_core.strap.indexing import build_index
from rl_core.strap.pieces import write_retrieved
from rl_core.strap.retrieval import RetrievalPlan, Retriever, Search, retrieve
from rl_core.strap.sdtw import RetrievalError, Steps
from rl_core.strap.search import search
from rl_core.strap.slicing import Stops
from robot_bridge.commands.output import console, emit_json, figures_table
from robot_bridge.missing_extra import named_extra
from robot_bridge.output_places import check_file, check_page
from robot_bridge.retrieval_page import write_retrieval_page

if TYPE_CHECKING:
    from robot_bridge.auxiliary.video.tempme import ClipSearcher


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Retrieve sub-trajectories from a corpus (STRAP, arXiv 2412.15182) and write them with the target's demonstrations to one file.

    The corpus is embedded once, into an index on disk; a stopped run goes on where it was, and new datasets are added to it. Each
    piece keeps its own instruction and says in its meta where it is from.

    Example: armstack retrieve --corpus data/corpus --target demos.hdf5 --k 100 --out retrieved.hdf5 --report report.html
    """

    corpus: tuple[Path, ...]
    """Datasets, or folders of them, to retrieve from."""
    target: Path
    """Demonstrations of the new task."""
    out: Path
    """HDF5 file to write."""
    report: Path | None = None
    """HTML page to write: each segment of the target beside its best matches, as film strips."""
    index: Path = Path("runs/retrieval-index")
    """Folder of the index."""
    k: int = 100
    """Pieces in all; every segment gets an equal share."""
    retriever: Retriever = "strap"
    """strap, or a baseline: single frames, whole trajectories, Behavior Retrieval, FlowRetrieval."""
    embedding: Embedding = field(default_factory=Embedding)
    """Features that are compared."""
    stops: Stops = field(default_factory=Stops)
    """Where the target's demonstrations are cut."""
    steps: Steps = "strap"
    """Step set of the alignment: the paper's, the textbook's, or symmetric."""
    text: str = ""
    """What happens in the demonstrations that are wanted, in words: only those that fit best are searched."""
    clips_bundle: Path | None = None
    """Bundle of `armstack aux train tempme`, which finds them."""
    text_share: float = 0.25
    """Share of the corpus that is searched with --text."""
    unique: bool = False
    """Take a piece once only, though it be the best for several segments."""
    threads: int = 2
    """Threads that search."""
    cluster: str = ""
    """Search over a Ray cluster: its address, or `local` for one of this machine's cores."""
    seed: int = 0
    """Of the autoencoders of Behavior Retrieval and FlowRetrieval."""
    overwrite: bool = False
    """Replace a file that is there already."""
    json: bool = False
    """Print one JSON object on the last line."""


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack retrieve")
    _check(arguments)
    target = read_target(arguments.target)
    clips = None if arguments.clips_bundle is None else _read_clips(arguments.clips_bundle, arguments.text)
    with _bars() as progress:
        started = time.monotonic()
        bar = progress.add_task("embedding the corpus", total=None)
        index, embedder = build_index(
            arguments.corpus, arguments.index, arguments.embedding, lambda done, total: progress.update(bar, completed=done, total=total)
        )
        bar = progress.add_task("checking the index", total=len(index))
        index.verify(lambda done: progress.update(bar, advance=done))
        embedded, corpus = time.monotonic() - started, len(index)
        if clips is not None:
            index = _narrowed(arguments, index, clips, progress)
        plan = RetrievalPlan(
            pieces=arguments.k,
            retriever=arguments.retriever,
            steps=arguments.steps,
            unique=arguments.unique,
            stops=arguments.stops,
            threads=arguments.threads,
            seed=arguments.seed,
        )
        started = time.monotonic()
        found = retrieve(target, index, embedder, plan, _searcher(arguments, index, progress))
        searched = time.monotonic() - started
        bar = progress.add_task("writing the pieces", total=len(found.pieces))
        write_retrieved(arguments.out, found.pieces, index, target, found.segments, lambda done: progress.update(bar, advance=done))
        if arguments.report is not None:
            bar = progress.add_task("drawing", total=None)
            write_retrieval_page(arguments.report, found, index, target, name=arguments.target.name)
    lengths = [piece.stop - piece.start for piece in found.pieces]
    figures = {
        "out": str(arguments.out),
        "corpus": corpus,
        "searched": len(index),
        "segments": len(found.segments),
        "pieces": len(found.pieces),
        "frames": sum(lengths),
        "mean_length": sum(lengths) / len(lengths),
        "embedding_s": embedded,
        "retrieval_s": searched,
    }
    figures_table(f"retrieved for {arguments.target}", figures)
    if arguments.report is not None:
        console.print(f"wrote {arguments.report}")
    if arguments.json:
        emit_json(figures)
    return 0


def _check(arguments: Arguments) -> None:
    if arguments.k < 1 or arguments.threads < 1:
        raise RetrievalError(f"--k {arguments.k}, --threads {arguments.threads}; valid: 1 or more")
    if arguments.cluster and arguments.retriever != "strap":
        raise RetrievalError(f"--cluster is for --retriever strap, not {arguments.retriever}")
    if bool(arguments.text.strip()) != (arguments.clips_bundle is not None) or not 0 < arguments.text_share <= 1:
        found = f"--text {arguments.text!r}, --clips-bundle {arguments.clips_bundle}, --text-share {arguments.text_share}"
        raise RetrievalError(f"{found}; valid: a text with a bundle, or neither, and a share above 0, at most 1")
    if arguments.cluster and arguments.clips_bundle is not None:
        raise RetrievalError("--text with --cluster, whose machines search the whole index; valid: one of them")
    check_file(arguments.out, "--out")
    if arguments.out.exists() and not arguments.overwrite:
        raise DatasetError(f"{arguments.out}: is there already; valid: another --out, or --overwrite")
    if arguments.out.resolve() in {path.resolve() for path in (*arguments.corpus, arguments.target)}:
        raise DatasetError(f"{arguments.out}: is read too; valid: a file of its own")
    if arguments.report is not None:
        check_page(arguments.report, "--report")


def _read_clips(bundle: Path, text: str) -> tuple[ClipSearcher, str]:
    """The searcher of the bundle and its sha256, read before the corpus is embedded for hours."""
    from robot_bridge.auxiliary.video.searcher_bundle import read_searcher, unknown_words  # needs the extra `vlm`, as the bundle does

    with named_extra("armstack retrieve --text", "vlm"):
        searcher, sha256 = read_searcher(bundle)
    if unknown := unknown_words(searcher, text):
        console.print(unknown)
    return searcher, sha256


def _narrowed(arguments: Arguments, index: Index, clips: tuple[ClipSearcher, str], progress: Progress) -> Index:
    from robot_bridge.auxiliary.video.text_scorer import TextScorer, narrow

    searcher, sha256 = clips
    bar = progress.add_task(f"looking for {arguments.text!r}", total=len(index))
    scorer = TextScorer(searcher, sha256, arguments.text, arguments.index / "clips")
    with named_extra("armstack retrieve --text", "vlm"):
        return narrow(index, scorer, arguments.text_share, lambda done: progress.update(bar, advance=done))[0]


def _searcher(arguments: Arguments, index: Index, progress: Progress) -> Search:
    bar = progress.add_task("searching", total=len(index), visible=arguments.retriever == "strap")

    def advance(done: int) -> None:
        progress.update(bar, advance=done)

    if arguments.cluster:
        address = None if arguments.cluster == "local" else arguments.cluster
        return lambda queries, k, steps: search_cluster(queries, index.folder, k, steps=steps, address=address, progress=advance)
    return lambda queries, k, steps: search(queries, index, k, steps=steps, threads=arguments.threads, progress=advance)


@contextmanager
def _bars() -> Iterator[Progress]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        yield progress
