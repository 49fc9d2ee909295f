"""Elementary functions in kernels: errors against mpmath, edges and exact results against numpy's backend, vectors."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import tensorken as tk
from tensorken.programs.passes.pipeline import optimised as optimised_program
from tensorken_core.language.op import OPS
from tensorken_llvm import program as programs
from tensorken_llvm.machine import optimised_module
from tensorken_llvm.scalars import is_supported
from tensorken_numpy.backend import Numpy
from tools import coefficients
from tools.numerics import ROWS, distance, operands, published, worst

Array = np.ndarray[Any, Any]

NUMPY = Numpy()
BITS = {"float16": np.int16, "float32": np.int32, "float64": np.int64}
DTYPES = ("float32", "float64")
FLOAT_OPS = [op.name for op in OPS.values() if op.elementwise and is_supported(op.name, tk.float32)]
UNARY = [
    "neg", "square", "abs", "sign", "relu", "reciprocal", "round", "trunc", "ceil", "floor", "sqrt", "signbit",
    "erfinv", *ROWS,
]  # fmt: skip
BINARY = ["pow", "atan2", "hypot", "logaddexp", "remainder", "copysign", "maximum", "minimum", "nextafter"]
EXACT = {
    "neg", "square", "abs", "sign", "relu", "reciprocal", "round", "trunc", "ceil", "floor", "sqrt", "signbit",
    "remainder", "copysign", "maximum", "minimum", "nextafter",
}  # fmt: skip
LEFT_TO_NUMPY = {("nextafter", "float16")}


def compiled(name: str, *xs: Array) -> tuple[Any, Any]:
    """The machine code of an op, and its program."""
    traced = tk.trace(lambda *a: a[0].apply(OPS[name], *a[1:]))(*[tk.tensor(x, backend=NUMPY) for x in xs])
    program = optimised_program(traced, NUMPY)
    found = programs.compiled(program, NUMPY)
    assert found is not None, f"{name} is not compiled"
    return found, program


def both(name: str, *xs: Array) -> tuple[Array, Array]:
    """The results of the machine code and of numpy's backend."""
    function, program = compiled(name, *xs)
    with np.errstate(all="ignore"):
        return function(xs)[0], np.asarray(program.replay(NUMPY, xs)[0])


def assert_near(name: str, xs: tuple[Array, ...], found: Array, expected: Array) -> None:
    """Equal zeros, infinities and NaN; others within a few units in the last place; exact ops are equal."""
    assert found.dtype == expected.dtype and found.shape == expected.shape
    same = found == expected
    if expected.dtype != np.bool_:
        units = 0 if name in EXACT else 8
        if not (units == 0 and name in ("maximum", "minimum", "relu")):  # either zero
            same &= np.signbit(found) == np.signbit(expected)
        same |= np.isnan(found) & np.isnan(expected)
        near = np.isfinite(found) & np.isfinite(expected) & (expected != 0)
        wide, true = found[near].astype(np.longdouble), expected[near].astype(np.longdouble)
        if units:
            sizes = np.abs(expected[near])
            if name == "logaddexp":  # the result may be nearly 0
                sizes = np.maximum(sizes, np.abs(np.maximum(xs[0], xs[1])[near]))
            with np.errstate(over="ignore"):  # of the largest number
                unit = np.spacing(sizes).astype(np.longdouble)
            same[near] |= np.abs(wide - true) <= units * unit
    if name in ("copysign", "signbit"):
        same |= np.isnan(xs[-1]) | np.isnan(xs[0])
    (wrong,) = np.nonzero(~same.reshape(-1))
    assert not wrong.size, [(*[x[i] for x in xs], found[i], expected[i]) for i in wrong[:5]]


def of_all_binades(dtype: str, count: int, seed: int) -> Array:
    """Numbers with random bits: of all binades and signs, with some infinities and NaN."""
    bits = np.iinfo(BITS[dtype])
    drawn = np.random.default_rng(seed).integers(bits.min, bits.max, count, BITS[dtype], endpoint=True)
    return drawn.view(dtype)


@cache
def edges(dtype: str) -> Array:
    """Zeros, infinities, NaN, subnormal, smallest and largest numbers, those around 1, halves and integers."""
    facts = np.finfo(dtype)
    positive = [
        0.0,
        0.5,
        1.0,
        1.5,
        2.0,
        2.5,
        3.0,
        10.0,
        30.0,
        np.inf,
        np.nan,
        1e-20,
        1e20,
        88.72284,
        709.7828,
    ]
    positive += [
        facts.max,
        facts.tiny,
        facts.smallest_subnormal,
        3 * facts.smallest_subnormal,
        facts.tiny / 3,
    ]
    positive += [1 + facts.eps, 1 - facts.epsneg, 103.97, 745.13, 1 / facts.eps, 2 / facts.eps + 2]
    with np.errstate(over="ignore"):
        x = np.array(positive).astype(dtype)
    return np.concatenate([x, -x])


# ---- errors ------------------------------------------------------------------------------------------------


def check_bound(name: str, dtype: str, density: int) -> None:
    error, at = worst(name, dtype, "value", both(name, operands(name, dtype, density))[0], density)
    assert error <= published()[name][DTYPES.index(dtype)], f"{error:.2f} units at {at!r}"


@pytest.mark.parametrize("name", ROWS)
def test_errors_are_within_the_published_bounds(name: str) -> None:
    """Of float64; float32 is compared with float64 below."""
    check_bound(name, "float64", 1)


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ROWS)
def test_errors_of_many_operands_are_within_the_published_bounds(name: str, dtype: str) -> None:
    check_bound(name, dtype, 10)


def check_sweep(name: str, count: int) -> None:
    """float32 against numpy's float64; the error of numpy in float64 is no part of a float32 unit."""
    row, rng = ROWS[name], np.random.default_rng(3)
    intervals = [rng.uniform(*interval, count // len(row.intervals)) for interval in row.intervals]
    x = np.concatenate(
        [of_all_binades("float32", count, 4), *[drawn.astype(np.float32) for drawn in intervals]]
    )
    found = both(name, x)[0]
    with np.errstate(all="ignore"):
        wide = compiled(name, x.astype(np.float64))[1].replay(NUMPY, [x.astype(np.float64)])[0]
        finite = np.isfinite(found) & np.isfinite(x) & (np.abs(wide) <= np.finfo(np.float32).max)
        unit = np.spacing(np.abs(wide[finite]).astype(np.float32)).astype(np.float64)
        errors = np.abs(found[finite] - wide[finite]) / unit
        assert np.array_equal(np.isnan(found), np.isnan(wide))
        overflowing = np.abs(wide) > float(np.finfo(np.float32).max) * (1 + 2.0**-22)
    assert np.isinf(found[overflowing]).all()
    place = int(errors.argmax())
    bound = published()[name][0]
    assert errors[place] <= bound, f"{errors[place]:.2f} units at {x[finite][place]!r}"


@pytest.mark.parametrize("name", ROWS)
def test_float32_of_all_binades(name: str) -> None:
    check_sweep(name, 10**5)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ROWS)
def test_float32_of_all_binades_densely(name: str) -> None:
    check_sweep(name, 10**7)


LONG: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in ("exp", "exp2", "expm1", "log", "log1p", "log2", "log10")},
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.logaddexp(x, np.longdouble(0)),
}
"""Functions of long double."""


@pytest.mark.parametrize("name", LONG)
def test_float64_against_long_double(name: str) -> None:
    """Many more operands than mpmath could take."""
    if np.finfo(np.longdouble).nmant < 63:
        pytest.skip("long double is not longer than float64 here")
    row, rng = ROWS[name], np.random.default_rng(6)
    x = np.concatenate([rng.uniform(*interval, 40_000) for interval in row.intervals])
    x = x[[row.defined(float(v)) for v in x]]
    found = both(name, x)[0]
    with np.errstate(all="ignore"):
        true = LONG[name](x.astype(np.longdouble))
        fits = (np.abs(true) > np.finfo(np.float64).tiny) & (np.abs(true) < np.finfo(np.float64).max)
    assert np.count_nonzero(fits) > len(x) / 3
    unit = np.spacing(np.abs(true[fits]).astype(np.float64)).astype(np.longdouble)
    errors = (np.abs(found[fits] - true[fits]) / unit).astype(np.float64)
    place = int(errors.argmax())
    assert errors[place] <= published()[name][1], f"{errors[place]:.2f} units at {x[fits][place]!r}"


@pytest.mark.parametrize("name", ROWS)
def test_all_float16_numbers_are_rounded_once(name: str) -> None:
    """The error of the function in float32 may change the rounding of a number that is nearly half-way."""
    x = np.arange(-(2**15), 2**15).astype(np.int16).view(np.float16)
    found = both(name, x)[0]
    with np.errstate(all="ignore"):
        wide = compiled(name, x.astype(np.float64))[1].replay(NUMPY, [x.astype(np.float64)])[0]
        narrow = wide.astype(np.float16)
    finite = np.isfinite(narrow) & np.isfinite(found)
    with np.errstate(over="ignore"):  # of the largest number
        unit = np.spacing(np.abs(narrow[finite])).astype(np.float64)
    assert (np.abs(found[finite] - wide[finite]) <= 0.51 * unit).all()
    assert np.array_equal(found[~finite], narrow[~finite], equal_nan=True)


BINARY_ORACLES: dict[str, tuple[Callable[[Any, Any], Any], float]] = {
    "pow": (mpmath.power, 2.0),
    "atan2": (mpmath.atan2, 4.0),
    "hypot": (mpmath.hypot, 4.0),
}


def drawn_pairs(name: str, dtype: str, count: int) -> tuple[Array, Array]:
    """Operands, for pow such that many results are neither zero nor infinite."""
    rng = np.random.default_rng(9)
    facts = np.finfo(dtype)
    a = np.ldexp(rng.uniform(1, 2, count), rng.integers(facts.minexp - 10, facts.maxexp, count))
    a[: count // 2] = rng.uniform(0.3, 3, count // 2)
    if name == "pow":
        b = rng.uniform(facts.minexp, facts.maxexp, count) / np.log2(a)
        b[::5] = rng.integers(-5, 6, len(b[::5]))
    else:
        a = np.ldexp(a, -40)
        b = a * np.ldexp(rng.uniform(-2, 2, count), rng.integers(-20, 20, count))
    return a.astype(dtype), b.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY_ORACLES)
def test_errors_of_two_operands(name: str, dtype: str) -> None:
    oracle, bound = BINARY_ORACLES[name]
    a, b = drawn_pairs(name, dtype, 2000)
    found = both(name, a, b)[0]
    with mpmath.workprec(200):
        errors = [
            distance(float(y), oracle(mpf(float(p)), mpf(float(q))), dtype)
            for p, q, y in zip(a, b, found, strict=True)
            if np.isfinite(p) and np.isfinite(q) and p and q
        ]
    assert max(errors) <= bound


@pytest.mark.parametrize("dtype", DTYPES)
def test_logaddexp_is_near_relative_to_its_larger_operand(dtype: str) -> None:
    rng = np.random.default_rng(2)
    a, b = [rng.uniform(-50, 50, 1000).astype(dtype) for _ in range(2)]
    found = both("logaddexp", a, b)[0]
    with mpmath.workprec(200):
        for p, q, y in zip(a, b, found, strict=True):
            true = mpmath.log(mpmath.exp(mpf(float(p))) + mpmath.exp(mpf(float(q))))
            unit = np.spacing(max(abs(p), abs(q), abs(y)))
            assert abs(mpf(float(y)) - true) <= 4 * float(unit), (p, q)


@pytest.mark.parametrize("dtype", DTYPES)
def test_erfinv_is_near(dtype: str) -> None:
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.uniform(-1, 1, 300), 1 - np.exp(rng.uniform(-30, 0, 300))]).astype(dtype)
    x = x[np.abs(x) < 1]
    found = both("erfinv", x)[0]
    with mpmath.workprec(200):
        for v, y in zip(x, found, strict=True):
            true = mpmath.erfinv(mpf(float(v)))
            slope = mpmath.exp(true * true) * mpmath.sqrt(mpmath.pi) / 2
            limit = 6 * float(np.spacing(abs(y))) + slope * float(np.spacing(abs(v)))
            assert abs(mpf(float(y)) - true) <= limit, v


@pytest.mark.parametrize(("name", "oracle"), [("sin", mpmath.sin), ("cos", mpmath.cos), ("tan", mpmath.tan)])
def test_large_operands_next_to_multiples_of_half_pi(name: str, oracle: Callable[[Any], Any]) -> None:
    """J.-M. Muller, "Elementary Functions", section 11: the float64 nearest to a multiple of pi / 2, and others."""
    x = np.array(
        [6381956970095103 * 2.0**797, 5.319372648326541e255, 1e22, 2.0**1023, np.finfo(np.float64).max]
    )
    found = both(name, np.concatenate([x, -x]))[0]
    with mpmath.workprec(1400):
        for v, y in zip(np.concatenate([x, -x]), found, strict=True):
            true = oracle(mpf(float(v)))
            with mpmath.workprec(200):
                assert distance(float(y), +true, "float64") <= 2


# ---- exact results -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_are_exact(dtype: str) -> None:
    facts = np.finfo(dtype)
    low = facts.minexp - facts.nmant
    exponents = np.arange(low, facts.maxexp)
    powers = np.ldexp(np.ones(len(exponents), dtype), exponents)
    assert np.array_equal(both("exp2", exponents.astype(dtype))[0], powers)
    assert np.array_equal(both("log2", powers)[0], exponents)
    decimal = np.arange(0, 11 if dtype == "float32" else 23)
    tens = np.array([float(10 ** int(i)) for i in decimal], dtype)
    assert np.array_equal(both("log10", tens)[0], decimal)
    assert np.array_equal(both("pow", np.full(len(tens), 10, dtype), decimal.astype(dtype))[0], tens)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["remainder", "nextafter", "copysign"])
def test_exact_ops_of_random_bits(name: str, dtype: str) -> None:
    a, b = of_all_binades(dtype, 50_000, 1), of_all_binades(dtype, 50_000, 2)
    rng = np.random.default_rng(3)
    with np.errstate(all="ignore"):
        b[::2] = a[::2] * rng.uniform(1e-6, 2, len(b[::2])).astype(dtype)  # moderate quotients
        b[::8] = a[::8] / rng.integers(1, 9, len(b[::8])).astype(dtype)  # whole ones, rounded
    assert_near(name, (a, b), *both(name, a, b))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_powers_and_remainders_of_integers(dtype: str) -> None:
    bits, rng = np.iinfo(dtype), np.random.default_rng(5)
    some = [0, 1, -1, 2, -2, 3, 7, -10, bits.max, bits.min, bits.min + 1]
    pairs = np.array(list(itertools.product(some, some)), dtype)
    a = np.concatenate([pairs[:, 0], rng.integers(-20, 20, 1000).astype(dtype)])
    b = np.concatenate([pairs[:, 1], rng.integers(-3, 20, 1000).astype(dtype)])
    for name in ("integer_pow", "remainder"):
        found, expected = both(name, a, b)
        assert np.array_equal(found, expected), name


# ---- edges -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", *DTYPES])
@pytest.mark.parametrize("name", sorted(set(UNARY)))
def test_edges_of_one_operand(name: str, dtype: str) -> None:
    x = edges(dtype)
    assert_near(name, (x,), *both(name, x))


@pytest.mark.parametrize("dtype", ["float16", *DTYPES])
@pytest.mark.parametrize("name", BINARY)
def test_edges_of_two_operands(name: str, dtype: str) -> None:
    if (name, dtype) in LEFT_TO_NUMPY:
        assert not is_supported(name, tk.float16)
        return
    a, b = [np.ascontiguousarray(v.reshape(-1)) for v in np.meshgrid(edges(dtype), edges(dtype))]
    assert_near(name, (a, b), *both(name, a, b))


def test_every_elementwise_op_of_floats_is_compiled() -> None:
    """Those of integers apart, that none is left to numpy by accident."""
    others = {"integer_pow", "from_bits", "floor_divide"}
    others |= {"bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right"}
    elementwise = {op.name for op in OPS.values() if op.elementwise}
    for dtype in (tk.float32, tk.float64):
        assert {name for name in elementwise if not is_supported(name, dtype)} == others
    assert set(FLOAT_OPS) >= {*UNARY, *BINARY}


# ---- vectors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted({*UNARY, *BINARY}))
def test_loops_are_vectorised(name: str, dtype: str) -> None:
    """The loop over a large array stores vectors, and calls nothing but rare computations."""
    x = np.ones(1000, dtype)
    function, _ = compiled(name, *[x] * (2 if name in BINARY else 1))
    module = optimised_module(function.source().text())
    (kernel,) = [f for f in module.functions if f.name == "kernel"]
    assert re.search(r"store <\d+ x (float|double|i8|i32|i64)>", str(kernel)), str(kernel)[:2000]
    called = re.findall(r"call [^@\n]*@([\w.]+)\(", str(kernel))
    assert all(f.startswith("llvm.") or ".rare." in f for f in called), called


# ---- the numbers -------------------------------------------------------------------------------------------


def test_the_coefficients_are_what_the_tool_computes() -> None:
    assert coefficients.LLVM_FILE.read_text(encoding="utf-8") == coefficients.render_llvm()
