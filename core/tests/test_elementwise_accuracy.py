"""The elementary functions are within 4 units in the last place of mpmath, both as bodies and as numpy's overrides.

Operands are drawn from every binade down to the subnormal ones, around the zeros, poles and overflow thresholds of
the function and the seams of its body, and from the intervals where it does most of its work.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import Required
from tensorken_core.language.op import OPS
from tensorken_core.tensor.dispatch import apply
from tensorken_numpy.backend import Numpy
from tools import coefficients
from tools.numerics import distance

pytestmark = pytest.mark.slow

inf, nan, pi = math.inf, math.nan, math.pi
BACKENDS = {"bodies": Required(), "numpy": Numpy()}
DTYPES = ("float32", "float64")
BOUND = 4.0
"""The error in units in the last place."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class Row:
    """A function: its oracle, where it is defined, and where operands are drawn more densely."""

    oracle: Callable[..., Any]
    intervals: tuple[Interval, ...]
    around: tuple[float, ...] = ()
    defined: Callable[[float], bool] = lambda x: True
    specials: tuple[tuple[float, float], ...] = ()


ODD = ((0.0, 0.0), (-0.0, -0.0), (nan, nan))
ROWS = {
    "expm1": Row(
        mpmath.expm1,
        ((-1.0, 1.0), (-40.0, 40.0), (30.0, 88.7), (88.7, 709.7)),
        (math.log(2) / 2, -math.log(2) / 2, 18.0, -18.0, 38.0, -38.0, 88.72, 709.78),
        specials=(*ODD, (inf, inf), (-inf, -1.0), (1e4, inf), (-1e4, -1.0)),
    ),
    "exp2": Row(
        lambda x: mpmath.mpf(2) ** x,
        ((-1.0, 1.0), (-150.0, 128.0), (-1075.0, 1024.0)),
        (-149.0, -1074.0, 128.0, 1024.0),
        specials=((0.0, 1.0), (inf, inf), (-inf, 0.0), (nan, nan), (10.0, 1024.0), (-3.0, 0.125)),
    ),
    "sigmoid": Row(
        lambda x: 1 / (1 + mpmath.exp(-x)),
        ((-2.0, 2.0), (-104.0, 20.0), (-745.0, 40.0), (-104.0, -85.0), (-745.0, -705.0)),
        (40.0, -88.7, -103.0, -709.7, -744.0),
        specials=((0.0, 0.5), (-0.0, 0.5), (inf, 1.0), (-inf, 0.0), (nan, nan), (1e4, 1.0), (-1e4, 0.0)),
    ),
    "softplus": Row(
        lambda x: mpmath.log1p(mpmath.exp(x)),
        ((-2.0, 2.0), (-104.0, 20.0), (-745.0, 40.0), (-104.0, -85.0), (-745.0, -705.0)),
        (40.0, -88.7, -103.0, -709.7, -744.0),
        specials=((inf, inf), (-inf, 0.0), (nan, nan), (1e4, 1e4), (-1e4, 0.0)),
    ),
    "log1p": Row(
        mpmath.log1p,
        ((-0.5, 1.5), (-1.0, -0.3), (0.0, 1e3)),
        (-0.4, 1.0, -1.0),
        lambda x: x > -1.0,
        (*ODD, (-1.0, -inf), (inf, inf), (-2.0, nan), (-inf, nan)),
    ),
    "log2": Row(
        lambda x: mpmath.log(x, 2),
        ((0.4, 2.5), (0.0, 1e3)),
        (1.0, 0.6, 2.0),
        lambda x: x > 0.0,
        (
            (0.0, -inf),
            (-0.0, -inf),
            (inf, inf),
            (nan, nan),
            (-1.0, nan),
            (-inf, nan),
            (1.0, 0.0),
            (0.125, -3.0),
        ),
    ),
    "log10": Row(
        mpmath.log10,
        ((0.4, 2.5), (0.0, 1e3)),
        (1.0, 0.6, 2.0),
        lambda x: x > 0.0,
        ((0.0, -inf), (-0.0, -inf), (inf, inf), (nan, nan), (-1.0, nan), (-inf, nan), (1.0, 0.0), (1e3, 3.0)),
    ),
    "tan": Row(
        mpmath.tan,
        ((-2.0, 2.0), (-100.0, 100.0), (-1e5, 1e5)),
        (pi / 2, pi, 2 * pi, 1e6 * pi, 1e22),
        specials=(*ODD, (inf, nan), (-inf, nan)),
    ),
    "asin": Row(
        mpmath.asin,
        ((-1.0, 1.0), (0.4, 0.6)),
        (0.5, -0.5, 1.0, -1.0),
        lambda x: abs(x) <= 1.0,
        (*ODD, (1.5, nan), (-1.5, nan), (inf, nan)),
    ),
    "acos": Row(
        mpmath.acos,
        ((-1.0, 1.0), (0.4, 0.6)),
        (0.5, -0.5, 1.0, -1.0),
        lambda x: abs(x) <= 1.0,
        ((1.0, 0.0), (nan, nan), (1.5, nan), (-1.5, nan), (-inf, nan)),
    ),
    "atan": Row(mpmath.atan, ((-1.0, 1.0), (-4.0, 4.0)), (1.0, -1.0), specials=ODD),
    "sinh": Row(
        mpmath.sinh,
        ((-1.0, 1.0), (-10.0, 10.0), (79.0, 89.4), (-710.4, 710.4)),
        (80.0, 700.0, 89.41, 710.47),
        specials=(*ODD, (inf, inf), (-inf, -inf), (1e4, inf), (-1e4, -inf)),
    ),
    "cosh": Row(
        mpmath.cosh,
        ((-1.0, 1.0), (-10.0, 10.0), (79.0, 89.4), (-710.4, 710.4)),
        (80.0, 700.0, 89.41, 710.47),
        specials=((0.0, 1.0), (-0.0, 1.0), (nan, nan), (inf, inf), (-inf, inf), (-1e4, inf)),
    ),
    "tanh": Row(
        mpmath.tanh,
        ((-1.0, 1.0), (-10.0, 10.0), (-20.0, 20.0)),
        (0.9, -0.9, 9.0, 19.0),
        specials=(*ODD, (inf, 1.0), (-inf, -1.0), (1e4, 1.0), (-1e4, -1.0)),
    ),
    "sech_squared": Row(
        lambda x: 1 / mpmath.cosh(x) ** 2,
        ((-2.0, 2.0), (-10.0, 10.0), (-53.0, 53.0), (-374.0, 374.0)),
        (44.0, 51.5, 354.0, 372.0),
        specials=((0.0, 1.0), (-0.0, 1.0), (inf, 0.0), (-inf, 0.0), (nan, nan), (1e4, 0.0)),
    ),
    "asinh": Row(
        mpmath.asinh,
        ((-1.0, 1.0), (-10.0, 10.0)),
        (2.0**40, 2.0**50, 2.0**60, 1e19, 1e154),
        specials=(*ODD, (inf, inf), (-inf, -inf)),
    ),
    "acosh": Row(
        mpmath.acosh,
        ((1.0, 1.5), (1.0, 10.0)),
        (1.0, 1e19, 1e154),
        lambda x: x >= 1.0,
        ((1.0, 0.0), (nan, nan), (inf, inf), (0.5, nan), (-inf, nan)),
    ),
    "atanh": Row(
        mpmath.atanh,
        ((-1.0, 1.0),),
        (1.0, -1.0, 1 / 3),
        lambda x: abs(x) < 1.0,
        (*ODD, (1.0, inf), (-1.0, -inf), (1.5, nan), (-inf, nan)),
    ),
    "erf": Row(
        mpmath.erf,
        ((-1.5, 1.5), (-4.0, 4.0), (-6.0, 6.0)),
        (1.0, -1.0, 3.9, 5.9),
        specials=(*ODD, (inf, 1.0), (-inf, -1.0), (30.0, 1.0), (-30.0, -1.0)),
    ),
    "erfinv": Row(
        mpmath.erfinv,
        ((-1.0, 1.0), (0.98, 1.0)),
        (1.0, -1.0, 0.5, math.sqrt(1 - math.exp(-4)), -math.sqrt(1 - math.exp(-4))),
        lambda x: abs(x) < 1.0,
        (*ODD, (1.0, inf), (-1.0, -inf), (1.5, nan), (-1.5, nan), (inf, nan), (-inf, nan)),
    ),
    "gaussian": Row(
        lambda x: mpmath.exp(-x * x),
        ((-1.5, 1.5), (-4.0, 4.0), (-10.3, 10.3), (-27.3, 27.3)),
        (9.4, 10.2, 26.6, 27.2),
        specials=((0.0, 1.0), (-0.0, 1.0), (inf, 0.0), (-inf, 0.0), (nan, nan), (1e4, 0.0)),
    ),
}


def operands(row: Row, dtype: str, rng: random.Random) -> np.ndarray[Any, Any]:
    """Numbers of the dtype where the function is defined."""
    facts = np.finfo(dtype)
    low, high = int(facts.minexp - facts.nmant), int(facts.maxexp)
    drawn = [
        rng.choice((-1, 1)) * math.ldexp(rng.uniform(1, 2), rng.randrange(low, high)) for _ in range(200)
    ]
    drawn += [rng.uniform(*interval) for interval in row.intervals for _ in range(150)]
    for centre in row.around:
        drawn += [
            centre * (1 + rng.uniform(-1, 1) * 2.0 ** -rng.randrange(1, facts.nmant + 2)) for _ in range(60)
        ]
    extremes = (facts.max, facts.tiny, facts.smallest_subnormal, 3 * facts.smallest_subnormal)
    drawn += [float(sign * x) for x in extremes for sign in (-1, 1)]
    with np.errstate(over="ignore"):
        x = np.array(drawn, dtype)
    return x[np.isfinite(x) & (x != 0) & np.array([row.defined(float(v)) for v in x])]


def on(backend: str, name: str, *xs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The backend's results."""
    tensors = [tk.tensor(x, backend=BACKENDS[backend]) for x in xs]
    return np.array(apply(OPS[name], tensors))


def over_rows(test: Any) -> Any:
    """The test for every function, dtype and backend."""
    return pytest.mark.parametrize("name", ROWS)(each_of("dtype", DTYPES)(each_of("backend", BACKENDS)(test)))


@cache
def truth(name: str, x: float) -> Any:
    """The value, with far more digits than any dtype has."""
    with mpmath.workprec(160):
        return ROWS[name].oracle(mpmath.mpf(x))


@pytest.mark.feature(65)
@over_rows
def test_elementary_functions_are_within_4_units_in_the_last_place(
    name: str, dtype: str, backend: str
) -> None:
    row = ROWS[name]
    x = operands(row, dtype, random.Random(name + dtype))
    y = on(backend, name, x)
    assert y.dtype == dtype
    with mpmath.workprec(160):
        errors = [distance(float(b), truth(name, float(a)), dtype) for a, b in zip(x, y, strict=True)]
    worst = max(range(len(errors)), key=errors.__getitem__)
    assert errors[worst] <= BOUND, f"{name}({x[worst]!r}) is {y[worst]!r}, off by {errors[worst]} units"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ROWS)
def test_many_float32_operands_are_within_4_units_of_float64(name: str, backend: str) -> None:
    """Compared with float64 results, which are exact relative to float32 and compared with mpmath above."""
    row, rng = ROWS[name], np.random.default_rng(7)
    drawn = [rng.uniform(*interval, 40_000) for interval in row.intervals]
    drawn += [
        centre * (1 + rng.uniform(-1, 1, 5_000) * 2.0 ** -rng.integers(1, 24, 5_000)) for centre in row.around
    ]
    drawn.append(
        rng.choice([-1, 1], 20_000) * np.ldexp(rng.uniform(1, 2, 20_000), rng.integers(-149, 127, 20_000))
    )
    with np.errstate(over="ignore"):
        x = np.concatenate(drawn).astype(np.float32)
    y, true = on(backend, name, x), on("numpy", name, x.astype(np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = true.astype(np.float32)
        unit = np.spacing(np.minimum(np.abs(true), np.finfo(np.float32).max).astype(np.float32))
        errors = np.abs(y - true) / unit
    errors[(y == rounded) | (np.isnan(y) & np.isnan(rounded))] = 0.5
    worst = int(np.argmax(np.nan_to_num(errors, nan=inf)))
    assert errors[worst] <= BOUND, f"{name}({x[worst]!r}) is {y[worst]!r}, off by {errors[worst]} units"


@over_rows
def test_special_values(name: str, dtype: str, backend: str) -> None:
    given, wanted = zip(*ROWS[name].specials, strict=True)
    y = on(backend, name, np.array(given, dtype))
    np.testing.assert_array_equal(y, np.array(wanted, dtype))
    zeros = np.array(wanted) == 0.0
    np.testing.assert_array_equal(np.signbit(y)[zeros], np.signbit(wanted)[zeros])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ROWS)
def test_float16_is_the_rounded_function(name: str, backend: str) -> None:
    """All float16 numbers; intermediate results are float32, so only the last rounding has an error."""
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    wide = on(backend, name, every.astype(np.float32))
    y = np.array(apply(OPS[name], (tk.tensor(every.tolist(), "float16", backend=BACKENDS[backend]),)))
    assert y.dtype == np.float16
    with np.errstate(over="ignore"):
        expected = wide.astype(np.float16)
        neighbours = [np.nextafter(expected, np.float16(side)) for side in (-inf, inf)]
    near = (y == expected) | (np.isnan(y) & np.isnan(expected)) | (y == neighbours[0]) | (y == neighbours[1])
    assert near.all(), every[~near][:5]


# ---- functions of two numbers ------------------------------------------------------------------------------


def pairs(dtype: str, rng: random.Random) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Pairs of like and of unlike magnitude."""
    facts = np.finfo(dtype)
    low, high = int(facts.minexp - facts.nmant), int(facts.maxexp) - 1

    def signed(exponent: int) -> float:
        return rng.choice((-1, 1)) * math.ldexp(rng.uniform(1, 2), min(max(exponent, low), high - 1))

    exponents = [rng.randrange(low, high) for _ in range(400)]
    a = [signed(e) for e in exponents]
    b = [signed(e + rng.choice((0, 0, 1, -1, 3, -5, 20, -60, rng.randrange(-300, 300)))) for e in exponents]
    return np.array(a, dtype), np.array(b, dtype)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "oracle"), [("atan2", mpmath.atan2), ("hypot", mpmath.hypot)])
def test_functions_of_two_numbers_are_within_4_units_in_the_last_place(
    name: str, oracle: Callable[..., Any], dtype: str, backend: str
) -> None:
    a, b = pairs(dtype, random.Random(name + dtype))
    y = on(backend, name, a, b)
    with mpmath.workprec(1200):  # atan2 of a tiny and a huge number
        for p, q, r in zip(a, b, y, strict=True):
            error = distance(float(r), oracle(mpmath.mpf(float(p)), mpmath.mpf(float(q))), dtype)
            assert error <= BOUND, f"{name}({p!r}, {q!r}) is {r!r}, off by {error} units"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_logaddexp_is_within_4_units_of_its_larger_operand(dtype: str, backend: str) -> None:
    rng = random.Random(dtype)
    scales = [rng.choice((1.0, 5.0, 100.0, 1e4)) for _ in range(500)]
    a, b = (np.array([rng.uniform(-s, s) for s in scales], dtype) for _ in range(2))
    y = on(backend, "logaddexp", a, b)
    with mpmath.workprec(200):
        for p, q, r in zip(a, b, y, strict=True):
            true = mpmath.log(mpmath.exp(float(p)) + mpmath.exp(float(q)))
            unit = float(np.spacing(np.array(max(abs(p), abs(q), abs(r)), dtype)))
            assert abs(float(r) - true) <= BOUND * unit, f"logaddexp({p!r}, {q!r}) is {r!r}, not {true}"


ANGLES = (0.0, -0.0, 1.0, -1.0, inf, -inf, nan, 5e-324)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["atan2", "hypot"])
def test_special_pairs_equal_those_of_c(name: str, backend: str) -> None:
    a, b = (x.ravel() for x in np.meshgrid(ANGLES, ANGLES))
    expected = np.array([getattr(math, name)(p, q) for p, q in zip(a, b, strict=True)])
    y = on(backend, name, a, b)
    ordinary = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(y), ~ordinary)
    np.testing.assert_array_max_ulp(y[ordinary], expected[ordinary], 2)
    np.testing.assert_array_equal(np.signbit(y)[ordinary], np.signbit(expected)[ordinary])


@pytest.mark.parametrize("backend", BACKENDS)
def test_logaddexp_of_infinities(backend: str) -> None:
    a = np.array([inf, -inf, inf, -inf, 1.0, nan, nan, 3.0])
    b = np.array([inf, -inf, -inf, 1.0, inf, inf, 1.0, nan])
    expected = [inf, -inf, inf, 1.0, inf, nan, nan, nan]
    np.testing.assert_array_equal(on(backend, "logaddexp", a, b), expected)


# ---- exact functions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_remainder_is_pythons_to_the_last_bit(dtype: str, backend: str) -> None:
    """Also where the quotient has more digits than a number of the dtype: the division is long and exact."""
    rng = random.Random(dtype)
    facts = np.finfo(dtype)
    a, b = pairs(dtype, rng)
    extremes = np.array(
        [facts.max, -facts.max, facts.tiny, facts.smallest_subnormal, 1.0, -1.0, 0.1, 3.0], dtype
    )
    more = [x.ravel() for x in np.meshgrid(extremes, extremes)]
    whole = [np.array([rng.randrange(-40, 40) or 1 for _ in range(200)], dtype) for _ in range(2)]
    with np.errstate(over="ignore"):
        products = [b * dtype_of(k, dtype) for k in (0.5, 1.5, 2048.0, 4095.5)]
        halves = [np.nextafter(p, dtype_of(side, dtype)) for p in products for side in (0, inf)]
    a = np.concatenate([a, more[0], whole[0], *halves])
    b = np.concatenate([b, more[1], whole[1], *[b] * len(halves)])
    keep = np.isfinite(a)
    a, b = a[keep], b[keep]
    y = on(backend, "remainder", a, b)
    expected = np.array([float(p) % float(q) for p, q in zip(a, b, strict=True)], dtype)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(np.signbit(y), np.signbit(expected))


def dtype_of(value: float, dtype: str) -> Any:
    """A number of the dtype."""
    return np.array(value, dtype)


@pytest.mark.parametrize("backend", BACKENDS)
def test_special_remainders(backend: str) -> None:
    a = np.array([1.0, 1.0, 0.0, inf, -inf, inf, nan, 1.0, 1.0, -1.0, 1.0, -1.0, 0.0, -0.0, 0.0, 2.0])
    b = np.array([0.0, -0.0, 0.0, 1.0, 1.0, inf, 1.0, nan, inf, inf, -inf, -inf, 1.0, 1.0, -1.0, -1.0])
    expected = [nan, nan, nan, nan, nan, nan, nan, nan, 1.0, inf, -inf, -1.0, 0.0, 0.0, -0.0, -0.0]
    y = on(backend, "remainder", a, b)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(np.signbit(y)[12:], np.signbit(expected)[12:])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_the_remainder_of_integers(dtype: str, backend: str) -> None:
    facts = np.iinfo(dtype)
    values = np.array([facts.min, facts.min + 1, -7, -1, 0, 1, 2, 7, facts.max], dtype)
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    expected = [int(p) % int(q) if q else 0 for p, q in zip(a, b, strict=True)]
    np.testing.assert_array_equal(on(backend, "remainder", a, b), np.array(expected, dtype))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("name", "meaning"), [("round", round), ("trunc", math.trunc), ("ceil", math.ceil), ("floor", math.floor)]
)
def test_rounding_to_integers_is_exact(
    name: str, meaning: Callable[[float], int], dtype: str, backend: str
) -> None:
    facts = np.finfo(dtype)
    x = np.arange(-4.0, 4.25, 0.25, dtype)
    x = np.concatenate([x, np.nextafter(x, dtype_of(inf, dtype)), np.nextafter(x, dtype_of(-inf, dtype))])
    edge = 2.0**facts.nmant
    x = np.concatenate(
        [x, np.array([edge, edge + 1, edge / 2 + 0.5, edge / 2 - 0.5, facts.max, facts.tiny], dtype)]
    )
    x = np.concatenate([x, -x, np.array([0.0, -0.0], dtype)])
    expected = np.array([math.copysign(meaning(float(v)), float(v)) for v in x], dtype)
    tensor = tk.tensor(x.tolist(), dtype, backend=BACKENDS[backend])
    y = np.array(apply(OPS[name], (tensor,)))
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(np.signbit(y), np.signbit(expected))
    special = tk.tensor([inf, -inf, nan], dtype, backend=BACKENDS[backend])
    np.testing.assert_array_equal(np.array(apply(OPS[name], (special,))), [inf, -inf, nan])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["round", "trunc", "ceil", "floor"])
def test_signalling_nans_are_rounded_without_a_warning(name: str, dtype: str) -> None:
    """Numbers made from bits may be signalling NaN; arithmetic on them sets the flag that numpy warns of."""
    infinity = np.array(inf, dtype).view(f"u{np.dtype(dtype).itemsize}")
    signalling = np.array([infinity + 1] * 70).astype(infinity.dtype).view(dtype)
    assert np.isnan(on("numpy", name, signalling)).all()


# ---- the numbers in the bodies -----------------------------------------------------------------------------


def test_the_coefficients_equal_those_of_the_tool() -> None:
    assert coefficients.FILE.read_text(encoding="utf-8") == coefficients.render()
