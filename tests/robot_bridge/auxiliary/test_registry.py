"""The registry, and bundles of its methods."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
import torch

from rl_core.bundle import Bundle, BundleError
from rl_core.camera_calibration import CameraCalibration
from rl_core.contract import Channel
from rl_core.errors import ContractMismatch
from rl_core.method_list import METHODS, import_attribute
from rl_core.training.config import Config, ConfigError
from robot_bridge.auxiliary.bundles import Recognition, image_channel, recogniser_bundle, recognition_of
from robot_bridge.auxiliary.method import AuxiliaryMethod
from robot_bridge.auxiliary.registry import AUXILIARY_METHODS, UnknownAuxiliaryMethod, find_method, load_auxiliary
from tests.robot_bridge.auxiliary.fakes import BRIGHTNESS, HERE, Brightness, BrightnessConfig, small_bundle


@pytest.mark.parametrize("name", AUXILIARY_METHODS)
def test_what_a_row_names_is_there(name: str) -> None:
    method = AUXILIARY_METHODS[name]
    assert method.name == name and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) and name not in METHODS
    assert issubclass(method.config_class, Config) and method.summary
    functions = (method.load, method.evaluate, method.read_data, method.make_data, *([method.train] if method.train else []))
    assert all(callable(import_attribute(function)) for function in functions)


def test_a_method_is_found_by_name_or_as_module_and_row() -> None:
    assert find_method(f"{HERE}:BRIGHTNESS") is BRIGHTNESS and BRIGHTNESS.topic == "aux/brightness"
    assert dataclasses.replace(BRIGHTNESS, name="local-prompt").topic == "aux/local_prompt"
    with pytest.raises(UnknownAuxiliaryMethod, match="'brightnes', valid: .*module:ROW"):
        find_method("brightnes")
    with pytest.raises(UnknownAuxiliaryMethod, match="module 'no_such' cannot be imported"):
        find_method("no_such:ROW")
    with pytest.raises(UnknownAuxiliaryMethod, match="found NoneType, valid: an AuxiliaryMethod"):
        find_method(f"{HERE}:NOTHING")


def test_a_bundle_gives_back_settings_classes_camera_and_calibration(tmp_path: Path) -> None:
    calibration = CameraCalibration(frame="base", position=(0, 0, 1), quaternion=(0, 0, 0, 1), matrix=(50, 50, 8, 8))
    camera = dataclasses.replace(image_channel((9, 16, 16, 3)), calibration=calibration)
    config = BrightnessConfig(slope=3.0)
    saved = recogniser_bundle(
        "brightness", config, {"limit": torch.tensor([0.5])}, classes=("dark", "bright"), camera=camera, calibration={"threshold": 0.25}
    ).save(tmp_path / "bundle")
    read = recognition_of(Bundle.load(saved))
    assert read.config(BrightnessConfig) == config and read.classes == ("dark", "bright") and read.camera == camera
    assert read.calibration == {"threshold": 0.25}


def test_a_bundle_of_another_method_or_kind_is_refused(tmp_path: Path) -> None:
    bundle = Bundle.load(small_bundle(tmp_path / "bundle"))
    assert isinstance(load_auxiliary(BRIGHTNESS, bundle), Brightness)
    with pytest.raises(BundleError, match="method 'other', kind 'recogniser'; valid: method 'brightness', kind 'recogniser'"):
        load_auxiliary(BRIGHTNESS, dataclasses.replace(bundle, method="other"))
    with pytest.raises(BundleError, match="kind 'policy'; valid: .*armstack aux train brightness"):
        load_auxiliary(BRIGHTNESS, dataclasses.replace(bundle, kind="policy"))
    with pytest.raises(BundleError, match="kind 'policy', valid: recogniser"):
        recognition_of(dataclasses.replace(bundle, kind="policy"))


def test_what_load_gives_is_held_to_the_protocol_and_to_the_requests(tmp_path: Path) -> None:
    bundle = Bundle.load(small_bundle(tmp_path / "bundle"))
    with pytest.raises(BundleError, match="gave dict, which has not all that a recogniser has"):
        load_auxiliary(dataclasses.replace(BRIGHTNESS, load=f"{HERE}:load_a_mapping"), bundle)
    more: AuxiliaryMethod = dataclasses.replace(BRIGHTNESS, requests={**BRIGHTNESS.requests, "sing": BRIGHTNESS.requests["reset"]})
    with pytest.raises(BundleError, match="gave Brightness without sing"):
        load_auxiliary(more, bundle)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"settings": {}}, "config has no classes, camera, calibration"),
        ({"settings": {}, "classes": [], "camera": {"name": "x"}, "calibration": {}, "more": 1}, "kind|shape|names"),
        ({"settings": {}, "classes": [], "camera": None, "calibration": {"a": "b"}}, "could not convert"),
    ],
)
def test_a_bundle_that_cannot_be_read_says_which_field(config: dict[str, object], says: str) -> None:
    with pytest.raises(BundleError, match=says):
        recognition_of(Bundle(kind="recogniser", method="m", config=config, weights={}))


def test_bad_classes_and_calibration_never_become_a_bundle() -> None:
    with pytest.raises(BundleError, match=r"classes \['a', 'a'\], valid: different names"):
        recogniser_bundle("m", BrightnessConfig(), {}, classes=("a", "a"))
    with pytest.raises(BundleError, match="calibration threshold is NaN"):
        recogniser_bundle("m", BrightnessConfig(), {}, classes=("a",), calibration={"threshold": float("nan")})
    with pytest.raises(ConfigError, match="no field 'slop'"):
        Recognition(settings={"slop": 1}, classes=("a",)).config(BrightnessConfig)


def test_a_camera_of_another_contract_is_refused_and_a_moved_one_is_told() -> None:
    made_for = Recognition(settings={}, classes=("a",), camera=image_channel((16, 16, 3)))
    other = Channel(name="wrist_image", kind="image", shape=(32, 16, 3), encoding="mono8", row_order="top_down")
    with pytest.raises(ContractMismatch) as refused:
        made_for.accepts(other)
    assert refused.value.differences == (
        "camera.shape: needs (16, 16, 3), offered (32, 16, 3)",
        "camera.encoding: needs 'rgb8', offered 'mono8'",
    )
    assert list(made_for.accepts(image_channel((16, 16, 3), name="wrist_image"))) == []
    assert list(Recognition(settings={}, classes=("a",)).accepts(other)) == []
    place = CameraCalibration(frame="base", position=(0, 0, 1), quaternion=(0, 0, 0, 1), matrix=(50, 50, 8, 8))
    here, there = (
        dataclasses.replace(image_channel((16, 16, 3)), calibration=dataclasses.replace(place, position=(x, 0, 1))) for x in (0.0, 0.2)
    )
    assert list(dataclasses.replace(made_for, camera=here).accepts(here)) == []
    assert list(dataclasses.replace(made_for, camera=here).accepts(there)) == [
        "the camera stands 0.200 m and 0.0 degrees from where it was"
    ]
