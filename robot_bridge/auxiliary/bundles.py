"""What a recogniser's bundle holds beside its weights: settings, classes, camera contract, calibration numbers.

`Bundle.config` is {settings: the method's configuration, classes: [...], camera: an image channel or null, calibration: {name: number}}.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from torch import Tensor

from rl_core.bundle import Bundle, BundleError
from rl_core.camera_channel import channel_from_json, channel_to_json
from rl_core.contract import Channel
from rl_core.errors import ContractError, ContractMismatch
from rl_core.training.config import Config
from robot_bridge.auxiliary.image_data import ImageData

AnyConfig = TypeVar("AnyConfig", bound=Config)

_FIELDS = ("settings", "classes", "camera", "calibration")
_MOVED_M, _TURNED_RAD = 0.01, math.radians(2.0)


def image_channel(shape: Sequence[int], *, name: str = "front_image") -> Channel:
    """The camera contract of training frames (n, H, W, 3) or (H, W, 3): RGB, first row on top."""
    return Channel(name=name, kind="image", shape=tuple(shape[-3:]), encoding="rgb8", row_order="top_down")


@dataclass(frozen=True, kw_only=True)
class Recognition:
    """What a recogniser was made for.

    Attributes:
        settings: its configuration as JSON-able values; `config(XConfig)` gives it back.
        classes: names of its score columns.
        camera: the pictures it takes; None for pictures of any size.
        calibration: numbers found on held-out data, e.g. thresholds and temperatures.
    """

    settings: Mapping[str, Any]
    classes: tuple[str, ...]
    camera: Channel | None = None
    calibration: Mapping[str, float] = field(default_factory=dict)

    def config(self, config_class: type[AnyConfig]) -> AnyConfig:
        """The configuration it was trained with.

        Raises:
            ConfigError: settings of another method.
        """
        return config_class.from_dict(self.settings)

    def accepts(self, offered: Channel) -> Iterator[str]:
        """Checks what a camera publishes; gives what fits but is not the same.

        Raises:
            ContractMismatch: another size, encoding or row order; lists each difference with both sides.
        """
        if self.camera is None:
            return iter(())
        pairs = [(name, getattr(self.camera, name), getattr(offered, name)) for name in ("shape", "encoding", "row_order")]
        found = [f"camera.{name}: needs {need!r}, offered {have!r}" for name, need, have in pairs if need != have]
        if found:
            raise ContractMismatch("the recogniser", f"camera {offered.name!r}", found)
        return self._cautions(offered)

    def _cautions(self, offered: Channel) -> Iterator[str]:
        was, now = self.camera.calibration if self.camera else None, offered.calibration
        if was is None or now is None:
            return
        if was.frame != now.frame:
            yield f"the camera was calibrated in frame {was.frame}, now in {now.frame}"
            return
        moved_m, turned = now.moved_from(was)
        if moved_m > _MOVED_M or turned > _TURNED_RAD:
            yield f"the camera stands {moved_m:.3f} m and {math.degrees(turned):.1f} degrees from where it was"


def fingerprint(data: ImageData) -> str:
    """sha256 over pictures, labels and class names, for `Bundle.data_fingerprint`."""
    digest = hashlib.sha256(json.dumps([data.frames.shape, data.classes]).encode())
    digest.update(np.ascontiguousarray(data.frames).data)
    digest.update(np.ascontiguousarray(data.labels).data)
    return digest.hexdigest()


def recogniser_bundle(
    method: str,
    config: Config,
    weights: Mapping[str, Tensor],
    *,
    classes: Sequence[str],
    camera: Channel | None = None,
    calibration: Mapping[str, float] | None = None,
    arrays: Mapping[str, Tensor] | None = None,
    data_fingerprint: str = "",
    parents: Sequence[str] = (),
    metrics: Mapping[str, float] | None = None,
) -> Bundle:
    """The bundle of a recogniser; see `Recognition` and `rl_core.bundle.Bundle` for its parts.

    Raises:
        BundleError: classes that repeat or a calibration number that is not finite.
    """
    if not classes or len(set(classes)) != len(classes):
        raise BundleError(f"bundle of {method}: classes {list(classes)}, valid: different names")
    numbers = {name: float(value) for name, value in (calibration or {}).items()}
    if bad := sorted(name for name, value in numbers.items() if not math.isfinite(value)):
        raise BundleError(f"bundle of {method}: calibration {', '.join(bad)} is NaN or infinite, valid: finite numbers")
    return Bundle(
        kind="recogniser",
        method=method,
        config={
            "settings": config.to_dict(),
            "classes": list(classes),
            "camera": None if camera is None else json.loads(channel_to_json(camera)),
            "calibration": numbers,
        },
        weights=weights,
        arrays=arrays or {},
        data_fingerprint=data_fingerprint,
        parents=tuple(parents),
        metrics=metrics or {},
    )


def recognition_of(bundle: Bundle) -> Recognition:
    """What `recogniser_bundle` put into a bundle beside its tensors.

    Raises:
        BundleError: no recogniser's bundle, or a field that is missing or cannot be read.
    """
    if bundle.kind != "recogniser":
        raise BundleError(f"bundle of kind {bundle.kind!r}, valid: recogniser")
    if missing := [name for name in _FIELDS if name not in bundle.config]:
        raise BundleError(f"bundle of {bundle.method}: config has no {', '.join(missing)}; valid: {', '.join(_FIELDS)}")
    settings, classes, camera, calibration = (bundle.config[name] for name in _FIELDS)
    try:
        channel = None if camera is None else channel_from_json(json.dumps(camera))
        numbers = {name: float(value) for name, value in calibration.items()}
    except (ContractError, AttributeError, TypeError, ValueError) as error:
        raise BundleError(f"bundle of {bundle.method}: config: {error}") from error
    return Recognition(settings=settings, classes=tuple(classes), camera=channel, calibration=numbers)
