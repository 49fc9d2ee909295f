"""values.contractions: sums of products are within the rounding bound, in every pattern of axes, also as matmul and as
convolution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Failure, Measured, Unsupported
from tensorken_conformance.law import law
from tensorken_conformance.laws.sums import added_over
from tensorken_conformance.layouts import shapes
from tensorken_conformance.limits import NARROW
from tensorken_conformance.numbers.host_arrays import is_float
from tensorken_conformance.numbers.rounding import FORMATS
from tensorken_conformance.operands import reductions
from tensorken_conformance.oracles import exact, rounded, terms
from tensorken_conformance.oracles.bounds import Arithmetic, Array, Dyadic
from tensorken_conformance.oracles.windows import kernels_of, windows_of
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import OPS

ID = "values.contractions"

RAW = "fused_multiply_add"

CONVOLUTION = "convolution"

RUN_AS_OPS = (RAW, CONVOLUTION)
"""The patterns of ops, which run directly; the others are of functions, also `matmul`, which is both."""

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """Two shapes, and the contracted axes for the raw op and tensordot.

    Attributes:
        a: the shape of the first operand.
        b: the shape of the second.
        axes: the contracted axes; the params of a convolution.
        factored: whether one operand alone has a contracted axis, which may be summed before the products; or zeros are
            among the operands, which need not be multiplied.
    """

    a: Shape
    b: Shape
    axes: Any = ()
    factored: bool = False


def _square(m: int, k: int, n: int) -> Pattern:
    return Pattern((m, k, 1), (1, k, n), (1,))


def _images(
    a: Shape,
    b: Shape,
    strides: Shape,
    padding: Any = ((0, 0), (0, 0)),
    dilations: tuple[Shape, Shape] = ((1, 1), (1, 1)),
    groups: int = 1,
) -> Pattern:
    return Pattern(a, b, (strides, padding, *dilations, groups), factored=True)


PATTERNS: dict[str, dict[str, Pattern]] = {
    RAW: {
        "matrices": _square(5, 7, 3),
        "wide-inner": _square(2, 257, 3),
        "square": _square(4, 4, 4),
        "square-last": Pattern((4, 1, 4), (1, 4, 4), (2,)),
        "square-first": Pattern((4, 4, 1), (4, 1, 4), (0,)),
        "square-swapped": Pattern((1, 4, 4), (4, 4, 1), (1,)),
        "square-batch": Pattern((3, 3, 3, 1), (3, 1, 3, 3), (2,)),
        "swapped": Pattern((1, 7, 3), (5, 7, 1), (1,)),
        "inner-last": Pattern((4, 1, 6), (1, 5, 6), (2,)),
        "inner-first": Pattern((6, 4, 1), (6, 1, 5), (0,)),
        "matrix-vector": Pattern((5, 7), (1, 7), (1,)),
        "vector-matrix": Pattern((7, 1), (7, 5), (0,)),
        "batched": Pattern((2, 4, 6, 1), (2, 1, 6, 3), (2,)),
        "batch-last": Pattern((4, 6, 1, 2), (1, 6, 3, 2), (1,)),
        "batch-between": Pattern((4, 2, 1, 6), (1, 2, 3, 6), (3,)),
        "two-batches": Pattern((2, 4, 3, 5, 1), (2, 1, 3, 5, 2), (3,)),
        "batch-of-dots": Pattern((4, 65), (4, 65), (1,)),
        "several": Pattern((2, 3, 4), (2, 3, 4), (0, 2)),
        "several-apart": Pattern((3, 4, 2, 1, 5), (3, 1, 2, 6, 5), (0, 2, 4)),
        "all": Pattern((3, 4, 5), (3, 4, 5), (0, 1, 2)),
        "interleaved": Pattern((2, 1, 3, 1), (1, 4, 3, 5), (2,)),
        "dot": Pattern((7,), (7,), (0,)),
        **{f"dot-{n}": Pattern((n,), (n,), (0,)) for n in (1, 63, 64, 65, 255, 256, 257, 1031)},
        "outer": Pattern((4, 1), (1, 3)),
        "elementwise": Pattern((3, 4), (3, 4)),
        "repeated": Pattern((3, 1), (3, 4)),
        "scalar": Pattern((), ()),
        "only-first": Pattern((3, 5), (3, 1), (1,), factored=True),
        "only-second": Pattern((1, 5), (4, 5), (0,), factored=True),
        "each-alone": Pattern((3, 1, 4), (1, 5, 4), (0, 1), factored=True),
        "alone-and-shared": Pattern((6, 3, 2), (1, 3, 2), (0, 1), factored=True),
        "ones": Pattern((1, 3, 1), (1, 3, 4), (0, 1)),
        "zero-inner": Pattern((3, 0, 1), (1, 0, 2), (1,)),
        "zero-outer": Pattern((0, 4, 1), (1, 4, 2), (1,)),
        "zero-alone": Pattern((3, 0), (3, 1), (1,), factored=True),
        "tall": _square(65, 33, 1),
        "wide": _square(1, 33, 65),
        "thresholds": _square(17, 65, 16),
    },
    "matmul": {
        "matrices": Pattern((5, 7), (7, 3)),
        "square": Pattern((4, 4), (4, 4)),
        "wide-inner": Pattern((2, 257), (257, 3)),
        "matrix-vector": Pattern((5, 7), (7,)),
        "vector-matrix": Pattern((7,), (7, 5)),
        "vectors": Pattern((65,), (65,)),
        "batched": Pattern((3, 2, 4), (3, 4, 2)),
        "batch-broadcast": Pattern((2, 1, 3, 4), (3, 4, 2)),
        "shared": Pattern((4, 2, 3), (3, 5)),
        "batch-vector": Pattern((2, 3, 4), (4,)),
        "row-column": Pattern((1, 7), (7, 1)),
        "column-row": Pattern((7, 1), (1, 7)),
        "zero-inner": Pattern((3, 0), (0, 2)),
        "zero-outer": Pattern((0, 4), (4, 2)),
        "thresholds": Pattern((17, 64), (64, 17)),
    },
    "dot": {
        "vectors": Pattern((257,), (257,)),
        "matrices": Pattern((5, 7), (7, 3)),
        "stacks": Pattern((2, 3, 4), (5, 4, 2)),
    },
    "tensordot": {
        "last-first": Pattern((2, 3, 4), (3, 4, 5), 2),
        "one": Pattern((5, 7), (7, 3), 1),
        "none": Pattern((2, 3), (4,), 0),
        "pairs": Pattern((2, 3, 4), (4, 3, 5), ((1, 2), (1, 0))),
        "first": Pattern((6, 2), (6, 3), (0, 0)),
    },
    CONVOLUTION: {
        "windows": _images((2, 2, 4, 5), (3, 2, 2, 3), (1, 1)),
        "strides": _images((1, 2, 7, 6), (2, 2, 3, 2), (2, 3), ((1, 0), (2, 1))),
        "kernel-dilation": _images((1, 1, 6, 7), (2, 1, 2, 3), (1, 2), ((0, 1), (1, 1)), ((1, 1), (3, 2))),
        "few-outputs": _images((2, 8, 4, 3), (1, 8, 2, 2), (1, 1), ((1, 1), (0, -1)), ((1, 1), (2, 1))),
        "transposed": _images((2, 5, 3, 4), (2, 5, 3, 2), (1, 1), ((2, 2), (1, 0)), ((2, 3), (1, 1))),
        "both-steps": _images((1, 3, 4, 4), (1, 3, 2, 2), (2, 3), ((1, 1), (0, 2)), ((3, 2), (2, 1))),
        "large-kernel": _images((3, 4, 6, 5), (5, 4, 5, 4), (1, 1)),
        "large-kernel-steps": _images((2, 3, 9, 9), (2, 3, 4, 5), (2, 3), dilations=((1, 1), (2, 1))),
        "groups": _images((2, 6, 4, 3), (4, 3, 2, 2), (1, 1), ((1, 0), (0, 0)), groups=2),
        "groups-few-outputs": _images((1, 8, 5, 5), (2, 4, 3, 3), (1, 1), ((1, 1), (1, 1)), groups=2),
        "groups-large-kernel": _images((2, 6, 5, 4), (9, 2, 4, 4), (1, 1), groups=3),
        "depthwise": _images((2, 5, 4, 4), (5, 1, 3, 3), (1, 1), ((1, 1), (1, 1)), groups=5),
        "flat": Pattern((3, 4), (6, 2), ((), (), (), (), 2), factored=True),
        "signal": Pattern((2, 3, 8), (2, 3, 3), ((2,), ((-1, 2),), (1,), (2,), 1), factored=True),
        "volume": Pattern(
            (1, 2, 3, 4, 3),
            (3, 2, 2, 1, 3),
            ((1, 2, 1), ((0, 0), (1, 0), (1, 1)), (1, 1, 2), (1, 1, 1), 1),
            factored=True,
        ),
        "only-padding": _images((1, 2, 2, 2), (2, 2, 1, 2), (1, 1), ((4, -3), (0, 0))),
        "no-images": _images((0, 2, 4, 4), (3, 2, 2, 2), (1, 1)),
        "thresholds": _images((2, 5, 17, 17), (8, 5, 3, 3), (1, 1), ((1, 1), (1, 1))),
        "wide-inner": _images((1, 65, 5, 4), (2, 65, 2, 2), (1, 1)),
    },
}
"""The patterns of each op; the operands of the raw op have equal axes, or axes of size 1 that repeat."""

MODELS = {
    RAW: ("matrices", "batched", "several", "dot-257", "only-first", "inner-last"),
    "matmul": ("matrices", "batched", "shared"),
    "dot": ("matrices",),
    "tensordot": ("pairs",),
    CONVOLUTION: ("windows", "transposed", "large-kernel"),
}
"""The patterns that are tried on views and on all value classes."""

VIEWED = ("permuted", "flipped", "cropped", "expanded")
"""The shape classes whose movements are tried."""

VIEWS = (
    *[f"{view}-{view}" for view in VIEWED],
    *[f"{view}-plain" for view in VIEWED],
    *[f"plain-{view}" for view in VIEWED],
)
"""The movements that make the two operands."""

ORDINARY = ("normals", "small-integers")
UNUSUAL = (
    *("positive", "cancellation", "mixed", "ties", "subnormals"),
    *("tiny", "tiny-of-one-sign", "extremes", "large"),
)
"""Products of `tiny` numbers are subnormal; those of `large` ones overflow, though their sums need not."""
SPECIAL = ("zeros", "infinite", "infinities", "nan", "undefined")

SECOND: dict[str, list[float]] = {
    "ties": [1.0, -1.0],
    "undefined": [np.inf, -np.inf, 1.0],
    "subnormals": [1.0, -1.0, 2.0, 3.0],
    "extremes": [1.0, -1.0, 0.5],
}
"""The elements of the second operand, by value class."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each op, dtype and pattern on ordinary values; views and all value classes on some patterns."""
    for op, patterns in PATTERNS.items():
        for dtype in reductions.dtypes_of(subject, ("int", "float")):
            for name, pattern in patterns.items():
                for values, view in _kinds(subject, op, dtype.name, name, pattern):
                    possible = all(exact.makes(subject, one, dtype) for one in view.split("-"))
                    long = max(pattern.a + (1,)) > longest(dtype, values)
                    if possible and not long:
                        yield Case(ID, op, dtype.name, name, values, "" if view == "plain-plain" else view)


def longest(dtype: DType, values: str) -> int:
    """The largest size for which the bound applies; small integers of float16 need no rounding."""
    exact = values == "small-integers" and dtype.name == "float16"
    return FORMATS[dtype.name].terms if dtype.name in NARROW and not exact else 10**9


def _kinds(subject: Subject, op: str, dtype: str, name: str, pattern: Pattern) -> Iterator[tuple[str, str]]:
    """The value classes and views for a pattern."""
    model, plain, ints = name in MODELS[op], "plain-plain", dtype.startswith("int")
    if subject.depth == "smoke":
        if name == MODELS[op][0]:
            yield "normals" if not ints else "small-integers", plain
        return
    if ints:
        yield from [(values, plain) for values in terms.INTS]
    else:
        yield from [(values, plain) for values in (*ORDINARY, *(UNUSUAL if model else ("positive",)))]
        if model and not pattern.factored:
            yield from [(values, plain) for values in SPECIAL]
    if model:
        yield from [("small-integers" if ints else "normals", view) for view in VIEWS]


@dataclass(frozen=True, slots=True)
class Problem:
    """The operands of a case, and the exact sums of products."""

    a: Array
    b: Array
    sums: terms.Sums


def _matrices(a: Array, b: Array, axes: Any) -> tuple[Array, Array, int, Shape]:
    """The operands of matmul, reshaped to broadcast; the axis of the sum; the shape of the result."""
    x = a[None, :] if a.ndim == 1 else a
    y = b[:, None] if b.ndim == 1 else b
    rows, columns = x.shape[-2:-1][a.ndim == 1 :], y.shape[-1:][b.ndim == 1 :]
    shape = (*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), *rows, *columns)
    return x[..., :, :, None], y[..., None, :, :], -2, shape


def _paired(a: Array, b: Array, axes: Any) -> tuple[Array, Array, int, Shape]:
    """The same for tensordot."""
    if isinstance(axes, int):
        pairs = tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes))
    else:
        pairs = _tuple(axes[0]), _tuple(axes[1])
    free = [[i for i in range(x.ndim) if i not in taken] for x, taken in zip((a, b), pairs, strict=True)]
    shape = (*[a.shape[i] for i in free[0]], *[b.shape[i] for i in free[1]])
    inner = int(np.prod([a.shape[i] for i in pairs[0]], dtype=int))
    x = a.transpose([*free[0], *pairs[0]]).reshape(-1, inner)
    y = b.transpose([*pairs[1], *free[1]]).reshape(inner, -1)
    return x[:, :, None], y[None], 1, shape


def _tuple(axes: Any) -> Shape:
    return (axes,) if isinstance(axes, int) else tuple(axes)


def _dotted(a: Array, b: Array, axes: Any) -> tuple[Array, Array, int, Shape]:
    """The same for dot."""
    return _paired(a, b, ((a.ndim - 1,), (max(b.ndim - 2, 0),)))


def _of_windows(a: Array, b: Array, params: Any) -> tuple[Array, Array, int, Shape]:
    """The same for a convolution."""
    shape = OPS[CONVOLUTION].shape(a.shape, b.shape, *params)
    return windows_of(a, b.shape, *params), kernels_of(b, params[-1]), -1, shape


_AS_PRODUCTS: dict[str, Callable[..., tuple[Array, Array, int, Shape]]] = {
    "matmul": _matrices,
    "dot": _dotted,
    "tensordot": _paired,
    CONVOLUTION: _of_windows,
}


def _count(op: str, pattern: Pattern) -> int:
    """The number of products in each sum."""
    if op == RAW:
        shape = np.broadcast_shapes(pattern.a, pattern.b)
        return int(np.prod([shape[i] for i in pattern.axes], dtype=int))
    x, _, axis, _ = _AS_PRODUCTS[op](np.empty(pattern.a), np.empty(pattern.b), pattern.axes)
    return int(x.shape[axis])


@terms.remembered
def problem(subject: Subject, case: Case) -> Problem:
    """The operands and the exact sums of a case."""
    rng, pattern = terms.generator(subject, case), PATTERNS[case.op][case.shape]
    first, second = (case.detail or "plain-plain").split("-")
    count = _count(case.op, pattern)
    a = shapes.fitted(first, _drawn(rng, case, "a", pattern.a, max(count, 1)))
    b = shapes.fitted(second, _drawn(rng, case, "b", pattern.b, max(count, 1)))
    if case.op == RAW:
        sums = _sums(a, b, partial(added_over, pattern.axes))
    else:
        x, y, axis, shape = _AS_PRODUCTS[case.op](a, b, pattern.axes)
        sums = _sums(x, y, lambda x: np.asarray(np.add.reduce(x, axis)).reshape(shape))
    if pattern.factored:  # since 0.0 times a negative number is -0.0
        sums = replace(sums, unsigned=np.ones_like(sums.unsigned))
    return Problem(a, b, sums)


def _drawn(rng: np.random.Generator, case: Case, which: str, shape: Shape, count: int) -> Array:
    """An operand; where a value class is about products, the two differ."""
    dtype, values = case.dtype, case.values
    if np.dtype(dtype).kind in "iu":
        return terms.drawn(rng, values, shape, dtype, count)
    form = FORMATS[dtype]
    if values == "small-integers":  # products of two of them take twice the digits
        return terms.drawn(rng, values, shape, dtype, int((count * 2**form.precision) ** 0.5) + 1)
    if values in ("tiny", "tiny-of-one-sign"):
        drawn = rng.standard_normal(shape) * 2.0 ** ((form.least + form.precision) // 2 - 1)
        sign = rng.choice([-1.0, 1.0])  # the same for all numbers of an operand
        return (np.abs(drawn) * sign if values == "tiny-of-one-sign" else drawn).astype(dtype)
    if values == "large":
        exponent = 11 * form.top // 16 if which == "a" else form.top + 2 - 11 * form.top // 16
        signs = [rng.choice([1.0, -1.0]), 0.0] if which == "a" else [1.0, -1.0, 0.0]
        return (rng.choice(signs, shape) * 2.0**exponent).astype(dtype)
    if values == "undefined" and which == "a":
        return rng.choice([0.0, 1.0, -0.0], shape).astype(dtype)
    if which == "b" and values in SECOND:
        return rng.choice(SECOND[values], shape).astype(dtype)
    if which == "b" and values in SPECIAL:
        values = "normals"
    return terms.drawn(rng, values, shape, dtype, count)


def _sums(a: Array, b: Array, add: terms.Add) -> terms.Sums:
    """The sums of the products of operands that broadcast."""
    if not is_float(a):
        return terms.sums(np.asarray(a.astype(object) * b.astype(object), object), add)
    finite = np.isfinite(a) & np.isfinite(b)
    with np.errstate(all="ignore"):
        special = a.astype(np.float64) * b.astype(np.float64)
    zero = (a == 0) | (b == 0)
    plain = np.copysign(np.where(zero, 0.0, 1.0), np.where(np.signbit(a) != np.signbit(b), -1.0, 1.0))
    left, right = [Dyadic.of(np.where(np.isfinite(x), x, 0)) for x in (a, b)]
    products = left * right
    whole = np.where(finite, products.integers, 0) if products.integers.size else products.integers
    return terms.sums_of(Dyadic(whole, products.exponent), np.where(finite, plain, special), add)


def need(case: Case) -> tuple[str, ...]:
    """The movements that make the operands, and the raw op."""
    made = [id for view in (case.detail or "plain-plain").split("-") for id in shapes.need(view, case.dtype)]
    return (*made, Case(ID, RAW, case.dtype, "matrices", "small-integers").id)


@law(ID, cases, level=2, needs=need)
def check_contractions(subject: Subject, case: Case) -> Measured | None:
    """Sums of products are exact for ints, and for floats within gamma_n * sum(|a b|), also as matmul and convolution.

    So no axis may be confused with another, no sum may be formed in a narrower format, and an algorithm with fewer
    multiplications may not lose the small elements. Sums of floats are exact where no part of the sum has more digits
    than the format. Infinities and NaN follow IEEE 754, unless one operand alone has a contracted axis, which may be
    summed before the products, or a window holds zeros.

    The bound: Higham, section 3.1 and, for matrices, 3.5.
    """
    given, dtype, pattern = problem(subject, case), DTYPES[case.dtype], PATTERNS[case.op][case.shape]
    interpreter = subject.call_counter if case.op in RUN_AS_OPS else subject.stack
    reason = subject.capabilities.why_not(RAW, case.dtype)
    if reason and case.op not in RUN_AS_OPS:
        raise Unsupported(f"{RAW}: {reason}")
    first, second = (case.detail or "plain-plain").split("-")
    a = shapes.operand(subject, first, given.a, dtype, interpreter)
    b = shapes.operand(subject, second, given.b, dtype, interpreter)
    if case.op in RUN_AS_OPS:
        result = subject.run(OPS[case.op], [a, b], (pattern.axes,) if case.op == RAW else pattern.axes)
    elif case.op == "tensordot":
        result = tk.tensordot(a, b, pattern.axes)
    else:
        result = getattr(tk, case.op)(a, b)
    got, expected = subject.read(result), given.sums.total.shape
    over = f" over {pattern.axes}" if pattern.axes else ""
    says = f"{case.op} of {given.a.shape} and {given.b.shape}{over}"
    if got.shape != expected or got.dtype.name != case.dtype:
        raise Failure(f"{says}: expected {case.dtype} {expected}, got {got.dtype} {got.shape}")
    if dtype.kind == "int":
        terms.check_ints(says, given.sums, got)
        return None
    arithmetic = Arithmetic(subject.capabilities, case.dtype)
    measured = terms.check_sums(says, given.sums, got, arithmetic, 1, _lost(given, arithmetic))
    if case.op in RUN_AS_OPS and rounded.declared(subject, case):
        total = given.sums.total
        rounded.require(says, case.dtype, total.integers, total.exponent, got, given.sums.special == 0)
    return measured


def _lost(given: Problem, arithmetic: Arithmetic) -> Dyadic | None:
    """The error of each sum by underflow of products, and by flushing of operands."""
    form, sums = arithmetic.format, given.sums
    if sums.total.exponent >= form.least and not arithmetic.flushes:
        return None
    lost = 2 * arithmetic.loss
    if arithmetic.flushes:
        sizes = [float(np.max(np.abs(x), where=np.isfinite(x), initial=1.0)) for x in (given.a, given.b)]
        lost += 2 * form.normal * int(max(sizes) + 1)
    return Dyadic.of(sums.count).times(lost)
