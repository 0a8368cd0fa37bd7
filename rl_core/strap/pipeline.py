"""Everything that happens once the target task is known: retrieve from a corpus, train on that and the target's demonstrations.

The baselines that see the corpus too are recipes of the same command (STRAP, arXiv 2412.15182, section 5):

    strap   pieces of the corpus that resemble parts of the target's demonstrations, and these
    mt      multi-task: the whole corpus and the target's demonstrations
    ft      pre-training on the corpus with half of the updates, fine-tuning on the target's demonstrations with the others

The fourth, BC, is `bc_transformer` on the target's demonstrations alone.

    RUN/index           features of the corpus, unless another folder is given: it serves any number of targets
    RUN/retrieved.hdf5  pieces and demonstrations, RUN/retrieval.json what they were made of
    RUN/pretraining     the first half of `ft`
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rl_core.data.atomic import write_atomically
from rl_core.data.episode import Dataset, Episode
from rl_core.data.fingerprint import fingerprint
from rl_core.strap.chunk_windows import instruction_of, instructions_in
from rl_core.strap.config import BCTransformerConfig
from rl_core.strap.corpus import find_datasets, list_demos, read_demos, read_target
from rl_core.strap.embedding import Embedding
from rl_core.strap.indexing import build_index
from rl_core.strap.pieces import write_retrieved
from rl_core.strap.retrieval import RetrievalPlan, Retriever, retrieve
from rl_core.strap.slicing import Stops
from rl_core.training.config import ConfigError
from rl_core.training.run import train
from rl_core.training.trainer import TrainingResult

METHOD = "strap"
Recipe = Literal["strap", "mt", "ft"]
Progress = Callable[[str, int, int], None]
"""Takes what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True, kw_only=True)
class TargetTraining:
    """A target task and the corpus that helps with it."""

    target: Path | None = None
    """Demonstrations of the target task, in place of --dataset; needs --corpus."""
    corpus: tuple[Path, ...] = ()
    """Datasets of other tasks, or folders of them."""
    recipe: Recipe = "strap"
    """strap: retrieve pieces of the corpus; mt: train on all of it; ft: pre-train on it, fine-tune on the target."""
    k: int = 100
    """Pieces to retrieve (paper: 100)."""
    retriever: Retriever = "strap"
    """strap, or a baseline: single frames, whole trajectories, Behavior Retrieval, FlowRetrieval."""
    embedding: Embedding = field(default_factory=Embedding)
    """Features that are compared."""
    stops: Stops = field(default_factory=Stops)
    """Where the target's demonstrations are cut."""
    index: Path | None = None
    """Index of the corpus, made where it is not there yet; left out: in the run folder."""

    def train(
        self,
        run_dir: Path,
        *,
        config: BCTransformerConfig,
        trainer: Mapping[str, Any],
        progress: Progress = lambda what, done, total: None,
        **options: Any,
    ) -> TrainingResult:
        """Trains for the target and writes `run_dir/bundle`.

        Args:
            run_dir: see the module.
            config: of the policy.
            trainer: fields of `TrainerConfig`, `updates` among them.
            progress: told of reading, embedding and writing.
            options: further arguments of `rl_core.training.run.train`.

        Raises:
            ArmstackError: no corpus; demonstrations that do not fit each other; nothing to retrieve; see `train`.
        """
        if self.target is None or not self.corpus:
            raise ConfigError(f"target {self.target}, corpus {list(self.corpus)}; valid: both, or a dataset alone")
        if taken := [name for name in ("weights", "init_from") if options.get(name) is not None]:
            raise ConfigError(f"{', '.join(taken)}: given together with a target; valid: with a dataset only")
        target = read_target(self.target)
        settings = {"config": config.override(instruction=config.instruction or _instruction(target)), "trainer": dict(trainer), **options}
        if self.recipe == "strap":
            return train(METHOD, self._retrieved(target, run_dir, progress), run_dir, **settings)
        prior = self._prior(target, progress)
        if self.recipe == "mt":
            both = dataclasses.replace(target, episodes=(*prior.episodes, *target.episodes))
            return train(METHOD, both, run_dir, **settings)
        return self._fine_tuned(prior, target, run_dir, settings)

    def _retrieved(self, target: Dataset, run_dir: Path, progress: Progress) -> Path:
        """The file to train on; one that was made of equal things is taken as it is."""
        folder = self.index or run_dir / "index"
        index, embedder = build_index(self.corpus, folder, self.embedding, lambda *n: progress("embedding", *n))
        plan = RetrievalPlan(pieces=self.k, retriever=self.retriever, stops=self.stops)
        trajectories = json.dumps([(t.uuid, t.frames, t.crc) for t in index.trajectories]).encode()
        facts = {
            "target": fingerprint(target),
            "corpus": hashlib.sha256(trajectories).hexdigest(),
            "embedder": embedder.spec,
            "plan": dataclasses.asdict(plan),
        }
        file, note = run_dir / "retrieved.hdf5", run_dir / "retrieval.json"
        text = json.dumps(facts, indent=1, sort_keys=True, default=str)
        if file.is_file() and note.is_file() and note.read_text() == text:
            return file
        found = retrieve(target, index, embedder, plan)
        written = 0

        def counted(pieces: int) -> None:
            nonlocal written
            written += pieces
            progress("writing pieces", written, len(found.pieces))

        note.unlink(missing_ok=True)  # else a crash could leave the new file beside the old note
        write_retrieved(file, found.pieces, index, target, found.segments, counted)
        with write_atomically(note) as opened:
            opened.write(text.encode())
        return file

    def _prior(self, target: Dataset, progress: Progress) -> Dataset:
        """The whole corpus in memory, with the target's channels."""
        demos = [demo for source in find_datasets(self.corpus) for demo in list_demos(source)]
        names = [channel.name for channel in target.contract.observation]
        episodes: list[Episode] = []
        for demo, episode, contract in read_demos(demos):
            target.contract.accepts(contract, needed_by="the target", offered_by=str(demo.source))
            episodes.append(dataclasses.replace(episode, observations={name: episode.observations[name] for name in names}))
            progress("reading", len(episodes), len(demos))
        return Dataset(contract=target.contract, episodes=tuple(episodes), source=", ".join(map(str, self.corpus)))

    @staticmethod
    def _fine_tuned(prior: Dataset, target: Dataset, run_dir: Path, settings: Mapping[str, Any]) -> TrainingResult:
        updates = int(settings["trainer"]["updates"])
        before = {**settings["trainer"], "updates": max(1, updates // 2)}
        anyone = settings["config"].override(instruction="")  # the target's is not among the corpus'
        alone = {name: value for name, value in settings.items() if name not in ("world", "eval_episodes")}
        first = train(METHOD, prior, run_dir / "pretraining", **{**alone, "config": anyone, "trainer": before})
        if first.bundle is None:
            return first
        after = {**settings["trainer"], "updates": max(1, updates - updates // 2)}
        return train(METHOD, target, run_dir, **{**settings, "trainer": after, "init_from": first.bundle})


def _instruction(target: Dataset) -> str:
    """The one that all demonstrations of the target share; raises ConfigError where they do not."""
    found = instructions_in(target)
    if len(found) > 1:
        each = {text: sum(instruction_of(episode) == text for episode in target.episodes) for text in found}
        raise ConfigError(f"{target.source}: demonstrations of several tasks {each}, valid: of the one target task")
    return found[0]
