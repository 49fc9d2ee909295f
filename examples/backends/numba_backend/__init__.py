"""A backend on numba: each op is a Python function of numbers, or a loop, that numba compiles for its dtypes.

Arrays of numpy hold the values; numpy makes the views, and computes nothing. The script in `bugs/` shows why there is a
universal function for each combination of dtypes.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numba import njit, vectorize

from tensorken_core.host.plugin import Capabilities
from tensorken_core.language.dtypes import DTYPES, DType, bool_
from tensorken_core.language.raw import RawTensor
from tensorken_core.rewriting.fuse import Fuse

NAMES = ("bool", "int32", "int64", "float32", "float64")
"""numba has the other integers too, but each function takes a second to compile for a dtype."""
NATIVE = {DTYPES[name]: np.dtype(name) for name in NAMES}
BITS = {"float32": "int32", "float64": "int64", "int32": "float32", "int64": "float64"}
A = Any


class Numba(RawTensor[A]):
    """Arrays of numpy, and functions compiled by numba."""

    capabilities = Capabilities(dtypes=NAMES, shares_memory=True)

    # ---- create, inspect -------------------------------------------------------------------------------------

    def new(self, shape: A, data: A, dtype: DType) -> A:
        return np.array(data, NATIVE[dtype]).reshape(shape)

    def full(self, shape: A, value: A, dtype: DType) -> A:
        return np.broadcast_to(np.array(value, NATIVE[dtype]), shape)

    def shape(self, x: A) -> A:
        return x.shape

    def dtype(self, x: A) -> DType:
        return DTYPES[x.dtype.name]

    def ravel(self, x: A) -> A:
        return x.flatten()

    def adopt(self, array: A, copy: bool) -> A:
        known = isinstance(array, np.ndarray) and array.dtype.name in NAMES and array.dtype.isnative
        return (array.copy() if copy else array.view()) if known else None

    def export(self, x: A) -> A:
        return x

    # ---- elementwise -----------------------------------------------------------------------------------------

    def cast(self, x: A, dtype: DType) -> A:
        if dtype is bool_:
            return _quiet(IS_TRUE, x)
        if dtype.kind != "int" or x.dtype.kind != "f":
            return _quiet(x.astype, NATIVE[dtype])
        limits = np.iinfo(dtype.name)
        return _quiet(SATURATED, x, limits.min, limits.max).astype(NATIVE[dtype])

    def to_bits(self, x: A) -> A:
        return np.ascontiguousarray(x).view(BITS[x.dtype.name]).reshape(x.shape)

    from_bits = to_bits

    def floor_divide(self, a: A, b: A) -> A:
        return _quiet(INT_QUOTIENT, a, b).astype(a.dtype)

    # ---- reduce ----------------------------------------------------------------------------------------------

    def sum(self, x: A, axes: A) -> A:
        return _reduced(sum_of_rows, x, axes)

    def max(self, x: A, axes: A) -> A:
        return _reduced(max_of_rows, x, axes)

    def matmul(self, a: A, b: A) -> A:
        y = np.zeros((*a.shape[:-1], b.shape[-1]), a.dtype)
        product(*[z.reshape(math.prod(z.shape[:-2]), *z.shape[-2:]) for z in (a, b, y)])
        return y

    # ---- move, index -----------------------------------------------------------------------------------------

    def reshape(self, x: A, shape: A) -> A:
        return x.reshape(shape)

    def permute(self, x: A, order: A) -> A:
        return x.transpose(order)

    def expand(self, x: A, shape: A) -> A:
        return np.broadcast_to(x, shape)

    def flip(self, x: A, axes: A) -> A:
        return np.flip(x, axes)

    def pad(self, x: A, pads: A) -> A:
        return np.pad(x, pads) if pads else x

    def crop(self, x: A, limits: A) -> A:
        return x[(*[slice(*pair) for pair in limits], ...)]

    def gather(self, x: A, indices: A, axis: int) -> A:
        y = np.empty((*x.shape[:axis], len(indices), *x.shape[axis + 1 :]), x.dtype)
        read_slices(_around(y, axis), _around(x, axis), indices)
        return y

    def scatter_add(self, x: A, indices: A, axis: int, size: int) -> A:
        y = np.zeros((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype)
        add_slices(_around(y, axis), _around(x, axis), indices)
        return y


MATH = "exp log sin cos tan sqrt expm1 log1p asin acos atan atan2 sinh cosh tanh asinh acosh atanh"
"""The ops that are functions of the module math."""

FUNCTIONS: dict[str, A] = {
    "floor": lambda x: np.floor(x),
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "eq": lambda a, b: a == b,
    "lt": lambda a, b: a < b,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    "where": lambda condition, a, b: a if condition else b,
}
"""The other elementwise ops."""

IS_TRUE = vectorize(cache=True)(lambda x: x != 0)


@vectorize(cache=True)
def SATURATED(x: A, low: A, high: A) -> A:  # noqa: N802, a universal function
    """A float as an int in a range; 0 for NaN."""
    if x != x:
        return type(low)(0)
    return low if x <= low else high if x >= high else type(low)(x)


@vectorize(cache=True)
def INT_QUOTIENT(a: A, b: A) -> A:  # noqa: N802
    """The floor of a quotient of ints; 0 where b is 0."""
    if b == 0:
        return type(a)(0)
    return type(a)(0) - a if b == -1 else a // b


SHIFTS: dict[str, A] = {
    "shift_left": lambda a, b, bits: a << type(a)(b) if 0 <= b < bits else type(a)(0),
    "shift_right": lambda a, b, bits: a >> type(a)(b) if 0 <= b < bits else type(a)(0),
}
"""Shifts of unsigned numbers with this number of bits."""


def _op(name: str, function: A) -> A:
    ufunc = cache(lambda *dtypes: vectorize(cache=True)(function))

    def call(self: Numba, *operands: A) -> A:
        dtype = np.dtype(bool) if name in ("eq", "lt") else operands[-1].dtype
        return _quiet(ufunc(*[x.dtype for x in operands]), *operands).astype(dtype, copy=False)

    return call


def _shift(function: A) -> A:
    ufunc = vectorize(cache=True)(function)
    return lambda self, a, b: _quiet(ufunc, a.view(f"u{a.itemsize}"), b, 8 * a.itemsize).astype(a.dtype)


def _quiet(function: A, *args: A) -> A:
    with np.errstate(all="ignore"):
        return np.asarray(function(*args))


def _of_math(name: str) -> A:
    function = getattr(math, name)
    return (lambda a, b: function(a, b)) if name == "atan2" else lambda x: function(x)


FUNCTIONS |= {name: _of_math(name) for name in MATH.split()}
for _name, _function in FUNCTIONS.items():
    setattr(Numba, _name, _op(_name, _function))
for _name, _function in SHIFTS.items():
    setattr(Numba, _name, _shift(_function))


def _reduced(loop: A, x: A, axes: A) -> A:
    """The results of a loop over the elements along these axes."""
    if not axes:
        return x
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    y = np.zeros([size if axis in kept else 1 for axis, size in enumerate(x.shape)], x.dtype)
    rows = x.transpose(*kept, *axes).reshape(y.size, math.prod([x.shape[axis] for axis in axes]))
    loop(rows, y.reshape(-1))
    return y


def _around(x: A, axis: int) -> A:
    """x with three axes: those before an axis, it, and those after it."""
    return x.reshape(math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :]))


@njit(cache=True)
def sum_of_rows(x: A, y: A) -> None:
    """Add the elements of each row of x to y."""
    for i, j in np.ndindex(x.shape):
        y[i] += x[i, j]


@njit(cache=True)
def max_of_rows(x: A, y: A) -> None:
    """Write the largest element of each row into y, NaN if there is one."""
    for i in range(x.shape[0]):
        y[i] = x[i, 0]
        for j in range(1, x.shape[1]):
            if x[i, j] > y[i] or x[i, j] != x[i, j]:
                y[i] = x[i, j]


@njit(cache=True)
def product(a: A, b: A, y: A) -> None:
    """Add the products of matrices to y."""
    for n, i, k in np.ndindex(a.shape):
        for j in range(b.shape[2]):
            y[n, i, j] += a[n, i, k] * b[n, k, j]


@njit(cache=True)
def read_slices(y: A, x: A, indices: A) -> None:
    """Write the slices of x at the indices into y."""
    for n, i, j in np.ndindex(y.shape):
        y[n, i, j] = x[n, indices[i], j]


@njit(cache=True)
def add_slices(y: A, x: A, indices: A) -> None:
    """Add the slices of x to those of y at the indices."""
    for n, i, j in np.ndindex(x.shape):
        y[n, indices[i], j] += x[n, i, j]


def load() -> Fuse[A]:
    """The backend for users."""
    return Fuse(Numba())
