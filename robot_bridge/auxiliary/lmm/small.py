"""SmallLMM: the caption decoder behind `interface.LMM`; 2 M trained weights over the visual tokens of a VLM. The default backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from rl_core.bundle import Bundle
from rl_core.training.checkpoint import CheckpointStore
from rl_core.training.seeding import preserved_rng, torch_generator
from robot_bridge.auxiliary.lmm.decoder import CaptionDecoder, DecoderSizes
from robot_bridge.auxiliary.lmm.interface import Images, LMMError, Told, check_pairs, load_trained, untold
from robot_bridge.auxiliary.lmm.sampling import sample
from robot_bridge.auxiliary.lmm.tuning import tune
from robot_bridge.auxiliary.lmm.visual_tokens import VisualTokens
from robot_bridge.auxiliary.lmm.vocabulary import PAD, Vocabulary
from robot_bridge.auxiliary.vlm.interface import VLM

KIND, METHOD = "lmm", "caption-decoder"
_PROMPTS = 64
"""Prompts that are answered side by side."""
_SFT_BATCH = 32
_WEIGHT_DECAY = 0.05


class SmallLMM:
    """See `interface.LMM`; freshly made it is untrained.

    Args:
        vlm: frozen; its visual tokens are what the decoder sees.
        vocabulary: words it can read and write.
        sizes: of the decoder.
        grid: see `VisualTokens`.
        visual: tokens of the same VLM that are kept somewhere, with a grid of their own; None: of `grid`, kept in memory.
        seed: of the first weights.
    """

    def __init__(
        self,
        vlm: VLM,
        vocabulary: Vocabulary,
        sizes: DecoderSizes | None = None,
        *,
        grid: int = 4,
        visual: VisualTokens | None = None,
        seed: int = 0,
    ) -> None:
        self.vocabulary = vocabulary
        self.visual = visual or VisualTokens(vlm, grid)
        self.grid = grid = self.visual.grid
        with preserved_rng():
            torch.manual_seed(seed)
            self.decoder = CaptionDecoder(sizes or DecoderSizes(), vocabulary.size, self.visual.width, self.visual.count).eval()
        self.identity = f"{METHOD} {grid}x{grid} on {vlm.identity}"

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
        visual = self._seen(images, prompts)
        ids = [self._fitting(self.vocabulary.prompt(prompt), max_tokens, prompt) for prompt in prompts]
        generator, found = torch_generator(seed, "answers"), []
        for at in range(0, len(ids), _PROMPTS):
            rows = slice(at, at + _PROMPTS)
            for answers in sample(self.decoder, visual[rows], ids[rows], n, temperature, top_p, max_tokens, generator):
                found.append([self.vocabulary.text(answer) for answer in answers])
            told(len(found), len(ids))
        return found

    def sft(
        self,
        images: Images,
        prompts: Sequence[str],
        answers: Sequence[str],
        epochs: int,
        lr: float,
        *,
        seed: int = 0,
        told: Told = untold,
        store: CheckpointStore | None = None,
    ) -> float:
        """See `interface.LMM`, and `tuning.tune` for `store`."""
        visual, rows = self._seen(images, prompts, answers), self._rows(prompts, answers)

        def loss(batch: Tensor) -> Tensor:
            chosen = [rows[index] for index in batch.tolist()]
            return -self._log_p(visual[batch], chosen).sum() / sum(len(answer) for _, answer in chosen)

        self.decoder.train()
        try:
            parameters: list[nn.Parameter] = list(self.decoder.parameters())
            lengths = [len(prompt) + len(answer) for prompt, answer in rows]
            numbers: dict[str, Any] = {"epochs": epochs, "lr": lr, "batch": _SFT_BATCH, "weight_decay": _WEIGHT_DECAY, "seed": seed}
            return tune(parameters, loss, lengths, **numbers, told=told, store=store)
        finally:
            self.decoder.eval()

    def log_likelihood(self, images: Images, prompts: Sequence[str], answers: Sequence[str]) -> NDArray[np.float32]:
        """See `interface.LMM`."""
        visual = self._seen(images, prompts, answers)
        rows = self._rows(prompts, answers)
        with torch.no_grad():
            pieces = [self._log_p(visual[at : at + _PROMPTS], rows[at : at + _PROMPTS]) for at in range(0, len(rows), _PROMPTS)]
        return torch.cat(pieces).numpy().astype(np.float32)

    def trained(self) -> dict[str, Tensor]:
        """See `interface.LMM`."""
        return {name: tensor.detach().clone() for name, tensor in self.decoder.state_dict().items()}

    def restore(self, weights: Mapping[str, Tensor]) -> None:
        """See `interface.LMM`."""
        load_trained(weights, self.decoder.state_dict())

    def facts(self) -> dict[str, Any]:
        """JSON-able: what `from_facts` needs beside the weights and the VLM."""
        return {
            "sizes": asdict(self.decoder.sizes),
            "grid": self.grid,
            "vocabulary": list(self.vocabulary.words),
            "identity": self.identity,
        }

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any], weights: Mapping[str, Tensor], vlm: VLM, visual: VisualTokens | None = None) -> SmallLMM:
        """The model of `facts` and `trained`'s weights.

        Raises:
            LMMError: weights of another model, or made on another VLM.
        """
        model = cls(vlm, Vocabulary(facts["vocabulary"]), DecoderSizes(**facts["sizes"]), grid=facts["grid"], visual=visual)
        if model.identity != facts["identity"]:
            raise LMMError(f"caption decoder trained as {facts['identity']!r}; here it would be {model.identity!r}; valid: the same VLM")
        model.restore(weights)
        return model

    def save(self, folder: str | Path, *, data_fingerprint: str = "", metrics: Mapping[str, Any] | None = None) -> Path:
        """Writes the model as a bundle, without the VLM."""
        bundle = Bundle(
            kind=KIND, method=METHOD, config=self.facts(), weights=self.trained(), data_fingerprint=data_fingerprint, metrics=metrics or {}
        )
        return bundle.save(folder)

    @classmethod
    def load(cls, folder: str | Path, vlm: VLM, visual: VisualTokens | None = None) -> SmallLMM:
        """The model of a bundle.

        Args:
            folder: of the bundle.
            vlm: the one it was trained on.
            visual: see `SmallLMM`.

        Raises:
            BundleError: no bundle there, or a damaged one.
            LMMError: the bundle of another kind, or made on another VLM.
        """
        bundle = Bundle.load(folder)
        if (bundle.kind, bundle.method) != (KIND, METHOD):
            raise LMMError(f"{folder}: a bundle of kind {bundle.kind!r}, method {bundle.method!r}; valid: {KIND!r}, {METHOD!r}")
        return cls.from_facts(bundle.config, bundle.weights, vlm, visual)

    def _seen(self, images: Images, *texts: Sequence[str]) -> Tensor:
        check_pairs(images, *texts)
        return self.visual(images)

    def _fitting(self, ids: list[int], room: int, text: str) -> list[int]:
        if len(ids) + room > self.decoder.sizes.length:
            raise LMMError(
                f"{text!r}: {len(ids)} words with the mark, and {room} for the answer; valid: at most {self.decoder.sizes.length} together"
            )
        return ids

    def _rows(self, prompts: Sequence[str], answers: Sequence[str]) -> list[tuple[list[int], list[int]]]:
        pairs = [(self.vocabulary.prompt(prompt), self.vocabulary.answer(answer)) for prompt, answer in zip(prompts, answers, strict=True)]
        return [(self._fitting(prompt, len(answer), text), answer) for (prompt, answer), text in zip(pairs, answers, strict=True)]

    def _log_p(self, visual: Tensor, rows: Sequence[tuple[list[int], list[int]]]) -> Tensor:
        """log p of each row's answer, summed over its words and its end, (B,); differentiable."""
        longest = max(len(prompt) + len(answer) for prompt, answer in rows)
        ids, counted = torch.full((len(rows), longest), PAD), torch.zeros(len(rows), longest, dtype=torch.bool)
        for row, (prompt, answer) in enumerate(rows):
            ids[row, : len(prompt) + len(answer)] = torch.tensor(prompt + answer)
            counted[row, len(prompt) : len(prompt) + len(answer)] = True
        logits = self.decoder(visual, ids[:, :-1])
        log_p = -F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
        return (log_p * counted[:, 1:]).sum(dim=1)
