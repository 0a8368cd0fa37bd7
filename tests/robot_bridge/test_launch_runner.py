"""Launch files in YAML, read and run without `launch_ros`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from robot_bridge.launch_file import LaunchError, ProcessSpec, read_launch_file
from robot_bridge.launch_runner import Launch, launch, main, parse_arguments

ROOT = Path(__file__).resolve().parents[2]


def _write(folder: Path, text: str, name: str = "test.launch.yaml") -> Path:
    file = folder / name
    file.write_text(textwrap.dedent(text))
    return file


def _read(folder: Path, text: str, **arguments: str) -> tuple[ProcessSpec, ...]:
    return read_launch_file(_write(folder, text), arguments, {"HOME": "/home/me"})


def _ros(spec: ProcessSpec) -> list[str]:
    command = list(spec.command)
    return command[command.index("--ros-args") + 1 :] if "--ros-args" in command else []


def test_a_node_gets_name_namespace_remaps_and_typed_parameters(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text("/**: {ros__parameters: {a: 1}}")
    text = """
        launch:
        - let: {name: side, value: left}
        - group:
          - push_ros_namespace: {namespace: robots}
          - push_ros_namespace: {namespace: $(var side)}
          - node:
              pkg: armstack
              exec: recorder_node
              name: recorder
              args: --flag "two words"
              remap:
              - {from: joint_states, to: /all/joint_states}
              env:
              - {name: SIDE, value: $(var side)}
              param:
              - from: $(dirname)/params.yaml
              - {name: text, value: $(var side)}
              - {name: number, value: 3}
              - {name: read_as_number, value: '1.5'}
              - {name: kept_text, value: '15', type: str}
              - {name: flag, value: true}
              - {name: list, value: [a, b]}
              - {name: empty, value: ''}
              - name: nested
                param:
                - {name: inner, value: 0.25}
        - node: {pkg: armstack, exec: recorder_node}
    """
    inside, outside = _read(tmp_path, text)
    assert inside.command[:2] == (sys.executable, "-c") and inside.command[3:6] == ("recorder_node", "--flag", "two words")
    assert inside.env == {"SIDE": "left"} and inside.name == "recorder-1" and outside.name == "recorder_node-2"
    given = _ros(inside)
    assert given[:6] == ["-r", "__node:=recorder", "-r", "__ns:=/robots/left", "-r", "joint_states:=/all/joint_states"]
    assert given[6:8] == ["--params-file", f"{tmp_path}/params.yaml"]
    values = dict(item.split(":=", 1) for item in given[9::2])
    read = {name: json.loads(value) for name, value in values.items()}
    assert read == {
        "text": "left", "number": 3, "read_as_number": 1.5, "kept_text": "15", "flag": True, "list": ["a", "b"], "empty": "",
        "nested.inner": 0.25,
    }  # fmt: skip
    assert _ros(outside) == []


def test_parameters_reach_a_real_node(tmp_path: Path) -> None:
    pytest.importorskip("rclpy")
    (tmp_path / "echo_node.py").write_text(
        "import json, rclpy\nfrom rclpy.node import Node\nrclpy.init()\n"
        "n = Node('x', automatically_declare_parameters_from_overrides=True)\n"
        "found = {k: p.value for k, p in n.get_parameters_by_prefix('').items() if k.startswith('p_')}\n"
        "print('GOT', json.dumps(found), n.get_namespace())\n"
        "n.destroy_node(); rclpy.shutdown()\n"
    )
    text = f"""
        launch:
        - push_ros_namespace: {{namespace: arm}}
        - node:
            exec: {sys.executable}
            args: {tmp_path}/echo_node.py
            name: echo
            param:
            - {{name: p_text, value: 'a "quoted" text: 5', type: str}}
            - {{name: p_digits, value: '0017', type: str}}
            - {{name: p_small, value: 1.0e-05}}
            - {{name: p_whole, value: 2.0}}
            - {{name: p_empty, value: ''}}
            - {{name: p_list, value: [a, '1']}}
    """
    lines: list[str] = []
    assert launch(_write(tmp_path, text), {}, emit=lines.append) == 0
    (got,) = [line for line in lines if "GOT" in line]
    expected = {"p_text": 'a "quoted" text: 5', "p_digits": "0017", "p_small": 1e-05, "p_whole": 2.0, "p_empty": "", "p_list": ["a", "1"]}
    values, _, namespace = got.partition("GOT ")[2].rpartition(" ")
    assert json.loads(values) == expected and namespace == "/arm"


def test_arguments_choices_and_conditions(tmp_path: Path) -> None:
    text = """
        launch:
        - arg: {name: bundle, description: folder}
        - arg: {name: mode, default: realtime, choice: [{value: realtime}, {value: lockstep}]}
        - arg: {name: viewer, default: 'false'}
        - executable: {cmd: "echo viewer", if: $(var viewer)}
        - executable: {cmd: "echo $(var bundle) $(var mode) $(env HOME) $(env NOT_THERE none)", unless: $(var viewer)}
    """
    (spec,) = _read(tmp_path, text, bundle="b", mode="lockstep")
    assert spec.command == ("echo", "b", "lockstep", "/home/me", "none")
    assert _read(tmp_path, text, bundle="b", viewer="1")[0].command == ("echo", "viewer")
    for arguments, message in (
        ({}, r"test.launch.yaml:3: argument 'bundle' is needed: give `bundle:=VALUE` \(folder\)"),
        ({"bundle": "b", "mode": "fast"}, r"mode:=fast; valid: \['realtime', 'lockstep'\]"),
        ({"bundle": "b", "modus": "x"}, r"no argument \['modus'\]; its arguments: \['bundle', 'mode', 'viewer'\]"),
        ({"bundle": "b", "viewer": "maybe"}, "if: 'maybe', valid: true"),
    ):
        with pytest.raises(LaunchError, match=message):
            _read(tmp_path, text, **arguments)


def test_includes_share_variables_and_groups_end_them(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    _write(tmp_path / "inner", "launch:\n- arg: {name: word}\n- executable: {cmd: echo $(var word) $(dirname)}\n", "inner.launch.yaml")
    text = """
        launch:
        - let: {name: word, value: outer}
        - group:
          - include: {file: $(dirname)/inner/inner.launch.yaml, arg: [{name: word, value: given}]}
        - group:
            scoped: false
            children:
            - let: {name: leaked, value: 'yes'}
        - executable: {cmd: echo $(var word) $(var leaked)}
        - include: $(dirname)/inner/inner.launch.yaml
    """
    commands = [spec.command for spec in _read(tmp_path, text)]
    assert commands == [("echo", "given", f"{tmp_path}/inner"), ("echo", "outer", "yes"), ("echo", "outer", f"{tmp_path}/inner")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("launch:\n- arg: {name: a, default: b}\n- timer:\n    period: 1\n", r":3: tag 'timer' is not supported; valid: \['arg'"),
        ("launch:\n- node:\n    pkg: armstack\n    exec: arm_node\n    respawn: true\n", r":2: node: \['respawn'\] not supported"),
        ("launch:\n- executable: {cmd: $(command ls)}\n", r":2: \$\(command ls\) is not supported; valid: \$\(var NAME\)"),
        ("launch:\n- executable: {cmd: $(var nothing)}\n", r":2: \$\(var nothing\): not set"),
        ("launch:\n- executable: {cmd: $(env NOTHING)}\n", r":2: \$\(env NOTHING\): not in the environment"),
        ("launch:\n- node: {pkg: armstack, exec: arm_knot}\n", r":2: executable 'arm_knot' .*arm_node"),
        ("launch:\n- node: {pkg: no_such, exec: thing_of_no_path}\n", r":2: executable 'thing_of_no_path' of package 'no_such' not found"),
        ("launch:\n- include: {file: nowhere.yaml}\n", r":2: include of nowhere.yaml: no such file"),
        ("launch:\n- include: {file: $(find-pkg-share no_such)/x}\n", r":2: package 'no_such' not found"),
        ("launch:\n- node: {pkg: armstack}\n", r":2: attribute 'exec' is missing"),
        ("launch:\n- executable: {cmd: ls, on_exit: dance}\n", r":2: on_exit 'dance', valid: shutdown"),
        ("nodes: []\n", r"one key `launch` with a list, found \['nodes'\]"),
        ("launch: [\n", "not YAML"),
    ],
)
def test_what_is_not_understood_is_an_error_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(LaunchError, match=message) as caught:
        read_launch_file(_write(tmp_path, text), {}, {})
    assert "test.launch.yaml" in str(caught.value)


def test_the_first_failure_decides_the_exit_code(tmp_path: Path) -> None:
    text = """
        launch:
        - executable: {name: late, cmd: sh -c 'sleep 0.3; exit 5'}
        - executable: {name: first, cmd: sh -c 'echo oh no; exit 3'}
        - executable: {name: fine, cmd: 'true'}
    """
    lines: list[str] = []
    assert launch(_write(tmp_path, text), {}, emit=lines.append) == 3
    assert "[first-2] oh no" in lines and "[launch] first-2: ended with exit code 3" in lines


def test_a_process_whose_end_ends_the_launch_takes_the_others_along(tmp_path: Path) -> None:
    text = """
        launch:
        - executable: {name: main, cmd: sh -c 'sleep 0.2; kill -9 $$', on_exit: shutdown}
        - executable: {name: other, cmd: sleep 60}
    """.replace("$$", "\\$\\$")
    start = time.monotonic()
    lines: list[str] = []
    assert launch(_write(tmp_path, text), {}, emit=lines.append) == 128 + 9
    assert time.monotonic() - start < 10
    end = lines.index("[launch] main-1: killed by SIGKILL")
    assert lines[end + 1] == "[launch] without main-1 nothing goes on; shutting down other-2"


def test_the_end_of_the_policy_node_says_that_the_arm_holds(tmp_path: Path) -> None:
    specs = [
        ProcessSpec(name="policy-1", command=("sh", "-c", "exit 1", "policy_node")),
        ProcessSpec(name="arm-2", command=("sleep", "60"), shutdown_on_exit=True),
    ]
    lines: list[str] = []
    with Launch(specs, emit=lines.append) as running:
        while running.first_failure is None:
            time.sleep(0.01)
    assert "[launch] policy-1: ended with exit code 1" in lines
    assert "[launch] without policy-1 the arm holds; arm-2 still running (Ctrl-C ends the launch)" in lines


def test_sigint_goes_to_all_and_is_no_failure(tmp_path: Path) -> None:
    script = """
        import signal, sys, time
        signal.signal(signal.SIGINT, lambda *_: (print("bye", flush=True), sys.exit(0)))
        print("up", flush=True)
        time.sleep(60)
    """
    (tmp_path / "waiter.py").write_text(textwrap.dedent(script))
    text = f"launch:\n- executable: {{name: a, cmd: {sys.executable} {tmp_path}/waiter.py}}\n"
    text += f"- executable: {{name: b, cmd: {sys.executable} {tmp_path}/waiter.py}}\n"
    program = f"from robot_bridge.launch_runner import launch; raise SystemExit(launch({str(_write(tmp_path, text))!r}, {{}}))"
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.strip())
        if sum("up" in found for found in lines) == 2:
            process.send_signal(signal.SIGINT)
            break
    rest, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "[a-1] bye" in rest and "[b-2] bye" in rest


def test_a_process_that_ignores_sigint_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robot_bridge.launch_runner.SIGTERM_AFTER_S", 0.2)
    monkeypatch.setattr("robot_bridge.launch_runner.SIGKILL_AFTER_S", 0.2)
    up = threading.Event()
    spec = ProcessSpec(name="stubborn", command=("/bin/sh", "-c", "trap '' INT TERM; echo up; while :; do sleep 0.05; done"))
    with Launch([spec], emit=lambda line: up.set() if "up" in line else None) as running:
        assert up.wait(5)
    assert running.processes["stubborn"].returncode == -signal.SIGKILL
    assert running.exit_code == 0  # it was told to end


def test_a_command_that_cannot_be_started_ends_the_others(tmp_path: Path) -> None:
    specs = [ProcessSpec(name="sleeper", command=("sleep", "60")), ProcessSpec(name="missing", command=("/no/such/program",))]
    running = Launch(specs, emit=lambda line: None)
    with pytest.raises(LaunchError, match="missing: /no/such/program cannot be started"):
        running.start()
    assert running.processes["sleeper"].poll() is not None


def test_arguments_of_the_command_line() -> None:
    assert parse_arguments(["a:=1", "b:=x:=y"]) == {"a": "1", "b": "x:=y"}
    with pytest.raises(LaunchError, match="valid: NAME:=VALUE"):
        parse_arguments(["a=1"])


def test_the_command_line_says_what_a_launch_file_takes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["sim_policy", "--show-args"]) == 0
    text = capsys.readouterr().out
    assert "bundle" in text and "needed" in text and "realtime, or lockstep" in text
    assert main([str(_write(tmp_path, "launch:\n- arg: {name: code}\n- executable: {cmd: sh -c 'exit $(var code)'}\n")), "code:=4"]) == 4
    with pytest.raises(LaunchError, match="valid: FILE"):
        main(["sim_policy", "--fast"])
