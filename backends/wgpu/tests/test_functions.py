"""The functions in WGSL: their errors, and their special values.

The oracles are mpmath, and the reference backend, whose results are the exact values rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import tensorken as tk
from tensorken_core.language.op import OPS
from tensorken_core.tensor.dispatch import apply
from tensorken_wgpu.wgsl.functions import DEFINITIONS, needed

pytestmark = pytest.mark.slow

Array = np.ndarray[Any, Any]
FLOATS = ("float16", "float32", "float64")

BOUND = {"float16": 0.501, "float32": 1.1, "float64": 1.1}
"""Units in the last place, of the worst of all functions: those of float16 are rounded from float32."""

UNARY: dict[str, Callable[[Any], Any]] = {
    "exp": mpmath.exp,
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "log": mpmath.log,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
}


@pytest.fixture(params=FLOATS)
def dtype(request: Any, raw: Any) -> str:
    """Each float dtype of the device."""
    name: str = request.param
    if name not in raw.capabilities.dtypes:
        pytest.skip(f"{raw.device.name} has no {name}")
    return name


def computed(backend: Any, name: str, *operands: Array) -> Array:
    """The result of an op."""
    return np.asarray(apply(OPS[name], [tk.tensor(x, backend=backend) for x in operands]))


def some(dtype: str, count: int, seed: int = 0) -> Array:
    """Numbers of all magnitudes, drawn by their bits."""
    info = np.finfo(dtype)
    bits = np.random.default_rng(seed).integers(0, 2**info.bits, count, dtype=np.uint64)
    x = bits.astype(f"u{info.bits // 8}").view(dtype)
    return x[np.isfinite(x)]


def operands_of(name: str, dtype: str, count: int = 300) -> Array:
    """Numbers where the function does most of its work, at the ends of its range, and of all magnitudes."""
    info, draw = np.finfo(dtype), np.random.default_rng(1)
    near = draw.normal(size=count)
    least, most = info.minexp - info.nmant - 2, info.maxexp
    wide = {
        "exp": draw.uniform(least * math.log(2), most * math.log(2), count),
        "exp2": draw.uniform(least, most, count),
        "log": np.exp(near),
        "sin": np.concatenate([near * 100, np.arange(1, count) * (math.pi / 2)]),
        "cos": np.concatenate([near * 100, np.arange(1, count) * (math.pi / 2)]),
    }[name]
    x = np.concatenate([near.astype(dtype), (1 + near / 64).astype(dtype), wide.astype(dtype)])
    x = np.concatenate([x, some(dtype, count)])
    if name == "log":
        x = np.concatenate([np.abs(x), np.full(1, info.smallest_subnormal) * np.arange(1, 9).astype(dtype)])
        return np.extract(x > 0, x)
    if name in ("sin", "cos"):  # the floats that are nearest to multiples of pi/2
        nearest = {"float32": [16367173.0 * 2.0**72], "float64": [6381956970095103.0 * 2.0**797]}
        return np.concatenate([x, np.array(nearest.get(dtype, []), dtype)])
    return x


def units(found: Array, expected: list[Any]) -> Array:
    """The errors in ulps of the true values; beyond the range in ulps of its end."""
    info = np.finfo(found.dtype)
    least, largest = int(info.minexp), mpmath.mpf(float(info.max))
    end = mpmath.mpf(2) ** int(info.maxexp)
    off = []
    for value, true in zip(found.tolist(), expected, strict=True):
        near = end * mpmath.sign(value) if math.isinf(value) else mpmath.mpf(value)
        true = true if abs(true) < largest else end * mpmath.sign(true)
        exponent = int(mpmath.floor(mpmath.log(abs(true), 2))) if true else least
        unit = mpmath.mpf(2) ** (min(max(exponent, least), int(info.maxexp) - 1) - info.nmant)
        off.append(float(abs(near - true) / unit))
    return np.array(off)


def rounded(values: list[Any], dtype: str) -> Array:
    """The numbers of a dtype near to exact values."""
    with np.errstate(over="ignore"):
        return np.array([float(value) for value in values]).astype(dtype)


@pytest.mark.parametrize("name", UNARY)
def test_functions_are_accurate(lazy: Any, raw: Any, dtype: str, name: str) -> None:
    x = operands_of(name, dtype)
    found = computed(lazy, name, x)
    assert found.dtype == dtype
    with mpmath.workprec(1300):
        exact = [UNARY[name](mpmath.mpf(v)) for v in x.tolist()]
        off = np.where(ordinary(raw, x, rounded(exact, dtype)), units(found, exact), 0)
    worst = int(off.argmax())
    assert off[worst] < BOUND[dtype], f"{name}({x[worst]!r}) = {found[worst]!r}"


def test_powers_are_accurate(lazy: Any, raw: Any, dtype: str) -> None:
    draw = np.random.default_rng(2)
    a = np.abs(np.concatenate([np.exp(draw.normal(size=600)), 1 + draw.normal(size=600) / 500])).astype(dtype)
    a = np.concatenate([a, np.abs(some(dtype, 600))])
    a = a[a > 0]
    exponents = np.log(np.finfo(dtype).max.astype(np.float64)) * draw.uniform(-1.05, 1.05, len(a))
    logarithms = np.log(a.astype(np.float64))
    with np.errstate(over="ignore"):
        b = np.divide(exponents, logarithms, out=np.ones(len(a)), where=logarithms != 0).astype(dtype)
    b[::3] = draw.normal(size=len(b[::3])) * 3
    a, b = a[np.isfinite(b)], b[np.isfinite(b)]
    found = computed(lazy, "pow", a, b)
    with mpmath.workprec(300):
        exact = [mpmath.mpf(x) ** mpmath.mpf(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        off = np.where(ordinary(raw, a, b, rounded(exact, dtype)), units(found, exact), 0)
    worst = int(off.argmax())
    assert off[worst] < BOUND[dtype], f"{a[worst]!r} ** {b[worst]!r} = {found[worst]!r}"


# ---- special values ------------------------------------------------------------------------------------------


def special(dtype: str) -> Array:
    """Zeros, infinities, NaN, the ends of the range, subnormal numbers, integers, odd integers, and others between."""
    info = np.finfo(dtype)
    least, normal, largest = (float(v) for v in (info.smallest_subnormal, info.tiny, info.max))
    signed = [0.0, 1.0, 2.0, 0.5, 3.0, math.inf, least, normal, largest]
    others = [math.nan, 2.5, 0.75 * normal]
    return np.array([*signed, *[-v for v in signed], *others], dtype)


def same(found: Array, expected: Array, steps: int = 0) -> Array:
    """Where results are equal, with NaN equal to NaN and signs of zeros distinct; or at most so many ulps apart."""
    if found.dtype.kind != "f":
        equal: Array = found == expected
        return equal
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(found - expected) <= steps * np.abs(np.spacing(expected))
    numbers = ((found == expected) | near) & (np.signbit(found) == np.signbit(expected))
    return numbers | (np.isnan(found) & np.isnan(expected))


def check(name: str, found: Array, expected: Array, operands: tuple[Array, ...], steps: int = 0) -> None:
    wrong = np.flatnonzero(~same(found, expected, steps))
    shown = [(*[x[i].item() for x in operands], found[i].item(), expected[i].item()) for i in wrong[:5]]
    assert not shown, f"{name}: {len(wrong)} of {len(found)} wrong: operands, found and right {shown}"


def ordinary(raw: Any, *arrays: Array) -> Array:
    """Where no number is one that the device declares to flush."""
    dtypes = raw.capabilities.flushes_subnormals
    ordinary_numbers = np.ones(arrays[0].shape, bool)
    for x in arrays:
        if x.dtype.name in dtypes:
            ordinary_numbers &= (x == 0) | (np.abs(x) >= np.finfo(x.dtype).tiny) | np.isnan(x)
    return ordinary_numbers


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "eq", "lt", "pow"])
def test_special_values_in_pairs(lazy: Any, raw: Any, dtype: str, name: str) -> None:
    values = special(dtype)
    assert len(values) == 21
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    found, expected = (computed(where, name, a, b) for where in (lazy, "reference"))
    ordinary_numbers = ordinary(raw, a, b, expected)
    if name == "maximum":  # of two zeros it may be either
        found, expected = (np.where(x == 0, np.zeros_like(x), x) for x in (found, expected))
    check(
        name,
        found[ordinary_numbers],
        expected[ordinary_numbers],
        (a[ordinary_numbers], b[ordinary_numbers]),
        steps=raw.capabilities.largest_error(name, dtype) or 0,
    )


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "eq", "lt", "pow"])
def test_special_values_with_themselves(lazy: Any, raw: Any, dtype: str, name: str) -> None:
    """A compiler may simplify these to 0, 1 or True if it knows that both operands are equal."""
    x = special(dtype)
    found, expected = (
        np.asarray(apply(OPS[name], [t, t]))
        for t in [tk.tensor(x, backend=where) for where in (lazy, "reference")]
    )
    ordinary_numbers = ordinary(raw, x, expected)
    check(
        name,
        found[ordinary_numbers],
        expected[ordinary_numbers],
        (x[ordinary_numbers],),
        steps=raw.capabilities.largest_error(name, dtype) or 0,
    )


@pytest.mark.parametrize("name", [*UNARY, "sqrt", "floor", "neg", "abs", "to_bits"])
def test_special_values_alone(lazy: Any, raw: Any, dtype: str, name: str) -> None:
    x = special(dtype)
    if name == "to_bits":
        x = x[~np.isnan(x)]
    found, expected = (computed(where, name, x) for where in (lazy, "reference"))
    ordinary_numbers = ordinary(raw, x, expected)
    check(
        name,
        found[ordinary_numbers],
        expected[ordinary_numbers],
        (x[ordinary_numbers],),
        steps=raw.capabilities.largest_error(name, dtype) or 0,
    )


CONSTANTS: dict[str, Callable[[Any], Any]] = {
    "x * 0": lambda x: x * 0.0,
    "0 * x": lambda x: 0.0 * x,
    "x + 0": lambda x: x + 0.0,
    "x + -0": lambda x: x + -0.0,
    "x - 0": lambda x: x - 0.0,
    "0 - x": lambda x: 0.0 - x,
    "0 / x": lambda x: 0.0 / x,
    "1 / (1 / x)": lambda x: 1.0 / (1.0 / x),
    "x / 3": lambda x: x / 3.0,
    "x - inf": lambda x: x - math.inf,
    "x * inf": lambda x: x * math.inf,
    "x * nan": lambda x: x * math.nan,
    "x / 0": lambda x: x / 0.0,
    "x < nan": lambda x: x < math.nan,
    "x >= x": lambda x: x >= x,
    "x != x": lambda x: x != x,
    "not (x < 1)": lambda x: ~(x < 1.0),
    "max(x, nan)": lambda x: tk.maximum(x, math.nan),
    "max(x, -inf)": lambda x: tk.maximum(x, -math.inf),
    "(x + 1) - 1": lambda x: (x + 1.0) - 1.0,
    "1 / sqrt(x)": lambda x: 1.0 / tk.sqrt(x),
    "x * x - x * x": lambda x: x * x - x * x,
    "x * x - 1": lambda x: x * x - 1.0,
    "-(x - x)": lambda x: -(x - x),
}

ROUNDINGS = {"1 / (1 / x)": ("div", "div", "div"), "x / 3": ("div",), "1 / sqrt(x)": ("div", "sqrt", "sqrt")}
"""The ops whose declared errors add up; those of an operand twice, as relative errors may be of twice as many units."""


@pytest.mark.parametrize("name", CONSTANTS)
def test_special_values_with_constants(lazy: Any, raw: Any, dtype: str, name: str) -> None:
    """In a specialised kernel, whose constants the compiler might fold."""
    f = CONSTANTS[name]
    x = np.concatenate([special(dtype), (1 + np.arange(2000) / 512).astype(dtype)])
    expected = np.asarray(f(tk.tensor(x, backend="reference")))
    program = tk.jit(f)
    between = np.asarray(1.0 / tk.tensor(x, backend="reference")) if name == "1 / (1 / x)" else x
    ordinary_numbers = ordinary(raw, x, between, expected)
    steps = sum([raw.capabilities.largest_error(op, dtype) or 0 for op in ROUNDINGS.get(name, ())])
    for _ in range(10):
        found = np.asarray(program(tk.tensor(x, backend=lazy)))
        check(name, found[ordinary_numbers], expected[ordinary_numbers], (x[ordinary_numbers],), steps)


# ---- the text of a kernel ------------------------------------------------------------------------------------


def test_a_kernel_contains_the_functions_that_it_needs() -> None:
    text = needed("let y = power_f64(a, b);")
    assert "fn power_f64(" in text
    assert "fn logarithm_of_f64(" in text
    assert "struct Pair_f64 " in text
    assert "sine" not in text
    assert "f32" not in text
    assert not needed("let y = a + b;")
    assert needed("let y = f16(to_f16(x));").startswith("enable f16;\n")


@pytest.mark.parametrize("name", DEFINITIONS)
def test_names_of_functions_are_not_used_otherwise(name: str) -> None:
    """The functions that a text needs are found by its words, so nothing else may have their names."""
    text = DEFINITIONS[name]
    assert text.startswith((f"fn {name}(", f"struct {name} "))
    words = needed(text).replace("let ", "var ").split("var ")[1:]
    assert not DEFINITIONS.keys() & {w.split()[0].strip("=:;") for w in words}
