"""AUXILIARY_METHODS: the only list of auxiliary methods in code; `method.AuxiliaryMethod` says what a row means.

A user's own method is a row in a module of theirs, named `module:ROW` wherever a method's name is asked for.
"""

from __future__ import annotations

import importlib
from typing import Any, Literal

from rl_core.bundle import Bundle, BundleError
from rl_core.errors import ArmstackError
from rl_core.method_list import import_attribute
from robot_bridge.auxiliary.method import AuxiliaryMethod, Need
from robot_bridge.auxiliary.protocols import PROTOCOLS
from robot_bridge.auxiliary.requests import Argument, Request


class UnknownAuxiliaryMethod(ArmstackError):
    """An auxiliary method that there is none of; lists those there are."""


_SET_VOCABULARY = Request(
    about="other classes from now on, without training", arguments={"names": Argument(kind="texts", about="names of the classes")}
)
_ADD_SHOT = Request(
    about="learn from one labelled frame",
    arguments={"frame": Argument(kind="frame", about="stamp of the frame"), "label": Argument(kind="label", about="what is in it")},
)
_RESET = Request(about="forget what was seen; shots stay")


def _recogniser(
    name: str,
    config: str,
    summary: str,
    *,
    module: str,
    paper: str = "",
    train: str = "train",
    evaluate: str = "robot_bridge.auxiliary.recognition.evaluation:evaluate",
    needs: tuple[Need, ...] = ("camera", "vlm", "dataset"),
    requests: dict[str, Request] | None = None,
    family: Literal["recognition", "monitoring"] = "recognition",
    extra: str = "vlm",
) -> AuxiliaryMethod:
    """A row whose functions have their usual names in one module of its family."""
    place = f"robot_bridge.auxiliary.{family}.{module}"
    return AuxiliaryMethod(
        name=name,
        family=family,
        kind="recogniser",
        summary=summary,
        paper=paper,
        config=f"{place}:{config}",
        train=f"{place}:{train}",
        load=f"{place}:load",
        evaluate=evaluate if ":" in evaluate else f"{place}:{evaluate}",
        needs=needs,
        requests=requests or {},
        extra=extra,
    )


AUXILIARY_METHODS: dict[str, AuxiliaryMethod] = {
    method.name: method
    for method in (
        _recogniser(
            "zero-shot",
            "ZeroShotConfig",
            "a vision-language model with hand-written prompts, nothing trained",
            module="zero_shot",
            paper="arXiv 2103.00020",
            requests={"set_vocabulary": _SET_VOCABULARY},
        ),
        _recogniser(
            "linear-probe",
            "LinearProbeConfig",
            "logistic regression on the image vectors of a vision-language model",
            module="linear_probe",
            paper="arXiv 2103.00020",
        ),
        _recogniser(
            "coop",
            "CoOpConfig",
            "prompts tuned on a few pictures of each class",
            module="coop",
            paper="arXiv 2109.01134",
            requests={"set_vocabulary": _SET_VOCABULARY},
        ),
        _recogniser(
            "kgcoop",
            "KgCoOpConfig",
            "tuned prompts that stay near the hand-written ones",
            module="kgcoop",
            paper="arXiv 2303.13283",
            requests={"set_vocabulary": _SET_VOCABULARY},
        ),
        _recogniser(
            "demul",
            "DeMulConfig",
            "DeMul: several prompts a class, pulled to a language model's vector of its name",
            module="demul",
            paper="ICLR 2025, arXiv 2507.07147",
            extra="vlm,language",
        ),
        _recogniser(
            "dekg",
            "DeKgConfig",
            "DeKg: prompts tuned on old classes that also name new ones",
            module="dekg",
            paper="ICLR 2025",
            requests={"set_vocabulary": _SET_VOCABULARY},
        ),
        _recogniser(
            "ecalp",
            "ECALPConfig",
            "ECALP: labels spread over a graph of what was seen; adapts while it runs",
            module="ecalp",
            paper="ICLR 2025, arXiv 2412.18303",
            evaluate="evaluate",
            requests={"add_shot": _ADD_SHOT, "reset": _RESET},
        ),
        _recogniser(
            "ilc",
            "ILCConfig",
            "ILC: a linear classifier on the layer that holds best under shift",
            module="ilc",
            paper="ICLR 2025, arXiv 2504.05461",
            needs=("camera", "dataset"),
        ),
        _recogniser(
            "last-layer",
            "ILCConfig",
            "the same on the last layer, re-trained",
            module="ilc",
            paper="arXiv 2204.02937",
            train="train_last_layer",
            needs=("camera", "dataset"),
        ),
        _recogniser(
            "csr",
            "CSRConfig",
            "CSR: a classifier made robust for its worst class",
            module="csr",
            paper="ICLR 2025, arXiv 2501.13273",
            evaluate="evaluate_robust",
            needs=("camera", "dataset"),
            extra="",
        ),
        _recogniser(
            "trades",
            "CSRConfig",
            "a classifier made robust on average",
            module="csr",
            paper="arXiv 1901.08573",
            train="train_baseline",
            evaluate="evaluate_robust",
            needs=("camera", "dataset"),
            extra="",
        ),
        _recogniser(
            "local-prompt",
            "LocalPromptConfig",
            "Local-Prompt: is the object known, and which part of it is not; from a few pictures",
            module="local_prompt",
            family="monitoring",
            paper="ICLR 2025, arXiv 2409.04796",
            evaluate="robot_bridge.auxiliary.monitoring.guard_evaluation:evaluate",
        ),
        _recogniser(
            "mcm",
            "MCMConfig",
            "is the object known: the surest class of the whole picture",
            module="mcm",
            family="monitoring",
            paper="arXiv 2211.13445",
            evaluate="robot_bridge.auxiliary.monitoring.guard_evaluation:evaluate",
        ),
        _recogniser(
            "gl-mcm",
            "MCMConfig",
            "is the object known: the same, and its surest region",
            module="mcm",
            family="monitoring",
            paper="arXiv 2304.04521",
            train="train_global_local",
            evaluate="robot_bridge.auxiliary.monitoring.guard_evaluation:evaluate",
        ),
    )
}


def find_method(name: str) -> AuxiliaryMethod:
    """The row `name`: one of `AUXILIARY_METHODS`, or the user's own, `module:ROW`.

    Raises:
        UnknownAuxiliaryMethod: there is none; lists the names, or says why that attribute is none.
    """
    if ":" not in name:
        if name not in AUXILIARY_METHODS:
            raise UnknownAuxiliaryMethod(f"auxiliary method {name!r}, valid: {', '.join(AUXILIARY_METHODS)}, or module:ROW of your own")
        return AUXILIARY_METHODS[name]
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ImportError as error:
        raise UnknownAuxiliaryMethod(
            f"auxiliary method {name}: module {module!r} cannot be imported ({error}); valid: one that is installed or on PYTHONPATH"
        ) from error
    if not isinstance(found, AuxiliaryMethod):
        raise UnknownAuxiliaryMethod(f"auxiliary method {name}: found {type(found).__name__}, valid: an AuxiliaryMethod")
    return found


def load_auxiliary(method: AuxiliaryMethod, bundle: Bundle) -> Any:
    """What `method` makes of a bundle; follows the protocol of its kind.

    Raises:
        BundleError: of another method or kind.
        ArmstackError: weights that do not fit, or an extra that is missing.
    """
    if (bundle.kind, bundle.method) != (method.kind, method.name):
        raise BundleError(
            f"bundle of method {bundle.method!r}, kind {bundle.kind!r}; valid: method {method.name!r}, kind {method.kind!r}, "
            f"as `armstack aux train {method.name}` writes it"
        )
    loaded = import_attribute(method.load)(bundle)
    protocol = PROTOCOLS[method.kind]
    if not isinstance(loaded, protocol):
        raise BundleError(f"{method.load} gave {type(loaded).__name__}, which has not all that a {method.kind} has ({protocol.__name__})")
    if missing := [request for request in method.asked if not callable(getattr(loaded, request, None))]:
        raise BundleError(f"{method.load} gave {type(loaded).__name__} without {', '.join(missing)}, which the registry's requests name")
    return loaded
