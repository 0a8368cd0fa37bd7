"""Which features an answer cites, and how much of that is true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from robot_bridge.auxiliary.recognition.selfsynth.labels import letters


def cited(answer: str, features: Sequence[str]) -> list[str]:
    """Those of the features whose words stand in the answer, in the order of their first place; the longest covers shorter ones."""
    rest, found = f" {letters(answer)} ", []
    for feature in sorted(features, key=lambda feature: -len(letters(feature))):
        wanted = f" {letters(feature)} "
        if (place := rest.find(wanted)) >= 0:
            found.append((place, feature))
            rest = rest.replace(wanted, " " + "_" * (len(wanted) - 2) + " ")
    return [feature for _, feature in sorted(found)]


def citation_figures(answers: Sequence[str], features: Sequence[str], visible: Sequence[Mapping[str, bool]]) -> dict[str, float]:
    """What answers say of their pictures.

    Figures: `citing_two`, share of answers that cite two visible features or more; `cited_precision`, visible ones among all that are
    cited, of all answers together (0 where nothing is cited); `cited`, features an answer cites.

    Args:
        answers: one a picture.
        features: of all classes; one of another class than the picture's is not visible.
        visible: for each picture, feature of its class -> whether it can be seen.
    """
    found = [cited(answer, features) for answer in answers]
    true = [sum(seen.get(feature, False) for feature in each) for each, seen in zip(found, visible, strict=True)]
    total = sum(map(len, found))
    return {
        "citing_two": sum(count >= 2 for count in true) / len(answers),
        "cited_precision": sum(true) / total if total else 0.0,
        "cited": total / len(answers),
    }
