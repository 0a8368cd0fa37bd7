"""Class names in running text: which are mentioned, how alike they are to what is written, and texts without them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

_WORD = re.compile(r"[a-z]+")


def letters(text: str) -> str:
    """Lower-case words of letters alone, one space apart; hyphens part words [code]."""
    return " ".join(_WORD.findall(text.lower()))


def mentions(text: str, names: Sequence[str]) -> list[str]:
    """Those of the names that the text holds, in the order of their first place.

    Longest name first, and what it covers is used up: "a milk bottle" mentions no "bottle". Whole words only, a plural's s aside: "candle"
    mentions no "can" (the released code looks for substrings).
    """
    rest, found = f" {letters(text)} ", []
    for name in sorted(names, key=lambda name: -len(letters(name))):
        pattern = re.compile(rf"(?<= ){re.escape(letters(name))}s?(?= )")
        places = [match.start() for match in pattern.finditer(rest)]
        if places:
            found.append((places[0], name))
            rest = pattern.sub(lambda match: "_" * len(match.group()), rest)
    return [name for _, name in sorted(found)]


def likeness(name: str, text: str) -> float:
    """Largest difflib ratio between the name and as many consecutive words of the text, 0..1."""
    wanted, words = letters(name), letters(text).split()
    count = len(wanted.split())
    windows = [" ".join(words[at : at + count]) for at in range(max(len(words) - count + 1, 1))]
    return max((SequenceMatcher(None, wanted, window).ratio() for window in windows), default=0.0)


def without_names(text: str, names: Sequence[str]) -> str:
    """The text with every mention of a name, longest first, replaced by "part": a concept that names its class explains nothing."""
    for name in sorted(names, key=lambda name: -len(letters(name))):
        parted = r"[^a-zA-Z]+".join(map(re.escape, letters(name).split()))
        text = re.sub(rf"\b{parted}(s?)\b", r"part\1", text, flags=re.IGNORECASE)
    return text
