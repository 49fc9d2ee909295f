"""Compiling: a program traced and compiled as a whole; what comes out must lie in what may come out of its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tensorken
from tensorken_conformance.enclosure import contains, enclosure_for, interval
from tensorken_conformance.programs.judging import Tally, Values, Wrong, described, expected_to_give
from tensorken_conformance.programs.program import Array, Leaf, Program, Step
from tensorken_conformance.subject import Subject
from tensorken_core.tensor.tensor import Tensor


def judge_compiled(subject: Subject, program: Program, tally: Tally, values: Values) -> None:
    """Run a program under jit, with other numbers, and again; compare what no step uses with what it may be.

    Args:
        subject: the backend under test.
        program: what to run.
        tally: counts what is judged.
        values: stays empty, since the values of nodes within a compiled program are not known.

    Raises:
        Wrong: where a result is not what it may be, or a later call changed it.
    """
    nodes, ends = program.nodes, program.ends
    if not ends:  # a reduced program without steps
        return
    function, leaves = _function(program)
    compiled = tensorken.jit(function)
    others = [Leaf(np.flip(leaf.values), leaf.dtype) for leaf in leaves]
    enclosure = enclosure_for(subject.stack)
    first = _called(subject, compiled, leaves, ends)
    found = _read(subject, first, ends)
    for numbers, results in (
        (leaves, found),
        (others, _read(subject, _called(subject, compiled, others, ends), ends)),
    ):
        expected = function(*[subject.tensor(leaf.values, leaf.dtype, enclosure) for leaf in numbers])
        for i, got, may_be in zip(ends, results, expected, strict=True):
            tally.elements += got.size
            _judge(i, nodes[i], got, may_be)
    kept, again = _read(subject, first, ends), _read(subject, _called(subject, compiled, leaves, ends), ends)
    for what, after in (
        ("to stay, got {} after another call", kept),
        ("of another call with the same, got {}", again),
    ):
        for i, got, now in zip(ends, found, after, strict=True):
            if not np.array_equal(got, now, equal_nan=got.dtype.kind == "f"):
                raise Wrong(i, f"compiled: expected {got.tolist()} {what.format(now.tolist())}")


def _function(program: Program) -> tuple[Callable[..., list[Tensor]], list[Leaf]]:
    """A program as a function from its leaves to the values that no step uses; and the leaves."""
    nodes, ends = program.nodes, program.ends
    given = [i for i, node in enumerate(nodes) if isinstance(node, Leaf)]

    def function(*leaves: Tensor) -> list[Tensor]:
        tensors = dict(zip(given, leaves, strict=True))
        for i, node in enumerate(nodes):
            if isinstance(node, Step):
                tensors[i] = node(*[tensors[j] for j in node.operands])
        return [tensors[i] for i in ends]

    return function, [node for node in nodes if isinstance(node, Leaf)]


def prepare(subject: Subject, program: Program) -> None:
    """Call a program under jit, so that it is compiled; the results are not read."""
    function, leaves = _function(program)
    tensorken.jit(function)(*[subject.tensor(x.values, x.dtype, subject.stack) for x in leaves])


def _judge(number: int, node: Leaf | Step, got: Array, may_be: Tensor) -> None:
    assert isinstance(node, Step)
    box = interval(may_be)
    if got.shape != box.shape or got.dtype != np.dtype(box.dtype.name):
        raise Wrong(number, f"compiled: expected {box.dtype} {box.shape}, got {got.dtype} {got.shape}")
    inside = contains(may_be, got)
    if not inside.all():
        raise Wrong(number, f"compiled: {described(node.ops, box, got, inside)}")


def _called(
    subject: Subject, compiled: Callable[..., Any], leaves: Sequence[Leaf], ends: Sequence[int]
) -> list[Tensor]:
    xs = [subject.tensor(x.values, x.dtype, subject.stack) for x in leaves]
    with expected_to_give(ends[0], "compiled", "a result"):
        found: list[Tensor] = compiled(*xs)
    return found


def _read(subject: Subject, xs: Sequence[Tensor], ends: Sequence[int]) -> list[Array]:
    found = []
    for i, x in zip(ends, xs, strict=True):
        with expected_to_give(i, "compiled", "values"):
            found.append(subject.read(x))
    return found
