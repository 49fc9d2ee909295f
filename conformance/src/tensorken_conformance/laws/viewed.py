"""values.views: movements, reductions, sorts and indexing of views of views give what they give of plain operands."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorken_conformance.case import Case
from tensorken_conformance.law import law
from tensorken_conformance.laws import movement
from tensorken_conformance.operands import chains, reductions
from tensorken_conformance.oracles import exact
from tensorken_conformance.oracles.bounds import Arithmetic
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor

ID = "values.views"

SHAPES: tuple[Shape, ...] = ((3, 3, 3), (2, 3, 2, 3), (4, 4))
"""With axes of equal sizes, so that one that is taken for another changes no shape."""

FEW: tuple[Shape, ...] = ((4, 4),)
"""Those of the quick run."""

Params = tuple[Any, ...]


def _axes(shape: Shape) -> list[Params]:
    return [*reductions.several(shape).values()]


def _axis(shape: Shape) -> list[Params]:
    return [(axis,) for axis in range(len(shape))]


def _sizes(shape: Shape) -> list[Params]:
    return [(axis, shape[axis] + 1) for axis in range(len(shape))]


def _places(count: int) -> Array:
    """Indices along an axis: from the end, and one of them again."""
    return np.array([*range(count)[::-1], count // 2][:count], "int32")


def _scattered(x: Array, axis: int, size: int) -> Array:
    y = np.zeros((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype)
    np.add.at(np.moveaxis(y, axis, 0), _places(x.shape[axis]) // 2, np.moveaxis(x, axis, 0))
    return y


EXPECTED: dict[str, tuple[Callable[[Shape], list[Params]], Callable[..., Any]]] = {
    "sum": (_axes, lambda x, axes: np.add.reduce(x, axes, x.dtype, keepdims=True) if axes else x),
    "prod": (_axes, lambda x, axes: np.multiply.reduce(x, axes, x.dtype, keepdims=True) if axes else x),
    "max": (_axes, lambda x, axes: np.max(x, axes, keepdims=True)),
    "min": (_axes, lambda x, axes: np.min(x, axes, keepdims=True)),
    "argmax": (_axis, lambda x, axis: np.argmax(x, axis, keepdims=True).astype("int32")),
    "argmin": (_axis, lambda x, axis: np.argmin(x, axis, keepdims=True).astype("int32")),
    "sort": (_axis, lambda x, axis: np.sort(x, axis, "stable")),
    "argsort": (_axis, lambda x, axis: np.argsort(x, axis, "stable").astype("int32")),
    "cumsum": (_axis, lambda x, axis: np.add.accumulate(x, axis, x.dtype)),
    "cumprod": (_axis, lambda x, axis: np.multiply.accumulate(x, axis, x.dtype)),
    "gather": (_axis, lambda x, axis: np.take(x, _places(x.shape[axis]), axis)),
    "scatter_add": (_sizes, _scattered),
    "concatenate": (_axis, lambda x, axis: np.concatenate([x, np.flip(x), x], axis)),
}
"""The params of an op for a shape, and what it gives by numpy."""

ROUNDED = ("sum", "prod", "cumsum", "cumprod", "scatter_add")
"""Those whose whole numbers a backend may round that declares errors for sums and products."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each op and dtype; a case tries all chains, shapes and params."""
    for op in (*movement.MOVEMENTS, *EXPECTED):
        yield from [Case(ID, op, dtype.name) for dtype in dtypes_of(subject, op)]


def dtypes_of(subject: Subject, op: str) -> list[DType]:
    """The dtypes in which an op runs here, and in which nothing is rounded."""
    if op in ("gather", "scatter_add"):
        if "int32" not in subject.capabilities.dtypes:
            return []
        params = (0, 1)[: len(OPS[op].params)]
        found = exact.dtypes_for(subject, OPS[op], params, beside=(DTYPES["int32"],))
    else:
        found = exact.dtypes_for(subject, OPS[op], ((),))
    plain = [d for d in found if d.kind != "float" or Arithmetic(subject.capabilities, d.name).faithful]
    return plain if op in ROUNDED else found


def values_of(subject: Subject, case: Case, shape: Shape) -> Array:
    """Numbers that tell places apart: those of ints over the whole range, of floats whole and added up exactly."""
    kind, size = DTYPES[case.dtype].kind, int(np.prod(shape))
    rng = np.random.default_rng([subject.seed, zlib.crc32(f"{case.op} {case.dtype} {shape}".encode())])
    if kind == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if kind == "int":
        ends = np.iinfo(case.dtype)
        return rng.integers(ends.min, ends.max, shape, case.dtype)
    if case.op in ("prod", "cumprod"):
        return rng.choice([1.0, -1.0, -1.0, 2.0], shape).astype(case.dtype)
    numbers = (1.0 + np.arange(size)) * rng.choice([1.0, -1.0], size)
    return rng.permutation(numbers).reshape(shape).astype(case.dtype)


@law(ID, cases, level=2, needs=lambda case: chains.needs(case.dtype))
def viewed(subject: Subject, case: Case) -> None:
    """An op on an operand that was moved, once or twice, in any way, gives the same bits as on a plain one.

    Operands are permuted, flipped along each axis and along all, cropped likewise, expanded along each, and two of
    these one after the other.  Their axes have equal sizes, so that none is told from another by its shape; whole
    numbers leave nothing to be rounded.
    """
    for shape in FEW if subject.depth == "smoke" else SHAPES:
        plain = values_of(subject, case, shape)
        for name, chain in chains.possible(subject, case.dtype, len(shape)).items():
            values = chains.fitted(chain, plain)
            x = chains.lying(subject.call_counter, chain, values, DTYPES[case.dtype])
            _check(subject, case, name, values, x)


def _check(subject: Subject, case: Case, name: str, values: Array, x: Tensor) -> None:
    """All params that the op has for this operand."""
    says = f"{case.op} of {case.dtype} {values.shape}, {name},"
    if case.op == "expand":
        shape = (*values.shape[:-1], 1)
        start = subject.run(OPS["crop"], [x], (tuple([(0, n) for n in shape]),))
        y = subject.run(OPS["expand"], [start], (values.shape,))
        exact.agree(subject, y, np.array(np.broadcast_to(values[..., :1], values.shape)), says)
        return
    if case.op in movement.MOVEMENTS:
        for params in movement.variants(case.op, values.shape).values():
            y = subject.run(OPS[case.op], [x], params)
            exact.agree(subject, y, np.array(chains.moved(case.op, values, params)), f"{says} {params[0]}")
        return
    for params in EXPECTED[case.op][0](values.shape):
        check(subject, case, says, values, x, params)


def check(subject: Subject, case: Case, says: str, values: Array, x: Tensor, params: Params) -> None:
    """Compare what an op of EXPECTED gives for an operand with what numpy gives for its values."""
    y = subject.run(OPS[case.op], _operands(subject, case, values, x, params), params)
    with np.errstate(over="ignore"):
        right = np.asarray(EXPECTED[case.op][1](values, *params))
    exact.agree(subject, y, right, f"{says} {params}")


def _operands(subject: Subject, case: Case, values: Array, x: Tensor, params: Params) -> list[Tensor]:
    if case.op == "concatenate":
        return [x, subject.tensor(np.flip(values), DTYPES[case.dtype]), x]
    if case.op in ("gather", "scatter_add"):
        places = _places(values.shape[params[0]])
        places = places if case.op == "gather" else places // 2
        return [x, subject.tensor(places, DTYPES["int32"])]
    return [x]
