"""The house's rules that a machine can check."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FORBIDDEN = {
    "rl_core": {"sim_envs", "robot_bridge", "mujoco", "rclpy", "robosuite", "mink"},
    "sim_envs": {"robot_bridge", "rclpy"},
}
PICKLES = {"pickle", "cloudpickle", "dill", "joblib", "shelve"}


def modules(room: str) -> list[Path]:
    files = sorted((ROOT / room).rglob("*.py"))
    assert files, f"{room} holds no modules"
    return files


def imported(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("room", FORBIDDEN)
def test_imports_go_one_way(room: str) -> None:
    wrong = {str(file.relative_to(ROOT)): found for file in modules(room) if (found := imported(file) & FORBIDDEN[room])}
    assert not wrong


@pytest.mark.parametrize("room", ["rl_core", "sim_envs", "robot_bridge"])
def test_nothing_is_unpickled(room: str) -> None:
    wrong = {str(file.relative_to(ROOT)): found for file in modules(room) if (found := imported(file) & PICKLES)}
    assert not wrong
    for file in modules(room):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("torch.load", "np.load", "numpy.load"):
                safe = {k.arg: ast.unparse(k.value) for k in node.keywords}
                assert safe.get("weights_only") == "True" or safe.get("allow_pickle", "False") == "False" and "np" in ast.unparse(node.func)


@pytest.mark.parametrize("room", ["rl_core", "sim_envs", "robot_bridge"])
def test_modules_stay_short(room: str) -> None:
    long = {str(f.relative_to(ROOT)): n for f in modules(room) if (n := len(f.read_text().splitlines())) > 300}
    assert not long


def test_only_the_control_loop_commands_an_arm() -> None:
    """No path moves an arm around the command filter: `arm.command(...)` is called in the control loop (and its driver thread) alone."""
    callers = set()
    for file in modules("robot_bridge"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "command":
                if ast.unparse(node.func.value).split(".")[-1].lstrip("_") in ("arm", "driver"):
                    callers.add(str(file.relative_to(ROOT)))
    assert callers and callers <= {"robot_bridge/control/loop.py", "robot_bridge/arms/driver_thread.py"}
