"""Judging: run a program on the backend and on intervals; every result must lie in its interval.

Where an interval is too wide, because errors grew or because an op has no useful bound, the step runs once more from
the values that its operands had on the backend: its interval then has the error of one op. If that is still too wide,
the step is compared with the reference backend on the same values: elementwise ops of the reference are correctly
rounded, so a result may differ from them by as much as the backend declares.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tensorken_conformance.enclosure import Enclosure, Interval, contains, enclosure_for, interval
from tensorken_conformance.enclosure.interval import apart
from tensorken_conformance.numbers.host_arrays import is_float
from tensorken_conformance.programs.draft import unknown, vague
from tensorken_conformance.programs.program import Array, Leaf, Program, Step
from tensorken_conformance.subject import Subject, require_facts
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.tensor.tensor import Tensor


@dataclass(slots=True)
class Tally:
    """The number of elements of steps that were checked.

    Attributes:
        elements: all elements.
        again: the elements whose intervals were too wide in the whole program, so that the step ran again.
        referred: the elements that were compared with the reference.
        unproven: the elements of which only the format was checked.
    """

    elements: int = 0
    again: int = 0
    referred: int = 0
    unproven: int = 0

    def __str__(self) -> str:
        share = 100 * (1 - self.unproven / max(self.elements, 1))
        return (
            f"{self.elements} elements, {share:.1f} % of them proven: {self.again} by a second run of their step, "
            f"{self.referred} by the reference"
        )


class Wrong(Exception):
    """A node of a program is wrong: the number of the node, and a message."""

    def __init__(self, node: int, says: str) -> None:
        super().__init__(says)
        self.node, self.says = node, says


Values = list[Array]
"""The values of the first nodes of a program."""


def judge(
    subject: Subject, program: Program, tally: Tally | None = None, values: Values | None = None
) -> None:
    """Run a program and compare every step with its enclosure.

    Args:
        subject: the backend under test.
        program: the program.
        tally: receives the counts.
        values: receives the values of the nodes on the backend.

    Raises:
        Wrong: if a result does not lie in its interval.
    """
    tally = Tally() if tally is None else tally
    values = [] if values is None else values
    stack, enclosure = subject.stack, enclosure_for(subject.stack)
    tensors, expected = _run(subject, program, stack), _run(subject, program, enclosure)
    for number, node in enumerate(program.nodes):
        if isinstance(node, Leaf):
            values.append(node.values)
            _unchanged(subject, number, node, tensors[number])
            continue
        got = _read(subject, tensors[number], number)
        values.append(got)
        tally.elements += got.size
        unclear = vague(require_inside(number, node.ops, got, expected[number]))
        if unclear.any():
            tally.again += int(unclear.sum())
            operands = [values[i] for i in node.operands]
            _again(subject, number, node, operands, unclear, tally)


def _run(subject: Subject, program: Program, interpreter: RawTensor[Any]) -> list[Tensor]:
    """The values of all nodes on an interpreter; deferred ops of bodies are computed at once, as on the enclosure."""
    tensors: list[Tensor] = []
    for number, node in enumerate(program.nodes):
        if isinstance(node, Leaf):
            tensors.append(subject.tensor(node.values, node.dtype, interpreter))
            continue
        with expected_to_give(number, ", ".join(node.ops), "a result"):
            tensors.append(node(*[tensors[i] for i in node.operands]))
        if any(OPS[op].body is not None and not subject.call_counter.has(OPS[op]) for op in node.ops):
            interpreter.settle(tensors[-1].representation)
    return tensors


@contextmanager
def expected_to_give(number: int, what: str, result: str) -> Iterator[None]:
    """Report any exception of the block as an error of a node.

    Raises:
        Wrong: if the block raises anything but KeyboardInterrupt or SystemExit.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # any exception of a backend is a result
        says = f"expected {result}, got {type(error).__name__}: {' '.join(str(error).split())}"
        raise Wrong(number, f"{what}: {says}" if what else says) from error


def _read(subject: Subject, x: Tensor, number: int) -> Array:
    with expected_to_give(number, "", "values"):
        require_facts("result", x, x.shape, x.dtype)
        return subject.read(x)


def _unchanged(subject: Subject, number: int, leaf: Leaf, x: Tensor) -> None:
    got = _read(subject, x, number)
    if not np.array_equal(got, leaf.values, equal_nan=is_float(got)):
        raise Wrong(number, f"expected {leaf.values.tolist()} as given, read {got.tolist()}")


def require_inside(
    number: int, ops: Sequence[str], got: Array, expected: Tensor, prefix: str = ""
) -> Interval:
    """Compare the values of a node with its intervals, which are returned.

    Raises:
        Wrong: if the shape or the dtype differ, or a value lies outside its interval.
    """
    may_be = interval(expected)
    if got.shape != may_be.shape or got.dtype != np.dtype(may_be.dtype.name):
        raise Wrong(number, f"{prefix}expected {may_be.dtype} {may_be.shape}, got {got.dtype} {got.shape}")
    inside = contains(expected, got)
    if not inside.all():
        raise Wrong(number, f"{prefix}{', '.join(ops)}: {_described(may_be, got, inside)}")
    return may_be


def _described(may_be: Interval, got: Array, inside: Array) -> str:
    """The first value that lies outside its interval, in one line."""
    index = tuple([int(i) for i in np.argwhere(~inside)[0]])
    low, high, nan = may_be.low[index], may_be.high[index], may_be.maybe_nan[index]
    if low > high:
        expected = "nan"
    elif low == high:
        expected = _shown(low, may_be)
    else:
        expected = f"between {_shown(low, may_be)} and {_shown(high, may_be)}"
    if nan and low <= high:
        expected += " or nan"
    at = f" at {list(index)}" if index else ""
    found = got[index]
    return f"expected {expected}{at}, got {found if is_float(got) else found.item()}"


def _shown(end: Any, may_be: Interval) -> str:
    return str(np.array(end).astype(may_be.dtype.name)[()])


# ---- a step on its own -----------------------------------------------------------------------------------------


def _again(
    subject: Subject, number: int, step: Step, operands: Sequence[Array], unclear: Array, tally: Tally
) -> None:
    """Run a step from the values of its operands, for the elements whose intervals were too wide."""
    leaves = [Leaf(x, DTYPES[x.dtype.name]) for x in operands]
    alone = Program((*leaves, Step(step.text, tuple(range(len(leaves))), step.ops)))
    last = len(leaves)
    try:
        x, y = [_run(subject, alone, place)[last] for place in (subject.stack, enclosure_for(subject.stack))]
        got = _read(subject, x, last)
    except Wrong as wrong:
        raise Wrong(number, wrong.says) from None
    may_be = require_inside(number, step.ops, got, y)
    still = unclear & vague(may_be)
    if not still.any():
        return
    nothing = still & unknown(may_be)
    op = OPS[step.ops[0]] if len(step.ops) == 1 else None
    if nothing.any() and op is not None and op.elementwise:
        errors = Enclosure(subject.capabilities).errors
        steps = errors.steps(op.name, x.dtype) if x.dtype.kind == "float" else 0
        reference = _on_reference(subject, alone)
        tally.referred += int(nothing.sum())
        near = _within(got, reference, steps, op.either_zero) | ~nothing
        if not near.all():
            index = tuple([int(i) for i in np.argwhere(~near)[0]])
            margin = f" give or take {steps} numbers" if steps else ""
            says = f"{op.name}: expected {reference[index]}{margin}"
            raise Wrong(number, f"{says} at {list(index)} as the reference has it, got {got[index]}")
        still = still & ~nothing
    tally.unproven += int(still.sum())


@cache
def _reference() -> RawTensor[Any]:
    """The reference backend, imported on demand."""
    from tensorken_reference.backend import Reference

    return Fuse(Reference())


def _on_reference(subject: Subject, program: Program) -> Array:
    """The last node's values on the reference backend."""
    interpreter = _reference()
    last = program.run(lambda leaf: subject.tensor(leaf.values, leaf.dtype, interpreter))[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array(interpreter.ravel(last.representation), last.dtype.name).reshape(last.shape)


def _within(got: Array, reference: Array, steps: int, either_zero: bool) -> Array:
    """Whether results are at most so many representable numbers apart; zeros differ by sign, unless `either_zero`."""
    if not is_float(got):
        return np.asarray(got == reference)
    name = got.dtype.name
    near = np.abs(apart(got, reference, name)) <= steps
    opposite = (got == 0) & (reference == 0) & (np.signbit(got) != np.signbit(reference)) & (not either_zero)
    return np.asarray((np.isnan(got) & np.isnan(reference)) | (near & ~opposite))
