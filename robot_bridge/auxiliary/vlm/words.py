"""Word-level tokens of the small model: a fixed vocabulary, and spare tokens for words outside it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from robot_bridge.auxiliary.vlm.interface import VLMError

PAD, SOS, PLACEHOLDER = 0, 1, 2
SPARE = 256
"""Tokens for words outside the vocabulary. Their embeddings are untrained, but different words can still be told apart and tuned for."""
_WORD = re.compile(r"[a-z0-9]+|[.,]")


def words_of(text: str) -> list[str]:
    """Lower-case words, numbers, full stops and commas of a text; everything else parts words."""
    return _WORD.findall(text.lower())


class WordTokenizer:
    """Ids: PAD, SOS, X (the placeholder of prompts), the vocabulary, `SPARE` tokens, EOT. EOT is the largest, as in CLIP.

    Args:
        vocabulary: different words, as `words_of` gives them.
        length: ids of a text.
    """

    def __init__(self, vocabulary: Sequence[str], length: int) -> None:
        strange = [word for word in vocabulary if words_of(word) != [word] or word == "x"]
        if strange or len(set(vocabulary)) != len(vocabulary):
            raise VLMError(f"vocabulary holds {strange or 'a word twice'}; valid: different words of a-z and 0-9, '.' and ',', but x")
        self.vocabulary = tuple(vocabulary)
        self.length = length
        self._id = {"x": PLACEHOLDER} | {word: index + 3 for index, word in enumerate(vocabulary)}
        self.size = 3 + len(vocabulary) + SPARE + 1
        self.eot_id = self.size - 1

    @classmethod
    def from_texts(cls, texts: Iterable[str], length: int) -> WordTokenizer:
        """A tokenizer that knows every word of those texts."""
        words = {word for text in texts for word in words_of(text)} | {".", ","}
        return cls(sorted(words - {"x"}), length)

    def unknown(self, texts: Sequence[str]) -> list[str]:
        """Words of those texts that are not in the vocabulary."""
        return sorted({word for text in texts for word in words_of(text) if word not in self._id})

    def __call__(self, texts: Sequence[str]) -> Tensor:
        """Ids (C, length), int64.

        Raises:
            VLMError: a text that is too long, or two unknown words that would share a spare token.
        """
        taken: dict[int, str] = {}
        for word in self.unknown(texts):
            if (other := taken.setdefault(self._spare(word), word)) != word:
                known = ", ".join(self.vocabulary)
                raise VLMError(
                    f"words {other!r} and {word!r} are not in the vocabulary and share a token; rename one, known words: {known}"
                )
        ids = torch.full((len(texts), self.length), PAD, dtype=torch.int64)
        for row, text in zip(ids, texts, strict=True):
            found = [SOS, *(self._id.get(word, self._spare(word)) for word in words_of(text)), self.eot_id]
            if len(found) > self.length:
                raise VLMError(f"text {text!r} has {len(found)} tokens with SOS and EOT; valid: at most {self.length}")
            row[: len(found)] = torch.tensor(found)
        return ids

    def _spare(self, word: str) -> int:
        return self.eot_id - 1 - int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") % SPARE
