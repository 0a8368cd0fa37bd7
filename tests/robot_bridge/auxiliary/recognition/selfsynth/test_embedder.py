"""Batched sentence vectors are those of the sentence by itself."""

import builtins
from typing import Any

import numpy as np
import pytest

from rl_core.models.language import LanguageError, MiniLM
from robot_bridge.auxiliary.recognition.selfsynth.embedder import BatchedMiniLM, RememberedVectors
from tests.robot_bridge.auxiliary.recognition.selfsynth.stand_ins import WordCounts


def test_batched_vectors_are_those_of_each_sentence_alone() -> None:
    sentences = ["a gear", "it has a curved handle on the side, an open top and a thin round rim.", "a bolt with a spiral thread"]
    found = BatchedMiniLM().encode(sentences)
    np.testing.assert_allclose(found, MiniLM().encode(sentences), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-5)


def test_a_package_that_cannot_be_imported_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def broken(name: str, *given: Any, **options: Any) -> Any:
        if name == "transformers":
            raise ImportError("libcudart.so: cannot open shared object file")  # has no name
        return real(name, *given, **options)

    monkeypatch.setattr(builtins, "__import__", broken)
    with pytest.raises(LanguageError, match=r"transformers and tokenizers \(libcudart.so.*armstack\[language\]"):
        BatchedMiniLM().encode(["a gear"])


def test_a_sentence_is_worked_out_once_and_memory_is_bounded() -> None:
    class Counting(WordCounts):
        seen: list[str] = []

        def encode(self, sentences):
            self.seen += sentences
            return super().encode(sentences)

    counting = Counting()
    remembered = RememberedVectors(counting, most=4)
    again = remembered.encode(["a", "b", "a"])
    assert counting.seen == ["a", "b"] and np.array_equal(again[0], again[2]) and remembered.size == 256
    assert np.array_equal(remembered.encode(["b"])[0], again[1]) and counting.seen == ["a", "b"]
    remembered.encode(["c", "d", "e"])
    assert len(remembered._known) <= 4 and remembered.encode([]).shape == (0, 256)
