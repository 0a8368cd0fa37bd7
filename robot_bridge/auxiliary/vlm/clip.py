"""ClipVLM: a CLIP of transformers behind `interface.VLM`. Weights come from a local folder, never from a hub at run time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from robot_bridge.auxiliary.vlm.blocks import ClipBlock
from robot_bridge.auxiliary.vlm.interface import Block, VLMError
from robot_bridge.auxiliary.vlm.towers import Towers

# Mean and deviation of the pixels CLIP was trained on (OPENAI_CLIP_MEAN, OPENAI_CLIP_STD of transformers).
_MEAN = (0.48145466, 0.4578275, 0.40821073)
_DEVIATION = (0.26862954, 0.26130258, 0.27577711)
_OLD_EOT = 2
"""A configuration with this EOT is from before the id was kept right; the EOT is then the largest id, as in the first CLIPs."""
FILES = "config.json, model.safetensors, tokenizer.json (or vocab.json and merges.txt)"


class ClipVLM(Towers):
    """See `interface.VLM`. Frozen as made.

    Args:
        model: a `transformers.CLIPModel`.
        tokenizer: its `transformers.CLIPTokenizer`.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        super().__init__()
        self.model = model
        self._tokenizer = tokenizer
        text = model.config.text_config
        self.embed_dim, self.text_width = int(model.config.projection_dim), int(text.hidden_size)
        self.context_length, self._eot_id = int(text.max_position_embeddings), int(text.eos_token_id)
        self._side = int(model.config.vision_config.image_size)
        self.freeze()
        self.identity = f"clip {self.weights_hash()}"

    @classmethod
    def from_folder(cls, weights: str | Path) -> ClipVLM:
        """The CLIP whose weights and tokenizer lie in a folder that transformers' `save_pretrained` wrote, or in a hub's snapshot.

        Raises:
            VLMError: transformers is not installed, or the folder does not hold a CLIP; says what is needed.
        """
        try:
            from transformers import CLIPModel, CLIPTokenizer
        except ImportError as error:
            raise VLMError(f"CLIP needs transformers ({error}): pip install 'armstack[vlm]'") from error
        if not Path(weights).is_dir():  # transformers would take it for a name on a hub
            raise VLMError(f"no CLIP at {weights}: no such folder; valid: a folder with {FILES}, e.g. of openai/clip-vit-base-patch16")
        try:
            model = CLIPModel.from_pretrained(str(weights), local_files_only=True, use_safetensors=True)
            tokenizer = CLIPTokenizer.from_pretrained(str(weights), local_files_only=True)
        except (OSError, ValueError, ImportError) as error:
            first = str(error).strip().splitlines()[0]
            raise VLMError(f"no CLIP at {weights}: {first}; valid: a folder with {FILES}, e.g. of openai/clip-vit-base-patch16") from error
        return cls(model, tokenizer)

    @property
    def logit_scale(self) -> Tensor:
        """See `interface.VLM`."""
        return self.model.logit_scale

    def preprocess(self, rgb: NDArray[np.uint8]) -> Tensor:
        """See `interface.VLM`: the shorter side resized (bicubic), the middle cut out, mean and deviation of CLIP's own training."""
        x = torch.from_numpy(np.ascontiguousarray(rgb)).permute(0, 3, 1, 2).float() / 255.0
        height, width = x.shape[-2:]
        scale = self._side / min(height, width)
        size = (max(round(height * scale), self._side), max(round(width * scale), self._side))
        x = F.interpolate(x, size, mode="bicubic", antialias=True, align_corners=False).clamp(0, 1)
        top, left = (size[0] - self._side) // 2, (size[1] - self._side) // 2
        x = x[..., top : top + self._side, left : left + self._side]
        return (x - torch.tensor(_MEAN).view(3, 1, 1)) / torch.tensor(_DEVIATION).view(3, 1, 1)

    def tokenize(self, texts: Sequence[str]) -> Tensor:
        """See `interface.VLM`."""
        found: list[list[int]] = self._tokenizer(list(texts))["input_ids"]
        long = [(text, len(ids)) for text, ids in zip(texts, found, strict=True) if len(ids) > self.context_length]
        if long:
            text, count = long[0]
            raise VLMError(f"text {text!r} has {count} tokens with SOS and EOT; valid: at most {self.context_length}")
        padded = self._tokenizer(list(texts), padding="max_length", max_length=self.context_length, return_tensors="pt")
        return padded["input_ids"].to(self.model.device)

    def eot(self, ids: Tensor) -> Tensor:
        """See `interface.VLM`; padding may be the EOT's id again, so the first one counts."""
        if self._eot_id == _OLD_EOT:
            return ids.argmax(dim=-1)
        return (ids == self._eot_id).int().argmax(dim=-1)

    def token_embedding(self, ids: Tensor) -> Tensor:
        """See `interface.VLM`."""
        return self.model.text_model.embeddings.token_embedding(ids)

    def text_positions(self) -> Tensor:
        """See `towers.Towers`."""
        return self.model.text_model.embeddings.position_embedding.weight

    def text_head(self, hidden: Tensor) -> Tensor:
        """See `towers.Towers`."""
        return self.model.text_projection(self.model.text_model.final_layer_norm(hidden))

    def text_blocks(self) -> Sequence[Block]:
        """See `interface.VLM`."""
        return [ClipBlock(layer) for layer in self.model.text_model.encoder.layers]

    def vision_blocks(self) -> Sequence[Block]:
        """See `interface.VLM`."""
        return [ClipBlock(layer) for layer in self.model.vision_model.encoder.layers]

    def vision_tokens(self, x: Tensor) -> Tensor:
        """See `interface.VLM`."""
        vision = self.model.vision_model
        return vision.pre_layrnorm(vision.embeddings(x))

    def vision_head(self, hidden: Tensor) -> Tensor:
        """See `interface.VLM`."""
        return self.model.visual_projection(self.model.vision_model.post_layernorm(hidden))
