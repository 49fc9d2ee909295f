"""The dtypes: which are supported, their arithmetic, and their storage.

The oracle is the reference backend, whose results are the exact values rounded once.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_core.tensor.dispatch import apply
from tensorken_wgpu.subnormals import flushed
from tensorken_wgpu.wgsl.dtypes import FORMATS, SIZES, narrowed, packed, supported_dtypes, widened
from tensorken_wgpu.wgsl.ops import CASTS, STORED, TYPES, expressions, maxima, sums

pytestmark = pytest.mark.slow

Array = np.ndarray[Any, Any]
FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int32", "int64", "uint32")
BINARY = ("add", "sub", "mul", "maximum", "eq", "lt", "floor_divide")
BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right")


def require(raw: Any, *names: str) -> None:
    """Skip the test unless the device has these dtypes."""
    for name in names:
        if name not in raw.capabilities.dtypes:
            pytest.skip(f"{raw.device.name} has no {name}")


def both(lazy: Any, name: str, *operands: Array, params: tuple[Any, ...] = ()) -> tuple[Array, Array]:
    """The result of an op here, and the expected one."""
    found, expected = [
        np.asarray(apply(OPS[name], [tk.tensor(x, backend=where) for x in operands], params))
        for where in (lazy, "reference")
    ]
    assert found.dtype == expected.dtype
    return found, expected


def check(name: str, found: Array, expected: Array, *operands: Array, steps: int = 0) -> None:
    """Every bit is right, or each number at most so many ulps away; a NaN may be any NaN, and the sign of a zero
    maximum any.
    """
    wrong = found != expected
    if steps:
        with np.errstate(invalid="ignore", over="ignore"):
            wrong &= ~(np.abs(found - expected) <= steps * np.spacing(np.abs(expected)))
    if found.dtype.kind == "f":
        signs = np.signbit(found) != np.signbit(expected)
        wrong = (wrong | (signs & (name != "maximum"))) & ~(np.isnan(found) & np.isnan(expected))
    places = np.flatnonzero(wrong)
    shown = [(*[x[i].item() for x in operands], found[i].item(), expected[i].item()) for i in places[:5]]
    assert not shown, f"{name}: {len(places)} of {len(found)} wrong: operands, found and right {shown}"


def drawn(dtype: str, count: int = 2000) -> Array:
    """Random numbers of a dtype, by bits and by magnitude, and numbers at which a conversion may go wrong."""
    draw = np.random.default_rng(3)
    if dtype == "bool":
        return np.array([False, True])
    kind = np.dtype(dtype)
    bits = draw.integers(0, 2 ** (8 * kind.itemsize), count, dtype=np.uint64).astype(f"u{kind.itemsize}")
    if kind.kind in "iu":
        ends = [0, 1, -1, 7, -7, 31, 32, 63, 64, 2049, 65519, 65520, 2**24 + 1, 2**31 - 1, -(2**31)]
        wide = [2**31, 2**32 + 5, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]
        wide_integers = bits.view(dtype)
        small = wide_integers >> draw.integers(0, 8 * kind.itemsize - 1, count).astype(dtype)
        return np.concatenate([np.array([*ends, *wide], np.int64).astype(dtype), wide_integers, small])
    ends = [
        0.0,
        1.5,
        0.99,
        2.0**31,
        2.0**31 - 1,
        2.0**31 + 1,
        2.0**32,
        2.0**32 - 1,
        2.0**32 - 256,
        2.0**63,
        2.0**63 - 1024,
        2.0**62 * 1.999,
        math.inf,
    ]
    halves = [
        65504.0,
        65519.99,
        65520.0,
        65519.999999999,
        2.0**-24,
        2.0**-25,
        2.0**-25 * (1 + 1e-15),
        2.0**-14,
    ]
    singles = [2.0**-149, 2.0**-150, 2.0**-150 * (1 + 1e-15), 3.4028235677973366e38, 3.4028235677973362e38]
    values = np.array([*ends, *halves, *singles])
    partials = draw.normal(size=count).astype(np.float16).astype(np.float64) * (
        1 + 2.0**-11
    )  # a tie of two float16
    near = [
        partials,
        np.nextafter(partials, 0),
        draw.normal(size=count) * 2.0 ** draw.integers(-30, 70, count),
    ]
    with np.errstate(over="ignore"):
        chosen = np.concatenate([values, -values, *near]).astype(dtype)
    return np.concatenate([chosen, bits.view(dtype), np.array([math.nan], dtype)])


def not_flushed(raw: Any, *arrays: Array) -> Array:
    """Where no number is one that the device declares to flush."""
    ordinary = np.ones(arrays[0].shape, bool)
    for x in arrays:
        if x.dtype.name in raw.capabilities.flushes_subnormals:
            ordinary &= (x == 0) | (np.abs(x) >= np.finfo(x.dtype).tiny) | np.isnan(x)
    return ordinary


# ---- supported dtypes ----------------------------------------------------------------------------------------


def test_a_device_has_the_dtypes_of_its_features(raw: Any) -> None:
    assert supported_dtypes(frozenset()) == ("bool", "int32", "uint32", "float32")
    assert supported_dtypes({"shader-f64"}) == ("bool", "int32", "uint32", "float32")
    assert supported_dtypes({"shader-f64", "shader-int64", "shader-f16"}) == tuple(FORMATS)
    assert raw.capabilities.dtypes == supported_dtypes(raw.device.features)


def test_the_tables_have_all_dtypes() -> None:
    assert {*TYPES} == {*STORED} == {*FORMATS} == {*SIZES} <= {*DTYPES}
    assert {*CASTS} == {(a, b) for a in FORMATS for b in FORMATS if a != b}
    for name in FORMATS:
        dtype = DTYPES[name]
        assert {"eq", "lt", "where", "maximum"} <= expressions(name).keys()
        assert maxima(name).dtype == ("uint32" if name == "bool" else name)
        if dtype.kind != "bool":
            assert sums(name).finish("x") == ("to_f16(x)" if name == "float16" else "x")


def test_packed_numbers_have_the_layout_of_memory() -> None:
    assert packed([1.0, 65519.0, 65520.0, -1e9], "float16") == struct.pack(
        "<4e", 1.0, 65504.0, math.inf, -math.inf
    )
    assert packed([True, False, 1, 2, 0.5, 0], "bool") == struct.pack("<6I", 1, 0, 1, 1, 1, 0)
    assert widened(bytes([0, 1, 255])) == struct.pack("<3I", 0, 1, 1)
    assert narrowed(memoryview(struct.pack("<3I", 0, 1, 1))) == bytes([0, 1, 1])
    assert packed(range(3), "int64") == struct.pack("<3q", 0, 1, 2)
    assert packed([0.1], "float64") == struct.pack("<d", 0.1)


def test_elements_are_converted_together(raw: Any, calls: Any) -> None:
    require(raw, "float16")
    counts = []
    for size in (1, 1000):
        values = [1.5] * size

        def there_and_back(values: list[float] = values) -> None:
            raw.ravel(raw.new((len(values),), values, DTYPES["float16"]))

        there_and_back()
        counts.append(calls(there_and_back))
    assert counts[1] < counts[0] + 100


def test_flushing_of_subnormal_numbers_is_declared(raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that declares no flushing computes them right; a backend whose sums lose them is detected."""
    assert raw.capabilities.flushes_subnormals == flushed(raw)
    monkeypatch.setattr(raw, "interpret", lambda op, operands, params: operands[0])
    assert flushed(raw) == tuple([name for name in FLOATS if name in raw.capabilities.dtypes])


# ---- values --------------------------------------------------------------------------------------------------


@pytest.mark.feature(188)
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_round_trip(lazy: Any, raw: Any, dtype: str) -> None:
    require(raw, dtype)
    x = drawn(dtype)
    for values in (x, x[:1], x[:3] if len(x) > 2 else x):  # an odd number of bytes included
        found = np.asarray(tk.tensor(values, backend=lazy))
        assert found.dtype == dtype
        check("read", found, values)
        check("where", np.asarray(tk.where(True, tk.tensor(values, backend=lazy), False)), values)


NUMBERS = {
    "bool": [True, False],
    "int32": [0, 1, -1, 2**31 - 1, -(2**31)],
    "int64": [0, 1, -1, 2**31, 2**63 - 1, -(2**63)],
    "uint32": [0, 1, 2**31, 2**32 - 1],
    "float16": [0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, math.nan, 2.0**-24, -3e-6, 65504.0, 1e6, 0.1],
    "float32": [0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, math.nan, 1e-45, -3e-39, 3e38, 1e-30, 0.1],
    "float64": [0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, math.nan, 5e-324, -3e-310, 1e308, 1e-300, 0.1],
}


@pytest.mark.parametrize("dtype", DTYPES)
def test_literals_in_programs_keep_their_bits(lazy: Any, raw: Any, dtype: str) -> None:
    require(raw, dtype)
    ones = tk.tensor(np.ones(9000, dtype), backend=lazy)
    for value in NUMBERS[dtype]:
        program = tk.jit(
            lambda x, value=value: tk.where(x > 0, tk.full(x.shape, value, dtype, backend=lazy), x)
        )
        with np.errstate(over="ignore"):
            expected = np.array([value] * 9000).astype(dtype)
        for _ in range(10):  # the specialised kernel too
            check(f"{value!r}", np.asarray(program(ones)), expected)


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name != "bool"])
def test_one_kernel_for_all_literals(lazy: Any, raw: Any, dtype: str) -> None:
    require(raw, dtype)
    x = np.arange(7).astype(dtype)
    pipelines = []
    for i in range(4):
        y = tk.tensor(x, backend=lazy) * (i + 3) + 5 * i
        np.testing.assert_array_equal(np.asarray(y), x * (i + 3) + 5 * i)
        pipelines.append(raw.device.statistics["pipelines"])
    assert len({*pipelines[1:]}) == 1


def test_comparisons_of_widened_integers(lazy: Any, raw: Any) -> None:
    """In the kernel that widens it: a driver may take it for a comparison of 32 bits."""
    require(raw, "int64")
    narrow, wide = np.array([1, 2, -3, 70, 40], np.int32), np.array([5, -6, 7, 8, 1], np.int64)
    x, y = tk.tensor(narrow, backend=lazy), tk.tensor(wide, backend=lazy)
    widened = x.astype(tk.int64)
    np.testing.assert_array_equal(np.asarray(widened < 64), narrow < 64)
    np.testing.assert_array_equal(np.asarray(widened >= 0), narrow >= 0)
    np.testing.assert_array_equal(np.asarray(y // x), wide // narrow)
    np.testing.assert_array_equal(np.asarray(y % x), wide % narrow)
    np.testing.assert_array_equal(np.asarray(y << x), [10, -24, 0, 0, 1 << 40])
    unsigned = np.array([0, 2**31, 2**32 - 1, 5, 3 * 10**9], np.uint32)
    z = tk.tensor(unsigned, backend=lazy)
    np.testing.assert_array_equal(np.asarray(z.astype(tk.int64) < 3 * 10**9), unsigned < 3 * 10**9)
    np.testing.assert_array_equal(np.asarray(z + x), unsigned.astype(np.int64) + narrow)
    np.testing.assert_array_equal(np.asarray(z > y), unsigned > wide)


@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
def test_casts(lazy: Any, raw: Any, source: str, target: str) -> None:
    require(raw, source, target)
    x = drawn(source)
    found, expected = both(lazy, "cast", x, params=(DTYPES[target],))
    ordinary = not_flushed(raw, x, expected)
    check(f"{source} to {target}", found[ordinary], expected[ordinary], x[ordinary])


# ---- arithmetic ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "eq", "lt"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_arithmetic_of_floats_is_rounded_once(lazy: Any, raw: Any, dtype: str, name: str) -> None:
    require(raw, dtype)
    a = drawn(dtype)
    for b in (np.random.default_rng(4).permutation(a), np.roll(a, 1)):
        found, expected = both(lazy, name, a, b)
        ordinary = not_flushed(raw, a, b, expected)
        check(
            name,
            *[x[ordinary] for x in (found, expected, a, b)],
            steps=raw.capabilities.largest_error(name, dtype) or 0,
        )


@pytest.mark.parametrize("name", ["sqrt", "floor", "neg", "abs", "to_bits"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_exact_functions_of_floats(lazy: Any, raw: Any, dtype: str, name: str) -> None:
    require(raw, dtype)
    if (name, dtype) == ("to_bits", "float64"):
        require(raw, "int64")
    x = drawn(dtype)
    x = x[~np.isnan(x)] if name == "to_bits" else x
    found, expected = both(lazy, name, x)
    ordinary = not_flushed(raw, x, expected)
    check(
        name,
        *[v[ordinary] for v in (found, expected, x)],
        steps=raw.capabilities.largest_error(name, dtype) or 0,
    )


def test_every_float16(lazy: Any, raw: Any) -> None:
    require(raw, "float16")
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    for name in ("sqrt", "floor", "neg", "abs"):
        check(name, *both(lazy, name, x), x)
    check("cast", *both(lazy, "cast", x, params=(DTYPES["float32"],)), x)
    numbers = x[~np.isnan(x)]
    check("to_bits", *both(lazy, "to_bits", numbers), numbers)
    for name in ("exp", "log", "sin", "cos"):
        found, expected = both(lazy, name, x)
        check(name, found, expected, x, steps=1)
        assert np.count_nonzero((found != expected) & ~np.isnan(expected)) < 8, name


def test_sums_of_float16_are_rounded_once(lazy: Any, raw: Any) -> None:
    """Summed in float16, ones would stop at 2048; products are not rounded before they are added."""
    require(raw, "float16")
    ones = tk.tensor(np.ones((5, 4099), np.float16), backend=lazy)
    assert ones.sum(1).tolist() == [4100.0] * 5  # 4099 is between two float16
    assert ones.scatter_add(tk.tensor(np.zeros(5, np.int32), backend=lazy), 0, 1)[0, 0].item() == 5.0
    a = tk.tensor(np.full((2, 3000), 1 + 2.0**-10, np.float16), backend=lazy)
    exact = 3000 * (1 + 2.0**-10) ** 2
    assert (a @ a.T)[0, 1].item() == float(np.float16(exact))
    assert tk.tensor(np.full((300,), 60000.0, np.float16), backend=lazy).sum().item() == math.inf
    mixed = tk.tensor(np.array([60000.0, 60000.0, -60000.0], np.float16), backend=lazy)
    assert mixed.sum().item() == 60000.0


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("within", [lambda f: f, tk.jit], ids=["eager", "jit"])
def test_indices_out_of_range_read_0_and_add_nothing(lazy: Any, raw: Any, dtype: str, within: Any) -> None:
    """Truncated to 32 bits, 2**32 + 1 would be 1."""
    require(raw, dtype)
    outside = [5, 2**31, 2**32 - 1] if dtype == "uint32" else [-1, 5, 2**31 - 1, -(2**31)]
    if dtype == "int64":
        outside += [2**32 + 1, 2**32, -(2**32) + 1, 2**63 - 1, -(2**63), 2**33 + 2]
    indices = tk.tensor(np.array([0, 1, *outside, 2, 2], dtype), backend=lazy)
    x = tk.tensor(np.arange(1, 13, dtype=np.float32).reshape(3, 4), backend=lazy)
    for axis in (0, 1):
        found = np.asarray(within(lambda x, i, axis=axis: x.gather(i, axis))(x, indices))
        expected = np.take(np.asarray(x), [0, 1, *[0] * len(outside), 2, 2], axis)
        np.moveaxis(expected, axis, 0)[2:-2] = 0
        assert found.tolist() == expected.tolist()
    values = tk.tensor(np.arange(1, len(outside) + 5, dtype=np.float32), backend=lazy)
    added = within(lambda v, i: v.scatter_add(i, 0, 4))(values, indices)
    assert added.tolist() == [1.0, 2.0, 2 * len(outside) + 7.0, 0.0]


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_sums_and_products_have_all_digits(lazy: Any, raw: Any, dtype: str) -> None:
    require(raw, dtype)
    x = np.arange(2**40, 2**40 + 3000).astype(dtype)
    assert tk.tensor(x, backend=lazy).sum().item() == x.sum().item()
    assert tk.tensor(-x, backend=lazy).max().item() == -(2**40)
    m = x.reshape(30, 100) % 1000
    np.testing.assert_array_equal(
        np.asarray(tk.tensor(m, backend=lazy) @ tk.tensor(m.T, backend=lazy)), m @ m.T
    )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap(lazy: Any, raw: Any, dtype: str) -> None:
    require(raw, dtype)
    x = drawn(dtype, 400)
    ends = np.concatenate([x[:21], -x[:21], np.array([8 * x.itemsize, 8 * x.itemsize - 1, -8]).astype(dtype)])
    a, b = (v.ravel() for v in np.meshgrid(ends, ends))
    a, b = np.concatenate([a, x]), np.concatenate([b, np.random.default_rng(5).permutation(x)])
    for name in (*BINARY, *BITWISE):
        check(name, *both(lazy, name, a, b), a, b)
    for name in ("neg", "abs"):
        check(name, *both(lazy, name, x), x)
    if dtype == "int32":
        check("from_bits", *both(lazy, "from_bits", x), x)


def test_float64_from_bits(lazy: Any, raw: Any) -> None:
    require(raw, "int64", "float64")
    x = drawn("int64")
    check("from_bits", *both(lazy, "from_bits", x), x)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_derivatives_and_compiled_functions(lazy: Any, raw: Any, dtype: str) -> None:
    require(raw, dtype)

    def f(x: Any) -> Any:
        return (tk.softmax(tk.tanh(x) * x, -1) * tk.log(x * x + 1.0) + tk.erf(x)).sum()

    x = np.random.default_rng(6).normal(size=(7, 5)).astype(dtype)
    expected = np.asarray(tk.grad(f)(tk.tensor(x.astype(np.float64), backend="numpy")))
    for g in (tk.grad(f), tk.jit(tk.grad(f))):
        found = np.asarray(g(tk.tensor(x, backend=lazy)))
        assert found.dtype == dtype
        eps = float(np.finfo(dtype).eps)
        np.testing.assert_allclose(found.astype(np.float64), expected, rtol=40 * eps, atol=40 * eps)
