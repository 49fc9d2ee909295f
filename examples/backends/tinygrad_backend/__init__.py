"""A backend on tinygrad, which makes a kernel of each computation and compiles it by clang.

Each op is computed at once: then its kernel is compiled once for all programs, and clang cannot join its product with
the addition of another op. The scripts in `bugs/` show why some ops are not tinygrad's own functions.
"""

from __future__ import annotations

import sqlite3
import threading
from functools import lru_cache
from typing import Any

import numpy as np
from tinygrad import Tensor, dtypes, helpers

from tensorken_core.host.plugin import Capabilities
from tensorken_core.language.dtypes import DTYPES, DType, bool_
from tensorken_core.language.raw import RawTensor
from tensorken_core.rewriting.fuse import Fuse

NAMES = ("bool", "int32", "int64", "float32")
"""Functions of float64 have too few digits, but enough to compute those of float32."""

TINY = {DTYPES[name]: getattr(dtypes, name) for name in NAMES}
DTYPE_OF = {tiny: dtype for dtype, tiny in TINY.items()}
UNSIGNED = {dtypes.int32: dtypes.uint32, dtypes.int64: dtypes.uint64}

LOCK = threading.RLock()
"""Held by the thread that runs an op: the caches of tinygrad are not safe for threads."""

helpers._db_connection = sqlite3.connect(
    helpers.CACHEDB, timeout=60, isolation_level="IMMEDIATE", check_same_thread=False
)
helpers._db_connection.execute("PRAGMA synchronous=NORMAL")

A = Any


class Tinygrad(RawTensor[A]):
    """Tensors of tinygrad on one of its devices."""

    capabilities = Capabilities(dtypes=NAMES, shares_memory=True)

    def __init__(self, device: str = "CPU") -> None:
        self.device = device

    def __repr__(self) -> str:
        return f"Tinygrad({self.device!r})"

    # ---- create, inspect -------------------------------------------------------------------------------------

    def new(self, shape: A, data: A, dtype: DType) -> A:
        if dtype not in TINY:
            raise NotImplementedError(f"tinygrad: there is no {dtype}")
        return Tensor(np.array(data, dtype.name).reshape(shape), device=self.device)

    def full(self, shape: A, value: A, dtype: DType) -> A:
        number = uploaded(self, np.array(value, dtype.name).tobytes(), dtype)
        return number.reshape((1,) * len(shape)).expand(shape)

    def shape(self, x: A) -> A:
        return x.shape

    def dtype(self, x: A) -> DType:
        return DTYPE_OF[x.dtype]

    def ravel(self, x: A) -> A:
        return np.array(x.numpy()).reshape(-1)

    # ---- elementwise -----------------------------------------------------------------------------------------

    def sin(self, x: A) -> A:
        return (x == 0).where(x, x.cast(dtypes.float64).sin().cast(x.dtype))

    def cos(self, x: A) -> A:
        half = (0.5 * x.cast(dtypes.float64)).sin()
        return (1 - 2 * (half * half)).cast(x.dtype)

    def sqrt(self, x: A) -> A:
        return x.cast(dtypes.float64).sqrt().cast(x.dtype)

    def hypot(self, a: A, b: A) -> A:
        x, y = [z.cast(dtypes.float64).abs() for z in (a, b)]
        infinite = (x == float("inf")) | (y == float("inf"))
        return infinite.where(float("inf"), (x * x + y * y).sqrt()).cast(a.dtype)

    def abs(self, x: A) -> A:
        if x.dtype == dtypes.float32:
            return (x.bitcast(dtypes.int32) & 0x7FFFFFFF).bitcast(x.dtype)
        return (x < 0).where(-x, x)

    def maximum(self, a: A, b: A) -> A:
        return ((a < b) | (b != b)).where(b, a)

    def minimum(self, a: A, b: A) -> A:
        return ((b < a) | (b != b)).where(b, a)

    def floor(self, x: A) -> A:
        return x.floor()

    def add(self, a: A, b: A) -> A:
        return a + b

    def sub(self, a: A, b: A) -> A:
        return a - _other(a, b)

    def mul(self, a: A, b: A) -> A:
        return a * b

    def div(self, a: A, b: A) -> A:
        return (a.cast(dtypes.float64) / _other(a, b).cast(dtypes.float64)).cast(a.dtype)

    def eq(self, a: A, b: A) -> A:
        return a == b

    def lt(self, a: A, b: A) -> A:
        return a < b

    def where(self, condition: A, a: A, b: A) -> A:
        return condition.where(a, b)

    def pow(self, a: A, b: A) -> A:
        x, y = a.cast(dtypes.float64), b.cast(dtypes.float64)
        size = (x.abs().log2() * y).exp2()
        odd = (y.floor() == y) & ((0.5 * y).floor() != 0.5 * y)
        signed = (odd & (a.bitcast(dtypes.int32) < 0)).where(-size, size)
        fraction = (x < 0) & (x != -float("inf")) & (y.floor() != y)
        one = (y == 0) | (x == 1) | ((x == -1) & (y.abs() == float("inf")))
        return one.where(1.0, fraction.where(float("nan"), signed)).cast(a.dtype)

    def cast(self, x: A, dtype: DType) -> A:
        if dtype is bool_:
            return x != 0
        if dtype.kind != "int" or not dtypes.is_float(x.dtype):
            return x.cast(TINY[dtype])
        limits, wide = np.iinfo(dtype.name), x.cast(dtypes.float64)
        number = (wide != wide).where(0.0, wide)
        above, below = (number < float(int(limits.max) + 1)).logical_not(), number < float(limits.min)
        inside = (above | below).where(0.0, number).cast(TINY[dtype])
        largest, least = [self.full(x.shape, value, dtype) for value in (limits.max, limits.min)]
        return above.where(largest, below.where(least, inside))

    def to_bits(self, x: A) -> A:
        return x.bitcast(dtypes.int32)

    def from_bits(self, x: A) -> A:
        return x.bitcast(dtypes.float32)

    def floor_divide(self, a: A, b: A) -> A:
        special = (b == 0) | (b == -1)
        return special.where((b == 0).where(0, -a), a // special.where(1, b))

    def integer_pow(self, a: A, b: A) -> A:
        square = a.bitcast(UNSIGNED[a.dtype])
        y = square.const_like(1)
        for bit in range(8 * a.dtype.itemsize):
            y = ((b >> bit) & 1 == 1).where(y * square, y)
            square = square * square
        inverse = (a.abs() == 1).where((b & 1 == 1).where(a, 1), 0)
        return (b < 0).where(inverse, y.bitcast(a.dtype))

    def shift_left(self, a: A, b: A) -> A:
        return self._shifted("lshift", a, b)

    def shift_right(self, a: A, b: A) -> A:
        return self._shifted("rshift", a, b)

    def _shifted(self, name: str, a: A, b: A) -> A:
        unsigned = UNSIGNED[a.dtype]
        inside = (b < a.dtype.itemsize * 8) & (b < 0).logical_not()
        y = getattr(a.bitcast(unsigned), name)(inside.where(b, 0).cast(unsigned))
        return inside.where(y.bitcast(a.dtype), 0)

    # ---- reduce, move, index ---------------------------------------------------------------------------------

    def sum(self, x: A, axes: A) -> A:
        return x.sum(axes, keepdim=True, dtype=x.dtype) if axes else x

    def max(self, x: A, axes: A) -> A:
        if not axes:
            return x
        y = x.max(axes, keepdim=True)
        return (x != x).any(axes, keepdim=True).where(float("nan"), y) if dtypes.is_float(x.dtype) else y

    def fused_multiply_add(self, a: A, b: A, axes: A) -> A:
        return self.sum(a * b, axes)

    def reshape(self, x: A, shape: A) -> A:
        return x.reshape(shape)

    def permute(self, x: A, order: A) -> A:
        return x.permute(order) if order else x

    def expand(self, x: A, shape: A) -> A:
        return x.expand(shape)

    def flip(self, x: A, axes: A) -> A:
        return x.flip(axes) if axes else x

    def pad(self, x: A, pads: A) -> A:
        return x.pad(tuple(pads)) if pads else x

    def crop(self, x: A, limits: A) -> A:
        return x.shrink(tuple(limits)) if limits else x

    def gather(self, x: A, indices: A, axis: int) -> A:
        return x[(slice(None),) * axis + (indices,)]

    def scatter_add(self, x: A, indices: A, axis: int, size: int) -> A:
        shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
        zeros = Tensor.zeros(shape, dtype=x.dtype, device=self.device)
        if 0 in shape or 0 in x.shape:
            return zeros
        index = indices.reshape([-1 if i == axis else 1 for i in range(x.ndim)]).expand(x.shape)
        return zeros.scatter_reduce(axis, index, x, "sum")


@lru_cache(1024)
def uploaded(backend: Tinygrad, data: bytes, dtype: DType) -> A:
    """One number on the device, which is uploaded once."""
    return backend.new((1,), np.frombuffer(data, dtype.name), dtype).realize()


VIEWS = ("shape", "dtype", "reshape", "permute", "expand", "flip", "crop", "ravel")
"""The methods that compute nothing, or read values."""


def _other(a: A, b: A) -> A:
    """b, or a copy of it where a is the same: tinygrad takes x - x for 0 and x / x for 1, of infinities and NaN too."""
    return b.clone().realize() if a.uop is b.uop else b


def _in_float64(name: str) -> A:
    return lambda self, x: getattr(x.cast(dtypes.float64), name)().cast(x.dtype)


def _at_once(method: A, view: bool) -> A:
    def call(self: Tinygrad, *args: A) -> A:
        with LOCK:
            y = method(self, *args)
            return y if view else y.realize()

    return call


for _name in ("exp", "log"):
    setattr(Tinygrad, _name, _in_float64(_name))
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    setattr(Tinygrad, _name, lambda self, a, b, _name=_name: getattr(a, _name)(b))
for _name, _method in list(vars(Tinygrad).items()):
    if callable(_method) and not _name.startswith("_"):
        setattr(Tinygrad, _name, _at_once(_method, _name in VIEWS))


def load(device: str = "CPU") -> Fuse[A]:
    """The backend for users."""
    return Fuse(Tinygrad(device))
