"""What SmolLM2 and LLaVA share: a language model of transformers that is fed pictures, sampled by its own `generate`, tuned by LoRA.

A backend says how a picture and a text become the model's inputs; prompts are padded on the left, so that answers end together.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from rl_core.training.seeding import preserved_rng
from robot_bridge.auxiliary.lmm.interface import Images, LMMError, Told, check_pairs, load_trained, untold
from robot_bridge.auxiliary.lmm.tuning import tune

_BATCH = 8
_WEIGHTS = "config.json, model.safetensors, tokenizer.json"


class CausalLMM(ABC):
    """The shared half of `interface.LMM`.

    Args:
        model: a causal language model of transformers, with `generate`.
        tokenizer: its tokenizer.
        parameters: what `sft` trains, by name.
        identity: see `interface.LMM`.
    """

    def __init__(self, model: Any, tokenizer: Any, parameters: Mapping[str, nn.Parameter], identity: str) -> None:
        self.model, self.tokenizer, self._parameters, self.identity = model, tokenizer, dict(parameters), identity
        self._end = int(tokenizer.eos_token_id)

    @abstractmethod
    def template(self, prompt: str) -> str:
        """The prompt as the model was taught to be asked."""

    @abstractmethod
    def inputs(self, images: Images, texts: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        """The model's keyword arguments for pictures followed by token ids: `input_ids` or `inputs_embeds`, `attention_mask`, ..."""

    def generate(
        self,
        images: Images,
        prompts: Sequence[str],
        n: int = 1,
        temperature: float = 0.0,
        top_p: float = 1.0,
        max_tokens: int = 64,
        *,
        seed: int = 0,
        told: Told = untold,
    ) -> list[list[str]]:
        """See `interface.LMM`."""
        check_pairs(images, prompts)
        drawn: dict[str, Any] = {"do_sample": False}
        if temperature > 0:
            drawn = {"do_sample": True, "temperature": temperature, "top_p": top_p, "top_k": 0, "num_return_sequences": n}
        answers: list[list[str]] = []
        with preserved_rng(), torch.no_grad():
            torch.manual_seed(seed)
            for at in range(0, len(images), _BATCH):
                given = self.inputs(images[at : at + _BATCH], [self._ids(prompt) for prompt in prompts[at : at + _BATCH]])
                read = given["input_ids"].shape[1] if "input_ids" in given else 0
                found = self.model.generate(**given, **drawn, max_new_tokens=max_tokens, eos_token_id=self._end, pad_token_id=self._end)[
                    :, read:
                ]
                texts = [text.strip() for text in self.tokenizer.batch_decode(found, skip_special_tokens=True)]
                each = n if temperature > 0 else 1
                groups = [texts[row : row + each] for row in range(0, len(texts), each)]
                answers += [group if temperature > 0 else group * n for group in groups]
                told(len(answers), len(images))
        return answers

    def sft(
        self, images: Images, prompts: Sequence[str], answers: Sequence[str], epochs: int, lr: float, *, seed: int = 0, told: Told = untold
    ) -> float:
        """See `interface.LMM`."""
        check_pairs(images, prompts, answers)
        read, written = self._pairs(prompts, answers)

        def loss(batch: Tensor) -> Tensor:
            rows = batch.tolist()
            answered = [written[row] for row in rows]
            return -self._log_p(images[rows], [read[row] for row in rows], answered).sum() / sum(map(len, answered))

        self.model.train()
        try:
            lengths = [len(prompt) + len(answer) for prompt, answer in zip(read, written, strict=True)]
            return tune(list(self._parameters.values()), loss, lengths, epochs=epochs, lr=lr, batch=_BATCH, seed=seed, told=told)
        finally:
            self.model.eval()

    def log_likelihood(self, images: Images, prompts: Sequence[str], answers: Sequence[str]) -> NDArray[np.float32]:
        """See `interface.LMM`."""
        check_pairs(images, prompts, answers)
        read, written = self._pairs(prompts, answers)
        found = []
        with torch.no_grad():
            for at in range(0, len(images), _BATCH):
                rows = slice(at, at + _BATCH)
                found.append(self._log_p(images[rows], read[rows], written[rows]))
        return torch.cat(found).float().cpu().numpy()

    def trained(self) -> dict[str, Tensor]:
        """See `interface.LMM`."""
        return {name: parameter.detach().cpu().clone() for name, parameter in self._parameters.items()}

    def restore(self, weights: Mapping[str, Tensor]) -> None:
        """See `interface.LMM`."""
        load_trained(weights, self._parameters)

    def _ids(self, prompt: str) -> list[int]:
        return self.tokenizer(self.template(prompt), add_special_tokens=False)["input_ids"]

    def _pairs(self, prompts: Sequence[str], answers: Sequence[str]) -> tuple[list[list[int]], list[list[int]]]:
        # The end is told apart by place, not by its id: a model whose padding is its end would otherwise never learn to stop.
        written = [[*self.tokenizer(answer, add_special_tokens=False)["input_ids"], self._end] for answer in answers]
        return [self._ids(prompt) for prompt in prompts], written

    def _log_p(self, images: Images, read: Sequence[list[int]], written: Sequence[list[int]]) -> Tensor:
        """log p of each answer, (B,); answers end at the right edge, as inputs are padded on the left."""
        given = self.inputs(images, [[*prompt, *answer] for prompt, answer in zip(read, written, strict=True)])
        longest = max(map(len, written))
        logits = self.model(**given).logits[:, -longest - 1 : -1].float()
        target, counted = torch.zeros(len(written), longest, dtype=torch.long), torch.zeros(len(written), longest, dtype=torch.bool)
        for row, answer in enumerate(written):
            target[row, longest - len(answer) :], counted[row, longest - len(answer) :] = torch.tensor(answer), True
        log_p = -F.cross_entropy(logits.transpose(1, 2), target.to(logits.device), reduction="none")
        return (log_p * counted.to(logits.device)).sum(dim=1)


def left_padded(rows: Sequence[Sequence[int]], pad: int) -> tuple[Tensor, Tensor]:
    """Ids (B, T) padded on the left, and the mask (B, T), 1 where a token is."""
    longest = max(map(len, rows))
    ids, mask = torch.full((len(rows), longest), pad), torch.zeros(len(rows), longest, dtype=torch.long)
    for row, each in enumerate(rows):
        ids[row, longest - len(each) :], mask[row, longest - len(each) :] = torch.tensor(list(each)), 1
    return ids, mask


def from_folder(what: str, model: Any, tokenizer: Any, folder: str, example: str) -> tuple[Any, Any]:
    """Model and tokenizer of a folder; nothing is fetched.

    Args:
        what: name of the model for errors.
        model: class of transformers.
        tokenizer: class of transformers.
        folder: that `save_pretrained` wrote, or a snapshot of a hub.
        example: name of such weights.

    Raises:
        LMMError: the folder is not there or holds something else; says what is needed.
    """
    if not folder:
        raise LMMError(f"no {what}: field weights (--config.weights) is empty; valid: a folder with {_WEIGHTS}, e.g. of {example}")
    if not Path(folder).is_dir():  # transformers would take it for a name on a hub
        raise LMMError(f"no {what} at {folder}: no such folder; valid: a folder with {_WEIGHTS}, e.g. of {example}")
    try:
        found = model.from_pretrained(folder, local_files_only=True, use_safetensors=True, dtype=torch.float32)
        return found.eval(), tokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, ImportError, KeyError, RuntimeError) as error:
        first = str(error).strip().splitlines()[0]
        raise LMMError(f"no {what} at {folder}: {first}; valid: a folder with {_WEIGHTS}, e.g. of {example}") from error


def frozen_hash(model: nn.Module) -> str:
    """First 16 digits of the sha256 of all weights and their names, of a model that has no corrections yet."""
    digest = hashlib.sha256()
    for name, values in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(values.detach().cpu().float().contiguous().numpy().data)
    return digest.hexdigest()[:16]


def transformers_or_raise(what: str) -> Any:
    """The module transformers.

    Raises:
        LMMError: it is not installed; names the extra.
    """
    try:
        import transformers
    except ImportError as error:
        raise LMMError(f"{what} needs transformers ({error}): pip install 'armstack[vlm]'") from error
    return transformers
