"""The Fourier transforms, by numpy.fft, which is pocketfft."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_core.language.raw import RawTensor
from tensorken_numpy.arrays import Array
from tensorken_numpy.parts import complex_of, parts
from tensorken_numpy.quiet import quiet


class FourierTransforms(RawTensor[Array]):
    """The Fourier transforms of the numpy backend, without factors: "forward" leaves out those of inverses."""

    def fft(self, real: Array, imag: Array, inverse: bool) -> Any:
        return quiet.run(_fft, real, imag, inverse)

    def rfft(self, x: Array) -> Any:
        return quiet.run(_rfft, x)

    def irfft(self, real: Array, imag: Array, size: int) -> Array:
        return quiet.run(_irfft, real, imag, size)


def _fft(real: Array, imag: Array, inverse: bool) -> tuple[Array, Array]:
    z = complex_of(real, imag)
    return parts(np.fft.ifft(z, norm="forward") if inverse else np.fft.fft(z))


def _rfft(x: Array) -> tuple[Array, Array]:
    return parts(np.fft.rfft(x))


def _irfft(real: Array, imag: Array, size: int) -> Array:
    return np.fft.irfft(complex_of(real, imag), size, norm="forward")
