"""Lines that say how far a step is."""

from robot_bridge.auxiliary.told_progress import ToldProgress, time_left


def test_a_long_step_says_every_ten_seconds_how_much_is_left() -> None:
    lines: list[str] = []
    now = 0.0
    told = ToldProgress(lines.append, "round 1: steps", clock=lambda: now)
    for done in range(1, 31):
        now += 4.0
        told(done, 30)
    assert lines[0] == "round 1: steps: 3 of 30, about 2 min left" and lines[-1] == "round 1: steps: 27 of 30, about 12 s left"
    assert len(lines) == 9  # the last step says nothing: what comes behind it does


def test_what_was_done_before_costs_no_time() -> None:
    lines: list[str] = []
    now = 0.0
    told = ToldProgress(lines.append, "base: steps", clock=lambda: now)
    for done in (91, 92):
        now += 10.0
        told(done, 100)
    assert lines == ["base: steps: 91 of 100, about 90 s left", "base: steps: 92 of 100, about 80 s left"]


def test_a_short_step_says_nothing() -> None:
    lines: list[str] = []
    told = ToldProgress(lines.append, "descriptions", clock=lambda: 0.0)
    for done in range(1, 100):
        told(done, 100)
    assert not lines and time_left(10.0, 1, 11) == "2 min" and time_left(5.0, 1, 2) == "5 s"
