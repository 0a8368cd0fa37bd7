import pytest

from benchmarks import data


def test_benchmark_compares_equal_windows_and_equal_loads_and_reports_its_setting(monkeypatch):
    for name, value in {"EPISODES": 12, "STEPS": 40, "ROUNDS": 20, "LOADS": 1}.items():
        monkeypatch.setattr(data, name, value)
    result = data.main()
    assert {"ours", "peer", "ratio", "peer_name", "setting", "loading"} <= result.keys()
    assert result["ratio"] == pytest.approx(result["ours"] / result["peer"]) and result["setting"]["episodes"] == 12
    assert 0.05 < result["ratio"] < 1.5  # the peer is an upper bound; measured near 0.4
    loading = result["loading"]
    assert loading["ratio"] == pytest.approx(loading["peer"] / loading["ours"]) and loading["ratio"] > 0.7  # near 1.4 when quiet
    # each hands over window and following observation: numbers of both in what they say of bytes
    assert result["ours_bytes_per_s"] / result["ours"] > result["peer_bytes_per_s"] / result["peer"]
