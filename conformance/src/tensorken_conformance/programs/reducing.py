"""Reducing: a program that fails as a smaller one that fails as well, of a line or two as a rule.

First what the failing step does not need is left out; then its operands become given numbers, those that the backend
had there; then the numbers become simple.  What is taken has failed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tensorken_conformance.programs.program import Array, Leaf, Program, Step
from tensorken_core.language.dtypes import DTYPES

TRIES = 200
"""How many programs are tried at most."""

Fails = Callable[[Program], "tuple[int, str, list[Array]] | None"]
"""Runs a program: the node that is wrong, what is said of it, and the values of nodes before it; None if none is."""


def reduced(program: Program, node: int, says: str, fails: Fails) -> tuple[Program, int, str]:
    """A small program, its node that is wrong, and what is said of that.

    Args:
        program: one of whose nodes is wrong.
        node: that node.
        says: what is said of it.
        fails: tells of other programs.
    """
    found = fails(program)
    if found is None:  # it went wrong once only
        return program, node, says
    best, tries, progress = program, 0, True
    while progress and tries < TRIES:
        progress = False
        for candidate in _smaller(best, found[0], found[2]):
            tries += 1
            again = fails(candidate)
            if again is not None:
                best, found, progress = candidate, again, True
                break
            if tries >= TRIES:
                break
    return best, found[0], found[1]


def _smaller(program: Program, wrong: int, values: list[Array]) -> Iterator[Program]:
    """Programs that do less, those that do much less first."""
    last = len(program.nodes) - 1
    if len(program.needed(wrong).nodes) < len(program.nodes):
        yield program.needed(wrong)
    used = {i for node in program.nodes if isinstance(node, Step) for i in node.operands}
    for i in range(last, -1, -1):
        if i not in used and last:
            yield program.only([k for k in range(last + 1) if k != i])
    steps = [i for i in range(last) if isinstance(program.nodes[i], Step)]
    for i in reversed(steps):
        if i < len(values):
            yield program.replaced(i, Leaf(values[i], DTYPES[values[i].dtype.name]))
    for i, node in enumerate(program.nodes):
        if isinstance(node, Leaf) and node.values.size:
            for simple in _simpler(node.values):
                yield program.replaced(i, Leaf(simple, node.dtype))


def _simpler(values: Array) -> Iterator[Array]:
    """Numbers that are easier to read, of the same shape."""
    flat = values.reshape(-1)
    kind = values.dtype
    if kind.kind == "b":
        options = [np.zeros_like(values), np.ones_like(values)]
    elif kind.kind == "i":
        options = [np.ones_like(values), np.arange(1, values.size + 1).astype(kind).reshape(values.shape)]
    else:
        options = [np.ones_like(values), np.arange(1, values.size + 1).astype(kind).reshape(values.shape)]
        with np.errstate(all="ignore"):
            options += [
                np.full_like(values, flat[0]),
                np.round(values, 0),
                np.round(values, 1),
                np.round(values, 3),
            ]
    size = _length(values)
    for option in options:
        option = option.astype(kind)
        if _length(option) < size:
            yield option


def _length(values: Array) -> tuple[int, float]:
    """How long it takes to read them."""
    texts = [str(v) for v in values.reshape(-1)]
    return len(set(texts)), float(sum(len(text) for text in texts))
