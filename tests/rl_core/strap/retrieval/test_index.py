import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from rl_core.data.formats import write_dataset
from rl_core.data.recording import EpisodeWriter
from rl_core.strap.corpus import find_datasets
from rl_core.strap.embedding import Embedding, StateEmbedder
from rl_core.strap.index import Index, IndexWriter
from rl_core.strap.indexing import build_index
from rl_core.strap.sdtw import RetrievalError
from tests.rl_core.strap.retrieval.demos import CONTRACT, corpus

STATE = Embedding(features="state")


def filled(folder: Path, count: int = 5, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=(int(rng.integers(3, 20)), 6)).astype(np.float16) for _ in range(count)]
    with IndexWriter(folder, 6, {"features": "made up"}) as writer:
        for number, array in enumerate(arrays):
            writer.add(array, demo=f"demo_{number}", lang="go")
    return arrays


def test_what_was_added_is_read_back_and_grows(tmp_path: Path) -> None:
    arrays = filled(tmp_path) + filled(tmp_path, 3, seed=1)
    index = Index(tmp_path)
    index.verify()
    assert len(index) == 8 and index.lengths.tolist() == [len(array) for array in arrays]
    for number, array in enumerate(arrays):
        np.testing.assert_array_equal(index.block(number, number + 1), array)
    np.testing.assert_array_equal(index.block(2, 7), np.concatenate(arrays[2:7]))
    assert index.trajectories[5].demo == "demo_0" and index.trajectories[5].lang == "go"


def test_what_a_crash_left_is_cut_off_and_the_index_goes_on(tmp_path: Path) -> None:
    arrays = filled(tmp_path)
    table = (tmp_path / "trajectories.txt").read_bytes()
    (tmp_path / "trajectories.txt").write_bytes(table[:-20])  # the last line was not whole on the disk
    with open(tmp_path / "features.f16", "ab") as file:
        file.write(b"abc")
    assert len(Index(tmp_path)) == 4
    more = filled(tmp_path, 2, seed=3)
    index = Index(tmp_path)
    index.verify()
    np.testing.assert_array_equal(index.block(0, 6), np.concatenate(arrays[:4] + more))


def test_damage_is_named(tmp_path: Path) -> None:
    filled(tmp_path)
    features, table, header = (tmp_path / name for name in ("features.f16", "trajectories.txt", "index.json"))
    whole = {file: file.read_bytes() for file in (features, table, header)}

    def spoil(file: Path, data: bytes, words: str) -> None:
        for other, content in whole.items():
            other.write_bytes(content)
        file.write_bytes(data)
        with pytest.raises(RetrievalError, match=words):
            Index(tmp_path).verify()

    flipped = bytearray(whole[features])
    flipped[40] ^= 1
    spoil(features, bytes(flipped), "features.f16: damaged: trajectory 0 .* another checksum")
    spoil(features, whole[features][:-2], "features.f16: truncated")
    spoil(table, whole[table].replace(b'"demo_1"', b'"demo_9"'), "trajectories.txt: line 2 is damaged")
    spoil(header, b"{", "index.json: not readable")
    version = json.loads(whole[header]) | {"format_version": 9}
    spoil(header, json.dumps(version).encode(), "format_version 9; this Armstack reads version 1")
    with pytest.raises(RetrievalError, match="no index.json"):
        Index(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (np.zeros((3, 5)), r"shape \(3, 5\), valid: \(1 frame or more, 6\)"),
        (np.zeros((0, 6)), "valid: .1 frame or more"),
        (np.full((3, 6), 1e6), "features up to 1e.06; valid: finite, within half precision"),
        (np.full((3, 6), np.nan), "valid: finite"),
    ],
)
def test_features_that_do_not_fit_are_refused(tmp_path: Path, features, words) -> None:
    with IndexWriter(tmp_path, 6, {}) as writer, pytest.raises(RetrievalError, match=words):
        writer.add(features, demo="demo_3")
    assert len(Index(tmp_path)) == 0


def test_two_writers_and_other_features_are_refused(tmp_path: Path) -> None:
    with IndexWriter(tmp_path, 6, {"a": 1}):
        with pytest.raises(RetrievalError, match="another process is writing"):
            IndexWriter(tmp_path, 6, {"a": 1})
    with pytest.raises(RetrievalError, match="an index of other features"):
        IndexWriter(tmp_path, 6, {"a": 2})


def test_a_stopped_build_goes_on_and_embeds_nothing_twice(tmp_path: Path, monkeypatch) -> None:
    data = corpus()
    write_dataset(data, tmp_path / "corpus" / "first.hdf5")
    writer = EpisodeWriter(tmp_path / "corpus" / "recorded", CONTRACT)
    for number, episode in enumerate(data.episodes[:3]):
        writer.write(dataclasses.replace(episode, uuid=f"recorded-{number}"))
    assert len(find_datasets([tmp_path / "corpus"])) == 2

    embedded = []
    embed = StateEmbedder.embed

    def stop_at_seven(self, episode, contract):
        if len(embedded) == 7:
            raise KeyboardInterrupt
        embedded.append(episode.uuid)
        return embed(self, episode, contract)

    monkeypatch.setattr(StateEmbedder, "embed", stop_at_seven)
    with pytest.raises(KeyboardInterrupt):
        build_index([tmp_path / "corpus"], tmp_path / "index", STATE)
    assert len(Index(tmp_path / "index")) == 7
    monkeypatch.setattr(StateEmbedder, "embed", lambda self, *given: embedded.append(given[0].uuid) or embed(self, *given))
    told = []
    index, _ = build_index([tmp_path / "corpus"], tmp_path / "index", STATE, lambda done, total: told.append((done, total)))
    assert len(embedded) == len(set(embedded)) == len(index) == 15
    assert told[0] == (7, 15) and told[-1] == (15, 15)
    index.verify()

    straight, _ = build_index([tmp_path / "corpus"], tmp_path / "other", STATE)
    np.testing.assert_array_equal(index.block(0, 15), straight.block(0, 15))
    assert index.trajectories == straight.trajectories
    with pytest.raises(RetrievalError, match=r"channels \['gripper_pos', 'eef_pos'\]|another embedder"):
        build_index([tmp_path / "corpus"], tmp_path / "index", Embedding(features="state", channels=("gripper_pos",)))
