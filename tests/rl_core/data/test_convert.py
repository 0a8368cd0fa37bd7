"""What is lost is said before, what lies in the way stays, and what was written is compared."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rl_core.contract import Channel
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.fingerprint import fingerprint
from rl_core.data.formats import EpisodeFolderFormat, RobomimicFormat, format_named, read_dataset, write_dataset
from rl_core.data.formats import convert as convert_module
from rl_core.data.formats.convert import choose_writer, convert, require_place, save
from rl_core.data.staging import staged


@pytest.fixture
def pictured(make_dataset):
    """Two episodes with a camera."""
    dataset = make_dataset((2, 3))
    channel = Channel(name="wrist", kind="image", shape=(4, 4, 3), encoding="rgb8", row_order="top_down")
    episodes = [replace(e, observations={**e.observations, "wrist": np.ones((len(e) + 1, 4, 4, 3), np.uint8)}) for e in dataset.episodes]
    contract = replace(dataset.contract, observation=(*dataset.contract.observation, channel))
    return Dataset(contract=contract, episodes=tuple(episodes))


def test_a_conversion_keeps_the_fingerprint_and_says_what_it_does(tmp_path, make_dataset):
    dataset = make_dataset((6, 3))
    source = write_dataset(dataset, tmp_path / "in.hdf5")
    said = []
    written = convert(source, tmp_path / "new" / "folder", progress=said.append)
    assert written.fingerprint == fingerprint(dataset) == fingerprint(read_dataset(tmp_path / "new/folder"))
    assert (written.format, written.episodes, written.steps, written.lost) == ("folder", 2, 9, {})
    assert {"contract", "rewards", "meta"} <= set(written.kept) and "pixels" not in written.kept
    assert [text.split()[0] for text in said] == ["reading", "writing", "reading"]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["folder"]  # nothing else is left


def test_a_loss_has_to_be_named(tmp_path, pictured):
    source = write_dataset(pictured, tmp_path / "in.hdf5")
    out = tmp_path / "out.hdf5"
    with pytest.raises(DatasetError, match=r"d4rl cannot hold pixels \(image channels are left out\).*--allow-loss pixels"):
        convert(source, out, format="d4rl")
    with pytest.raises(DatasetError, match="--allow-loss pictures: no such field, valid: contract, uuid"):
        convert(source, out, format="d4rl", allow_loss=["pictures"])
    assert not out.exists()
    written = convert(source, out, format="d4rl", allow_loss=["pixels"])
    assert written.lost == {"pixels": "image channels are left out"} and "wrist" not in read_dataset(out).episodes[0].observations


def test_what_the_data_do_not_use_is_no_loss(tmp_path, make_dataset):
    source = write_dataset(make_dataset((6, 3)), tmp_path / "in.hdf5")
    assert convert(source, tmp_path / "out.hdf5", format="d4rl").lost == {}


def test_only_a_dataset_is_ever_replaced_and_only_when_asked(tmp_path, make_dataset):
    source = write_dataset(make_dataset((6, 3)), tmp_path / "in.hdf5")
    out = tmp_path / "out.hdf5"
    out.write_text("a thesis")
    with pytest.raises(DatasetError, match="exists already; a dataset is replaced with --overwrite"):
        convert(source, out)
    with pytest.raises(DatasetError, match="is not a dataset that can be read, so it is not replaced"):
        convert(source, out, overwrite=True)
    assert out.read_text() == "a thesis"
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "thesis.txt").write_text("a thesis")
    with pytest.raises(DatasetError, match="is not a dataset"):
        convert(source, papers, overwrite=True)
    with pytest.raises(DatasetError, match="is not a folder of episodes"):
        write_dataset(read_dataset(source), papers, format="folder")
    assert (papers / "thesis.txt").read_text() == "a thesis"
    write_dataset(make_dataset((2,)), tmp_path / "older", format="folder")
    assert convert(source, tmp_path / "older", overwrite=True).episodes == 2
    assert len(read_dataset(tmp_path / "older")) == 2
    # a file in place of a folder, and the other way round
    assert convert(source, tmp_path / "older", format="robomimic", overwrite=True).format == "robomimic" and (tmp_path / "older").is_file()
    assert convert(source, tmp_path / "older", format="folder", overwrite=True).format == "folder" and (tmp_path / "older").is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.hdf5", "older", "out.hdf5", "papers"]


def test_a_dataset_is_not_replaced_by_what_lies_in_it(tmp_path, make_dataset):
    folder = write_dataset(make_dataset((6, 3)), tmp_path / "folder", format="folder")
    inside = next(folder.glob("*.hdf5"))
    with pytest.raises(DatasetError, match=f"would be replaced, and {inside} in it"):
        require_place(folder, overwrite=True, sources=[inside])


def test_a_dataset_is_not_replaced_by_a_part_of_itself(tmp_path, make_dataset):
    folder = write_dataset(make_dataset((6, 3)), tmp_path / "folder", format="folder")
    (tmp_path / "other name").symlink_to(folder)
    for source in (folder, tmp_path / "other name", tmp_path / "folder" / ".." / "folder"):
        with pytest.raises(DatasetError, match="is the dataset that is read, so it is not replaced"):
            require_place(folder, overwrite=True, sources=[source])


def test_a_folder_is_no_bag_because_a_bag_lies_in_it(tmp_path, make_dataset):
    data = tmp_path / "data"
    source = write_dataset(make_dataset((4,)), data / "lift.hdf5")
    convert(source, data / "lift.mcap")
    convert(source, data / "again.hdf5")
    require_place(data / "more", overwrite=False)


class Forgetful(RobomimicFormat):
    """A writer that loses something unsaid."""

    cannot_hold: Mapping[str, str] = {}

    def write(self, dataset: Dataset, path: Path) -> None:
        super().write(replace(dataset, episodes=(dataset.episodes[0], replace(dataset.episodes[1], success=None))), path)


def test_a_writer_that_loses_something_unsaid_is_found_out(tmp_path, make_dataset):
    out = write_dataset(make_dataset((2,)), tmp_path / "out.hdf5")
    before = out.read_bytes()
    with pytest.raises(DatasetError, match=r"differs from what was written.*2 and 2 episodes, of which differ: \['lift-0-00001'\]"):
        save(make_dataset((6, 3)), out, Forgetful())
    assert out.read_bytes() == before and [path.name for path in tmp_path.iterdir()] == ["out.hdf5"]


def test_the_ending_says_the_format_and_a_name_decides(tmp_path):
    endings = {"a.hdf5": "robomimic", "a.h5": "robomimic", "a": "folder", "a.mat": "lasa", "a.mcap": "mcap"}
    assert {name: choose_writer(tmp_path / name).name for name in endings} == endings
    assert choose_writer(tmp_path / "a.hdf5", "d4rl") is format_named("d4rl")
    with pytest.raises(DatasetError, match=r"ending '.zarr' says no format, valid: .*\.hdf5.*or name one with --format: folder, robomimic"):
        choose_writer(tmp_path / "a.zarr")
    with pytest.raises(DatasetError, match="format 'zarr', valid: folder, robomimic"):
        choose_writer(tmp_path / "a.hdf5", "zarr")


def test_among_several_formats_of_an_ending_one_has_to_be_named(tmp_path, monkeypatch):
    class Other(EpisodeFolderFormat):
        name = "other"

    monkeypatch.setattr(convert_module, "FORMATS", (EpisodeFolderFormat(), Other()))
    with pytest.raises(DatasetError, match="name one with --format: folder, other"):
        choose_writer(tmp_path / "a")


def test_what_is_staged_takes_its_place_whole_or_not_at_all(tmp_path):
    path = tmp_path / "data"
    path.mkdir()
    (path / "old").touch()
    with pytest.raises(RuntimeError, match="in the middle"), staged(path) as part:
        part.mkdir()
        (part / "new").touch()
        raise RuntimeError("in the middle")
    assert [file.name for file in path.iterdir()] == ["old"]
    with pytest.raises(FileNotFoundError), staged(path) as part:
        pass  # nothing was written
    assert [file.name for file in path.iterdir()] == ["old"]
    with staged(path) as part:
        assert part.name == "data" and tmp_path in part.parents
        part.mkdir()
        (part / "new").touch()
    assert [file.name for file in path.iterdir()] == ["new"] and [file.name for file in tmp_path.iterdir()] == ["data"]


def test_a_folder_with_other_things_in_it_is_not_replaced(tmp_path: Path, make_dataset: Callable[..., Dataset]) -> None:
    folder = write_dataset(make_dataset((3,)), tmp_path / "lift", "folder")
    (folder / "notes.txt").write_text("mine")
    source = write_dataset(make_dataset((4,)), tmp_path / "other.hdf5")
    with pytest.raises(DatasetError, match=r"holds more than a dataset, notes\.txt"):
        convert(source, folder, overwrite=True)
    assert (folder / "notes.txt").read_text() == "mine" and len(read_dataset(folder).episodes[0]) == 3


@pytest.mark.parametrize(
    ("place", "message"), [("lift/good.hdf5", "lies in the dataset"), ("other.hdf5/x", "is a file"), ("lasa:Angle", "LASA's shapes")]
)
def test_places_that_would_spoil_something_are_refused(
    tmp_path: Path, make_dataset: Callable[..., Dataset], monkeypatch: pytest.MonkeyPatch, place: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_dataset(make_dataset((3,)), tmp_path / "lift", "folder")
    source = write_dataset(make_dataset((4,)), tmp_path / "other.hdf5")
    with pytest.raises(DatasetError, match=message):
        convert(source, Path(place), format="robomimic")
