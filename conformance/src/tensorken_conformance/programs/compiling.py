"""Compiling: a program traced and compiled as a whole; what comes out must lie in what may come out of its steps."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tensorken
from tensorken_conformance.enclosure import contains, enclosure_for, interval
from tensorken_conformance.programs.judging import Tally, Wrong, described
from tensorken_conformance.programs.program import Array, Leaf, Program, Step
from tensorken_conformance.subject import Subject
from tensorken_core.errors import RetraceWarning
from tensorken_core.tensor.tensor import Tensor


def judge_compiled(subject: Subject, program: Program, tally: Tally) -> None:
    """Run a program under jit, with other numbers, and again; compare what no step uses with what it may be.

    Args:
        subject: the backend under test.
        program: what to run.
        tally: counts what is judged.

    Raises:
        Wrong: where a result is not what it may be, or a later call changed it.
    """
    nodes = program.nodes
    used = {i for node in nodes if isinstance(node, Step) for i in node.operands}
    ends = [i for i, node in enumerate(nodes) if isinstance(node, Step) and i not in used]
    given = [i for i, node in enumerate(nodes) if isinstance(node, Leaf)]

    def function(*leaves: Tensor) -> list[Tensor]:
        tensors = dict(zip(given, leaves, strict=True))
        for i, node in enumerate(nodes):
            if isinstance(node, Step):
                tensors[i] = node(*[tensors[j] for j in node.operands])
        return [tensors[i] for i in ends]

    compiled = tensorken.jit(function)
    leaves = [node for node in nodes if isinstance(node, Leaf)]
    others = [Leaf(np.flip(leaf.values), leaf.dtype) for leaf in leaves]
    enclosure = enclosure_for(subject.stack)
    first = _called(subject, compiled, leaves, ends)
    found = _read(subject, first, ends)
    for numbers in (leaves, others):
        results = (
            found if numbers is leaves else _read(subject, _called(subject, compiled, others, ends), ends)
        )
        expected = function(*[subject.tensor(leaf.values, leaf.dtype, enclosure) for leaf in numbers])
        for i, got, may_be in zip(ends, results, expected, strict=True):
            tally.elements += got.size
            _judge(i, nodes[i], got, may_be)
    for i, got, kept in zip(ends, found, _read(subject, first, ends), strict=True):
        if not _same(got, kept):
            raise Wrong(
                i, f"compiled: expected {got.tolist()} to stay, got {kept.tolist()} after another call"
            )
    for i, got, again in zip(
        ends, found, _read(subject, _called(subject, compiled, leaves, ends), ends), strict=True
    ):
        if not _same(got, again):
            raise Wrong(
                i, f"compiled: expected {got.tolist()} of another call with the same, got {again.tolist()}"
            )


def _judge(number: int, node: Leaf | Step, got: Array, may_be: Tensor) -> None:
    assert isinstance(node, Step)
    box = interval(may_be)
    if got.shape != box.shape or got.dtype != np.dtype(box.dtype.name):
        raise Wrong(number, f"compiled: expected {box.dtype} {box.shape}, got {got.dtype} {got.shape}")
    inside = contains(may_be, got)
    if not inside.all():
        raise Wrong(number, f"compiled: {described(node.ops, box, got, inside)}")


def _same(a: Array, b: Array) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def _called(
    subject: Subject, compiled: Callable[..., Any], leaves: Sequence[Leaf], ends: Sequence[int]
) -> list[Tensor]:
    xs = [subject.tensor(x.values, x.dtype, subject.stack) for x in leaves]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RetraceWarning)  # each program is another, and is called twice
            found: list[Tensor] = compiled(*xs)
        return found
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # whatever a backend raises is a result
        says = " ".join(str(error).split())
        raise Wrong(ends[0], f"compiled: expected a result, got {type(error).__name__}: {says}") from error


def _read(subject: Subject, xs: Sequence[Tensor], ends: Sequence[int]) -> list[Array]:
    found = []
    for i, x in zip(ends, xs, strict=True):
        try:
            found.append(subject.read(x))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # whatever a backend raises is a result
            says = " ".join(str(error).split())
            raise Wrong(i, f"compiled: expected values, got {type(error).__name__}: {says}") from error
    return found
