"""Which sample of a channel belongs to an observation: the channels of a robot come at rates and times of their own.

For an observation at time t and a channel with age bound b:

    hold    the newest sample with stamp <= t. One older than b is kept and counted as stale.
    as_of   the sample nearest to t, before or after it (the earlier of two equally near). Without one within b the step is dropped.
    drop    the newest sample with stamp <= t. Without one that is at most b old the step is dropped.

`hold` is what a policy sees that acts on the newest it has; `drop` is that without steps it should not have acted in; `as_of` may look
ahead by up to b. Where no sample has come yet, the step is dropped in any case. An age is t minus the sample's stamp, so it is
negative where `as_of` looked ahead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Alignment = Literal["hold", "as_of", "drop"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Aligned:
    """Of each of T observations.

    Attributes:
        index: (T,) which sample; 0 where there is none.
        age_ns: (T,) int64, the sample's age.
        usable: (T,) whether the step may be kept.
        stale: (T,) whether the sample is older (`as_of`: further away) than the bound, or not there.
    """

    index: NDArray[np.intp]
    age_ns: NDArray[np.int64]
    usable: NDArray[np.bool_]
    stale: NDArray[np.bool_]


def align(times_ns: NDArray[np.int64], stamps_ns: NDArray[np.int64], how: Alignment, bound_ns: int) -> Aligned:
    """Finds a sample for each observation.

    Args:
        times_ns: (T,) int64 stamps of the observations.
        stamps_ns: (N,) int64 stamps of the samples, ascending.
        how: see the module.
        bound_ns: age bound.
    """
    if not len(stamps_ns):
        nothing = np.zeros(len(times_ns), np.int64)
        return Aligned(index=nothing.astype(np.intp), age_ns=nothing, usable=nothing.astype(bool), stale=~nothing.astype(bool))
    before = np.searchsorted(stamps_ns, times_ns, side="right") - 1
    index = np.maximum(before, 0)
    if how == "as_of":
        after = np.minimum(before + 1, len(stamps_ns) - 1)
        index = np.where(np.abs(stamps_ns[after] - times_ns) < np.abs(times_ns - stamps_ns[index]), after, index)
    ages = times_ns - stamps_ns[index]
    there = np.ones(len(times_ns), bool) if how == "as_of" else before >= 0
    stale = ~there | (np.abs(ages) > bound_ns)
    return Aligned(index=index, age_ns=ages, usable=there if how == "hold" else ~stale, stale=stale)
