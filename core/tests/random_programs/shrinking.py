"""Shrinking: the search for a smaller program that still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from core.tests.random_programs.numbers import Array, is_python
from core.tests.random_programs.program import Program

TRIES = 120
"""The largest number of programs that are tried."""


def shrink(program: Program, values: Mapping[str, Array], fails: Callable[[Program], bool]) -> Program:
    """A small program that fails.

    Args:
        program: a program that fails.
        values: the values of all its names.
        fails: whether a program fails.
    """
    tries, progress = 0, True
    tried: set[str] = set()
    while progress and tries < TRIES:
        progress = False
        for candidate in smaller(program, values):
            text = candidate.script()
            if text in tried:
                continue
            tried.add(text)
            tries += 1
            if fails(candidate):
                program, progress = candidate, True
                break
            if tries >= TRIES:
                break
    return program


def smaller(program: Program, values: Mapping[str, Array]) -> Iterator[Program]:
    """Smaller programs, the smallest first."""
    for step in program.steps:
        if len(program.steps) > 1:
            yield program.only([step], values)
    for step in reversed(program.steps):
        found = program.needed([step])
        if len(found.steps) < len(program.steps):
            yield found
    half = len(program.steps) // 2
    if half > 1:
        yield program.only(program.steps[half:], values)
        yield program.only(program.steps[:half])
    for step in program.steps:
        if len(program.steps) > 1:
            yield program.only([other for other in program.steps if other is not step], values)
    for leaf in program.leaves:
        for simple in simpler(leaf.values):
            leaves = tuple(replace(one, values=simple) if one is leaf else one for one in program.leaves)
            yield replace(program, leaves=leaves)


def simpler(values: Any) -> Iterator[Array]:
    """Numbers that are easier to read, of the same shape; of a Python number 1 or 2."""
    if is_python(values):
        yield from [type(values)(n) for n in (1, 2) if len(repr(type(values)(n))) < len(repr(values))]
        return
    with np.errstate(all="ignore"):
        options = [
            np.ones_like(values),
            np.arange(1, values.size + 1).reshape(values.shape),
            np.rint(values),
        ]
        for option in options:
            found = np.asarray(option).astype(values.dtype)
            if length(found) < length(values):
                yield found


def length(values: Array) -> int:
    """The length of the values as text."""
    return len(str(np.unique(values).tolist()))
