"""Every elementary function is the exact value rounded once; the oracle is mpmath at 250 bits and more."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings, strategies as st

from core.tests.each import each_of
from core.tests.examples import examples
from tensorken_core.language import scalar
from tensorken_core.language.dtypes import FLOATS, DType, bfloat16, float16, float32, float64
from tensorken_reference import circular, exponentials, logarithms, power
from tensorken_reference.function import Function
from tensorken_reference.rounding import FORMATS, round_doubles

pytestmark = pytest.mark.slow

inf, nan, pi = math.inf, math.nan, math.pi
Nearest = Callable[[Fraction, DType], float]


@dataclass(frozen=True)
class Row:
    function: Function
    oracle: Callable[..., Any]
    inverse: Callable[..., Any] | None = None  # from a value to an operand with that value
    centres: tuple[float, ...] = (0.0,)  # operands are drawn around these critical points
    specials: tuple[tuple[float, float], ...] = ()  # (operand, result)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


ODD: tuple[tuple[float, float], ...] = ((0.0, 0.0), (-0.0, -0.0), (5e-324, 5e-324), (-1e-310, -1e-310))
ROWS = {
    "exp": Row(
        exponentials.exp,
        mpmath.exp,
        mpmath.log,
        (0.0, 1.0, 709.7, -708.0, -745.1, 88.7, -103.0, 11.0, -17.0),
        ((0.0, 1.0), (-0.0, 1.0), (inf, inf), (-inf, 0.0), (1e300, inf), (-1e300, 0.0), (5e-324, 1.0)),
    ),
    "expm1": Row(
        exponentials.expm1,
        mpmath.expm1,
        mpmath.log1p,
        (0.0, 1.0, -37.0, -17.0, -8.0, 709.7, 88.7, 11.0),
        (*ODD, (inf, inf), (-inf, -1.0), (1e300, inf), (-1e300, -1.0)),
    ),
    "sigmoid": Row(
        exponentials.sigmoid,
        _sigmoid,
        lambda y: mpmath.log(y / (1 - y)),
        (0.0, 37.0, 17.0, 8.0, -745.0, -103.0, -17.0),
        ((0.0, 0.5), (-0.0, 0.5), (inf, 1.0), (-inf, 0.0), (1e300, 1.0), (-1e300, 0.0), (-5e-324, 0.5)),
    ),
    "tanh": Row(
        exponentials.tanh,
        mpmath.tanh,
        mpmath.atanh,
        (0.0, 18.5, -9.0, 4.5),
        (*ODD, (inf, 1.0), (-inf, -1.0), (1e300, 1.0), (-1e300, -1.0)),
    ),
    "sinh": Row(
        exponentials.sinh,
        mpmath.sinh,
        mpmath.asinh,
        (0.0, 710.4, -89.4, 11.7),
        (*ODD, (inf, inf), (-inf, -inf), (1e300, inf), (-1e300, -inf)),
    ),
    "cosh": Row(
        exponentials.cosh,
        mpmath.cosh,
        mpmath.acosh,
        (0.0, 710.4, -89.4, 11.7),
        ((0.0, 1.0), (-0.0, 1.0), (inf, inf), (-inf, inf), (1e300, inf), (1e-300, 1.0)),
    ),
    "erf": Row(
        exponentials.erf,
        mpmath.erf,
        None,
        (0.0, 5.9, -3.9, 2.7, 1.0),
        ((0.0, 0.0), (-0.0, -0.0), (inf, 1.0), (-inf, -1.0), (1e300, 1.0), (5e-324, 5e-324)),
    ),
    "log": Row(
        logarithms.log,
        mpmath.log,
        mpmath.exp,
        (1.0, 2.0, 1e300, 0.0),
        ((1.0, 0.0), (0.0, -inf), (-0.0, -inf), (-1.0, nan), (inf, inf), (-inf, nan), (-1e-3, nan)),
    ),
    "exp2": Row(
        power.exp2,
        lambda x: mpmath.mpf(2) ** x,
        lambda y: mpmath.log(y, 2),
        (0.0, 1.0, 1023.9, -1074.5, 127.9, -149.5, 15.9, -24.5),
        (
            (0.0, 1.0),
            (-0.0, 1.0),
            (3.0, 8.0),
            (-2.0, 0.25),
            (inf, inf),
            (-inf, 0.0),
            (1e300, inf),
            (-1e300, 0.0),
        ),
    ),
    "log2": Row(
        logarithms.log2,
        lambda x: mpmath.log(x, 2),
        lambda y: mpmath.mpf(2) ** y,
        (1.0, 2.0, 1e300, 0.0),
        (
            (1.0, 0.0),
            (8.0, 3.0),
            (2.0**-24, -24.0),
            (0.0, -inf),
            (-0.0, -inf),
            (-1.0, nan),
            (inf, inf),
            (-inf, nan),
        ),
    ),
    "log10": Row(
        logarithms.log10,
        lambda x: mpmath.log10(x),
        lambda y: mpmath.mpf(10) ** y,
        (1.0, 10.0, 1e300, 0.0),
        ((1.0, 0.0), (10.0, 1.0), (1000.0, 3.0), (0.0, -inf), (-1.0, nan), (inf, inf), (-inf, nan)),
    ),
    "log1p": Row(
        logarithms.log1p,
        mpmath.log1p,
        mpmath.expm1,
        (0.0, -1.0, 1e300),
        (*ODD, (-1.0, -inf), (-1.5, nan), (inf, inf), (-inf, nan)),
    ),
    "asinh": Row(
        logarithms.asinh, mpmath.asinh, mpmath.sinh, (0.0, 1.0, 1e300), (*ODD, (inf, inf), (-inf, -inf))
    ),
    "acosh": Row(
        logarithms.acosh,
        mpmath.acosh,
        mpmath.cosh,
        (1.0, 2.0, 1e300),
        ((1.0, 0.0), (0.5, nan), (-2.0, nan), (inf, inf), (-inf, nan)),
    ),
    "atanh": Row(
        logarithms.atanh,
        mpmath.atanh,
        mpmath.tanh,
        (0.0, 1.0, -1.0),
        (*ODD, (1.0, inf), (-1.0, -inf), (1.5, nan), (-inf, nan)),
    ),
    "sin": Row(
        circular.sin, mpmath.sin, mpmath.asin, (0.0, pi / 2, pi, 22.0, 1e300), (*ODD, (inf, nan), (-inf, nan))
    ),
    "cos": Row(
        circular.cos,
        mpmath.cos,
        mpmath.acos,
        (0.0, pi / 2, 11.0, 1e300),
        ((0.0, 1.0), (-0.0, 1.0), (inf, nan), (-inf, nan), (1e-300, 1.0)),
    ),
    "tan": Row(
        circular.tan, mpmath.tan, mpmath.atan, (0.0, pi / 2, pi, 11.0), (*ODD, (inf, nan), (-inf, nan))
    ),
    "asin": Row(
        circular.asin,
        mpmath.asin,
        mpmath.sin,
        (0.0, 1.0, -1.0),
        (*ODD, (1.5, nan), (inf, nan), (1.0, pi / 2)),
    ),
    "acos": Row(
        circular.acos,
        mpmath.acos,
        mpmath.cos,
        (0.0, 1.0, -1.0),
        ((1.0, 0.0), (-1.0, pi), (0.0, pi / 2), (-0.0, pi / 2), (1.5, nan), (-inf, nan)),
    ),
    "atan": Row(
        circular.atan, mpmath.atan, mpmath.tan, (0.0, 1.0, 1e300), (*ODD, (inf, pi / 2), (-inf, -pi / 2))
    ),
}
EVERY = pytest.mark.parametrize("name", ROWS)
DTYPES = pytest.mark.parametrize("dtype", FLOATS, ids=str)


def drawn(rng: random.Random, centres: tuple[float, ...], dtype: DType) -> float:
    """A float of any magnitude, drawn by its bits, or a float near a centre."""
    if rng.random() < 0.5:
        code = {2: "H", 4: "I", 8: "Q"}[dtype.itemsize]
        number = rng.getrandbits(8 * dtype.itemsize)
        if dtype is bfloat16:  # the upper half of a float32
            return float(struct.unpack("f", struct.pack("I", number << 16))[0])
        return float(struct.unpack(dtype.format, struct.pack(code, number))[0])
    offset = rng.choice((-1, 1)) * 2.0 ** rng.uniform(-60, 6)
    return round_doubles([rng.choice(centres) + offset], dtype)[0]


def true_value(oracle: Callable[..., Any], *operands: float) -> Any:
    """The value to at least 200 bits, even if 2000 bits cancel; None where it is not real."""
    extreme = any(abs(x) > 1e9 or 0 < abs(x) < 1e-9 for x in operands)
    with mpmath.workprec(2600 if extreme else 320):
        try:
            value = oracle(*map(mpmath.mpf, operands))
        except (ValueError, ZeroDivisionError):
            return None
    return value if isinstance(value, mpmath.mpf) and mpmath.isfinite(value) else None


def as_fraction(value: Any) -> Fraction:
    sign, mantissa, exponent, _ = value._mpf_
    return (-1) ** sign * Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def same(a: float, b: float) -> bool:
    """Whether two floats are identical, including signs of zeros and NaN."""
    return (a != a and b != b) or (a == b and math.copysign(1.0, a) == math.copysign(1.0, b))


@DTYPES
@EVERY
def test_the_exact_value_is_rounded_once(name: str, dtype: DType, nearest: Nearest) -> None:
    row, rng, checked = ROWS[name], random.Random(name), 0
    while checked < 150:
        x = drawn(rng, row.centres, dtype)
        if not math.isfinite(x) or (
            name.startswith(("exp", "sigmoid", "tanh", "sinh", "cosh")) and abs(x) > 1e4
        ):
            continue
        value = true_value(row.oracle, x)
        got = row.function(dtype, [x])[0]
        if value is None:
            assert got != got or math.isinf(got), (name, x, got)
        elif value == 0:
            assert got == 0, (name, x, got)
        else:
            assert same(got, math.copysign(nearest(as_fraction(value), dtype), value)), (name, x, got)
        checked += 1


@DTYPES
@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.inverse])
def test_values_next_to_a_tie_are_rounded_correctly(name: str, dtype: DType, nearest: Nearest) -> None:
    """The operand nearest to a tie of the function: up to 40 correct digits may be needed."""
    row, rng, checked = ROWS[name], random.Random(name), 0
    form = FORMATS[dtype]
    assert row.inverse is not None
    for _ in range(1000):
        start = row.function(dtype, [drawn(rng, row.centres, dtype)])[0]
        if not math.isfinite(start) or abs(start) < 2.0 ** (form.least + form.precision):
            continue
        fraction, exponent = math.frexp(start)
        with mpmath.workprec(320):
            tie = mpmath.ldexp(mpmath.mpf(fraction) + mpmath.mpf(2) ** -(form.precision + 1), exponent)
            try:
                operand = row.inverse(tie)
            except (ValueError, ZeroDivisionError):
                continue
        if not isinstance(operand, mpmath.mpf) or not mpmath.isfinite(operand) or operand == 0:
            continue
        x = nearest(as_fraction(operand), dtype)
        value = true_value(row.oracle, x) if math.isfinite(x) else None
        if value is None or value == 0:
            continue
        assert row.function(dtype, [x])[0] == nearest(as_fraction(value), dtype), (name, x)
        checked += 1
        if checked == 60:
            break
    assert checked == 60


HARD = [
    *[("exp", x) for x in (2.0**-53, -(2.0**-54), 3 * 2.0**-54, 1.5 * 2.0**-52)],
    *[("cos", (2 * k + 1) ** 0.5 * 2.0**-26.5) for k in range(8)],
    *[("cosh", (2 * k + 1) ** 0.5 * 2.0**-26) for k in range(8)],
    *[("sigmoid", (2 * k + 1) * 2.0**-51) for k in range(-4, 4)],
    *[("log1p", x) for x in (2.0**-52, 1.5 * 2.0**-51, 2.0**-27, 2.0**-53 + 2.0**-105)],
    *[("tanh", 18.714973875118524 + k * 2.0**-40) for k in range(-4, 4)],
    *[("erf", 5.863584748755167 + k * 2.0**-44) for k in range(-4, 4)],
    *[("sin", x) for x in (6381956970095103.0 * 2.0**797, 1e22, 2.0**-26, pi, 710.0, 355.0)],
    *[("cos", x) for x in (6381956970095103.0 * 2.0**797, 1e22, 11.0)],
    *[("tan", x) for x in (6381956970095103.0 * 2.0**797, pi / 2, 11.0, 2.0**-26)],
    *[("atan", x) for x in (2.0**54, 2.0**-26, 1e300)],
]


@pytest.mark.parametrize(("name", "x"), HARD)
def test_hard_cases_of_double(name: str, x: float, nearest: Nearest) -> None:
    """Operands next to ties, or to multiples of pi/2; no double is closer to one than the first of sin."""
    value = true_value(ROWS[name].oracle, x)
    assert ROWS[name].function(float64, [x])[0] == nearest(as_fraction(value), float64)


@DTYPES
@EVERY
def test_specials(name: str, dtype: DType) -> None:
    row = ROWS[name]
    for x, expected in (*row.specials, (nan, nan)):
        (operand,), (result,) = round_doubles([x], dtype), round_doubles([expected], dtype)
        got = row.function(dtype, [operand])[0]
        assert same(got, result), (x, got, result)


@EVERY
@pytest.mark.parametrize("step", [41, pytest.param(5, marks=pytest.mark.nightly)])
def test_all_of_half_precision(name: str, step: int, nearest: Nearest) -> None:
    """Every 41st float16, and every fifth in the deep test."""
    row = ROWS[name]
    bits = range(len(name), 65536, step)
    xs = [x for (x,) in (struct.unpack("e", struct.pack("H", b)) for b in bits) if math.isfinite(x)]
    for x, got in zip(xs, row.function(float16, xs), strict=True):
        if name.startswith(("exp", "sigmoid", "tanh", "sinh", "cosh")) and abs(x) > 800:
            continue
        value = true_value(row.oracle, x)
        if value is None:
            assert not math.isfinite(got), (name, x)
        elif value != 0:
            assert got == nearest(as_fraction(value), float16), (name, x)


@EVERY
def test_enclosures_contain_the_value(name: str) -> None:
    """The error bound of an enclosure holds at any precision, as results rely on it."""
    row, rng = ROWS[name], random.Random(name)
    for bits in (73, 146, 292, 584):
        checked = 0
        while checked < 15:
            x = drawn(rng, row.centres, rng.choice((float32, float64)))
            if not math.isfinite(x) or row.function.case(x, FORMATS[float64]) is not None:
                continue
            n, e, error = row.function.enclose(x, bits)
            with mpmath.workprec(3000):
                distance = abs(row.oracle(mpmath.mpf(x)) - mpmath.ldexp(mpmath.mpf(n), e))
                assert distance <= mpmath.ldexp(mpmath.mpf(error), e), (name, x, bits)
            assert abs(n).bit_length() - error.bit_length() >= bits - 8, (name, x, bits)
            checked += 1


# ---- functions of two variables ----------------------------------------------------------------------------


@DTYPES
def test_pow_is_rounded_once(dtype: DType, nearest: Nearest) -> None:
    rng, checked = random.Random(str(dtype)), 0
    while checked < 500:
        a, b = abs(drawn(rng, (1.0, 2.0, 10.0), dtype)), drawn(rng, (0.0, 0.5, 2.0, -3.0), dtype)
        if not (math.isfinite(a) and math.isfinite(b)) or a == 0 or abs(b * math.log(a)) > 3000:
            continue
        value = true_value(lambda p, q: p**q, a, b)
        assert power.pow(dtype, [a], [b])[0] == nearest(as_fraction(value), dtype), (a, b)
        checked += 1


@DTYPES
def test_exact_powers_and_ties(dtype: DType, nearest: Nearest) -> None:
    """Powers that are representable, or ties, where no enclosure could decide."""
    precision = FORMATS[dtype].precision
    tie = 1.0 + 2.0 ** -((precision + 1) // 2)  # its square has one bit too many
    cases = [
        *[(float(a), float(b)) for a in range(1, 30) for b in range(1, 12)],
        *[(a**2.0, 0.5) for a in (3.0, 5.0, 1.25, 1.5)],
        *[(a**4.0, 0.75) for a in (1.5, 3.0, 1.25)],
        *[(2.0**k, b) for k in (-14, -3, -1, 1, 2, 9) for b in (-1.0, -0.5, 0.25, 1.5, 3.0)],
        (tie, 2.0),
        (-tie, 2.0),
        (-3.0, 3.0),
        (-0.5, -5.0),
    ]
    for a, b in cases:
        if round_doubles([a], dtype) == [a]:
            with mpmath.workprec(2000):
                value = mpmath.mpf(a) ** mpmath.mpf(b)
            assert power.pow(dtype, [a], [b])[0] == nearest(as_fraction(value), dtype), (a, b)


def test_a_power_next_to_one_is_decided() -> None:
    near = math.nextafter(1.0, 2.0)
    assert power.pow(float64, [near], [0.5]) == [1.0]  # 1 + 2**-53 - 2**-107: below the tie
    assert power.pow(float64, [near], [1.5]) == [near + 2.0**-52]  # 1 + 3 * 2**-53 + ...: above the tie
    assert power.pow(float64, [near], [1e-300]) == [1.0]
    assert power.pow(float64, [near], [2.0**63]) == [inf]


POW_SPECIALS = [
    *[(x, z, 1.0) for x in (nan, inf, -inf, 0.0, -0.0, -2.0) for z in (0.0, -0.0)],
    *[(1.0, y, 1.0) for y in (nan, inf, -inf, 1e300)],
    *[(-1.0, y, 1.0) for y in (inf, -inf, 2.0, 2.0**60)],
    (-1.0, 3.0, -1.0),
    (-1.0, 0.5, nan),
    (-8.0, 1 / 3, nan),
    *[(nan, 1.0, nan), (2.0, nan, nan)],
    *[(0.0, y, r) for y, r in ((3.0, 0.0), (2.0, 0.0), (0.5, 0.0), (-3.0, inf), (-2.0, inf), (-0.5, inf))],
    *[(-0.0, y, r) for y, r in ((3.0, -0.0), (2.0, 0.0), (0.5, 0.0), (-3.0, -inf), (-2.0, inf), (-0.5, inf))],
    *[(inf, y, r) for y, r in ((2.0, inf), (-2.0, 0.0), (0.5, inf), (-inf, 0.0), (inf, inf))],
    *[(-inf, y, r) for y, r in ((3.0, -inf), (2.0, inf), (0.5, inf), (-3.0, -0.0), (-2.0, 0.0), (-0.5, 0.0))],
    *[(0.5, inf, 0.0), (0.5, -inf, inf), (-0.5, inf, 0.0), (2.0, -inf, 0.0), (-2.0, inf, inf)],
    *[(0.0, inf, 0.0), (0.0, -inf, inf), (-0.0, -inf, inf), (-inf, inf, inf), (-inf, -inf, 0.0)],
    *[(-1e3, 255.0, -inf), (10.0, 400.0, inf), (-1e3, -255.0, -0.0), (10.0, -400.0, 0.0)],
]


@DTYPES
@each_of(("a", "b", "expected"), POW_SPECIALS)
def test_specials_of_pow(a: float, b: float, expected: float, dtype: DType) -> None:
    b = round_doubles([b], dtype)[0]
    assert same(power.pow(dtype, [a], [b])[0], expected)


@DTYPES
def test_atan2_is_rounded_once(dtype: DType, nearest: Nearest) -> None:
    rng, checked = random.Random(str(dtype)), 0
    while checked < 400:
        y, x = drawn(rng, (0.0, 1.0), dtype), drawn(rng, (0.0, 1.0, -1.0), dtype)
        if not (math.isfinite(y) and math.isfinite(x)) or x == 0 or y == 0:
            continue
        with mpmath.workprec(2600):
            value = mpmath.atan2(y, x)
        expected = math.copysign(nearest(as_fraction(value), dtype), y)
        assert same(circular.atan2(dtype, [y], [x])[0], expected), (y, x)
        checked += 1


def near_sums(rng: random.Random, dtype: DType) -> tuple[float, float]:
    """Operands of logaddexp: any, or with a result near 0, or near the larger operand and a tie."""
    a = rng.choice((0.0, 1.0, -0.6931471805599453, -0.1, -1e-3, 1e-30, 300.0)) * rng.choice(
        (1.0, rng.random())
    )
    b = a - rng.choice((0.0, 2.0 ** rng.uniform(-30, 9)))
    if a < 0 and rng.random() < 0.6:  # e**a + e**b is next to 1
        b = math.log(-math.expm1(a))
    elif a and rng.random() < 0.5:  # the smaller operand adds about half an ulp
        b = a + math.log(abs(a)) - math.log(2.0) * (FORMATS[dtype].precision + rng.uniform(-5, 5))
    a, b = round_doubles([a, b], dtype)
    return (a, b) if rng.random() < 0.5 else (b, a)


def _logaddexp(a: Any, b: Any) -> Any:
    return mpmath.log(mpmath.exp(a) + mpmath.exp(b))


PAIRS = {
    "pow": (power.pow, lambda a, b: a**b),
    "atan2": (circular.atan2, mpmath.atan2),
    "logaddexp": (logarithms.logaddexp, _logaddexp),
}


@pytest.mark.parametrize("name", PAIRS)
def test_enclosures_of_two_operands_contain_the_value(name: str) -> None:
    function, oracle = PAIRS[name]
    rng = random.Random(0)
    for bits in (73, 146, 292):
        checked = 0
        while checked < 60:
            a, b = abs(drawn(rng, (1.0, 2.0), float64)), drawn(rng, (0.5, 700.0, 1e6, 1e15), float64)
            if not math.isfinite(a) or not math.isfinite(b):
                continue
            if name == "logaddexp":
                a, b = near_sums(rng, float64)
            elif rng.random() < 0.3:  # powers of numbers next to one
                a, b = 1.0 + a % 1.0 * 2.0**-30, rng.uniform(-1e9, 1e9)
            if function.case(a, b, FORMATS[float64]) is not None:
                continue
            n, e, error = function.enclose(a, b, bits)
            with mpmath.workprec(3000):
                distance = abs(oracle(mpmath.mpf(a), mpmath.mpf(b)) - mpmath.ldexp(mpmath.mpf(n), e))
                assert distance <= mpmath.ldexp(mpmath.mpf(error), e), (a, b, bits)
            checked += 1


@DTYPES
def test_logaddexp_is_rounded_once(dtype: DType, nearest: Nearest) -> None:
    rng = random.Random(str(dtype))
    for _ in range(300):
        a, b = near_sums(rng, dtype)
        with mpmath.workprec(3000):
            value = _logaddexp(mpmath.mpf(a), mpmath.mpf(b))
        assert logarithms.logaddexp(dtype, [a], [b])[0] == nearest(as_fraction(value), dtype), (a, b)


@DTYPES
@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (inf, inf, inf),
        (-inf, -inf, -inf),
        (inf, -inf, inf),
        (-inf, 2.0, 2.0),
        (-inf, 0.0, 0.0),
        (0.0, -1e4, 0.0),
        (5.0, -1e4, 5.0),
        (nan, 1.0, nan),
        (nan, inf, nan),
    ],
)
def test_specials_of_logaddexp(a: float, b: float, expected: float, dtype: DType) -> None:
    assert same(logarithms.logaddexp(dtype, [a], [b])[0], expected)
    assert same(logarithms.logaddexp(dtype, [b], [a])[0], expected)


def test_logaddexp_where_the_larger_operand_cancels() -> None:
    value = logarithms.logaddexp(float64, [0.0], [-740.0])
    assert value == exponentials.exp(float64, [-740.0])
    assert logarithms.logaddexp(float64, [1e308], [1e308]) == [1e308]


@DTYPES
def test_hypot_is_rounded_once(dtype: DType, nearest: Nearest) -> None:
    rng, checked = random.Random(str(dtype)), 0
    while checked < 400:
        a, b = (drawn(rng, (0.0, 1.0, 3.0), dtype) for _ in range(2))
        if not (math.isfinite(a) and math.isfinite(b)):
            continue
        with mpmath.workprec(2600):
            value = mpmath.sqrt(mpmath.mpf(a) ** 2 + mpmath.mpf(b) ** 2)
        assert power.hypot(dtype, [a], [b])[0] == nearest(as_fraction(value), dtype), (a, b)
        checked += 1


@DTYPES
def test_exact_hypotenuses_ties_and_specials(dtype: DType, nearest: Nearest) -> None:
    def hypot(a: float, b: float) -> float:
        return power.hypot(dtype, [a], [b])[0]

    assert hypot(3.0, -4.0) == 5.0
    assert hypot(0.0, -0.0) == 0.0
    assert hypot(-7.0, 0.0) == 7.0
    # Pythagorean triples whose hypotenuse is odd and has one bit too many: a tie.
    m, n = {bfloat16: (16, 11), float16: (40, 25), float32: (3500, 2499), float64: (90000000, 50000001)}[
        dtype
    ]
    tie = m * m + n * n
    assert tie.bit_length() == FORMATS[dtype].precision + 1
    assert hypot(float(m * m - n * n), float(2 * m * n)) == nearest(Fraction(tie), dtype)
    assert hypot(nan, inf) == hypot(-inf, 1.0) == inf
    assert math.isnan(hypot(nan, 1.0))


@pytest.mark.parametrize("y", [0.0, -0.0, 1.0, -1.0, inf, -inf, nan])
@pytest.mark.parametrize("x", [0.0, -0.0, 1.0, -1.0, inf, -inf, nan])
def test_specials_of_atan2(y: float, x: float) -> None:
    assert same(circular.atan2(float64, [y], [x])[0], math.atan2(y, x))


def test_tiny_angles_are_quotients_rounded_down() -> None:
    assert circular.atan2(float64, [1e-30], [1.0]) == [1e-30]
    assert circular.atan2(float64, [5e-324], [2.0]) == [0.0]  # just below the tie at half the least number
    assert circular.atan2(float64, [15e-324], [2.0]) == [5e-324]  # just below 1.5 times that number
    assert same(circular.atan2(float64, [-5e-324], [1e300])[0], -0.0)


# ---- laws --------------------------------------------------------------------------------------------------


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.floats(width=32), max_size=8))
@EVERY
def test_each_element_is_computed_alone(name: str, xs: list[float]) -> None:
    """A result does not depend on other elements, and nothing raises."""
    function = ROWS[name].function
    together = function(float32, xs)
    assert all(same(y, function(float32, [x])[0]) for x, y in zip(xs, together, strict=True))


@settings(max_examples=examples(50), deadline=None)
@given(st.floats(), st.floats())
@pytest.mark.parametrize("name", ["exp", "expm1", "sigmoid", "tanh", "sinh", "erf", "log1p", "asinh", "atan"])
def test_increasing_functions_increase(name: str, a: float, b: float) -> None:
    low, high = sorted((a, b)) if a == a and b == b else (0.0, 1.0)
    y, z = ROWS[name].function(float64, [low, high])
    assert y <= z or y != y


@pytest.mark.parametrize("x", [1.7051147774893636, 1.4429799378532553, 3.0, -372.6177199547673])
def test_sech_squared_is_within_two_ulps(x: float) -> None:
    """It has no enclosure, only its scalar definition in double."""
    with mpmath.workprec(250):
        exact = 1 / mpmath.cosh(x) ** 2
        assert abs(scalar.sech_squared(x) - exact) <= 2.5 * math.ulp(float(exact))
