import pytest
import torch

from benchmarks import dvfb
from benchmarks.peers.plain_dvfb import PlainDVFB


def test_benchmark_compares_equal_updates_and_reports_its_setting(monkeypatch):
    monkeypatch.setattr(dvfb, "UPDATES", 3)
    monkeypatch.setattr(dvfb, "WARM_UP", 1)
    result = dvfb.main()
    assert set(result) == {"ours", "peer", "ratio", "peer_name", "setting"}
    assert result["ratio"] == pytest.approx(result["ours"] / result["peer"])
    assert result["setting"]["largest_difference"] < 1e-5 and result["setting"]["batch"] == 256
    assert torch.get_default_dtype() == torch.float32


def test_a_peer_with_other_losses_is_refused(monkeypatch):
    plain = PlainDVFB.update
    monkeypatch.setattr(PlainDVFB, "update", lambda self, batch: {name: 1.01 * loss for name, loss in plain(self, batch).items()})
    with pytest.raises(AssertionError, match="differ"):
        dvfb.main()
