"""values.elementwise: what elementwise ops give, on every shape and every kind of number, against exact results."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tensorken_conformance import limits
from tensorken_conformance.case import Case, Failure, Measured, Unsupported
from tensorken_conformance.law import law
from tensorken_conformance.operands import pools
from tensorken_conformance.operands.samples import kinds_of
from tensorken_conformance.operands.shapes import SHAPES, fitted, need, operand
from tensorken_conformance.oracles import elementwise as oracle, ulp
from tensorken_conformance.oracles.rounding import FORMATS
from tensorken_conformance.subject import Array, Depth, Subject
from tensorken_core.errors import DTypeError
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import OPS, Op
from tensorken_core.tensor.tensor import Tensor

ROWS: dict[Depth, int] = {"smoke": 96, "default": 192, "deep": 3072}
"""How many rows a pool has at most; fewer than the largest shape has elements, so that a cell of that has all."""

WHOLE = "pool"
"""The shape of a deep run in which a pool is tried as a whole."""

BY_MEANING = "by-meaning"
"""The detail of cases on ops of which nothing better is known than their own meaning in double."""

EXACT = frozenset(
    ("neg", "abs", "sign", "maximum", "minimum", "relu", "floor", "round", "trunc", "ceil", "remainder")
    + ("signbit", "copysign", "nextafter", "where", "eq", "lt", "to_bits", "from_bits")
)
"""What has no error in floats either; the remainder is rounded once, and every step towards it can be exact."""

ON_BITS = frozenset(("signbit", "copysign", "nextafter", "where", "to_bits", "from_bits"))
"""What sees subnormal numbers as they are also on a device that flushes them: it does not compute with them."""


# ---- cases -------------------------------------------------------------------------------------------------------


def takes(subject: Subject, op: Op, dtype: DType) -> bool:
    """Whether the op is defined on a dtype, with a result that the backend has a dtype for."""
    try:
        result: DType = op.result_dtype(kinds_of(op, op.arity or 1, dtype), ())
    except DTypeError:
        return False
    return all(d.name in subject.capabilities.dtypes for d in (result, *kinds_of(op, op.arity or 1, dtype)))


def cases(subject: Subject) -> Iterator[Case]:
    """Each op, dtype, shape and value class; smoke: one of each op."""
    for op in OPS.values():
        if not op.elementwise or op.params:
            continue
        detail = "" if oracle.known(op) else BY_MEANING
        dtypes = [dtype for dtype in subject.dtypes() if takes(subject, op, dtype)]
        if subject.depth == "smoke":
            for dtype in sorted(dtypes, key=lambda dtype: dtype.name != "float32")[:1]:
                yield Case("values.elementwise", op.name, dtype.name, "small", "mixed", detail)
            continue
        for dtype in dtypes:
            shapes = [*SHAPES, WHOLE] if subject.depth == "deep" else SHAPES
            for shape, values in itertools.product(shapes, pools.classes(dtype)):
                yield Case("values.elementwise", op.name, dtype.name, shape, values, detail)
            if dtype.name == "float16" and op.arity == 1:
                yield Case("values.elementwise", op.name, dtype.name, WHOLE, pools.EXHAUSTIVE, detail)


def level(case: Case) -> int:
    """1 for required ops on ordinary values, else 2."""
    op = OPS.get(case.op)
    required = op is not None and op.body is None and op.method
    return 1 if required and (case.values in pools.ORDINARY or case.dtype == "bool") else 2


# ---- pools and what is expected ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pool:
    """Rows of operands with what is expected of them; the first row has zeros alone, as the borders of padding.

    Attributes:
        op: what they are for.
        dtype: of the data.
        columns: the operands.
        expected: the correctly rounded results.
    """

    op: Op
    dtype: DType
    columns: tuple[Array, ...]
    expected: Array

    @property
    def count(self) -> int:
        """How many rows there are beside the first."""
        return len(self.expected) - 1


def pool(op: Op, dtype: DType, values: str, seed: int, count: int) -> Pool:
    """The pool of an op for a value class."""
    return _pool(op.name, dtype.name, values, 0 if values == pools.EXHAUSTIVE else seed, count)


@cache
def _pool(name: str, dtype_name: str, values: str, seed: int, count: int) -> Pool:
    op, dtype = OPS[name], DTYPES[dtype_name]
    rows = pools.rows(op, dtype, values, seed, count)
    columns = tuple([np.concatenate([np.zeros(1, column.dtype), column]) for column in rows])
    return Pool(op, dtype, columns, oracle.expected(op, dtype, columns))


@cache
def _crossed(name: str, dtype: str, values: str, seed: int, count: int, held: tuple[bool, ...]) -> Pool:
    """Rows for an operand that is expanded beside others that are not: those `held` are the same in each column."""
    base = _pool(name, dtype, values, seed, count)
    shape = SHAPES["expanded"].shape
    size = math.prod(shape)
    many = 1 + np.arange(size) % base.count
    few = np.tile(1 + np.arange(size, size + shape[1]) % base.count, shape[0])
    columns = tuple([column[few if h else many] for column, h in zip(base.columns, held, strict=True)])
    return Pool(base.op, base.dtype, columns, oracle.expected(base.op, base.dtype, columns))


def order(subject: Subject, case: Case, size: int, count: int) -> Array:
    """Which of `count` rows, numbered from 1, the elements of a cell are: all in a drawn order, again and again."""
    drawn = zlib.crc32(f"{subject.seed} {case.id}".encode())
    start, step = drawn % count, 1 + (drawn >> 8) % count
    while math.gcd(step, count) != 1:
        step += 1
    places: Array = 1 + (start + step * np.arange(size)) % count
    return places


def alternatives(p: Pool, columns: tuple[Array, ...], expected: Array, flushes: bool) -> Iterator[Array]:
    """What else is right.

    Of two zeros of different sign the array API leaves open which is the larger.  On a device that flushes subnormal
    numbers, operands and results that are subnormal may be zeros of their sign.
    """
    zeros = expected == 0 if p.dtype.kind == "float" and p.op.either_zero else None
    if zeros is not None:
        signs = [np.signbit(column) for column in columns]
        other = signs[0] != (signs[1] if len(signs) > 1 else False)
        yield np.where(zeros & other & np.all([c == 0 for c in columns], 0), -expected, expected)
    if not flushes or p.op.name in ON_BITS:
        return
    flushed = [flushed_to_zero(column, p.dtype) for column in columns]
    for chosen in itertools.product((False, True), repeat=len(columns)):
        rows = tuple([f if c else x for f, c, x in zip(flushed, chosen, columns, strict=True)])
        found = expected
        if any(chosen):
            found = oracle.expected(p.op, p.dtype, tuple([np.ravel(row) for row in rows])).reshape(
                expected.shape
            )
        yield found
        if found.dtype.kind == "f":
            yield flushed_to_zero(found, p.dtype)


def flushed_to_zero(values: Array, dtype: DType) -> Array:
    """Values with zeros in place of subnormal numbers.

    >>> from tensorken_core.language.dtypes import float32
    >>> flushed_to_zero(np.float32([-1e-40, 1e-30]), float32).tolist()
    [-0.0, 1.0000000031710769e-30]
    """
    if values.dtype.kind != "f":
        return values
    return np.where(
        np.abs(values) < FORMATS[dtype.name].tiny, np.copysign(np.zeros_like(values), values), values
    )


# ---- the law -----------------------------------------------------------------------------------------------------


@law("values.elementwise", cases, level=level, needs=lambda case: need(case.shape))
def elementwise(subject: Subject, case: Case) -> Measured:
    """Every elementwise op gives the correctly rounded result, off by no more than is declared and its level allows.

    What is exact is exact: ints, comparisons, signs of zeros, NaN where IEEE 754 and C's annex F have one.  Each cell
    is an op on a dtype, a shape and a class of values; of several operands each in turn is made by the movement of the
    shape class, then all are.
    """
    op, dtype = OPS[case.op], DTYPES[case.dtype]
    count = ROWS[subject.depth]
    try:
        p = pool(op, dtype, case.values, subject.seed, count)
    except LookupError as error:
        raise Unsupported(str(error)) from None
    bound = allowed(subject, op, dtype, level(case))
    shape = SHAPES[case.shape].shape if case.shape in SHAPES else (p.count,)
    size = math.prod(shape)
    places = (
        np.arange(1, size + 1) if case.shape == WHOLE else order(subject, case, size, p.count).reshape(shape)
    )
    places = fitted(case.shape, places) if case.shape in SHAPES else places
    worst = Measured(0.0)
    for moved in arrangements(op, case.shape):
        if case.shape == "expanded" and not all(moved):
            crossed = _crossed(op.name, dtype.name, case.values, subject.seed, count, moved)
            columns = tuple([column.reshape(shape) for column in crossed.columns])
            expected = crossed.expected.reshape(shape)
        else:
            columns, expected = tuple([np.take(c, places) for c in p.columns]), np.take(p.expected, places)
        found = _compare(subject, case, p, columns, expected, moved, bound)
        if (found.ulp or 0.0) > (worst.ulp or 0.0):
            worst = found
    return worst


def arrangements(op: Op, shape: str) -> Sequence[tuple[bool, ...]]:
    """Which operands are made by the movement of a shape class: each alone, and all."""
    arity = op.arity or 1
    every = (True,) * arity
    if arity == 1 or shape not in SHAPES or not SHAPES[shape].movement:
        return (every,)
    return [*[tuple([i == j for i in range(arity)]) for j in range(arity)], every]


def allowed(subject: Subject, op: Op, dtype: DType, level: int) -> int:
    """By how many representable numbers a result may be off."""
    if dtype.kind != "float" or op.name in EXACT:
        return 0
    return limits.allowed(subject.capabilities, op.name, dtype.name, level)


def off_by(p: Pool, got: Array, expected: Array, columns: tuple[Array, ...]) -> Array:
    """How far results are off.

    The bits of a NaN are any of its sign.  logaddexp is a sum, of the larger operand and a logarithm, so where that
    cancels, its error is counted beside its operands: a change of theirs by a unit changes it by as much.
    """
    if p.op.name == "logaddexp":
        return ulp.distance_beside(got, expected, columns)
    found = ulp.distance(got, expected)
    if p.op.name == "to_bits" and found.any():
        top = 8 * p.dtype.itemsize - 1
        bits = np.where(np.isnan(columns[0]), got, 0)
        infinity = int(np.array(np.inf, p.dtype.name).view(f"i{p.dtype.itemsize}"))
        magnitude = bits & ((1 << top) - 1) if top > 15 else bits & 0x7FFF
        right = np.isnan(columns[0]) & (magnitude > infinity) & ((got < 0) == (expected < 0))
        found = np.where(right, 0, found)
    return found


def _compare(
    subject: Subject,
    case: Case,
    p: Pool,
    columns: tuple[Array, ...],
    expected: Array,
    moved: tuple[bool, ...],
    bound: int,
) -> Measured:
    operands = [
        operand(subject, case.shape if m else "", column, dtype)
        for m, column, dtype in zip(moved, columns, kinds_of(p.op, p.op.arity or 1, p.dtype), strict=True)
    ]
    got = subject.read(subject.run(p.op, operands))
    off = distances(subject, p, got, expected, columns, bound)
    if not off.size:
        return Measured(0.0)
    place = int(np.argmax(off))
    error = int(off.flat[place])
    if not error:
        return Measured(0.0)
    point = [np.ravel(column)[place] for column in columns]
    text = ", ".join(map(shown, point))
    if error > bound:
        raise _failure(subject, p, point, np.ravel(expected)[place], np.ravel(got)[place], error, bound)
    return Measured(float(error), f"{p.op.name}({text})")


def distances(
    subject: Subject, p: Pool, got: Array, expected: Array, columns: tuple[Array, ...], bound: int
) -> Array:
    """How far results are off; where that is too far, from the nearest of what else is right."""
    off = off_by(p, got, expected, columns)
    if not off.any():
        return off
    if bound:
        off = _without_excuse(p, got, expected, columns, bound, off)
    if off.max() > bound:
        flushes = p.dtype.name in subject.capabilities.flushes_subnormals
        for other in alternatives(p, columns, expected, flushes):
            off = np.where(off > bound, np.minimum(off, off_by(p, got, other, columns)), off)
    return off


def _without_excuse(
    p: Pool, got: Array, expected: Array, columns: tuple[Array, ...], bound: int, off: Array
) -> Array:
    """An error is as large as can be where the result is a fact, and where a clear overflow is not infinite."""
    off = np.where(oracle.settled(p.op, p.dtype, columns) & (off > 0), ulp.FAR, off)
    for place in np.flatnonzero(np.isinf(expected) & (off > 0) & (off <= bound)):
        point = tuple([float(np.ravel(column)[place]) for column in columns])
        if oracle.overflows(p.op, p.dtype, point, bound):
            off.flat[place] = ulp.FAR
    return off


def _failure(
    subject: Subject,
    p: Pool,
    point: Sequence[Any],
    expected: Any,
    got: Any,
    error: int,
    bound: int,
) -> Failure:
    text = ", ".join(map(shown, point))
    far = "" if error >= ulp.FAR or p.dtype.kind != "float" else f", {error} representable numbers off"
    most = f"; at most {bound} are allowed" if far and bound else ""
    script = None
    if _fails_alone(subject, p, point, expected, bound):
        dtypes = kinds_of(p.op, p.op.arity or 1, p.dtype)
        made = [
            f'tk.tensor([{shown(v)}], "{dtype}", backend={subject.name!r})'
            for v, dtype in zip(point, dtypes, strict=True)
        ]
        names = ("x",) if len(made) == 1 else ("a", "b", "c")[: len(made)]
        script = [
            "import tensorken as tk; from math import inf, nan",
            "from tensorken_core.language.op import OPS; from tensorken_core.tensor.dispatch import apply",
            *[f"{name} = {value}" for name, value in zip(names, made, strict=True)],
            f'print(apply(OPS["{p.op.name}"], [{", ".join(names)}]))  # {shown(expected)}',
        ]
    return Failure(
        f"{p.op.name}({text}): expected {shown(expected)}, got {shown(got)}{far}{most}",
        ulp=None if error >= ulp.FAR else float(error),
        worst=f"{p.op.name}({text})",
        script=script,
    )


def _fails_alone(subject: Subject, p: Pool, point: Sequence[Any], expected: Any, bound: int) -> bool:
    columns = tuple([np.array([value]) for value in point])
    tensors: list[Tensor] = [
        subject.tensor(column, dtype)
        for column, dtype in zip(columns, kinds_of(p.op, p.op.arity or 1, p.dtype), strict=True)
    ]
    got = subject.read(subject.run(p.op, tensors))
    off = distances(subject, p, got, np.array([expected], got.dtype), columns, bound)
    return bool(off.max() > bound)


def shown(value: Any) -> str:
    """A number as Python writes it, exactly.

    >>> shown(np.float32(0.1)), shown(np.float16("-nan")), shown(np.bool_(True))
    ('0.10000000149011612', '-nan', 'True')
    """
    value = value.item()
    return "-nan" if value != value and math.copysign(1.0, value) < 0.0 else repr(value)
