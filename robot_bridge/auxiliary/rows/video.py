"""Video: what happened."""

from __future__ import annotations

from robot_bridge.auxiliary.method import AuxiliaryMethod
from robot_bridge.auxiliary.requests import Argument, Request
from robot_bridge.auxiliary.rows.common import SET_VOCABULARY

_FIND = Request(
    about="when was it seen",
    arguments={
        "text": Argument(kind="text", about="what happened"),
        "top": Argument(kind="integer", about="how many answers", needed=False),
    },
)


def _clip_search(name: str, summary: str, *, train: str, paper: str) -> AuxiliaryMethod:
    """A row of clips that sentences find: TempMe, or what it is compared with."""
    place = "robot_bridge.auxiliary.video"
    return AuxiliaryMethod(
        name=name,
        family="video",
        kind="recogniser",
        summary=summary,
        paper=paper,
        config=f"{place}.tempme_config:TempMeConfig",
        train=f"{place}.tempme:{train}",
        load=f"{place}.tempme:load",
        evaluate=f"{place}.tempme:evaluate",
        needs=("camera", "vlm", "dataset"),
        requests={"find": _FIND, "set_vocabulary": SET_VOCABULARY, "reset": Request(about="forget what was seen")},
        extra="vlm",
        make_data=f"{place}.clip_data:make",
        read_data=f"{place}.recorded_clips:read_clips",
        resumes=True,
    )


ROWS: tuple[AuxiliaryMethod, ...] = (
    _clip_search(
        "tempme",
        "TempMe: clips found by sentences, with tokens that merge over time",
        train="train",
        paper="ICLR 2025, arXiv 2409.01156",
    ),
    _clip_search("video-lora", "the same without merging", train="train_plain", paper="arXiv 2106.09685"),
    _clip_search("video-tome", "the same with tokens that merge inside frames alone", train="train_inside", paper="arXiv 2210.09461"),
    _clip_search("video-zero-shot", "the model as it is, averaged over frames", train="train_nothing", paper="arXiv 2103.00020"),
)
