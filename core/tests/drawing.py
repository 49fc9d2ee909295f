"""Arrays for differential tests: every dtype, few elements and none, special values, views that run backwards."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

import tensorken as tk
from core.tests.support import FUSED, Required
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

Array = np.ndarray[Any, Any]

INTEGERS = ("int32", "int64")
FLOATS = ("float16", "float32", "float64")
DTYPES = ("bool", *INTEGERS, *FLOATS)

BACKENDS = {
    "numpy": Numpy(),
    "fused numpy": FUSED,
    "bodies": Required(),
    "fused bodies": Fuse(Required()),
    "reference": Reference(),
}

inf, nan = math.inf, math.nan
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -1.5, 3.0, 7.0, inf, -inf, nan]
FINITE = SPECIAL[:9]


def values(dtype: str, shape: tuple[int, ...], seed: int, finite: bool = False) -> Array:
    """Few different values, so that there are ties; of floats also NaN, infinities and both zeros, unless finite."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape), bool)
    if dtype in INTEGERS:
        ends = np.iinfo(dtype)
        pool = np.array(
            [-3, -1, 0, 1, 2, 3, 7] if finite else [ends.min, ends.max, -3, -1, 0, 1, 2, 7], dtype
        )
        return np.asarray(rng.choice(pool, shape))
    return np.asarray(rng.choice(np.array(FINITE if finite else SPECIAL, dtype), shape))


@st.composite
def arrays(
    draw: Any,
    dtypes: tuple[str, ...] = DTYPES,
    least_rank: int = 0,
    greatest_rank: int = 3,
    least_size: int = 0,
    finite: bool = False,
) -> Array:
    """An array; most are views, with negative strides or with axes in another order."""
    rank = draw(st.integers(least_rank, greatest_rank))
    shape = tuple(draw(st.integers(least_size, 4)) for _ in range(rank))
    x = values(draw(st.sampled_from(dtypes)), shape, draw(st.integers(0, 2**20)), finite)
    return draw(st.sampled_from([x, x.T, x[(..., *[slice(None, None, -1)] * rank)]]))


@st.composite
def axes_of(draw: Any, rank: int) -> Any:
    """None, one axis or several, some counted from the end."""
    kind = draw(st.integers(0, 2)) if rank else 0
    if kind == 0:
        return None
    if kind == 1:
        return draw(st.integers(-rank, rank - 1))
    chosen = draw(st.sets(st.integers(0, rank - 1)))
    return tuple(axis - rank if draw(st.booleans()) else axis for axis in chosen)


def tensor(x: Array, backend: Any = FUSED) -> tk.Tensor:
    """The array as a tensor; a view of an array becomes a view of a tensor."""
    if x.ndim > 1 and x.T.flags.c_contiguous:
        return tk.tensor(x.T, backend=backend).T
    backwards = x.ndim > 0 and x.strides[-1] < 0
    if not backwards:
        return tk.tensor(np.ascontiguousarray(x).reshape(x.shape), backend=backend)
    there = (slice(None, None, -1),) * x.ndim
    return tk.tensor(np.ascontiguousarray(x[there]), backend=backend)[there]


def same(y: tk.Tensor, expected: Any, dtype: str | None = None) -> None:
    """Equal to the bit: shape, dtype, values, signs of zeros."""
    found, wanted = np.array(y), np.asarray(expected, dtype)
    assert found.dtype == wanted.dtype, (found.dtype, wanted.dtype)
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    np.testing.assert_array_equal(found, wanted)
    if wanted.dtype.kind == "f":
        zero = wanted == 0
        np.testing.assert_array_equal(np.signbit(found)[zero], np.signbit(wanted)[zero])


def near(y: tk.Tensor, expected: Any, dtype: str, tolerance: float | None = None) -> None:
    """Assert equality up to rounding: of shape, dtype, infinities, NaN and values."""
    found, wanted = np.array(y), np.asarray(expected, "float64")
    assert found.dtype == dtype, (found.dtype, dtype)
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    rtol = tolerance or {"float16": 4e-3, "float32": 4e-6, "float64": 1e-13}[dtype]
    np.testing.assert_allclose(found.astype("float64"), wanted, rtol=rtol, atol=rtol)
