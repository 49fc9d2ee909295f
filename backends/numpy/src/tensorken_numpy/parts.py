"""Arrays of complex numbers and their parts."""

from __future__ import annotations

import numpy as np

from tensorken_numpy.arrays import Array


def complex_of(real: Array, imag: Array) -> Array:
    """The complex numbers of parts, in the dtype that holds these."""
    z = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
    z.real, z.imag = real, imag
    return z


def parts(z: Array) -> tuple[Array, Array]:
    """The real and the imaginary parts, as contiguous arrays."""
    return np.array(z.real, order="C"), np.array(z.imag, order="C")
