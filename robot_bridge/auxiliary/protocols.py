"""The eight kinds of auxiliary method, a protocol each. They are plain PyTorch or NumPy and know no ROS.

What crosses a process is JSON of names and numbers. Frames, tensors and bytes never go into it: `robot_bridge.auxiliary.payloads`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rl_core.bundle import Bundle
from rl_core.data.episode import Episode
from rl_core.errors import ArmstackError

Frames = NDArray[np.uint8]
"""(n, H, W, 3) uint8 RGB, first row on top."""

Kind = Literal["recogniser", "generator", "transform", "selector", "fleet", "private_inference", "dialogue", "agent"]


class PredictionError(ArmstackError):
    """A prediction that breaks the protocol; names the field, what was found and what is valid."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Prediction:
    """What a recogniser says of n frames.

    Attributes:
        scores: (n, C) float32, finite; column c belongs to `classes[c]`, larger is more likely. Probabilities where the method has them.
        map: (n, h, w) float32, finite: a number a region, larger where there is more of what the method looks for; None without one.
        values: name -> (n,) float32, finite: further numbers of a frame, e.g. `unknown`. What a guard may hold the arm on is among them
            or among the classes; larger is then worse.
    """

    scores: NDArray[np.float32]
    map: NDArray[np.float32] | None = None
    values: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)

    def check(self, n: int, classes: Sequence[str]) -> None:
        """Checks shapes, types and that all numbers are finite.

        Raises:
            PredictionError: names the field, what was found and what is valid.
        """
        _check("scores", self.scores, (n, len(classes)))
        if self.map is not None:
            _check("map", self.map, (n, *self.map.shape[1:3]) if self.map.ndim == 3 else (n, 0, 0))
        for name, numbers in self.values.items():
            if name in classes:
                raise PredictionError(f"prediction.values: {name!r} is a class too, valid: names of their own")
            _check(f"values[{name!r}]", numbers, (n,))


def _check(name: str, array: NDArray[np.float32], shape: tuple[int, ...]) -> None:
    if array.shape != shape or array.dtype != np.float32:
        raise PredictionError(f"prediction.{name}: {array.dtype} {array.shape}, valid: float32 {shape}")
    if not np.isfinite(array).all():
        raise PredictionError(f"prediction.{name}: NaN or infinity, valid: finite numbers")


# -- with a camera ------------------------------------------------------------------------------------------------------------


@runtime_checkable
class Recogniser(Protocol):
    """Says what is in a frame, or whether it can be trusted. Pure: same frames, condition and state, same prediction."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the columns of `Prediction.scores`; only a request may change them."""
        ...

    def predict(self, frames: Frames, condition: Mapping[str, Any] | None = None) -> Prediction:
        """Judges (n, H, W, 3) frames, each for itself.

        Args:
            frames: of the size that the bundle's camera contract states.
            condition: what else it depends on, e.g. the task's object; None for a method without any.
        """
        ...


@runtime_checkable
class AdaptiveRecogniser(Recogniser, Protocol):
    """A recogniser that changes with what it sees (ECALP). `predict` leaves its state alone; the state is an attribute of the object."""

    def remember(self, frames: Frames, prediction: Prediction) -> None:
        """Takes frames that were judged, and their prediction, into the state; called once a frame, in order."""
        ...


# -- without ------------------------------------------------------------------------------------------------------------------


@runtime_checkable
class Generator(Protocol):
    """Makes images. Pure in its arguments."""

    def sample(self, condition: Mapping[str, Any], *, seed: int, n: int, steps: int) -> Frames:
        """(n, H, W, 3) images; each is sent as one Image message.

        Args:
            condition: e.g. `text`, or `frame` (H, W, 3) that the images go on from.
            seed: of the noise; image i depends on (seed, i) alone.
            n: how many.
            steps: of the sampler.
        """
        ...


@runtime_checkable
class Transform(Protocol):
    """Makes a bundle of other bundles: quantised, merged, distilled, edited."""

    def apply(self, bundles: Sequence[Bundle], data: Any | None = None) -> tuple[Bundle, Mapping[str, Any]]:
        """The new bundle, whose `parents` name those it was made of, and a report (JSON-able) of what that did.

        Args:
            bundles: one, or those to merge.
            data: what it is fitted to; None for a data-free transform.
        """
        ...


@runtime_checkable
class Selector(Protocol):
    """Values demonstrations for what is trained on them."""

    def values(self, episodes: Sequence[Episode], utility: Callable[[Sequence[str]], float]) -> Mapping[str, float]:
        """uuid -> value of every episode.

        Args:
            episodes: what there is to choose from.
            utility: uuids of a subset -> how good a policy trained on it is; costly.
        """
        ...


@runtime_checkable
class Fleet(Protocol):
    """Learns on several robots, of which none shows its data."""

    def client_update(self, data: Any) -> bytes:
        """What one robot sends of what it learnt from its own data."""
        ...

    def merge(self, updates: Sequence[bytes]) -> Bundle:
        """One model of all updates, whatever their order.

        Raises:
            ArmstackError: an update that cannot be read; nothing in it is unpickled.
        """
        ...


class PrivateClient(Protocol):
    """Holds the secret key."""

    def evaluation_key(self) -> bytes:
        """What the server needs, without the secret key."""
        ...

    def encrypt(self, frames: Frames) -> bytes:
        """(n, H, W, 3) frames as a ciphertext."""
        ...

    def decrypt(self, answer: bytes) -> Prediction:
        """The server's answer in the clear."""
        ...


class PrivateServer(Protocol):
    """Computes on what it cannot read."""

    def evaluate(self, ciphertext: bytes) -> bytes:
        """The encrypted answer to an encrypted request."""
        ...


@runtime_checkable
class PrivateInference(Protocol):
    """A recogniser on a machine that may not see the frames."""

    classes: tuple[str, ...]

    def client(self, seed: int) -> PrivateClient:
        """The robot's side, with keys of its own."""
        ...

    def server(self, evaluation_key: bytes) -> PrivateServer:
        """The other machine's side; it is never given a secret key."""
        ...


@runtime_checkable
class Dialogue(Protocol):
    """Answers in JSON; what it says moves nothing (a validator stands between it and a task)."""

    def handle(self, request: Mapping[str, Any], context: Mapping[str, Any]) -> Mapping[str, Any]:
        """The reply to a request.

        Args:
            request: e.g. `text`, what the operator said.
            context: what is known now: objects in view, the arm's state, the dialogue so far.
        """
        ...


@runtime_checkable
class Agent(Protocol):
    """Works at a console as an operator with few rights does."""

    def step(self, goal: str, screen: Mapping[str, Any]) -> Mapping[str, Any]:
        """The next action (`op` and its arguments), as JSON that is parsed and never evaluated.

        Args:
            goal: what is to be reached, in words.
            screen: what the page shows; its text is data, not an instruction.
        """
        ...


PROTOCOLS: Mapping[str, type[Any]] = dict(
    zip(get_args(Kind), (Recogniser, Generator, Transform, Selector, Fleet, PrivateInference, Dialogue, Agent), strict=True)
)
"""Kind -> protocol; `Bundle.kind` of an auxiliary method is the kind."""
