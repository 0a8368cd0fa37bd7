"""Few recordings of few people, made once."""

from __future__ import annotations

import pytest

from robot_bridge.auxiliary.monitoring.rfmamba.config import RFMambaConfig
from robot_bridge.auxiliary.monitoring.rfmamba.echo_data import simulate
from robot_bridge.auxiliary.monitoring.rfmamba.echoes import Recordings

TINY = {
    "network": {"embedding": 4, "widths": [6, 8], "states": 2, "head": 16, "attention_width": 16},
    "epochs": 2,
    "batch_size": 16,
    "lr": 3e-3,
}


@pytest.fixture(scope="session")
def recordings() -> Recordings:
    return simulate(people=6, recordings=4, frames=6, frequencies=16, wall=0.5, seed=3)


@pytest.fixture(scope="session")
def tiny() -> RFMambaConfig:
    return RFMambaConfig().override(**TINY)
