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
    Interval,
    around,
    chosen,
    combined,
    exactly,
)
from tensorken_conformance.oracles.transforms import roundings


def _transformed(errors: Errors, real: Interval, imag: Interval, inverse: bool) -> tuple[Interval, Interval]:
    """The transform of the middles; each element is off by no more than the widths and the errors together."""
    dtype, n = real.dtype, real.shape[-1]
    known = np.ones((*real.shape[:-1], 1), bool)
    z = np.zeros(real.shape, complex)
    radius = np.zeros(known.shape)
    for part, unit in ((real, 1.0), (imag, 1j)):
        low, high = np.where(part.finite, part.low, 0.0), np.where(part.finite, part.high, 0.0)
        known &= part.finite.all(-1, keepdims=True)
        z += unit * (low / 2 + high / 2)
        radius += (high / 2 - low / 2).sum(-1, keepdims=True) * (1 + 2.0**-40)
    y = np.fft.ifft(z, norm="forward") if inverse else np.fft.fft(z)
    size = np.sqrt((np.abs(z) ** 2).sum(-1, keepdims=True) * n)  # the norm of the result
    share = roundings(n) * (errors.unit(dtype) + PRECISION["float64"])
    slack = radius + share * (size + radius * np.sqrt(n)) + n * errors.lost(dtype)
    known = known & np.isfinite(slack) & (size + slack < LARGEST[dtype.name] / 8)
    return around(y.real, slack, known, dtype), around(y.imag, slack, known, dtype)


def fft(errors: Errors, real: Interval, imag: Interval, inverse: bool) -> tuple[Interval, Interval]:
    """Both parts of the transform."""
    return _transformed(errors, real, imag, inverse)


def rfft(errors: Errors, x: Interval) -> tuple[Interval, Interval]:
    """The first half of the transform."""
    count = x.shape[-1] // 2 + 1
    real, imag = _transformed(errors, x, exactly(np.zeros(x.shape), x.dtype), False)
    return real.each(lambda values: values[..., :count]), imag.each(lambda values: values[..., :count])


def irfft(errors: Errors, real: Interval, imag: Interval, size: int) -> Interval:
    """The real part of the inverse transform of the Hermitian sequence."""
    ends = np.array([k == 0 or 2 * k == size for k in range(size // 2 + 1)])
    imag = chosen(ends, exactly(np.zeros(imag.shape), imag.dtype), imag)
    mirror = slice((size - 1) // 2, 0, -1)

    def whole(x: Interval, mirrored: Interval) -> Interval:
        return combined(lambda first, last: np.concatenate([first, last[..., mirror]], -1), x, mirrored)

    return _transformed(errors, whole(real, real), whole(imag, -imag), True)[0]


RULES: dict[str, Rule] = {"fft": fft, "rfft": rfft, "irfft": irfft}
