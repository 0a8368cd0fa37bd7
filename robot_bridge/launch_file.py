"""Reads ROS 2 launch files in YAML into the processes to start, where `launch_ros` is not installed.

The grammar is that of ROS's own YAML front end (packages launch, launch_yaml and launch_ros, Kilted), limited to `arg`, `let`, `group`,
`include`, `push_ros_namespace`, `node` and `executable`, with `if` and `unless`, and to the substitutions `$(var)`, `$(env)`,
`$(find-pkg-share)` and `$(dirname)`. Whatever else such a file may hold is an error with file and line, never skipped.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from rl_core.errors import ArmstackError
from robot_bridge.launch_places import executable
from robot_bridge.launch_substitutions import expand

_TAGS = ("arg", "executable", "group", "include", "let", "node", "push_ros_namespace")
_COMMON_KEYS = {"name", "env", "output", "on_exit", "if", "unless"}
_NODE_KEYS = _COMMON_KEYS | {"pkg", "exec", "namespace", "exec_name", "args", "ros_args", "param", "remap"}
_EXECUTABLE_KEYS = _COMMON_KEYS | {"cmd", "cwd", "shell"}
_TYPES = {"str": str, "int": int, "float": float, "bool": bool}


class LaunchError(ArmstackError):
    """A launch file that cannot be run; names file and line, what was found and what would be valid."""


@dataclass(frozen=True, kw_only=True)
class ProcessSpec:
    """One process to start: its command line, what is added to the environment, and whether its end ends the launch."""

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    shutdown_on_exit: bool = False


@dataclass(frozen=True, kw_only=True)
class LaunchArgument:
    """One `arg` of a launch file; `default` is None where a value must be given."""

    name: str
    default: str | None
    description: str
    choices: tuple[str, ...]


class _Mapping(dict[str, Any]):
    line = 0


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = True) -> _Mapping:  # type: ignore[override]
        values = _Mapping({str(key): value for key, value in super().construct_mapping(node, deep=True).items()})
        values.line = node.start_mark.line + 1
        return values


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _Loader.construct_mapping)


def read_launch_file(path: str | Path, arguments: Mapping[str, str], env: Mapping[str, str] | None = None) -> tuple[ProcessSpec, ...]:
    """The processes that launch file `path` starts with `arguments` (name -> text, as in `name:=value`).

    Raises:
        LaunchError: no such file, not its grammar, a missing or unknown argument.
    """
    reader = _Reader(dict(arguments), os.environ if env is None else env)
    reader.file(Path(path), "")
    unknown = sorted(set(arguments) - set(reader.declared))
    if unknown:
        raise LaunchError(f"{path}: no argument {unknown}; its arguments: {sorted(reader.declared)}")
    return tuple(reader.processes)


def launch_arguments(path: str | Path) -> tuple[LaunchArgument, ...]:
    """The arguments that launch file `path` itself declares, defaults as they are written.

    Raises:
        LaunchError: the file cannot be read.
    """
    return tuple(
        LaunchArgument(
            name=str(body["name"]),
            default=str(body["default"]) if "default" in body else None,
            description=str(body.get("description", "")),
            choices=tuple(str(choice["value"]) for choice in body.get("choice", ())),
        )
        for body in (entity["arg"] for entity in _load(Path(path)) if isinstance(entity, dict) and "arg" in entity)
    )


def _load(path: Path) -> list[Any]:
    try:
        content = yaml.load(path.read_text(), Loader=_Loader)
    except yaml.YAMLError as error:
        raise LaunchError(f"{path}: not YAML: {error}") from error
    if not isinstance(content, dict) or list(content) != ["launch"] or not isinstance(content["launch"], list):
        found = list(content) if isinstance(content, dict) else content
        raise LaunchError(f"{path}: the file must hold one key `launch` with a list, found {found!r}")
    return content["launch"]


class _Reader:
    """Walks the entities in order, as the launch service does; `variables` are ROS's launch configurations."""

    def __init__(self, variables: dict[str, str], env: Mapping[str, str]) -> None:
        self.variables = variables
        self.env = env
        self.declared: dict[str, str] = {}
        self.processes: list[ProcessSpec] = []
        self._path = Path()
        self._line = 0

    def _error(self, message: str) -> LaunchError:
        return LaunchError(f"{self._path}:{self._line}: {message}")

    def file(self, path: Path, namespace: str) -> None:
        """Reads one file; an included one shares the including one's variables, as in ROS."""
        outer = self._path, self._line
        if not path.is_file():
            raise LaunchError(f"{path}: no such launch file") if not outer[1] else self._error(f"include of {path}: no such file")
        self._path, self._line = path, 1
        self._entities(_load(path), namespace)
        self._path, self._line = outer

    def _entities(self, entities: Any, namespace: str) -> None:
        if not isinstance(entities, list):
            raise self._error(f"a list of entities is needed, found {type(entities).__name__}")
        for entity in entities:
            self._line = getattr(entity, "line", self._line)
            if not isinstance(entity, dict) or len(entity) != 1:
                raise self._error(f"an entity is a mapping with one key, found {entity!r}; valid keys: {list(_TAGS)}")
            ((tag, body),) = entity.items()
            if tag not in _TAGS:
                raise self._error(f"tag {tag!r} is not supported; valid: {list(_TAGS)}")
            if isinstance(body, dict) and not self._condition(body):
                continue
            if tag == "push_ros_namespace":
                namespace = _join(namespace, self._text(body, "namespace"))
            else:
                getattr(self, f"_{tag}")(body, namespace)

    def _condition(self, body: dict[str, Any]) -> bool:
        for key in ("if", "unless"):
            if key in body:
                text = self._expand(str(body[key])).strip().lower()
                if text not in ("true", "1", "false", "0"):
                    raise self._error(f"{key}: {text!r}, valid: true, 1, false, 0")
                if (text in ("true", "1")) != (key == "if"):
                    return False
        return True

    def _arg(self, body: dict[str, Any], namespace: str) -> None:
        self._keys("arg", body, {"name", "default", "description", "choice", "if", "unless"})
        name = self._text(body, "name")
        self.declared[name] = str(body.get("description", ""))
        if name not in self.variables:
            if "default" not in body:
                raise self._error(f"argument {name!r} is needed: give `{name}:=VALUE` ({self.declared[name] or 'no description'})")
            self.variables[name] = self._expand(str(body["default"]))
        choices = [self._expand(str(choice["value"])) for choice in body.get("choice", ())]
        if choices and self.variables[name] not in choices:
            raise self._error(f"argument {name}:={self.variables[name]}; valid: {choices}")

    def _let(self, body: dict[str, Any], namespace: str) -> None:
        self._keys("let", body, {"name", "value", "if", "unless"})
        self.variables[self._text(body, "name")] = self._text(body, "value")

    def _group(self, body: Any, namespace: str) -> None:
        if isinstance(body, dict):
            self._keys("group", body, {"scoped", "children", "if", "unless"})
        scoped = body.get("scoped", True) if isinstance(body, dict) else True
        outer = dict(self.variables)
        self._entities(body.get("children") if isinstance(body, dict) else body, namespace)
        if scoped:
            self.variables = outer

    def _include(self, body: Any, namespace: str) -> None:
        if isinstance(body, str):
            body = _Mapping(file=body)
        self._keys("include", body, {"file", "arg", "let", "if", "unless"})
        for pair in [*body.get("arg", ()), *body.get("let", ())]:
            self.variables[self._text(pair, "name")] = self._text(pair, "value")
        self.file(Path(self._text(body, "file")), namespace)

    def _executable(self, body: dict[str, Any], namespace: str) -> None:
        self._keys("executable", body, _EXECUTABLE_KEYS)
        text = self._text(body, "cmd")
        command = ("/bin/sh", "-c", text) if body.get("shell", False) else tuple(shlex.split(text))
        name = self._text(body, "name") if "name" in body else Path(shlex.split(text)[0]).name
        self._add(name, command, body)

    def _node(self, body: dict[str, Any], namespace: str) -> None:
        self._keys("node", body, _NODE_KEYS)
        program = self._text(body, "exec")
        try:
            command = executable(self._text(body, "pkg"), program) if "pkg" in body else (program,)
        except ArmstackError as error:
            raise self._error(str(error)) from error
        command += tuple(shlex.split(self._text(body, "args"))) if "args" in body else ()
        ros: list[str] = shlex.split(self._text(body, "ros_args")) if "ros_args" in body else []
        if "name" in body:
            ros += ["-r", f"__node:={self._text(body, 'name')}"]
        own = _join(namespace, self._text(body, "namespace")) if "namespace" in body else namespace
        if own:
            ros += ["-r", f"__ns:={own}"]
        for remap in body.get("remap", ()):
            ros += ["-r", f"{self._text(remap, 'from')}:={self._text(remap, 'to')}"]
        ros += self._parameters(body.get("param", ()), "")
        name = self._text(body, "exec_name") if "exec_name" in body else self._text(body, "name") if "name" in body else program
        self._add(name, command + (("--ros-args", *ros) if ros else ()), body)

    def _parameters(self, parameters: Sequence[Any], prefix: str) -> list[str]:
        arguments: list[str] = []
        for parameter in parameters:
            self._line = getattr(parameter, "line", self._line)
            self._keys("param", parameter, {"name", "value", "type", "from", "param", "if", "unless"})
            if not self._condition(parameter):
                continue
            if "from" in parameter:
                file = Path(self._text(parameter, "from"))
                if not file.is_file():
                    raise self._error(f"param from {file}: no such file")
                arguments += ["--params-file", str(file)]
                continue
            name = prefix + self._text(parameter, "name")
            if "param" in parameter:
                arguments += self._parameters(parameter["param"], f"{name}.")
            elif "value" in parameter:
                arguments += ["-p", f"{name}:={json.dumps(self._value(parameter['value'], parameter.get('type')))}"]
            else:
                raise self._error(f"param {name!r} has neither value nor param")
        return arguments

    def _value(self, value: Any, kind: str | None) -> Any:
        """A parameter's value: a text is read as YAML unless its `type` says otherwise, texts in a list are texts; as in launch_ros."""
        if isinstance(value, list):
            return [self._value(item, kind.removeprefix("list_of_") if kind else "str") for item in value]
        if not isinstance(value, str):
            return value
        text = self._expand(value)
        if kind is None:
            read = yaml.safe_load(text) if text.strip() else ""
            return read if isinstance(read, (bool, int, float, list)) else text
        if kind not in _TYPES:
            raise self._error(f"param type {kind!r}, valid: {sorted(_TYPES)} and list_of_ one of these")
        if kind == "bool":
            return text.strip().lower() in ("true", "1")
        try:
            return _TYPES[kind](text)
        except ValueError as error:
            raise self._error(f"param value {text!r} is no {kind}") from error

    def _add(self, name: str, command: tuple[str, ...], body: dict[str, Any]) -> None:
        if body.get("on_exit", "shutdown") != "shutdown":
            raise self._error(f"on_exit {body['on_exit']!r}, valid: shutdown")
        self.processes.append(
            ProcessSpec(
                name=f"{name}-{len(self.processes) + 1}",
                command=command,
                env={self._text(pair, "name"): self._text(pair, "value") for pair in body.get("env", ())},
                cwd=self._text(body, "cwd") if "cwd" in body else None,
                shutdown_on_exit="on_exit" in body,
            )
        )

    def _keys(self, tag: str, body: Any, valid: set[str]) -> None:
        if not isinstance(body, dict):
            raise self._error(f"{tag}: a mapping is needed, found {body!r}")
        unknown = sorted(set(body) - valid)
        if unknown:
            raise self._error(f"{tag}: {unknown} not supported; valid: {sorted(valid)}")

    def _text(self, body: Mapping[str, Any], key: str) -> str:
        if key not in body:
            raise self._error(f"attribute {key!r} is missing; found {sorted(body)}")
        return self._expand(str(body[key]))

    def _expand(self, text: str) -> str:
        """`text` with its substitutions made."""
        try:
            return expand(text, variables=self.variables, env=self.env, folder=self._path.resolve().parent)
        except ArmstackError as error:
            raise self._error(str(error)) from error


def _join(outer: str, inner: str) -> str:
    """ROS namespace `inner` inside `outer`; an absolute one replaces it."""
    if inner.startswith("/"):
        return inner.rstrip("/")
    return f"{outer}/{inner}".rstrip("/") if inner else outer
