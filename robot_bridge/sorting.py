"""What belongs in which bin: a YAML file that people edit.

left:
  position: [0.5, 0.21, -0.112]   # metres, frame base
  classes: [mug, hex nut]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import yaml

from rl_core.errors import ArmstackError
from rl_core.yaml_text import load_yaml


class BinsError(ArmstackError):
    """A file of bins that cannot be used; names the file, the field, what was found and what is valid."""


@dataclass(frozen=True, kw_only=True)
class Bin:
    """A bin.

    Attributes:
        name: as the file calls it.
        position: of its middle, metres in frame base.
        classes: names of what belongs there, as the recogniser says them.
    """

    name: str
    position: tuple[float, float, float]
    classes: tuple[str, ...]


def read_bins(path: str | Path) -> tuple[Bin, ...]:
    """The bins of a file.

    Raises:
        BinsError: see there; also for a class that is in two bins.
    """
    try:
        told = load_yaml(Path(path).read_text())
    except (OSError, yaml.YAMLError) as error:
        raise BinsError(f"bins {str(path)!r}: {error}; valid: a YAML file, as launch/config/sorting.yaml") from error
    if not isinstance(told, dict) or not told:
        raise BinsError(f"{path}: {told!r}, valid: a mapping, name of a bin -> position, classes")
    bins = tuple(_bin(path, str(name), fields) for name, fields in told.items())
    seen: dict[str, str] = {}
    for each in bins:
        for name in each.classes:
            if name in seen:
                raise BinsError(f"{path}: {each.name}.classes: {name!r} is in {seen[name]} too, valid: one bin for each class")
            seen[name] = each.name
    return bins


def _bin(path: str | Path, name: str, fields: object) -> Bin:
    if not isinstance(fields, dict) or set(fields) != {"position", "classes"}:
        raise BinsError(f"{path}: {name}: {fields!r}, valid: position and classes")
    position, classes = fields["position"], fields["classes"]
    numbers = position if isinstance(position, list) else []
    if len(numbers) != 3 or not all(type(value) in (int, float) and math.isfinite(value) for value in numbers):
        raise BinsError(f"{path}: {name}.position: {position!r}, valid: three finite numbers, metres in frame base")
    if not isinstance(classes, list) or not classes or not all(isinstance(each, str) for each in classes):
        raise BinsError(f"{path}: {name}.classes: {classes!r}, valid: a list of names")
    return Bin(name=name, position=(float(numbers[0]), float(numbers[1]), float(numbers[2])), classes=tuple(classes))
