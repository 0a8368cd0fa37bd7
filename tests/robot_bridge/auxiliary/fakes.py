"""One small method of each kind, as plain as its protocol allows, with its row of the registry."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rl_core.bundle import Bundle
from rl_core.data.episode import Episode
from rl_core.errors import ArmstackError
from rl_core.training.config import Config
from robot_bridge.auxiliary.bundles import image_channel, recogniser_bundle, recognition_of
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.method import AuxiliaryMethod
from robot_bridge.auxiliary.protocols import Frames, Prediction
from robot_bridge.auxiliary.requests import Argument, Request

HERE = "tests.robot_bridge.auxiliary.fakes"
SIDE = 16


@dataclass(frozen=True, kw_only=True)
class BrightnessConfig(Config):
    """Settings of the fake recogniser."""

    slope: float = 8.0
    """Of the logistic curve."""


class Brightness:
    """dark or bright: a logistic of the mean pixel; `dark_part` is what a guard may hold on. A state: shots that move the limit."""

    def __init__(self, classes: tuple[str, ...], limit: float, slope: float) -> None:
        self.classes, self.slope = classes, slope
        self.first = self.limit = torch.tensor(limit)
        self.seen = 0
        self.wait: Callable[[], object] = lambda: None
        """Called with every frame judged (tests put a blocking one here)."""

    def predict(self, frames: Frames, condition: Mapping[str, Any] | None = None) -> Prediction:
        self.wait()
        grey = torch.from_numpy(frames).float().mean(-1) / 255
        bright = torch.sigmoid(self.slope * (grey.mean((1, 2)) - self.limit))
        if condition is not None and condition.get("object") == "anything":
            bright = torch.ones_like(bright)
        scores = torch.stack([1 - bright, bright], dim=1)
        return Prediction(
            scores=scores.numpy(),
            map=grey[:, ::4, ::4].numpy(),
            values={"dark_part": (grey < 0.5).float().mean((1, 2)).numpy()},
        )

    def remember(self, frames: Frames, prediction: Prediction) -> None:
        self.seen += len(frames)

    def add_shot(self, frame: NDArray[np.uint8], label: str) -> dict[str, Any]:
        """A frame that is at the limit from now on."""
        if label not in self.classes:
            raise ArmstackError(f"label {label!r}")
        self.limit = torch.tensor(float(frame.mean()) / 255)
        return {"limit": float(self.limit), "seen": self.seen}

    def reset(self) -> None:
        self.limit, self.seen = self.first, 0

    def fail(self) -> None:
        raise RuntimeError("a bug")

    def picture(self) -> Frames:
        return np.stack([np.full((4, 4, 3), value, np.uint8) for value in (1, 2)])

    def echo(self, data: bytes) -> bytes:
        return data[::-1]


def train(data: ImageData, config: BrightnessConfig, run_dir: Path, *, seed: int, say: Callable[[str], None]) -> Bundle:
    grey = data.frames.mean((1, 2, 3)) / 255
    limit = (grey[data.labels == 0].mean() + grey[data.labels == 1].mean()) / 2
    say(f"limit {limit:.3f}")
    return recogniser_bundle(
        "brightness",
        config,
        {"limit": torch.tensor([limit], dtype=torch.float32)},
        classes=data.classes,
        camera=image_channel(data.frames.shape),
        calibration={"threshold": 0.5},
    )


def load(bundle: Bundle) -> Brightness:
    made_for = recognition_of(bundle)
    return Brightness(made_for.classes, float(bundle.weights["limit"]), made_for.config(BrightnessConfig).slope)


def load_a_mapping(bundle: Bundle) -> dict[str, Any]:
    """What no method may do."""
    return dict(bundle.weights)


def evaluate(recogniser: Brightness, data: ImageData) -> dict[str, float]:
    return {"accuracy": float((recogniser.predict(data.frames).scores.argmax(1) == data.labels).mean())}


def make(out: Path, *, count: int = 8, bright: tuple[int, ...] = (200, 250), say: Callable[[str], None] = print) -> dict[str, Any]:
    """Grey pictures, dark ones and bright ones.

    Args:
        out: folder to write to.
        count: pictures a class.
        bright: least and largest pixel of bright ones.
        say: progress.
    """
    from robot_bridge.auxiliary.image_files import write_header, write_shard

    data = grey_data(count, bright)
    for split in ("train", "test"):
        write_header(out / split, data.classes, {"count": count})
        write_shard(data, out / split / "0.npz")
        say(split)
    return {"pictures": len(data)}


def grey_data(count: int = 8, bright: tuple[int, ...] = (200, 250)) -> ImageData:
    generator = np.random.default_rng(0)
    levels = np.concatenate([generator.integers(0, 60, count), generator.integers(*bright, count)])
    frames = np.broadcast_to(levels[:, None, None, None], (2 * count, SIDE, SIDE, 3)).astype(np.uint8)
    labels = np.repeat(np.arange(2), count)
    return ImageData(frames=frames, labels=labels, classes=("dark", "bright"), instances=np.arange(2 * count))


BRIGHTNESS = AuxiliaryMethod(
    name="brightness",
    family="recognition",
    kind="recogniser",
    summary="dark or bright",
    config=f"{HERE}:BrightnessConfig",
    train=f"{HERE}:train",
    load=f"{HERE}:load",
    evaluate=f"{HERE}:evaluate",
    make_data=f"{HERE}:make",
    needs=("camera", "dataset"),
    requests={
        "add_shot": Request(
            about="a frame that is at the limit from now on",
            arguments={"frame": Argument(kind="frame", about="which"), "label": Argument(kind="label", about="what it is")},
        ),
        "reset": Request(about="forget all shots"),
        "fail": Request(about="raise"),
        "picture": Request(about="two pictures"),
        "echo": Request(about="bytes in reverse", arguments={"data": Argument(kind="bytes", about="any")}),
    },
)


class Noise:
    """Generator: image i is noise of (seed, i), brighter with more steps."""

    def sample(self, condition: Mapping[str, Any], *, seed: int, n: int, steps: int) -> Frames:
        level = np.float64(condition.get("level", 100)) + steps
        pictures = [np.random.default_rng((seed, i)).normal(level, 10.0, (8, 8, 3)) for i in range(n)]
        return np.clip(np.stack(pictures), 0, 255).astype(np.uint8)


class Average:
    """Transform: the mean of the weights."""

    def apply(self, bundles: Sequence[Bundle], data: Any | None = None) -> tuple[Bundle, Mapping[str, Any]]:
        names = bundles[0].weights
        mean = {name: torch.stack([bundle.weights[name] for bundle in bundles]).mean(0) for name in names}
        parents = tuple(hashlib.sha256(str(sorted(bundle.config.items())).encode()).hexdigest() for bundle in bundles)
        return replace(bundles[0], weights=mean, parents=parents), {"merged": len(bundles)}


def merge(
    data: None, config: BrightnessConfig, run_dir: Path, *, seed: int, say: Callable[[str], None], parents: Sequence[Bundle]
) -> Bundle:
    """What a transform's row names under `train`."""
    bundle, report = Average().apply(parents)
    return replace(bundle, kind="transform", method="average", metrics=report)


def load_average(bundle: Bundle) -> Average:
    return Average()


class LeaveOneOut:
    """Selector: how much worse the policy is without the episode."""

    def values(self, episodes: Sequence[Episode], utility: Callable[[Sequence[str]], float]) -> Mapping[str, float]:
        names = [episode.uuid for episode in episodes]
        return {name: utility(names) - utility([other for other in names if other != name]) for name in names}


class Votes:
    """Fleet: counts of labels, added up."""

    def client_update(self, data: Any) -> bytes:
        return json.dumps(np.bincount(data, minlength=3).tolist()).encode()

    def merge(self, updates: Sequence[bytes]) -> Bundle:
        try:
            counts = np.sum([json.loads(update) for update in updates], axis=0)
        except ValueError as error:
            raise ArmstackError(f"an update that cannot be read: {error}") from error
        return Bundle(kind="fleet", method="votes", config={}, weights={"counts": torch.from_numpy(counts)})


@dataclass(frozen=True)
class OneTimePad:
    """Private inference on a sum of pixels: the server adds what it cannot read (a pad of the client's, modulo 2^32)."""

    classes: tuple[str, ...] = ("dark", "bright")

    def client(self, seed: int) -> PadClient:
        return PadClient(seed)

    def server(self, evaluation_key: bytes) -> PadServer:
        return PadServer(evaluation_key)


class PadClient:
    def __init__(self, seed: int) -> None:
        self.secret = np.random.default_rng(seed).integers(0, 2**32, 64, dtype=np.uint32)

    def evaluation_key(self) -> bytes:
        return b"add"

    def encrypt(self, frames: Frames) -> bytes:
        return (frames.mean(-1).reshape(-1)[:64].astype(np.uint32) + self.secret).tobytes()

    def decrypt(self, answer: bytes) -> Prediction:
        total = np.frombuffer(answer, np.uint32) - np.add.reduce(self.secret, dtype=np.uint32, keepdims=True)
        bright = np.float32(total[0] / (64 * 255))
        return Prediction(scores=np.array([[1 - bright, bright]], np.float32))


class PadServer:
    def __init__(self, evaluation_key: bytes) -> None:
        self.key = evaluation_key

    def evaluate(self, ciphertext: bytes) -> bytes:
        return np.add.reduce(np.frombuffer(ciphertext, np.uint32), dtype=np.uint32).tobytes()


class Echo:
    """Dialogue: asks back, or repeats what it was told."""

    def handle(self, request: Mapping[str, Any], context: Mapping[str, Any]) -> Mapping[str, Any]:
        known = request.get("text") in context.get("objects", ())
        return {"say": f"{request['text']}, understood" if known else "which one?", "task": None}


class Clicker:
    """Agent: clicks the control whose name is in the goal, else is done."""

    def step(self, goal: str, screen: Mapping[str, Any]) -> Mapping[str, Any]:
        return next(({"op": "click", "id": item["id"]} for item in screen["controls"] if item["name"] in goal), {"op": "done"})


def load_other(bundle: Bundle) -> Any:
    """The fake of the bundle's kind."""
    return {"generator": Noise, "dialogue": Echo, "agent": Clicker}[bundle.kind]()


def other_row(kind: Any) -> AuxiliaryMethod:
    return AuxiliaryMethod(
        name=f"fake-{kind}",
        family="operator",
        kind=kind,
        summary="a fake",
        config=f"{HERE}:BrightnessConfig",
        load=f"{HERE}:load_other",
        evaluate=f"{HERE}:evaluate",
    )


def small_bundle(folder: Path, **config: Any) -> Path:
    """A bundle of the fake recogniser on disk."""
    made = train(grey_data(), BrightnessConfig(**config), folder, seed=0, say=lambda text: None)
    return made.save(folder)


class Gate:
    """Blocks whoever passes until it is opened."""

    def __init__(self) -> None:
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.open.wait(20.0)
