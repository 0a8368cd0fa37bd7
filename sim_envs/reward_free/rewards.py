"""Named rewards over stored transitions, and rewards from a user's own file.

A reward is a pure function of a transition, so that a buffer collected without rewards can be labelled afterwards:
`reward(observation (n, D), action (n, A), next_observation (n, D)) -> (n,)`. Observations are flat; which columns are what is a world's
`columns`. Actions are in [-1, 1].
"""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.errors import ArmstackError

Array = NDArray[Any]
Reward = Callable[[Array, Array, Array], Array]
Columns = Mapping[str, slice]


class RewardError(ArmstackError):
    """A reward that is not there, or that does not give one finite number a transition."""


def columns(widths: Mapping[str, int]) -> Columns:
    """Where each part of a flat observation lies: name -> slice, in the order of `widths`."""
    ends = np.cumsum(list(widths.values()))
    return {name: slice(int(end) - width, int(end)) for (name, width), end in zip(widths.items(), ends, strict=True)}


def find_reward(text: str, rewards: Mapping[str, Reward], *, say: Callable[[str], None] = print) -> Reward:
    """The reward that `text` names: one of `rewards`, or `FILE.py:NAME`, a function in a user's file.

    **A file is run as Python code, with all the rights of this process**; `say` is told its path and sha256 before it runs.

    Raises:
        RewardError: unknown name, no such file, a file that fails, or a name that is no function in it. Its results are checked at
            every call: one finite number a transition.
    """
    if ".py:" in text:
        file, _, name = text.rpartition(":")
        return _checked(_from_file(Path(file), name, say), text)
    if text not in rewards:
        raise RewardError(f"reward {text!r}, valid: {', '.join(sorted(rewards))}, or FILE.py:NAME for a function of your own")
    return rewards[text]


def _from_file(file: Path, name: str, say: Callable[[str], None]) -> Reward:
    if not file.is_file():
        raise RewardError(f"{file}: no such file; valid: FILE.py:NAME, a function in a Python file")
    source = file.read_bytes()
    sha256 = hashlib.sha256(source).hexdigest()
    say(f"reward {name}: runs the code of {file.resolve()} (sha256 {sha256})")
    module = ModuleType(f"user_rewards_{sha256}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module  # where dataclasses look for it
    try:
        exec(compile(source, str(file), "exec"), module.__dict__)  # the very bytes whose sha256 was told
    except Exception as error:
        raise RewardError(f"{file}: {type(error).__name__} while it was run: {error}") from error
    found = getattr(module, name, None)
    if not callable(found):
        functions = sorted(key for key, value in vars(module).items() if callable(value) and not key.startswith("_"))
        raise RewardError(f"{file}: {name!r} is {type(found).__name__}, valid: a function, one of {', '.join(functions) or '(none)'}")
    return found


def _checked(reward: Reward, text: str) -> Reward:
    def checked(observation: Array, action: Array, next_observation: Array) -> Array:
        try:
            values = np.asarray(reward(observation, action, next_observation))
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            raise RewardError(f"reward {text}: {type(error).__name__}: {error} ({place.filename}, line {place.lineno})") from error
        wanted = np.shape(next_observation)[:-1]
        if values.shape != wanted or values.dtype.kind not in "bif" or not np.isfinite(values).all():
            raise RewardError(f"reward {text}: {values.dtype} of shape {values.shape}, valid: finite numbers of shape {wanted}")
        return values.astype(np.float64)

    return checked
