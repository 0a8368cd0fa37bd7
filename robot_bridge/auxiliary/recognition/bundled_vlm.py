"""The VLM in a recogniser's bundle, so that loading needs nothing else.

The small model's weights go along (10 MB). A CLIP's do not (600 MB): the bundle names the folder and the hash of its weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from rl_core.bundle import Bundle, BundleError, bundle_sha256
from robot_bridge.auxiliary.recognition.errors import RecognitionError
from robot_bridge.auxiliary.vlm.backbone import Backbone
from robot_bridge.auxiliary.vlm.clip import ClipVLM
from robot_bridge.auxiliary.vlm.interface import VLM
from robot_bridge.auxiliary.vlm.small import SmallVLM, SmallVLMConfig

_FIELD, _PREFIX = "vlm", "vlm."


def vlm_at(folder: str) -> VLM:
    """The frozen VLM of a folder: a bundle of the small model, or what transformers' `save_pretrained` wrote of a CLIP.

    Raises:
        RecognitionError: no folder given.
        VLMError: neither of them lies there.
    """
    if not folder:
        raise RecognitionError(
            "field vlm (--config.vlm) is empty; valid: the folder that `armstack aux vlm` wrote, or that of a CLIP with its tokenizer"
        )
    return SmallVLM.load(folder) if (Path(folder) / "bundle.json").is_file() else ClipVLM.from_folder(folder)


def with_vlm(bundle: Bundle, vlm: VLM, folder: str) -> Bundle:
    """The bundle with the VLM it works on.

    Args:
        bundle: of a recogniser.
        vlm: it was trained with.
        folder: where it was read from.
    """
    facts: dict[str, Any] = {"identity": vlm.identity, "folder": folder}
    weights: Mapping[str, Tensor] = {}
    parents = (bundle_sha256(folder),) if (Path(folder) / "bundle.json").is_file() else ()
    if isinstance(vlm, SmallVLM):
        facts["small"] = {"sizes": asdict(vlm.config), "vocabulary": list(vlm.words.vocabulary)}
        weights = {f"{_PREFIX}{name}": tensor for name, tensor in vlm.state_dict().items()}
    return replace(
        bundle, config={**bundle.config, _FIELD: facts}, weights={**bundle.weights, **weights}, parents=(*bundle.parents, *parents)
    )


def vlm_of(bundle: Bundle, backbone: Backbone | None = None) -> VLM:
    """The VLM of a bundle, frozen.

    Args:
        bundle: that `with_vlm` made.
        backbone: of the small model; None = its own, EfficientNet-Lite0.

    Raises:
        BundleError: no VLM in it, or another one is found here.
    """
    facts = bundle.config.get(_FIELD)
    if not facts:
        raise BundleError(f"bundle of {bundle.method}: config has no {_FIELD!r}, the model that it works on")
    if "small" in facts:
        vlm: VLM = SmallVLM(SmallVLMConfig(**facts["small"]["sizes"]), facts["small"]["vocabulary"], backbone)
        assert isinstance(vlm, SmallVLM)
        vlm.load_state_dict({name.removeprefix(_PREFIX): tensor for name, tensor in bundle.weights.items() if name.startswith(_PREFIX)})
        vlm.freeze()
    else:
        vlm = ClipVLM.from_folder(facts["folder"])
    if vlm.identity != facts["identity"]:
        raise BundleError(f"bundle of {bundle.method}: trained with VLM {facts['identity']!r}; here is {vlm.identity!r}")
    return vlm
