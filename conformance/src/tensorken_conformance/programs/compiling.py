"""Compiling: run a program under jit; its results must lie in the intervals of its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tensorken
from tensorken_conformance.enclosure import compiles, enclosure_for
from tensorken_conformance.numbers.host_arrays import is_float
from tensorken_conformance.programs.judging import Tally, Values, Wrong, expected_to_give, require_inside
from tensorken_conformance.programs.offers import required
from tensorken_conformance.programs.program import Array, Leaf, Program
from tensorken_conformance.subject import Subject
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.tensor import Tensor


def judge_compiled(subject: Subject, program: Program, tally: Tally, values: Values) -> None:
    """Run a program under jit on two sets of numbers, and again on the first; compare its results with intervals.

    Args:
        subject: the backend under test.
        program: the program; its results are the steps that no other step uses.
        tally: receives the counts.
        values: stays empty, since a compiled program does not show the values of its nodes.

    Raises:
        Wrong: if a result does not lie in its interval, or a later call changed it.
    """
    ends = program.ends
    if not ends:  # a reduced program without steps
        return
    if program.adds_to_scatters:  # a compiled program may add in another order than the intervals assume
        return
    contracts = compiles(subject.backend) or bool(required(subject.name))
    function, leaves = function_of(program)
    compiled = tensorken.jit(function)
    others = [Leaf(np.flip(leaf.values), leaf.dtype) for leaf in leaves]

    def operands(numbers: Sequence[Leaf], interpreter: RawTensor[Any]) -> list[Tensor]:
        return [subject.tensor(leaf.values, leaf.dtype, interpreter) for leaf in numbers]

    def called(numbers: Sequence[Leaf]) -> list[Tensor]:
        xs = operands(numbers, subject.stack)
        with expected_to_give(ends[0], "compiled", "a result"):
            found: list[Tensor] = compiled(*xs)
        return found

    def read(results: Sequence[Tensor]) -> list[Array]:
        found = []
        for i, x in zip(ends, results, strict=True):
            with expected_to_give(i, "compiled", "values"):
                found.append(subject.read(x))
        return found

    first = called(leaves)
    found = read(first)
    for numbers, results in ((leaves, found), (others, read(called(others)))):
        expected = function(*operands(numbers, enclosure_for(subject.stack, contracts)))
        for i, got, enclosed in zip(ends, results, expected, strict=True):
            tally.elements += got.size
            require_inside(i, program.ops_of(i), got, enclosed, "compiled: ")
    kept, again = read(first), read(called(leaves))
    for what, after in (
        ("to stay, got {} after another call", kept),
        ("of another call with the same, got {}", again),
    ):
        for i, got, now in zip(ends, found, after, strict=True):
            if not np.array_equal(got, now, equal_nan=is_float(got)):
                raise Wrong(i, f"compiled: expected {got.tolist()} {what.format(now.tolist())}")


def function_of(program: Program) -> tuple[Callable[..., list[Tensor]], list[Leaf]]:
    """A program as a function from its leaves to the results that no step uses; and the leaves."""

    def function(*tensors: Tensor) -> list[Tensor]:
        given = iter(tensors)
        results = program.run(lambda leaf: next(given))
        return [results[i] for i in program.ends]

    return function, [node for node in program.nodes if isinstance(node, Leaf)]


def prepare(subject: Subject, program: Program) -> None:
    """Call a program under jit, so that it is compiled; the results are not read."""
    function, leaves = function_of(program)
    tensorken.jit(function)(*[subject.tensor(x.values, x.dtype, subject.stack) for x in leaves])
