"""values.arrangement: concatenate, sort and argsort bring whole elements into their order, bit by bit."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from tensorken.spec.dtypes import DTYPES
from tensorken.spec.op import OPS
from tensorken_conformance import exact, shapes
from tensorken_conformance.case import Case
from tensorken_conformance.law import law
from tensorken_conformance.subject import Array, Subject

SORTED = (*exact.VALUES, "ties", "ascending", "descending")

CUTS: dict[str, tuple[float, ...]] = {
    "one": (),
    "two": (0.5,),
    "uneven": (0.25,),
    "empty-first": (0.0,),
    "empty-last": (1.0,),
    "five": (0.25, 0.25, 0.5, 0.875),
}
"""Where the pieces of a concatenation end, as parts of the whole."""


def values_of(subject: Subject, case: Case) -> Array:
    """The values of a case; in the order that its class names along every axis."""
    shape = shapes.class_of(case.shape).shape
    if case.values not in ("ascending", "descending"):
        return shapes.fitted(case.shape, exact.drawn(subject, case, shape))
    values = np.array(exact.drawn(subject, case, shape, values="ordinary"))
    for axis in range(values.ndim):
        values.sort(axis)
    return shapes.fitted(case.shape, values if case.values == "ascending" else np.flip(values))


def pieces_of(values: Array, axis: int, cuts: tuple[float, ...]) -> list[Array]:
    """An array in pieces along an axis."""
    places = [round(part * values.shape[axis]) for part in cuts]
    return np.split(values, places, axis)


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
                detail = "two" if op == "concatenate" else ""
                yield Case("values.arrangement", op, dtype.name, "small", "ordinary", detail)
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
    shape, op = shapes.class_of(case.shape).shape, OPS[case.op]
    values, dtype = values_of(subject, case), DTYPES[case.dtype]
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
        for name, cuts in CUTS.items():
            first = exact.drawn(subject, case, (*shape[:axis], 3, *shape[axis + 1 :]))
            others = pieces_of(np.concatenate([values, first], axis), axis, cuts)
            operands = [values, *others]
            expected = np.concatenate(operands, axis)
            y = subject.run(op, [x, *(subject.tensor(piece, dtype) for piece in others)], (axis,))
            script = functools.partial(
                exact.script_of, subject, [(case.op, (axis,))], operands, expected, case.shape
            )
            exact.agree(subject, y, expected, f"{says}, {name}", script)
