"""What rows of several families are made of."""

from __future__ import annotations

from typing import Literal

from robot_bridge.auxiliary.method import AuxiliaryMethod, Need
from robot_bridge.auxiliary.requests import Argument, Request

SET_VOCABULARY = Request(
    about="other classes from now on, without training", arguments={"names": Argument(kind="texts", about="names of the classes")}
)


def recogniser(
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
