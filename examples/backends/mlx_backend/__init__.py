"""A backend on MLX, whose arrays are lazy: each op adds to a graph, and reading values runs it.

The scripts in `bugs/` show why some ops are not MLX's own functions.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import mlx.core as mx
import numpy as np

from tensorken_core.host.plugin import Capabilities
from tensorken_core.language.dtypes import DTYPES, DType, bfloat16, bool_, round_float
from tensorken_core.language.raw import RawTensor
from tensorken_core.rewriting.fuse import Fuse

MLX = {dtype: getattr(mx, name if dtype is not bool_ else "bool_") for name, dtype in DTYPES.items()}
DTYPE_OF = {mlx: dtype for dtype, mlx in MLX.items()}
FLOATS = (mx.float16, mx.bfloat16, mx.float32, mx.float64)
UNSIGNED = {getattr(mx, f"int{bits}"): getattr(mx, f"uint{bits}") for bits in (8, 16, 32, 64)}
BITS = {mx.float16: mx.int16, mx.bfloat16: mx.int16, mx.float32: mx.int32, mx.float64: mx.int64}

REST_OF_E = 1.4456468917292502e-16
"""e is `math.e` plus this number."""

STREAM = mx.new_thread_unsafe_stream(mx.cpu)
"""Graphs of a thread's own stream cannot be evaluated by other threads; those of this one can, one at a time."""

LOCK = threading.RLock()
"""Held by the thread that evaluates a graph."""

A = Any


class Mlx(RawTensor[A]):
    """Arrays of MLX on the CPU, the only device with float64."""

    capabilities = Capabilities(dtypes=tuple(DTYPES), shares_memory=True)

    # ---- create, inspect -------------------------------------------------------------------------------------

    def new(self, shape: A, data: A, dtype: DType) -> A:
        if dtype is bfloat16:  # by its bits: MLX drops the signs of NaNs
            if isinstance(data, list | tuple | range):
                data = [round_float(float(number), dtype) for number in data]
            halves = np.array(data, np.float32).view(np.int32) >> 16
            return mx.array(halves.astype(np.int16)).view(mx.bfloat16).reshape(shape)
        return mx.array(np.array(data, dtype.name), MLX[dtype]).reshape(shape)

    def full(self, shape: A, value: A, dtype: DType) -> A:
        return mx.broadcast_to(self.new((), [value], dtype), shape)

    def shape(self, x: A) -> A:
        return tuple(x.shape)

    def dtype(self, x: A) -> DType:
        return DTYPE_OF[x.dtype]

    def ravel(self, x: A) -> A:
        return np.array(self.realize(x.astype(mx.float32) if x.dtype == mx.bfloat16 else x)).reshape(-1)

    def realize(self, x: A) -> A:
        with LOCK:
            mx.eval(x)
        return x

    def adopt(self, array: A, copy: bool) -> A:
        if not isinstance(array, mx.array) or array.dtype not in DTYPE_OF:
            return None
        return self.realize(mx.where(mx.array(True), array, array) if copy else array)

    def export(self, x: A) -> A:
        return self.realize(x)

    # ---- elementwise -----------------------------------------------------------------------------------------

    def exp(self, x: A) -> A:
        wide = x.astype(mx.float64)
        y = mx.power(mx.array(math.e, mx.float64), wide)
        return (y + y * (mx.clip(wide, -1e3, 1e3) * (REST_OF_E / math.e))).astype(x.dtype)

    def sin(self, x: A) -> A:
        tan = mx.tan(x.astype(mx.float64))
        return mx.where(tan == 0, tan, tan * self._cos(x)).astype(x.dtype)

    def cos(self, x: A) -> A:
        return self._cos(x).astype(x.dtype)

    def _cos(self, x: A) -> A:
        wide = x.astype(mx.float64)
        size = mx.rsqrt(1 + mx.square(mx.tan(wide)))
        return mx.where(mx.abs(mx.tan(0.5 * wide)) < 1, size, -size)

    def erfinv(self, x: A) -> A:
        return RawTensor.erfinv(self, x) if x.dtype == mx.float64 else mx.erfinv(x)

    def cast(self, x: A, dtype: DType) -> A:
        if dtype is bool_:
            return x != 0
        if x.dtype == mx.float64 and dtype.itemsize == 2 and dtype.kind == "float":
            return self._odd(x).astype(MLX[dtype])
        if dtype.kind != "int" or x.dtype not in FLOATS:
            return x.astype(MLX[dtype])
        limits, wide = np.iinfo(dtype.name), x.astype(mx.float64)
        low, high = float(limits.min), float(int(limits.max) + 1)
        inside = mx.where((wide > low - 1) & (wide < high), wide, 0).astype(MLX[dtype])
        above = mx.where(wide >= high, self.full((), limits.max, dtype), inside)
        return mx.where(wide <= low, self.full((), limits.min, dtype), above)

    def _odd(self, x: A) -> A:
        """x in float32, rounded towards zero, with the last bit set if that changes it: no digits are lost later."""
        y = x.astype(mx.float32)
        exact, larger = y.astype(mx.float64) == x, mx.abs(y.astype(mx.float64)) > mx.abs(x)
        odd = (y.view(mx.int32) - larger.astype(mx.int32)) | 1
        return mx.where(exact | mx.isnan(x), y, odd.view(mx.float32))

    def to_bits(self, x: A) -> A:
        return x.view(BITS[x.dtype]).astype(mx.int64 if x.dtype == mx.float64 else mx.int32)

    def from_bits(self, x: A) -> A:
        return x.view(mx.float64 if x.dtype == mx.int64 else mx.float32)

    def floor_divide(self, a: A, b: A) -> A:
        special = (b == 0) | (b == -1) if a.dtype in UNSIGNED else b == 0
        quotient = mx.divmod(a, mx.where(special, mx.ones_like(b), b))[0]
        return mx.where(special, mx.where(b == 0, mx.zeros_like(a), mx.negative(a)), quotient)

    def shift_left(self, a: A, b: A) -> A:
        return self._shifted(mx.left_shift, a, b)

    def shift_right(self, a: A, b: A) -> A:
        return self._shifted(mx.right_shift, a, b)

    def _shifted(self, shift: A, a: A, b: A) -> A:
        unsigned = UNSIGNED.get(a.dtype, a.dtype)
        inside = (b >= 0) & (b < a.dtype.size * 8)
        by = mx.where(inside, b, mx.zeros_like(b)).view(unsigned)
        return mx.where(inside, shift(a.view(unsigned), by).view(a.dtype), mx.zeros_like(a))

    # ---- reduce, move, index ---------------------------------------------------------------------------------

    def sum(self, x: A, axes: A) -> A:
        return mx.sum(x, axis=axes, keepdims=True).astype(x.dtype) if axes else x

    def max(self, x: A, axes: A) -> A:
        return mx.max(x, axis=axes, keepdims=True) if axes else x

    def reshape(self, x: A, shape: A) -> A:
        return mx.reshape(x, shape)

    def permute(self, x: A, order: A) -> A:
        return mx.transpose(x, order)

    def expand(self, x: A, shape: A) -> A:
        return mx.broadcast_to(x, shape)

    def flip(self, x: A, axes: A) -> A:
        return x[tuple([slice(None, None, -1 if axis in axes else 1) for axis in range(x.ndim)])]

    def pad(self, x: A, pads: A) -> A:
        return mx.pad(x, pads) if pads else x

    def crop(self, x: A, limits: A) -> A:
        return x[tuple([slice(*pair) for pair in limits])]

    def gather(self, x: A, indices: A, axis: int) -> A:
        return mx.take(x, indices, axis=axis)

    def scatter_add(self, x: A, indices: A, axis: int, size: int) -> A:
        y = mx.zeros((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype)
        added = mx.moveaxis(y, axis, 0).at[indices].add(mx.moveaxis(x, axis, 0))
        return mx.moveaxis(added, 0, axis)

    def concatenate(self, *args: A) -> A:
        *pieces, axis = args
        return mx.concatenate(pieces, axis)

    def matmul(self, a: A, b: A) -> A:
        return a @ b if a.dtype in (mx.float32, mx.float64) else RawTensor.matmul(self, a, b)

    def fused_multiply_add(self, a: A, b: A, axes: A) -> A:
        if a.dtype not in (mx.float32, mx.float64):
            return RawTensor.fused_multiply_add(self, a, b, axes)
        full = [m * n if 1 in (m, n) else m for m, n in zip(a.shape, b.shape, strict=True)]
        owned = [[i for i, n in enumerate(full) if x.shape[i] == n] for x in (a, b)]
        terms = [x.reshape([x.shape[i] for i in own]) for x, own in zip((a, b), owned, strict=True)]
        kept = [i for i in range(a.ndim) if i not in axes]
        names = ["".join([chr(ord("a") + i) for i in some]) for some in (*owned, kept)]
        y = mx.einsum(f"{names[0]},{names[1]}->{names[2]}", *terms)
        return y.reshape([1 if i in axes else n for i, n in enumerate(full)])


OPS = """
    log sqrt floor pow:power add sub:subtract mul:multiply div:divide eq:equal lt:less where bitwise_and bitwise_or
    bitwise_xor
    neg:negative square abs ceil maximum minimum expm1 log1p log2 log10 tan asin:arcsin acos:arccos atan:arctan
    atan2:arctan2 sinh cosh tanh asinh:arcsinh acosh:arccosh atanh:arctanh
"""
"""The ops that are functions of MLX, each with the name of its function where that is another one."""


def _on_stream(method: A) -> A:
    def call(self: Mlx, *args: A) -> A:
        with mx.stream(STREAM):
            return method(self, *args)

    return call


def _calls(function: A) -> A:
    return lambda self, *operands: function(*operands)


for _pair in OPS.split():
    _name, _, _function = _pair.partition(":")
    setattr(Mlx, _name, _calls(getattr(mx, _function or _name)))
for _name, _method in list(vars(Mlx).items()):
    if callable(_method) and not _name.startswith("_"):
        setattr(Mlx, _name, _on_stream(_method))


def load() -> Fuse[A]:
    """The backend for users."""
    return Fuse(Mlx())
