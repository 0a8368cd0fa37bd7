import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from rl_core.data.episode import DatasetError
from rl_core.data.formats import read_dataset, write_dataset
from rl_core.data.formats.base_frame import BasePose
from rl_core.data.replay import ReplayBuffer

BASE = np.array([-0.56, 0.0, 0.912])
MODEL = '<mujoco model="base"><worldbody><body name="table"/><body name="robot0_base" pos="{pos}"{quat}><geom/></body></worldbody></mujoco>'
OSC_POSE = {"type": "OSC_POSE", "input_max": 1, "output_max": [0.05, 0.05, 0.05, 0.5, 0.5, 0.5], "control_delta": True}
OSC_POSE_15 = {"type": "BASIC", "body_parts": {"right": {**OSC_POSE, "input_type": "delta"}}}


def robosuite_observations(steps: int, seed: int) -> dict[str, np.ndarray]:
    """What robosuite's Lift with a Panda returns, `steps` times, float64, under the keys robomimic stores."""
    rng = np.random.default_rng(seed)
    quat = rng.normal(size=(steps, 4))
    eef, cube = rng.normal(size=(steps, 3)) + BASE, rng.normal(size=(steps, 3)) + BASE
    finger = rng.uniform(0, 0.04, steps)
    return {
        "robot0_joint_pos": rng.normal(size=(steps, 7)),
        "robot0_joint_pos_cos": rng.normal(size=(steps, 7)),
        "robot0_joint_vel": rng.normal(size=(steps, 7)),
        "robot0_eef_pos": eef,
        "robot0_eef_quat": quat / np.linalg.norm(quat, axis=1, keepdims=True),
        "robot0_gripper_qpos": np.stack([finger, -finger], axis=1),
        "object": np.concatenate([cube, np.tile([0.0, 0.0, 0.7071, 0.7071], (steps, 1)), eef - cube], axis=1),
    }


def robomimic_file(path: Path, lengths=(5, 8, 4), *, next_obs=True, model=True, controller=OSC_POSE, images=False, quat="") -> Path:
    """A file with the layout of robomimic's `dataset_states_to_obs.py --done_mode 2`; the first demo succeeds."""
    kwargs = {"robots": ["Panda"], "control_freq": 20, "controller_configs": controller}
    env = {"env_name": "Lift", "env_version": "1.4.1", "type": 1, "env_kwargs": kwargs}
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        for index, steps in enumerate(lengths):
            demo = data.create_group(f"demo_{index * 7}")  # demo_14 sorts before demo_7 as text
            seen = robosuite_observations(steps + 1, index)
            if images:
                seen["agentview_image"] = np.random.default_rng(index).integers(0, 256, (steps + 1, 8, 6, 3), dtype=np.uint8)
            rewards, dones = np.zeros(steps), np.zeros(steps, int)
            rewards[-1], dones[-1] = float(index == 0), 1
            demo.create_dataset("actions", data=np.random.default_rng(index).uniform(-1, 1, (steps, 7)))
            demo.create_dataset("states", data=np.zeros((steps, 32)))
            demo.create_dataset("rewards", data=rewards)
            demo.create_dataset("dones", data=dones)
            for name, values in seen.items():
                demo.create_dataset(f"obs/{name}", data=values[:-1])
                if next_obs:
                    demo.create_dataset(f"next_obs/{name}", data=values[1:])
            if model:
                demo.attrs["model_file"] = MODEL.format(pos=" ".join(map(str, BASE)), quat=quat)
            demo.attrs["num_samples"] = steps
        data.attrs["total"] = sum(lengths)
        data.attrs["env_args"] = json.dumps(env, indent=4)
        file.create_dataset("mask/train", data=np.array([b"demo_0", b"demo_7"]))
    return path


def robosuite_file(path: Path, lengths=(5, 8)) -> Path:
    """A file with the layout of robosuite's `collect_human_demonstrations.py`: states and actions only."""
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        for index, steps in enumerate(lengths, start=1):
            demo = data.create_group(f"demo_{index}")
            demo.attrs["model_file"] = MODEL.format(pos="-0.56 0 0.912", quat="")
            demo.create_dataset("states", data=np.random.default_rng(index).normal(size=(steps, 32)))
            demo.create_dataset("actions", data=np.random.default_rng(index).uniform(-1, 1, (steps, 7)))
        data.attrs.update({"date": "1-2-2025", "time": "3:4:5", "repository_version": "1.5.2", "env": "Lift"})
        data.attrs["env_info"] = json.dumps({"env_name": "Lift", "robots": "Panda", "controller_configs": OSC_POSE_15})
    return path


def test_file_made_by_robomimic_loads_under_our_names_in_the_base_frame(tmp_path):
    dataset = read_dataset(robomimic_file(tmp_path / "low_dim.hdf5"))
    assert [len(episode) for episode in dataset.episodes] == [5, 8, 4]  # by number: demo_0, demo_7, demo_14
    source, episode = robosuite_observations(6, 0), dataset.episodes[0]
    of_the_robot = {"joint_pos", "robot0_joint_pos_cos", "joint_vel", "eef_pos", "eef_quat", "gripper_pos"}
    assert set(episode.observations) == of_the_robot | {"cube_pos", "cube_quat", "gripper_to_cube_pos"}
    close = {"rtol": 1e-5, "atol": 1e-6}
    np.testing.assert_allclose(episode.observations["eef_pos"], source["robot0_eef_pos"] - BASE, **close)
    np.testing.assert_allclose(episode.observations["eef_quat"], source["robot0_eef_quat"], **close)
    np.testing.assert_allclose(episode.observations["gripper_pos"][:, 0], 2 * source["robot0_gripper_qpos"][:, 0], **close)
    np.testing.assert_allclose(episode.observations["cube_pos"], source["object"][:, :3] - BASE, **close)
    np.testing.assert_allclose(episode.observations["cube_quat"], source["object"][:, 3:7], **close)
    # old robosuite stored gripper minus cube: it is computed anew, as cube minus gripper
    np.testing.assert_allclose(episode.observations["gripper_to_cube_pos"], -source["object"][:, 7:], **close)
    contract = dataset.contract
    assert contract.robot == "panda" and contract.channel("eef_pos").frame == "base"
    assert contract.channel("joint_pos").names[0] == "panda_joint1" and contract.channel("eef_quat").kind == "quaternion"
    assert contract.action.names == ("x", "y", "z", "rx", "ry", "rz", "gripper") and contract.action.meaning == "delta"
    assert contract.action.scale == (0.05,) * 3 + (0.5,) * 3 + (1.0,) and contract.action.period_s == 0.05
    assert episode.stamps_ns.tolist() == [k * 50_000_000 for k in range(6)]
    assert len(ReplayBuffer.from_dataset(dataset, contract.select(["eef_pos", "cube_pos"]))) == 17


def test_done_at_the_end_of_every_demo_is_terminal_only_with_success(tmp_path):
    first, second, _ = read_dataset(robomimic_file(tmp_path / "low_dim.hdf5")).episodes
    assert first.terminal and first.success and not first.truncated
    assert not second.terminal and second.success is None and second.truncated


def test_last_step_without_next_obs_is_kept_only_where_it_is_terminal(tmp_path):
    first, second, _ = read_dataset(robomimic_file(tmp_path / "no_next.hdf5", next_obs=False)).episodes
    assert len(first) == 5 and first.terminal
    np.testing.assert_array_equal(first.observations["eef_pos"][-1], first.observations["eef_pos"][-2])
    assert len(second) == 7 and not second.terminal
    recorded = robosuite_observations(9, 1)["robot0_eef_pos"][:8] - BASE
    np.testing.assert_allclose(second.observations["eef_pos"], recorded, rtol=1e-5, atol=1e-6)


def test_without_model_file_positions_stay_in_the_world_frame_and_say_so(tmp_path, caplog):
    dataset = read_dataset(robomimic_file(tmp_path / "no_model.hdf5", model=False))
    assert dataset.contract.channel("eef_pos").frame == "world" and "world frame" in caplog.text
    np.testing.assert_allclose(dataset.episodes[0].observations["eef_pos"], robosuite_observations(6, 0)["robot0_eef_pos"], rtol=1e-6)


def test_turned_base_turns_positions_and_orientations():
    # base turned by 90 degrees about z: the world's y axis is the base's x axis
    pose = BasePose.from_model(MODEL.format(pos="1 2 3", quat=' quat="0.70710678 0 0 0.70710678"'))
    assert pose is not None
    np.testing.assert_allclose(pose.points(np.array([[1.0, 3.0, 3.0]])), [[1, 0, 0]], atol=1e-7)
    np.testing.assert_allclose(pose.vectors(np.array([[1.0, 0.0, 0.0]])), [[0, -1, 0]], atol=1e-7)
    np.testing.assert_allclose(pose.turns(np.array([[0, 0, 0.70710678, 0.70710678]])), [[0, 0, 0, 1]], atol=1e-7)
    for text in ("<not xml", None, "<mujoco/>", MODEL.format(pos="1 2", quat=""), MODEL.format(pos="1 2 3", quat=' euler="0 0 1"')):
        assert BasePose.from_model(text) is None


def test_same_file_gives_same_uuids_wherever_it_lies(tmp_path):
    one = read_dataset(robomimic_file(tmp_path / "one.hdf5"))
    other = read_dataset(robomimic_file(tmp_path / "other.hdf5"))
    uuids = [episode.uuid for episode in one.episodes]
    assert uuids == [episode.uuid for episode in other.episodes] and len(set(uuids)) == 3


def test_file_made_by_robosuite_collection_loads_as_states_and_says_what_is_missing(tmp_path, caplog):
    dataset = read_dataset(robosuite_file(tmp_path / "demo.hdf5"))
    assert [len(episode) for episode in dataset.episodes] == [5, 8]
    assert dataset.episodes[0].observations["states"].shape == (6, 32)
    assert "no observations" in caplog.text and "extracted" in dataset.episodes[0].meta["note"]
    assert dataset.contract.action.names[-1] == "gripper" and dataset.contract.robot == "panda"
    with pytest.raises(DatasetError, match="simulator states only"):
        ReplayBuffer.from_dataset(dataset, dataset.contract)


def test_unknown_controller_gets_neutral_names_and_a_warning(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    dataset = read_dataset(robomimic_file(tmp_path / "ik.hdf5", controller={"type": "IK_POSE"}))
    assert dataset.contract.action.names[0] == "action_0" and "IK_POSE" in caplog.text


def test_native_file_has_robomimic_layout_and_images_survive(tmp_path):
    foreign = read_dataset(robomimic_file(tmp_path / "images.hdf5", images=True))
    channel = foreign.contract.channel("agentview_image")
    assert channel.kind == "image" and channel.shape == (8, 6, 3) and channel.row_order == "top_down"
    path = write_dataset(foreign, tmp_path / "native.hdf5")
    again = read_dataset(path)
    np.testing.assert_array_equal(again.episodes[1].observations["agentview_image"], foreign.episodes[1].observations["agentview_image"])
    assert again.contract == foreign.contract
    with h5py.File(path, "r") as file:
        data = file["data"]
        assert data.attrs["total"] == 17 and json.loads(data.attrs["env_args"])["env_name"] == "panda"
        demo = data["demo_1"]
        assert demo.attrs["num_samples"] == 8 and demo["actions"].shape == (8, 7) and demo["rewards"].shape == (8,)
        assert demo["obs/eef_pos"].shape == demo["next_obs/eef_pos"].shape == (8, 3)
        np.testing.assert_array_equal(demo["next_obs/eef_pos"][:-1], demo["obs/eef_pos"][1:])
        assert demo["dones"][:].sum() == 0 and data["demo_0/dones"][:].tolist() == [0, 0, 0, 0, 1]
        assert demo["stamps_ns"].dtype == np.int64


@pytest.mark.parametrize("keep", [0, 4, 100, 0.5, 0.99])
def test_truncated_files_are_dataset_errors(tmp_path, make_dataset, keep):
    for path in (write_dataset(make_dataset(), tmp_path / "native.hdf5"), robomimic_file(tmp_path / "robomimic.hdf5")):
        whole = path.read_bytes()
        path.write_bytes(whole[: keep if isinstance(keep, int) else int(len(whole) * keep)])
        with pytest.raises(DatasetError, match=path.name):
            read_dataset(path)


def _delete(name: str) -> Any:
    return lambda file: file.__delitem__(name)


def _shorten(name: str) -> Any:
    def change(file):
        values = file[name][()][:-1]
        del file[name]
        file[name] = values

    return change


def _attribute(name: str, value: Any) -> Any:
    return lambda file: file["data"].attrs.__setitem__(name, value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_delete("data/demo_1/actions"), r"demo_1/actions is missing; found"),
        (_delete("data/demo_1/obs/cube_pos"), r"obs/cube_pos is missing; found"),
        (_delete("data/demo_2/next_obs"), r"next_obs/joint_pos is missing"),
        (_delete("data/demo_0/stamps_ns"), r"stamps_ns is missing"),
        (_delete("data"), r"no group 'data'; found"),
        (_shorten("data/demo_1/rewards"), r"demo_1/rewards has 2 rows, valid: 3"),
        (_shorten("data/demo_1/obs/eef_pos"), r"obs/eef_pos has 2 rows, valid: 3"),
        (_shorten("data/demo_1/actions"), r"2 actions, num_samples 3"),
        (_attribute("contract", "{"), r"contract is not JSON"),
        (_attribute("format_version", 7), r"format_version 7"),
    ],
)
def test_damaged_fields_are_named(tmp_path, make_dataset, change, message):
    path = write_dataset(make_dataset((6, 3, 9)), tmp_path / "native.hdf5")
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(DatasetError, match=message):
        read_dataset(path)


def test_interrupted_write_leaves_the_old_file(tmp_path, make_dataset):
    dataset = make_dataset()
    path = write_dataset(dataset, tmp_path / "native.hdf5")
    old = path.read_bytes()
    lacking = replace(dataset.episodes[1], observations={"joint_pos": dataset.episodes[1].observations["joint_pos"]})
    with pytest.raises(DatasetError, match="channels .*missing"):
        write_dataset(replace(dataset, episodes=(dataset.episodes[0], lacking)), path)
    assert path.read_bytes() == old and [file.name for file in tmp_path.iterdir()] == ["native.hdf5"]


def test_no_dataset_says_what_would_be_one(tmp_path, make_dataset):
    text = tmp_path / "notes.txt"
    text.write_text("hello")
    with pytest.raises(DatasetError, match="valid: folder: .*robomimic: .*d4rl: "):
        read_dataset(text)
    with pytest.raises(DatasetError, match="no such file"):
        read_dataset(tmp_path / "nowhere.hdf5")
    with pytest.raises(DatasetError, match="format 'zarr', valid: folder, robomimic, .*d4rl"):
        write_dataset(make_dataset(), tmp_path / "x", format="zarr")


def test_numbers_beyond_float32_are_refused_not_made_infinite(tmp_path):
    path = robomimic_file(tmp_path / "huge.hdf5")
    with h5py.File(path, "r+") as file:
        name = "data/demo_0/actions"
        actions = file[name][()].astype(np.float64)
        actions[0, 0] = 1e300
        del file[name]
        file[name] = actions
    with pytest.raises(DatasetError, match=r"actions has numbers up to 1e\+300, valid: within float32"):
        read_dataset(path)
