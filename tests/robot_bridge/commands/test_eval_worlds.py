"""`armstack eval` fits a policy to the arm of the world it is judged in."""

from __future__ import annotations

from pathlib import Path

import pytest

from robot_bridge.commands import eval as command
from tests.robot_bridge.command_line import Cli


@pytest.mark.parametrize(("world", "controller"), [("filtered", "joint_position"), ("osc_pose", "osc_pose")])
def test_regression_a_policy_is_fitted_to_the_controller_of_its_world(
    world: str, controller: str, bc: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Displacements are scaled by what the arm makes of them, which operational space control does not need."""
    offered = []
    monkeypatch.setattr(command, "fitted", lambda policy, contracts: offered.extend(contracts) or policy)
    assert cli("eval", str(bc / "bundle"), "--world", world, "--episodes", "1", "--horizon", "2").status == 0
    assert [contract.action.controller for contract in offered] == [controller]
