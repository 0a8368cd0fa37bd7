import hashlib
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from sim_envs.reward_free.coverage import CellCoverage
from sim_envs.reward_free.pendulum import PendulumEnv
from sim_envs.reward_free.rewards import RewardError, columns, find_reward
from sim_envs.reward_free.tolerance import gaussian, linear, within
from sim_envs.rooms.rewards import REWARDS

KNOWN = REWARDS["four_rooms"]
X = np.zeros((3, 2))


def write(folder: Path, text: str) -> Path:
    file = folder / "rewards.py"
    file.write_text(text)
    return file


def test_unknown_name_lists_the_valid_ones() -> None:
    with pytest.raises(RewardError, match="'sww', valid: ne, near_ne, near_nw, near_se, near_sw, nw, se, sw, or FILE.py:NAME"):
        find_reward("sww", KNOWN)
    assert find_reward("sw", KNOWN) is KNOWN["sw"]


def test_a_users_file_is_named_with_its_sha256_before_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, "print('ran')\n\ndef left(observation, action, next_observation):\n    return next_observation[:, 0] < 0.5\n")
    reward = find_reward(f"{file}:left", KNOWN)
    told, ran = capsys.readouterr().out.splitlines()
    assert told == f"reward left: runs the code of {file} (sha256 {hashlib.sha256(file.read_bytes()).hexdigest()})" and ran == "ran"
    values = reward(X, X, np.array([[0.0, 0.0], [0.9, 0.0], [0.4, 0.0]]))
    assert values.dtype == np.float64 and values.tolist() == [1.0, 0.0, 1.0]


def test_a_users_file_may_use_dataclasses_and_its_own_imports(tmp_path: Path) -> None:
    text = "import dataclasses\nimport numpy as np\n\n@dataclasses.dataclass\nclass Goal:\n    x: float = 1.0\n\n"
    file = write(tmp_path, text + "def r(observation, action, next_observation):\n    return np.full(len(observation), Goal().x)\n")
    assert find_reward(f"{file}:r", KNOWN, say=lambda line: None)(X, X, X).tolist() == [1.0] * 3


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("def good(o, a, n):\n    return n[:, 0]\n", "bad", "'bad' is NoneType, valid: a function, one of good"),
        ("good = 3\n", "good", "'good' is int, valid: a function"),
        ("import no_such_module_here\n", "good", "ModuleNotFoundError while it was run"),
        ("def good(o, a, n) return 1\n", "good", "SyntaxError"),
    ],
)
def test_a_file_without_the_function_says_so(tmp_path: Path, text: str, name: str, said: str) -> None:
    with pytest.raises(RewardError, match=said):
        find_reward(f"{write(tmp_path, text)}:{name}", KNOWN, say=lambda line: None)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(RewardError, match="no such file"):
        find_reward(f"{tmp_path}/none.py:good", KNOWN)


@pytest.mark.parametrize("result", ["n", "n[:, 0] * float('nan')", "1.0", "None", "n[:, 0] + 1j"])
def test_results_that_are_not_one_finite_number_a_transition_are_refused(tmp_path: Path, result: str) -> None:
    file = write(tmp_path, f"def r(o, a, n):\n    return {result}\n")
    reward = find_reward(f"{file}:r", KNOWN, say=lambda line: None)
    with pytest.raises(RewardError, match=r"valid: finite numbers of shape \(3,\)"):
        reward(X, X, X)


def test_a_function_that_raises_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "rewards.py"
    file.write_text("def boom(o, a, n):\n    raise ValueError('my own mistake')\n")
    reward = find_reward(f"{file}:boom", {}, say=lambda text: None)
    with pytest.raises(RewardError, match="boom: ValueError: my own mistake .*rewards.py, line 2"):
        reward(np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((3, 2)))


def test_columns_follow_each_other() -> None:
    assert columns({"a": 2, "b": 1, "c": 3}) == {"a": slice(0, 2), "b": slice(2, 3), "c": slice(3, 6)}


def test_tolerances() -> None:
    x = np.array([-3.0, 0.0, 1.0, 2.0, 5.0])
    assert np.allclose(linear(x, 2.0, margin=2.0, value_at_margin=0.5), [0.0, 0.5, 0.75, 1.0, 1.0])
    assert np.allclose(gaussian(x, 2.0, margin=2.0), [0.1**6.25, 0.1, 0.1**0.25, 1.0, 1.0])
    assert within(x, 0.0, 2.0).tolist() == [0.0, 1.0, 1.0, 1.0, 0.0]


def test_coverage_counts_cells() -> None:
    coverage = CellCoverage((-1.0, -1.0), (1.0, 1.0), cells=20)
    assert coverage.share == 0.0
    coverage.add([[-0.99, -0.99], [-0.91, -0.99], [1.0, 1.0], [0.0, -1.0], [1.01, 0.0]])
    assert coverage.visits[0, 0] == 2 and coverage.visits[19, 19] == 1 and coverage.visits[10, 0] == 1
    assert coverage.visits.sum() == 4 and coverage.share == 3 / 400  # the last lies outside
    middles = -0.95 + 0.1 * np.arange(20)
    coverage.add(np.stack(np.meshgrid(middles, middles), axis=-1))
    assert coverage.share == 1.0 and coverage.visits.sum() == 404
    with pytest.raises(ValueError, match=r"valid: \(\.\.\., 2\)"):
        coverage.add(np.zeros(3))


def test_pendulums_label_is_gymnasiums_own_reward() -> None:
    theirs, ours = gymnasium.make("Pendulum-v1"), PendulumEnv()
    observation, _ = theirs.reset(seed=5)
    assert np.array_equal(observation, ours.reset(seed=5)[0])
    random = np.random.default_rng(0)
    for _ in range(200):
        action = random.uniform(-1, 1, 1).astype(np.float32)
        after, reward, _, truncated, _ = theirs.step(2 * action)
        mine, free, terminated, over, _ = ours.step(action)
        assert np.allclose(mine, after, atol=1e-6) and free == 0.0 and not terminated and over == truncated
        labelled = {name: r(observation[None], action[None], after[None])[0] for name, r in ours.rewards.items()}
        assert labelled["cost"] == pytest.approx(reward, abs=2e-5)
        assert 0.0 <= labelled["swing_up"] <= 1.0 and labelled["balanced"] in (0.0, 1.0)
        observation = after
    assert truncated


def test_pendulums_best_and_worst_states() -> None:
    rewards = PendulumEnv().rewards
    states, still = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 8.0], [1.0, 0.0, 3.0]]), np.array([[0.0], [1.0], [0.0]])
    assert np.allclose(rewards["swing_up"](states, still, states)[:2], [1.0, 0.0], atol=1e-6)
    assert rewards["balanced"](states, still, states).tolist() == [1.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="one finite number"):
        PendulumEnv().step(np.array([np.nan]))
