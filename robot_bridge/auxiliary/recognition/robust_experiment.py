"""TRADES and CSR on crops of parts, the runs behind the table of the worst class in docs/auxiliary/recognition.md."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.recognition import csr
from robot_bridge.auxiliary.recognition.confusion import confusion_matrix
from robot_bridge.auxiliary.recognition.parts_bench import TEST_SEED, PartsBench
from robot_bridge.auxiliary.recognition.robust_training import attacked_logits
from robot_bridge.auxiliary.recognition.small_cnn import pixels

_OBJECT = 1
"""Of the labelled object in `ImageData.segmentation`."""
_BORDER = 1.3
"""Side of a crop over the object's longer side."""


def robust(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """One classifier trained with TRADES, then fine-tuned in three ways, each judged clean and under PGD-20 by class.

    Figures: METHOD_FIGURE in percent for `trades`, `uniform` (the regulariser without its direction) and `csr`; `METHOD_norm`, the
    spectral norm of the robust confusion matrix; `gain_FIGURE`, csr minus trades of this seed.

    Args:
        config: as `PartsBench`'s, `classes`, how many of them, drawn by the seed, and `settings` of `CSRConfig`.
        seed: of the classes and of training.
        run_dir: of the run; pictures lie beside it.
    """
    bench, settings = PartsBench(config, run_dir.parent / "data"), csr.CSRConfig().override(**config["settings"])
    tests = bench.pictures("test", images=config["images"]["test"], seed=TEST_SEED)
    names = np.random.default_rng(seed).permutation(bench.pool.classes)[: config["classes"]].tolist()
    images, labels = _crops(bench.pool.only(names), settings.side)
    test, known = _crops(tests.only(names), settings.side)
    start = csr.new_classifier(len(names), settings, seed)
    csr.fit_trades(start, images, labels, settings, seed=seed)
    figures: dict[str, Any] = {}
    for name in ("trades", "uniform", "csr"):
        net = copy.deepcopy(start)
        if name == "trades":
            csr.continue_trades(net, images, labels, settings, seed=seed)
        else:
            weighting = settings.override(weighting="spectral" if name == "csr" else "uniform")
            csr.fine_tune(net, images, labels, weighting, classes=len(names), seed=seed)
        with torch.no_grad():
            natural = csr.accuracies(net(test).argmax(dim=1).numpy(), known.numpy())
        found = {**natural, **csr.robust_accuracies(net, test, known, settings.adversary, seed=seed)}
        figures |= {f"{name}_{figure}": 100 * rate for figure, rate in found.items()}
        generator = torch.Generator().manual_seed(seed)
        predicted = attacked_logits(net, test, known, settings.adversary, generator).argmax(dim=1)
        figures[f"{name}_norm"] = float(torch.linalg.matrix_norm(confusion_matrix(predicted, known, len(names)), 2))
    gains = {figure.removeprefix("csr_"): figures[figure] for figure in figures if figure.startswith("csr_")}
    return {**figures, **{f"gain_{figure}": value - figures[f"trades_{figure}"] for figure, value in gains.items()}}


def _crops(data: ImageData, side: int) -> tuple[Tensor, Tensor]:
    """Square crops around the objects, (n, 3, side, side) in [0, 1], and labels (n,)."""
    assert data.segmentation is not None
    crops = [pixels(_crop(frame, mask == _OBJECT)[None], side) for frame, mask in zip(data.frames, data.segmentation, strict=True)]
    return torch.cat(crops), torch.from_numpy(data.labels)


def _crop(frame: NDArray[np.uint8], mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """The square around the mask, cut at the frame's edge; the whole frame where the object is hidden."""
    if not mask.any():
        return frame
    rows, columns = np.nonzero(mask)
    middle = [(near.min() + near.max() + 1) / 2 for near in (rows, columns)]
    reach = _BORDER * max(np.ptp(rows) + 1, np.ptp(columns) + 1) / 2
    top, left = (max(int(np.floor(at - reach)), 0) for at in middle)
    bottom, right = (int(np.ceil(at + reach)) for at in middle)
    return frame[top:bottom, left:right]
