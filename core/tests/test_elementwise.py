"""Elementwise functions and dtypes: numpy's results, on every dtype and special value, exact to the sign of a zero."""

from __future__ import annotations

import array as arrays_of_python
import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tensorken as tk
from core.tests.drawing import BACKENDS, DTYPES, FLOATS, INTEGERS, Array, arrays, inf, nan, near, same, tensor
from core.tests.each import each_of
from core.tests.examples import examples
from core.tests.support import FUSED, array, f64
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.slow

FEW = settings(max_examples=examples(40))
OVER_BACKENDS = pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
OVER_FLOATS = pytest.mark.parametrize("dtype", FLOATS)


def edges(dtype: str) -> list[Any]:
    """Zeros, infinities, NaN of both signs, subnormal, normal and largest numbers, and some between."""
    info: Any = np.finfo(dtype)
    least, normal, top = info.smallest_subnormal, info.tiny, info.max
    values = [
        0.0,
        1.0,
        0.1,
        1.5,
        3.0,
        7.0,
        inf,
        nan,
        least,
        2 * least,
        normal,
        normal - least,
        top,
        top / 2,
        2.0,
    ]
    return [
        sign * np.array(v, dtype)[()]
        for v in values
        for sign in (np.array(1, dtype)[()], np.array(-1, dtype)[()])
    ]


def pairs(values: list[Any], dtype: str) -> tuple[Array, Array]:
    columns = zip(*itertools.product(values, values), strict=True)
    a, b = (np.array(column, dtype) for column in columns)
    return a, b


# ---- signs, neighbours, remainders: exact ------------------------------------------------------------------


@OVER_BACKENDS
@OVER_FLOATS
def test_signs_and_neighbours(dtype: str, backend: Any) -> None:
    a, b = pairs(edges(dtype), dtype)
    x, y = tensor(a, backend), tensor(b, backend)
    with np.errstate(all="ignore"):
        next_one = np.where(a == b, b, np.nextafter(a, b))  # numpy's float16 gives a
    same(tk.nextafter(x, y), next_one, dtype)
    same(tk.signbit(x), np.signbit(a))
    same(tk.copysign(x, y), np.copysign(a, b))
    nans = np.isnan(a)
    np.testing.assert_array_equal(np.signbit(array(tk.copysign(x, y)))[nans], np.signbit(b)[nans])
    same(tk.sign(x), np.sign(a))


@OVER_BACKENDS
@each_of("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("name", ["fmod", "remainder", "fmax", "fmin", "heaviside", "maximum", "minimum"])
def test_functions_of_two_numbers(name: str, dtype: str, backend: Any) -> None:
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        values: list[Any] = [info.min + 1, info.max, -7, -3, -1, 0, 1, 2, 3, 100]
    else:
        values = edges(dtype)
    a, b = pairs(values, dtype)
    with np.errstate(all="ignore"):
        expected = np.where(a == 0, b, np.sign(a).clip(0)) if name == "heaviside" else getattr(np, name)(a, b)
    if name == "heaviside" and dtype in INTEGERS:
        expected, dtype = expected.astype("float32"), "float32"
    found = getattr(tk, name)(tensor(a, backend), tensor(b, backend))
    if name in ("fmod", "heaviside"):
        same(found, expected, dtype)
    else:
        np.testing.assert_array_equal(array(found), expected)
        assert str(found.dtype) == dtype


@OVER_BACKENDS
@pytest.mark.parametrize("dtype", INTEGERS)
def test_powers_of_integers(dtype: str, backend: Any) -> None:
    info = np.iinfo(dtype)
    a, b = pairs([info.min, info.max, -7, -2, -1, 0, 1, 2, 3, 10, 31, 62], dtype)
    found = array(tk.power(tensor(a, backend), tensor(b, backend))).tolist()
    bits = info.bits
    for base, exponent, power in zip(a.tolist(), b.tolist(), found, strict=True):
        if exponent >= 0:
            exact = pow(base, exponent, 1 << bits)
        else:
            exact = (base if exponent % 2 else 1) if abs(base) == 1 else 0
        assert power == (exact + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1)), (base, exponent)
    t = tk.tensor([2, 3], dtype, backend=backend)
    assert (t**t).tolist() == [4, 27]
    assert (2**t).tolist() == [4, 8]
    assert (t**3).tolist() == [8, 27]
    assert (t**0.5).dtype is tk.float32
    assert (t ** tk.tensor([True, False], backend=backend)).tolist() == [2, 1]


# ---- infinities, NaN, tolerance ----------------------------------------------------------------------------


@OVER_BACKENDS
@FEW
@given(x=arrays())
def test_predicates(backend: Any, x: Array) -> None:
    t = tensor(x, backend)
    for name in ("isnan", "isinf", "isfinite"):
        same(getattr(tk, name)(t), getattr(np, name)(x))
    as_float = x.astype("float64")
    same(tk.isposinf(t), np.isposinf(as_float))
    same(tk.isneginf(t), np.isneginf(as_float))
    same(tk.nan_to_num(t), np.nan_to_num(x))
    if x.dtype.kind == "f":
        found = tk.nan_to_num(t, nan=5.0, posinf=6.0, neginf=-7.0)
        same(found, np.nan_to_num(x, nan=5.0, posinf=6.0, neginf=-7.0))


@OVER_BACKENDS
@pytest.mark.parametrize("equal_nan", [False, True])
def test_closeness(equal_nan: bool, backend: Any) -> None:
    values = [0.0, 1.0, 1.0 + 1e-6, 1.0 + 2e-5, 1e-9, 2e-8, -1.0, 1e300, inf, -inf, nan]
    a, b = pairs(values, "float64")
    x, y = tensor(a, backend), tensor(b, backend)
    for tolerance in ({}, {"rtol": 0.0}, {"atol": 1.5}, {"rtol": 1e-3, "atol": 0.0}):
        expected = np.isclose(a, b, **tolerance, equal_nan=equal_nan)
        same(tk.isclose(x, y, **tolerance, equal_nan=equal_nan), expected)
        assert bool(tk.allclose(x, y, **tolerance, equal_nan=equal_nan)) == expected.all()
        close, partner = x[tk.tensor(expected, backend=backend)], y[tk.tensor(expected, backend=backend)]
        assert bool(tk.allclose(close, partner, **tolerance, equal_nan=equal_nan))
    assert bool(tk.array_equal(x, x, equal_nan=True))
    assert not bool(tk.array_equal(x, x))
    assert bool(tk.array_equal(tk.tensor([], backend=backend), []))
    assert not bool(tk.array_equal(x, x[1:], equal_nan=True))
    n = tk.tensor([2**31 - 1, 3], "int32", backend=backend)
    assert tk.isclose(n, [2**31 - 1, 4]).tolist() == [True, False]
    assert tk.isclose([True, False], [True, True]).tolist() == [True, False]


# ---- clip --------------------------------------------------------------------------------------------------


@OVER_BACKENDS
@FEW
@given(
    x=arrays((*INTEGERS, *FLOATS)),
    low=st.sampled_from([None, -1, 0, 3]),
    high=st.sampled_from([None, -2, 1, 2]),
)
def test_clip(backend: Any, x: Array, low: int | None, high: int | None) -> None:
    t = tensor(x, backend)
    expected = x if low is None and high is None else np.clip(x, low, high)
    found = tk.clip(t, low, high)
    np.testing.assert_array_equal(array(found), expected)
    assert str(found.dtype) == str(x.dtype)
    np.testing.assert_array_equal(array(t.clip(min=low, max=high)), expected)
    if low is not None and x.dtype.kind == "f":
        bounds = np.full(x.shape, low, x.dtype)
        np.testing.assert_array_equal(array(tk.clip(t, tensor(bounds, backend))), np.maximum(x, bounds))


def test_clip_names_itself() -> None:
    with pytest.raises(ShapeError, match=r"^clip: shapes \(3,\) and \(2,\) do not broadcast"):
        tk.clip([1.0, 2.0, 3.0], [0.0, 1.0])
    assert tk.clip([True, False], True).tolist() == np.clip([True, False], True, None).tolist()
    assert tk.clip(2.5, f64([0.0]), f64([1.0])).tolist() == [1.0]


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("greater", lambda a, b: a > b),
        ("greater_equal", lambda a, b: a >= b),
        ("less_equal", lambda a, b: a <= b),
        ("greater", tk.greater),
        ("greater_equal", tk.greater_equal),
        ("less_equal", tk.less_equal),
        ("pow", lambda a, b: (a > 0).astype("int32") ** (b > 0).astype("int32")),
    ],
)
def test_errors_of_comparisons_bear_their_names(name: str, call: Any) -> None:
    with pytest.raises(ShapeError, match=rf"^{name}: shapes \(.,\) and \(.,\) do not broadcast"):
        call(f64([1.0, 2.0]), f64([1.0, 2.0, 3.0]))
    if name != "pow":
        with pytest.raises(ArgumentError, match=rf"^{name}: cannot combine a tensor with dict"):
            call(f64([1.0, 2.0]), {})


# ---- operands of other kinds -------------------------------------------------------------------------------

REFLECTED = {
    "__radd__": lambda x, y: x + y,
    "__rsub__": lambda x, y: x - y,
    "__rmul__": lambda x, y: x * y,
    "__rmatmul__": lambda x, y: x @ y,
    "__rtruediv__": lambda x, y: x / y,
    "__rfloordiv__": lambda x, y: x // y,
    "__rmod__": lambda x, y: x % y,
    "__rdivmod__": divmod,
    "__rpow__": lambda x, y: x**y,
    "__rand__": lambda x, y: x & y,
    "__ror__": lambda x, y: x | y,
    "__rxor__": lambda x, y: x ^ y,
    "__rlshift__": lambda x, y: x << y,
    "__rrshift__": lambda x, y: x >> y,
    "__gt__": lambda x, y: x < y,
    "__lt__": lambda x, y: x > y,
    "__ge__": lambda x, y: x <= y,
    "__le__": lambda x, y: x >= y,
    "__eq__": lambda x, y: x == y,
    "__ne__": lambda x, y: x != y,
}


def foreign(answer: Any, **more: Any) -> Any:
    """An operand with all reflected operators, which return (their name, the tensor), or `answer`."""
    methods = {name: lambda self, x, name=name: (name, x) if answer is None else answer for name in REFLECTED}
    return type("Foreign", (), {**methods, "__hash__": None, **more})()


def as_array(self: Any, dtype: Any = None, copy: Any = None) -> Any:
    return np.asarray([3.0, 4.0])


@each_of("name", REFLECTED)
def test_an_operand_of_another_class_may_implement_the_operator(name: str) -> None:
    x = tk.tensor([1, 2])
    for other in (foreign(None), foreign(None, __array_ufunc__=None, __array__=as_array)):
        assert REFLECTED[name](x, other) == (name, x)
    with pytest.raises(
        ArgumentError, match=r"^\w+: cannot combine a tensor with Foreign: .* give numbers, nested"
    ):
        REFLECTED[name](x, foreign(NotImplemented))


def test_an_array_of_another_library_is_combined_with_a_tensor() -> None:
    x = f64([1.0, 2.0])
    for other in (
        foreign(None, __array__=as_array),
        np.asarray([3.0, 4.0]),
        arrays_of_python.array("d", [3.0, 4.0]),
        [3.0, 4.0],
    ):
        assert (x * other).tolist() == [3.0, 8.0]
        assert (x < other).tolist() == [True, True]
    assert (x * np.float64(2.0)).tolist() == [2.0, 4.0]
    for other in ("a", b"a", Fraction(1, 2), Decimal(2)):
        with pytest.raises(ArgumentError, match=r"^mul: cannot combine a tensor with"):
            tk.tensor(3) * other


# ---- angles ------------------------------------------------------------------------------------------------


@OVER_BACKENDS
@OVER_FLOATS
def test_sinc_and_angles(dtype: str, backend: Any) -> None:
    x = np.array([0.0, -0.0, 1e-4, 0.1, -0.2499, 0.25, 0.5, 1.5, -2.25, 10.3, nan], dtype)
    near(
        tk.sinc(tensor(x, backend)),
        np.sinc(x.astype("float64")),
        dtype,
        {"float16": 2e-2, "float32": 2e-6}.get(dtype),
    )
    for name in ("deg2rad", "rad2deg", "degrees", "radians"):
        near(getattr(tk, name)(tensor(x, backend)), getattr(np, name)(x.astype("float64")), dtype)


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64"])
def test_sinc_of_integers_is_float32(dtype: str) -> None:
    result = tk.sinc(tk.tensor([0, 1], dtype))
    assert result.dtype is tk.float32
    near(result, [1.0, 0.0], "float32", 1e-6)


def test_the_derivatives_of_sinc_are_right_at_zero() -> None:
    """sinc(x) = 1 - (pi x)**2 / 6 + (pi x)**4 / 120 - ..."""
    zero = f64(0.0)
    second = tk.derivative(tk.derivative(tk.sinc))
    assert tk.derivative(tk.sinc)(zero).item() == 0.0
    assert second(zero).item() == pytest.approx(-(math.pi**2) / 3, rel=1e-14)
    assert tk.derivative(tk.derivative(second))(zero).item() == pytest.approx(math.pi**4 / 5, rel=1e-14)
    tk.testing.check_grads(tk.sinc, (f64([0.1, -0.2, 0.3, 1.7]),), order=3, rtol=1e-4, atol=1e-4)


# ---- derivatives, batches ----------------------------------------------------------------------------------

SMOOTH = {
    "copysign": lambda x: tk.copysign(x * x, [-1.0, 2.0, -0.0]),
    "nextafter": lambda x: tk.nextafter(x * x, 9.0),
    "fmod": lambda x: tk.fmod(x, [0.75, -0.25, 2.0]) ** 2,
    "fmod by divisor": lambda x: tk.fmod([5.0, -7.0, 3.0], x) ** 2,
    "fmax": lambda x: tk.fmax(x * x, [0.5, nan, 9.0]),
    "fmin": lambda x: tk.fmin(x * x, [0.5, nan, 9.0]),
    "heaviside": lambda x: tk.heaviside(x, 0.5) * x * x,
    "nan_to_num": lambda x: tk.nan_to_num(tk.log(x - 0.9), nan=1.0) ** 2,
    "clip": lambda x: tk.clip(x * x, 0.5, 1.5),
    "sinc": tk.sinc,
    "deg2rad": lambda x: tk.deg2rad(x * x),
    "rad2deg": lambda x: tk.rad2deg(x * x),
}


@pytest.mark.parametrize("backend", [FUSED, BACKENDS["bodies"], BACKENDS["reference"]], ids=repr)
@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives(name: str, backend: Any) -> None:
    x = tk.tensor([1.1, 0.6, 1.3], "float64", backend=backend)
    tk.testing.check_grads(SMOOTH[name], (x,), order=2, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SMOOTH)
def test_vmap_is_the_loop(name: str) -> None:
    x = f64([[1.1, 0.6, 1.3], [2.0, 1.2, 0.3]])
    for f in (SMOOTH[name], lambda v: tk.grad(lambda u: SMOOTH[name](u).sum())(v)):
        np.testing.assert_array_equal(array(tk.vmap(f)(x)), np.stack([array(f(row)) for row in x]))


def test_the_signs_of_derivatives() -> None:
    assert tk.elementwise_grad(lambda a: tk.copysign(a, -1.0))(f64([2.0, -2.0])).tolist() == [-1.0, 1.0]
    assert tk.elementwise_grad(lambda b: tk.copysign(f64([2.0, 2.0]), b))(f64([2.0, -2.0])).tolist() == [
        0.0,
        0.0,
    ]
    assert tk.elementwise_grad(lambda a: tk.fmod(a, 3.0))(f64([4.0, -4.0, 0.0, -0.0])).tolist() == [1.0] * 4


# ---- dtypes ------------------------------------------------------------------------------------------------

ALL = [getattr(tk, name) for name in DTYPES]


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_limits_of_floats_are_numpys(dtype: str) -> None:
    found, expected = tk.finfo(dtype), np.finfo(dtype)
    assert found == tk.finfo(getattr(tk, dtype)) == tk.finfo(tk.zeros(3, dtype))
    for name in ("bits", "eps", "max", "min", "smallest_normal", "tiny"):
        assert getattr(found, name) == float(getattr(expected, name)), name
        assert type(getattr(found, name)) is (int if name == "bits" else float)
    assert found.dtype is getattr(tk, dtype)
    with pytest.raises(DTypeError, match=rf"^iinfo: {dtype} is not an integer dtype"):
        tk.iinfo(dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_the_limits_of_integers_are_numpys(dtype: str) -> None:
    found, expected = tk.iinfo(dtype), np.iinfo(dtype)
    assert found == tk.iinfo(getattr(tk, dtype)) == tk.iinfo(tk.zeros(3, dtype))
    assert (found.bits, found.max, found.min) == (expected.bits, expected.max, expected.min)
    assert found.dtype is getattr(tk, dtype)
    with pytest.raises(DTypeError, match=rf"^finfo: {dtype} is not floating-point"):
        tk.finfo(dtype)


KINDS = [
    "bool",
    "signed integer",
    "unsigned integer",
    "integral",
    "real floating",
    "complex floating",
    "numeric",
]


def test_kinds_are_numpys() -> None:
    for dtype, name in zip(ALL, DTYPES, strict=True):
        of = np.dtype(name)
        for kind in KINDS:
            assert tk.isdtype(dtype, kind) is np.isdtype(of, kind), (name, kind)
        for a, b in itertools.product(KINDS, repeat=2):
            assert tk.isdtype(dtype, (a, b)) is np.isdtype(of, (a, b))
        for other in ALL:
            assert tk.isdtype(dtype, other) is (dtype is other)
            assert tk.isdtype(dtype, (other, "bool")) is (dtype in (other, tk.bool))
    for kind in ("float", "int", 3, None, ["bool"]):
        with pytest.raises(ArgumentError, match=r"^isdtype: the kind must be a dtype, one of bool, "):
            tk.isdtype(tk.float32, kind)


def test_promotion_is_that_of_operations() -> None:
    for a, b in itertools.product(ALL, repeat=2):
        both = (tk.zeros((), a), tk.zeros((), b))
        expected = tk.where(tk.tensor(True), *both).dtype
        assert tk.result_type(a, b) is tk.result_type(both[0], b) is tk.result_type(*both) is expected
        assert tk.can_cast(a, b) is tk.can_cast(both[0], b) is (expected is b)
    for a, number in itertools.product(ALL, (True, 2, 2.5)):
        assert tk.result_type(a, number) is tk.where(tk.tensor(True), tk.zeros((), a), number).dtype
    assert tk.result_type(1, 2.0) is tk.float32
    assert tk.result_type(True, 2) is tk.int32
    assert tk.result_type("int64", tk.float16, True) is tk.float16
    with pytest.raises(ArgumentError, match=r"^result_type: need at least one"):
        tk.result_type()


@OVER_BACKENDS
@FEW
@given(x=arrays(finite=True), dtype=st.sampled_from(DTYPES))
def test_casts_are_numpys(backend: Any, x: Array, dtype: str) -> None:
    same(tk.astype(tensor(x, backend), dtype), x.astype(dtype))
    same(tk.astype(tensor(x, backend), getattr(tk, dtype), copy=False), x.astype(dtype))
