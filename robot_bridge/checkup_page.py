"""The page of `armstack doctor DATA --html`: findings first, then what they were read from, to be looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rl_core.contract import Channel
from rl_core.data.checkup import CheckReport
from rl_core.data.episode import Dataset, Episode
from robot_bridge.pages import figure_uri, film_strip_uri, render_page

WHY = {
    "reading": "What the file doesn't say had to be assumed.",
    "channels": "A policy's input is the same list of numbers in every step.",
    "counts": "How much there is to learn from.",
    "finite": "One NaN makes every weight NaN.",
    "quaternions": "An orientation whose length isn't 1 is none.",
    "stamps": "Speeds come from stamps; time runs forwards.",
    "rate": "At another rate than recorded, the arm moves at the wrong speed.",
    "age": "An old picture shows where things were.",
    "gaps": "What the recorder missed is not in the data.",
    "constant": "A number that never changes teaches nothing.",
    "ranges": "Degrees for radians, or an open gripper for a closed one, are seen here.",
    "actions": "Policies act within [-1, 1], times the contract's scale.",
    "angles": "An angle that jumps from pi to -pi looks like a whole turn.",
    "idle": "From pauses a policy learns to pause.",
    "pictures": "A covered, unplugged or frozen camera shows nothing.",
    "endings": "A time limit isn't the end of the task: the value beyond it counts.",
    "success": "Whom to imitate.",
    "training": "What training says to this dataset.",
}
"""Subject of a finding -> why it is looked at."""

_ORDER = ("error", "warning", "ok")
_SHOWN_EPISODES = 3
_STRIP_HEIGHT = 200
_BINS = 50


def write_checkup_page(dataset: Dataset, report: CheckReport, file: Path, *, name: str) -> Path:
    """Writes the page of `report` on `dataset` to `file`; `name` is what the dataset is called in its title."""
    findings = sorted(report.findings, key=lambda finding: _ORDER.index(finding.level))
    complete = dataset.steps > 0 and "dimensions" in report.figures
    return render_page(
        "checkup.html",
        file,
        title=f"Checkup of {name}",
        subtitle=f"{dataset.contract.robot}: {len(dataset)} episodes, {dataset.steps} steps",
        trainable=report.trainable,
        counts={level: sum(finding.level == level for finding in findings) for level in _ORDER},
        findings=[{"why": WHY.get(finding.subject, ""), **vars(finding)} for finding in findings],
        figures=report.figures,
        plots=_plots(dataset, report.figures) if complete else [],
        dimensions=_dimensions(dataset, report.figures) if complete else [],
        episodes=_pictures(dataset) if complete else [],
    )


def _plots(dataset: Dataset, figures: dict[str, Any]) -> list[dict[str, str]]:
    """Title, explanation and picture of each plot."""
    import matplotlib

    matplotlib.use("Agg")
    return [
        {"title": "Time between observations", "about": "One peak at the dashed line is a steady source.", "uri": _time_plot(dataset)},
        {"title": "Episodes", "about": "In the order of the dataset.", "uri": _episode_plot(dataset, figures)},
        {
            "title": "Actions",
            "about": "Thin: smallest to largest. Thick: 5 to 95 %. Beyond the grey range a policy cannot act.",
            "uri": _action_plot(dataset),
        },
    ]


def _time_plot(dataset: Dataset) -> str:
    from matplotlib import pyplot

    gaps_ms = np.concatenate([np.diff(episode.stamps_ns) for episode in dataset.episodes]) * 1e-6
    declared_ms = dataset.contract.action.period_s * 1e3
    # a steady source has one width of bin around its period, not numerical noise over the whole axis
    low, high = min(gaps_ms.min(), 0.5 * declared_ms), max(gaps_ms.max(), 1.5 * declared_ms)
    figure, axis = pyplot.subplots(figsize=(9.5, 2.4), constrained_layout=True)
    axis.hist(gaps_ms, bins=_BINS, range=(low, high), log=True, color="#3b6ea5")
    axis.axvline(declared_ms, color="black", linestyle="--", label=f"declared: {declared_ms:.4g} ms")
    axis.set_xlabel("ms")
    axis.set_ylabel("steps")
    axis.legend()
    return figure_uri(figure)


def _episode_plot(dataset: Dataset, figures: dict[str, Any]) -> str:
    from matplotlib import pyplot

    colours = {True: "#2a9d5c", False: "#c8553d", None: "#3b6ea5"}
    words = {True: "success", False: "failure", None: "success not recorded"}
    rows: list[tuple[str, list[float]]] = [
        ("steps", [len(episode) for episode in dataset.episodes]),
        ("return", [episode.episode_return for episode in dataset.episodes]),
    ]
    if figures.get("idle_at_start"):
        rows.append(("idle at start", [float(count) for count in figures["idle_at_start"]]))
    figure, axes = pyplot.subplots(len(rows), 1, figsize=(9.5, 1.6 * len(rows)), sharex=True, constrained_layout=True)
    outcomes = [None if episode.success is None else bool(episode.success) for episode in dataset.episodes]
    for axis, (label, values) in zip(axes, rows, strict=True):
        if len(values) < len(outcomes):  # episodes without a step have no idle ones
            axis.plot(values, ".", color=colours[None], clip_on=False)
        else:
            for outcome in dict.fromkeys(outcomes):
                chosen = [index for index, found in enumerate(outcomes) if found == outcome]
                axis.plot(chosen, [values[index] for index in chosen], ".", color=colours[outcome], label=words[outcome], clip_on=False)
        axis.set_ylabel(label)
        axis.set_ylim(bottom=min(0, *np.nan_to_num(values)))
    axes[0].legend(fontsize=8, loc="lower right")
    axes[-1].set_xlabel("episode")
    return figure_uri(figure)


def _action_plot(dataset: Dataset) -> str:
    from matplotlib import pyplot

    names = dataset.contract.action.names
    actions = np.concatenate([episode.actions for episode in dataset.episodes])
    actions = np.where(np.isfinite(actions), actions, np.nan)
    low, p5, p50, p95, high = (np.nan_to_num(row) for row in _percentiles(actions))
    places = np.arange(len(names))
    figure, axis = pyplot.subplots(figsize=(9.5, 0.5 + 0.3 * len(names)), constrained_layout=True)
    axis.axvspan(-1, 1, color="#eef1f4")
    axis.hlines(places, low, high, color="#3b6ea5", linewidth=1)
    axis.hlines(places, p5, p95, color="#3b6ea5", linewidth=6)
    axis.plot(p50, places, "|", color="black")
    axis.set_yticks(places, names, parse_math=False)  # names may hold a $
    axis.invert_yaxis()
    return figure_uri(figure)


def _percentiles(values: np.ndarray) -> np.ndarray:
    finite = [column[np.isfinite(column)] for column in values.T]
    return np.array([np.percentile(column, [0, 5, 50, 95, 100]) if len(column) else np.zeros(5) for column in finite]).T


def _dimensions(dataset: Dataset, figures: dict[str, Any]) -> list[dict[str, Any]]:
    units = {f"{channel.name}.{name}": channel.unit for channel in dataset.contract.low_dimensional for name in channel.names}
    rows = []
    for name, of in figures["dimensions"].items():
        notes = ["never changes"] if name in figures["constant"] else []
        notes += [f"{figures['not_finite'][name]} not finite"] if name in figures["not_finite"] else []
        notes += [f"{figures['outside_range'][name]['rows']} out of range"] if name in figures["outside_range"] else []
        outside = figures["actions_outside"].get(name.removeprefix("action."), 0) if name.startswith("action.") else 0
        notes += [f"{outside} outside [-1, 1]"] if outside else []
        notes += [f"{figures['angle_jumps'][name]} jumps"] if name in figures["angle_jumps"] else []
        rows.append({"name": name, "unit": units.get(name, ""), "notes": ", ".join(notes), **of})
    return rows


def _pictures(dataset: Dataset) -> list[dict[str, Any]]:
    """First, middle and last picture of every camera, of the first, middle and last episode."""
    cameras = [channel for channel in dataset.contract.observation if channel.kind == "image"]
    if not cameras:
        return []
    chosen = sorted(set(np.linspace(0, len(dataset) - 1, min(_SHOWN_EPISODES, len(dataset))).astype(int).tolist()))
    episodes = [(index, dataset.episodes[index]) for index in chosen]
    return [
        {
            "index": index,
            "uuid": episode.uuid,
            "strips": [{"name": c.name, "about": f"{c.encoding}, {c.row_order}", "uri": _strip(episode, c)} for c in cameras],
        }
        for index, episode in episodes
    ]


def _strip(episode: Episode, camera: Channel) -> str:
    frames = np.asarray(episode.observations[camera.name])
    frames = frames[np.linspace(0, len(frames) - 1, min(3, len(frames))).astype(int)]
    step = max(1, -(-frames.shape[1] // _STRIP_HEIGHT))
    frames = frames[:, ::step, ::step]
    return film_strip_uri(frames[:, ::-1] if camera.row_order == "bottom_up" else frames, count=3)
