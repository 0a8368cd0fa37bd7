"""Networks and their optimisers, shared by all methods: small, general, and free of any method's loss."""

from rl_core.models.ema import ema_update
from rl_core.models.ensemble import EnsembleMLP
from rl_core.models.mish import mish
from rl_core.models.mlp import ACTIVATIONS, MLP, initialize_linear
from rl_core.models.optimizer import ClippedAdam, cosine_decay
from rl_core.models.time_embedding import TimeEmbedding, sinusoids

__all__ = [
    "ACTIVATIONS",
    "MLP",
    "ClippedAdam",
    "EnsembleMLP",
    "TimeEmbedding",
    "cosine_decay",
    "ema_update",
    "initialize_linear",
    "mish",
    "sinusoids",
]
