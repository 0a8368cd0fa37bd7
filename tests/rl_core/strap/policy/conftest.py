"""Sentences without the packaged model."""

from __future__ import annotations

import pytest

from rl_core.strap import policy_instructions
from tests.rl_core.strap.policy.told import Hashed


@pytest.fixture(autouse=True)
def _hashed_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_instructions, "sentence_encoder", Hashed)
