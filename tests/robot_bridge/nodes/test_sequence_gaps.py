"""What a recorder missed, per topic and episode."""

from __future__ import annotations

import json

from robot_bridge.nodes.sequence_gaps import EpisodeGaps, SequenceGaps, difference, missing


def test_gaps_are_counted_per_publisher() -> None:
    gaps = SequenceGaps()
    for publisher, numbers in ((b"a", (5, 6, 9)), (b"b", (1, 2, 4, 3))):
        for number in numbers:
            gaps.add("/camera", publisher, number)
    gaps.add("/other", b"a", None)
    gaps.drop("/camera")
    before = gaps.counts()
    assert before["/camera"] == {"received": 7, "lost": 3, "dropped": 1}
    gaps.add("/camera", b"a", 12)
    assert difference(gaps.counts(), before)["/camera"] == {"received": 1, "lost": 2, "dropped": 0}


def _counts(received: int, lost: int = 0) -> dict[str, dict[str, int]]:
    return {"/camera": {"received": received, "lost": lost, "dropped": 0}}


def _record(index: int, phase: str, success: bool = False) -> str:
    return json.dumps({"index": index, "phase": phase, "success": success})


def test_gaps_of_an_episode_count_from_its_first_record_also_where_success_is_said_in_between() -> None:
    gaps = EpisodeGaps()
    assert gaps.follow(_record(0, "running"), _counts(10)) is None
    assert gaps.follow(_record(0, "running", success=True), _counts(15, lost=2)) is None
    assert gaps.follow("no record", _counts(16, lost=2)) is None
    ended = gaps.follow(_record(0, "over", success=True), _counts(20, lost=3))
    assert ended == ({"index": 0, "phase": "over", "success": True}, _counts(10, lost=3))
    assert missing(ended[1]) == {"/camera": 3}
    assert gaps.cut(_counts(30)) is None


def test_an_episode_that_is_reset_or_under_way_at_the_end_has_its_gaps_too() -> None:
    gaps = EpisodeGaps()
    gaps.follow(_record(0, "running"), _counts(1))
    ended = gaps.follow(_record(1, "running"), _counts(4))
    assert ended == ({"index": 0, "phase": "running", "success": False}, _counts(3))
    assert gaps.cut(_counts(9)) == ({"index": 1, "phase": "cut", "success": False}, _counts(5))
