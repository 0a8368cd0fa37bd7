"""Making clips: resumable, and refused over others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from robot_bridge.auxiliary.image_files import read_images
from robot_bridge.auxiliary.video.clip_data import make
from robot_bridge.auxiliary.video.clips import read_shards
from robot_bridge.auxiliary.video.errors import VideoError
from robot_bridge.auxiliary.video.recorded_clips import read_clips

pytestmark = pytest.mark.usefixtures("graphics")


def small(out: Path, **settings: object) -> dict[str, float]:
    return make(out, **{"clips": 44, "stills": 3, "frames": 2, "size": 32, "say": lambda text: None, **settings})  # type: ignore[arg-type]


def test_clips_are_made_once_and_what_is_missing_is_made_again(tmp_path: Path) -> None:
    assert small(tmp_path / "clips") == {"clips": 44, "clips/drawn": 44, "stills": 3, "stills/drawn": 3}
    first = read_clips(tmp_path / "clips")
    assert first.frames.shape == (44, 2, 32, 32, 3) and (first.lengths == 2).all() and len(set(first.meanings)) == 44
    assert np.array_equal(first.groups, np.arange(44) // 2) and 0 < first.ordered.sum() < 44
    (tmp_path / "clips" / "clips-0001.npz").unlink()
    with pytest.raises(VideoError, match=r"npz hold 40 clips, clips.json says 44; make the data again with the same settings"):
        read_clips(tmp_path / "clips")
    assert small(tmp_path / "clips")["clips/drawn"] == 4
    again = read_clips(tmp_path / "clips")
    assert np.array_equal(first.frames, again.frames) and first.sentences == again.sentences
    assert first.fingerprint() == again.fingerprint()
    stills = read_images(tmp_path / "clips" / "stills")
    assert len(stills) == 3 and stills.captions and "colour" in stills.factors


def test_other_settings_or_another_folder_are_refused(tmp_path: Path) -> None:
    small(tmp_path / "clips", clips=2, stills=0)
    with pytest.raises(VideoError, match="holds clips of .*'clips': 2.*asked for: .*'clips': 4"):
        small(tmp_path / "clips", clips=4, stills=0)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    with pytest.raises(VideoError, match="holds something else; valid: a new folder"):
        small(tmp_path / "other")
    for wrong in ({"clips": 3}, {"stills": -1}, {"frames": 1}, {"size": 8}):
        with pytest.raises(VideoError, match="valid: an even number of clips"):
            small(tmp_path / "none", **wrong)
    assert not (tmp_path / "none").exists()


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    small(tmp_path / "clips", clips=2, stills=0)
    file = tmp_path / "clips" / "clips-0000.npz"
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(VideoError, match=r"clips-0000.npz: not readable: .*delete it and make the data again"):
        read_shards(tmp_path / "clips")
    file.unlink()
    with pytest.raises(VideoError, match="but no clips-"):
        read_shards(tmp_path / "clips")
    (tmp_path / "clips" / "clips.json").write_text('{"format": "armstack-clips", "version": 9, "made_from": {}}')
    with pytest.raises(VideoError, match=r"version \('armstack-clips', 9\)"):
        read_shards(tmp_path / "clips")
