from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pytest
import tyro

from rl_core.training.config import Config, ConfigError, TrainerConfig


@dataclass(frozen=True, kw_only=True)
class Inner(Config):
    rate: float = 0.1


@dataclass(frozen=True, kw_only=True)
class Outer(Config):
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {"small": {"hidden": [8], "inner": {"rate": 1}}}

    hidden: tuple[int, ...] = (64, 64)
    """Widths of the layers."""
    head: Literal["one", "two"] = "one"
    inner: Inner = Inner()
    note: str | None = None


def test_json_and_back():
    config = Outer(hidden=(1, 2, 3), inner=Inner(rate=0.3), note="x")
    assert Outer.from_dict(config.to_dict()) == config
    assert config.sha256() != Outer().sha256()


def test_a_typo_is_an_error_that_lists_the_fields():
    with pytest.raises(ConfigError, match=r"no field 'hiden'; valid: hidden, head, inner, note"):
        Outer.from_dict({"hiden": (1,)})
    with pytest.raises(ConfigError, match="Inner has no field 'rat'"):
        Outer().override(inner={"rat": 1})


@pytest.mark.parametrize(
    "values", [{"hidden": 3}, {"hidden": ["a"]}, {"head": "three"}, {"inner": 4}, {"note": 1}, {"hidden": [True]}, {"inner": {"rate": "x"}}]
)
def test_a_wrong_type_is_named(values):
    with pytest.raises(ConfigError, match=f"Outer.{next(iter(values))}|Inner.rate"):
        Outer.from_dict(values)


def test_presets_are_named():
    assert Outer.preset("small") == Outer(hidden=(8,), inner=Inner(rate=1.0))
    assert Outer.preset("default") == Outer()
    with pytest.raises(ConfigError, match="no preset 'big'; valid: default, small"):
        Outer.preset("big")


def test_field_docstrings_become_help(capsys):
    with pytest.raises(SystemExit):
        tyro.cli(TrainerConfig, args=["--help"])
    shown = capsys.readouterr().out
    assert "--checkpoint-every" in shown and "Updates between two checkpoints" in " ".join(shown.replace("│", " ").split())


def test_the_command_line_overrides_a_preset():
    assert tyro.cli(Outer, args=["--hidden", "4", "4", "--head", "two"], default=Outer.preset("small")) == Outer(
        hidden=(4, 4), head="two", inner=Inner(rate=1.0)
    )


@pytest.mark.parametrize("name", ["updates", "log_every", "checkpoint_every", "threads"])
def test_trainer_config_refuses_zero(name):
    with pytest.raises(ConfigError, match=f"TrainerConfig.{name}: 0, valid: 1 or more"):
        TrainerConfig.from_dict({name: 0})
