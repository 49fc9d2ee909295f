"""The Fourier transforms, by numpy.fft, which is pocketfft."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_core.language.raw import RawTensor
from tensorken_numpy.arrays import Array
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
    z = _complex(real, imag)
    return _parts(np.fft.ifft(z, norm="forward") if inverse else np.fft.fft(z))


def _rfft(x: Array) -> tuple[Array, Array]:
    return _parts(np.fft.rfft(x))


def _irfft(real: Array, imag: Array, size: int) -> Array:
    return np.fft.irfft(_complex(real, imag), size, norm="forward")


def _complex(real: Array, imag: Array) -> Array:
    z = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
    z.real, z.imag = real, imag
    return z


def _parts(z: Array) -> tuple[Array, Array]:
    return np.ascontiguousarray(z.real), np.ascontiguousarray(z.imag)
