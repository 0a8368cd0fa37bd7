"""Recognition: what is in view."""

from __future__ import annotations

from robot_bridge.auxiliary.method import AuxiliaryMethod
from robot_bridge.auxiliary.requests import Argument, Request
from robot_bridge.auxiliary.rows.common import SET_VOCABULARY, recogniser

_ADD_SHOT = Request(
    about="learn from one labelled frame",
    arguments={"frame": Argument(kind="frame", about="stamp of the frame"), "label": Argument(kind="label", about="what is in it")},
)
_RESET = Request(about="forget what was seen; shots stay")
_FRAME = Argument(kind="frame", about="stamp of the frame")
_EXPLAIN = Request(about="which features of a frame say what it shows", arguments={"frame": _FRAME})
_ASK = Request(about="answer a question on a frame", arguments={"frame": _FRAME, "question": Argument(kind="text", about="in plain words")})

ROWS: tuple[AuxiliaryMethod, ...] = (
    recogniser(
        "zero-shot",
        "ZeroShotConfig",
        "a vision-language model with hand-written prompts, nothing trained",
        module="zero_shot",
        paper="arXiv 2103.00020",
        requests={"set_vocabulary": SET_VOCABULARY},
    ),
    recogniser(
        "linear-probe",
        "LinearProbeConfig",
        "logistic regression on the image vectors of a vision-language model",
        module="linear_probe",
        paper="arXiv 2103.00020",
    ),
    recogniser(
        "coop",
        "CoOpConfig",
        "prompts tuned on a few pictures of each class",
        module="coop",
        paper="arXiv 2109.01134",
        requests={"set_vocabulary": SET_VOCABULARY},
    ),
    recogniser(
        "kgcoop",
        "KgCoOpConfig",
        "tuned prompts that stay near the hand-written ones",
        module="kgcoop",
        paper="arXiv 2303.13283",
        requests={"set_vocabulary": SET_VOCABULARY},
    ),
    recogniser(
        "demul",
        "DeMulConfig",
        "DeMul: several prompts a class, pulled to a language model's vector of its name",
        module="demul",
        paper="ICLR 2025, arXiv 2507.07147",
        extra="vlm,language",
    ),
    recogniser(
        "dekg",
        "DeKgConfig",
        "DeKg: prompts tuned on old classes that also name new ones",
        module="dekg",
        paper="ICLR 2025",
        requests={"set_vocabulary": SET_VOCABULARY},
    ),
    recogniser(
        "ecalp",
        "ECALPConfig",
        "ECALP: labels spread over a graph of what was seen; adapts while it runs",
        module="ecalp",
        paper="ICLR 2025, arXiv 2412.18303",
        evaluate="evaluate",
        requests={"add_shot": _ADD_SHOT, "reset": _RESET},
    ),
    recogniser(
        "ilc",
        "ILCConfig",
        "ILC: a linear classifier on the layer that holds best under shift",
        module="ilc",
        paper="ICLR 2025, arXiv 2504.05461",
        needs=("camera", "dataset"),
    ),
    recogniser(
        "last-layer",
        "ILCConfig",
        "the same on the last layer, re-trained",
        module="ilc",
        paper="arXiv 2204.02937",
        train="train_last_layer",
        needs=("camera", "dataset"),
    ),
    recogniser(
        "csr",
        "CSRConfig",
        "CSR: a classifier made robust for its worst class",
        module="csr",
        paper="ICLR 2025, arXiv 2501.13273",
        evaluate="evaluate_robust",
        needs=("camera", "dataset"),
        extra="",
    ),
    recogniser(
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
    recogniser(
        "selfsynth",
        "SelfSynthConfig",
        "SelfSynthX: names a part and the visible features that say so; taught by its own answers",
        module="selfsynth.method",
        paper="ICLR 2025, arXiv 2502.14044",
        evaluate="evaluate",
        requests={"explain": _EXPLAIN, "ask": _ASK},
        extra="vlm,language",
    ),
)
