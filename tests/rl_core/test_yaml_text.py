"""A key that stands twice is refused."""

import pytest
import yaml

from rl_core.yaml_text import load_yaml


def test_plain_yaml_is_read_with_anchors_and_merges():
    text = "a: &a {x: 1, y: [1, 2]}\nb: &b {<<: *a, x: 2}\nc: {<<: *b, z: null}\nd: *b\n"
    assert load_yaml(text) == yaml.safe_load(text)


@pytest.mark.parametrize("text", ["a: 1\nb: 2\na: 3\n", '{"a": 1, "b": 2, "a": 3}', "'a': 1\nc: {a: 2}\na: 3\n"])
def test_a_key_that_stands_twice_is_named_with_its_place(text):
    with pytest.raises(yaml.YAMLError, match=r"the key 'a' stands there twice in line \d+, column \d+") as refused:
        load_yaml(text)
    assert "\n" not in str(refused.value)


def test_what_is_no_yaml_is_said_in_one_line_and_nothing_is_built():
    for text in ("a: [1, 2", "a: !!python/object/apply:os.system ['true']"):
        with pytest.raises(yaml.YAMLError) as refused:
            load_yaml(text)
        assert "\n" not in str(refused.value)
