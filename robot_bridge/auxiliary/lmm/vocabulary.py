"""Vocabulary: words of the caption decoder, there and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from robot_bridge.auxiliary.lmm.interface import LMMError
from robot_bridge.auxiliary.vlm.words import words_of

PAD, END, ANSWER, UNKNOWN = range(4)
"""Padding, end of an answer, the mark between prompt and answer, and any word of a prompt that is not known."""


class Vocabulary:
    """Ids: the four marks above, then the words.

    Args:
        words: different ones, each as `words_of` gives it.

    Raises:
        LMMError: a word twice, or more than a word in one.
    """

    def __init__(self, words: Sequence[str]) -> None:
        if strange := [word for word in words if words_of(word) != [word]]:
            raise LMMError(f"vocabulary holds {strange}; valid: words of a-z and 0-9, '.' and ','")
        if len(set(words)) != len(words):
            raise LMMError("vocabulary holds a word twice; valid: different words")
        self.words = tuple(words)
        self.size = 4 + len(words)
        self._id = {word: 4 + index for index, word in enumerate(words)}

    @classmethod
    def of(cls, texts: Iterable[str]) -> Vocabulary:
        """Every word of those texts."""
        return cls(sorted({word for text in texts for word in words_of(text)} | {".", ","}))

    def unknown(self, texts: Iterable[str]) -> list[str]:
        """Words of those texts that it lacks."""
        return sorted({word for text in texts for word in words_of(text)} - set(self.words))

    def prompt(self, text: str) -> list[int]:
        """Ids of a prompt with the mark behind it; words that are not known are told apart from known ones only."""
        return [*(self._id.get(word, UNKNOWN) for word in words_of(text)), ANSWER]

    def answer(self, text: str) -> list[int]:
        """Ids of an answer with its end.

        Raises:
            LMMError: a word that it lacks.
        """
        if lacking := self.unknown([text]):
            raise LMMError(f"answer {text!r}: words {', '.join(lacking)} are not in the vocabulary of {len(self.words)} words")
        return [*(self._id[word] for word in words_of(text)), END]

    def text(self, ids: Sequence[int]) -> str:
        """Words of an answer up to its end, stops and commas close up."""
        words: list[str] = []
        for token in ids:
            if token == END:
                break
            if token >= 4:
                words.append(self.words[token - 4])
        return " ".join(words).replace(" .", ".").replace(" ,", ",")
