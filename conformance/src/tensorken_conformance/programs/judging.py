"""Judging: a program runs on the backend and on the enclosure of it; what comes out must lie in what may come out.

Where an interval tells nearly nothing, be it that errors grew or that an op has no useful bound, the step is run once
more, from the very values that its operands had on the backend: then no errors come in with them, so its interval is
that of one op.  Where that tells nothing either, the step is compared with the reference backend's on the same values:
elementwise ops of the reference are correctly rounded, so a result may be as far from its as the backend declares.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tensorken_conformance.case import Failure
from tensorken_conformance.enclosure import Enclosure, Interval, contains, enclosure_for, interval
from tensorken_conformance.enclosure.interval import apart
from tensorken_conformance.programs.draft import unknown, vague
from tensorken_conformance.programs.program import Array, Leaf, Program, Step
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.tensor.tensor import Tensor


@dataclass(slots=True)
class Tally:
    """What has been judged, in elements of steps.

    Attributes:
        elements: all.
        again: those of which the interval of the whole program tells nearly nothing, so that the step ran again.
        referred: those that were compared with the reference.
        unproven: those of which in the end nothing is known but that they are there.
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
    """A node of a program is not what it may be.

    Attributes:
        node: which.
        says: what is expected, and what came.
    """

    def __init__(self, node: int, says: str) -> None:
        super().__init__(says)
        self.node, self.says = node, says


Values = list[Array]
"""The values of the nodes of a program, from the first on."""


def judge(
    subject: Subject, program: Program, tally: Tally | None = None, values: Values | None = None
) -> None:
    """Run a program and compare every step with what it may be.

    Args:
        subject: the backend under test.
        program: what to run.
        tally: counts what is judged.
        values: is given the values of nodes as the backend has them.

    Raises:
        Wrong: where one is not.
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
        may_be = interval(expected[number])
        _same_kind(number, got, tensors[number], may_be)
        inside = contains(expected[number], got)
        tally.elements += got.size
        if not inside.all():
            raise Wrong(number, described(node.ops, may_be, got, inside))
        unclear = vague(may_be)
        if unclear.any():
            tally.again += int(unclear.sum())
            operands = [values[i] for i in node.operands]
            _again(subject, number, node, operands, unclear, tally)


def _run(subject: Subject, program: Program, place: RawTensor[Any]) -> list[Tensor]:
    """All nodes on an interpreter; what a body held back to be fused is settled, since an enclosure has no bodies."""
    tensors: list[Tensor] = []
    for number, node in enumerate(program.nodes):
        if isinstance(node, Leaf):
            tensors.append(subject.tensor(node.values, node.dtype, place))
            continue
        with expected_to_give(number, ", ".join(node.ops), "a result"):
            tensors.append(node(*[tensors[i] for i in node.operands]))
        if any(OPS[op].body is not None and not subject.call_counter.has(OPS[op]) for op in node.ops):
            place.settle(tensors[-1].representation)
    return tensors


@contextmanager
def expected_to_give(number: int, what: str, result: str) -> Iterator[None]:
    """Whatever the block raises is told as what is wrong with a node.

    Raises:
        Wrong: if the block raises anything but a request to end.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # whatever a backend raises is a result
        says = f"expected {result}, got {type(error).__name__}: {' '.join(str(error).split())}"
        raise Wrong(number, f"{what}: {says}" if what else says) from error


def _read(subject: Subject, x: Tensor, number: int) -> Array:
    place = x.interpreter
    with expected_to_give(number, "", "values"):
        shape, dtype = place.shape(x.representation), place.dtype(x.representation)
        if tuple(shape) != x.shape or dtype is not x.dtype:
            raise Failure(f"expected {x.dtype} {x.shape}, got {dtype} {tuple(shape)} by shape() and dtype()")
        return subject.read(x)


def _unchanged(subject: Subject, number: int, leaf: Leaf, x: Tensor) -> None:
    got = _read(subject, x, number)
    if not np.array_equal(got, leaf.values, equal_nan=got.dtype.kind == "f"):
        raise Wrong(number, f"expected {leaf.values.tolist()} as given, read {got.tolist()}")


def _same_kind(number: int, got: Array, x: Tensor, may_be: Interval) -> None:
    if got.shape != may_be.shape or x.dtype is not may_be.dtype:
        raise Wrong(number, f"expected {may_be.dtype} {may_be.shape}, got {x.dtype} {got.shape}")


def described(ops: Sequence[str], may_be: Interval, got: Array, inside: Array) -> str:
    """Where a result is not what it may be, in one line."""
    place = tuple([int(i) for i in np.argwhere(~inside)[0]])
    low, high, nan = may_be.low[place], may_be.high[place], may_be.maybe_nan[place]
    if low > high:
        expected = "nan"
    elif low == high:
        expected = _shown(low, may_be)
    else:
        expected = f"between {_shown(low, may_be)} and {_shown(high, may_be)}"
    if nan and low <= high:
        expected += " or nan"
    at = f" at {list(place)}" if place else ""
    found = got[place]
    return (
        f"{', '.join(ops)}: expected {expected}{at}, got {found if got.dtype.kind == 'f' else found.item()}"
    )


def _shown(end: Any, may_be: Interval) -> str:
    return str(np.array(end).astype(may_be.dtype.name)[()])


# ---- a step on its own -----------------------------------------------------------------------------------------


def _again(
    subject: Subject, number: int, step: Step, operands: Sequence[Array], unclear: Array, tally: Tally
) -> None:
    """The step from the values that its operands had, where nothing was known of its result."""
    leaves = [Leaf(x, DTYPES[x.dtype.name]) for x in operands]
    alone = Program((*leaves, Step(step.text, tuple(range(len(leaves))), step.ops)))
    last = len(leaves)
    try:
        x, y = (
            _run(subject, alone, subject.stack)[last],
            _run(subject, alone, enclosure_for(subject.stack))[last],
        )
        got = _read(subject, x, last)
    except Wrong as wrong:
        raise Wrong(number, wrong.says) from None
    may_be = interval(y)
    _same_kind(number, got, x, may_be)
    inside = contains(y, got)
    if not inside.all():
        raise Wrong(number, described(step.ops, may_be, got, inside))
    still = unclear & vague(may_be)
    if not still.any():
        return
    nothing = still & unknown(may_be)
    op = OPS[step.ops[0]] if len(step.ops) == 1 else None
    if nothing.any() and op is not None and op.elementwise:
        steps = (
            Enclosure(subject.capabilities).errors.steps(op.name, x.dtype) if x.dtype.kind == "float" else 0
        )
        reference = _on_reference(subject, alone)
        tally.referred += int(nothing.sum())
        near = _within(got, reference, steps, op.either_zero) | ~nothing
        if not near.all():
            place = tuple([int(i) for i in np.argwhere(~near)[0]])
            says = (
                f"{op.name}: expected {reference[place]}{f' give or take {steps} numbers' if steps else ''}"
            )
            raise Wrong(number, f"{says} at {list(place)} as the reference has it, got {got[place]}")
        still = still & ~nothing
    tally.unproven += int(still.sum())


@cache
def _reference() -> RawTensor[Any]:
    """The reference backend, loaded where it is first needed."""
    from tensorken_reference.backend import Reference

    return Fuse(Reference())


def _on_reference(subject: Subject, program: Program) -> Array:
    """The last node's values on the reference backend."""
    place = _reference()
    last = program.run(lambda leaf: subject.tensor(leaf.values, leaf.dtype, place))[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array(place.ravel(last.representation), last.dtype.name).reshape(last.shape)


def _within(got: Array, reference: Array, steps: int, either_zero: bool) -> Array:
    """Whether results are at most so many representable numbers apart, and zeros have one sign, unless told."""
    if got.dtype.kind != "f":
        return np.asarray(got == reference)
    name = got.dtype.name
    near = np.abs(apart(got, reference, name)) <= steps
    opposite = (got == 0) & (reference == 0) & (np.signbit(got) != np.signbit(reference)) & (not either_zero)
    return np.asarray((np.isnan(got) & np.isnan(reference)) | (near & ~opposite))
