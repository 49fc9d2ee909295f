"""The body of a derived op and a backend's override agree within rounding, and exactly at special values."""

from __future__ import annotations

import itertools
import math
import random
import struct

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.laws.operands import draw, dtypes_of, over, takes
from core.tests.support import Required, array
from tensorken_core.language.op import OPS
from tensorken_core.tensor.tensor import apply
from tensorken_numpy.backend import Numpy

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_numpy")]

NUMPY, REQUIRED = Numpy(), Required()
DERIVED = [op for op in OPS.values() if op.body is not None and op.method]
OVERRIDDEN = [op for op in DERIVED if NUMPY.has(op)]
OF_FLOATS = [op for op in DERIVED if op.elementwise and takes(op, tk.float64)]
FLOATS = ("float32", "float64")

# Of two zeros with different signs either may be called the larger.
EITHER_ZERO = [OPS[name] for name in ("maximum", "minimum", "relu", "max", "min")]

# The largest difference of the two in units in the last place: four for each of them.
APART = 8


def edges(dtype):
    """Zeros, infinities, NaN, subnormal and largest numbers, integers, half-integers, and numbers between them."""
    info = np.finfo(dtype)
    rng = random.Random(0)
    values = [
        0.0,
        math.inf,
        math.nan,
        1.0,
        0.5,
        1.5,
        2.5,
        2.0,
        3.0,
        10.0,
        100.0,
        700.0,
        1e6,
        4503599627370497.5,
    ]
    values += [
        float(info.tiny),
        float(info.smallest_subnormal),
        float(info.max),
        float(info.eps),
        1 - float(info.eps),
    ]
    values += [math.pi / 4, math.pi / 2, 0.1, 0.9, 20.0, 88.0]
    values += [10.0 ** rng.uniform(-6, 6) for _ in range(20)] + [rng.uniform(0.0, 3.0) for _ in range(20)]
    with np.errstate(over="ignore"):
        narrow = np.array([v * s for v in values for s in (1.0, -1.0)], dtype)
    return narrow


def grids(op, dtype):
    """The edges, or all pairs of them."""
    values = edges(dtype)
    if op.arity == 1:
        return [values]
    return [np.array(column, dtype) for column in zip(*itertools.product(values, values), strict=True)]


def computed(op, columns, backend):
    return array(apply(op, [tk.tensor(column, backend=backend) for column in columns]))


def ordered(x):
    """Floats mapped to integers, so that neighbours differ by 1; both zeros are 0."""
    bits = x.view({4: np.int32, 8: np.int64}[x.itemsize]).astype(object)
    lowest = -(2 ** (8 * x.itemsize - 1))
    return np.where(bits >= 0, bits, lowest - bits)


def assert_alike(op, got, expected, columns):
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    if got.dtype.kind != "f":
        assert_places(got == expected, got, expected, columns, "another value")
        return
    for kind in (np.isnan, np.isposinf, np.isneginf):
        assert_places(kind(got) == kind(expected), got, expected, columns, kind.__name__)
    zero = (expected == 0) & (got == 0) & (op not in EITHER_ZERO)
    assert_places(
        ~zero | (np.signbit(got) == np.signbit(expected)), got, expected, columns, "the sign of zero"
    )
    finite = np.isfinite(expected)
    distance = np.abs(np.where(finite, ordered(got) - ordered(expected), 0))
    near = distance <= APART
    if (
        op.name == "logaddexp"
    ):  # near its zero, units in the last place of the operands are larger than its own
        with np.errstate(invalid="ignore"):
            near |= np.abs(got - expected) <= 4 * np.finfo(got.dtype).eps
    assert_places(near, got, expected, columns, f"{max(distance.tolist())} units in the last place")


def assert_places(right, got, expected, columns, what):
    if not right.all():
        place = int(np.argmin(right))
        operands = ", ".join(repr(column[place]) for column in columns)
        pytest.fail(f"{what}: f({operands}) is {got[place]!r} and {expected[place]!r}")


@pytest.mark.feature(2, 4, 178)
@each_of("dtype", FLOATS)
@pytest.mark.parametrize("op", [op for op in OF_FLOATS if op in OVERRIDDEN], ids=lambda op: op.name)
def test_the_body_and_the_override_agree(op, dtype):
    columns = grids(op, dtype)
    assert_alike(op, computed(op, columns, REQUIRED), computed(op, columns, NUMPY), columns)


MEANT = [op for op in OPS.values() if op.elementwise and not op.operand_kinds]


@pytest.mark.feature(178)
@each_of("backend", [NUMPY, REQUIRED])
@pytest.mark.parametrize("op", [op for op in MEANT if takes(op, tk.float64)], ids=lambda op: op.name)
def test_body_and_override_equal_the_reference_on_floats(op, backend):
    """Against the meaning of the op on Python numbers."""
    columns = grids(op, "float64")
    got = computed(op, columns, backend)
    expected = np.array([op.scalar(*map(float, row)) for row in zip(*columns, strict=True)])
    assert_alike(op, got, expected.astype("float64") if got.dtype.kind == "f" else expected, columns)


@pytest.mark.feature(165, 178)
@each_of("backend", [NUMPY, REQUIRED])
@pytest.mark.parametrize("op", [op for op in MEANT if takes(op, tk.int32)], ids=lambda op: op.name)
def test_body_and_override_equal_the_reference_on_integers(op, backend):
    """Wrapped to 32 bits; shifts are logical, dividing by zero gives zero, and bits are those of a float32."""
    ends = [-(2**31), -(2**31) + 1, -7, -1, 0, 1, 2, 5, 31, 32, 2**31 - 1]
    rows = list(itertools.product(ends, repeat=op.arity))
    got = computed(op, [np.array(column, "int32") for column in zip(*rows, strict=True)], backend)
    special = {
        "shift_left": lambda a, b: a << b if 0 <= b < 32 else 0,
        "shift_right": lambda a, b: (a % 2**32) >> b if 0 <= b < 32 else 0,
        "floor_divide": lambda a, b: a // b if b else 0,
        "from_bits": lambda a: struct.unpack("<f", struct.pack("<i", a))[0],
    }
    meaning = special.get(op.name, op.scalar)
    expected = [meaning(*row) for row in rows]
    if got.dtype == np.int32:
        expected = [(v + 2**31) % 2**32 - 2**31 for v in expected]
    np.testing.assert_array_equal(got, np.array(expected, got.dtype))


@pytest.mark.feature(165)
@pytest.mark.parametrize("op", OVERRIDDEN, ids=lambda op: op.name)
def test_on_integers_and_booleans_they_are_equal(op):
    for dtype in dtypes_of(op):
        if dtype.kind == "float":
            continue
        for sample, seed in itertools.product(op.samples, range(3)):
            one, other = (
                array(apply(op, draw(op, sample, seed, dtype, backend), sample[1]))
                for backend in (NUMPY, REQUIRED)
            )
            assert one.tolist() == other.tolist()
            assert (one.dtype, one.shape) == (other.dtype, other.shape)


ROUNDED = ("softmax", "log_softmax", "logsumexp")
"""Ops whose results the two may round differently."""

FOURIER = ("fft", "rfft", "irfft")
"""Ops that add all numbers of an axis in an order of their own: the error is relative to the sum of their moduli."""

SUMS_OF_LOGARITHMS = ("log_softmax", "logsumexp")
"""Ops that add a logarithm to an operand: under cancellation the error is relative to the larger of the two."""

STRUCTURAL = [
    (op, sample)
    for op in OVERRIDDEN
    if not op.elementwise
    and takes(op, tk.float64)
    and op.adjust_samples is None  # not defined on any numbers
    for sample in op.samples
]


@pytest.mark.feature(2, 4)
@over(STRUCTURAL)
def test_reductions_and_arrangements_agree_at_the_edges_too(op, sample):
    rng = random.Random(op.name)
    pool = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 2.0, 2.0, 0.5]
    for trial in range(40):
        # Products and sums in another order turn infinities into NaN at other places.
        values = pool if trial % 2 and op.name not in ("fused_multiply_add", *FOURIER) else pool[5:]
        drawn = [[rng.choice(values) for _ in range(math.prod(shape))] for shape in sample[0]]
        results = []
        for backend in (NUMPY, REQUIRED):
            operands = [
                tk.new(shape, numbers, "float64", backend=backend)
                for shape, numbers in zip(sample[0], drawn, strict=True)
            ]
            results.append(array(apply(op, operands, sample[1])))
        one, other = results
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        apart = APART * np.finfo("float64").eps if op.name in (*ROUNDED, *FOURIER) else 0.0
        summed = max(map(abs, pool[5:])) + math.log(len(drawn[0])) if op.name in SUMS_OF_LOGARITHMS else 0.0
        if op.name in FOURIER:
            summed = max(map(abs, pool[5:])) * len(drawn[0])
        np.testing.assert_allclose(one, other, rtol=apart, atol=apart * summed)
        if op.name not in ("cumsum", "fused_multiply_add", *FOURIER) and one.dtype.kind == "f":
            zero = one == 0
            assert op in EITHER_ZERO or (np.signbit(one[zero]) == np.signbit(other[zero])).all()
