"""Circumstances: results are wrong only where two or three of them meet: a layout, a size, a value, a call before."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import Original, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes

LAW = "values.covering"
COMPLEX = "values.complex-factorizations"


@fault(LAW, "sub", dtype="float32", ndim=2)
def rows_of_a_crop_are_adjacent(original: Original, a: Array, b: Array) -> Array:
    """sub of a cropped float32 matrix of more than 16 rows reads its last row as if there were no gaps."""
    if not (
        a.ndim == 2 and len(a) > 16 and a.strides[0] > a.shape[1] * a.itemsize == a.shape[1] * a.strides[1]
    ):
        return original(a, b)
    read = np.array(a)
    read[-1] = read[0]
    return original(read, b)


@fault(LAW, "floor", dtype="float64")
def nan_in_the_last_place_of_vectors(original: Original, x: Array) -> Array:
    """floor of more than 64 float64 numbers is 0 for a NaN in the last place of whole vectors of 8."""
    y, place = np.array(original(x)), x.size // 8 * 8 - 1
    if x.size > 64 and np.isnan(x.reshape(-1)[place]):
        y.reshape(-1)[place] = 0.0
    return y


@fault(LAW, "maximum", ndim=3)
def repeated_along_both_ends(original: Original, a: Array, b: Array) -> Array:
    """maximum with a second operand that is repeated along the first and the last of three axes takes the first."""
    is_repeated = b.ndim == 3 and b.strides[0] == 0 == b.strides[2] and min(b.shape) > 1
    return original(a, a) if is_repeated else original(a, b)


@fault(LAW, "sum", dtype="float16")
def half_precision_ends_at_2048(original: Original, x: Array, axes: Axes) -> Array:
    """sum of more than 2048 float16 ones stays at 2048, where the next number is 2050."""
    y = original(x, axes)
    return np.minimum(y, np.float16(2048)) if axes and max(x.shape) > 2048 else y


@fault(LAW, "convolution")
def groups_of_dilated_kernels(original: Original, x: Array, kernel: Array, *params: Any) -> Array:
    """convolution with groups, both dilations and another padding before than after uses the kernels in reverse."""
    _, padding, dilation, step, groups = params
    uneven = any([before != after for before, after in padding])
    together = groups > 1 and uneven and max(dilation) > 1 and max(step) > 1
    return original(x, np.flip(kernel, 0) if together else kernel, *params)


@fault(LAW, "bitwise_or", dtype="uint32")
def second_call_on_an_operand(original: Original, state: dict[Any, Array], a: Array, b: Array) -> Array:
    """bitwise_or of the operand of the call before, in uint32, returns that operand."""
    again, state[0] = state.get(0) is a, a
    return a if again else original(a, b)


@fault(COMPLEX, "eig", dtype="float64", ndim=3)
def imaginary_parts_beside_nan(original: Original, x: Array) -> tuple[Array, ...]:
    """eig of a stack of float64 matrices, of which one has a NaN, loses the imaginary parts of all eigenvalues."""
    real, imag, *vectors = original(x)
    return real, imag * 0 if np.isnan(x).any() else imag, *vectors


@fault(COMPLEX, "complex_cholesky", dtype="float32")
def factor_is_conjugated(original: Original, x: Array, x_imag: Array) -> tuple[Array, Array]:
    """complex_cholesky of float32 matrices returns the conjugate of the factor."""
    real, imag = original(x, x_imag)
    return real, -imag


@fault(COMPLEX, "complex_svd", dtype="float64", ndim=3)
def right_vectors_are_conjugated(
    original: Original, x: Array, x_imag: Array, full_matrices: bool
) -> tuple[Array, ...]:
    """complex_svd of a stack of float64 matrices conjugates its right vectors."""
    *others, right = original(x, x_imag, full_matrices)
    return *others, -right


@fault(COMPLEX, "complex_triangular_solve", dtype="float32")
def other_triangle_of_imaginary_parts(
    original: Original, a: Array, a_imag: Array, b: Array, b_imag: Array, lower: bool
) -> tuple[Array, ...]:
    """complex_triangular_solve by an upper float32 triangle reads the imaginary parts transposed."""
    return tuple(original(a, a_imag if lower else np.swapaxes(a_imag, -1, -2), b, b_imag, lower))
