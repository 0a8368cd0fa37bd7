"""Every recognition method as it is compared on `PartsBench`: from shots to predicted labels, on features that are worked out once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_core.training.config import Config
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.protocols import Recogniser
from robot_bridge.auxiliary.recognition import coop, csr, dekg, demul, ilc, kgcoop, linear_probe
from robot_bridge.auxiliary.recognition.class_prompts import class_logits, template_vectors
from robot_bridge.auxiliary.recognition.class_vectors import ClassVectorRecogniser
from robot_bridge.auxiliary.recognition.ecalp import ECALPRecogniser
from robot_bridge.auxiliary.recognition.ecalp_config import ECALPConfig
from robot_bridge.auxiliary.recognition.label_graph import LabelGraph
from robot_bridge.auxiliary.recognition.parts_bench import PartsBench
from robot_bridge.auxiliary.recognition.probes import fit_probes
from robot_bridge.auxiliary.recognition.shared_context import context_vectors
from robot_bridge.auxiliary.recognition.small_cnn import pixels

Labels = NDArray[np.int64]
AnyConfig = TypeVar("AnyConfig", bound=Config)


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A method that was trained on some shots.

    Attributes:
        label: name of a test set -> predicted labels (n,), in the set's order.
        recogniser: the same as a robot would run it; its time for a frame is measured.
    """

    label: Callable[[str], Labels]
    recogniser: Recogniser


Fit = Callable[[PartsBench, ImageData, dict[str, Any], int], Contender]
"""(bench, shots, settings, seed) -> contender; `settings` are fields of the method's configuration."""


def _with_vectors(bench: PartsBench, classes: Sequence[str], vectors: Tensor) -> Contender:
    def label(name: str) -> Labels:
        features, _ = bench.joint(bench.tests[name])
        return class_logits(features, vectors, bench.vlm.logit_scale).argmax(dim=1).numpy()

    return Contender(label=label, recogniser=ClassVectorRecogniser(bench.vlm, classes, vectors))


def _zero_shot(bench: PartsBench, shots: ImageData, settings: dict[str, Any], seed: int) -> Contender:
    return _with_vectors(bench, shots.classes, template_vectors(bench.vlm, shots.classes, settings["templates"]))


def _coop(bench: PartsBench, shots: ImageData, settings: dict[str, Any], seed: int) -> Contender:
    context = coop.fit(bench.vlm, *bench.joint(shots), shots.classes, _config(coop.CoOpConfig, settings), seed=seed)
    return _with_vectors(bench, shots.classes, context_vectors(bench.vlm, context, shots.classes))


def _kgcoop(bench: PartsBench, shots: ImageData, settings: dict[str, Any], seed: int) -> Contender:
    context = kgcoop.fit(bench.vlm, *bench.joint(shots), shots.classes, _config(kgcoop.KgCoOpConfig, settings), seed=seed)
    return _with_vectors(bench, shots.classes, context_vectors(bench.vlm, context, shots.classes))


def _dekg(bench: PartsBench, shots: ImageData, settings: dict[str, Any], seed: int) -> Contender:
    config = _config(dekg.DeKgConfig, settings)
    prompts = dekg.fit(bench.vlm, *bench.joint(shots), shots.classes, config, seed=seed)
    return _with_vectors(bench, shots.classes, prompts.vectors(bench.vlm, shots.classes, config.template))


def _demul(bench: PartsBench, shots: ImageData, settings: dict[str, Any], seed: int) -> Contender:
    config = _config(demul.DeMulConfig, settings)
    teacher = None
    if config.alpha > 0:
        teacher = bench.once("teacher", lambda: demul.make_teacher(bench.vlm, shots.classes, config, seed))
    found = demul.fit(bench.vlm, *bench.joint(shots), shots.classes, config, teacher, seed=seed)
    return _with_vectors(bench, shots.classes, found.vectors)


def _linear_probe(bench: PartsBench, shots: ImageData, settings: dict[str, Any], seed: int) -> Contender:
    weight, bias = linear_probe.fit(*bench.joint(shots), len(shots.classes), _config(linear_probe.LinearProbeConfig, settings))

    def label(name: str) -> Labels:
        return linear_probe.probe_logits(bench.joint(bench.tests[name])[0], weight, bias).argmax(dim=1).numpy()

    return Contender(label=label, recogniser=linear_probe.LinearProbeRecogniser(bench.vlm, shots.classes, weight, bias))


def _ecalp(bench: PartsBench, shots: ImageData, settings: dict[str, Any], seed: int) -> Contender:
    """Every test set is a stream of its own, in an order that the seed decides. With `from_texts` shots are not shown."""
    blind = settings.get("from_texts", False)
    config = _config(ECALPConfig, {name: value for name, value in settings.items() if name != "from_texts"})
    texts = template_vectors(bench.vlm, shots.classes, config.templates)
    recogniser = ECALPRecogniser(bench.vlm, shots.classes, texts, config)

    def label(name: str) -> Labels:
        graph, (features, _) = LabelGraph(texts, config), bench.joint(bench.tests[name])
        if not blind:
            graph.add_shot(*bench.joint(shots))
        found = np.zeros(len(features), np.int64)
        for index in bench.shuffled(name, seed):
            found[index] = int(graph.add(features[index]).argmax())
        recogniser.graph = graph  # its time for a frame is that with a full graph
        return found

    return Contender(label=label, recogniser=recogniser)


def _layers(bench: PartsBench, shots: ImageData, settings: dict[str, Any], seed: int) -> Contender:
    """ILC; with `last` the penultimate layer alone. The same pictures of all shifts choose in both."""
    config, network = _config(ilc.ILCConfig, {name: value for name, value in settings.items() if name != "last"}), bench.network
    held = [torch.cat(layer) for layer in zip(*[bench.layers(data) for data in bench.validation], strict=True)]
    held_labels = torch.cat([torch.from_numpy(data.labels) for data in bench.validation])
    wanted = [len(network.names) - 1] if settings.get("last") else list(ilc.candidates(len(network.names)))
    layers = bench.layers(shots)
    probes = fit_probes(
        [layers[index] for index in wanted],
        torch.from_numpy(shots.labels),
        [held[index] for index in wanted],
        held_labels,
        config.probe,
        classes=len(shots.classes),
        seed=seed,
    )
    found = ilc.best_probe(probes, range(len(probes)))
    place = wanted[found.layer]

    def label(name: str) -> Labels:
        return found.logits(bench.layers(bench.tests[name])[place]).argmax(dim=1).numpy()

    reference = found.standardised(layers[place])
    return Contender(label=label, recogniser=ilc.ILCRecogniser(network, replace(found, layer=place), shots.classes, reference))


def _pixels(bench: PartsBench, shots: ImageData, settings: dict[str, Any], seed: int) -> Contender:
    """CSR; with `plain` TRADES all the way."""
    config = _config(csr.CSRConfig, {name: value for name, value in settings.items() if name != "plain"})
    images, labels = pixels(shots.frames, config.side), torch.from_numpy(shots.labels)
    net = csr.new_classifier(len(shots.classes), config, seed)
    csr.fit_trades(net, images, labels, config, seed=seed)
    if settings.get("plain"):
        csr.continue_trades(net, images, labels, config, seed=seed)
    else:
        csr.fine_tune(net, images, labels, config, classes=len(shots.classes), seed=seed)

    def label(name: str) -> Labels:
        with torch.no_grad():
            return net(pixels(bench.tests[name].frames, config.side)).argmax(dim=1).numpy()

    return Contender(label=label, recogniser=csr.PixelRecogniser(net, shots.classes, config, dict.fromkeys(shots.classes, 0.0)))


CONTENDERS: dict[str, Fit] = {
    "zero-shot": _zero_shot,
    "coop": _coop,
    "kgcoop": _kgcoop,
    "dekg": _dekg,
    "demul": _demul,
    "linear-probe": _linear_probe,
    "ecalp": _ecalp,
    "ilc": _layers,
    "csr": _pixels,
}
"""Name in an experiment's configuration -> method; baselines of one family are settings of it."""


def _config(kind: type[AnyConfig], settings: dict[str, Any]) -> AnyConfig:
    return kind().override(**settings)
