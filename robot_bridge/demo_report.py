"""The demo's report: one HTML page with the figures, curves and the video inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rl_core.bundle import bundle_sha256
from rl_core.data.episode import Dataset
from rl_core.training.metrics import read_metrics
from robot_bridge.pages import figure_uri, file_uri, render_page

NAMES = {"bc": "BC", "bc_best_half": "BC on the best half", "dac": "DAC"}


def _success_plot(results: Sequence[Mapping[str, Any]]) -> str:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 2.6), layout="constrained")
    labels = [f"{row['policy']}\n{row['world']}" for row in results]
    rates = np.array([row["success_rate"] for row in results])
    bounds = np.array([row["success_ci95"] for row in results]).T
    axes.bar(labels, 100 * rates, yerr=100 * np.clip(np.abs(bounds - rates), 0, None), capsize=5, color="#4878a8")
    axes.set(ylabel="success [%]", ylim=(0, 105))
    axes.grid(axis="y", alpha=0.3)
    return figure_uri(figure)


def _curves(folder: Path, methods: Sequence[str]) -> str:
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(methods), figsize=(5 * len(methods), 3), layout="constrained", squeeze=False)
    for axes, method in zip(panels[0], methods, strict=True):
        rows = read_metrics(folder / method)
        for name in sorted({key for row in rows for key in row if key.startswith("loss/")}):
            points = [(row["step"], row[name]) for row in rows if name in row]
            axes.plot(*zip(*points, strict=True), label=name)
        axes.set(title=NAMES[method], xlabel="updates")
        axes.legend(fontsize=8)
        axes.grid(alpha=0.3)
    return figure_uri(figure)


def _data_rows(dataset: Dataset) -> list[dict[str, Any]]:
    groups: dict[str, list[Any]] = {}
    for episode in dataset.episodes:
        groups.setdefault(str(episode.meta.get("skill", "demonstrations")), []).append(episode)
    rows = []
    for name, episodes in {**groups, "together": list(dataset.episodes)}.items():
        known = [episode.success for episode in episodes if episode.success is not None]
        success = f"{100 * np.mean(known):.0f} %" if known else "unknown"
        rows.append(
            {
                "name": name,
                "episodes": len(episodes),
                "success": success,
                "return_mean": float(np.mean([e.episode_return for e in episodes])),
            }
        )
    return rows


def latency_rows(latency: Mapping[str, Mapping[str, float]]) -> list[dict[str, str]]:
    """Stage -> {p50, p95, p99} in milliseconds, as the page shows it."""
    return [{"stage": stage, **{p: f"{values[p]:.2f}" for p in ("p50", "p95", "p99")}} for stage, values in latency.items()]


def write_report(
    folder: Path,
    *,
    task: str,
    dataset: Dataset,
    results: Sequence[Mapping[str, Any]],
    methods: Sequence[str],
    latency: Mapping[str, Mapping[str, float]],
    deadline: str,
    video: Path | None,
    no_video: str,
    budget: Sequence[Mapping[str, Any]],
    bundle: Path,
    recording: str | Path,
) -> Path:
    """Writes `folder/report.html`.

    Args:
        results: one row a judged policy: policy, world and the figures of an evaluation.
        latency: stage -> p50, p95, p99 in milliseconds.
        deadline: a sentence on missed deadlines.
        no_video: why there is none, where `video` is None.
        budget: rows of `Steps.rows`.
        recording: the bag of the ROS 2 episodes.
    """
    import matplotlib

    matplotlib.use("Agg")
    return render_page(
        "demo.html",
        folder / "report.html",
        title="Armstack demo",
        subtitle=f"{len(dataset)} demonstrations of {task}, trained offline, run through ROS 2",
        task=task,
        results=results,
        success_plot=_success_plot(results),
        curves=_curves(folder, methods),
        latency=latency_rows(latency),
        deadline=deadline,
        video=file_uri(video) if video is not None else None,
        no_video=no_video,
        data=_data_rows(dataset),
        budget=budget,
        bundle=bundle,
        sha256=bundle_sha256(bundle),
        recording=recording,
    )
