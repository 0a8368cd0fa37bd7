from __future__ import annotations

import json
import textwrap
import time
from pathlib import Path

import pytest

from rl_core.experiments import ExperimentError, generate_tables, load_plan, reproduce, stale_documents
from rl_core.experiments.code_hash import code_text, imported_modules, method_modules, methods_of, run_hash
from rl_core.experiments.results import read_result, write_result
from rl_core.experiments.tables import render_table

ROOT = Path(__file__).parents[2]
RUNS = '''
"""Runs of the test."""
import json, os, signal, time
from pathlib import Path

def count(config, seed, run_dir):
    """Counts its calls; waits once where it is asked to, as a long run would."""
    calls = run_dir / "calls"
    calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
    if config.get("fails"):
        raise ValueError("broken on purpose")
    if config.get("waits") and len(calls.read_text()) == 1:
        signal.signal(signal.SIGTERM, lambda *_: exit(143))
        (run_dir / "waiting").touch()
        time.sleep(60)
    return {"score": config["base"] + seed, "calls": len(calls.read_text()), "threads": int(os.environ["OMP_NUM_THREADS"])}
'''


@pytest.fixture
def tree(tmp_path, monkeypatch) -> Path:
    """A source tree with a method `fake` whose runs live in a package of ours."""
    package = tmp_path / "robot_bridge"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "fake_runs.py").write_text(RUNS)
    method = tmp_path / "rl_core" / "fake"
    method.mkdir(parents=True)
    (method / "learner.py").write_text("from rl_core.shared import value\n\n\ndef learn():\n    return value\n")
    (tmp_path / "rl_core" / "shared.py").write_text("value = 1  # a number\n")
    (tmp_path / "rl_core" / "other.py").write_text("value = 1\n")
    (tmp_path / "docs").mkdir()
    return tmp_path


def plan(tree: Path, text: str) -> None:
    (tree / "experiments").mkdir(exist_ok=True)
    (tree / "experiments" / "fake.yaml").write_text(textwrap.dedent(text))


PLAN = """
    runs:
      - {name: low, function: "robot_bridge.fake_runs:count", seeds: [0, 1, 2], config: {base: 10}, group: Low}
      - {name: high, function: "robot_bridge.fake_runs:count", seed: 4, config: {base: 100}}
    tables:
      scores: {columns: {score: points}, groups: [Low, high]}
"""


@pytest.fixture
def in_process(monkeypatch):
    """Does runs in this process: what a worker does, without its start-up time."""
    import os

    from rl_core.experiments import runner, worker

    class Inline:
        def __init__(self, command, **options):
            self.returncode = 0
            before = dict(os.environ)
            os.environ.update(options["env"])
            source = (Path(command[3]) / "robot_bridge" / "fake_runs.py").read_text()
            namespace: dict = {}
            exec(source, namespace)
            monkeypatch.setattr("rl_core.experiments.plan.Run.load_function", lambda run: namespace[run.function.partition(":")[2]])
            try:
                worker.main(command[3:])
            except ValueError:
                self.returncode = 1
            finally:
                os.environ.clear()
                os.environ.update(before)

        def poll(self):
            return self.returncode

        wait = poll

    monkeypatch.setattr(runner.subprocess, "Popen", Inline)
    monkeypatch.setattr(runner, "_POLL_S", 0.0)
    monkeypatch.setattr(runner, "current_commit", lambda root: "abc1234")


def test_missing_runs_are_done_and_kept(tree, in_process):
    plan(tree, PLAN)
    said: list[str] = []
    report = reproduce("fake", root=tree, say=said.append)
    assert sorted(report.done) == ["high", "low-s0", "low-s1", "low-s2"]
    assert not (report.skipped or report.cut or report.failed)
    result = json.loads((tree / "results" / "fake" / "low-s2.json").read_text())
    assert set(result) == {"hash", "config", "seed", "figures", "seconds", "commit", "date"}
    assert result["figures"] == {"score": 12, "calls": 1, "threads": 1}
    assert (result["seed"], result["config"], result["commit"]) == (2, {"base": 10}, "abc1234")
    again = reproduce("fake", root=tree)
    assert sorted(again.skipped) == sorted(report.done) and not again.done


def test_only_some_runs(tree, in_process):
    plan(tree, PLAN)
    assert reproduce("fake", root=tree, only=["Low"]).done == ["low-s0", "low-s1", "low-s2"]
    assert reproduce("fake", root=tree, only=["high"]).done == ["high"]


def test_a_failing_run_is_reported_and_the_others_go_on(tree, in_process):
    plan(tree, PLAN.replace("base: 100", "base: 100, fails: true"))
    report = reproduce("fake", root=tree)
    assert report.failed == ["high"] and len(report.done) == 3
    assert not (tree / "results" / "fake" / "high.json").exists()


def test_changed_code_makes_stale_and_reworded_code_does_not(tree, in_process):
    plan(tree, PLAN)
    reproduce("fake", root=tree)
    shared = tree / "rl_core" / "shared.py"
    shared.write_text('"""A module."""\n\nvalue = (\n    1\n)\n')
    (tree / "rl_core" / "other.py").write_text("value = 2\n")  # not imported by the method
    assert len(reproduce("fake", root=tree).skipped) == 4
    shared.write_text("value = 2\n")
    said: list[str] = []
    report = reproduce("fake", root=tree, say=said.append)
    assert len(report.done) == 4 and any("stale, from commit abc1234" in line for line in said)


def test_changed_config_makes_only_that_run_stale(tree, in_process):
    plan(tree, PLAN)
    reproduce("fake", root=tree)
    plan(tree, PLAN.replace("base: 100", "base: 101"))
    report = reproduce("fake", root=tree)
    assert report.done == ["high"] and len(report.skipped) == 3


def test_no_time_means_nothing_begun_and_what_was_cut_is_said(tree, in_process):
    plan(tree, PLAN)
    said: list[str] = []
    report = reproduce("fake", hours=0.0, root=tree, say=said.append)
    assert len(report.cut) == 4 and said == [f"{name}: not begun" for name in report.cut]


def test_a_cut_run_is_stopped_by_a_signal_and_goes_on_where_it_was(tree, monkeypatch):
    """Real processes: the limit comes while the run waits; the next call resumes in the same folder."""
    plan(tree, PLAN.replace("base: 100", "base: 100, waits: true"))
    begun = time.monotonic()
    clock = {"limit": float("inf")}
    monkeypatch.setattr("rl_core.experiments.runner.time", _Clock(tree, clock))
    first = reproduce("fake", hours=1.0, root=tree, only=["high"])
    assert first.cut == ["high"] and time.monotonic() - begun < 50
    monkeypatch.undo()
    second = reproduce("fake", root=tree, only=["high"])
    assert second.done == ["high"]
    run = load_plan("fake", tree).run("high")
    assert read_result(run, tree).figures["calls"] == 2


class _Clock:
    """Time that jumps past every limit once the run says that it waits."""

    def __init__(self, tree, clock):
        self.tree = tree

    def monotonic(self):
        return time.monotonic() + (7200 if any(self.tree.rglob("waiting")) else 0)

    def sleep(self, seconds):
        time.sleep(seconds)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runs: [{name: a}]", "valid: \\['function', 'name'\\]"),
        ("runs: [{name: a, function: 'os:system', nonsense: 1}]", "nonsense"),
        ("runs: [{name: a/b, function: 'rl_core.x:f'}]", "run name 'a/b'"),
        ("runs: [{name: a, function: 'rl_core.x:f'}, {name: a, function: 'rl_core.x:f'}]", "repeat: \\['a'\\]"),
        ("runs: [{name: a, function: 'rl_core.x:f'}]\ntables: {t: {columns: {x: y}, groups: [b]}}", "groups \\['b'\\], valid: \\['a'\\]"),
        ("runs: [", "not YAML"),
        ("[]", "valid"),
    ],
)
def test_a_faulty_plan_says_what_is_wrong(tree, text, message):
    plan(tree, text)
    with pytest.raises(ExperimentError, match=message):
        load_plan("fake", tree)


def test_only_functions_of_our_packages_run(tree):
    plan(tree, "runs: [{name: a, function: 'os:system'}, {name: b, function: 'rl_core.contract:nothing'}]")
    runs = load_plan("fake", tree).runs
    with pytest.raises(ExperimentError, match="function 'os:system', valid: module:function in rl_core, sim_envs, robot_bridge"):
        runs[0].load_function()
    with pytest.raises(ExperimentError, match="nothing"):
        runs[1].load_function()
    with pytest.raises(ExperimentError, match="no experiments of 'nosuch', valid: fake"):
        load_plan("nosuch", tree)


def test_table_shows_mean_and_standard_error_and_where_results_are_old(tree):
    plan(tree, PLAN)
    for run, score in zip(load_plan("fake", tree).runs[:3], (1.0, 2.0, 6.0), strict=True):
        write_result(run, tree, run_hash=run_hash(run, tree), figures={"score": score}, seconds=1, commit="abc1234")
    expected = "| run | points | runs |\n| --- | --- | --- |\n| Low | 3 ± 1.5 | 3 |\n| high | not run yet | 0 of 1 |\n"
    assert render_table("fake", "scores", tree) == expected
    run = load_plan("fake", tree).runs[3]
    write_result(run, tree, run_hash=run_hash(run, tree), figures={"score": None}, seconds=1, commit="abc1234")
    assert "| high | none | 1 |\n" in render_table("fake", "scores", tree)
    (tree / "rl_core" / "shared.py").write_text("value = 3\n")
    assert "| Low (from commit abc1234) | 3 ± 1.5 | 3 |" in render_table("fake", "scores", tree)


def test_docs_are_rewritten_between_their_marks(tree):
    plan(tree, PLAN)
    page = tree / "docs" / "page.md"
    page.write_text("before\n<!-- results:fake:scores -->\nold\n<!-- end -->\nafter\n")
    assert stale_documents(tree) == [page]
    assert generate_tables(tree) == [page] and generate_tables(tree) == [] and stale_documents(tree) == []
    text = page.read_text()
    assert text.startswith("before\n<!-- results:fake:scores -->\n| run | points |") and text.endswith("|\n<!-- end -->\nafter\n")
    page.write_text("<!-- results:fake:scores -->\nno end\n")
    with pytest.raises(ExperimentError, match="without its end"):
        stale_documents(tree)
    page.write_text("<!-- results:fake:nosuch -->\n<!-- end -->\n")
    with pytest.raises(ExperimentError, match="no table 'nosuch', valid: scores"):
        generate_tables(tree)


def test_a_figure_that_is_no_number_is_refused(tree):
    plan(tree, PLAN)
    plan(tree, PLAN)
    run = load_plan("fake", tree).runs[0]
    for figure in (float("nan"), "good", True):
        with pytest.raises(ExperimentError, match="valid: a finite number or None"):
            write_result(run, tree, run_hash="", figures={"score": figure}, seconds=1, commit="")


def test_hash_follows_a_runs_function_and_not_what_its_package_registers(tree):
    plan(tree, PLAN)
    run = load_plan("fake", tree).runs[0]
    before = run_hash(run, tree)
    (tree / "robot_bridge/__init__.py").write_text("NEW = 1\n")
    assert run_hash(run, tree) == before
    module = tree / "robot_bridge/fake_runs.py"
    module.write_text(module.read_text() + "\nNEW = 1\n")
    assert run_hash(run, tree) != before


def test_hash_reaches_what_a_method_imports_and_nothing_else():
    modules = imported_modules(method_modules("bc", ROOT), ROOT)
    assert {"rl_core.baselines.bc", "rl_core.models.mlp", "rl_core.data.normalizer", "rl_core.contract", "rl_core.training.config"} <= set(
        modules
    )
    assert not any(name.startswith(("rl_core.dac", "rl_core.methods", "rl_core.training.trainer", "sim_envs")) for name in modules)


def test_hash_reaches_the_methods_beside_a_policy_and_what_they_share():
    modules = imported_modules(method_modules("recognition", ROOT), ROOT)
    assert {"robot_bridge.auxiliary.recognition.demul", "robot_bridge.auxiliary.vlm.prompts", "rl_core.bundle"} <= set(modules)
    assert all(name.startswith(("rl_core", "robot_bridge.auxiliary")) for name in modules)


@pytest.mark.parametrize("plan", sorted(file.stem for file in (ROOT / "experiments").glob("*.yaml")))
def test_every_run_names_the_code_that_decides_it(plan):
    """Without `method`, a change of that code would leave its rows as they are."""
    for run in load_plan(plan, ROOT).runs:
        assert all(method_modules(method, ROOT) for method in methods_of(run)), run.name


def test_a_run_of_several_methods_is_hashed_with_the_code_of_each(tree):
    further = tree / "robot_bridge" / "auxiliary" / "more"
    further.mkdir(parents=True)
    hashes = set()
    for number, place in enumerate([further / "judge.py", further / "judge.py", tree / "rl_core" / "fake" / "learner.py"]):
        place.write_text(f"value = {number}\n")
        plan(tree, 'runs: [{name: both, function: "robot_bridge.fake_runs:count", config: {base: 1, method: [fake, more]}}]')
        (run,) = load_plan("fake", tree).runs
        hashes.add(run_hash(run, tree))
    assert methods_of(run) == ["fake", "more"] and len(hashes) == 3


def test_code_text_is_code_alone(tmp_path):
    file = tmp_path / "a.py"
    file.write_text(
        '"""Doc."""\nclass A:\n    x: int = 1  # comment\n    """Field."""\n\ndef f():\n    """Only this."""\n\n\nname = "kept"\n'
    )
    assert code_text(file) == "class A:\n    x: int = 1\n\ndef f():\n    pass\nname = 'kept'"
