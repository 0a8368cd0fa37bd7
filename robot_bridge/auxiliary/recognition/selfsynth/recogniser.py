"""ExplainedRecogniser: which part is in view, which of its features say so, and how far the picture bears that out."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.models.language import SentenceEncoder
from robot_bridge.auxiliary.lmm.interface import LMM
from robot_bridge.auxiliary.protocols import Prediction
from robot_bridge.auxiliary.recognition.selfsynth.citations import cited
from robot_bridge.auxiliary.recognition.selfsynth.concepts import Concepts
from robot_bridge.auxiliary.recognition.selfsynth.information import support
from robot_bridge.auxiliary.recognition.selfsynth.queries import DESCRIBE, EXAM, SIMPLE, with_article
from robot_bridge.auxiliary.recognition.selfsynth.rounds import MAX_WORDS, named_label

_DESCRIPTIONS = 3
_SEED = 0
_REMEMBERED = 64
_AS_OTHERS = 0.5
"""Support that every picture has on average."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What is said of one picture.

    Attributes:
        answer: the model's own words.
        label: the class that the answer names first; None where it names none.
        features: cited features in the answer's order, each with its support 0..1 (`information.support`).
        scores: class -> probability.
        accepted: the answer names the likeliest class and cites features whose mean support is above that of other pictures.
    """

    answer: str
    label: str | None
    features: tuple[tuple[str, float], ...]
    scores: NDArray[np.float32]
    accepted: bool

    @property
    def support(self) -> float:
        """Mean over the cited features; 0 where there are none."""
        return float(np.mean([value for _, value in self.features])) if self.features else 0.0

    def to_json(self) -> dict[str, Any]:
        """`label`, `accepted`, `support`, `features` [{feature, support}], `answer`."""
        features = [{"feature": text, "support": value} for text, value in self.features]
        return {"label": self.label, "accepted": self.accepted, "support": self.support, "features": features, "answer": self.answer}


class ExplainedRecogniser:
    """A recogniser that explains itself. Pure: draws have a fixed seed.

    Attributes:
        concepts: as given.

    Args:
        lmm: tuned.
        concepts: of the classes.
        encoder: of sentences.
        usual: feature -> log u of `information.support`, from the training pictures.
        tau: temperature of the support.
    """

    def __init__(self, lmm: LMM, concepts: Concepts, encoder: SentenceEncoder, usual: Mapping[str, float], tau: float) -> None:
        self.concepts, self._lmm, self._encoder, self._usual, self._tau = concepts, lmm, encoder, dict(usual), tau
        self._classes, self._features = tuple(concepts.classes), concepts.every_text()
        self._vectors = dict(zip(self._features, encoder.encode(self._features), strict=True))
        self._newest: OrderedDict[bytes, Explanation] = OrderedDict()

    @property
    def classes(self) -> tuple[str, ...]:
        """See `protocols.Recogniser`."""
        return self._classes

    def predict(self, frames: NDArray[np.uint8], condition: Mapping[str, Any] | None = None) -> Prediction:
        """See `protocols.Recogniser`. `values`: `accepted`, 1 or 0; `support` of what is cited; `unexplained`, 1 - accepted * support."""
        found = self.explanations(frames)
        accepted = np.array([each.accepted for each in found], np.float32)
        supported = np.array([each.support for each in found], np.float32)
        values = {"accepted": accepted, "support": supported, "unexplained": 1 - accepted * supported}
        return Prediction(scores=np.stack([each.scores for each in found]), values=values)

    def explain(self, frame: NDArray[np.uint8]) -> dict[str, Any]:
        """JSON-able words on a frame (H, W, 3); see `Explanation.to_json`."""
        return self.explanations(frame[None])[0].to_json()

    def ask(self, frame: NDArray[np.uint8], question: str) -> dict[str, Any]:
        """`answer` to any question on a frame (H, W, 3), in the model's words."""
        return {"answer": self._lmm.generate(frame[None], [question], max_tokens=MAX_WORDS)[0][0]}

    def explanations(self, frames: NDArray[np.uint8]) -> list[Explanation]:
        """One a frame (n, H, W, 3). The newest are remembered, as a node asks for scores and for words."""
        keys = [hashlib.sha256(f"{frame.shape}".encode() + np.ascontiguousarray(frame).tobytes()).digest() for frame in frames]
        known = {key: self._newest[key] for key in keys if key in self._newest}
        missing = [row for row, key in enumerate(keys) if key not in known]
        if missing:
            known.update(zip([keys[row] for row in missing], self.judge(frames[missing]), strict=True))
        for key in keys:
            self._newest[key] = known[key]
            self._newest.move_to_end(key)
        while len(self._newest) > _REMEMBERED:
            self._newest.popitem(last=False)
        return [known[key] for key in keys]

    def judge(self, frames: NDArray[np.uint8]) -> list[Explanation]:
        """`explanations`, worked out anew."""
        answers = self._lmm.generate(frames, [EXAM] * len(frames), max_tokens=MAX_WORDS)
        return [
            self._explanation(said[0], self._described(frame), scores)
            for frame, said, scores in zip(frames, answers, self._scores(frames), strict=True)
        ]

    def _described(self, frame: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Vectors of descriptions. Draws of one frame do not depend on those of frames beside it: each is asked for by itself."""
        said = self._lmm.generate(frame[None], [DESCRIBE[0]], _DESCRIPTIONS, 1.0, 1.0, MAX_WORDS, seed=_SEED)
        return self._encoder.encode(said[0])

    def _explanation(self, answer: str, own: NDArray[np.float32], scores: NDArray[np.float32]) -> Explanation:
        label = named_label(answer, self._classes)
        features = tuple((text, support(own, self._vectors[text], self._usual[text], self._tau)) for text in cited(answer, self._features))
        likeliest = self._classes[int(scores.argmax())]
        borne_out = bool(features) and float(np.mean([value for _, value in features])) > _AS_OTHERS
        return Explanation(answer=answer, label=label, features=features, scores=scores, accepted=label == likeliest and borne_out)

    def _scores(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        """softmax over the classes of log p("this is a CLASS." | picture), (n, C)."""
        count = len(self._classes)
        rows, names = np.repeat(np.arange(len(frames)), count), list(self._classes) * len(frames)
        texts = [f"this is {with_article(name)}." for name in names]
        log_p = self._lmm.log_likelihood(frames[rows], [SIMPLE[0]] * len(rows), texts).reshape(len(frames), count).astype(np.float64)
        share = np.exp(log_p - log_p.max(axis=1, keepdims=True))
        return (share / share.sum(axis=1, keepdims=True)).astype(np.float32)
