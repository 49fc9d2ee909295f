"""The oracles of elementwise ops and casts, compared with C, exact fractions, higher precision and the reference."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tensorken_conformance.laws.elementwise import takes
from tensorken_conformance.numbers.rounding import FORMATS, nearest
from tensorken_conformance.operands import pools
from tensorken_conformance.oracles import casts, elementwise
from tensorken_conformance.oracles.elementwise_functions import BINARY, GUARD, UNARY, exactly, mp
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import DTYPES, bfloat16, float16, float32, float64
from tensorken_core.language.op import OPS
from tensorken_reference.backend import Reference
from tensorken_reference.rounding import round_doubles

inf, nan = math.inf, math.nan
FLOATS = (float16, float32, float64)
SPECIALS = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -3.0, -2.5, 1e300, -1e-300, 5e-324, inf, -inf, nan)


def same(a: Any, b: Any) -> bool:
    """Whether two numbers are equal; NaN equals NaN, and zeros must have the same sign."""
    return (a != a and b != b) or (a == b and math.copysign(1.0, a) == math.copysign(1.0, b))


# ---- rounding ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nearest_rounds_to_the_nearest_representable_number(dtype: Any) -> None:
    rng, form = random.Random(1), FORMATS[dtype.name]
    scalar = np.dtype(dtype.name).type
    for _ in range(2000):
        n = rng.choice((-1, 1)) * rng.getrandbits(rng.randrange(1, 140)) or 1
        e = rng.randrange(form.least - 150, form.top)
        rounded = nearest(n, e, form)
        assert rounded is not None
        true = Fraction(n) * Fraction(2) ** e
        if math.isinf(rounded):
            assert abs(true) >= Fraction(2) ** form.top - Fraction(2) ** (form.top - form.precision - 1)
            continue
        sides = [float(np.nextafter(scalar(rounded), scalar(side))) for side in (-inf, inf)]
        around = [Fraction(side) for side in sides if math.isfinite(side)]
        error = abs(true - Fraction(rounded))
        assert all(error <= abs(true - side) for side in around)
        if any(error == abs(true - side) for side in around):
            assert not int(Fraction(rounded) / Fraction(2) ** form.least) & 1 or abs(rounded) >= form.tiny * 2
        assert math.copysign(1.0, rounded) == math.copysign(1.0, n)


def test_ties_round_to_even_and_an_enclosure_of_a_tie_is_undecided() -> None:
    form = FORMATS["float32"]
    assert [nearest(2 * n + 1, 0, form) for n in (2**23, 2**23 + 1)] == [2.0**24, 2.0**24 + 4]
    assert nearest((2**24 + 1) << 20, 0, form, error=1) is None
    assert nearest(((2**24 + 1) << 20) + 2, 0, form, error=1) == (2.0**24 + 2) * 2**20
    assert nearest(1, -150, form) == 0.0
    assert nearest(3, -151, form) == 2.0**-149
    assert str(nearest(-1, -5000, form)) == "-0.0"


# ---- functions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pow", "atan2", "hypot"])
def test_special_pairs_equal_those_of_c(name: str) -> None:
    def in_c(a: float, b: float) -> float:
        try:
            return float(getattr(math, name)(a, b))
        except OverflowError:
            return inf
        except ValueError:  # Python raises where C returns an infinity of a's sign or NaN
            odd = b == math.floor(b) and b % 2 == 1 if math.isfinite(b) else False
            return (math.copysign(inf, a) if odd else inf) if a == 0 else nan

    pairs = [(a, b) for a in SPECIALS for b in SPECIALS]
    a, b = (np.array(column) for column in zip(*pairs, strict=True))
    ours = elementwise.expected(OPS[name], float64, (a, b))
    for (p, q), y in zip(pairs, ours.tolist(), strict=True):
        z = in_c(p, q)
        assert same(y, z) or (z == z and abs(y - z) <= 2 * math.ulp(z)), f"{name}({p}, {q})"


@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "acosh", "erf", "log1p", "expm1", "atanh"])
def test_special_operands_equal_those_of_c(name: str) -> None:
    for x in (0.0, -0.0, 1.0, -1.0, inf, -inf, nan, -2.0):
        try:
            z = float(getattr(math, name)(x))
        except ValueError:
            assert elementwise.expected(OPS[name], float64, (np.array([x]),))[0] in (inf, -inf) or np.isnan(
                elementwise.expected(OPS[name], float64, (np.array([x]),))[0]
            )
            continue
        (y,) = elementwise.expected(OPS[name], float64, (np.array([x]),)).tolist()
        assert same(y, z) or abs(y - z) <= math.ulp(z), f"{name}({x})"


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_values_are_accurate_to_the_guard_bits(name: str) -> None:
    """The error relative to a computation with four times the bits is below the guard bits."""
    function = UNARY.get(name) or BINARY[name]
    for values in ("normals", "extremes", "subnormals", "ties"):
        rows = pools.rows(OPS[name], float64, values, 3, 24)
        for point in zip(*[column.tolist() for column in rows], strict=True):
            if function.fact(*point) is not None:
                continue
            ys = []
            for bits in (128, 512):
                mp.prec = bits + GUARD
                ys.append(
                    function.value(
                        *(map(mp.mpf, point) if isinstance(function, type(UNARY["exp"])) else point)
                    )
                )
            mp.prec = 600
            assert abs(ys[0] - ys[1]) <= abs(ys[1]) * mp.ldexp(1, -128 - 16), f"{name}{point}"


def test_powers_that_are_ties_round_to_even() -> None:
    form = FORMATS["float32"]
    for root in (4097.0, 4099.0, 5793.0 - 2):
        exact = int(root) ** 2
        assert exact.bit_length() == 25
        assert (
            exactly(BINARY["pow"], (root, 2.0), form) == float(np.float32(exact)) == nearest(exact, 0, form)
        )
    assert exactly(UNARY["exp2"], (-150.0,), form) == 0.0
    assert exactly(UNARY["exp2"], (math.nextafter(-150.0, 0.0),), form) == 2.0**-149


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "square", "remainder", "hypot"])
def test_arithmetic_is_correctly_rounded(name: str, dtype: Any) -> None:
    functions = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
        "square": lambda a: a * a,
        "remainder": lambda a, b: a - (a / b).__floor__() * b,
    }
    form, ties = FORMATS[dtype.name], 0
    for values in ("ties", "extremes", "normals", "subnormals"):
        rows = pools.rows(OPS[name], dtype, values, 5, 96)
        ours = elementwise.expected(OPS[name], dtype, rows).tolist()
        for point, y in zip(zip(*[column.tolist() for column in rows], strict=True), ours, strict=True):
            if not all(math.isfinite(v) and v for v in point):
                continue
            exact = [Fraction(v) for v in point]
            if name == "hypot":
                square = exact[0] ** 2 + exact[1] ** 2
                even = 1 + (square.denominator.bit_length() - 1) % 2
                n, d = square.numerator * even, square.denominator * even  # d is a power of 4
                root = math.isqrt(n << 300)
                e, is_square = -150 - (d.bit_length() - 1) // 2, root * root == n << 300
                true = nearest(2 * root + (not is_square), e - 1, form)
                odd = root >> (root & -root).bit_length() - 1
                ties += is_square and odd.bit_length() == form.precision + 1
            else:
                value = functions[name](*exact)
                n, d = value.numerator, value.denominator
                scaled = (n << 2300) // d
                true = nearest(2 * scaled + ((n << 2300) % d != 0), -2301, form)
                odd = abs(n) >> (abs(n) & -abs(n)).bit_length() - 1 if n else 0
                ties += d & (d - 1) == 0 and odd.bit_length() == form.precision + 1
            assert same(y, true) or y == true == 0.0, f"{name}{point}"
    assert ties or name == "div", "no result is a tie"


REFERENCE_IN_DOUBLE = {"erfinv", "softplus", "gaussian", "sech_squared"}


@pytest.mark.parametrize("name", [op.name for op in OPS.values() if op.elementwise])
def test_the_reference_equals_the_oracle(name: str) -> None:
    """The two share no code."""
    subject, op = Subject(Reference(), "reference"), OPS[name]
    for dtype in DTYPES.values():
        if not takes(subject, op, dtype) or (name in REFERENCE_IN_DOUBLE and dtype is float64):
            continue
        for values in pools.classes(dtype):
            rows = pools.rows(op, dtype, values, 11, 48)
            dtypes = [DTYPES["bool"] if c.dtype == bool else dtype for c in rows]
            tensors = [subject.tensor(c, d) for c, d in zip(rows, dtypes, strict=True)]
            got = subject.read(subject.run(op, tensors))
            true = elementwise.expected(op, dtype, rows)
            any_zero = (
                (true == 0) if name in ("relu", "maximum", "minimum") and dtype.kind == "float" else False
            )
            agrees = np.array([same(float(p), float(q)) for p, q in zip(got, true, strict=True)]) | (
                any_zero & (got == true)
            )
            if name == "to_bits":
                agrees |= np.isnan(rows[0])
            assert agrees.all(), [column[~agrees][:3] for column in (*rows, got, true)]


# ---- casts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", DTYPES.values(), ids=str)
@pytest.mark.parametrize("source", DTYPES.values(), ids=str)
def test_casts_equal_those_of_numpy_within_the_range(source: Any, target: Any) -> None:
    for values in pools.classes(source):
        (x,) = pools.rows(OPS["cast"], source, values, 2, 192)
        if source.kind == "float" and target.kind == "int":
            x = x[np.abs(x.astype(np.float64)) < 2.0 ** (8 * target.itemsize - 1)]
            x = x if target.signed else x[x >= 0]
        with np.errstate(all="ignore"):
            true = x.astype(target.name)
        if target is bfloat16 and source is float64:  # numpy's conversion rounds twice
            true = np.array(round_doubles(x.tolist(), target), target.name)
        got = casts.cast(x, target)
        assert got.dtype == true.dtype
        assert all(same(float(p), float(q)) for p, q in zip(got, true, strict=True))


def test_casts_of_numbers_beyond_the_range_saturate() -> None:
    x = np.array([inf, -inf, nan, 2.0**31, -(2.0**31) - 1, 2.0**63, -(2.0**63)])
    assert casts.cast(x, DTYPES["int32"]).tolist() == [
        2**31 - 1,
        -(2**31),
        0,
        2**31 - 1,
        -(2**31),
        2**31 - 1,
        -(2**31),
    ]
    assert casts.cast(x, DTYPES["int64"]).tolist() == [
        2**63 - 1,
        -(2**63),
        0,
        2**31,
        -(2**31) - 1,
        2**63 - 1,
        -(2**63),
    ]
