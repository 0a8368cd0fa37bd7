"""The runs behind docs/auxiliary/radar.md: people that no method has seen, in another cell. See experiments/rfmamba.yaml."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from rl_core.training.seeding import derive_seed, preserved_rng
from robot_bridge.auxiliary.monitoring.rfmamba import baselines
from robot_bridge.auxiliary.monitoring.rfmamba.backprojection import window_images, window_profiles
from robot_bridge.auxiliary.monitoring.rfmamba.baselines import Answers
from robot_bridge.auxiliary.monitoring.rfmamba.branches import FrequencyBranch
from robot_bridge.auxiliary.monitoring.rfmamba.config import RFMambaConfig
from robot_bridge.auxiliary.monitoring.rfmamba.echo_data import simulate
from robot_bridge.auxiliary.monitoring.rfmamba.echoes import HEADER, Recordings, Windows, read_recordings, write_recordings
from robot_bridge.auxiliary.monitoring.rfmamba.evaluation import evaluate, pose_figures
from robot_bridge.auxiliary.monitoring.rfmamba.learning import fit, new_network
from robot_bridge.auxiliary.monitoring.rfmamba.network import RadarNetwork
from robot_bridge.auxiliary.monitoring.rfmamba.recogniser import RadarRecogniser
from robot_bridge.auxiliary.monitoring.rfmamba.transformer import build_network
from sim_envs.sensors.motions import ACTIVITIES

_TIMED = 10


def contender(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """A method trained on some people and judged on others.

    Figures: `mpjpe_cm`, `mpjpe_free_cm`, `mpjpe_wall_cm`, `root_cm`, `pose_cm`; `accuracy` and `accuracy_ACTIVITY` in percent;
    `train_s`, CPU seconds. Of a network also `body_iou` in percent, `ms_per_window`, `parameters`, and `selection_spearman`: the rank
    correlation of |W| in the first block with frequency.

    Args:
        config: `contender` (network, knn-image, knn-profile, ridge-image, ridge-profile, mean-pose, oracle-root), `data` (people,
            recordings, frames, wall), `test_people`, `settings` (of `RFMambaConfig`).
        seed: of people, cells and training.
        run_dir: of the run; recordings lie beside it.
    """
    settings = RFMambaConfig().override(**config.get("settings", {}))
    made = {"train": derive_seed(seed, "train"), "test": derive_seed(seed, "test")}
    given = {"train": config["data"], "test": {**config["data"], "people": config["test_people"]}}
    train, test = (_recordings(given[part], made[part], run_dir.parent / "data") for part in ("train", "test"))
    begun = time.process_time()
    if config["contender"] == "network":
        windows = train.windows(settings.frames, settings.current)
        network = new_network(windows, settings, seed)
        scale = fit(network, windows, settings, seed=seed)
        spent = time.process_time() - begun
        radar = RadarRecogniser(network, scale, windows.geometry, train.activities, settings.current)
        found = {**evaluate(radar, test), **_of_network(network)}
    else:
        judged = test.windows(settings.frames, settings.current)
        answers = _answers(config["contender"], train, test, judged, settings)
        spent = time.process_time() - begun
        found = pose_figures(answers, judged)
    return {**_readable(found), "train_s": spent}


def latency(config: dict[str, Any], seed: int, run_dir: Path) -> dict[str, Any]:
    """CPU milliseconds of RFMamba and the transformer, untrained, on windows of more and more frames.

    Figures: `KIND_ms_TOKENS`, tokens at the first block; `KIND_exponent`, p of milliseconds ~ tokens^p.

    Args:
        config: `frames` (lengths of windows) and `settings` (of `RFMambaConfig`).
        seed: of weights and echoes.
        run_dir: not used.
    """
    settings = RFMambaConfig().override(**config.get("settings", {}))
    figures: dict[str, Any] = {}
    for kind in ("rfmamba", "transformer"):
        times: dict[int, float] = {}
        for frames in config["frames"]:
            with preserved_rng():
                torch.manual_seed(seed)
                shape, network_config = (frames, 16, 32), settings.network.override(kind=kind)
                network = build_network(shape, network_config, current=frames - 1, activities=len(ACTIVITIES)).eval()
                echo = torch.randn(1, *shape, dtype=torch.complex64)
            tokens = (
                frames
                * (16 // (network_config.patch[0] * network_config.merge[0]))
                * (32 // (network_config.patch[1] * network_config.merge[1]))
            )
            times[tokens] = figures[f"{kind}_ms_{tokens}"] = _milliseconds(network, echo)
        figures[f"{kind}_exponent"] = float(np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0])
    return figures


def _recordings(settings: dict[str, Any], seed: int, place: Path) -> Recordings:
    """Made by the first run that needs them."""
    folder = place / ("-".join(f"{name}{value}" for name, value in sorted(settings.items())) + f"-{seed}")
    if not (folder / HEADER).is_file():
        write_recordings(simulate(**settings, seed=seed), folder, {**settings, "seed": seed})
    return read_recordings(folder)


def _answers(name: str, train: Recordings, test: Recordings, judged: Windows, settings: RFMambaConfig) -> Answers:
    windows = train.windows(settings.frames, settings.current)
    joints, activity = torch.from_numpy(windows.joints), torch.from_numpy(windows.activity)
    if name in ("mean-pose", "oracle-root"):
        make = baselines.mean_pose if name == "mean-pose" else baselines.oracle_root
        return make(joints, torch.from_numpy(judged.joints))
    features = window_profiles if name.endswith("profile") else window_images
    seen, unseen = features(train, settings.frames), features(test, settings.frames)
    seen, unseen = seen.mean(dim=1), unseen.mean(dim=1)
    if name.startswith("knn"):
        return baselines.nearest(seen, joints, activity, unseen)
    people = torch.from_numpy(train.people).repeat_interleave(len(windows) // len(train))
    return baselines.ridge(seen, joints, activity, people, unseen)


def _of_network(network: RadarNetwork) -> dict[str, float]:
    figures = {"parameters": float(sum(parameter.numel() for parameter in network.parameters()))}
    branches = [module for module in network.modules() if isinstance(module, FrequencyBranch) and module.selection is not None]
    if branches:
        assert branches[0].selection is not None
        size = branches[0].selection.detach().norm(dim=-1).mean(dim=1).numpy()
        figures["selection_spearman"] = float(spearmanr(size, np.arange(len(size))).statistic)
    return figures


def _readable(figures: dict[str, float]) -> dict[str, float]:
    """Centimetres and percent."""
    found = {}
    for name, value in figures.items():
        if name.endswith("_m"):
            found[f"{name}".removesuffix("_m") + "_cm"] = 100 * value
        else:
            found[name] = 100 * value if name.startswith("accuracy") or name == "body_iou" else value
    return found


def _milliseconds(network: RadarNetwork, echo: Tensor) -> float:
    times = []
    with torch.no_grad():
        for _ in range(_TIMED):
            begun = time.process_time()
            network(echo)
            times.append(time.process_time() - begun)
    return 1e3 * float(np.median(times))
