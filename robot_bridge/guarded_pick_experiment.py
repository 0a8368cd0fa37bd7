"""Parts fed to a guarded arm, over ROS 2: which are sorted, which are held in front of, and which the hand touches all the same."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.bundle import Bundle
from rl_core.data.atomic import write_atomically
from rl_core.training.evaluation import evaluation_seeds
from robot_bridge.auxiliary.method import AuxiliaryMethod
from robot_bridge.auxiliary.monitoring import local_prompt
from robot_bridge.auxiliary.protocols import Frames, Prediction, Recogniser
from robot_bridge.launch_file import read_launch_file
from robot_bridge.launch_places import find_launch_file
from robot_bridge.launch_runner import Launch
from robot_bridge.ros_evaluation import GraphObserver, own_domain
from sim_envs.arm.tasks.sort import BINS
from sim_envs.arm.world import ArmWorld
from sim_envs.parts.catalogue import NAMES
from sim_envs.parts.station import Feed, fed

LAUNCH_FILE = "guarded_pick"
MOVED = 0.002
"""Metres by which a part that was touched has moved."""
NEAR = 0.04
"""Distance of the hand from a part's middle at which the fingers are around it, metres."""
_LINES_KEPT = 40


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What became of one part.

    Attributes:
        seed: of the episode.
        part: its class.
        bin: where it belongs; empty for a foreign part.
        said: class that the sorter decided for; empty where it did not decide.
        sorted: whether it lay in its bin in the end.
        touched: whether it moved, or the hand was around it.
        held: whether the guard held the arm when the episode ended.
    """

    seed: int
    part: str
    bin: str
    said: str
    sorted: bool
    touched: bool
    held: bool


class PartsGraph(GraphObserver):
    """Asks for episodes and watches hand, part, guard and sorter."""

    def __init__(self, domain: int, launch: Launch, lines: deque[str]) -> None:
        from diagnostic_msgs.msg import DiagnosticArray
        from geometry_msgs.msg import PoseStamped
        from std_msgs.msg import String

        from robot_bridge.nodes.qos import EVENTS, STREAM, subscribe

        super().__init__(domain, launch, lines)
        self._watching = threading.Lock()
        self._begin_ns = 0
        self._places: dict[str, list[tuple[int, NDArray[np.float64]]]] = {"hand": [], "part": []}
        self._holds: dict[str, str] = {}
        self._decisions: dict[int, str] = {}
        subscribe(self.node, PoseStamped, "ee_pose", lambda message: self._place_came("hand", message), STREAM)
        subscribe(self.node, PoseStamped, "objects/part/pose", lambda message: self._place_came("part", message), STREAM)
        subscribe(self.node, DiagnosticArray, "arm/status", self._status_came, STREAM)
        subscribe(self.node, String, "sorting/decision", self._decision_came, EVENTS)

    def _place_came(self, what: str, message: Any) -> None:
        from robot_bridge.nodes.messages import pose_arrays
        from robot_bridge.nodes.stamps import to_ns

        with self._watching:
            self._places[what].append((to_ns(message.header.stamp), pose_arrays(message, what=what)[0]))

    def _status_came(self, message: Any) -> None:
        values = {pair.key: pair.value for pair in message.status[0].values}
        self._holds = json.loads(values["holds"])

    def _decision_came(self, message: Any) -> None:
        told = json.loads(message.data)
        self._decisions[int(told["episode"])] = str(told["class"])

    def play(self, feed: Feed, seed: int) -> Trial:
        """Plays the episode of `seed`."""
        with self._watching:
            for places in self._places.values():
                places.clear()
        index = self.begin(seed)
        success = bool(self.finish(index, seed).success)
        begin_ns, held = int(self._episode["stamp_ns"]), "guard" in self._holds
        with self._watching:
            hand, part = ({stamp: at for stamp, at in self._places[name] if stamp >= begin_ns} for name in ("hand", "part"))
        together = sorted(hand.keys() & part.keys())
        place, name = what_is_fed(feed, seed)
        return Trial(
            seed=seed, part=name, bin=place, said=self._decisions.get(index, ""), sorted=success, held=held,
            touched=was_touched(np.array([hand[stamp] for stamp in together]), np.array([part[stamp] for stamp in together])),
        )  # fmt: skip


def was_touched(hand: NDArray[np.float64], part: NDArray[np.float64]) -> bool:
    """Whether the hand (T, 3) was at the part (T, 3), or moved it; metres, the start first."""
    moved = np.linalg.norm(part - part[0], axis=1).max() > MOVED
    return bool(moved or np.linalg.norm(hand - part, axis=1).min() < NEAR)


def what_is_fed(feed: Feed, seed: int) -> tuple[str, str]:
    """Bin (empty for a foreign part) and class of the part of an episode."""
    world = ArmWorld("sort")
    world.reset(seed)
    at = world.object_pos("bin")
    place = next(name for name, middle in BINS.items() if np.allclose(middle, at[:2]))
    return "" if feed == "foreign" else place, NAMES[fed(feed, seed, place).label]


def run(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """Feeds parts to the guarded arm.

    Args:
        config: `feed`, `episodes`, `horizon` (policy steps of each), `policy`, `classifier` and `guard` (folders of bundles),
            `classifier_method`, `guard_method`, and optionally `hold_on`, the numbers that it holds on.
        seed: of the episodes.
        run_dir: where it works.
    """
    arguments = {
        "bundle": config["policy"],
        "classifier": config["classifier_method"],
        "classifier_bundle": config["classifier"],
        "guard": config["guard_method"],
        "guard_bundle": config["guard"],
        "feed": config["feed"],
        "episodes": "on_request",
        "horizon": str(config["horizon"]),
        "record": "true",
        "record_folder": str(run_dir / "bag"),
        **({"hold_on": config["hold_on"]} if "hold_on" in config else {}),
    }
    run_dir.mkdir(parents=True, exist_ok=True)
    lines: deque[str] = deque(maxlen=_LINES_KEPT)
    with own_domain() as (env, domain):
        launch = Launch(read_launch_file(find_launch_file(LAUNCH_FILE), arguments), env=env, emit=lines.append)
        with launch, PartsGraph(domain, launch, lines) as graph:
            graph.wait_until_ready(recorded=True)
            trials = []
            for number, each in enumerate(evaluation_seeds(seed, config["episodes"]), start=1):
                print(f"part {number} of {config['episodes']}", flush=True)
                trials.append(graph.play(config["feed"], each))
    with write_atomically(run_dir / "trials.json") as opened:
        opened.write(json.dumps([asdict(trial) for trial in trials], indent=1).encode())
    return summary(trials)


def summary(trials: Sequence[Trial]) -> dict[str, Any]:
    """Figures: counts of `parts`, `sorted`, `touched`, `held`, `held_untouched` (held in front of), and `rightly_named` by the sorter."""
    return {
        "parts": len(trials),
        "sorted": sum(trial.sorted for trial in trials),
        "touched": sum(trial.touched for trial in trials),
        "held": sum(trial.held for trial in trials),
        "held_untouched": sum(trial.held and not trial.touched for trial in trials),
        "rightly_named": sum(trial.said == trial.part for trial in trials),
    }


class ByLot:
    """A guard whose verdicts have nothing to do with the pictures, half of them `unknown`: what a real one has to beat."""

    def __init__(self, guard: Recogniser) -> None:
        self._guard, self._rng = guard, np.random.default_rng(0)

    @property
    def classes(self) -> tuple[str, ...]:
        return self._guard.classes

    def predict(self, frames: Frames, condition: Mapping[str, Any] | None = None) -> Prediction:
        """The guard's scores, and a verdict by lot."""
        real = self._guard.predict(frames, condition)
        lots = self._rng.integers(2, size=len(frames)).astype(np.float32)
        return Prediction(scores=real.scores, map=real.map, values={**real.values, "unknown": lots})


def load_by_lot(bundle: Bundle) -> ByLot:
    """A Local-Prompt bundle with verdicts by lot."""
    return ByLot(local_prompt.load(bundle))


BY_LOT = AuxiliaryMethod(
    name="local-prompt",
    family="monitoring",
    kind="recogniser",
    summary="Local-Prompt with verdicts by lot",
    config="robot_bridge.auxiliary.monitoring.local_prompt:LocalPromptConfig",
    load="robot_bridge.guarded_pick_experiment:load_by_lot",
    evaluate="robot_bridge.auxiliary.monitoring.guard_evaluation:evaluate",
    needs=("camera", "vlm"),
)
"""The row of `ByLot`."""
