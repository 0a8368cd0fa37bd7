"""All rounds on one model, in a folder that keeps what is finished."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rl_core.models.language import SentenceEncoder
from rl_core.training.seeding import derive_seed, numpy_generator
from robot_bridge.auxiliary.bundles import fingerprint
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.lmm.interface import LMM
from robot_bridge.auxiliary.recognition.selfsynth.augmentation import views
from robot_bridge.auxiliary.recognition.selfsynth.concepts import Concepts
from robot_bridge.auxiliary.recognition.selfsynth.config import SelfSynthConfig
from robot_bridge.auxiliary.recognition.selfsynth.queries import DESCRIBE
from robot_bridge.auxiliary.recognition.selfsynth.rounds import (
    Pair,
    acceptance,
    describe,
    first_round,
    image_concepts,
    random_concepts,
    sampling_round,
)
from robot_bridge.auxiliary.run_folder import RunFolder
from robot_bridge.auxiliary.told_progress import ToldProgress

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a run found before its first round.

    Attributes:
        descriptions: D of each picture.
        informative: Z* of each picture.
        used: Z*, or the random concepts of a baseline.
    """

    descriptions: list[list[str]]
    informative: list[list[str]]
    used: list[list[str]]


class SelfTraining:
    """Rounds one after the other; the model goes on from where the one before left it.

    Args:
        lmm: the base model; changed in place.
        data: labelled pictures.
        concepts: of their classes.
        encoder: of sentences.
        config: settings.
        folder: of the run; finished steps found there are not done again.
        seed: of everything.
        say: told how far it is.

    Raises:
        RecognitionError: classes without concepts.
        ArmstackError: a folder of another run; names what differs.
    """

    def __init__(
        self,
        lmm: LMM,
        data: ImageData,
        concepts: Concepts,
        encoder: SentenceEncoder,
        config: SelfSynthConfig,
        folder: Path,
        *,
        seed: int,
        say: Say = lambda text: None,
    ) -> None:
        self.lmm, self.data, self.encoder, self.config, self.seed, self._say = lmm, data, encoder, config, seed, say
        self.concepts = concepts.only(data.classes)
        texts = {name: self.concepts.texts(name) for name in self.concepts.classes}
        settings = {name: value for name, value in config.to_dict().items() if name != "rounds"}
        facts = {"config": settings, "seed": seed, "data": fingerprint(data), "model": lmm.identity, "concepts": texts}
        self._kept = RunFolder(folder, facts)
        self._views = views(data.frames, config.views, derive_seed(seed, "augmentation"))

    def evidence(self) -> Evidence:
        """Descriptions and concepts of every picture, by the base model."""
        descriptions = self._kept.once("descriptions", self._descriptions)
        informative = self._kept.once(
            "concepts", lambda: image_concepts(descriptions, self.data, self.concepts, self.encoder, self.config.tau)
        )
        used = informative
        if self.config.evidence == "random":
            used = random_concepts(informative, self.data, self.concepts, self.seed)
        return Evidence(descriptions=descriptions, informative=informative, used=used)

    def round(self, number: int, found: Evidence) -> float:
        """Round `number`, from 1; returns the share of answers that were the model's own. The model then is what the round made of it."""
        pairs = [Pair(**row) for row in self._kept.once(f"round-{number}", lambda: self._pairs(number, found))]
        weights = self._kept.kept(f"round-{number}")
        if weights is not None:
            self.lmm.restore(weights)
            self._say(f"round {number}: found in the run's folder, accepted {100 * acceptance(pairs):.1f} %")
        else:
            loss = self.tune(pairs, found.descriptions, number)
            self._kept.keep(f"round-{number}", self.lmm.trained())
            self._say(f"round {number}: {len(pairs)} answers, accepted {100 * acceptance(pairs):.1f} %, loss {loss:.3f}")
        return acceptance(pairs)

    def tune(self, pairs: Sequence[Pair], descriptions: Sequence[Sequence[str]], number: int) -> float:
        """Fine-tunes on pairs and a share of descriptions, each with the picture or one of its views; returns the loss."""
        generator = numpy_generator(self.seed, "tune", number)
        mixed = [(pair.row, pair.query, pair.answer) for pair in pairs]
        for _ in range(round(self.config.replay * len(pairs))):
            row = int(generator.integers(len(descriptions)))
            place = int(generator.integers(len(descriptions[row])))
            mixed.append((row, DESCRIBE[place // self.config.descriptions], descriptions[row][place]))
        mixed = [text for text in mixed if text[2].strip()]  # a sampled description may be empty
        shown = self._views[[row for row, _, _ in mixed], generator.integers(0, self._views.shape[1], len(mixed))]
        prompts, answers = [query for _, query, _ in mixed], [answer for _, _, answer in mixed]
        told, seed = ToldProgress(self._say, f"round {number}: steps"), derive_seed(self.seed, "sft", number)
        return self.lmm.sft(shown, prompts, answers, self.config.epochs, self.config.lr, seed=seed, told=told)

    def _descriptions(self) -> list[list[str]]:
        return describe(self.lmm, self.data.frames, self.config, self.seed, ToldProgress(self._say, "descriptions: prompts"))

    def _pairs(self, number: int, found: Evidence) -> list[dict[str, object]]:
        told = ToldProgress(self._say, f"round {number}: prompts")
        if number == 1:
            pairs = first_round(self.lmm, self.data, found.used, self.config, self.seed, told)
        else:
            pairs = sampling_round(self.lmm, self.data, found.used, self.concepts, self.encoder, self.config, self.seed, number, told)
        return [pair.to_json() for pair in pairs]
