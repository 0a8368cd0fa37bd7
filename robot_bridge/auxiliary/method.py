"""AuxiliaryMethod: what the command `armstack aux` and the auxiliary node know of a method; a row of `registry.AUXILIARY_METHODS`.

A row names functions as `module:function`; a module is imported when it is used. For every kind:

    train(data, config, run_dir, *, seed, say) -> Bundle      data: what `read_data` gives; say(text): progress for people
    load(bundle) -> the kind's protocol                       needs nothing but the bundle
    evaluate(loaded, data) -> {figure: number}                pure; accuracies and rates are 0..1

A transform's `train` also gets `parents`, the bundles that it is applied to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rl_core.method_list import import_attribute
from rl_core.training.config import Config
from robot_bridge.auxiliary.protocols import Kind
from robot_bridge.auxiliary.requests import Argument, Request

Family = Literal["recognition", "monitoring", "video", "imagination", "edge", "fleet", "language", "guardrails", "operator"]
Need = Literal["camera", "radar", "vlm", "language_model", "dataset"]

KIND_REQUESTS: Mapping[Kind, Mapping[str, Request]] = {
    "generator": {
        "sample": Request(
            about="make images",
            arguments={
                "condition": Argument(kind="mapping", about="what of, e.g. text"),
                "seed": Argument(kind="integer", about="of the noise"),
                "n": Argument(kind="integer", about="how many"),
                "steps": Argument(kind="integer", about="of the sampler"),
            },
        )
    },
    "dialogue": {
        "handle": Request(
            about="answer",
            arguments={
                "request": Argument(kind="mapping", about="e.g. text, what the operator said"),
                "context": Argument(kind="mapping", about="what is known now"),
            },
        )
    },
    "agent": {
        "step": Request(
            about="say the next action",
            arguments={
                "goal": Argument(kind="text", about="what is to be reached"),
                "screen": Argument(kind="mapping", about="what the page shows"),
            },
        )
    },
}
"""What may be asked of every method of a kind: its protocol's own operation, where that works on JSON."""


@dataclass(frozen=True, kw_only=True)
class AuxiliaryMethod:
    """One row.

    Attributes:
        name: CLI name and `Bundle.method`; lower case, words joined by `-`.
        family: folder of `robot_bridge/auxiliary`.
        kind: protocol of what `load` gives, and `Bundle.kind`.
        summary: one line for `--help`.
        paper: where it is from, e.g. `arXiv 2507.07147`; empty for a baseline.
        config: its configuration class.
        train: see the module; empty for a method without training.
        load: see the module.
        evaluate: see the module.
        needs: what it does not work without.
        requests: name -> what may be asked of it on `~/request`, beside what may of its kind; each is a method of what `load` gives.
        extra: of the distribution, that it needs, several joined by commas; empty for none.
        make_data: function (out, **options) -> figures that makes data to train on.
        read_data: function path -> data.
        resumes: `train` keeps whole epochs in `unfinished.unfinished(run_dir)`, which the command deletes once the bundle is written.
    """

    name: str
    family: Family
    kind: Kind
    summary: str
    config: str
    load: str
    evaluate: str
    train: str = ""
    paper: str = ""
    needs: tuple[Need, ...] = ()
    requests: Mapping[str, Request] = field(default_factory=dict)
    extra: str = ""
    make_data: str = "robot_bridge.auxiliary.parts_data:make"
    read_data: str = "robot_bridge.auxiliary.image_files:read_images"
    resumes: bool = False

    @property
    def config_class(self) -> type[Config]:
        """The configuration class; `config_class.presets()` are the named ones."""
        return import_attribute(self.config)

    @property
    def topic(self) -> str:
        """`aux/NAME`, with the name as ROS allows it."""
        return f"aux/{self.name.replace('-', '_')}"

    @property
    def asked(self) -> dict[str, Request]:
        """All that may be asked of it."""
        return {**KIND_REQUESTS.get(self.kind, {}), **self.requests}

    @property
    def carries_bytes(self) -> bool:
        """Whether bytes are sent to it or come from it."""
        arguments = (argument for request in self.requests.values() for argument in request.arguments.values())
        return self.kind in ("fleet", "private_inference") or any(argument.kind == "bytes" for argument in arguments)
