"""values.arrangement: concatenate, sort and argsort bring whole elements into their order, bit by bit."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.law import law
from tensorken_conformance.operands import shapes
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS

SORTED = (*exact.VALUES, "ties", "ascending", "descending")

PIECES: dict[str, tuple[tuple[float, float] | None, ...]] = {
    "alone": (None,),
    "twice": (None, None),
    "two": (None, (0, 1)),
    "before-none": (None, (0, 0)),
    "after-none": ((0, 0), None),
    "three": ((0, 0.5), None, (0.5, 1)),
    "five": ((0, 0.25), (0.25, 0.5), None, (0.5, 0.5), (0.5, 1)),
}
"""Of what a concatenation is made: None is the operand of the class, the others are parts of a second array."""


def values_of(subject: Subject, case: Case, number: int) -> Array:
    """The values of a case; in the order that its class names along every axis."""
    shape = shapes.class_of(case.shape).shape
    if case.values not in ("ascending", "descending"):
        return shapes.fitted(case.shape, exact.drawn(subject, case, shape, number=number))
    values = np.array(exact.drawn(subject, case, shape, values="ordinary"))
    for axis in range(values.ndim):
        values.sort(axis)
    return shapes.fitted(case.shape, values if case.values == "ascending" else np.flip(values))


def part(values: Array, axis: int, start: float, end: float) -> Array:
    """The part of an array between two places along an axis, which are given as parts of the whole."""
    limits = slice(round(start * values.shape[axis]), round(end * values.shape[axis]))
    return values[(slice(None),) * axis + (limits,)]


def order_of(values: Array, axis: int) -> Array:
    """The places in ascending order along an axis, those of equal elements in theirs, NaN last: as Python sorts."""
    if not values.size:
        return np.zeros(values.shape, "int32")

    def row(numbers: Array) -> list[int]:
        keys = numbers.tolist()
        return sorted(range(len(keys)), key=lambda i: (keys[i] != keys[i], keys[i]))

    return np.apply_along_axis(row, axis, values).astype("int32")


def cases(subject: Subject) -> Iterator[Case]:
    """Each op and dtype on each class of shapes and values, a concatenation in different pieces; along all axes."""
    for op in ("sort", "argsort", "concatenate"):
        for dtype in exact.dtypes_for(subject, OPS[op], (0,)):
            if subject.depth == "smoke":
                yield Case("values.arrangement", op, dtype.name, "small", "ordinary")
                continue
            for shape in exact.classes(subject):
                if shapes.class_of(shape).shape and exact.makes(subject, shape, dtype):
                    for values in SORTED if op != "concatenate" else exact.VALUES:
                        yield Case("values.arrangement", op, dtype.name, shape, values)


@law("values.arrangement", cases, level=exact.level_of, needs=exact.needs_of)
def arrangement(subject: Subject, case: Case) -> None:
    """Pieces stand one after the other with the same bits; sorting is stable, with NaN last and zeros as they come.

    Equal elements keep their order, zeros of either sign being equal.  Pieces may be empty, or views.
    """
    for number in range(exact.draws(case, shapes.class_of(case.shape).shape)):
        _check(subject, case, number)


def _check(subject: Subject, case: Case, number: int) -> None:
    shape, op = shapes.class_of(case.shape).shape, OPS[case.op]
    values, dtype = values_of(subject, case, number), DTYPES[case.dtype]
    x = shapes.operand(subject, case.shape, values, dtype)
    for axis in range(len(shape)):
        says = f"{case.op} of {case.dtype} {shape} along axis {axis}"
        if case.op != "concatenate":
            places = order_of(values, axis)
            expected = places if case.op == "argsort" else np.take_along_axis(values, places, axis)
            script = functools.partial(
                exact.script_of, subject, [(case.op, (axis,))], [values], expected, case.shape
            )
            exact.agree(subject, subject.run(op, [x], (axis,)), expected, says, script)
            continue
        second = exact.drawn(subject, case, (*shape[:axis], 9, *shape[axis + 1 :]), number=number)
        for name, pieces in PIECES.items():
            operands = [values if piece is None else part(second, axis, *piece) for piece in pieces]
            expected = np.concatenate(operands, axis)
            tensors = [
                x if piece is None else subject.tensor(array, dtype)
                for piece, array in zip(pieces, operands, strict=True)
            ]
            y = subject.run(op, tensors, (axis,))
            shown = case.shape if pieces[0] is None else ""
            script = functools.partial(
                exact.script_of, subject, [(case.op, (axis,))], operands, expected, shown
            )
            exact.agree(subject, y, expected, f"{says}, {name}", script)
