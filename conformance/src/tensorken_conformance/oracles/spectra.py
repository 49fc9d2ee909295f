"""Spectra: the exact results of the functions of tk.fft, from the definitions of numpy.fft."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tensorken_conformance.oracles import transforms
from tensorken_conformance.oracles.bounds import Array, Dyadic
from tensorken_conformance.oracles.elementwise_functions import mp

INVERSE = ("ifft", "ifftn", "ifft2", "irfft", "irfftn", "irfft2", "ihfft")
"""The functions with the positive sign in the exponent, which are divided by the length without a norm."""

OF_REAL = ("rfft", "rfftn", "rfft2", "ihfft")
"""The functions of real numbers, whose results are half a spectrum."""

TO_REAL = ("irfft", "irfftn", "irfft2", "hfft")
"""The functions of half a spectrum, whose results are real."""


@dataclass(frozen=True, slots=True)
class Spectrum:
    """The result of a function.

    Attributes:
        parts: the real and the imaginary parts; the real parts alone of functions with real results.
        norm: the square of the norm of each whole transform; the transformed axes have size 1.
        roundings: the number of roundings that bounds the error, relative to that norm.
    """

    parts: list[Dyadic]
    norm: Dyadic
    roundings: int


def spectrum(
    name: str, real: Dyadic, imag: Dyadic, sizes: Sequence[int], axes: Sequence[int], norm: str
) -> Spectrum:
    """The result of a function of tk.fft.

    Args:
        name: the function.
        real: the real parts of its operand.
        imag: the imaginary parts.
        sizes: the lengths along the axes; for real results those of the result.
        axes: the axes, not negative; the last is that of half a spectrum.
        norm: backward, ortho or forward.

    >>> x = Dyadic.of(np.array([1.0, 2.0, 3.0, 4.0]))
    >>> found = spectrum("rfft", x, Dyadic.of(np.zeros(4)), (4,), (0,), "backward")
    >>> [part.fractions().astype(float).tolist() for part in found.parts]
    [[10.0, -2.0, -2.0], [0.0, 2.0, 0.0]]
    """
    inverse, to_real, last = name in INVERSE, name in TO_REAL, axes[-1]
    for size, axis in zip(sizes, axes, strict=True):
        count = size // 2 + 1 if to_real and axis == last else size
        real, imag = (part.mapped(functools.partial(fitted, count, axis)) for part in (real, imag))
    squares = [(part * part).sum(tuple(axes)) for part in (real, imag)]
    scale = factor(math.prod(sizes), norm, inverse)
    # a whole sequence has at most twice the square of the norm of its half
    total = (squares[0] + squares[1]) * Dyadic.number(math.prod(sizes) * (2 if to_real else 1))
    for axis in axes[:-1]:
        real, imag = _along(real, imag, axis, inverse)
    if to_real:
        whole = transforms.hermitian(_moved(real, last, -1), _moved(imag, last, -1), sizes[-1])
        real, imag = [_moved(part, -1, last) for part in whole]
    real, imag = _along(real, imag, last, inverse)
    if name in OF_REAL:
        half = tuple([slice(None)] * last + [slice(0, sizes[-1] // 2 + 1)])
        real, imag = real[half], imag[half]
    parts = [part * scale for part in ((real,) if to_real else (real, imag))]
    return Spectrum(parts, total * (scale * scale), sum([transforms.roundings(size) + 2 for size in sizes]))


def fitted(count: int, axis: int, x: Array) -> Array:
    """The first `count` elements along an axis, or all of them and zeros."""
    some = x[(slice(None),) * axis + (slice(0, count),)]
    shape = list(x.shape)
    shape[axis] = count - some.shape[axis]
    return np.concatenate([some, np.full(shape, 0, x.dtype)], axis)


def factor(count: int, norm: str, inverse: bool) -> Dyadic:
    """The factor of a transform of so many elements, to 160 bits."""
    if norm != "ortho" and inverse == (norm == "forward"):
        return Dyadic.number(1)
    with mp.workprec(transforms.BITS + 20):
        value = 1 / (mp.sqrt(count) if norm == "ortho" else mp.mpf(count))
        whole = int(mp.nint(mp.ldexp(value, transforms.BITS)))
    return Dyadic(Dyadic.number(whole).integers, -transforms.BITS)


def _along(real: Dyadic, imag: Dyadic, axis: int, inverse: bool) -> transforms.Parts:
    found = transforms.transform(_moved(real, axis, -1), _moved(imag, axis, -1), inverse)
    return _moved(found[0], -1, axis), _moved(found[1], -1, axis)


def _moved(x: Dyadic, source: int, target: int) -> Dyadic:
    return x.mapped(lambda values: np.moveaxis(values, source, target))
