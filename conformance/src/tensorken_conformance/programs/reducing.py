"""Reducing: replace a failing program by a smaller one that also fails, usually of one or two lines.

First the nodes that the failing step does not need are removed; then its operands become leaves, with the values that
they had on the backend; then the numbers become simple.  Each smaller program is run, and kept only if it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tensorken_conformance.numbers.host_arrays import is_float
from tensorken_conformance.programs.program import Array, Leaf, Program, Step
from tensorken_core.language.dtypes import DTYPES

TRIES = 200
"""The largest number of programs that are tried."""

Fails = Callable[[Program], "tuple[int, str, list[Array]] | None"]
"""Runs a program; returns the wrong node, its message, and the values of earlier nodes; None if none is wrong."""


def reduced(program: Program, node: int, says: str, fails: Fails) -> tuple[Program, int, str]:
    """A small program that fails, its wrong node, and the message, from a program with these."""
    found = fails(program)
    if found is None:  # the failure did not repeat
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
    """Smaller programs, the smallest first."""
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
    else:
        options = [np.ones_like(values), np.arange(1, values.size + 1).astype(kind).reshape(values.shape)]
    if is_float(values):
        with np.errstate(all="ignore"):
            options += [np.full_like(values, flat[0]), *[np.round(values, digits) for digits in (0, 1, 3)]]
    size = _length(values)
    for option in options:
        option = option.astype(kind)
        if _length(option) < size:
            yield option


def _length(values: Array) -> tuple[int, float]:
    """How many different numbers there are, and their length as text."""
    texts = [str(v) for v in values.reshape(-1)]
    return len(set(texts)), float(sum(len(text) for text in texts))
