"""values.extrema: the largest and smallest elements along axes, and the places where they stand first."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.law import law
from tensorken_conformance.operands import shapes
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Shape

EXTREMA = ("max", "min", "argmax", "argmin")

VALUES = (*exact.VALUES, "ties", "worst", "last")
"""Beside the usual classes: few different values; only the one that loses to all others, which no accumulator may
begin above; and one winner, at the end."""


@functools.cache
def variants(op: str, shape: Shape) -> tuple[Any, ...]:
    """The axes over which an op can reduce a tensor of a shape: for places one, for values also several and none."""
    rank = len(shape)
    if op.startswith("arg"):
        return tuple([axis for axis in range(rank) if shape[axis]])
    axes = range(rank)
    if rank <= 3:
        found = [chosen for count in range(rank + 1) for chosen in combinations(axes, count)]
    else:
        found = [(), *[(axis,) for axis in axes], (0, rank - 1), tuple(axes[1::2]), tuple(axes)]
    return tuple([chosen for chosen in found if all(shape[axis] for axis in chosen)])


def operand(subject: Subject, case: Case, shape: Shape, number: int) -> Array:
    """The values of a case; the largest or smallest number of the dtype where its class asks for it."""
    if case.values not in ("worst", "last"):
        return exact.drawn(subject, case, shape, number=number)
    kind = DTYPES[case.dtype].kind
    wins, loses = case.op.removeprefix("arg") == "max", case.op.removeprefix("arg") == "min"
    if case.values == "worst":
        ends: Any = (False, True) if kind == "bool" else (-np.inf, np.inf)
        if kind == "int":
            ends = np.iinfo(case.dtype).min, np.iinfo(case.dtype).max
        return np.full(shape, ends[loses], case.dtype)
    ordinary = exact.drawn(subject, case, shape, values="ordinary")
    values = np.full(shape, loses) if kind == "bool" else np.array(ordinary)
    if values.size:
        values[(-1,) * values.ndim] = wins if kind == "bool" else 120 if wins else -120
        if kind == "int":
            values[(-1,) * values.ndim] = np.iinfo(case.dtype).max if wins else np.iinfo(case.dtype).min
    return values


def rows_over(values: Array, axes: tuple[int, ...]) -> tuple[Array, Shape]:
    """The elements along axes as rows of a matrix, and the shape of one result a row."""
    kept = [axis for axis in range(values.ndim) if axis not in axes]
    length = int(np.prod([values.shape[axis] for axis in axes], dtype=int))
    count = int(np.prod([values.shape[axis] for axis in kept], dtype=int))
    left = tuple([1 if axis in axes else n for axis, n in enumerate(values.shape)])
    return values.transpose(*kept, *axes).reshape(count, length), left


def extremes(op: str, rows: Array) -> Array:
    """The largest or smallest of each row; NaN if it has one."""
    ordered = np.sort(rows, axis=1)
    if op == "max" or not rows.size:
        return ordered[:, -1:]
    return np.where(ordered[:, -1:] != ordered[:, -1:], ordered[:, -1:], ordered[:, :1])


def places(op: str, rows: Array) -> Array:
    """Where the largest or smallest stands first in each row; a NaN counts as it."""
    value = extremes(op, rows)
    hits = (rows == value) | (rows != rows)
    return np.array([[row.tolist().index(True)] for row in hits], "int32").reshape(-1, 1)


def cases(subject: Subject) -> Iterator[Case]:
    """Each op and dtype on each class of shapes and values; a case tries all axes."""
    for op in EXTREMA:
        for dtype in exact.dtypes_for(subject, OPS[op], ((),)):
            if subject.depth == "smoke":
                yield Case("values.extrema", op, dtype.name, "small", "ordinary")
                continue
            for shape in exact.classes(subject):
                if exact.makes(subject, shape, dtype) and variants(op, shapes.class_of(shape).shape):
                    for values in VALUES:
                        if values in exact.VALUES or not shapes.class_of(shape).movement:
                            yield Case("values.extrema", op, dtype.name, shape, values)


@law("values.extrema", cases, level=exact.level_of, needs=exact.needs_of)
def extrema(subject: Subject, case: Case) -> None:
    """The extremes over axes are elements, NaN where there is one; of equal ones argmax and argmin give the first.

    Of two zeros that differ in sign, either may come as the largest or the smallest.  Over no axes each element is
    its own extreme; tensors of no elements give such.
    """
    for number in range(exact.draws(case, shapes.class_of(case.shape).shape)):
        _check(subject, case, number)


def _check(subject: Subject, case: Case, number: int) -> None:
    shape, op = shapes.class_of(case.shape).shape, OPS[case.op]
    values = shapes.fitted(case.shape, operand(subject, case, shape, number))
    x = shapes.operand(subject, case.shape, values, DTYPES[case.dtype])
    for what in variants(case.op, shape):
        says = f"{case.op} of {case.dtype} {shape} over {what}"
        rows, left = rows_over(values, (what,) if isinstance(what, int) else what)
        y = subject.run(op, [x], (what,))
        if case.op.startswith("arg"):
            expected = places(case.op.removeprefix("arg"), rows).reshape(left)
        else:
            assert op.either_zero
            expected = with_signs(extremes(case.op, rows).reshape(left), subject.read(y), rows, says)
        script = functools.partial(
            exact.script_of, subject, [(case.op, (what,))], [values], expected, case.shape
        )
        exact.agree(subject, y, expected, says, script)


def with_signs(expected: Array, got: Array, rows: Array, says: str) -> Array:
    """What is expected, with the signs of zeros as they came where the row has zeros of both signs."""
    if expected.dtype.kind != "f" or got.shape != expected.shape:
        return expected
    zeros = rows == 0
    either = (zeros & np.signbit(rows)).any(1) & (zeros & ~np.signbit(rows)).any(1)
    free = either.reshape(expected.shape) & (expected == 0) & (got == 0)
    return np.where(free, got, expected)
