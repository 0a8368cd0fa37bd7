from benchmarks import replay


def test_benchmark_compares_equal_content_and_reports_its_setting(monkeypatch):
    monkeypatch.setattr(replay, "TRANSITIONS", 5000)
    monkeypatch.setattr(replay, "ROUNDS", 60)
    result = replay.main()
    assert set(result) == {"ours", "peer", "ratio", "peer_name", "setting"}
    assert result["ratio"] == result["peer"] / result["ours"]
    assert result["ratio"] > 1.5  # measured near 3; the margin is for a busy machine
    assert result["setting"]["batch"] == 256 and result["setting"]["transitions"] == 5000
