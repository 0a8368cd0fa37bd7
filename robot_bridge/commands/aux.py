"""`armstack aux list|data|vlm|train|eval`: the methods beside the policy, all of them from `robot_bridge.auxiliary.registry`."""

from __future__ import annotations

import dataclasses
import inspect
import json
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import docstring_parser
import tyro
from rich.table import Table

from rl_core.bundle import Bundle, bundle_sha256
from rl_core.errors import ArmstackError
from rl_core.method_list import import_attribute
from robot_bridge.auxiliary.bundle_folders import read_bundle
from robot_bridge.auxiliary.bundles import fingerprint
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.method import AuxiliaryMethod
from robot_bridge.auxiliary.registry import AUXILIARY_METHODS, find_method, load_auxiliary
from robot_bridge.auxiliary.unfinished import unfinished
from robot_bridge.commands.output import console, emit_json, figures_table
from robot_bridge.diagnosis import not_finite
from robot_bridge.method_arguments import method_arguments
from robot_bridge.missing_extra import named_extra
from robot_bridge.output_places import check_folder

_MAKE_VLM = "robot_bridge.auxiliary.vlm.recipe:make_vlm"


@dataclass(frozen=True, kw_only=True)
class ListArguments:
    """List the auxiliary methods: kind, what they need, what may be asked of them."""

    json: bool = False
    """Print one JSON object on the last line."""


@dataclass(frozen=True, kw_only=True)
class TrainArguments:
    """Train an auxiliary method; the run folder gets the bundle, which `armstack aux eval` and `armstack launch aux` take.

    Another bundle that is there already stays beside it, as RUN/bundle- with the first digits of its sha256.
    """

    run_dir: Path
    """Folder of the run; the bundle is RUN/bundle."""
    data: Path | None = None
    """What it learns from: a folder of `armstack aux data`, or one with a folder of pictures a class. Left out where none is needed."""
    seed: int = 0
    """Seed of weights, noise and order."""
    parents: tuple[Path, ...] = ()
    """Bundles that a transform is applied to."""
    threads: int = 1
    """Threads of torch."""
    json: bool = False
    """Print one JSON object on the last line."""


@dataclass(frozen=True, kw_only=True)
class EvalArguments:
    """Judge a bundle of an auxiliary method on data it has not seen."""

    bundle: Path
    """Folder of the bundle."""
    data: Path
    """What it is judged on: other objects than those it was trained on."""
    threads: int = 1
    """Threads of torch."""
    json: bool = False
    """Print one JSON object on the last line."""


def _usage() -> str:
    width = max((len(name) for name in AUXILIARY_METHODS), default=0)
    methods = "\n".join(f"  {name:<{width}}  {method.summary}" for name, method in AUXILIARY_METHODS.items())
    return (
        "usage: armstack aux list [--json]\n"
        "       armstack aux data METHOD --out DATA [options]          (another --seed gives other objects: to test on)\n"
        "       armstack aux vlm --data DATA --out VLM [options]       (the vision-language model that some methods build on)\n"
        "       armstack aux train METHOD --data DATA --run-dir RUN [options]\n"
        "       armstack aux eval METHOD --bundle RUN/bundle --data TEST_DATA [--json]\n\n"
        f"methods:\n{methods}\n  module:ROW of your own (docs/how-to/add-my-method.md)\n\n"
        "`armstack aux train METHOD --help` lists a method's settings; `armstack launch aux --show-args` how it runs on a camera."
    )


def main(argv: list[str]) -> int:
    """Runs the command line."""
    if not argv or argv[0] in ("-h", "--help"):
        sys.stdout.write(_usage() + "\n")
        return 0 if argv else 2
    if argv[0] == "list":
        return _list(tyro.cli(ListArguments, args=argv[1:], prog="armstack aux list"))
    if argv[0] == "vlm":
        return _make(_MAKE_VLM, argv[1:], command="vlm")
    commands: dict[str, Callable[[AuxiliaryMethod, list[str]], int]] = {"data": _data, "train": _train, "eval": _evaluate}
    if argv[0] not in commands:
        raise ArmstackError(f"{argv[0]!r}, valid: list, vlm, {', '.join(commands)}")
    if len(argv) < 2 or argv[1].startswith("-"):
        sys.stdout.write(_usage() + "\n")
        return 0 if {"-h", "--help"} & set(argv) else 2
    return commands[argv[0]](find_method(argv[1]), argv[2:])


def _list(arguments: ListArguments) -> int:
    table = Table(title="auxiliary methods", box=None, pad_edge=False)
    for heading in ("method", "kind"):
        table.add_column(heading, no_wrap=True)
    table.add_column("what it is, and what it may be asked to")
    rows = {}
    for name, method in AUXILIARY_METHODS.items():
        about = f"{method.summary} ({method.paper})" if method.paper else method.summary
        table.add_row(name, method.kind, f"{about}\nasked to: {', '.join(method.asked)}" if method.asked else about)
        rows[name] = {key: getattr(method, key) for key in ("family", "kind", "summary", "paper", "needs", "extra", "topic")}
        rows[name]["requests"] = {op: list(request.arguments) for op, request in method.asked.items()}
    console.print(table)
    if arguments.json:
        emit_json(rows)
    return 0


def _data(method: AuxiliaryMethod, argv: list[str]) -> int:
    return _make(method.make_data, argv, command=f"data {method.name}")


def _make(function: str, argv: list[str], *, command: str) -> int:
    """Runs a function (out, *, ..., say) -> figures, whose keywords are the command's options."""
    make = import_attribute(function)
    arguments = tyro.cli(_options_of(make), args=argv, prog=f"armstack aux {command}")
    options = {name: value for name, value in vars(arguments).items() if name != "json"}
    check_folder(Path(options["out"]), "--out")
    if "say" in inspect.signature(make).parameters:
        options["say"] = console.print
    figures = {"out": str(options["out"]), **make(**options)}
    figures_table(command, figures)
    if arguments.json:
        emit_json(figures)
    return 0


def _options_of(make: Callable[..., Any]) -> type[Any]:
    """The keyword arguments of a function as options, with its docstring's words as their help."""
    about = docstring_parser.parse(inspect.getdoc(make) or "")
    helps = {parameter.arg_name: parameter.description or "" for parameter in about.params}
    hints, fields = get_type_hints(make), []
    for name, parameter in inspect.signature(make).parameters.items():
        if name != "say":
            default = dataclasses.MISSING if parameter.default is inspect.Parameter.empty else parameter.default
            fields.append((name, hints[name], helps.get(name, ""), default))
    fields.append(("json", bool, "Print one JSON object on the last line.", False))
    options: list[Any] = [
        (name, Annotated[hint, tyro.conf.arg(help=text)], dataclasses.field(default=default))  # type: ignore[valid-type]
        for name, hint, text, default in fields
    ]
    made = dataclasses.make_dataclass("DataArguments", options, frozen=True, kw_only=True)
    made.__doc__ = about.short_description
    return made


def _train(method: AuxiliaryMethod, argv: list[str]) -> int:
    if not method.train:
        raise ArmstackError(f"method {method.name} is not trained; valid: {', '.join(n for n, m in AUXILIARY_METHODS.items() if m.train)}")
    arguments = method_arguments(method, (TrainArguments,), argv, f"armstack aux train {method.name}")
    check_folder(arguments.run_dir, "--run-dir")
    if bool(arguments.parents) != (method.kind == "transform"):
        raise ArmstackError(f"--parents with {method.name}, a {method.kind}; valid: the bundles that a transform is applied to, else none")
    _threads(arguments.threads)
    _check_vlm(arguments.config)
    data = None if arguments.data is None else import_attribute(method.read_data)(arguments.data)
    if data is None and "dataset" in method.needs:
        raise ArmstackError(f"--data is missing: {method.name} learns from data, e.g. of `armstack aux data {method.name} --out DATA`")
    further = {"parents": tuple(map(Bundle.load, arguments.parents))} if arguments.parents else {}
    arguments.run_dir.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    train = import_attribute(method.train)
    with named_extra(f"armstack aux train {method.name}", method.extra):
        bundle: Bundle = train(data, arguments.config, arguments.run_dir, seed=arguments.seed, say=console.print, **further)
    if isinstance(data, ImageData) and not bundle.data_fingerprint:
        bundle = dataclasses.replace(bundle, data_fingerprint=fingerprint(data))
    if bad := not_finite(bundle.weights):
        names = ", ".join(bad[:3]) + (f" and {len(bad) - 3} more" if len(bad) > 3 else "")
        raise ArmstackError(f"training of {method.name} ended with NaN or infinity in {names}; nothing was written")
    load_auxiliary(method, bundle)  # a bundle that cannot be loaded is not written
    folder = _save(bundle, arguments.run_dir / "bundle")
    if method.resumes:
        shutil.rmtree(unfinished(arguments.run_dir))
    figures = {"bundle": str(folder), "sha256": bundle_sha256(folder), "seconds": time.monotonic() - start, **bundle.metrics}
    figures_table(f"trained {method.name}", figures)
    if arguments.json:
        emit_json(figures)
    return 0


def _evaluate(method: AuxiliaryMethod, argv: list[str]) -> int:
    arguments = tyro.cli(EvalArguments, args=argv, prog=f"armstack aux eval {method.name}")
    _threads(arguments.threads)
    bundle = read_bundle(arguments.bundle, method.name)
    with named_extra(f"armstack aux eval {method.name}", method.extra):
        loaded = load_auxiliary(method, bundle)
        data = import_attribute(method.read_data)(arguments.data)
        if isinstance(data, ImageData) and fingerprint(data) == bundle.data_fingerprint:
            console.print(f"{arguments.data}: the data that the bundle was trained on; others tell more")
        found = import_attribute(method.evaluate)(loaded, data)
    figures = {"sha256": bundle_sha256(arguments.bundle), "data": str(arguments.data), **found}
    figures_table(f"{method.name} on {arguments.data}", figures)
    if arguments.json:
        emit_json(figures)
    return 0


def _save(bundle: Bundle, folder: Path) -> Path:
    """Writes the bundle; another one that is there already is kept, and said to be."""
    if not (folder / "bundle.json").is_file():
        return bundle.save(folder)
    kept = folder.with_name(f"{folder.name}-{bundle_sha256(folder)[:8]}")
    shutil.copytree(folder, kept, dirs_exist_ok=True)
    before = _header(folder)
    after = _header(bundle.save(folder))
    facts = {"config": "settings", "data_fingerprint": "data", "parents": "parents", "files": "weights"}
    if differ := [word for name, word in facts.items() if before.get(name) != after.get(name)]:
        console.print(f"{folder} was another bundle ({', '.join(differ)} differ), which is kept as {kept}")
    else:
        shutil.rmtree(kept)
    return folder


def _header(folder: Path) -> dict[str, Any]:
    """Of a bundle; empty where it cannot be read."""
    try:
        header = json.loads((folder / "bundle.json").read_text())
    except ValueError:
        return {}
    return header if isinstance(header, dict) else {}


def _check_vlm(config: object) -> None:
    """A folder that is not there is said before minutes of work, and not looked up as a name on a hub."""
    folder = getattr(config, "vlm", "")
    if isinstance(folder, str) and folder and not Path(folder).is_dir():
        raise ArmstackError(
            f"--config.vlm {folder}: no such folder; valid: what `armstack aux vlm` wrote, or the folder of a CLIP with its tokenizer"
        )


def _threads(count: int) -> None:
    if count < 1:
        raise ArmstackError(f"--threads: {count}, valid: 1 or more")
    import torch

    torch.set_num_threads(count)
