"""Who may command the arm."""

from robot_bridge.control.authority import Authority, Holder

S = 1_000_000_000


def test_a_stronger_source_takes_over_a_weaker_does_not() -> None:
    authority = Authority()
    for source in ("policy", "replay", "console", "teleop"):
        assert authority.take(source, 0, source) is None
    for source in ("policy", "replay", "console"):
        assert "teleop" in str(authority.take(source, S // 2, source))
    assert authority.holder == Holder(source="teleop", sender="teleop")


def test_an_unknown_source_is_refused_with_the_valid_ones() -> None:
    refusal = str(Authority().take("joystick", 0, "a"))
    assert "joystick" in refusal and "teleop" in refusal


def test_two_publishers_of_one_source_are_told_apart_by_identity() -> None:
    authority = Authority()
    assert authority.take("policy", 0) is None
    assert authority.check("policy", "gid-1", 0) is None  # binds
    assert "gid-2" in str(authority.check("policy", "gid-2", 0))
    assert authority.refused == 1
    assert authority.check("policy", "gid-1", 0) is None


def test_a_live_holder_of_the_same_source_is_not_replaced_a_silent_one_is() -> None:
    authority = Authority()
    authority.take("policy", 0, "gid-1")
    authority.check("policy", "gid-1", 5 * S)
    assert authority.take("policy", 6 * S, "gid-2") is not None
    assert authority.take("policy", 6 * S + 1, "gid-2") is None
    assert authority.check("policy", "gid-1", 6 * S + 2) is not None


def test_taking_again_by_the_holder_changes_nothing() -> None:
    authority = Authority()
    authority.take("policy", 0, "gid-1")
    epoch = authority.epoch
    assert authority.take("policy", 1, "gid-1") is None
    assert authority.epoch == epoch


def test_only_the_holder_releases() -> None:
    authority = Authority()
    authority.take("policy", 0, "gid-1")
    assert authority.release("teleop") is not None
    assert authority.release("policy", "gid-2") is not None
    assert authority.release("policy", "gid-1") is None
    assert authority.holder is None
    assert authority.check("policy", "gid-1", 0) is not None
