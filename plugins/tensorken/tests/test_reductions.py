"""Reductions, scans and statistics are numpy's, on every dtype, shape, axis and special value, and differentiable."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tensorken as tk
from core.tests.drawing import (
    BACKENDS,
    DTYPES,
    FLOATS,
    INTEGERS,
    arrays,
    axes_of,
    inf,
    nan,
    near,
    same,
    tensor,
    values,
)
from core.tests.each import each_of
from core.tests.examples import examples
from core.tests.support import FUSED, array, f64
from tensorken_core.errors import ArgumentError, AxisError, DTypeError, ShapeError

pytestmark = pytest.mark.slow

FEW = settings(max_examples=examples(40))
OVER_BACKENDS = pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)


def by_numpy(function: Any, *args: Any, **keywords: Any) -> Any:
    """numpy's result, without its warnings."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*args, **keywords)


def lasting(dtype: str) -> str:
    """The dtype in which sums and products are: that of the elements, int32 for bool."""
    return "int32" if dtype == "bool" else dtype


def widened(x: Any) -> Any:
    """For exact sums and products to compare with: floats in float64, ints as they are."""
    return x.astype("float64") if x.dtype.kind == "f" else x.astype(lasting(str(x.dtype)))


# ---- reductions --------------------------------------------------------------------------------------------


@pytest.mark.feature(3, 21)
@OVER_BACKENDS
@pytest.mark.parametrize("name", ["sum", "prod"])
@FEW
@given(x=arrays(), data=st.data(), keepdims=st.booleans())
def test_sums_and_products(name: str, backend: Any, x: Any, data: Any, keepdims: bool) -> None:
    axis, dtype = data.draw(axes_of(x.ndim)), lasting(str(x.dtype))
    wide = widened(x)
    expected = by_numpy(getattr(np, name), wide, axis=axis, keepdims=keepdims, dtype=wide.dtype)
    found = getattr(tk, name)(tensor(x, backend), axis, keepdims)
    if dtype in INTEGERS:
        same(found, expected, dtype)
    else:
        near(found, by_numpy(np.asarray, expected).astype(dtype), dtype)


@OVER_BACKENDS
@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod"])
@each_of("dtype", DTYPES)
def test_the_dtype_of_sums_can_be_chosen(name: str, dtype: str, backend: Any) -> None:
    x = values(dtype, (7,), 3, finite=True)
    for wanted in (*INTEGERS, *FLOATS):
        found = getattr(tk, name)(tensor(x, backend), dtype=wanted)
        expected = getattr(np, name)(x.astype(wanted).astype("float64"))
        near(found.astype("float64"), expected, "float64", 2e-3)
        assert str(found.dtype) == wanted
        assert str(getattr(tensor(x, backend), name)(dtype=wanted).dtype) == wanted
    with pytest.raises(DTypeError, match=f"^{name}: not defined for bool"):
        getattr(tk, name)(tensor(x, backend), dtype="bool")


@pytest.mark.feature(3, 22)
@OVER_BACKENDS
@pytest.mark.parametrize("name", ["max", "min", "ptp"])
@FEW
@given(x=arrays(least_size=1), data=st.data(), keepdims=st.booleans())
def test_extremes(name: str, backend: Any, x: Any, data: Any, keepdims: bool) -> None:
    axis = data.draw(axes_of(x.ndim))
    if name == "ptp" and x.dtype == bool:
        return
    expected = by_numpy(getattr(np, name), x, axis=axis, keepdims=keepdims)
    found = getattr(tk, name)(tensor(x, backend), axis, keepdims)
    np.testing.assert_array_equal(array(found), expected)
    assert str(found.dtype) == str(x.dtype)
    if axis is None or isinstance(axis, int):
        for place in ("argmax", "argmin"):
            places = getattr(tk, place)(tensor(x, backend), axis, keepdims)
            same(places, getattr(np, place)(x, axis=axis, keepdims=keepdims), "int32")


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_extremes_of_no_elements_are_refused(name: str, dtype: str) -> None:
    for shape, axis in (((0,), None), ((0,), 0), ((2, 0), 1), ((0, 2), 0)):
        with pytest.raises(ValueError, match=f"^{name}: no elements to reduce"):
            getattr(tk, name)(tensor(values(dtype, shape, 0)), axis)
    assert getattr(tk, name)(tensor(values(dtype, (2, 0), 0)), 0).shape == (0,)


@OVER_BACKENDS
@pytest.mark.parametrize("name", ["any", "all", "count_nonzero"])
@FEW
@given(x=arrays(), data=st.data(), keepdims=st.booleans())
def test_truth(name: str, backend: Any, x: Any, data: Any, keepdims: bool) -> None:
    axis = data.draw(axes_of(x.ndim))
    expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    found = getattr(tk, name)(tensor(x, backend), axis, keepdims)
    same(found, expected, "int32" if name == "count_nonzero" else "bool")


@OVER_BACKENDS
@FEW
@given(x=arrays(), data=st.data(), keepdims=st.booleans())
def test_means(backend: Any, x: Any, data: Any, keepdims: bool) -> None:
    axis = data.draw(axes_of(x.ndim))
    dtype = str(x.dtype) if x.dtype.kind == "f" else "float32"
    x = x if x.dtype.kind == "f" else np.clip(x.astype("int32"), -100, 100)
    expected = by_numpy(np.mean, x.astype("float64"), axis=axis, keepdims=keepdims)
    near(tk.mean(tensor(x, backend), axis, keepdims), expected, dtype)


def test_the_mean_of_many_small_floats_does_not_overflow() -> None:
    x = tk.full((100_000,), 1000.0, "float16")
    assert tk.mean(x).item() == 1000.0
    assert tk.var(x).item() == 0.0


# ---- scans -------------------------------------------------------------------------------------------------


@OVER_BACKENDS
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@FEW
@given(x=arrays(), data=st.data())
def test_running_sums_and_products(name: str, backend: Any, x: Any, data: Any) -> None:
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1)) if x.ndim else None
    dtype, wide = lasting(str(x.dtype)), widened(x)
    expected = by_numpy(getattr(np, name), wide, axis=axis, dtype=wide.dtype)
    found = getattr(tk, name)(tensor(x, backend), axis)
    if dtype in INTEGERS:
        same(found, expected, dtype)
    else:
        near(found, by_numpy(expected.astype, dtype), dtype)
    if axis is None and x.ndim != 1:
        return
    standard = getattr(tk, {"cumsum": "cumulative_sum", "cumprod": "cumulative_prod"}[name])
    assert array(standard(tensor(x, backend), axis=axis)).tobytes() == array(found).tobytes()
    longer = standard(tensor(x, backend), axis=axis, include_initial=True)
    along = 0 if axis is None else axis
    np.testing.assert_array_equal(np.delete(array(longer), 0, along), array(found))
    assert (np.take(array(longer), [0], along) == (0 if name == "cumsum" else 1)).all()
    assert longer.dtype is found.dtype


def test_running_sums_need_an_axis_where_there_are_several() -> None:
    with pytest.raises(AxisError, match=r"^cumulative_sum: shape \(2, 2\) has 2 axes; give axis="):
        tk.cumulative_sum([[1, 2], [3, 4]])
    with pytest.raises(AxisError, match=r"^cumulative_prod: shape \(\) has 0 axes"):
        tk.cumulative_prod(1.0)


@OVER_BACKENDS
@FEW
@given(x=arrays(least_rank=1), data=st.data())
def test_differences(backend: Any, x: Any, data: Any) -> None:
    axis, n = data.draw(st.integers(-x.ndim, x.ndim - 1)), data.draw(st.integers(0, 3))
    row = list(x.shape)
    row[axis] = data.draw(st.integers(1, 2))
    before, one = values(str(x.dtype), tuple(row), 5), np.array(1, x.dtype)
    same(tk.diff(tensor(x, backend), n, axis), by_numpy(np.diff, x, n, axis))
    found = tk.diff(tensor(x, backend), axis=axis, n=n, prepend=tensor(before, backend), append=one.item())
    same(found, by_numpy(np.diff, x, n, axis, prepend=before, append=one))


def test_differences_refuse_invalid_arguments() -> None:
    with pytest.raises(ArgumentError, match=r"^diff: n must not be negative, got -1"):
        tk.diff([1.0, 2.0], n=-1)
    with pytest.raises(ShapeError, match=r"^diff: prepend and append must have 0 or 2 axes"):
        tk.diff([[1.0, 2.0]], prepend=[1.0])


# ---- statistics --------------------------------------------------------------------------------------------


@OVER_BACKENDS
@pytest.mark.parametrize("name", ["var", "std"])
@FEW
@given(x=arrays(), data=st.data(), keepdims=st.booleans(), correction=st.sampled_from([0, 1, 0.5, 3]))
def test_spread(name: str, backend: Any, x: Any, data: Any, keepdims: bool, correction: float) -> None:
    axis = data.draw(axes_of(x.ndim))
    dtype = str(x.dtype) if x.dtype.kind == "f" else "float32"
    x = x if x.dtype.kind == "f" else np.clip(x.astype("int32"), -100, 100)
    expected = by_numpy(getattr(np, name), x.astype("float64"), axis=axis, keepdims=keepdims, ddof=correction)
    found = getattr(tk, name)(tensor(x, backend), axis, correction, keepdims)
    near(found, expected, dtype, {"float16": 5e-3, "float32": 1e-4}.get(dtype))
    by_name = getattr(tk, name)(tensor(x, backend), axis=axis, ddof=correction, keepdims=keepdims)
    np.testing.assert_array_equal(array(by_name), array(found))


def test_spread_takes_one_correction() -> None:
    with pytest.raises(ArgumentError, match=r"^std: correction=1 and ddof=1 are two names of one argument"):
        tk.std([1.0, 2.0], correction=1, ddof=1)


QUANTILES = ["linear", "lower", "higher", "nearest", "midpoint"]


@OVER_BACKENDS
@FEW
@given(
    x=arrays(DTYPES, finite=True),
    data=st.data(),
    keepdims=st.booleans(),
    q=st.sampled_from([0.0, 0.25, 0.3, 0.5, 0.9, 1.0]),
    method=st.sampled_from(QUANTILES),
)
def test_quantiles(backend: Any, x: Any, data: Any, keepdims: bool, q: float, method: str) -> None:
    axis = data.draw(axes_of(x.ndim))
    dtype = str(x.dtype) if x.dtype.kind == "f" else "float32"
    t, wide = tensor(x, backend), x.astype("float64")
    if wide.size == 0:  # numpy refuses
        found, shape = tk.quantile(t, q, axis, keepdims), np.sum(wide, axis=axis, keepdims=keepdims).shape
        near(found, np.full(shape, nan), dtype)
        return
    near(
        tk.quantile(t, q, axis, keepdims, method),
        np.quantile(wide, q, axis=axis, keepdims=keepdims, method=method),
        dtype,
    )
    shares = tensor(np.array([[q, 0.45]]), backend)
    near(
        tk.quantile(t, shares, axis, keepdims, method).astype(dtype),
        np.quantile(wide, [[q, 0.45]], axis=axis, keepdims=keepdims, method=method),
        dtype,
    )
    near(tk.percentile(t, [100 * q, 20], axis), np.percentile(wide, [100 * q, 20], axis=axis), dtype, 2e-3)
    near(tk.median(t, axis, keepdims), by_numpy(np.median, wide, axis=axis, keepdims=keepdims), dtype)


def test_quantiles_of_specials() -> None:
    assert np.isnan(tk.median(f64([1.0, nan, 2.0])).item())
    assert tk.median(f64([inf, inf, 1.0])).item() == inf
    assert tk.median(f64([-inf, inf, 1.0])).item() == 1.0
    assert tk.median(f64([inf, inf])).item() == inf
    assert tk.median(f64([-inf, 3.0])).item() == -inf
    assert tk.median(tk.tensor([-6e4, 6e4], "float16")).item() == 0.0  # their difference overflows
    assert np.isnan(tk.median(f64([])).item())
    assert tk.quantile(f64([1.0, 2.0]), []).shape == (0,)


def test_quantiles_refuse_invalid_fractions() -> None:
    for q in (1.5, -0.1, "half", None, True, [0.5, 2.0]):
        with pytest.raises(ArgumentError, match=r"^quantile: q must be a number from 0 to 1"):
            tk.quantile([1.0], q)
    with pytest.raises(ArgumentError, match=r"^percentile: q must be a number from 0 to 100"):
        tk.percentile([1.0], 101)
    with pytest.raises(ArgumentError, match=r"^quantile: method must be one of linear, "):
        tk.quantile([1.0], 0.5, method="middle")


@each_of(
    ("call", "x", "gradient"),
    [
        (tk.median, [0, 2, 0, -1.5], [0.5, 0, 0.5, 0]),
        (tk.median, [1, 1], [0.5, 0.5]),
        (tk.median, [inf, inf], [0.5, 0.5]),
        (tk.median, [-0.0, 0.0], [0.5, 0.5]),
        (lambda x: tk.quantile(x, 0.25), [2, 2, 2], [0.5, 0.5, 0]),
        (lambda x: tk.percentile(x, 75), [2, 2, 2], [0, 0.5, 0.5]),
        (lambda x: tk.quantile(x, [0.25, 0.875]), [2, 2, 2], [0.5, 0.75, 0.75]),
        (lambda x: tk.quantile(x, x.constant([0.25, 0.875], x.dtype, (2,))), [2, 2, 2], [0.5, 0.75, 0.75]),
    ],
)
def test_quantiles_of_equal_elements_have_a_derivative_by_both(call: Any, x: Any, gradient: Any) -> None:
    at = f64(x)
    assert tk.grad(lambda x: call(x).sum())(at).tolist() == gradient
    assert tk.jacfwd(lambda x: call(x).sum())(at).tolist() == gradient
    assert set(np.ravel(call(at).tolist())) == {at[0].item()}  # exactly, however the weights are rounded


def test_quantiles_at_shares_that_are_not_known() -> None:
    x = f64([4.0, 1.0, 2.0])
    assert tk.jit(tk.quantile)(x, f64([-0.1, 0.25, 1.1, nan])).tolist() == pytest.approx(
        [nan, 1.5, nan, nan], nan_ok=True
    )
    assert tk.grad(tk.quantile, 1)(x, f64(0.75)).item() == 4.0
    assert tk.grad(tk.quantile, 1)(x, f64(0.5)).item() == 0.0  # a corner, as JAX has it
    assert tk.quantile(tk.tensor([1.0, 2.0]), np.float64(0.5)).dtype is tk.float32
    assert tk.quantile(tk.tensor([1.0, 2.0]), np.array([0.5, 1.0], "float32")).tolist() == [1.5, 2.0]
    assert tk.quantile([1, 2, 4], tk.tensor(1)).item() == 4.0
    assert tk.percentile(tk.tensor([1.0, 2.0], "float16"), tk.tensor([50.0], "float16")).tolist() == [1.5]
    assert tk.quantile(f64([inf, 1.0]), f64([0.0, 0.5, 1.0])).tolist() == [1.0, inf, inf]
    assert tk.quantile(tk.ones((2, 0)), tk.tensor([0.1, 0.2]), 1).shape == (2, 2)
    with pytest.raises(ArgumentError, match=r"^quantile: q must be from 0 to 1, got tensor"):
        tk.quantile(x, f64([0.5, 2.0]))
    with pytest.raises(DTypeError, match=r"^quantile: q must be numbers, got bool"):
        tk.quantile(x, tk.tensor([True]))


@OVER_BACKENDS
def test_averages(backend: Any) -> None:
    x, w = values("float64", (3, 4), 1, finite=True), np.arange(1.0, 13.0).reshape(3, 4)
    for axis in (None, 0, 1, (0, 1)):
        near(tk.average(tensor(x, backend), axis, tensor(w, backend)), np.average(x, axis, w), "float64")
        near(tk.average(tensor(x, backend), axis), np.average(x, axis), "float64")
    near(tk.average(tensor(x, backend), 1, [1, 2, 3, 4]), np.average(x, 1, [1, 2, 3, 4]), "float64")
    with pytest.raises(ShapeError, match=r"^average: weights need shape \(3, 4\)"):
        tk.average(tensor(x, backend), None, [1.0, 2.0])


# ---- derivatives -------------------------------------------------------------------------------------------

SMOOTH = {
    "prod": lambda x: tk.prod(x, 1),
    "prod of all": tk.prod,
    "cumprod": lambda x: tk.cumprod(x, 1),
    "cumprod of all": tk.cumprod,
    "cumulative_prod": lambda x: tk.cumulative_prod(x, axis=0, include_initial=True),
    "cumulative_sum": lambda x: tk.cumulative_sum(x, axis=0, include_initial=True) ** 2,
    "diff": lambda x: tk.diff(x, 2, prepend=1.0) ** 2,
    "mean": lambda x: tk.mean(x * x, 0),
    "var": lambda x: tk.var(x, 1, correction=1),
    "std": lambda x: tk.std(x, 1),
    "median": lambda x: tk.median(x, 1) ** 2,
    "quantile": lambda x: tk.quantile(x, [0.1, 0.6], 0) ** 2,
    "average": lambda x: tk.average(x, 1, weights=x * x),
    "ptp": lambda x: tk.ptp(x, 1) ** 2,
}


@pytest.mark.parametrize("backend", [FUSED, BACKENDS["bodies"], BACKENDS["reference"]], ids=repr)
@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives(name: str, backend: Any) -> None:
    x = tensor(np.random.default_rng(1).permutation(12).reshape(3, 4) * 0.25 - 1.3, backend)
    tk.testing.check_grads(SMOOTH[name], (x,), order=2, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SMOOTH)
def test_vmap_is_the_loop(name: str) -> None:
    x = tensor(np.random.default_rng(2).normal(size=(2, 3, 4)))
    for f in (SMOOTH[name], lambda v: tk.grad(lambda u: SMOOTH[name](u).sum())(v)):
        expected = np.stack([array(f(row)) for row in x])
        np.testing.assert_allclose(array(tk.vmap(f)(x)), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "row", [[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [2.0, 0.0, 0.0, 0.0], [0.0], [1.0, -0.0, 2.0, 5.0]]
)
def test_derivatives_of_products_with_zeros_to_the_third_order(row: list[float]) -> None:
    """As a polynomial in each factor a product is differentiated by leaving that factor out."""
    x = np.array(row)
    n = len(row)

    def without(*places: int) -> float:
        return float(np.prod(np.delete(x, list(places)))) if len(set(places)) == len(places) else 0.0

    first = [without(i) for i in range(n)]
    second = [[without(i, j) for j in range(n)] for i in range(n)]
    third = [[[without(i, j, k) for k in range(n)] for j in range(n)] for i in range(n)]
    for f in (tk.prod, lambda v: tk.cumprod(v)[-1]):
        for grad, hessian in ((tk.jacrev, tk.jacfwd), (tk.jacfwd, tk.jacrev)):
            np.testing.assert_array_equal(array(grad(f)(f64(row))), first)
            np.testing.assert_array_equal(array(hessian(grad(f))(f64(row))), second)
            np.testing.assert_array_equal(array(grad(hessian(grad(f)))(f64(row))), third)


def test_every_running_product_has_its_derivative() -> None:
    x = f64([2.0, 0.0, 3.0, 0.0])
    expected = [[1, 0, 0, 0], [0, 2, 0, 0], [0, 6, 0, 0], [0, 0, 0, 0]]
    assert tk.jacfwd(tk.cumprod)(x).tolist() == tk.jacrev(tk.cumprod)(x).tolist() == expected


def test_spread_of_equal_numbers_has_a_derivative() -> None:
    x = f64([3.0, 3.0, 3.0])
    assert tk.grad(tk.std)(x).tolist() == tk.grad(tk.var)(x).tolist() == [0.0, 0.0, 0.0]


@OVER_BACKENDS
def test_sum_over_no_axes_is_the_operand_to_the_bit(backend: Any) -> None:
    x = np.array([-0.0, 0.0, 1.5])
    assert np.signbit(array(tensor(x, backend).sum(()))).tolist() == [True, False, False]
