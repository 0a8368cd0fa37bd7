"""`armstack doctor DATA --html`."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from rl_core.contract import Action, Channel, RobotContract
from rl_core.data.episode import Dataset, Episode
from rl_core.data.formats import write_dataset
from rl_core.data.recording import EpisodeWriter
from tests.robot_bridge.command_line import Cli

CONTRACT = RobotContract(
    robot="<i>two$axes",
    observation=(
        Channel(name="eef_pos", names=("x$", "y"), unit="m", frame="base"),
        Channel(name="front", kind="image", shape=(8, 6, 3), encoding="rgb8", row_order="bottom_up"),
        Channel(name="depth", kind="image", shape=(6, 6, 1), encoding="mono8", row_order="top_down"),
    ),
    action=Action(names=("x$", "y"), meaning="delta", space="end_effector", scale=(1.0, 1.0), units=("m", "m")),
)


class Page(HTMLParser):
    """Texts of the findings' rows, pictures, and tags."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.pictures: list[str] = []
        self.tags: set[str] = set()
        self._in_cell = False
        self.text = file.read_text()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._in_cell = self._in_cell or tag in ("td", "th")
        if tag == "tr":
            self.rows.append([])
        if tag == "img":
            self.pictures.append(dict(attrs)["src"] or "")

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._in_cell and data.strip():
            self.rows[-1].append(data.strip())


@pytest.fixture
def dataset() -> Dataset:
    episodes = []
    for index in range(5):
        rng = np.random.default_rng(index)
        steps = 10 + index
        episodes.append(
            Episode(
                observations={
                    "eef_pos": rng.normal(size=(steps + 1, 2)).astype(np.float32),
                    "front": rng.integers(0, 256, (steps + 1, 8, 6, 3), dtype=np.uint8),
                    "depth": rng.integers(0, 256, (steps + 1, 6, 6, 1), dtype=np.uint8),
                },
                actions=rng.uniform(-1, 1, (steps, 2)).astype(np.float32),
                rewards=rng.random(steps).astype(np.float32),
                terminal=False,
                truncated=True,
                stamps_ns=np.arange(steps + 1, dtype=np.int64) * 50_000_000,
                uuid=f"episode-{index}",
                success=(True, False, None)[index % 3],
                meta={"gaps": {"/camera": {"received": 11, "lost": index, "dropped": 0}}},
                observation_age_ns={"front": np.full(steps + 1, 20_000_000)},
            )
        )
    return Dataset(contract=CONTRACT, episodes=tuple(episodes))


def test_the_page_shows_findings_first_the_gravest_on_top_then_plots_and_pictures(cli: Cli, dataset: Dataset, tmp_path: Path) -> None:
    actions = dataset.episodes[2].actions.copy()
    actions[4, 0] = 7.5
    spoiled = dataset.episodes[1].actions.copy()
    spoiled[3, 1] = np.nan
    episodes = list(dataset.episodes)
    episodes[1], episodes[2] = replace(episodes[1], actions=spoiled), replace(episodes[2], actions=actions)
    file = write_dataset(replace(dataset, episodes=tuple(episodes)), tmp_path / "a <b>&$ä.hdf5")
    outcome = cli("doctor", file, "--html", tmp_path / "new" / "page.html", "--json")
    assert outcome.status == 1 and outcome.figures["page"] == str(tmp_path / "new" / "page.html")
    page = Page(tmp_path / "new" / "page.html")
    assert "b" not in page.tags and "i" not in page.tags and "a &lt;b&gt;&amp;$ä.hdf5" in page.text
    levels = [row[1] for row in page.rows if len(row) > 1 and row[1] in ("error", "warning", "ok")]
    assert levels == sorted(levels, key=("error", "warning", "ok").index) and levels.count("error") == 1
    assert [row[:3] for row in page.rows[1:2]] == [["finite", "error", "NaN or infinity: {'action.y': 1}"]]
    assert "Training refuses this dataset" in page.text and "x$ 1 times (up to 7.5)" in page.text
    assert ["/camera", "55", "10", "0"] in page.rows and ["front", "20.0", "20.0", "20.0", "200", "20"] in page.rows
    # three plots; two cameras of the first, middle and last episode
    assert len(page.pictures) == 3 + 2 * 3 and all(picture.startswith("data:image/png;base64,") for picture in page.pictures)
    assert all(f"episode-{index}" in page.text for index in (0, 2, 4)) and "episode-1" not in page.text
    assert "http" not in page.text


def test_the_page_of_nothing_says_so(cli: Cli, tmp_path: Path) -> None:
    EpisodeWriter(tmp_path / "empty", CONTRACT)
    outcome = cli("doctor", tmp_path / "empty", "--html", tmp_path / "page.html")
    page = Page(tmp_path / "page.html")
    assert outcome.status == 1 and page.rows[1][:3] == ["counts", "error", "no transitions in 0 episodes"] and not page.pictures


@pytest.mark.parametrize("target", [None, "armstack/Reach-v0"])
def test_a_page_of_what_is_no_dataset_is_refused(cli: Cli, tmp_path: Path, target: str | None) -> None:
    outcome = cli("doctor", *([target] if target else []), "--html", tmp_path / "page.html")
    assert outcome.status == 2 and "valid with a dataset" in outcome.err and not (tmp_path / "page.html").exists()


def test_a_page_that_cannot_be_written_is_refused_before_anything_is_read(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "damaged.hdf5").write_bytes(b"no HDF5")
    outcome = cli("doctor", tmp_path / "damaged.hdf5", "--html", tmp_path)
    assert outcome.status == 2 and "is a folder" in outcome.err
    outcome = cli("doctor", tmp_path / "damaged.hdf5", "--html", tmp_path / "page.html")
    assert outcome.status == 2 and "damaged.hdf5" in outcome.err and not (tmp_path / "page.html").exists()
    outcome = cli("doctor", tmp_path / "nothing.hdf5", "--html", tmp_path / "page.html")
    assert outcome.status == 2 and "no such dataset" in outcome.err
