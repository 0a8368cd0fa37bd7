"""An image channel as the text on `camera/NAME/contract`."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from rl_core.camera_calibration import CameraCalibration
from rl_core.contract import Channel
from rl_core.errors import ContractError


def channel_to_json(channel: Channel) -> str:
    """JSON text; `channel_from_json` gives an equal channel."""
    return json.dumps(dataclasses.asdict(channel))


def channel_from_json(text: str) -> Channel:
    """Reads `channel_to_json`'s text.

    Raises:
        ContractError: not JSON, or an unknown, missing or wrong field.
    """
    try:
        data: Any = json.loads(text)
        if data.get("calibration") is not None:
            data["calibration"] = CameraCalibration(**data["calibration"])
        return Channel(**data)
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        if isinstance(error, ContractError):
            raise
        raise ContractError(f"no contract of a camera: {type(error).__name__}: {error}") from error
