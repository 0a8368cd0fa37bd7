"""A model in one picture: its rollouts over the demonstrations, and V over time with what is promised and what is certified."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
from torch import Tensor

from rl_core.contractive.bounds import certify
from rl_core.contractive.model import ContractiveModel
from rl_core.contractive.numpy_model import NumpyModel
from rl_core.training.seeding import numpy_generator

ROLLOUTS = 12


def draw_motion(model: ContractiveModel, demonstrations: Tensor, margin: float, file: Path) -> Path:
    """Draws the first two dimensions (against time where there is one) and V of jittered against nominal rollouts."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    demos = demonstrations.detach().cpu().numpy().astype(np.float64)
    model = copy.deepcopy(model).cpu().double()
    certificate = certify(model, demonstrations, margin=margin)
    numpy_model, certified, promised = NumpyModel(model, certificate.metric), certificate.factor, certificate.promised
    starts = np.repeat(demos[:, 0], -(-ROLLOUTS // len(demos)), axis=0)
    jittered = starts + numpy_generator(0, "picture").uniform(-margin, margin, starts.shape)
    latents, states = numpy_model.rollout(jittered)
    nominal_latents, nominal = numpy_model.rollout(starts)
    apart = numpy_model.energy(latents - nominal_latents)
    steps = np.arange(states.shape[1])

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot(1, 2, 1)
    for style, paths in (("C0", states), ("C3", nominal), ("k--", demos)):
        for path in paths:
            x, y = (path[:, 0], path[:, 1]) if path.shape[1] > 1 else (steps, path[:, 0])
            axes.plot(x, y, style, linewidth=0.8 if style == "C0" else 1.5, alpha=0.6 if style == "C0" else 1.0)
    axes.set(
        title="rollouts (blue: jittered starts; red: demonstrated start), demonstrations dashed",
        aspect="equal" if demos.shape[2] > 1 else "auto",
    )
    axes.title.set_fontsize(8)
    axes.grid(alpha=0.3)
    axes = figure.add_subplot(1, 2, 2)
    axes.semilogy(steps, (apart / np.maximum(apart[:, :1], 1e-300)).T, "C0", linewidth=0.8, alpha=0.6)
    axes.semilogy(steps, certified ** (2 * steps), "C3", label=f"certified: {certified**2:.3f} a step")
    if np.isfinite(promised):
        axes.semilogy(steps, promised ** (2 * steps), "k--", label=f"promised: {promised**2:.3f} a step")
    axes.set(title="V of jittered against demonstrated start, share of its initial value", xlabel="model step")
    axes.title.set_fontsize(8)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
    return file
