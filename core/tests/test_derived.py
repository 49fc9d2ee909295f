"""The derived ops and the functions made of them equal numpy's, for every dtype, shape and special value.

`Required` runs the bodies, numpy its own functions; both are held against numpy, or Python where that is clearer.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import FUSED, Required, array
from tensorken_core.errors import MixedBackendError, ShapeError
from tensorken_core.language.op import OPS
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

pytestmark = pytest.mark.slow

inf, nan = math.inf, math.nan
BACKENDS = {"bodies": Required(), "fused bodies": Fuse(Required()), "numpy": Numpy(), "fused numpy": FUSED}
FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int32", "int64")

Array = np.ndarray[Any, Any]

over_backends = each_of("backend", BACKENDS.values())


def tensor(x: Any, backend: Any = FUSED, dtype: str | None = None) -> tk.Tensor:
    x = np.asarray(x, dtype)
    return tk.tensor(x.ravel().tolist(), x.dtype.name, backend=backend).reshape(x.shape)


def assert_same(y: tk.Tensor, expected: Any, dtype: str | None = None) -> None:
    """Equal to the bit: -0.0 is not 0.0."""
    found, expected = array(y), np.asarray(expected, dtype)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    if expected.dtype.kind == "f":
        zeros = expected == 0
        np.testing.assert_array_equal(np.signbit(found)[zeros], np.signbit(expected)[zeros])


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, 3.0, -7.0, 1e4, -1e4, inf, -inf, nan]
WHOLE = [0, 1, -1, 2, 3, -7, 100, 2**31 - 1, -(2**31)]


def pairs(values: list[Any], dtype: str) -> tuple[Array, Array]:
    """Every value with every other."""
    a, b = np.meshgrid(np.array(values, dtype), np.array(values, dtype))
    return a.ravel(), b.ravel()


# ---- functions of numpy's name are numpy's functions -------------------------------------------------------

EXACT_UNARY = ["abs", "negative", "positive", "sign", "square", "floor", "ceil", "trunc", "round"]
PREDICATES = ["isnan", "isinf", "isfinite", "logical_not"]
COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
LOGICAL = ["logical_and", "logical_or", "logical_xor"]
BITWISE = ["bitwise_and", "bitwise_or", "bitwise_xor"]


@over_backends
@each_of("dtype", FLOATS)
@pytest.mark.parametrize("name", EXACT_UNARY + PREDICATES)
def test_exact_functions_of_floats(name: str, dtype: str, backend: Any) -> None:
    x = np.array(SPECIAL, dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x)
    assert_same(getattr(tk, name)(tensor(x, backend)), expected)


@over_backends
@each_of("dtype", INTEGERS)
@pytest.mark.parametrize("name", EXACT_UNARY + PREDICATES)
def test_exact_functions_of_integers(name: str, dtype: str, backend: Any) -> None:
    x = np.array(WHOLE, dtype)
    assert_same(getattr(tk, name)(tensor(x, backend)), getattr(np, name)(x))


@over_backends
@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "positive", *PREDICATES])
def test_bools_are_integral_and_finite(name: str, backend: Any) -> None:
    y = getattr(tk, name)(tk.tensor([True, False], backend=backend))
    expected = getattr(np, name)(np.array([1, 0])).astype(bool)
    assert_same(y, expected)


@over_backends
@each_of("dtype", ["bool", *INTEGERS, *FLOATS])
@pytest.mark.parametrize("name", COMPARISONS + LOGICAL)
def test_comparisons_and_logic(name: str, dtype: str, backend: Any) -> None:
    a, b = pairs([True, False] if dtype == "bool" else WHOLE if dtype in INTEGERS else SPECIAL, dtype)
    assert_same(getattr(tk, name)(tensor(a, backend), tensor(b, backend)), getattr(np, name)(a, b))


@over_backends
@each_of("dtype", ["bool", *INTEGERS])
@pytest.mark.parametrize("name", BITWISE)
def test_bits(name: str, dtype: str, backend: Any) -> None:
    a, b = pairs([True, False] if dtype == "bool" else WHOLE, dtype)
    assert_same(getattr(tk, name)(tensor(a, backend), tensor(b, backend)), getattr(np, name)(a, b))
    assert_same(tk.bitwise_invert(tensor(a, backend)), np.invert(a))


@over_backends
@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts(dtype: str, backend: Any) -> None:
    bits = 8 * np.dtype(dtype).itemsize
    a = np.array([1, 3, -1, -8, 2**31 - 1, -(2**31)], dtype)[:, None]
    b = np.arange(bits, dtype=dtype)
    assert_same(tk.bitwise_left_shift(tensor(a, backend), tensor(b, backend)), np.left_shift(a, b))
    assert_same(tk.bitwise_right_shift(tensor(a, backend), tensor(b, backend)), np.right_shift(a, b))
    far = tensor(np.array([bits, -1, bits + 5], dtype), backend)
    assert tk.bitwise_left_shift(tensor(a, backend), far).tolist() == [[0] * 3] * 6
    assert tk.bitwise_right_shift(tensor(a, backend), far).tolist() == [[-int(x < 0)] * 3 for x in a.ravel()]


@over_backends
@each_of("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes(name: str, dtype: str, backend: Any) -> None:
    """Either of 0.0 and -0.0, which are equal, may be the result."""
    a, b = pairs(WHOLE if dtype in INTEGERS else SPECIAL, dtype)
    found, expected = getattr(tk, name)(tensor(a, backend), tensor(b, backend)), getattr(np, name)(a, b)
    np.testing.assert_array_equal(array(found), expected)


@over_backends
@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (None, 0.5), (0.0, None), (None, None), (2.0, 1.0)])
def test_clip(bounds: tuple[float | None, float | None], backend: Any) -> None:
    x = np.array([-2.0, 0.25, 0.75, 3.0, inf, -inf, nan], np.float32)
    expected = x if bounds == (None, None) else np.clip(x, *bounds)
    assert_same(tk.clip(tensor(x, backend), *bounds), expected)
    rows = tk.clip(tensor(x[:4], backend), tensor(np.array([[0.0], [1.0]], np.float32), backend))
    assert rows.tolist() == [[0.0, 0.25, 0.75, 3.0], [1.0, 1.0, 1.0, 3.0]]


@over_backends
@each_of("dtype", FLOATS)
@pytest.mark.parametrize("decimals", [0, 1, 3, -1])
def test_round_to_decimals(decimals: int, dtype: str, backend: Any) -> None:
    x = np.array([0.0, -0.0, 0.25, 1.25, -2.5, 12.5, 15.0, 17.7, 0.1234, inf, -inf, nan], dtype)
    assert_same(tk.round(tensor(x, backend), decimals), np.round(x, decimals))
    assert_same(tensor(x, backend).round(decimals), np.round(x, decimals))


def test_round_of_integers() -> None:
    x = tk.tensor([14, 15], backend=FUSED)
    assert tk.round(x).tolist() == tk.round(x, 2).tolist() == [14, 15]
    assert tk.round(x, -1).tolist() == np.round([14, 15], -1).tolist()


# ---- remainders and whole quotients ------------------------------------------------------------------------


def python(operation: Callable[[float, float], float], a: float, b: float) -> float:
    """Python's // or %; IEEE's where b is 0 and Python raises; a // b of infinities is a / b, as in the standard."""
    if b != 0 and operation is operator.floordiv and (math.isinf(a) or math.isinf(b)):
        return a / b
    if b != 0:
        return operation(a, b)
    return (
        nan
        if operation is operator.mod or a == 0 or a != a
        else math.copysign(inf, a) * math.copysign(1.0, b)
    )


@over_backends
@pytest.mark.parametrize("operation", [operator.floordiv, operator.mod])
def test_quotients_and_remainders_of_special_values(operation: Any, backend: Any) -> None:
    a, b = pairs([*SPECIAL, 0.1, 0.3, 5e-324, 1e308], "float64")
    expected = [python(operation, float(p), float(q)) for p, q in zip(a, b, strict=True)]
    found = array(operation(tensor(a, backend), tensor(b, backend)))
    np.testing.assert_array_equal(found, expected)
    zeros = np.array(expected) == 0
    np.testing.assert_array_equal(np.signbit(found)[zeros], np.signbit(expected)[zeros])


@given(a=st.floats(allow_nan=False, allow_infinity=False), b=st.floats(allow_nan=False, allow_infinity=False))
def test_any_remainder_is_pythons(a: float, b: float) -> None:
    for backend in BACKENDS.values():
        p, q = tensor(np.array([a]), backend), tensor(np.array([b]), backend)
        assert_same(tk.remainder(p, q), [python(operator.mod, a, b)])


@given(
    a=st.integers(-(2**20), 2**20).map(float),
    b=st.integers(-(2**10), 2**10).map(lambda n: n / 16),
)
def test_any_quotient_of_short_numbers_is_pythons(a: float, b: float) -> None:
    for backend in BACKENDS.values():
        p, q = tensor(np.array([a]), backend), tensor(np.array([b]), backend)
        np.testing.assert_array_equal(array(tk.floor_divide(p, q)), [python(operator.floordiv, a, b)])


@over_backends
def test_floor_division_of_a_quotient_that_rounds_up(backend: Any) -> None:
    """1 / 0.1 is 10 when rounded, but 0.1 is a little more than a tenth."""
    a, b = (
        tensor(np.array([1.0, -1.0, 1.0, -1.0]), backend),
        tensor(np.array([0.1, 0.1, -0.1, -0.1]), backend),
    )
    assert (a // b).tolist() == [1.0 // 0.1, -1.0 // 0.1, 1.0 // -0.1, -1.0 // -0.1]
    assert (a % b).tolist() == [1.0 % 0.1, -1.0 % 0.1, 1.0 % -0.1, -1.0 % -0.1]
    assert [x.tolist() for x in divmod(a, b)] == [(a // b).tolist(), (a % b).tolist()]


@over_backends
@pytest.mark.parametrize("dtype", INTEGERS)
def test_quotients_and_remainders_of_integers(dtype: str, backend: Any) -> None:
    a, b = pairs([x for x in WHOLE if x != 0], dtype)
    expected = [divmod(p, q) for p, q in zip(a.tolist(), b.tolist(), strict=True)]
    half = 2 ** (8 * np.dtype(dtype).itemsize - 1)
    wrapped = [(quotient + half) % (2 * half) - half for quotient, _ in expected]
    assert_same(tk.floor_divide(tensor(a, backend), tensor(b, backend)), wrapped, dtype)
    assert_same(tk.remainder(tensor(a, backend), tensor(b, backend)), [rest for _, rest in expected], dtype)
    by_zero = tensor(np.array([5, -5, 0], dtype), backend)
    assert (by_zero % 0).tolist() == (by_zero // 0).tolist() == [0, 0, 0]


def test_operators_with_numbers_on_either_side() -> None:
    x = tk.tensor([2.0, -3.0], backend=FUSED)
    assert (7 % x).tolist() == [1.0, -2.0]
    assert (x % 2).tolist() == [0.0, 1.0]
    assert (7 // x).tolist() == [3.0, -3.0]
    assert [y.tolist() for y in divmod(7, x)] == [[3.0, -3.0], [1.0, -2.0]]
    n = tk.tensor([2, -3], backend=FUSED)
    assert (7 % n).dtype is tk.int32
    assert (n % 2.5).dtype is tk.float32
    assert (n % 2.5).tolist() == [2.0, 2.0]


def test_remainders_of_bools_are_those_of_int8() -> None:
    found = tk.tensor([True], backend=FUSED) % True
    assert (found.dtype.name, found.tolist()) == ("int8", [0])


# ---- dtypes, shapes, numbers -------------------------------------------------------------------------------

ELEMENTWISE = [op for op in OPS.values() if op.elementwise and hasattr(tk, op.name)]
UNARY = [op.name for op in ELEMENTWISE if op.arity == 1 and op.dtype(tk.float32) is tk.float32]
BINARY = [op.name for op in ELEMENTWISE if op.arity == 2]


@pytest.mark.feature(65)
@over_backends
@pytest.mark.parametrize("name", UNARY)
@each_of("dtype", FLOATS)
@each_of("shape", [(), (1,), (0,), (2, 0, 3), (1, 1)])
def test_few_elements_or_none(name: str, shape: tuple[int, ...], dtype: str, backend: Any) -> None:
    y = getattr(tk, name)(tk.full(shape, 0.75, dtype, backend=backend))
    assert y.shape == shape
    assert y.dtype is tk.tensor([0.0], dtype, backend=backend).dtype
    assert array(y).shape == shape


@over_backends
@pytest.mark.parametrize("name", [*BINARY, *COMPARISONS, "subtract", "multiply", "divide", "power"])
def test_shapes_broadcast_and_numbers_take_the_dtype(name: str, backend: Any) -> None:
    function = getattr(tk, name)
    whole = name.startswith("bitwise")
    x = tk.full((2, 1), 3 if whole else 3.0, "int32" if whole else "float64", backend=backend)
    y = tk.full((3,), 2 if whole else 2.0, x.dtype, backend=backend)
    result = function(x, y)
    assert result.shape == (2, 3)
    for other in (function(x, 2 if whole else 2.0), function(3 if whole else 3.0, y)):
        assert other.dtype is result.dtype
        assert other.backend == result.backend
        assert other.ravel()[:1].tolist() == result.ravel()[:1].tolist()
    with pytest.raises(ShapeError, match=r": shapes \(., 1\) and \(., 1\) do not broadcast"):
        function(x, y.reshape((3, 1)))


def test_two_numbers_make_a_tensor() -> None:
    with tk.use_backend(FUSED):
        assert tk.less_equal(1, 2).item() is True
        assert tk.remainder(7, 4).item() == 3
        assert tk.floor_divide(7.0, 2).item() == 3.0
        assert tk.hypot(3.0, 4.0).item() == 5.0
        assert tk.power(2.0, tk.tensor([3.0])).tolist() == [8.0]
        assert tk.sort([3, 1, 2]).tolist() == [1, 2, 3]


@each_of("dtype", ["int32", "int64", "bool"])
@pytest.mark.parametrize("name", ["erf", "asin", "log2", "exp2", "sinh", "exp", "sqrt", "sigmoid"])
def test_elementary_functions_of_integers_and_bools_are_float32(name: str, dtype: str) -> None:
    x = tk.tensor([1, 0, 1], dtype, backend=FUSED)
    result = getattr(tk, name)(x)
    assert result.dtype is tk.float32
    assert result.tolist() == getattr(tk, name)(x.astype("float32")).tolist()
    with tk.use_backend(FUSED):
        assert getattr(tk, name)(1).tolist() == getattr(tk, name)(1.0).tolist()


def test_functions_of_two_integers_are_float32() -> None:
    with tk.use_backend(FUSED):
        assert tk.hypot(3, tk.tensor([4, 0])).tolist() == [5.0, 3.0]
        assert tk.atan2(tk.tensor([1]), tk.tensor([1])).dtype is tk.float32


def test_operands_of_two_backends_do_not_mix() -> None:
    with pytest.raises(MixedBackendError):
        tk.hypot(tk.tensor([1.0], backend=FUSED), tk.tensor([1.0], backend=Numpy()))


ALIASES = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "array": "asarray",
    "bitwise_not": "bitwise_invert",
    "conjugate": "conj",
    "degrees": "rad2deg",
    "fix": "trunc",
    "flatten": "ravel",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "mod": "remainder",
    "permute_dims": "transpose",
    "pow": "power",
    "radians": "deg2rad",
    "right_shift": "bitwise_right_shift",
    "around": "round",
    "rint": "round",
    "true_divide": "divide",
    "hard_silu": "hard_swish",
    "swish": "silu",
}


def test_aliases_are_the_functions_themselves() -> None:
    for alias, name in ALIASES.items():
        assert getattr(tk, alias) is getattr(tk, name)
    # Every other public function has its own name.
    functions = {n: f for n, f in vars(tk).items() if inspect.isfunction(f) and not n.startswith("_")}
    assert {n for n, f in functions.items() if f.__name__ != n} <= set(ALIASES)


# ---- the reference backend knows what they mean ------------------------------------------------------------


@each_of("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_the_bodies_are_near_the_reference(name: str, dtype: str) -> None:
    low, high = next(op.domain for op in OPS.values() if op.name == name)
    x = np.linspace(low, high, 41).astype(dtype)
    x = x[(x >= low) & (x <= high)]
    with np.errstate(all="ignore"):
        found = array(getattr(tk, name)(tensor(x, BACKENDS["bodies"])))
        exact = array(getattr(tk, name)(tensor(x, Reference())))
    np.testing.assert_array_max_ulp(found, exact, 4)


# ---- derivatives -------------------------------------------------------------------------------------------

SMOOTH = [name for name in UNARY if OPS[name].jvp[0] is not None and name not in ("abs", "relu")]


@pytest.mark.parametrize("name", SMOOTH)
def test_third_derivatives_in_every_mix_of_modes(name: str) -> None:
    low, high = OPS[name].domain
    x = tensor(np.linspace(low, high, 7)[1:-1])
    tk.testing.check_grads(getattr(tk, name), (x,), order=3, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["atan2", "hypot", "logaddexp", "remainder", "maximum", "minimum"])
def test_third_derivatives_of_functions_of_two_numbers(name: str) -> None:
    a, b = tensor(np.array([0.6, 1.7, 1.1, 1.9])), tensor(np.array([1.9, 0.7, 0.8, 1.2]))
    tk.testing.check_grads(getattr(tk, name), (a, b), order=3, rtol=1e-4, atol=1e-5)


@over_backends
def test_derivatives_where_a_formula_would_be_undefined(backend: Any) -> None:
    def slope(f: Callable[[Any], Any], *at: float) -> list[float]:
        values: list[float] = tk.elementwise_grad(f)(tensor(np.array(at), backend)).tolist()
        return values

    zero = tensor(np.array([0.0]), backend)
    assert slope(lambda x: tk.hypot(x, zero), 0.0) == [0.0]
    assert slope(lambda x: tk.logaddexp(x, x * 0 - inf), 1.0) == [1.0]
    assert slope(lambda x: tk.logaddexp(x, tensor(np.array([-inf]), backend)), -inf) == [0.5]
    assert slope(tk.asinh, 1e200) == [pytest.approx(1e-200)]
    assert slope(tk.acosh, 1e200) == [pytest.approx(1e-200)]
    assert slope(tk.expm1, -50.0) == [pytest.approx(math.exp(-50), rel=1e-14)]
    for f in (tk.round, tk.trunc, tk.ceil, tk.floor):
        assert slope(lambda x, f=f: f(x) + x, 0.3) == [1.0]


def test_the_derivative_of_a_remainder_by_its_divisor_is_minus_the_quotient() -> None:
    a, b = tensor(np.array([7.0, -7.0, 1.0])), tensor(np.array([2.0, 2.0, 0.1]))
    assert tk.grad(lambda b: tk.remainder(a, b).sum())(b).tolist() == [-3.0, 4.0, -9.0]
    assert tk.grad(lambda a: (a // b).sum() + (a * 0).sum())(a).tolist() == [0.0, 0.0, 0.0]


def test_clip_has_derivatives_only_inside_its_bounds() -> None:
    x = tensor(np.array([-2.0, 0.5, 2.0]))
    assert tk.grad(lambda x: tk.clip(x, -1.0, 1.0).sum())(x).tolist() == [0.0, 1.0, 0.0]
