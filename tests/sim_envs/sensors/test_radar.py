"""The simulated radar: where its echoes come from, and both waveforms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sim_envs.sensors.radar import SPEED_OF_LIGHT, Chirp, RadarArray, Wall, echoes
from sim_envs.sensors.recordings import RadarScene

BANDWIDTH = 2e9
RESOLUTION_M = SPEED_OF_LIGHT / (2 * BANDWIDTH)


def single(point: tuple[float, float, float], array: RadarArray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One scatterer that faces the middle of the array."""
    place = np.array(point)
    normal = np.array([0.0, 0.0, 0.4]) - place
    return place[None, None], (normal / np.linalg.norm(normal))[None, None], np.ones((1, 1), np.complex64)


@pytest.fixture(scope="module")
def array() -> RadarArray:
    return RadarScene().array


@pytest.mark.parametrize("chirp", [None, Chirp()], ids=["stepped", "chirp"])
@pytest.mark.parametrize("point", [(1.4, -0.6, 0.3), (2.0, 0.0, 0.9), (2.3, 0.7, -0.2)])
def test_the_range_peak_is_at_the_true_bistatic_range(array: RadarArray, point: tuple[float, float, float], chirp: Chirp | None) -> None:
    fine = 16 * len(array.frequencies)
    found = echoes(array, *single(point, array), chirp=chirp)[0]
    peak = np.abs(np.fft.ifft(found, fine, axis=-1)).argmax(axis=-1)
    repeats = SPEED_OF_LIGHT / (array.frequencies[1] - array.frequencies[0])
    for tx, there in enumerate(array.transmitters):
        for rx, back in enumerate(array.receivers):
            true = math.dist(point, there) + math.dist(point, back)
            off = (peak[tx, rx] * repeats / fine - true + repeats / 2) % repeats - repeats / 2
            assert abs(off) / 2 < RESOLUTION_M


def test_a_scatterer_returns_what_the_sum_says(array: RadarArray) -> None:
    place, normal, strength = single((1.8, 0.3, 0.2), array)
    point, facing = place[0, 0], normal[0, 0]
    found = echoes(array, place, normal, 3 * strength)[0]
    for tx, rx, f in ((0, 0, 0), (3, 1, 31), (2, 2, 17)):
        away = array.transmitters[tx] - point, array.receivers[rx] - point
        lengths = [np.linalg.norm(each) for each in away]
        amplitude = 3 * math.prod(facing @ each / length / length for each, length in zip(away, lengths, strict=True))
        wave = np.exp(-2j * np.pi * array.frequencies[f] * sum(lengths) / SPEED_OF_LIGHT)
        assert found[tx, rx, f] == pytest.approx(amplitude * wave, rel=1e-4)
    assert not np.any(echoes(array, place, -normal, strength))  # faces away


def test_a_sweep_gives_what_stepped_frequencies_give(array: RadarArray) -> None:
    rng = np.random.default_rng(0)
    points = rng.uniform((1.2, -1.0, -0.6), (2.8, 1.0, 1.0), (2, 40, 3))
    normals = np.array([0.0, 0.0, 0.4]) - points
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    strength = rng.normal(size=(2, 40)).astype(np.complex64)
    stepped = echoes(array, points, normals, strength)

    def off(chirp: Chirp) -> float:
        swept = echoes(array, points, normals, strength, chirp=chirp)
        return float(np.sqrt((np.abs(swept - stepped) ** 2).mean() / (np.abs(stepped) ** 2).mean()))

    assert off(Chirp(duration_s=1e-3)) < 1e-3
    assert off(Chirp(duration_s=2e-5)) < 0.03  # left alone, the residual video phase would put it off by more: see below


def test_residual_video_phase_would_matter(array: RadarArray, monkeypatch: pytest.MonkeyPatch) -> None:
    args = single((2.5, 0.4, 0.2), array)
    stepped = echoes(array, *args)
    monkeypatch.setattr("sim_envs.sensors.radar.stepped_form", lambda beat, slope, step: beat)
    swept = echoes(array, *args, chirp=Chirp(duration_s=2e-5))
    assert np.abs(swept - stepped).max() > 0.05 * np.abs(stepped).max()


def test_a_wall_weakens_high_frequencies_and_delays(array: RadarArray) -> None:
    args = single((2.0, 0.2, 0.4), array)
    free, behind = echoes(array, *args)[0], echoes(array, *args, wall=Wall(attenuation=0.5, thickness_m=0.15, permittivity=4.0))[0]
    ratio = np.abs(behind / free)
    np.testing.assert_allclose(ratio, np.broadcast_to(np.exp(-2 * 0.5 * array.frequencies / 1e9), ratio.shape), rtol=1e-3)
    longer = -np.diff(np.unwrap(np.angle(behind / free), axis=-1), axis=-1).mean(axis=-1)
    longer *= SPEED_OF_LIGHT / (2 * np.pi * (array.frequencies[1] - array.frequencies[0]))
    assert ((0.30 <= longer) & (longer < 0.36)).all()  # 2 (sqrt 4 - 1) 0.15 m, and more at a slant
