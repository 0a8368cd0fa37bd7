"""Wrong calls and damaged files: exit status 2 and a message that names file, field, what was found and what is valid."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from rl_core.bundle import Bundle
from rl_core.data.episode import DatasetError
from rl_core.errors import ArmstackError
from robot_bridge import output_places
from robot_bridge.cli import main
from robot_bridge.collection import make_world
from robot_bridge.judged_world import JudgedWorld, WorldFault
from robot_bridge.output_places import check_file, check_folder
from sim_envs.arm import rendering
from sim_envs.arm.world import ArmWorld, SimulationFault
from tests.robot_bridge.command_line import PLAN, TINY_BC, Cli, Outcome

Broken = Callable[..., Path]


@pytest.fixture
def broken(data: Path, tmp_path: Path) -> Broken:
    """broken(change): a copy of the collected dataset in which `change(file)` was done to the second episode's HDF5 file."""

    def copy(change: Callable[[h5py.File], None] = lambda file: None, *, rename: tuple[str, str] = ("", "")) -> Path:
        folder = shutil.copytree(data, tmp_path / "lift")
        for index, path in enumerate(sorted(folder.glob("*.hdf5"))):
            with h5py.File(path, "r+") as file:
                file["data"].attrs["contract"] = file["data"].attrs["contract"].decode().replace(*rename)
                if index == 1:
                    change(file)
        header = folder / "dataset.json"
        header.write_text(header.read_text().replace(*rename))
        return folder

    return copy


def refuses(outcome: Outcome, *words: str) -> None:
    """Status 2, no traceback, and every one of the words in the message."""
    text = " ".join((outcome.out + outcome.err).replace("│", " ").split())
    assert outcome.status == 2, text
    assert "Traceback" not in text
    assert [word for word in words if word not in text] == [], text


def _nan_action(file: h5py.File) -> None:
    file["data/demo_0/actions"][3, 2] = np.nan


def test_nan_is_refused_with_file_episode_field_and_step(cli: Cli, broken: Broken, tmp_path: Path) -> None:
    folder = broken(_nan_action)
    where = (str(folder), "lift-0-00001-sloppy", "actions is not finite at step 3", "valid: finite numbers")
    for method in ("bc", "dac"):
        refuses(cli("train", method, "--dataset", folder, "--run-dir", tmp_path / method, "--preset", "demo"), *where)
    refuses(cli("replay", folder, "--episodes", 1), *where)
    checked = cli("doctor", folder, "--json")
    assert checked.status == 1 and not checked.figures["trainable"] and checked.figures["figures"]["not_finite"] == {"action.z": 1}


def test_a_renamed_joint_is_found_before_anything_moves(cli: Cli, broken: Broken, tmp_path: Path) -> None:
    folder = broken(rename=("panda_joint3", "elbow"))
    both_sides = ("observation.joint_pos.names", "'elbow'", "'panda_joint3'")
    refuses(cli("replay", folder), str(folder), *both_sides)
    assert cli("train", "bc", "--dataset", folder, "--run-dir", tmp_path / "run", *TINY_BC, "--updates", 2).status == 0
    refuses(cli("eval", tmp_path / "run/bundle", "--episodes", 1), *both_sides)
    refuses(cli("demo", "--dataset", folder, "--out", tmp_path / "demo"), *both_sides)


def test_a_truncated_file_is_named_by_every_command(cli: Cli, broken: Broken, tmp_path: Path) -> None:
    folder = broken()
    file = sorted(folder.glob("*.hdf5"))[1]
    os.truncate(file, file.stat().st_size // 2)
    for command in (
        ("train", "bc", "--dataset", folder, "--run-dir", tmp_path / "run"),
        ("replay", folder),
        ("view", folder, "--out", tmp_path / "page.html"),
        ("doctor", folder),
        ("demo", "--dataset", folder, "--out", tmp_path / "demo"),
    ):
        refuses(cli(*command), str(file), "truncated")


def test_a_slow_recording_is_not_replayed_at_the_declared_rate(cli: Cli, broken: Broken) -> None:
    def slow(file: h5py.File) -> None:
        file["data/demo_0/stamps_ns"][:] = file["data/demo_0/stamps_ns"][:] * 30 // 22

    refuses(cli("replay", broken(slow), "--episodes", 1), "14.67 Hz", "20 Hz", "valid: a contract whose action.period_s")


def test_actions_outside_the_range_are_counted_and_named_and_never_clipped_silently(cli: Cli, broken: Broken) -> None:
    def outside(file: h5py.File) -> None:
        file["data/demo_0/actions"][4, 4] = 7.5

    folder = broken(outside)
    checked = cli("doctor", folder, "--json")
    assert checked.status == 0 and checked.figures["figures"]["actions_outside"] == {"ry": 1}
    rows = cli("replay", folder, "--episodes", 0, 1, "--json").figures["episodes"]
    assert [row["actions_outside"] for row in rows] == [0, 1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("train bcc", ("'bcc'", "valid: dac, contractive, strap, bc_transformer, pear, dvfb,")),
        ("train bc --run-dir {new}", ("learns from a dataset",)),
        ("train sac --run-dir {new}", ("give one, e.g. armstack/Reach-v0",)),
        ("train sac --run-dir {new} --world Pendulum-v1 --dataset {data}", ("takes no dataset",)),
        ("train bc --dataset {nowhere} --run-dir {new}", ("{nowhere}", "no such file")),
        ("train bc --dataset {text} --run-dir {new}", ("{text}", "no known dataset format; valid: folder:")),
        ("train bc --dataset {data} --run-dir {new} --preset huge", ("'huge'", "valid: default, cpu, demo")),
        ("train bc --dataset {data} --run-dir {new} --config.head cauchy", ("'cauchy'", "gaussian")),
        ("train bc --dataset {data} --run-dir {new} --observe elbow", ("'elbow'", "channels: ['joint_pos'")),
        ("train bc --dataset {data} --run-dir {new} --updates 0", ("updates: 0, valid: 1 or more",)),
        ("train bc --dataset {data} --run-dir {new} --device tpu", ("device 'tpu'", "valid: cpu")),
        ("train bc --dataset {data} --run-dir {new} --weights {nowhere}", ("{nowhere}",)),
        ("train bc --dataset {data} --run-dir {new} --init-from {nowhere}", ("{nowhere}",)),
        ("train bc --dataset {data} --run-dir {new} --world armstack/Nope-v0 --preset cpu", ("armstack/Nope-v0",)),
        ("train bc --dataset {data} --run-dir {text} --preset cpu", ("{text}",)),
        ("fault-table frank", ("no arm 'frank'", "arms: simulated, franka")),
        ("calibrate-camera {nowhere} --mount hand --out {new}", ("{nowhere}", "no such file or folder")),
        ("eval {nowhere}", ("{nowhere}", "no bundle.json", "armstack train")),
        ("eval {data}", ("{data}", "no bundle.json")),
        ("eval {bc}/bundle --episodes 0", ("--episodes: 0, valid: 1 or more",)),
        ("eval {bc}/bundle --seed -1", ("--seed: -1, valid: 0 or more",)),
        ("eval {bc}/bundle --n-envs 0", ("--n-envs: 0, valid: 1 or more",)),
        ("eval {bc}/bundle --horizon 0", ("--horizon: 0, valid: 1 or more",)),
        ("eval {bc}/bundle --task juggle", ("'juggle'", "valid: reach, lift, pick_place")),
        ("eval {bc}/bundle --env Nope-v1", ("Nope-v1",)),
        ("eval {bc}/bundle --episodes 10001", ("--episodes: 10001, valid: at most 10000",)),
        ("eval {bc}/bundle --episodes 1 --video {text}/a/v.mp4", ("--video {text}/a/v.mp4: {text} is a file",)),
        ("eval {bc}/bundle --episodes 1 --video {data}", ("--video {data}: is a folder, valid: a file to write",)),
        ("eval {bc}/bundle --ros --record {text}", ("--record {text}: is a file, valid: a folder",)),
        ("eval {bc}/bundle --record {new}", ("add --ros",)),
        ("eval {bc}/bundle --ros --env Pendulum-v1", ("leave out --env",)),
        ("eval {bc}/bundle --ros --task juggle", ("'juggle'", "valid: reach, lift, pick_place")),
        ("eval {bc}/bundle --ros --task reach", ("does not fit task reach (filtered world)", "observation.cube_pos: needed")),
        ("replay {nowhere}", ("{nowhere}",)),
        ("replay {data} --episodes 7", ("{data}", "no episode [7]; valid: 0..3")),
        ("replay {data} --task reach", ("recorded in task 'lift'", "asked for 'reach'")),
        ("view {data} --episodes 9", ("{data}", "no episode [9]; valid: 0..3")),
        ("view {nowhere}", ("{nowhere}",)),
        ("view {data} --out {data}", ("--out {data}: is a folder",)),
        ("view {data} --out {data}.hdf5", ("the ending is '.hdf5', valid: .html",)),
        (
            "view {files}",
            ("{files}: no dataset.json", "`armstack collect`", "4 HDF5 files in it, give one of them: {files}/lift-0-00000-expert.hdf5"),
        ),
        ("train bc --dataset {files}/.. --run-dir {new}", ("no dataset.json", "such a folder is {files}/../whole")),
        ("collect --out {text}", ("--out {text}: is a file, valid: a folder",)),
        ("collect --out {text}/a/b", ("--out {text}/a/b: {text} is a file",)),
        ("demo --out {text}", ("--out {text}: is a file, valid: a folder",)),
        ("doctor {nowhere}", ("{nowhere}", "no such dataset or bundle")),
        ("doctor armstack/Nope-v0", ("armstack/Nope-v0", "doesn't exist")),
        ("collect --out {new} --plan.task juggle", ("'juggle'", "valid: reach, lift, pick_place")),
        ("collect --out {new} --plan.episodes 0", ("plan.episodes: 0, valid: 1 or more",)),
        ("collect --out {new} --plan.skills genius", ("'genius'", "sloppy")),
        ("collect --out {new} --processes 0", ("processes: 0, valid: 1 or more",)),
        ("reproduce dac --processes 0", ("--processes: 0, valid: 1 or more",)),
        ("demo --dataset {nowhere} --out {new}", ("{nowhere}",)),
    ],
)
def test_a_wrong_call_says_what_is_valid(cli: Cli, data: Path, bc: Path, tmp_path: Path, call: str, words: tuple[str, ...]) -> None:
    places = {"data": data, "bc": bc, "new": tmp_path / "new", "nowhere": tmp_path / "nowhere", "text": tmp_path / "text.py"}
    places["text"].write_text("not a dataset\n")
    if "{files}" in call:
        places["files"] = tmp_path / "all" / "files"
        shutil.copytree(data, places["files"], ignore=shutil.ignore_patterns("*.json"))
        shutil.copytree(data, tmp_path / "all" / "whole")
    refuses(cli(*(word.format(**places) for word in call.split())), *(word.format(**places) for word in words))


@pytest.mark.parametrize("world", ["--task reach", "--env Pendulum-v1"])
def test_a_policy_of_another_world_prints_both_sides_of_each_difference(cli: Cli, bc: Path, world: str) -> None:
    outcome = cli("eval", bc / "bundle", "--episodes", 1, *world.split())
    refuses(outcome, f"does not fit {'Pendulum-v1' if 'Pendulum' in world else 'task reach (filtered world)'}:")
    refuses(outcome, "observation.cube_pos: needed, but only")
    if "Pendulum" in world:
        assert "action.names: needs ('x', 'y', 'z', 'rx', 'ry', 'rz', 'gripper'), offered ('a0',)" in outcome.err


def test_evaluation_seeds_that_were_collected_with_are_refused(cli: Cli, bc: Path, broken: Broken) -> None:
    def collected_with(file: h5py.File) -> None:
        demo = file["data/demo_0"]
        name = next(key for key in demo.attrs if '"seed"' in str(demo.attrs[key]))
        meta = json.loads(demo.attrs[name])
        demo.attrs[name] = json.dumps({**meta, "seed": 1_000_001})

    refuses(cli("eval", bc / "bundle", "--episodes", 2, "--data", broken(collected_with)), "1000001")


def test_a_run_folder_is_not_reused_for_another_configuration(cli: Cli, data: Path, bc: Path) -> None:
    outcome = cli("train", "bc", "--dataset", data, "--run-dir", bc, *TINY_BC, "--updates", 5, "--config.lr", 0.5, "--resume")
    refuses(outcome, str(bc), "another configuration", "0.5")


def test_a_damaged_bundle_is_named(cli: Cli, bc: Path, tmp_path: Path) -> None:
    bundle = shutil.copytree(bc / "bundle", tmp_path / "bundle")
    os.truncate(bundle / "weights.safetensors", 100)
    refuses(cli("eval", bundle), str(bundle), "the file was damaged or exchanged")
    (bundle / "bundle.json").write_text("{")
    refuses(cli("doctor", bundle), "bundle.json", "not readable")


def test_weights_that_are_not_finite_are_found_before_anything_moves(cli: Cli, bc: Path, tmp_path: Path) -> None:
    bundle = Bundle.load(bc / "bundle")
    name = next(iter(bundle.weights))
    bundle.weights[name][0] = float("nan")
    bundle.save(tmp_path / "bundle")
    refuses(cli("eval", tmp_path / "bundle", "--episodes", 1), str(tmp_path / "bundle"), name, "NaN or infinity")
    assert cli("doctor", tmp_path / "bundle").status == 1


def test_a_fault_of_the_world_names_world_seed_and_step(cli: Cli, bc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def diverge(self: ArmWorld, substeps: int) -> None:
        raise SimulationFault("the physics diverged")

    monkeypatch.setattr(ArmWorld, "advance", diverge)
    outcome = cli("eval", bc / "bundle", "--episodes", 1)
    refuses(outcome, "task lift (filtered world): step 0 of the episode with seed 1000000", "the physics diverged", "the action was [")


def test_a_faulty_action_is_a_fault_of_a_judged_world() -> None:
    world = JudgedWorld(make_world("reach", "osc_pose", 3), "reach")
    world.reset(seed=1)
    world.step(np.zeros(7))
    with pytest.raises(WorldFault, match="reach: step 1 of the episode with seed 1: .*finite"):
        world.step(np.full(7, np.nan))


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**options: object) -> None:
        raise PermissionError(13, "Permission denied")

    check_file(tmp_path / "new" / "v.mp4", "--video")
    assert list((tmp_path / "new").iterdir()) == []
    monkeypatch.setattr(output_places.tempfile, "TemporaryFile", refuse)  # the tests may run as root, who may write anywhere
    with pytest.raises(ArmstackError, match=r"--video .*v.mp4: nothing can be written into .*new: Permission denied"):
        check_file(tmp_path / "new" / "v.mp4", "--video")
    with pytest.raises(ArmstackError, match=r"--index .*a/b: nothing can be written into .*new: Permission denied"):
        check_folder(tmp_path / "new" / "a" / "b", "--index")


def test_collect_names_a_damaged_episode_and_records_it_anew_once_deleted(cli: Cli, broken: Broken) -> None:
    folder = broken()
    file = sorted(folder.glob("*.hdf5"))[1]
    os.truncate(file, file.stat().st_size // 2)
    refuses(cli("collect", "--out", folder, *PLAN, "--processes", 1), f"delete {file} and call again")
    file.unlink()
    assert cli("collect", "--out", folder, *PLAN, "--processes", 1, "--json").figures["recorded_now"] == 1


def test_debugging_shows_the_traceback(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMSTACK_DEBUG", "1")
    with pytest.raises(DatasetError):
        main(["view", str(tmp_path / "nowhere")])


def test_no_graphics_library_ends_a_video_with_what_to_set(cli: Cli, bc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "_probe", lambda backend: "not here")
    rendering.working_backend.cache_clear()
    try:
        refuses(cli("eval", bc / "bundle", "--episodes", 1, "--horizon", 1, "--video", tmp_path / "v.mp4"), "MUJOCO_GL")
    finally:
        rendering.working_backend.cache_clear()
