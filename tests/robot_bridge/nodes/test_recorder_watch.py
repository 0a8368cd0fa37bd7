"""No demonstration begins unheard, and none is left before the recorder knows how it went."""

from __future__ import annotations

import json
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray

from robot_bridge.nodes import recorder_watch
from robot_bridge.nodes.messages import diagnostic
from robot_bridge.nodes.recorder_watch import RECORDER, RecorderWatch


def said(**values: Any) -> DiagnosticArray:
    return DiagnosticArray(status=[diagnostic("arm latency", {}), diagnostic(RECORDER, {k: json.dumps(v) for k, v in values.items()})])


def test_no_episode_begins_before_the_recorder_hears_everything_and_none_after_it_fell_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(recorder_watch.time, "monotonic", lambda: now[0])
    watch = RecorderWatch(expected=True)
    assert watch.waits() == "no episode recorder is heard"
    watch.hear(said(awaits=["/joint_states", "/policy/action"], newest=None))
    assert watch.waits() == "the episode recorder does not hear /joint_states, /policy/action yet"
    watch.hear(said(awaits=[], newest=None))
    assert watch.waits() == ""
    now[0] += recorder_watch.SILENT_S + 0.1
    assert watch.waits() == "the episode recorder is not heard any more"


def test_the_recorder_has_an_episode_once_it_heard_how_it_went_and_wrote_or_lost_it() -> None:
    watch = RecorderWatch(expected=True)
    assert watch.has(None) and watch.has({"index": -1, "phase": "over"})
    over = {"index": 2, "phase": "over"}
    assert not watch.has(over) and not watch.heard
    watch.hear(said(awaits=[], newest=[2, "running"], pending=0))
    assert not watch.has(over) and watch.has({"index": 2, "phase": "running"})
    watch.hear(said(awaits=[], newest=[2, "over"], pending=1))
    assert not watch.has(over)
    watch.hear(said(awaits=[], newest=[2, "over"], pending=0, losses=["episode 2: disk full"]))
    assert watch.has(over) and watch.lost == ["episode 2: disk full"] and watch.heard


def test_where_nothing_is_recorded_nothing_is_waited_for() -> None:
    watch = RecorderWatch(expected=False)
    assert watch.waits() == "" and watch.has({"index": 0, "phase": "over"})
