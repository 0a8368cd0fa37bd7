import pytest

from benchmarks import pear


def test_benchmark_steps_and_learns_beside_its_peer(monkeypatch):
    monkeypatch.setattr(pear, "EPISODES", 1)
    monkeypatch.setattr(pear, "UPDATES", 2)
    monkeypatch.setattr(pear, "WARM_UP", 1)
    monkeypatch.setattr(pear, "ROWS", 5)
    result = pear.main()
    assert result["ratio"] == pytest.approx(result["ours"] / result["peer"]) and result["steps"]["ours_5_mazes"] > result["ours"]
    updates = result["updates"]
    assert updates["ratio"] == pytest.approx(updates["ours"] / updates["peer"]) and updates["both_levels"] > 0
    assert result["setting"]["hidden"] == [256, 256] and result["setting"]["batch"] == 256
