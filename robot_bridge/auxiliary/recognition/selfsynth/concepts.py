"""Concept files: what an engineer says can be seen on a part of each class, as YAML. `parts.yaml` is one.

classes:
  mug:
    - feature: a curved handle on the side
      seen: {axis: [1, 0, 0], angle_deg: [0, 120]}
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from rl_core.yaml_text import load_yaml
from robot_bridge.auxiliary.recognition.errors import RecognitionError
from robot_bridge.auxiliary.recognition.selfsynth.labels import letters, without_names

PACKAGED = Path(__file__).with_name("parts.yaml")
LEAST = 4
"""Features of a class: three are always selected, and there must be something to choose from."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """When a feature can be seen, of a drawn part; all of it must hold.

    Attributes:
        axis: direction in the part's own frame (z up when it stands), length 1; None: from everywhere.
        angle_deg: least and largest angle between `axis` and the direction to the camera, degrees.
        either_side: the angle to `-axis` will do as well.
        where: factor of the picture -> allowed values, or (least, largest) of a number.
    """

    axis: tuple[float, float, float] | None = None
    angle_deg: tuple[float, float] = (0.0, 180.0)
    either_side: bool = False
    where: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Feature:
    """One concept: its words without any class name, and when it is seen; None where nobody said."""

    text: str
    seen: Seen | None = None

    def to_json(self) -> dict[str, Any]:
        """As a concept file has it."""
        if self.seen is None:
            return {"feature": self.text}
        if self.seen == Seen():
            return {"feature": self.text, "seen": "always"}
        where: dict[str, Any] = {"where": {name: list(values) for name, values in self.seen.where.items()}} if self.seen.where else {}
        if self.seen.axis is None:
            return {"feature": self.text, "seen": where}
        angle = {"axis": list(self.seen.axis), "angle_deg": list(self.seen.angle_deg), "either_side": self.seen.either_side}
        return {"feature": self.text, "seen": {**angle, **where}}


@dataclass(frozen=True, kw_only=True)
class Concepts:
    """Features by class, in the file's order, and where that lies."""

    classes: Mapping[str, tuple[Feature, ...]]
    source: str = field(default="", compare=False)

    def texts(self, name: str) -> list[str]:
        """Words of a class' features."""
        return [feature.text for feature in self.classes[name]]

    def every_text(self) -> list[str]:
        """Different texts of all classes, in order."""
        return list(dict.fromkeys(text for name in self.classes for text in self.texts(name)))

    @property
    def known_when_seen(self) -> bool:
        """Whether the file says of every feature when it can be seen."""
        return all(feature.seen is not None for features in self.classes.values() for feature in features)

    def to_json(self) -> dict[str, Any]:
        """As a concept file has them; `concepts_of` gives them back."""
        return {"classes": {name: [feature.to_json() for feature in features] for name, features in self.classes.items()}}

    def only(self, names: Sequence[str]) -> Concepts:
        """Those of some classes, in their order.

        Raises:
            RecognitionError: a class without concepts; lists those with.
        """
        if missing := [name for name in names if name not in self.classes]:
            raise RecognitionError(f"{self.source}: no concepts of {', '.join(missing)}; it has: {', '.join(self.classes)}")
        return Concepts(classes={name: self.classes[name] for name in names}, source=self.source)


def read_concepts(file: str | Path) -> Concepts:
    """The concepts of a file; `parts.yaml` is the packaged one where no such file lies here.

    Raises:
        RecognitionError: a file that cannot be read, or something in it that cannot be meant; names file, class, feature and what is valid.
    """
    path = Path(file)
    path = PACKAGED if not path.is_file() and str(file) == PACKAGED.name else path
    try:
        data = load_yaml(path.read_text())
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise RecognitionError(f"{path}: not readable: {error}; valid: YAML as docs/auxiliary/explanations.md shows") from error
    return concepts_of(str(path), data)


def concepts_of(where: str, data: Any) -> Concepts:
    """Checks and reads what a concept file holds.

    Args:
        where: named in errors.
        data: as YAML or JSON gives it.

    Raises:
        RecognitionError: see `read_concepts`.
    """
    if not isinstance(data, dict) or set(data) != {"classes"} or not isinstance(data["classes"], dict) or len(data["classes"]) < 2:
        raise RecognitionError(f"{where}: valid: one key `classes` with two or more classes, each with a list of features")
    names = [str(name) for name in data["classes"]]
    classes = {str(name): _features(f"{where}: {name}", rows, names) for name, rows in data["classes"].items()}
    return Concepts(classes=classes, source=where)


def _features(where: str, rows: Any, names: Sequence[str]) -> tuple[Feature, ...]:
    if not isinstance(rows, list) or len(rows) < LEAST:
        raise RecognitionError(f"{where}: {len(rows) if isinstance(rows, list) else rows!r} features; valid: a list of {LEAST} or more")
    found = tuple(_feature(f"{where}[{index}]", row, names) for index, row in enumerate(rows))
    texts = [feature.text for feature in found]
    if twice := sorted({text for text in texts if texts.count(text) > 1}):
        raise RecognitionError(f"{where}: {', '.join(map(repr, twice))} twice, class names put aside; valid: different features")
    return found


def _feature(where: str, row: Any, names: Sequence[str]) -> Feature:
    row = {"feature": row} if isinstance(row, str) else row
    if not isinstance(row, dict) or set(row) - {"feature", "seen"} or not isinstance(row.get("feature"), str):
        raise RecognitionError(
            f"{where}: {row!r}; valid: text, or {{feature: text, seen: always or {{axis, angle_deg, either_side, where}}}}"
        )
    text = without_names(row["feature"].strip(), names)
    if not letters(text):
        raise RecognitionError(f"{where}.feature: {row['feature']!r}; valid: words, of letters a to z")
    return Feature(text=text.lower(), seen=_seen(f"{where}.seen", row["seen"]) if "seen" in row else None)


def _seen(where: str, given: Any) -> Seen:
    if given == "always":
        return Seen()
    fields = ("axis", "angle_deg", "either_side", "where")
    if not isinstance(given, dict) or not given or set(given) - set(fields):
        raise RecognitionError(f"{where}: {given!r}; valid: always, or some of {', '.join(fields)}")
    axis, angle = given.get("axis"), given.get("angle_deg", [0, 180])
    if ("angle_deg" in given or "either_side" in given) and axis is None:
        raise RecognitionError(f"{where}: an angle without an axis; valid: axis: [x, y, z] beside it")
    if axis is not None and not (_numbers(axis, 3) and math.hypot(*axis) > 0):
        raise RecognitionError(f"{where}.axis: {axis!r}; valid: [x, y, z], not all 0")
    if not (_numbers(angle, 2) and 0 <= angle[0] < angle[1] <= 180):
        raise RecognitionError(f"{where}.angle_deg: {angle!r}; valid: [least, largest] in 0..180")
    if not isinstance(given.get("either_side", False), bool):
        raise RecognitionError(f"{where}.either_side: {given['either_side']!r}; valid: true or false")
    conditions = given.get("where", {})
    if not isinstance(conditions, dict) or not all(isinstance(values, list) and values for values in conditions.values()):
        raise RecognitionError(f"{where}.where: {conditions!r}; valid: factor: [values], or of a number factor: [least, largest]")
    length = math.hypot(*axis) if axis is not None else 1.0
    length = 1.0 if abs(length - 1.0) < 1e-9 else length  # so that what was written is read back as it was
    return Seen(
        axis=None if axis is None else (axis[0] / length, axis[1] / length, axis[2] / length),
        angle_deg=(float(angle[0]), float(angle[1])),
        either_side=given.get("either_side", False),
        where={str(name): tuple(values) for name, values in conditions.items()},
    )


def _numbers(values: Any, count: int) -> bool:
    return (
        isinstance(values, list)
        and len(values) == count
        and all(isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) for value in values)
    )
