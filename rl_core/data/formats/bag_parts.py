"""Who commanded: an episode in which a person took a policy's place is recorded as one episode for each part.

A part is what one sender commanded without another's command in between; it has an observation of its own after its last action, so no
step reaches across a take-over. `meta` of every part says

    source                    `policy`, `teleop`, ...; also of an episode that has one part only
    part                      0, 1, ...: place in the run; left out where there is one part
    correction, parent        of what a teleoperator commanded after a policy: true, and the uuid of the policy's part before it

Success is known of the run. It is said of its last part and of corrections; whether a policy would have succeeded whose place was taken
is not known.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from rl_core.data.episode import Episode

POLICY, TELEOP = "policy", "teleop"
CORRECTION, PARENT = "correction", "parent"


def by_source(sources: Sequence[str]) -> list[tuple[str, int, int]]:
    """Source, first step and the one after the last, of every part of a run whose steps have `sources`."""
    places = [(source, [index for index, _ in steps]) for source, steps in groupby(enumerate(sources), key=lambda step: step[1])]
    return [(source, indices[0], indices[-1] + 1) for source, indices in places]


def as_parts(parts: Sequence[tuple[str, Episode]]) -> list[Episode]:
    """The parts of one run, told apart in their `meta`; see the module."""
    told: list[Episode] = []
    policy: Episode | None = None
    for place, (source, episode) in enumerate(parts):
        last = place == len(parts) - 1
        facts: dict[str, Any] = {"source": source} if source else {}
        if len(parts) > 1:
            facts["part"] = place
        corrects = source == TELEOP and policy is not None
        if corrects and policy is not None:
            facts |= {CORRECTION: True, PARENT: policy.uuid}
        told.append(
            dataclasses.replace(
                episode,
                terminal=episode.terminal and last,
                truncated=episode.truncated or not last,
                success=episode.success if last or corrects else None,
                meta={**episode.meta, **facts},
            )
        )
        policy = episode if source == POLICY else policy
    return told
