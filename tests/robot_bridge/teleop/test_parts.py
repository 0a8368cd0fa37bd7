"""Who commanded: a run in parts, and what may be chosen of it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rl_core.data.editing import filter_episodes
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.formats.bag_episodes import EpisodeStream
from rl_core.data.formats.bag_parts import as_parts, by_source
from rl_core.data.formats.bag_splitting import RawEpisode
from robot_bridge.nodes.episode_requests import End, Reset, ended, episode_request
from robot_bridge.nodes.json_requests import RequestError
from sim_envs.arm.observation import world_contract


def episode(uuid: str) -> Episode:
    zeros = np.zeros((3, 7), np.float32)
    return Episode(
        observations={}, actions=zeros, rewards=zeros[:, 0], terminal=True, truncated=False, stamps_ns=np.arange(4), success=True, uuid=uuid
    )


def test_a_take_over_begins_a_part_and_so_does_the_hand_back() -> None:
    assert by_source(["policy", "policy", "teleop", "policy"]) == [("policy", 0, 2), ("teleop", 2, 3), ("policy", 3, 4)]
    assert by_source([]) == []


def test_corrections_are_what_a_person_did_after_a_policy() -> None:
    sources = ("teleop", "policy", "teleop", "policy", "teleop")
    parts = as_parts([(source, episode(str(place))) for place, source in enumerate(sources)])
    assert [part.meta["source"] for part in parts] == list(sources) and [part.meta["part"] for part in parts] == [0, 1, 2, 3, 4]
    assert [part.meta.get("parent") for part in parts] == [None, None, "1", None, "3"]
    assert [part.meta.get("correction") for part in parts] == [None, None, True, None, True]
    assert [part.success for part in parts] == [None, None, True, None, True]
    assert [(part.terminal, part.truncated) for part in parts] == [(False, True)] * 4 + [(True, False)]
    dataset = Dataset(contract=world_contract("reach"), episodes=tuple(parts))
    assert [part.uuid for part in filter_episodes(dataset, corrections=True).episodes] == ["2", "4"]
    with pytest.raises(DatasetError, match="no episode of 1 fulfils {'corrections': True}"):
        filter_episodes(dataclasses.replace(dataset, episodes=(parts[0],)), corrections=True)


def test_a_demonstration_is_one_episode_and_corrects_nothing() -> None:
    (whole,) = as_parts([("teleop", episode("a"))])
    assert whole.meta == {"source": "teleop"} and whole.success and whole.terminal


def test_a_discarded_episode_is_in_no_dataset() -> None:
    assert EpisodeStream(None).episodes(RawEpisode(record={"index": 0, "discarded": True}, messages=[], begin_ns=0)) == []


def test_an_episode_ends_because_somebody_says_so() -> None:
    running = {"index": 3, "phase": "running", "success": False}
    assert episode_request({"op": "end", "success": True}, "lift") == End(True, False)
    assert episode_request({"op": "reset", "seed": 4, "task": "lift"}, "lift") == Reset(4)
    assert ended(running, End(True, False)) == {"index": 3, "phase": "over", "success": True}
    assert ended(running, End(False, True))["discarded"] is True
    with pytest.raises(RequestError, match="no episode runs; valid: op reset"):
        ended({**running, "phase": "over"}, End(True, False))
    wrong = {"valid: reset, end": {"op": "stop"}, "true or false": {"op": "end", "success": 1}, "seed None": {"op": "reset"}}
    for said, request in wrong.items():
        with pytest.raises(RequestError, match=said):
            episode_request(request, "lift")
