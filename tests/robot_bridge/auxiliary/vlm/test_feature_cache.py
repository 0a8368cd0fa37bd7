from pathlib import Path

import numpy as np
import pytest

from robot_bridge.auxiliary.vlm.feature_cache import FeatureCache, image_cache, map_cache
from robot_bridge.auxiliary.vlm.small import SmallVLM
from tests.robot_bridge.auxiliary.vlm.conftest import MeanColours, small_model


class Counting:
    def __init__(self, fail_at: int = 10**9) -> None:
        self.seen, self.fail_at = 0, fail_at

    def __call__(self, frames: np.ndarray) -> dict[str, np.ndarray]:
        self.seen += len(frames)
        if self.seen > self.fail_at:
            raise KeyboardInterrupt
        return {"mean": frames.mean(axis=(1, 2)).astype(np.float32), "first": frames[:, 0, 0]}


def pictures(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, 4, 4, 3), np.uint8)


def test_features_come_in_order_and_are_worked_out_once(tmp_path: Path) -> None:
    frames = pictures(300)
    encode = Counting()
    first = FeatureCache(tmp_path, "net", encode).features(frames)
    np.testing.assert_allclose(first["mean"], frames.mean(axis=(1, 2)), rtol=1e-6)
    again = FeatureCache(tmp_path, "net", encode).features(frames[[7, 250, 7]])
    assert encode.seen == 300
    np.testing.assert_array_equal(again["mean"], first["mean"][[7, 250, 7]])


def test_equal_pictures_are_worked_out_once(tmp_path: Path) -> None:
    encode = Counting()
    found = FeatureCache(None, "net", encode).features(pictures(3)[[0, 1, 0, 2, 0]])
    assert encode.seen == 3
    np.testing.assert_array_equal(found["mean"][0], found["mean"][4])


def test_another_identity_has_features_of_its_own(tmp_path: Path) -> None:
    encode = Counting()
    for name in ("net 1", "net 2"):
        FeatureCache(tmp_path, name, encode).features(pictures(10))
    assert encode.seen == 20


def test_an_interrupted_run_keeps_finished_pieces(tmp_path: Path) -> None:
    frames = pictures(400)
    with pytest.raises(KeyboardInterrupt):
        FeatureCache(tmp_path, "net", Counting(fail_at=300)).features(frames)
    encode = Counting()
    found = FeatureCache(tmp_path, "net", encode).features(frames)
    assert encode.seen == 400 - 256
    np.testing.assert_allclose(found["mean"], frames.mean(axis=(1, 2)), rtol=1e-6)


def test_a_damaged_piece_is_worked_out_again(tmp_path: Path) -> None:
    frames = pictures(200)
    FeatureCache(tmp_path, "net", Counting()).features(frames)
    damaged = sorted(tmp_path.rglob("*.npz"))[0]
    damaged.write_bytes(damaged.read_bytes()[:-50])
    encode = Counting()
    found = FeatureCache(tmp_path, "net", encode).features(frames)
    assert encode.seen in (128, 72)
    np.testing.assert_allclose(found["mean"], frames.mean(axis=(1, 2)), rtol=1e-6)


def test_features_of_a_model_are_its_own(small: SmallVLM, frames: np.ndarray, tmp_path: Path) -> None:
    image, tokens = small.encode_image(small.preprocess(frames), tokens=True)
    found = image_cache(small, tmp_path, tokens=True).features(frames)
    np.testing.assert_allclose(found["image"], image.numpy(), atol=1e-6)
    np.testing.assert_allclose(found["tokens"], tokens.numpy(), atol=1e-6)
    other = small_model(seed=1)
    other.freeze()
    assert not np.allclose(image_cache(other, tmp_path, tokens=True).features(frames)["image"], found["image"])


def test_maps_are_worked_out_once_for_all_models_on_a_backbone(frames: np.ndarray, tmp_path: Path) -> None:
    backbone = MeanColours()
    for _ in range(2):
        maps = map_cache(backbone, tmp_path).features(frames)["maps"]
        assert maps.dtype == np.float16 and maps.shape == (5, 6, 4, 4)
    assert backbone.seen == 5
