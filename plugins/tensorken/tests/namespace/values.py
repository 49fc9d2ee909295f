"""Functions of values: elementwise, reductions, orders, sets, counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from hypothesis import strategies as st

from core.tests.drawing import FLOATS, INTEGERS, Array, arrays, values
from plugins.tensorken.tests.namespace.rows import (
    BOOL,
    Call,
    Draw,
    Fixed,
    Row,
    along,
    floating,
    in_its_dtype,
    lasting,
    one,
    one_axis,
    plus,
    several,
)

# ---- numpy's equals, where numpy has none ---


def each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of one Python float, over an array; NaN gives NaN."""
    return lambda x: np.array([v if math.isnan(v) else function(v) for v in x.ravel().tolist()]).reshape(
        x.shape
    )


def inverse_error(v: float) -> float:
    if abs(v) >= 1:
        return math.copysign(math.inf, v) if abs(v) == 1 else math.nan
    return float(mpmath.erfinv(v))


def logistic(x: Array) -> Array:
    return np.where(x >= 0, 1, np.exp(-np.abs(x))) / (1 + np.exp(-np.abs(x)))


def log_sum_exp(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(top), top, 0)
    total = np.log(np.sum(np.exp(x - shift), axis=axis, keepdims=True)) + shift
    return total if keepdims else np.squeeze(total, tuple(range(x.ndim)) if axis is None else axis)


def log_soft_max(x: Array, axis: int) -> Array:
    """Infinite maxima share the total of 1, where a quotient would be NaN."""
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    below = np.where(x == top, 0, x - top)
    return below - np.log(np.sum(np.exp(below), axis=axis, keepdims=True))


def raised(a: Array, b: Array) -> Array:
    """numpy refuses negative powers of integers; here they are 0, but of 1 and -1."""
    if a.dtype.kind in "fb":
        return np.power(a, b)
    whole = np.where(b < 0, np.where(abs(a) == 1, a ** (b % 2), 0), np.power(a, np.maximum(b, 0)))
    return whole.astype(a.dtype)


def stepped(a: Array, b: Array) -> Array:
    """heaviside, of integers too, which numpy makes floats of."""
    return np.where(a == 0, b, np.maximum(np.sign(a), 0))


def whole_quotient(a: Array, b: Array) -> Array:
    """floor(a / b) if one is infinite, as the array API standard prefers; numpy's result is Python's, NaN or -1."""
    quotient = np.floor_divide(a, b)
    if quotient.dtype.kind != "f":
        return quotient
    return np.where(np.isinf(a) | np.isinf(b), a / b, quotient).astype(quotient.dtype)


def rounded(x: Array) -> Array:
    """numpy makes floats of bools to round them."""
    return np.round(x) if x.dtype.kind == "f" else x


def initial(scan: Callable[..., Array], first: int) -> Callable[..., Array]:
    def cumulative(x: Array, axis: int, include_initial: bool, dtype: Any = None) -> Array:
        found = scan(x, axis, dtype or x.dtype)
        return np.insert(found, 0, first, axis) if include_initial else found

    return cumulative


def weighed(x: Array, weights: Array, axis: Any, keepdims: bool) -> Array:
    return np.asarray(np.average(x, axis, weights, keepdims=keepdims))


def greatest(x: Array, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
    """The first k of a stable order, in which NaN is greatest."""
    if largest:
        order = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, stable=True), axis)
    else:
        order = np.argsort(x, axis, stable=True)
    order = np.take(order, range(k), axis)
    return np.take_along_axis(x, order, axis), order


def signed_bit(x: Array) -> Array:
    """numpy refuses bools; integers are negative or not."""
    return np.signbit(x) if x.dtype.kind == "f" else np.less(x, 0)


# ---- elementwise -------------------------------------------------------------------------------------------

EXACT_OF_ONE = """sign trunc floor ceil fix isfinite isinf isnan logical_not invert bitwise_not bitwise_invert
    nan_to_num isposinf isneginf""".split()
FLOATING_OF_ONE = """acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh cos cosh deg2rad
    degrees exp exp2 expm1 log log1p log2 log10 rad2deg radians sin sinc sinh sqrt tan tanh reciprocal""".split()
EXACT_OF_TWO = """equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and
    bitwise_or bitwise_xor""".split()
ARITHMETIC = "remainder mod fmod left_shift right_shift".split()
FLOATING_OF_TWO = "divide true_divide atan2 arctan2 hypot logaddexp".split()

ELEMENTWISE = {
    **{name: Row(one()) for name in EXACT_OF_ONE},
    **{name: Row(one(), cast=floating, near=True) for name in FLOATING_OF_ONE},
    **{name: Row(one()) for name in ("abs", "absolute")},
    "negative": Row(one(), refused=BOOL),
    "square": Row(one()),
    "positive": Row(one(), np.copy),
    "conj": Row(one(), np.copy),
    "real": Row(one(), np.copy),
    "imag": Row(one(), np.zeros_like),
    "round": Row(one(), rounded),
    "around": Row(one(), rounded),
    "rint": Row(one(), rounded),
    "signbit": Row(one(), signed_bit),
    **{name: Row(several(2)) for name in (*EXACT_OF_TWO, "add", "multiply")},
    "subtract": Row(several(2), refused=BOOL),
    **{name: Row(several(2)) for name in ARITHMETIC},
    "floor_divide": Row(several(2), whole_quotient),
    "divmod": Row(several(2), lambda a, b: (whole_quotient(a, b), np.remainder(a, b))),
    **{name: Row(several(2), signs=False) for name in ("maximum", "minimum", "fmax", "fmin")},
    **{name: Row(several(2), cast=floating, near=True) for name in FLOATING_OF_TWO},
    "stop_gradient": Row(one(), np.asarray),
    "relu": Row(one(), lambda x: np.maximum(x, 0), cast=floating, signs=False),
    "sigmoid": Row(one(), logistic, cast=floating, near=True),
    "softplus": Row(one(), lambda x: np.logaddexp(x, 0), cast=floating, near=True),
    "erf": Row(one(), each(math.erf), cast=floating, near=True),
    "erfinv": Row(one(), each(inverse_error), cast=floating, near=True),
    "clip": Row(
        plus(one(), min=st.sampled_from([None, -1, 0, 2]), max=st.sampled_from([0, 1, 3])),
        cast=lasting,
        signs=False,
    ),
    "power": Row(several(2, finite=True), raised, near=True),
    "pow": Row(several(2, finite=True), raised, near=True),
    "copysign": Row(several(2), cast=floating),
    "nextafter": Row(several(2, dtypes=("float32", "float64"))),
    "heaviside": Row(several(2), stepped, cast=floating),
    "bitwise_left_shift": Row(several(2), np.left_shift),
    "bitwise_right_shift": Row(several(2), np.right_shift),
    **{
        name: Row(plus(several(2), equal_nan=st.booleans(), rtol=st.sampled_from([1e-5, 0.5])))
        for name in ("isclose", "allclose")
    },
    "array_equal": Row(plus(several(2, dtypes=FLOATS), equal_nan=st.booleans())),
    "where": Row(lambda draw: with_condition(draw)),
}


def with_condition(draw: Draw) -> Call:
    (a, b, c), _ = several(3)(draw)
    return (Fixed(a.astype("float64") > 0), b, c), {}


# ---- reductions, scans, statistics -------------------------------------------------------------------------

TOTALS = {"float16": 4e-3, "float32": 1e-4}
SPREAD = {"float16": 2e-2, "float32": 1e-3, "float64": 1e-10}
SHARES = st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0, [0.25, 1.0]])
SMALL = {"finite": True}

REDUCTIONS = {
    **{name: Row(along()) for name in ("any", "all")},
    **{name: Row(along(), signs=False) for name in ("max", "min", "amax", "amin")},
    "ptp": Row(along()),
    "count_nonzero": Row(along(), result="int32"),
    **{name: Row(along(several_axes=False), result="int32") for name in ("argmax", "argmin")},
    "sum": Row(along(), in_its_dtype(np.sum), cast=lasting, near=True),
    "prod": Row(along(), in_its_dtype(np.prod), cast=lasting, near=True),
    "mean": Row(along(**SMALL), cast=floating, near=True, tolerance=TOTALS),
    **{
        name: Row(
            plus(along(**SMALL), ddof=st.sampled_from([0, 1])), cast=floating, near=True, tolerance=SPREAD
        )
        for name in ("var", "std")
    },
    "median": Row(along(least_size=1), cast=floating, near=True),
    "quantile": Row(plus(along(least_size=1, **SMALL), q=SHARES), cast=floating, near=True),
    "percentile": Row(
        plus(along(least_size=1, **SMALL), q=st.sampled_from([0, 30, [25, 100]])), cast=floating, near=True
    ),
    "average": Row(
        lambda draw: weights_beside(draw), weighed, cast=floating, near=True, tolerance={"float16": 5e-2}
    ),
    "logsumexp": Row(along(), log_sum_exp, cast=floating, near=True, tolerance={"float16": 1e-2}),
    "softmax": Row(
        one_axis(), lambda x, axis: np.exp(log_soft_max(x, axis)), cast=floating, near=True, tolerance=TOTALS
    ),
    "log_softmax": Row(one_axis(), log_soft_max, cast=floating, near=True, tolerance=TOTALS),
    "cumsum": Row(along(False, False), in_its_dtype(np.cumsum), cast=lasting, near=True),
    "cumprod": Row(along(False, False), in_its_dtype(np.cumprod), cast=lasting, near=True),
    "cumulative_sum": Row(
        plus(one_axis(), include_initial=st.booleans()), initial(np.cumsum, 0), cast=lasting, near=True
    ),
    "cumulative_prod": Row(
        plus(one_axis(), include_initial=st.booleans()), initial(np.cumprod, 1), cast=lasting, near=True
    ),
    "diff": Row(plus(one_axis(), n=st.integers(0, 3))),
}


def weights_beside(draw: Draw) -> Call:
    (x,), keywords = along(finite=True, least_size=1)(draw)
    weights = np.abs(values("float32", x.shape, draw(st.integers(0, 99)), True)) + 1
    return (x,), {"weights": weights.astype(floating(str(x.dtype)))} | keywords


# ---- orders, places, sets, counts --------------------------------------------------------------------------


def sorted_and_wanted(draw: Draw) -> Call:
    x = np.sort(draw(arrays(least_rank=1, greatest_rank=1)))
    wanted = values(str(x.dtype), (2, draw(st.integers(0, 3))), draw(st.integers(0, 99)))
    return (x, wanted), {"side": draw(st.sampled_from(["left", "right"]))}


def two_of_a_kind(draw: Draw) -> Call:
    x = draw(arrays())
    return (x, values(str(x.dtype), (draw(st.integers(0, 5)),), draw(st.integers(0, 99)))), {}


def with_places(draw: Draw) -> Call:
    x = draw(arrays(least_rank=1, least_size=1))
    axis = draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    size = x.size if axis is None else x.shape[axis]
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    places = np.random.default_rng(draw(st.integers(0, 99))).integers(
        0, size, shape, draw(st.sampled_from(INTEGERS))
    )
    return (x, Fixed(places)), {"axis": axis}


def with_places_along(draw: Draw) -> Call:
    (x,), keywords = one_axis(least_size=1)(draw)
    shape = list(x.shape)
    shape[keywords["axis"]] = draw(st.integers(0, 3))
    size = x.shape[keywords["axis"]]
    places = np.random.default_rng(draw(st.integers(0, 99))).integers(-size, size, shape)
    return (x, Fixed(places)), keywords


def counted(draw: Draw) -> Call:
    x = np.array(draw(st.lists(st.integers(0, 6), max_size=8)), draw(st.sampled_from(INTEGERS)))
    return (Fixed(x[:: draw(st.sampled_from([1, -1]))]),), {"minlength": draw(st.integers(0, 9))}


def shares(draw: Draw) -> Call:
    x = draw(arrays(("int32", "float32", "float64"), finite=True))
    return (x,), {"bins": draw(st.integers(1, 5)), "range": draw(st.sampled_from([None, (-1.0, 2.0)]))}


def first_of_an_axis(draw: Draw) -> Call:
    (x,), keywords = one_axis()(draw)
    return (x,), keywords | {
        "k": draw(st.integers(0, x.shape[keywords["axis"]])),
        "largest": draw(st.booleans()),
    }


SEARCHING = {
    "sort": Row(one_axis(), lambda x, axis: np.sort(x, axis, stable=True)),
    "argsort": Row(one_axis(), lambda x, axis: np.argsort(x, axis, stable=True), result="int32"),
    "topk": Row(first_of_an_axis, greatest, result=(None, "int32")),
    "take": Row(with_places),
    "take_along_axis": Row(with_places_along),
    "nonzero": Row(one(least_rank=1), result="int32"),
    **{name: Row(one(), result="int32") for name in ("argwhere", "flatnonzero")},
    "searchsorted": Row(sorted_and_wanted, result="int32"),
    "isin": Row(plus(two_of_a_kind, invert=st.booleans())),
    "unique": Row(one(), signs=False),
    "unique_values": Row(one(), lambda x: np.unique(x, equal_nan=False), signs=False),
    "unique_counts": Row(one(), result=(None, "int32"), signs=False),
    "unique_inverse": Row(one(), lambda x: np.unique_all(x)[::2], result=(None, "int32"), signs=False),
    "unique_all": Row(one(), result=(None, "int32", "int32", "int32"), signs=False),
    "bincount": Row(counted, result="int32"),
    "histogram": Row(shares, cast=floating, result=("int32", None), near=True),
}
