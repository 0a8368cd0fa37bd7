"""What a policy can be told."""

from __future__ import annotations

import re

import pytest
import torch

from rl_core.bundle import BundleError
from rl_core.conditioned_policy import ConditionError
from rl_core.strap.policy_instructions import Instructions
from rl_core.training.config import ConfigError
from tests.rl_core.strap.policy.test_chunk_windows import FROM_CORPUS
from tests.rl_core.strap.policy.told import Hashed, dataset, episode

MIXED = dataset(
    episode(12, uuid="t0", lang="put the cup left"),
    episode(12, uuid="t1", lang="put the cup left"),
    episode(20, uuid="p", lang="open the drawer", **FROM_CORPUS),
)


def test_the_default_is_the_target_demonstrations_instruction_never_a_pieces() -> None:
    known = Instructions.of(MIXED)
    assert known.texts == ("open the drawer", "put the cup left") and known.default == 1
    assert torch.equal(known.prepare({})["language"], torch.from_numpy(Hashed().encode(["put the cup left"])[0]))
    assert torch.equal(known.prepare({"task": "open the drawer"})["language"], known.vectors[0])


def test_what_was_never_in_the_data_is_refused_with_what_was() -> None:
    known = Instructions.of(MIXED)
    for said in ("open the drawers", "", 3):
        with pytest.raises(ConditionError, match=re.escape("valid: one of the instructions it was trained with, ['open the drawer'")):
            known.prepare({"task": said})


def test_several_tasks_have_no_default_unless_one_is_wanted() -> None:
    two = dataset(episode(12, uuid="a", lang="open"), episode(12, uuid="b", lang="close"))
    assert Instructions.of(two).default is None
    with pytest.raises(ConditionError, match="task: None, valid: .*'close', 'open'"):
        Instructions.of(two).prepare({})
    assert Instructions.of(two, "open").default == 1
    with pytest.raises(ConfigError, match=re.escape("instruction: 'shut', valid: one of the data's, ['close', 'open']")):
        Instructions.of(two, "shut")


def test_one_task_without_words_needs_no_encoder() -> None:
    class None_:
        name, size = "none", 1

        def encode(self, sentences):  # type: ignore[no-untyped-def]
            raise AssertionError("asked")

    known = Instructions.of(dataset(episode(12)), encoder=None_())
    assert known.prepare({})["language"].tolist() == [0.0]


def test_they_go_through_a_bundles_arrays_and_damage_is_named() -> None:
    known = Instructions.of(MIXED)
    again = Instructions.from_arrays(known.to_arrays())
    assert (again.texts, again.default) == (known.texts, known.default) and torch.equal(again.vectors, known.vectors)
    for damage in ({"instruction_texts": torch.tensor([1], dtype=torch.uint8)}, {"instruction_vectors": torch.zeros(3, 8)}):
        with pytest.raises(BundleError, match="no instructions"):
            Instructions.from_arrays({**known.to_arrays(), **damage})
    with pytest.raises(BundleError, match="'instruction_texts'"):
        Instructions.from_arrays({})
