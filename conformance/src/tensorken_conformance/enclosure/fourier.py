"""Enclosures of Fourier transforms: bounds from the number of stages and the length of the operand.

The error of each element is at most that of the whole result in the Euclidean norm.
"""

from __future__ import annotations

import numpy as np

from tensorken_conformance.enclosure.arithmetic import Rule
from tensorken_conformance.enclosure.errors import Errors
from tensorken_conformance.enclosure.interval import (
    LARGEST,
    PRECISION,
    Array,
    Interval,
    anything,
    chosen,
    no_nan,
    rounded,
)
from tensorken_conformance.oracles.transforms import roundings


def _transformed(errors: Errors, real: Interval, imag: Interval, inverse: bool) -> tuple[Interval, Interval]:
    """The transform of the middles; each element is off by no more than the widths and the errors together."""
    dtype, n = real.dtype, real.shape[-1]
    known = np.ones((*real.shape[:-1], 1), bool)
    z = np.zeros(real.shape, complex)
    radius = np.zeros(known.shape)
    for part, unit in ((real, 1.0), (imag, 1j)):
        finite = ~(part.maybe_nan | part.empty | np.isinf(part.low) | np.isinf(part.high))
        low, high = np.where(finite, part.low, 0.0), np.where(finite, part.high, 0.0)
        known &= finite.all(-1, keepdims=True)
        z += unit * (low / 2 + high / 2)
        radius += (high / 2 - low / 2).sum(-1, keepdims=True) * (1 + 2.0**-40)
    y = np.fft.ifft(z, norm="forward") if inverse else np.fft.fft(z)
    size = np.sqrt((np.abs(z) ** 2).sum(-1, keepdims=True) * n)  # the norm of the result
    share = roundings(n) * (errors.unit(dtype) + PRECISION["float64"])
    slack = radius + share * (size + radius * np.sqrt(n)) + n * errors.lost(dtype)
    known = known & np.isfinite(slack) & (size + slack < LARGEST[dtype.name] / 8)
    return _around(y.real, slack, known, real), _around(y.imag, slack, known, real)


def _around(y: Array, slack: Array, known: Array, like: Interval) -> Interval:
    slack, known = np.broadcast_to(slack, y.shape), np.broadcast_to(known, y.shape)
    return chosen(
        known, rounded(y - slack, y + slack, no_nan(y), like.dtype, 1), anything(y.shape, like.dtype)
    )


def fft(errors: Errors, real: Interval, imag: Interval, inverse: bool) -> tuple[Interval, Interval]:
    """Both parts of the transform."""
    return _transformed(errors, real, imag, inverse)


def rfft(errors: Errors, x: Interval) -> tuple[Interval, Interval]:
    """The first half of the transform."""
    count = x.shape[-1] // 2 + 1
    zeros = Interval(np.zeros(x.shape), np.zeros(x.shape), np.zeros(x.shape, bool), x.dtype)
    real, imag = _transformed(errors, x, zeros, False)
    return _part(real, slice(0, count)), _part(imag, slice(0, count))


def irfft(errors: Errors, real: Interval, imag: Interval, size: int) -> Interval:
    """The real part of the inverse transform of the Hermitian sequence."""
    ends = np.array([k == 0 or 2 * k == size for k in range(size // 2 + 1)])
    zero = np.broadcast_to(ends, imag.shape)
    imag = Interval(
        np.where(zero, 0.0, imag.low), np.where(zero, 0.0, imag.high), imag.maybe_nan & ~zero, imag.dtype
    )
    mirror = slice((size - 1) // 2, 0, -1)
    turned = Interval(-imag.high, -imag.low, imag.maybe_nan, imag.dtype)
    whole = _joined(real, _part(real, mirror)), _joined(imag, _part(turned, mirror))
    return _transformed(errors, *whole, True)[0]


def _part(x: Interval, key: slice) -> Interval:
    return Interval(x.low[..., key], x.high[..., key], x.maybe_nan[..., key], x.dtype)


def _joined(a: Interval, b: Interval) -> Interval:
    low, high, maybe_nan = (
        np.concatenate([getattr(x, name) for x in (a, b)], -1) for name in ("low", "high", "maybe_nan")
    )
    return Interval(low, high, maybe_nan, a.dtype)


RULES: dict[str, Rule] = {"fft": fft, "rfft": rfft, "irfft": irfft}
