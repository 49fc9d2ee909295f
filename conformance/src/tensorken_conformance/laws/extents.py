"""values.extents: ops on odd numbers of some thousand elements, on long axes, and on axes of no element."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.law import law
from tensorken_conformance.laws import viewed
from tensorken_conformance.laws.movement import MOVEMENTS, variants
from tensorken_conformance.operands import chains
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Shape

ID = "values.extents"

ODD: tuple[Shape, ...] = ((31, 53), (13, 11, 17))
"""Of more than a thousand elements, whose numbers no power of two divides."""

NOTHING: tuple[Shape, ...] = ((0, 3), (3, 0), (2, 0, 3))

LONG: Shape = (33_001,)
"""More than two bytes with a sign count."""

PLACES = ("argmax", "argmin", "argsort", "gather")
"""Ops that count along a long axis; they do so alike in all dtypes, so that one of them is tried."""

ELEMENTWISE: dict[str, tuple[int, Callable[..., Any]]] = {
    "neg": (1, np.negative),
    "abs": (1, np.absolute),
    "square": (1, np.square),
    "floor": (1, np.floor),
    "add": (2, np.add),
    "sub": (2, np.subtract),
    "mul": (2, np.multiply),
    "maximum": (2, np.maximum),
    "minimum": (2, np.minimum),
    "eq": (2, np.equal),
    "lt": (2, np.less),
    "bitwise_and": (2, np.bitwise_and),
    "bitwise_or": (2, np.bitwise_or),
    "bitwise_xor": (2, np.bitwise_xor),
}
"""Ops whose results are exact: how many operands they take, and what they give in numpy."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each op and dtype on each group of shapes; none in the quick run."""
    if subject.depth == "smoke":
        return
    for op, (count, _) in ELEMENTWISE.items():
        for dtype in exact.dtypes_for(subject, OPS[op], operands=count):
            yield Case(ID, op, dtype.name, "odd")
    for op in (*MOVEMENTS, *viewed.EXPECTED):
        dtypes = viewed.dtypes_of(subject, op)
        for dtype in dtypes:
            yield Case(ID, op, dtype.name, "none")
            if op in viewed.EXPECTED:
                yield Case(ID, op, dtype.name, "odd")
        if op in PLACES and dtypes:
            yield Case(ID, op, dtypes[-1].name, "long")


def values_of(subject: Subject, case: Case, shape: Shape, which: int = 0) -> Array:
    """Whole numbers that are added up exactly; the largest is the last but one."""
    dtype, size = DTYPES[case.dtype], int(np.prod(shape))
    rng = np.random.default_rng([subject.seed, zlib.crc32(f"{case.op} {case.dtype} {shape}".encode()), which])
    if dtype.kind == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if case.op in ("prod", "cumprod"):
        return rng.choice([1, -1], shape).astype(case.dtype)
    whole = rng.choice([-3, -2, -1, 1, 2, 3], size)
    if dtype.name == "float16" and case.op in viewed.ROUNDED:
        whole[rng.random(size) > 500 / max(size, 1)] = 0
    if size:
        whole[-2:][:1] = 7
    return whole.reshape(shape).astype(case.dtype)


@law(ID, cases, level=2)
def extents(subject: Subject, case: Case) -> None:
    """An op gives every element right of some thousand, along an axis of 33 001, and where there are none.

    The sizes are divided by no power of two.  All numbers are whole and small, so that nothing is rounded.
    """
    dtype = DTYPES[case.dtype]
    if case.op in ELEMENTWISE:
        count, expected = ELEMENTWISE[case.op]
        for shape in ODD:
            operands = [values_of(subject, case, shape, i) for i in range(count)]
            y = subject.run(OPS[case.op], [subject.tensor(operand, dtype) for operand in operands])
            exact.agree(subject, y, np.asarray(expected(*operands)), f"{case.op} of {case.dtype} {shape}")
        return
    for shape in {"none": NOTHING, "odd": ODD, "long": (LONG,)}[case.shape]:
        values = values_of(subject, case, shape)
        x = subject.tensor(values, dtype)
        if case.op in MOVEMENTS:
            _moved(subject, case, values, dtype)
            continue
        for params in viewed.EXPECTED[case.op][0](shape):
            if values.size or case.op in viewed.ROUNDED or _has_terms(shape, params[0]):
                viewed.check(subject, case, f"{case.op} of {case.dtype} {shape},", values, x, params)


def _has_terms(shape: Shape, axes: Any) -> bool:
    """Whether an element of a reduction along axes is made of some element."""
    return all(shape[axis] for axis in (axes if isinstance(axes, tuple) else (axes,)))


def _moved(subject: Subject, case: Case, values: Array, dtype: DType) -> None:
    """All params that a movement has for an operand."""
    for name, params in variants(case.op, values.shape).items():
        start = values
        if case.op == "expand":
            axes = [] if name == "none" else [int(axis) for axis in name.split("-")]
            shape = [1 if i in axes else n for i, n in enumerate(values.shape)]
            start = np.resize(values, shape) if values.size else np.ones(shape, values.dtype)
        y = subject.run(OPS[case.op], [subject.tensor(start, dtype)], params)
        says = f"{case.op} of {case.dtype} {start.shape}, {params[0]}"
        exact.agree(subject, y, np.array(chains.moved(case.op, start, params)), says)
