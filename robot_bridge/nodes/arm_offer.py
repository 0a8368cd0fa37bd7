"""What an arm node says about its arm on `arm/contract`, and what others read from it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from rl_core.contract import ContractError, ContractMismatch, RobotContract
from rl_core.errors import ArmstackError
from robot_bridge.control.limits import ArmLimits, LimitsError

SimMode = Literal["none", "realtime", "lockstep"]


class OfferError(ArmstackError):
    """A text on `arm/contract` that cannot be read."""


@dataclass(frozen=True, kw_only=True)
class ArmOffer:
    """The arm's side of the bargain.

    Attributes:
        contracts: one contract for each kind of action the arm understands, with the channels it observes.
        limits: the arm's limits.
        tool_frame: site of the kinematic model that is the end effector.
        ik_model: MJCF text of the arm alone.
        sim_mode: `none` for a real arm.
        clock: `system`, or `sim` where the stamps are those of /clock.
        control_period_s: period of the command filter.
    """

    contracts: tuple[RobotContract, ...]
    limits: ArmLimits
    tool_frame: str
    ik_model: str
    sim_mode: SimMode
    clock: Literal["system", "sim"]
    control_period_s: float

    def to_json(self) -> str:
        """Text for `arm/contract`."""
        values = {
            "contracts": [json.loads(contract.to_json()) for contract in self.contracts],
            "limits": json.loads(self.limits.to_json()),
            "tool_frame": self.tool_frame,
            "ik_model": self.ik_model,
            "sim_mode": self.sim_mode,
            "clock": self.clock,
            "control_period_s": self.control_period_s,
        }
        return json.dumps(values, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> ArmOffer:
        """Reads `to_json`'s text.

        Raises:
            OfferError: not JSON, or a field is missing or wrong.
        """
        try:
            values = json.loads(text)
            return cls(
                contracts=tuple(RobotContract.from_json(json.dumps(contract)) for contract in values["contracts"]),
                limits=ArmLimits.from_json(json.dumps(values["limits"])),
                **{key: values[key] for key in ("tool_frame", "ik_model", "sim_mode", "clock", "control_period_s")},
            )
        except (ValueError, KeyError, TypeError, ContractError, LimitsError) as error:
            raise OfferError(f"arm/contract: {type(error).__name__}: {error}") from error

    def contract_for(self, need: RobotContract) -> RobotContract:
        """The offered contract that `need` fits.

        Raises:
            ContractMismatch: none; says what differs from the one whose action is nearest.
        """
        nearest: ContractMismatch | None = None
        for contract in self.contracts:
            try:
                need.accepts(contract, offered_by="arm")
                return contract
            except ContractMismatch as mismatch:
                if nearest is None or len(mismatch.differences) < len(nearest.differences):
                    nearest = mismatch
        raise nearest or ContractMismatch("policy", "arm", ["the arm offers no contract"])
