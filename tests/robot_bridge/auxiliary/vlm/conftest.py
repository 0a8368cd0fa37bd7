"""Tiny models of both kinds, without packaged weights."""

import numpy as np
import pytest
import torch
from torch import Tensor

from robot_bridge.auxiliary.vlm.clip import ClipVLM
from robot_bridge.auxiliary.vlm.interface import VLM
from robot_bridge.auxiliary.vlm.small import SmallVLM, SmallVLMConfig

WORDS = ("a", "photo", "of", "red", "blue", "mug", "nut", "square", ".", ",")
SMALL = SmallVLMConfig(width=24, blocks=2, heads=3, text_width=16, text_blocks=2, text_heads=4, embed_dim=12, context_length=12)


class MeanColours:
    """A backbone: mean colours of a 4 x 4 grid, twice."""

    identity = "mean colours"
    channels = 6
    grid = 4

    def __init__(self) -> None:
        self.seen = 0

    def preprocess(self, rgb: np.ndarray) -> Tensor:
        return torch.from_numpy(rgb).permute(0, 3, 1, 2).float() / 255.0

    def maps(self, x: Tensor) -> Tensor:
        self.seen += len(x)
        return torch.nn.functional.adaptive_avg_pool2d(x, 4).repeat(1, 2, 1, 1)


def small_model(seed: int = 0) -> SmallVLM:
    torch.manual_seed(seed)
    return SmallVLM(SMALL, WORDS, MeanColours())


def clip_tokenizer():
    from transformers import CLIPTokenizer

    letters = [chr(code) for code in range(33, 127)]
    tokens = [*letters, *(letter + "</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    return CLIPTokenizer(vocab={token: index for index, token in enumerate(tokens)}, merges=[])


def clip_model(eos: int | None = None):
    from transformers import CLIPConfig, CLIPModel

    torch.manual_seed(0)
    size = 2 * 94 + 2
    text = dict(vocab_size=size, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, projection_dim=8)
    text |= dict(max_position_embeddings=24, eos_token_id=size - 1 if eos is None else eos, bos_token_id=size - 2, pad_token_id=size - 1)
    vision = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8)
    return CLIPModel(CLIPConfig(text_config=text, vision_config=vision | dict(projection_dim=8), projection_dim=8)).eval()


@pytest.fixture
def small() -> SmallVLM:
    model = small_model()
    model.freeze()
    return model


@pytest.fixture
def clip() -> ClipVLM:
    return ClipVLM(clip_model(), clip_tokenizer())


@pytest.fixture(params=["small", "clip"])
def vlm(request: pytest.FixtureRequest) -> VLM:
    return request.getfixturevalue(request.param)


@pytest.fixture
def frames() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), np.uint8)
