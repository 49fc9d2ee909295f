"""Libraries for the array API standard accept tensors: array-api-compat and -extra, scipy and scikit-learn."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import array_api_compat
import array_api_extra as extra
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.array_api import make_strategies_namespace

import tensorken as tk
from tensorken_core.errors import ImmutableError
from tools.workspace import ROOT

X = np.array([[3.0, -1.0, 0.5], [2.0, 2.0, -4.0]], "float32")
Y = np.array([[1.0, 2.0, 0.25], [-2.0, 3.0, 4.0]], "float32")
WITH_NAN = np.array([[3.0, np.nan, 0.5], [np.inf, 2.0, -np.inf]], "float32")
I = np.array([[3, 1, 3], [0, 2, 1]], "int32")

# Each function is called with tensors, and with numpy arrays for the expected result.
CALLS = {
    "angle": lambda xp, x, y, n, i: extra.angle(xp.asarray([1.0, -1.0])),
    "apply_where": lambda xp, x, y, n, i: extra.apply_where(
        x > 0, (x, y), lambda a, b: a / b, lambda a, b: a * b
    ),
    "apply_where with a fill_value": lambda xp, x, y, n, i: extra.apply_where(
        x > 0, x, xp.sqrt, fill_value=-1.0
    ),
    "argpartition": lambda xp, x, y, n, i: extra.argpartition(i, 1),
    "atleast_nd": lambda xp, x, y, n, i: extra.atleast_nd(x, ndim=4),
    "broadcast_shapes": lambda xp, x, y, n, i: extra.broadcast_shapes(x.shape, (4, 1, 1), xp=xp),
    "cov": lambda xp, x, y, n, i: extra.cov(x),
    "cov of columns": lambda xp, x, y, n, i: extra.cov(x, axis=0, correction=0),
    "create_diagonal": lambda xp, x, y, n, i: extra.create_diagonal(x, offset=1),
    "default_dtype": lambda xp, x, y, n, i: xp.zeros(1, dtype=extra.default_dtype(xp, "integral")).shape,
    "deg2rad": lambda xp, x, y, n, i: extra.deg2rad(x),
    "diag_indices": lambda xp, x, y, n, i: x[extra.diag_indices(2, xp=xp)],
    "expand_dims": lambda xp, x, y, n, i: extra.expand_dims(x, axis=(0, 2)),
    "isclose": lambda xp, x, y, n, i: extra.isclose(n, n + 1e-9, equal_nan=True),
    "isin": lambda xp, x, y, n, i: extra.isin(i, xp.asarray([1, 2], dtype=i.dtype)),
    "isin, inverted": lambda xp, x, y, n, i: extra.isin(x, y, invert=True),
    "kron": lambda xp, x, y, n, i: extra.kron(x, y),
    "lazy_apply": lambda xp, x, y, n, i: extra.lazy_apply(lambda a: a * 2.0, x),
    "nan_to_num": lambda xp, x, y, n, i: extra.nan_to_num(n, fill_value=7.0),
    "nanmax": lambda xp, x, y, n, i: extra.nanmax(n, axis=1),
    "nanmean": lambda xp, x, y, n, i: extra.nanmean(n[:1, :]),
    "nanmin": lambda xp, x, y, n, i: extra.nanmin(n),
    "nansum": lambda xp, x, y, n, i: extra.nansum(n, axis=0),
    "nunique": lambda xp, x, y, n, i: extra.nunique(i),
    "one_hot": lambda xp, x, y, n, i: extra.one_hot(i, 4),
    "one_hot in front": lambda xp, x, y, n, i: extra.one_hot(i, 4, axis=0, dtype=x.dtype),
    "pad": lambda xp, x, y, n, i: extra.pad(x, ((1, 0), (2, 1)), constant_values=9.0),
    "partition": lambda xp, x, y, n, i: extra.partition(x, 1),
    "rad2deg": lambda xp, x, y, n, i: extra.rad2deg(x),
    "searchsorted": lambda xp, x, y, n, i: extra.searchsorted(xp.sort(x), y, side="right"),
    "setdiff1d": lambda xp, x, y, n, i: extra.setdiff1d(i, xp.asarray([1, 7], dtype=i.dtype)),
    "sinc": lambda xp, x, y, n, i: extra.sinc(x),
    "tril_indices": lambda xp, x, y, n, i: extra.tril_indices(3, offset=-1, xp=xp),
    "triu_indices": lambda xp, x, y, n, i: extra.triu_indices(3, m=2, xp=xp),
    "union1d": lambda xp, x, y, n, i: extra.union1d(x, y),
    "unravel_index": lambda xp, x, y, n, i: extra.unravel_index(i, (2, 2)),
}


def test_array_api_compat_knows_tensors_as_arrays_of_the_standard():
    x = tk.asarray([1.0])
    assert array_api_compat.is_array_api_obj(x)
    assert array_api_compat.array_namespace(x) is tk
    assert array_api_compat.array_namespace(x, 1.0, None, tk.asarray(2)) is tk
    assert array_api_compat.array_namespace(x, api_version="2025.12") is tk
    with pytest.raises(TypeError, match="ultiple namespaces"):
        array_api_compat.array_namespace(x, np.ones(1))
    for is_other in (
        *(array_api_compat.is_numpy_array, array_api_compat.is_torch_array, array_api_compat.is_jax_array),
        *(array_api_compat.is_cupy_array, array_api_compat.is_dask_array, array_api_compat.is_ndonnx_array),
    ):
        assert not is_other(x)
    assert array_api_compat.device(x) == x.device == "cpu"
    assert array_api_compat.size(x) == 1
    assert array_api_compat.to_device(x, "cpu") is x
    assert not array_api_compat.is_lazy_array(x)
    assert array_api_compat.is_writeable_array(np.ones(1))


XPS = make_strategies_namespace(tk, api_version="2024.12")
DTYPES = st.sampled_from([tk.bool, tk.int32, tk.int64, tk.float32, tk.float64])


@given(XPS.arrays(DTYPES, XPS.array_shapes(min_dims=0, min_side=0)), st.data())
def test_hypothesis_makes_tensors_and_indices(x, data):
    assert isinstance(x, tk.Tensor)
    key = data.draw(XPS.indices(x.shape, allow_newaxis=True))
    expected = np.asarray(x)[key]
    part = np.asarray(x[key])
    assert (part.dtype, part.shape, part.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


def test_every_function_of_array_api_extra_is_called():
    functions = {name for name in extra.__all__ if callable(getattr(extra, name))} - {"at"}
    assert functions == {name.replace(",", " ").split()[0] for name in CALLS}


WRITE_INTO_ARRAYS = {"apply_where", "apply_where with a fill_value", "create_diagonal", "isclose", "pad"}
DEPRECATED = {"broadcast_shapes", "expand_dims"}  # in favour of names of the standard of 2025


@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize("name", sorted(set(CALLS) - WRITE_INTO_ARRAYS))
def test_functions_of_array_api_extra_take_tensors(name, backend):
    with tk.use_backend(backend), np.errstate(all="ignore"), warnings.catch_warnings():
        if name in DEPRECATED:
            warnings.simplefilter("ignore", DeprecationWarning)
        ours = CALLS[name](tk, *[tk.asarray(a) for a in (X, Y, WITH_NAN, I)])
        theirs = CALLS[name](np, X, Y, WITH_NAN, I)
    parts = list(zip(ours, theirs, strict=True)) if isinstance(theirs, tuple) else [(ours, theirs)]
    for mine, wanted in parts:
        mine, wanted = np.asarray(mine), np.asarray(wanted)
        assert mine.shape == wanted.shape
        if name == "partition":  # only the index of one element is specified
            mine, wanted = np.sort(mine, axis=-1), np.sort(wanted, axis=-1)
        elif name == "argpartition":
            mine, wanted = (np.sort(np.take_along_axis(I, a.astype("int64"), -1), -1) for a in (mine, wanted))
        np.testing.assert_allclose(mine, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", sorted(WRITE_INTO_ARRAYS))
def test_functions_that_write_into_arrays_say_that_tensors_cannot_be_changed(name):
    with pytest.raises(ImmutableError, match=r"x\.at\[i\]\.set\(v\)"):
        CALLS[name](tk, *[tk.asarray(a) for a in (X, Y, WITH_NAN, I)])
    with pytest.raises(ImmutableError):
        extra.at(tk.asarray(X))[0, 0].set(9.0)


@pytest.mark.parametrize(
    "name", ["atleast_nd", "cov", "deg2rad", "expand_dims", "kron", "nan_to_num", "sinc"]
)
@pytest.mark.filterwarnings("ignore:.*expand_dims:DeprecationWarning")
def test_functions_of_array_api_extra_have_derivatives_and_are_vectorised(name):
    y, n = tk.asarray(Y.astype("float64")), tk.asarray(I)

    def f(x):
        return CALLS[name](tk, x, y, x, n)

    x = tk.asarray(X.astype("float64"))
    tk.testing.check_grads(f, (x,), order=1)
    batch = tk.stack([x, x + 1.0])
    together = np.asarray(tk.vmap(f)(batch))
    for place in (0, 1):
        np.testing.assert_allclose(together[place], np.asarray(f(batch[place])), rtol=1e-12)


@pytest.mark.slow
def test_functions_of_scipy_and_scikit_learn_do_what_the_page_says():
    """In a process of its own, since scipy reads the variable when it is imported."""
    command = [sys.executable, "-m", "plugins.tensorken.tests.array_api_mode"]
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
