"""Recordings: files, windows, background, split by person."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robot_bridge.auxiliary.monitoring.rfmamba.echo_data import UNFINISHED, make, simulate
from robot_bridge.auxiliary.monitoring.rfmamba.echoes import ARRAYS, HEADER, Recordings, fingerprint, read_recordings, write_recordings
from robot_bridge.auxiliary.monitoring.rfmamba.interface import RadarError
from sim_envs.sensors.recordings import Recorder


def test_what_is_written_is_read(recordings: Recordings, tmp_path: Path) -> None:
    write_recordings(recordings, tmp_path / "data", {"seed": 3})
    read = read_recordings(tmp_path / "data")
    assert (
        fingerprint(read) == fingerprint(recordings) and read.geometry == recordings.geometry and read.activities == recordings.activities
    )
    changed = dataclasses.replace(recordings, joints=recordings.joints + np.float32(0.1))
    assert fingerprint(changed) != fingerprint(recordings)


def test_damaged_files_are_named(recordings: Recordings, tmp_path: Path) -> None:
    with pytest.raises(RadarError, match="radar.json: not readable.*valid: a folder of `armstack aux data rfmamba`"):
        read_recordings(tmp_path)
    write_recordings(recordings, tmp_path, {})
    (tmp_path / ARRAYS).write_bytes((tmp_path / ARRAYS).read_bytes()[:1000])
    with pytest.raises(RadarError, match="echoes.npz: not readable"):
        read_recordings(tmp_path)
    header = json.loads((tmp_path / HEADER).read_text())
    (tmp_path / HEADER).write_text(json.dumps({**header, "version": 9}))
    with pytest.raises(RadarError, match=r"\('armstack-radar', 9\); this Armstack reads"):
        read_recordings(tmp_path)


def test_numbers_that_are_none_are_named_with_their_file(recordings: Recordings, tmp_path: Path) -> None:
    write_recordings(recordings, tmp_path, {})
    with np.load(tmp_path / ARRAYS) as arrays:
        values = dict(arrays)
    values["echoes"][3, 1, 0, 0, 0] = np.nan
    np.savez(tmp_path / ARRAYS, **values)
    with pytest.raises(RadarError, match="echoes.npz: recordings.echoes: NaN or infinity"):
        read_recordings(tmp_path)


def test_arrays_that_do_not_fit_are_refused(recordings: Recordings) -> None:
    for change, says in (
        ({"joints": recordings.joints[:, :2]}, r"recordings.joints: float32 \(24, 2, 14, 3\), valid: float32 \(24, 6, 14, 3\)"),
        ({"echoes": recordings.echoes.astype(np.complex128)}, "recordings.echoes: complex128"),
        ({"activity": recordings.activity + 3}, r"of activities 0\.\.3"),
        ({"joints": np.full_like(recordings.joints, np.nan)}, "recordings.joints: NaN"),
    ):
        with pytest.raises(RadarError, match=says):
            dataclasses.replace(recordings, **change)


def test_windows_are_of_one_recording_and_about_their_current_frame(recordings: Recordings) -> None:
    for current in (3, 2):
        windows = recordings.windows(4, current)
        assert len(windows) == 24 * 3 and windows.geometry.frames == 4
        for row, (recording, start) in enumerate((r, s) for r in range(24) for s in range(3)):
            expected = recordings.echoes[recording, start : start + 4] - recordings.backgrounds[recording]
            np.testing.assert_array_equal(windows.echoes[row], expected)
            np.testing.assert_array_equal(windows.joints[row], recordings.joints[recording, start + current])
            np.testing.assert_array_equal(windows.body[row], recordings.body[recording, start + current])
            assert windows.activity[row] == recordings.activity[recording, start + current]
            assert windows.behind_wall[row] == recordings.behind_wall[recording]
    with pytest.raises(RadarError, match=r"windows of 7 frames, valid: 1\.\.6, .*`armstack aux data rfmamba --frames 7`"):
        recordings.windows(7, 6)


def test_the_background_is_most_of_an_echo_and_none_of_a_window(recordings: Recordings) -> None:
    free = recordings.rows(~recordings.behind_wall)
    assert np.abs(free.echoes).mean() > 4 * np.abs(free.windows(4, 3).echoes).mean()


def test_parts_have_no_person_in_common(recordings: Recordings) -> None:
    parts = recordings.split((0.5, 0.5), seed=1)
    people = [set(part.people.tolist()) for part in parts]
    assert not people[0] & people[1] and people[0] | people[1] == set(range(6)) and all(len(part) == 12 for part in parts)
    assert {tuple(sorted(set(recordings.split((0.5, 0.5), seed=seed)[0].people.tolist()))) for seed in range(8)} != {
        tuple(sorted(people[0]))
    }
    with pytest.raises(RadarError, match="recordings of 1 people, valid: 2 or more"):
        recordings.rows(recordings.people == 0).split((0.5, 0.5), seed=0)


def test_every_person_does_everything_and_seeds_decide(recordings: Recordings) -> None:
    for person in range(6):
        rows = recordings.people == person
        assert rows.sum() == 4 and set(recordings.activity[rows].flatten().tolist()) >= {0, 1, 2}
    assert 0 < recordings.behind_wall.sum() < 24
    again = simulate(people=2, recordings=4, frames=6, frequencies=16, wall=0.5, seed=3)
    np.testing.assert_array_equal(again.echoes[:4], recordings.echoes[:4])
    other = simulate(people=1, recordings=4, frames=6, frequencies=16, wall=0.0, seed=4)
    assert not np.array_equal(other.echoes[:4], recordings.echoes[:4]) and not other.behind_wall.any()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"people": 0}, "people 0.*valid: at least 1, 4"),
        ({"recordings": 3}, "recordings 3"),
        ({"wall": 1.5}, r"wall 1.5, valid: a share, 0\.\.1"),
        ({"dropout": -0.1}, "dropout -0.1"),
        ({"snr_db": float("nan")}, "snr_db nan"),
    ],
)
def test_settings_that_cannot_be_are_refused(change: dict[str, float], says: str) -> None:
    with pytest.raises(RadarError, match=says):
        simulate(**{"people": 1, "recordings": 4, "frames": 2, "wall": 0.0, "seed": 0, **change})


def test_a_recording_that_was_stopped_keeps_who_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"people": 3, "recordings": 4, "frames": 2, "seed": 5, "say": lambda text: None}
    make(tmp_path / "whole", **settings)
    record, taken = Recorder.record, []

    def interrupted(recorder: Recorder, *args: Any, **options: Any) -> Any:
        if len(taken) == 10:  # in the third person
            raise KeyboardInterrupt
        taken.append(1)
        return record(recorder, *args, **options)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Recorder, "record", interrupted)
        make(tmp_path / "cut", **settings)
    assert len(list((tmp_path / "cut" / UNFINISHED).iterdir())) == 2
    with pytest.raises(
        RadarError, match=r"person-0000: holds recordings of .*'people': 3.*asked for: .*'people': 4.*valid: equal settings"
    ):
        make(tmp_path / "cut", **{**settings, "people": 4})
    again = []
    monkeypatch.setattr(Recorder, "record", lambda *args, **options: again.append(1) or record(*args, **options))
    make(tmp_path / "cut", **settings)
    assert len(again) == 4 and not (tmp_path / "cut" / UNFINISHED).exists()
    assert fingerprint(read_recordings(tmp_path / "cut")) == fingerprint(read_recordings(tmp_path / "whole"))
