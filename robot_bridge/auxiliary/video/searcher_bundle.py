"""The searcher of a bundle, for commands that look for clips by text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rl_core.bundle import bundle_sha256
from robot_bridge.auxiliary.bundle_folders import read_bundle
from robot_bridge.auxiliary.registry import AUXILIARY_METHODS, load_auxiliary
from robot_bridge.auxiliary.video.tempme import ClipSearcher


def read_searcher(folder: Path) -> tuple[ClipSearcher, str]:
    """The searcher of a bundle, and the bundle's sha256.

    Raises:
        BundleError: no bundle there, or not one of clips.
    """
    methods = [name for name, row in AUXILIARY_METHODS.items() if row.family == "video"]
    bundle = read_bundle(folder, "tempme", *(name for name in methods if name != "tempme"))
    return load_auxiliary(AUXILIARY_METHODS[bundle.method], bundle), bundle_sha256(folder)


def unknown_words(searcher: ClipSearcher, text: str) -> str:
    """Which words of the text the model has never seen, and which it knows; empty where it knows all.

    Raises:
        VLMError: a text that is too long.
    """
    searcher.text_vector(text)  # refuses it now, and not after hours of looking at recordings
    if not (unknown := searcher.unknown_words([text])):
        return ""
    small: Any = searcher.vlm  # a CLIP knows all words
    return f"words that the model does not know: {', '.join(unknown)}; it knows: {' '.join(small.words.vocabulary)}"
