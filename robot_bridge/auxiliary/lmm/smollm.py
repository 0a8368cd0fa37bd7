"""SmolLMM: SmolLM2-135M (arXiv 2502.02737) that sees the visual tokens of a VLM through a projector of two layers, as LLaVA-1.5 does.

Trained are the projector and LoRA on every linear layer. A projector that was never trained says nothing of a picture: the first
fine-tuning teaches it, or `restore` of weights that were kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rl_core.training.seeding import preserved_rng
from robot_bridge.auxiliary.lmm.causal import CausalLMM, from_folder, frozen_hash, left_padded, transformers_or_raise
from robot_bridge.auxiliary.lmm.interface import Images
from robot_bridge.auxiliary.lmm.lora import add_lora
from robot_bridge.auxiliary.lmm.visual_tokens import VisualTokens
from robot_bridge.auxiliary.vlm.interface import VLM


class SmolLMM(CausalLMM):
    """See `interface.LMM`.

    Args:
        model: a `transformers.LlamaForCausalLM`; gets LoRA and is otherwise frozen.
        tokenizer: its tokenizer, with SmolLM2's chat marks.
        vlm: frozen.
        grid: see `VisualTokens`.
        visual: tokens of the same VLM that are kept somewhere, with a grid of their own; None: of `grid`, kept in memory.
        r: rank of LoRA.
        alpha: see `LoRALinear`.
        seed: of the projector's and LoRA's first weights.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        vlm: VLM,
        *,
        grid: int = 4,
        visual: VisualTokens | None = None,
        r: int = 32,
        alpha: float = 64.0,
        seed: int = 0,
    ) -> None:
        self.visual = visual or VisualTokens(vlm, grid)
        width, frozen = int(model.config.hidden_size), frozen_hash(model)
        with preserved_rng():
            torch.manual_seed(seed)
            self.projector = nn.Sequential(nn.Linear(self.visual.width, width), nn.GELU(), nn.Linear(width, width))
            corrections = add_lora(model, r, alpha)
        projector = {f"projector.{name}": parameter for name, parameter in self.projector.named_parameters()}
        sizes = f"{model.config.num_hidden_layers}x{width} r{r} {self.visual.grid}x{self.visual.grid}"
        identity = f"smollm2 {sizes} {frozen} on {vlm.identity}"
        super().__init__(model, tokenizer, {**corrections, **projector}, identity)

    @classmethod
    def from_folder(cls, weights: str, vlm: VLM, **options: Any) -> SmolLMM:
        """The SmolLM2 of a folder that transformers' `save_pretrained` wrote.

        Raises:
            LMMError: transformers is not installed, or no such model is there.
        """
        library = transformers_or_raise("SmolLM2")
        found = from_folder("SmolLM2", library.LlamaForCausalLM, library.AutoTokenizer, weights, "HuggingFaceTB/SmolLM2-135M-Instruct")
        return cls(*found, vlm, **options)

    def template(self, prompt: str) -> str:
        """See `CausalLMM`: SmolLM2's chat marks."""
        return f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"

    def inputs(self, images: Images, texts: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        """See `CausalLMM`: padding, projected visual tokens, the text."""
        ids, mask = left_padded(texts, self._end)
        visual, words = self.projector(self.visual(images)), self.model.get_input_embeddings()(ids)
        rows, width = [], words.shape[-1]
        for row in range(len(ids)):  # the picture stands behind the padding, right before its text
            empty = int((mask[row] == 0).sum())
            rows.append(torch.cat([torch.zeros(empty, width), visual[row], words[row, empty:]]))
        seen = torch.ones(len(ids), self.visual.count, dtype=torch.long)
        order = torch.cat([mask, seen], dim=1).sort(dim=1).values  # padding is 0, so it comes first
        return {"inputs_embeds": torch.stack(rows), "attention_mask": order}
