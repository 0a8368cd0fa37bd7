"""Bundle: whole, its own, and refused when anything in it was damaged."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from rl_core.bundle import Bundle, BundleError, bundle_sha256
from tests.rl_core.test_contract import CONTRACT


def bundle() -> Bundle:
    weights = {"net.weight": torch.arange(6.0).reshape(2, 3)}
    return Bundle(
        kind="policy", method="toy", config={"lr": 0.1}, contract=CONTRACT, weights=weights, arrays={"c": torch.ones(2)}, parents=("ab",)
    )


def test_what_was_saved_is_loaded(tmp_path: Path):
    saved = bundle()
    loaded = Bundle.load(saved.save(tmp_path / "b"))
    assert torch.equal(loaded.weights["net.weight"], saved.weights["net.weight"]) and torch.equal(loaded.arrays["c"], saved.arrays["c"])
    for field in ("kind", "method", "config", "contract", "normalizer", "parents", "metrics", "data_fingerprint"):
        assert getattr(loaded, field) == getattr(saved, field)


def test_equal_bundles_have_equal_hashes_and_others_do_not(tmp_path: Path):
    first, second = bundle().save(tmp_path / "a"), bundle().save(tmp_path / "b")
    other = dataclasses.replace(bundle(), config={"lr": 0.2}).save(tmp_path / "c")
    assert bundle_sha256(first) == bundle_sha256(second) != bundle_sha256(other)


@pytest.mark.parametrize("name", ["weights.safetensors", "arrays.safetensors"])
def test_a_flipped_bit_is_refused(tmp_path: Path, name: str):
    folder = bundle().save(tmp_path / "b")
    data = bytearray((folder / name).read_bytes())
    data[-1] ^= 1
    (folder / name).write_bytes(data)
    with pytest.raises(BundleError, match=rf"{name}: sha256 is .* damaged or exchanged"):
        Bundle.load(folder)


@pytest.mark.parametrize("name", ["bundle.json", "weights.safetensors", "arrays.safetensors"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_truncated_or_missing_file_is_refused(tmp_path: Path, name: str, share: float):
    folder = bundle().save(tmp_path / "b")
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(BundleError):
        Bundle.load(folder)
    (folder / name).unlink()
    with pytest.raises(BundleError):
        Bundle.load(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"version": 7}, "bundle version 7"), ({"files": {"../x": "0"}}, "field files names"), ({"kind": None}, "field 'kind' is missing")],
)
def test_a_header_that_is_not_ours_is_refused(tmp_path: Path, change: dict, message: str):
    folder = bundle().save(tmp_path / "b")
    header = {**json.loads((folder / "bundle.json").read_text()), **change}
    header = {name: value for name, value in header.items() if value is not None or name in ("normalizer",)}
    (folder / "bundle.json").write_text(json.dumps(header))
    with pytest.raises(BundleError, match=message):
        Bundle.load(folder)


def test_an_older_bundle_is_replaced_whole_and_anything_else_is_left_alone(tmp_path: Path):
    folder = bundle().save(tmp_path / "b")
    dataclasses.replace(bundle(), arrays={}).save(folder)
    assert not (folder / "arrays.safetensors").exists() and Bundle.load(folder).arrays == {}
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(BundleError, match="exists and is no bundle"):
        bundle().save(tmp_path / "mine")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
