"""LlavaLMM: a LLaVA of transformers (arXiv 2310.03744) behind `interface.LMM`. Weights come from a local folder, never from a hub."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from rl_core.training.seeding import preserved_rng
from robot_bridge.auxiliary.lmm.causal import CausalLMM, from_folder, frozen_hash, left_padded, transformers_or_raise
from robot_bridge.auxiliary.lmm.interface import Images
from robot_bridge.auxiliary.lmm.lora import add_lora

# Mean and deviation of the pixels that LLaVA's vision tower, a CLIP, was trained on.
_MEAN = (0.48145466, 0.4578275, 0.40821073)
_DEVIATION = (0.26862954, 0.26130258, 0.27577711)


class LlavaLMM(CausalLMM):
    """See `interface.LMM`. LoRA sits on the language model; the vision tower and the projector stay as they are.

    Args:
        model: a `transformers.LlavaForConditionalGeneration`.
        tokenizer: its tokenizer.
        r: rank of LoRA [paper: 128].
        alpha: see `LoRALinear` [paper: 256].
        seed: of LoRA's first weights.
    """

    def __init__(self, model: Any, tokenizer: Any, *, r: int = 128, alpha: float = 256.0, seed: int = 0) -> None:
        model.requires_grad_(False)
        frozen = frozen_hash(model)
        with preserved_rng():
            torch.manual_seed(seed)
            corrections = add_lora(model.get_submodule("model.language_model"), r, alpha)
        config = model.config
        self._side = int(config.vision_config.image_size)
        patches = (self._side // int(config.vision_config.patch_size)) ** 2
        self._places = patches + (config.vision_feature_select_strategy == "full")
        self._image_id = int(config.image_token_id)
        text = config.text_config
        identity = f"llava {text.num_hidden_layers}x{text.hidden_size} r{r} {self._side}px {frozen}"
        super().__init__(model, tokenizer, corrections, identity)

    @classmethod
    def from_folder(cls, weights: str, **options: Any) -> LlavaLMM:
        """The LLaVA of a folder that transformers' `save_pretrained` wrote, or of a hub's snapshot, with its tokenizer.

        Raises:
            LMMError: transformers is not installed, or no LLaVA is there.
        """
        library = transformers_or_raise("LLaVA")
        classes = library.LlavaForConditionalGeneration, library.AutoTokenizer
        return cls(*from_folder("LLaVA", *classes, weights, "llava-hf/llava-1.5-7b-hf"), **options)

    def template(self, prompt: str) -> str:
        """See `CausalLMM`: LLaVA-1.5's; the picture's place is put before it."""
        return f"\n{prompt} ASSISTANT:"

    def inputs(self, images: Images, texts: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        """See `CausalLMM`: "USER: ", one image token a patch, the text."""
        before = self.tokenizer("USER: ", add_special_tokens=False)["input_ids"]
        ids, mask = left_padded([[*before, *[self._image_id] * self._places, *text] for text in texts], self._end)
        return {"input_ids": ids, "attention_mask": mask, "pixel_values": self.pixels(images)}

    def pixels(self, images: Images) -> Tensor:
        """(n, 3, side, side): the shorter side resized (bicubic), the middle cut out, CLIP's mean and deviation."""
        x = torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2).float() / 255.0
        height, width = x.shape[-2:]
        scale = self._side / min(height, width)
        size = (max(round(height * scale), self._side), max(round(width * scale), self._side))
        x = F.interpolate(x, size, mode="bicubic", antialias=True, align_corners=False).clamp(0, 1)
        top, left = (size[0] - self._side) // 2, (size[1] - self._side) // 2
        x = x[..., top : top + self._side, left : left + self._side]
        return (x - torch.tensor(_MEAN).view(3, 1, 1)) / torch.tensor(_DEVIATION).view(3, 1, 1)
