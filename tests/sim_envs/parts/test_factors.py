import numpy as np
import pytest

from sim_envs.parts.factors import SHIFTS, Factors, PartsError, draw_factors


def drawn(shift: str, count: int = 300, label: int = 5) -> list[Factors]:
    return [draw_factors(label, 0, 0, number, shift) for number in range(count)]  # type: ignore[arg-type]


def test_factors_are_those_of_their_seed() -> None:
    assert draw_factors(3, 0, 1, 2) == draw_factors(3, 0, 1, 2)
    assert draw_factors(3, 0, 1, 2) != draw_factors(3, 1, 1, 2) != draw_factors(3, 1, 1, 3)


CHANGED = {
    "none": set(),
    "light": {"brightness", "tint"},
    "view": {"elevation_deg"},
    "texture": {"table"},
    "spurious": {"table", "table_rgb", "aligned"},
    "spurious-test": {"table", "table_rgb", "aligned"},
    "noise": {"noise", "blur"},
}


@pytest.mark.parametrize("shift", SHIFTS)
def test_a_shift_changes_its_own_factors_alone(shift: str) -> None:
    different = set()
    for plain, shifted in zip(drawn("none", 40), drawn(shift, 40), strict=True):
        different |= {name for name in vars(plain) if getattr(plain, name) != getattr(shifted, name)}
    assert different == CHANGED[shift]


def test_shifts_lie_outside_what_training_sees() -> None:
    elevations = np.array([factors.elevation_deg for factors in drawn("view")])
    assert ((elevations < 15) | (elevations > 75)).all() and (elevations < 15).mean() == pytest.approx(0.5, abs=0.1)
    assert all(15 <= factors.elevation_deg <= 75 for factors in drawn("none"))
    assert {factors.light_word for factors in drawn("light")} >= {"dim", "warm", "blue"}
    assert not {factors.light_word for factors in drawn("none")} & {"warm", "blue"}
    assert not {factors.table for factors in drawn("texture")} & {factors.table for factors in drawn("none")}
    assert all(factors.noise == 0.15 for factors in drawn("noise"))


@pytest.mark.parametrize(("shift", "share"), [("spurious", 0.95), ("spurious-test", 0.5)])
def test_the_tables_colour_tells_the_class_as_often_as_it_should(shift: str, share: float) -> None:
    for label in (4, 5):
        colours = [factors.table_rgb for factors in drawn(shift, 400, label)]
        aligned = np.mean([factors.aligned for factors in drawn(shift, 400, label)])
        assert aligned == pytest.approx(share, abs=0.06)
        usual = max(set(colours), key=colours.count)
        if shift == "spurious":
            assert (usual[0] > usual[2]) == (label % 2 == 0)


def test_an_unknown_shift_lists_those_there_are() -> None:
    with pytest.raises(PartsError, match="shift 'fog'; valid: none, light, view"):
        draw_factors(0, 0, 0, 0, "fog")  # type: ignore[arg-type]
