"""AUXILIARY_METHODS: the only list of auxiliary methods in code, of the rows of each family; `method.AuxiliaryMethod` says what one means.

A user's own method is a row in a module of theirs, named `module:ROW` wherever a method's name is asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

from rl_core.bundle import Bundle, BundleError
from rl_core.errors import ArmstackError
from rl_core.method_list import import_attribute
from robot_bridge.auxiliary.method import AuxiliaryMethod
from robot_bridge.auxiliary.protocols import PROTOCOLS
from robot_bridge.auxiliary.rows import monitoring, recognition, video


class UnknownAuxiliaryMethod(ArmstackError):
    """An auxiliary method that there is none of; lists those there are."""


AUXILIARY_METHODS: dict[str, AuxiliaryMethod] = {method.name: method for method in (*recognition.ROWS, *monitoring.ROWS, *video.ROWS)}


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
