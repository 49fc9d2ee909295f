"""values.elementwise: elementwise ops on every shape and every class of numbers, against exact results."""

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
from tensorken_conformance.layouts.shapes import SHAPES, fitted, need, operand
from tensorken_conformance.numbers.host_arrays import is_float
from tensorken_conformance.numbers.rounding import FORMATS
from tensorken_conformance.operands import pools
from tensorken_conformance.operands.samples import kinds_of
from tensorken_conformance.oracles import elementwise as oracle, ulp
from tensorken_conformance.subject import Array, Depth, Subject
from tensorken_core.errors import DTypeError
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import OPS, Op

ROWS: dict[Depth, int] = {"smoke": 96, "default": 192, "deep": 3072}
"""The most rows of a pool; fewer than the elements of the largest shape, so that a cell of that shape has all."""

WHOLE = "pool"
"""The shape that has all rows of a pool."""

FEW = ("scalar", "small", "65", "256", "257", "flipped", "padded", WHOLE)
"""The shapes that a default run has with all classes of values; others have one, as do those of `values.covering`."""

BY_MEANING = "by-meaning"
"""The detail of cases on ops whose only oracle is their scalar function in double."""

EXACT = frozenset(
    ("neg", "abs", "sign", "maximum", "minimum", "relu", "floor", "round", "trunc", "ceil", "remainder")
    + ("signbit", "copysign", "nextafter", "where", "eq", "lt", "to_bits", "from_bits")
)
"""Ops without error in floats; the remainder is rounded once, and every step towards it can be exact."""

ON_BITS = frozenset(("signbit", "copysign", "nextafter", "where", "to_bits", "from_bits"))
"""Ops that do not flush subnormal numbers even on a device that does: they do not compute with them."""


def takes(subject: Subject, op: Op, dtype: DType) -> bool:
    """Whether the op is defined on a dtype, with a result that the backend has a dtype for."""
    dtypes = kinds_of(op, op.arity or 1, dtype)
    try:
        result: DType = op.result_dtype(dtypes, ())
    except DTypeError:
        return False
    return all(d.name in subject.capabilities.dtypes for d in (result, *dtypes))


def cases(subject: Subject) -> Iterator[Case]:
    """Each op, dtype, shape and value class; smoke: one of each op, for integers with all rows."""
    for op in OPS.values():
        if not op.elementwise or op.params:
            continue
        detail = "" if oracle.known(op) else BY_MEANING
        dtypes = [dtype for dtype in subject.dtypes() if takes(subject, op, dtype)]
        if subject.depth == "smoke":
            for dtype in sorted(dtypes, key=lambda dtype: dtype.name != "float32")[:1]:
                shape = WHOLE if dtype.kind == "int" else "small"  # few rows have a divisor of -1
                yield Case("values.elementwise", op.name, dtype.name, shape, "mixed", detail)
            continue
        for dtype in dtypes:
            for shape, values in itertools.product([*SHAPES, WHOLE], pools.classes(dtype)):
                if subject.depth == "default" and shape not in FEW and values != "mixed":
                    continue
                yield Case("values.elementwise", op.name, dtype.name, shape, values, detail)
            if dtype.name in limits.NARROW and op.arity == 1:
                yield Case("values.elementwise", op.name, dtype.name, WHOLE, pools.EXHAUSTIVE, detail)


def level(case: Case) -> int:
    """1 for required ops on ordinary values, else 2."""
    op = OPS.get(case.op)
    required = op is not None and op.body is None and op.method
    return 1 if required and (case.values in pools.ORDINARY or case.dtype == "bool") else 2


@dataclass(frozen=True, slots=True)
class Pool:
    """Rows of operands with their expected results; the first row is zeros, as the borders of padding.

    Attributes:
        op: the op.
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
        """The number of rows after the first."""
        return len(self.expected) - 1

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The dtypes of the operands."""
        return kinds_of(self.op, len(self.columns), self.dtype)


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
    """Rows where some operands are expanded and others not: those `held` are the same in each column."""
    base = _pool(name, dtype, values, seed, count)
    shape = SHAPES["expanded"].shape
    size = math.prod(shape)
    many = 1 + np.arange(size) % base.count
    few = np.tile(1 + np.arange(size, size + shape[1]) % base.count, shape[0])
    columns = tuple([column[few if h else many] for column, h in zip(base.columns, held, strict=True)])
    return Pool(base.op, base.dtype, columns, oracle.expected(base.op, base.dtype, columns))


def places(subject: Subject, case: Case, count: int) -> Array:
    """The row of a pool, from 1 to `count`, for each element of a cell: all rows in random order, repeatedly."""
    if case.shape == WHOLE:
        return np.arange(1, count + 1)
    drawn = zlib.crc32(f"{subject.seed} {case.id}".encode())
    start, step = drawn % count, 1 + (drawn >> 8) % count
    while math.gcd(step, count) != 1:
        step += 1
    shape = SHAPES[case.shape].shape
    found = 1 + (start + step * np.arange(math.prod(shape))) % count
    return fitted(case.shape, found.reshape(shape))


def alternatives(
    p: Pool, columns: tuple[Array, ...], expected: Array, flushes: bool, bound: int
) -> Iterator[Array]:
    """Other correct results.

    The array API leaves open which of two zeros of different sign is the larger.  On a device that flushes subnormal
    numbers, subnormal operands and results may be zeros of their sign; so may results that are subnormal before they
    are rounded, or may be by their error of `bound` representable numbers.
    """
    if p.dtype.kind == "float" and p.op.either_zero:
        signs = [np.signbit(column) for column in columns]
        other = signs[0] != (signs[1] if len(signs) > 1 else False)
        yield np.where(other & np.all([c == 0 for c in (expected, *columns)], 0), -expected, expected)
    if not flushes or p.op.name in ON_BITS:
        return
    flushed = [flushed_to_zero(column, p.dtype) for column in columns]
    for chosen in itertools.product((False, True), repeat=len(columns)):
        rows = tuple([f if c else x for f, c, x in zip(flushed, chosen, columns, strict=True)])
        flat = tuple([np.ravel(row) for row in rows])
        found = oracle.expected(p.op, p.dtype, flat).reshape(expected.shape) if any(chosen) else expected
        yield found
        if is_float(found):
            yield flushed_to_zero(found, p.dtype, bound or int(p.op.name not in EXACT))


def flushed_to_zero(values: Array, dtype: DType, beyond: int = 0) -> Array:
    """Values with zeros in place of subnormal numbers, and of so many normal numbers next to these.

    >>> from tensorken_core.language.dtypes import float32
    >>> flushed_to_zero(np.float32([-1e-40, 1e-30]), float32).tolist()
    [-0.0, 1.0000000031710769e-30]
    """
    if not is_float(values):
        return values
    form = FORMATS[dtype.name]
    end = form.tiny + beyond * form.smallest
    return np.where(np.abs(values) < end, np.copysign(np.zeros_like(values), values), values)


@law("values.elementwise", cases, level=level, needs=lambda case: need(case.shape))
def elementwise(subject: Subject, case: Case) -> Measured:
    """Every elementwise op is correctly rounded, but for the error that is declared and that its level allows.

    Ints, comparisons, signs of zeros, and NaN where IEEE 754 and C's annex F have one, are exact.  Each cell is an op
    on a dtype, a shape and a class of values; of several operands each in turn is made by the movement of the shape
    class, then all are.
    """
    op, dtype = OPS[case.op], DTYPES[case.dtype]
    count = ROWS[subject.depth]
    try:
        p = pool(op, dtype, case.values, subject.seed, count)
    except LookupError as error:
        raise Unsupported(str(error)) from None
    bound = allowed(subject, op, dtype, level(case))
    rows = places(subject, case, p.count)
    worst = Measured(0.0)
    for moved in arrangements(op, case.shape):
        if case.shape == "expanded" and not all(moved):
            crossed = _crossed(op.name, dtype.name, case.values, subject.seed, count, moved)
            columns = tuple([column.reshape(rows.shape) for column in crossed.columns])
            expected = crossed.expected.reshape(rows.shape)
        else:
            columns, expected = tuple([np.take(c, rows) for c in p.columns]), np.take(p.expected, rows)
        found = _compare(subject, case, p, columns, expected, moved, bound)
        if (found.ulp or 0.0) > (worst.ulp or 0.0):
            worst = found
    return worst


def arrangements(op: Op, shape: str) -> Sequence[tuple[bool, ...]]:
    """The sets of operands that are made by the movement of a shape class: each alone, and all."""
    arity = op.arity or 1
    every = (True,) * arity
    if arity == 1 or shape not in SHAPES or not SHAPES[shape].movement:
        return (every,)
    return [*[tuple([i == j for i in range(arity)]) for j in range(arity)], every]


def allowed(subject: Subject, op: Op, dtype: DType, level: int) -> int:
    """The error that is allowed, in representable numbers."""
    if dtype.kind != "float" or op.name in EXACT:
        return 0
    return limits.allowed(subject.capabilities, op.name, dtype.name, level)


def off_by(p: Pool, got: Array, expected: Array, columns: tuple[Array, ...]) -> Array:
    """The errors of results, in representable numbers.

    A NaN may have any bits with its sign.  logaddexp is the sum of the larger operand and a logarithm, so where they
    cancel, its error is relative to its operands: a change of an operand by a unit changes it by as much.
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
        for m, column, dtype in zip(moved, columns, p.dtypes, strict=True)
    ]
    return judged(subject, p, columns, expected, subject.read(subject.run(p.op, operands)), bound)


def judged(
    subject: Subject,
    p: Pool,
    columns: tuple[Array, ...],
    expected: Array,
    got: Array,
    bound: int,
    beside: str = "",
) -> Measured:
    """The largest error of results.

    Args:
        subject: the backend under test.
        p: the op and dtype.
        columns: the operands.
        expected: the correctly rounded results.
        got: the actual results.
        bound: the allowed error, in representable numbers.
        beside: the circumstances, for the message.

    Raises:
        Failure: if an error is larger than the bound.
    """
    off = distances(subject, p, got, expected, columns, bound)
    index = int(np.argmax(off)) if off.size else 0
    error = int(off.flat[index]) if off.size else 0
    if not error:
        return Measured(0.0)
    point = [np.ravel(column)[index] for column in columns]
    text = ", ".join(map(shown, point))
    if error > bound:
        failure = _failure(subject, p, point, np.ravel(expected)[index], np.ravel(got)[index], error, bound)
        failure.says += beside + subnormal_hint(subject, off > bound, (*columns, expected))
        raise failure
    return Measured(float(error), f"{p.op.name}({text})")


def distances(
    subject: Subject, p: Pool, got: Array, expected: Array, columns: tuple[Array, ...], bound: int
) -> Array:
    """The errors of results; where an error is too large, the distance from the nearest other correct result."""
    off = off_by(p, got, expected, columns)
    if not off.any():
        return off
    if bound:
        off = _without_excuse(p, got, expected, columns, bound, off)
    if off.max() > bound:
        flushes = p.dtype.name in subject.capabilities.flushes_subnormals
        for other in alternatives(p, columns, expected, flushes, bound):
            off = np.where(off > bound, np.minimum(off, off_by(p, got, other, columns)), off)
    return off


def _without_excuse(
    p: Pool, got: Array, expected: Array, columns: tuple[Array, ...], bound: int, off: Array
) -> Array:
    """The errors, with FAR where the result must be exact, or should have overflowed to infinity."""
    off = np.where(oracle.settled(p.op, p.dtype, columns) & (off > 0), ulp.FAR, off)
    for index in np.flatnonzero(np.isinf(expected) & (off > 0) & (off <= bound)):
        point = tuple([float(np.ravel(column)[index]) for column in columns])
        if oracle.overflows(p.op, p.dtype, point, bound):
            off.flat[index] = ulp.FAR
    return off


def _failure(
    subject: Subject, p: Pool, point: Sequence[Any], expected: Any, got: Any, error: int, bound: int
) -> Failure:
    text = ", ".join(map(shown, point))
    far = "" if error >= ulp.FAR or p.dtype.kind != "float" else f", {error} representable numbers off"
    most = f"; at most {bound} are allowed" if far and bound else ""
    script = None
    if _fails_alone(subject, p, point, expected, bound):
        made = [
            f'tk.tensor([{shown(v)}], "{dtype}", backend={subject.name!r})'
            for v, dtype in zip(point, p.dtypes, strict=True)
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


def subnormal_hint(subject: Subject, wrong: Array, arrays: Sequence[Array]) -> str:
    """A hint if every wrong result is subnormal or has a subnormal operand, which the backend may flush.

    Args:
        subject: the backend under test.
        wrong: where results are wrong.
        arrays: the operands and the correct results.
    """
    floats = [x for x in arrays if x.dtype.name in FORMATS]
    subnormal = np.zeros(wrong.shape, bool)
    for x in floats:
        subnormal |= (x != 0) & (np.abs(x) < FORMATS[x.dtype.name].tiny)
    names = dict.fromkeys(x.dtype.name for x in floats)
    missing = [name for name in names if name not in subject.capabilities.flushes_subnormals]
    if not missing or not subnormal[wrong].all():
        return ""
    return (
        f"; all wrong results ({int(wrong.sum())}) are subnormal or of subnormal numbers: "
        f"a device that flushes these to zero declares flushes_subnormals=({', '.join(map(repr, missing))},)"
    )


def _fails_alone(subject: Subject, p: Pool, point: Sequence[Any], expected: Any, bound: int) -> bool:
    columns = tuple([np.array([value]) for value in point])
    given = zip(columns, p.dtypes, strict=True)
    # not on the call counter, so that the last value read there is the one that is wrong
    tensors = [subject.tensor(column, dtype, subject.backend) for column, dtype in given]
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
