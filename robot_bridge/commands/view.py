"""`armstack view DATASET`: an HTML page of episodes, to look at rather than to read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.progress import track

from rl_core.data.episode import Dataset, DatasetError, Episode
from robot_bridge.commands.output import console, emit_json
from robot_bridge.demonstrations import read_demonstrations
from robot_bridge.output_places import check_page
from robot_bridge.pages import figure_uri, film_strip_uri, render_page


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Make an HTML page of a dataset's episodes: pictures where there are any, every channel and the actions over time.

    Requested actions are drawn solid; where the command filter let through something else, that is drawn dashed.
    """

    dataset: Annotated[Path, tyro.conf.Positional]
    """HDF5 file or folder of episodes."""
    out: Path = Path("episodes.html")
    """The page to write."""
    episodes: tuple[int, ...] = ()
    """Which episodes; none = the first five."""
    json: bool = False
    """Print one JSON object on the last line."""


def _plot(dataset: Dataset, episode: Episode) -> str:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot, ticker

    channels = [c for c in dataset.contract.low_dimensional if c.name in episode.observations]
    rows = len(channels) + 2
    # places are given and ticks few: working them out takes matplotlib longer than drawing
    figure = pyplot.figure(figsize=(9.5, 1.5 * rows))
    height = 1 / (rows + 0.4)
    axes = [figure.add_axes((0.1, 1 - (row + 0.95) * height, 0.88, 0.85 * height)) for row in range(rows)]
    seconds = (episode.stamps_ns - episode.stamps_ns[0]) / 1e9
    for axis in axes:
        axis.yaxis.set_major_locator(ticker.MaxNLocator(3))
        axis.xaxis.set_visible(axis is axes[-1])
        axis.set_xlim(seconds[0], seconds[-1])
    for axis, channel in zip(axes, channels, strict=False):
        lines = axis.plot(seconds, np.reshape(episode.observations[channel.name], (len(episode) + 1, -1)))
        axis.set_ylabel(f"{channel.name}\n[{channel.unit}]", fontsize=8)
        axis.legend(lines, channel.names, fontsize=6, loc="upper right", ncols=4)
    lines = axes[-2].plot(seconds[:-1], episode.actions)
    if episode.action_applied is not None:
        axes[-2].set_prop_cycle(None)
        axes[-2].plot(seconds[:-1], episode.action_applied, linestyle="--", linewidth=0.8)
    axes[-2].set_ylabel("action", fontsize=8)
    axes[-2].legend(lines, dataset.contract.action.names, fontsize=6, loc="upper right", ncols=4)
    axes[-1].plot(seconds[:-1], episode.rewards)
    axes[-1].set_ylabel("reward", fontsize=8)
    axes[-1].set_xlabel("s")
    return figure_uri(figure)


def _describe(dataset: Dataset, index: int) -> dict[str, Any]:
    episode = dataset.episodes[index]
    images = [c.name for c in dataset.contract.observation if c.kind == "image" and c.name in episode.observations]
    return {
        "index": index,
        "uuid": episode.uuid,
        "steps": len(episode),
        "seconds": (episode.stamps_ns[-1] - episode.stamps_ns[0]) / 1e9,
        "return_sum": episode.episode_return,
        "success": {True: "yes", False: "no", None: "unknown"}[episode.success],
        "meta": json.dumps(dict(episode.meta)) if episode.meta else "",
        "strips": [{"name": name, "uri": film_strip_uri(episode.observations[name])} for name in images],
        "plot": _plot(dataset, episode),
    }


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack view")
    dataset = read_demonstrations(arguments.dataset)
    if not len(dataset):
        raise DatasetError(f"{arguments.dataset}: holds no finished episode")
    chosen = arguments.episodes or tuple(range(min(5, len(dataset))))
    wrong = [index for index in chosen if not 0 <= index < len(dataset)]
    if wrong:
        raise DatasetError(f"{arguments.dataset}: no episode {wrong}; valid: 0..{len(dataset) - 1}")
    known = [episode.success for episode in dataset.episodes if episode.success is not None]
    summary = {
        "episodes": len(dataset),
        "steps": dataset.steps,
        "success": f"{sum(known)} of {len(known)}" if known else "unknown",
        "return_mean": float(np.mean([episode.episode_return for episode in dataset.episodes])),
    }
    check_page(arguments.out, "--out")
    pages = [_describe(dataset, index) for index in track(chosen, "drawing", console=console)]
    page = render_page(
        "episodes.html",
        arguments.out,
        title=f"Episodes of {arguments.dataset.name}",
        subtitle=dataset.contract.robot,
        summary=summary,
        episodes=pages,
    )
    console.print(f"wrote {page}")
    if arguments.json:
        emit_json({"page": str(page), **summary})
    return 0
