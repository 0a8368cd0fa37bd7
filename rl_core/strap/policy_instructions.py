"""The instructions a policy was trained with, and their vectors: all the language it understands.

A policy is told one of these sentences, word for word. Anything else is refused with the list of them: what an arm does on a sentence
that was never in its data is anybody's guess. The vectors travel in the bundle, so that an arm's computer needs no sentence encoder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from rl_core.bundle import BundleError
from rl_core.conditioned_policy import ConditionError
from rl_core.contract import Channel
from rl_core.data.episode import Dataset
from rl_core.models.language import SentenceEncoder, sentence_encoder
from rl_core.strap.chunk_windows import instruction_of, instructions_in, is_piece
from rl_core.training.config import ConfigError

TASK = Channel(name="task", kind="text")
"""The condition of a policy that must be told what to do."""

_TEXTS, _VECTORS = "instruction_texts", "instruction_vectors"


@dataclass(frozen=True, kw_only=True, eq=False)
class Instructions:
    """Sentences and their vectors.

    Attributes:
        texts: K different sentences.
        vectors: (K, D) float32.
        default: index of the one that holds where nobody says otherwise; None where one must be told.
    """

    texts: tuple[str, ...]
    vectors: Tensor
    default: int | None

    @classmethod
    def of(cls, dataset: Dataset, wanted: str = "", encoder: SentenceEncoder | None = None) -> Instructions:
        """Those of a dataset; `wanted` is the default, else the one that all demonstrations which are no retrieved pieces share.

        Raises:
            ConfigError: `wanted` is not among them.
            LanguageError: there is no sentence encoder here.
        """
        texts = instructions_in(dataset)
        if wanted and wanted not in texts:
            raise ConfigError(f"BCTransformerConfig.instruction: {wanted!r}, valid: one of the data's, {list(texts)}")
        whole = {instruction_of(episode) for episode in dataset.episodes if not is_piece(episode)}
        default = texts.index(wanted or whole.pop()) if wanted or len(whole) == 1 else None
        if texts == ("",):  # one task without words: nothing to tell apart
            return cls(texts=texts, vectors=torch.zeros(1, 1), default=0)
        encoder = encoder or sentence_encoder()
        return cls(texts=texts, vectors=torch.from_numpy(encoder.encode(texts)), default=default)

    def prepare(self, condition: Mapping[str, Any]) -> TensorDict:
        """`{"task": sentence}`, or nothing for the default -> `language` (D,).

        Raises:
            ConditionError: no such sentence, or none and no default; lists those there are.
        """
        said = condition.get(TASK.name)
        if said is None and self.default is not None:
            return TensorDict({"language": self.vectors[self.default]}, batch_size=[])
        if said not in self.texts:
            raise ConditionError(f"{TASK.name}: {said!r}, valid: one of the instructions it was trained with, {list(self.texts)}")
        return TensorDict({"language": self.vectors[self.texts.index(said)]}, batch_size=[])

    def to_arrays(self) -> dict[str, Tensor]:
        """Tensors for a bundle or a checkpoint."""
        words = json.dumps({"texts": self.texts, "default": self.default}).encode()
        return {_TEXTS: torch.tensor(list(words), dtype=torch.uint8), _VECTORS: self.vectors}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Tensor]) -> Instructions:
        """Reads `to_arrays`' value.

        Raises:
            BundleError: an array is missing, or they do not fit.
        """
        try:
            words = json.loads(bytes(arrays[_TEXTS].tolist()))
            found = cls(texts=tuple(words["texts"]), vectors=arrays[_VECTORS], default=words["default"])
            if found.vectors.ndim != 2 or len(found.vectors) != len(found.texts) or found.default not in (None, *range(len(found.texts))):
                raise ValueError(f"{len(found.texts)} sentences, vectors {tuple(found.vectors.shape)}, default {found.default}")
        except (KeyError, ValueError, TypeError) as error:
            raise BundleError(
                f"arrays.safetensors: no instructions ({error}); valid: {_TEXTS} and {_VECTORS}, one row a sentence"
            ) from error
        return found
