"""What readers of others' files say they made up, or could not keep."""

from __future__ import annotations

import logging
from pathlib import Path

import h5py
import numpy as np
import pytest

from rl_core.data.damage import describe
from rl_core.data.episode import DatasetError
from rl_core.data.formats import convert as convert_module
from rl_core.data.formats import read_dataset, write_dataset
from rl_core.data.formats.convert import convert
from rl_core.data.formats.reader_notes import is_narrowed, listening
from tests.rl_core.data.test_d4rl_format import d4rl_file
from tests.rl_core.data.test_robomimic_format import robomimic_file


def test_numbers_that_float32_changes_are_named_and_others_are_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = robomimic_file(tmp_path / "wide.hdf5", (3, 4))
    read_dataset(file)
    (said,) = [record.getMessage() for record in caplog.records if "read as float32" in record.getMessage()]
    assert said.startswith(f"{file}: read as float32, which changes digits of ") and "robot0_joint_pos_cos" in said and "actions" in said
    assert "rewards" not in said  # 0 and 1
    caplog.clear()
    with h5py.File(file, "r+") as opened:
        for demo in opened["data"].values():
            for group, names in ((demo["obs"], list(demo["obs"])), (demo, ["actions"])):
                for name in names:
                    group[name][...] = group[name][()].astype(np.float32)
    read_dataset(file)
    assert "read as float32" not in caplog.text


def test_what_counts_as_narrowed() -> None:
    assert is_narrowed(np.array([0.1])) and is_narrowed(np.array([2**24 + 1])) and is_narrowed(np.array([1e300]))
    assert not is_narrowed(np.array([0.5, np.nan, np.inf])) and not is_narrowed(np.array([2**24])) and not is_narrowed(np.float32([0.1]))
    assert not is_narrowed(np.array([255], np.uint8)) and not is_narrowed(np.array([True]))


def test_a_conversion_says_that_a_contract_was_inferred(tmp_path: Path, make_dataset) -> None:
    written = convert(d4rl_file(tmp_path / "in.hdf5"), tmp_path / "out.hdf5")
    assert "neutral names" in written.as_read["contract"] and "precision" not in written.as_read
    again = convert(tmp_path / "out.hdf5", tmp_path / "folder")
    assert again.as_read == {} and "contract" in again.kept


def test_a_format_that_cannot_hold_the_contract_says_so_before_anything_is_read(
    tmp_path: Path, make_dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, folder = write_dataset(make_dataset(), tmp_path / "in.hdf5"), write_dataset(make_dataset(), tmp_path / "in", "folder")
    monkeypatch.setattr(convert_module, "read_dataset", lambda path: pytest.fail("it was read"))
    for source in (file, folder):
        with pytest.raises(DatasetError, match="LASA holds motions in the plane only"):
            convert(source, tmp_path / "out.mat")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyError("contract"), "'contract' is missing"),
        (TypeError("'int' object is not subscriptable"), "not built as expected ('int' object is not subscriptable)"),
        (ValueError("Expecting value:\n line 1"), "Expecting value: line 1"),
        (EOFError(), "EOFError"),
        (ValueError("x" * 1000), "x" * 200),
    ],
)
def test_damage_is_described_without_pythons_representation(error: Exception, text: str) -> None:
    assert describe(error) == text


def test_nothing_is_listened_to_after_the_block() -> None:
    before = list(logging.getLogger("rl_core.data").handlers)
    with pytest.raises(ValueError, match="x"), listening():
        raise ValueError("x")
    assert logging.getLogger("rl_core.data").handlers == before
