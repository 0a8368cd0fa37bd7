"""YAML in which a key stands once: the second would silently take the place of the first, be it a joint's limit or a class of parts."""

from __future__ import annotations

from typing import Any

import yaml


def load_yaml(text: str) -> Any:
    """Plain values, lists and mappings.

    Raises:
        yaml.YAMLError: not YAML, or a key twice in a mapping; in one line, with its place.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise yaml.YAMLError(" ".join(str(error).replace(' in "<unicode string>",', " in").split())) from error


class _Loader(yaml.SafeLoader):
    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set[str]()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.composer.ComposerError(None, None, f"the key {key.value!r} stands there twice", key.start_mark)
                seen.add(key.value)
        return node
