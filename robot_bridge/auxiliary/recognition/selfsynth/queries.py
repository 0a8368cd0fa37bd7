"""What the model is asked: to describe, to name, to name and explain; and how it is told what an answer should rest on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

DESCRIBE = (
    "describe the object in the picture in detail, without its name.",
    "what does the object look like. mention only what can be seen.",
    "list the visible features of the object.",
)
"""Instructions of descriptions; the label is not given."""
SIMPLE = ("what is this.", "name the object.", "which part is shown.")
EXPLAIN = (
    "what is this object, and how do you know.",
    "name the part and explain what you see.",
    "which part is it, and which features show that.",
    "identify the object and give your reasons.",
)
REASON = (
    "look at the object step by step, then name it.",
    "first say what you see, then which part it is.",
    "which features can be seen, and which part has them.",
)
"""Chain of thought: features first, the name last."""
EXAM = EXPLAIN[0]
"""The query of every evaluation and of the running recogniser [code]."""


def draw_queries(count: int, generator: np.random.Generator, *, simple: bool) -> list[str]:
    """`count` queries of one picture: half explain, half reason [code]; with `simple` a quarter only name, as in the first round."""
    kinds = (SIMPLE, EXPLAIN, EXPLAIN, REASON) if simple else (EXPLAIN, REASON)
    found = []
    for _ in range(count):
        kind = kinds[int(generator.integers(len(kinds)))]
        found.append(kind[int(generator.integers(len(kind)))])
    return found


def told(query: str, label: str, concepts: Sequence[str]) -> str:
    """The query of the first round: the model is told the label and what the picture shows of it. Never kept as training data."""
    return f"this is {with_article(label)}. it has {joined(concepts)}. {query}"


def short_answer(label: str) -> str:
    """The answer where no better one is at hand [code]."""
    return f"this is an image of {with_article(label)}."


def with_article(name: str) -> str:
    """a gear, an axle."""
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def joined(parts: Sequence[str]) -> str:
    """a, b and c."""
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else "".join(parts)
