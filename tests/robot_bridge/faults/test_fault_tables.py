"""Fault tables over real ROS graphs, judged by the bag; the whole ones are made by `all_arms`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from robot_bridge.faults.bag_trace import read_trace
from robot_bridge.faults.catalogue import faults
from robot_bridge.faults.judge import Cell
from robot_bridge.faults.report import catalogue, cells_of, figures, page
from tests.robot_bridge.command_line import Cli
from tests.robot_bridge.faults.all_arms import PAGE, RESULTS, refresh
from tests.robot_bridge.faults.arms_under_test import franka, servo, simulated, trossen
from tests.ros_graph import ros

__all__ = ["ros"]


def assert_green(cells: list[Cell]) -> None:
    assert {cell.fault: cell.problems for cell in cells if cell.problems} == {}
    for cell in cells:
        assert not cell.resumed and cell.of_limit <= 1.0
        if cell.constant_s is not None:
            assert cell.dropped_s is not None and 0.0 <= cell.dropped_s <= cell.constant_s


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (simulated, ("commands dropped", "not a number", "second sender", "frozen state", "guard holds", "e-stop")),
        (lambda folder: servo(folder, "so101"), ("wrong name", "stamps in the past", "state not a number", "arm lost", "sender killed")),
        (trossen, ("jumping command", "jumping state", "driver blocked", "sender killed", "e-stop")),
        (franka, ("stamps in the future", "dead guard", "arm lost", "e-stop")),
    ],
    ids=["simulated", "servo", "trossen", "franka"],
)  # fmt: skip
def test_every_cell_is_green(make, names: tuple[str, ...], tmp_path: Path, ros: int) -> None:
    from robot_bridge.faults.graph import fault_table

    with make(tmp_path) as ready:
        cells = fault_table(ready.arm, faults(names), tmp_path, parameters=ready.parameters, namespace=ready.namespace)
    assert [cell.fault for cell in cells] == list(names)
    assert_green(cells)


def test_the_command_refuses_what_it_does_not_know_and_says_what_it_does(cli: Cli, tmp_path: Path) -> None:
    outcome = cli("fault-table", "simulated", "--faults", "fire")
    assert outcome.status == 2 and "no fault ['fire'], valid: ['commands dropped'" in outcome.err
    outcome = cli("fault-table", "simulated", "--config", tmp_path / "none.yaml")
    assert outcome.status == 2 and "no such file" in outcome.err


def test_an_arm_that_does_not_start_ends_the_table_with_what_it_said(ros: int, tmp_path: Path) -> None:
    from robot_bridge.faults.graph import FaultRunError, fault_table

    with pytest.raises(FaultRunError, match="setting host is missing"):
        fault_table("trossen", faults(("e-stop",)), tmp_path)


def test_a_bag_without_outputs_is_an_error(tmp_path: Path) -> None:
    from rl_core.data.formats.bag import BagWriter
    from rl_core.errors import ArmstackError

    BagWriter(tmp_path / "bag").close()
    with pytest.raises(ArmstackError, match="did the recorder listen"):
        read_trace(tmp_path / "bag", ("a",), applied="/arm/applied", marks="/faults/marks")


def test_the_page_shows_what_is_in_the_results() -> None:
    written = json.loads(RESULTS.read_text())
    assert PAGE.read_text() == refresh(PAGE.read_text(), {"catalogue": catalogue(), "tables": page(written)})
    tables = cells_of(written)
    assert len(tables) >= 5 and all({cell.fault for cell in cells} >= {fault.name for fault in faults()} for cells in tables.values())
    assert json.loads(json.dumps(figures(tables, {key: value for key, value in written.items() if key != "arms"}))) == written


@pytest.mark.slow
def test_every_cell_of_the_results_is_green() -> None:
    for cells in cells_of(json.loads(RESULTS.read_text())).values():
        assert_green(cells)
