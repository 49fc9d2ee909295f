"""Functions that torch lacks, or that differ from the language's definition.

All are functions of tensors, so that the graph of a program can call them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tensorken_core.language.dtypes import DTYPES, DType, uint8
from tensorken_core.language.shapes import Axes, Pairs, Shape

TORCH_DTYPES: dict[DType, torch.dtype] = {
    dtype: getattr(torch, dtype.name) for dtype in DTYPES.values() if dtype.signed or dtype is uint8
}
"""torch has no arithmetic on its other unsigned integers."""

_NARROW = (torch.float16, torch.bfloat16)
_BITS = {
    **dict.fromkeys(_NARROW, torch.int16),
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}
_FLOATS = {torch.int32: torch.float32, torch.int64: torch.float64}


def in_float32(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function of tensors of one dtype, then params, which computes narrower floats in float32."""

    @functools.wraps(function)
    def call(x: Tensor, *params: Any) -> Tensor:
        if x.dtype not in _NARROW:
            return function(x, *params)
        wide = [y.float() if isinstance(y, Tensor) and y.dtype == x.dtype else y for y in (x, *params)]
        return function(*wide).to(x.dtype)

    return call


# ---- elementwise ---------------------------------------------------------------------------------------------


def sqrt(x: Tensor) -> Tensor:
    """torch.sqrt; of float64 on the CPU numpy's, since torch's is not correctly rounded."""
    if x.dtype != torch.float64 or x.device.type != "cpu" or torch.compiler.is_compiling():
        return torch.sqrt(x)
    with np.errstate(invalid="ignore"):
        return torch.from_numpy(np.asarray(np.sqrt(x.numpy())))


def sign(x: Tensor) -> Tensor:
    """torch.sign, extended to NaN, of which torch's sign is 0."""
    y = torch.sign(x)
    return torch.where(x.isnan(), x, y) if x.is_floating_point() else y


@in_float32
def sigmoid(x: Tensor) -> Tensor:
    """z / (1 + z) with z = exp(min(x, 40)), which is exact to the smallest numbers; torch's is 0 below -89."""
    z = torch.clamp_max(x, 40.0).exp_()
    return torch.div(z, z + 1.0)


@in_float32
def softplus(x: Tensor) -> Tensor:
    """max(x, 0) + log1p(exp(-abs(x)))."""
    return torch.abs(x).neg_().exp_().log1p_() + torch.clamp_min(x, 0.0)


@in_float32
def sech_squared(x: Tensor) -> Tensor:
    """4 * e / (1 + e)**2 with e = exp(-2 * abs(x))."""
    e = torch.abs(x).mul_(-2.0).exp_()
    return torch.div(e, torch.add(e, 1.0).square_()).mul_(4.0)


def log1p(x: Tensor) -> Tensor:
    """torch.log1p; of subnormal numbers, of which torch's may be 0, it is x."""
    y = torch.log1p(x)
    return torch.where(y == 0.0, x, y)


@in_float32
def erf(x: Tensor) -> Tensor:
    """torch.erf."""
    return torch.erf(x)


def gaussian(x: Tensor) -> Tensor:
    """exp(-x**2), in float64 if the device has it; else x**2 is corrected by its rounding error."""
    if x.dtype != torch.float64 and x.device.type != "mps":
        wide = x.double()
        return torch.exp(-(wide * wide)).to(x.dtype)
    a = torch.clamp_max(torch.abs(x), 30.0)
    scaled = a * (2.0**27 + 1.0 if x.dtype == torch.float64 else 4097.0)
    upper = scaled - (scaled - a)
    square = a * a
    y = torch.exp(-square)
    return y - y * ((upper * upper - square) + (upper + a) * (a - upper))


def floor_divide(a: Tensor, b: Tensor) -> Tensor:
    """The floor of a / b; 0 where b is 0."""
    negated = (
        b == -1
    ) & a.dtype.is_signed  # where the processor would trap; 255 of uint8 compares equal to -1
    y = torch.div(a, torch.where((b == 0) | negated, 1, b), rounding_mode="floor")
    return torch.where(b == 0, 0, torch.where(negated, -a, y))


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """x in another dtype: floats are truncated to ints and clipped to their range, and NaN becomes 0."""
    if dtype == torch.bfloat16 and x.dtype in (torch.int32, torch.int64):
        return _rounded_once(_to_double(x), dtype)
    if not x.is_floating_point() or dtype in (torch.bool, x.dtype):
        return x.to(dtype)
    if dtype.is_floating_point:
        return _rounded_once(x, dtype) if x.dtype == torch.float64 and dtype in _NARROW else x.to(dtype)
    least, greatest = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    beyond = float(greatest // 2 + 1) * 2.0  # a power of two; the largest int64 is not a float64
    y = torch.where((x >= float(least)) & (x < beyond), x, 0.0).to(dtype)
    return torch.where(x >= beyond, greatest, torch.where(x < float(least), least, y))


def _to_double(x: Tensor) -> Tensor:
    """Integers as float64; of large ones, the last bits are replaced by one that is set if any of them was.

    The bits before them suffice to round to bfloat16.
    """
    if x.dtype == torch.int32:
        return x.double()
    sticky = (x >> 16 << 16) | torch.where(x & 0xFFFF != 0, 1 << 16, 0)
    return torch.where((x < 2**40) & (x > -(2**40)), x, sticky).double()


def _rounded_once(x: Tensor, dtype: torch.dtype) -> Tensor:
    """float64 to a narrow float by way of float32, which torch does too, but rounded to odd there.

    S. Boldo, G. Melquiond, "Emulation of a FMA and correctly rounded sums", 2008, theorem 1.
    """
    y = x.float()
    inexact = (y.double() != x) & (y.view(torch.int32) & 1 == 0)
    step = torch.where(y.double().abs() < x.abs(), 1, -1).to(torch.int32)
    return (y.view(torch.int32) + torch.where(inexact, step, 0)).view(torch.float32).to(dtype)


def to_bits(x: Tensor) -> Tensor:
    """The bits as integers of the same size; 16 bits are widened to int32."""
    bits = x.view(_BITS[x.dtype])
    return bits.to(torch.int32) if x.dtype in _NARROW else bits


def from_bits(x: Tensor) -> Tensor:
    """The floats with these bits."""
    return x.view(_FLOATS[x.dtype])


def shift_left(a: Tensor, b: Tensor) -> Tensor:
    """a * 2**b, wrapping; 0 where b is not in [0, bits)."""
    inside = (b >= 0) & (b < 8 * a.itemsize)
    return torch.where(inside, torch.bitwise_left_shift(a, torch.where(inside, b, 0)), 0)


def shift_right(a: Tensor, b: Tensor) -> Tensor:
    """The logical shift; torch's repeats the sign, and the repeated bits are masked away."""
    bits = 8 * a.itemsize
    inside = (b > 0) & (b < bits)
    amount = torch.where(inside, b, 1)
    mask = ~torch.bitwise_left_shift(torch.full_like(a, -1), bits - amount)
    y = torch.bitwise_right_shift(a, amount) & mask
    return torch.where(inside, y, torch.where(b == 0, a, 0))


# ---- reductions ----------------------------------------------------------------------------------------------


def sum(x: Tensor, axes: Axes) -> Tensor:
    """The sum over axes, in the dtype of x."""
    return torch.sum(x, axes, True, dtype=x.dtype) if axes else x


def prod(x: Tensor, axes: Axes) -> Tensor:
    """The product over axes, in the dtype of x."""
    for axis in axes:
        x = torch.prod(x, axis, True, dtype=x.dtype)
    return x


def max(x: Tensor, axes: Axes) -> Tensor:
    """The maximum over axes."""
    if not axes:
        return x
    return torch.any(x, axes, True) if x.dtype == torch.bool else torch.amax(x, axes, True)


def min(x: Tensor, axes: Axes) -> Tensor:
    """The minimum over axes."""
    if not axes:
        return x
    return torch.all(x, axes, True) if x.dtype == torch.bool else torch.amin(x, axes, True)


def argmax(x: Tensor, axis: int) -> Tensor:
    """The first index of the maximum, as int32."""
    return torch.argmax(x.byte() if x.dtype == torch.bool else x, axis, True).to(torch.int32)


def argmin(x: Tensor, axis: int) -> Tensor:
    """The first index of the minimum, as int32."""
    return torch.argmin(x.byte() if x.dtype == torch.bool else x, axis, True).to(torch.int32)


def sort(x: Tensor, axis: int) -> Tensor:
    """The elements in ascending order, NaN last."""
    return torch.sort(x, dim=axis, stable=True).values


def argsort(x: Tensor, axis: int) -> Tensor:
    """The indices that sort the elements, as int32."""
    return torch.argsort(x, dim=axis, stable=True).to(torch.int32)


def cumsum(x: Tensor, axis: int) -> Tensor:
    """The cumulative sum, in the dtype of x."""
    return torch.cumsum(x, axis, dtype=x.dtype)


def cumprod(x: Tensor, axis: int) -> Tensor:
    """The cumulative product, in the dtype of x."""
    return torch.cumprod(x, axis, dtype=x.dtype)


def copied(x: Tensor) -> Tensor:
    """A copy in row-major order."""
    return x.clone(memory_format=torch.contiguous_format)


# ---- movement and indexing -----------------------------------------------------------------------------------


def reshape(x: Tensor, shape: Shape) -> Tensor:
    """The same elements in another shape."""
    return torch.reshape(x, shape)


def pad(x: Tensor, pads: Pairs) -> Tensor:
    """x with zeros around it."""
    y = x.new_zeros([n + before + after for n, (before, after) in zip(x.shape, pads, strict=True)])
    y[tuple([slice(before, before + n) for n, (before, _) in zip(x.shape, pads, strict=True)])] = x
    return y


def crop(x: Tensor, limits: Pairs) -> Tensor:
    """The elements from start to end along each axis."""
    for axis, (start, end) in enumerate(limits):
        if end - start != x.shape[axis]:
            x = torch.narrow(x, axis, start, end - start)
    return x


def concatenate(*args: Any) -> Tensor:
    """The operands joined along the axis, which is the last argument."""
    return torch.cat(args[:-1], args[-1])


def gather(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """The slices of x at the indices."""
    return torch.index_select(x, axis, indices)


@in_float32
def scatter_add(x: Tensor, indices: Tensor, axis: int, size: int) -> Tensor:
    """Zeros of `size` along the axis, with the slices of x added at the indices."""
    return x.new_zeros((*x.shape[:axis], size, *x.shape[axis + 1 :])).index_add_(axis, indices, x)


@in_float32
def add_at(y: Tensor, x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """y with the slices of x added at the indices."""
    return torch.index_add(y, axis, indices, x)


# ---- sums of exponentials ------------------------------------------------------------------------------------


def softmax(x: Tensor, axes: Axes) -> Tensor:
    """exp(x) / sum(exp(x), axes)."""
    return _along_one_axis(torch.softmax, x, axes)


@in_float32  # torch adds up in float16, and is then off by 1 % near 0
def log_softmax(x: Tensor, axes: Axes) -> Tensor:
    """x - log(sum(exp(x), axes))."""
    return _along_one_axis(torch.log_softmax, x, axes)


def _along_one_axis(function: Callable[[Tensor, int], Tensor], x: Tensor, axes: Axes) -> Tensor:
    """The function along the axes; torch's takes one, so these are joined."""
    if x.numel() == 0:
        return x
    if len(axes) == 1:
        return _also_of_infinities(function, x, axes[0])
    order = (*[i for i in range(x.ndim) if i not in axes], *axes)
    moved = x.permute(order)
    y = _also_of_infinities(function, moved.reshape((*moved.shape[: x.ndim - len(axes)], -1)), -1)
    return y.reshape(moved.shape).permute(tuple(sorted(range(x.ndim), key=order.__getitem__)))


def _also_of_infinities(function: Callable[[Tensor, int], Tensor], x: Tensor, axis: int) -> Tensor:
    """The function, extended to infinite maxima, for which torch's is NaN: they are as 0, and all else as -inf."""
    if x.device.type == "cpu" and not torch.compiler.is_compiling():
        y = function(x, axis)
        if not torch.isnan(y.narrow(axis, 0, 1)).any():
            return y
    top = torch.amax(x, axis, True)
    finite = torch.full_like(x, -torch.inf).masked_fill(x == top, 0.0)
    return function(torch.where(torch.isinf(top), finite, x), axis)


def logsumexp(x: Tensor, axes: Axes) -> Tensor:
    """log(sum(exp(x), axes))."""
    return torch.logsumexp(x, axes, True) if axes else x


# ---- Fourier transforms, without factors -------------------------------------------------------------------------


def fft(real: Tensor, imag: Tensor, inverse: bool) -> tuple[Tensor, Tensor]:
    """The parts of torch.fft.fft, or of its inverse, of complex numbers in parts."""
    z = torch.complex(real.contiguous(), imag.contiguous())
    return _parts(torch.fft.ifft(z, norm="forward") if inverse else torch.fft.fft(z))


def rfft(x: Tensor) -> tuple[Tensor, Tensor]:
    """The parts of torch.fft.rfft."""
    return _parts(torch.fft.rfft(x))


def irfft(real: Tensor, imag: Tensor, size: int) -> Tensor:
    """torch.fft.irfft of complex numbers in parts."""
    return torch.fft.irfft(torch.complex(real.contiguous(), imag.contiguous()), size, norm="forward")


def _parts(z: Tensor) -> tuple[Tensor, Tensor]:
    return z.real.contiguous(), z.imag.contiguous()
