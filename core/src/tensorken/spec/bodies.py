"""The default bodies of the derived ops: functions of Tensors that use only the language.

They run at the level of the interpreter that expands them.  Infinities, NaN and signed zeros come out right; where a
rounding error would be lost by cancellation, the form avoids it.
"""

from __future__ import annotations

from typing import Any

from tensorken.spec.dtypes import bool_, int32
from tensorken.spec.shapes import Axes

Tensor = Any


def _either(a: Tensor, b: Tensor) -> Tensor:
    return a.where(a, b)


def _is_nan(x: Tensor) -> Tensor:
    return x.eq(x).where(False, True)


def _iota(x: Tensor, axis: int) -> Tensor:
    """0, 1, 2, ... along the axis, size 1 along the others, at the level of x."""
    n = x.shape[axis]
    shape = tuple([n if i == axis else 1 for i in range(x.ndim)])
    return x.constant(range(n), int32, (n,)).reshape(shape)


def neg(x: Tensor) -> Tensor:
    """x times -1 also turns the sign of a zero, which 0 - x does not."""
    return x * -1


def square(x: Tensor) -> Tensor:
    return x * x


def abs(x: Tensor) -> Tensor:
    return (x < 0).where(-x, x.eq(0).where(0, x))


def sign(x: Tensor) -> Tensor:
    return (x > 0).where(1, (x < 0).where(-1, x))


def maximum(a: Tensor, b: Tensor) -> Tensor:
    take_b = a < b
    return (take_b if a.dtype.kind == "int" else _either(take_b, _is_nan(b))).where(b, a)


def minimum(a: Tensor, b: Tensor) -> Tensor:
    take_b = b < a
    return (take_b if a.dtype.kind == "int" else _either(take_b, _is_nan(b))).where(b, a)


def relu(x: Tensor) -> Tensor:
    return x.maximum(0.0)


def reciprocal(x: Tensor) -> Tensor:
    return 1.0 / x


def tan(x: Tensor) -> Tensor:
    return x.sin() / x.cos()


def tanh(x: Tensor) -> Tensor:
    """From e = expm1(-2|x|), which is exact near 0 and never overflows: tanh|x| = -e / (2 + e)."""
    e = (x.abs() * -2.0).expm1()
    y = e / (e + 2.0)
    return x.eq(0.0).where(x, (x < 0.0).where(y, -y))


def sigmoid(x: Tensor) -> Tensor:
    """From z = exp(-|x|), which never overflows."""
    z = (-x.abs()).exp()
    return (x < 0.0).where(z, 1.0) / (z + 1.0)


def log1p(x: Tensor) -> Tensor:
    """Kahan's form log(u) * x / (u - 1) with u = 1 + x rounded, whose error cancels; x itself where u is 1."""
    u = x + 1.0
    plain = _either(u.eq(1.0), u.eq(float("inf")))
    kahan = u.log() * (x / plain.where(1.0, u - 1.0))
    return plain.where(x, kahan)


def expm1(x: Tensor) -> Tensor:
    """Kahan's form (u - 1) * x / log(u) with u = exp(x) rounded; x itself where u is 1, u - 1 where that is exact."""
    u = x.exp()
    small = u.eq(1.0)
    far = _either(u.eq(float("inf")), (u - 1.0).eq(-1.0))
    kahan = (u - 1.0) * (x / _either(small, far).where(1.0, u.log()))
    return small.where(x, far.where(u - 1.0, kahan))


def min(x: Tensor, axes: Axes) -> Tensor:
    """The maximum of the values in reverse order: -x, for integers -1 - x, which cannot overflow."""
    if x.dtype is bool_:
        return x.where(False, True).max(axes, keepdims=True).where(False, True)
    if x.dtype.kind == "int":
        return -1 - (-1 - x).max(axes, keepdims=True)
    return -(-x).max(axes, keepdims=True)


def argmax(x: Tensor, axis: int) -> Tensor:
    """n minus the largest n - i among the places i that hold the maximum."""
    n = x.shape[axis]
    hits = x.eq(x.max((axis,), keepdims=True).expand(x.shape))
    if x.dtype.kind == "float":
        hits = _either(hits, _is_nan(x))
    places = (n - _iota(x, axis)).expand(x.shape)
    return n - hits.where(places, 0).max((axis,), keepdims=True)


def cumsum(x: Tensor, axis: int) -> Tensor:
    """Partial sums over 1, 2, 4, ... neighbours: each step adds the array shifted by as many places."""
    n, step = x.shape[axis], 1
    while step < n:
        pads = tuple([(step, 0) if i == axis else (0, 0) for i in range(x.ndim)])
        limits = tuple([(0, n - step) if i == axis else (0, m) for i, m in enumerate(x.shape)])
        x = x + x.crop(limits).pad(pads)
        step *= 2
    return x


def concatenate(*args: Any) -> Tensor:
    """Each piece padded to the whole, and chosen where it lies: adding the pieces would lose signed zeros."""
    *pieces, axis = args
    total, start, result = sum([x.shape[axis] for x in pieces]), 0, None
    for x in pieces:
        end = start + x.shape[axis]
        pads = tuple([(start, total - end) if i == axis else (0, 0) for i in range(x.ndim)])
        padded = x.pad(pads)
        if result is None:
            result = padded
        else:
            place = _iota(padded, axis).expand(padded.shape)
            result = (place < start).where(result, padded)
        start = end
    return result
