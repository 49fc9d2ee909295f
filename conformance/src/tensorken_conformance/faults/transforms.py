"""Transforms: a sign, a root of unity, a norm, or an end of half a spectrum is wrong, for some lengths alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorken import fft as functions
from tensorken.fft import of_real, transforms as of_complex
from tensorken.ops import fourier_bodies as bodies
from tensorken_conformance.faults.fault import Declared, Original, fault, fault_in_fact, fault_in_function
from tensorken_conformance.subject import Array
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_numpy.backend import Numpy

LAW = "values.transforms"
FUNCTIONS = "values.spectra"
DERIVATIVES = "derivatives.spectra"

Parts = tuple[Array, Array]

OfParts = Callable[..., Parts]


class Bodies(Numpy):
    """numpy's backend without its Fourier transforms, so that their bodies run."""

    def __repr__(self) -> str:
        return "Bodies()"


for _name in ("fft", "rfft", "irfft"):
    setattr(Bodies, _name, getattr(RawTensor, _name))


# ---- a backend -----------------------------------------------------------------------------------------------


@fault(LAW, "fft", dtype="float32")
def inverse_of_pairs_is_forward(original: OfParts, real: Array, imag: Array, inverse: bool) -> Parts:
    """fft of float32 ignores the direction for lengths beyond 128."""
    return original(real, imag, inverse and real.shape[-1] <= 128)


@fault(LAW, "irfft", dtype="float64")
def last_imaginary_part_is_used(original: Original, real: Array, imag: Array, size: int) -> Array:
    """irfft of float64 adds the imaginary part at the highest frequency of sixteen elements to the real part."""
    if size == 16:
        real = real.copy()
        real[..., -1] += imag[..., -1]
    return original(real, imag, size)


@fault(LAW, "irfft", dtype="float32")
def last_imaginary_part_of_odd_is_ignored(original: Original, real: Array, imag: Array, size: int) -> Array:
    """irfft of float32 ignores the imaginary part of the last of nine elements, which is not its own mirror image."""
    if size == 9:
        imag = imag.copy()
        imag[..., -1] = 0.0
    return original(real, imag, size)


@fault(LAW, "irfft", dtype="float64")
def nan_of_an_ignored_part_spreads(original: Original, real: Array, imag: Array, size: int) -> Array:
    """irfft of float64 multiplies the imaginary part at frequency 0 by 0, which is NaN for an infinity."""
    with np.errstate(invalid="ignore"):
        return original(real, imag, size) + imag[..., :1] * 0.0


@fault(LAW, "rfft", dtype="float64")
def highest_frequency_is_missing(original: OfParts, x: Array) -> Parts:
    """rfft of float64 leaves the last element of the spectrum of 30 numbers 0."""
    real, imag = (np.array(part) for part in original(x))
    if x.shape[-1] == 30:
        real[..., -1] = 0.0
    return real, imag


@fault(LAW, "fft", dtype="float64")
def rows_share_the_first(original: OfParts, real: Array, imag: Array, inverse: bool) -> Parts:
    """The inverse fft of float64 transforms the first row of a batch of 31 elements for each of them."""
    if inverse and real.shape[-1] == 31:
        real, imag = (np.broadcast_to(part[:1], part.shape) for part in (real, imag))
    return original(real, imag, inverse)


@fault(LAW, "fft", dtype="float64")
def computed_in_single_precision(original: OfParts, real: Array, imag: Array, inverse: bool) -> Parts:
    """The inverse fft of float64 computes 97 elements in float32."""
    if not inverse or real.shape[-1] != 97:
        return original(real, imag, inverse)
    parts = original(real.astype("float32"), imag.astype("float32"), inverse)
    return parts[0].astype("float64"), parts[1].astype("float64")


@fault(LAW, "rfft", dtype="float32")
def large_numbers_are_squared(original: OfParts, x: Array) -> Parts:
    """rfft of float32 divides by the norm, whose square overflows for large numbers of length 12."""
    if x.shape[-1] == 12:
        with np.errstate(all="ignore"):
            norm = np.sqrt(np.maximum((x * x).sum(-1, keepdims=True), np.finfo("float32").tiny))
            real, imag = original((x / norm).astype("float32"))
            return (real * norm).astype("float32"), (imag * norm).astype("float32")
    return original(x)


# ---- the bodies ------------------------------------------------------------------------------------------------


def _fault_in_body(name: str, crude: bool = False) -> Callable[[Declared], Declared]:
    """Declare a fault in a function of the bodies; it receives the original function and its arguments."""
    return fault_in_function(LAW, bodies, name, "fft", "rfft", "irfft", on=Bodies, crude=crude)


@_fault_in_body("_odd")
def sines_of_odd_lengths_are_swapped(original: Any, x: Any, radix: int, sign: float) -> Any:
    """The body of a forward fft of 31 elements of float64 has sines of the other sign."""
    wrong = radix == 31 and x[0].shape[-1] == 1 and x[0].dtype.name == "float64"
    return original(x, radix, 1.0 if wrong else sign)


@_fault_in_body("_turned", crude=True)
def turned_forward_in_radix_4(original: Any, x: Any, sign: float) -> Any:
    """The body of fft multiplies by i where it should divide, in forward transforms of 128 elements."""
    return original(x, 1.0 if x[0].shape[-1] == 32 else sign)


@_fault_in_body("_cached_twiddles", crude=True)
def twiddles_lose_digits(original: Any, radix: int, rest: int) -> Any:
    """The roots of unity between two stages of the body of fft are rounded to nine digits for lengths of 100."""
    found = original(radix, rest)
    return [[round(v, 9) for v in part] for part in found] if radix * rest == 100 else found


@_fault_in_body("_bluestein")
def convolution_loses_the_last(original: Any, x: Any, sign: float) -> Any:
    """The body of fft for 97 elements, which is a convolution, leaves out the last element of a forward transform."""
    n = x[0].shape[1]
    if n != 97 or sign > 0 or x[0].dtype.name != "float32":
        return original(x, sign)
    return original([part.crop([(0, part.shape[0]), (0, n - 1)]).pad([(0, 0), (0, 1)]) for part in x], sign)


# ---- functions -------------------------------------------------------------------------------------------------


@fault_in_function(FUNCTIONS, of_complex, "factor")
def ortho_divides_by_the_length(original: Any, name: str, norm: Any, n: int, inverse: bool) -> float:
    """The norm ortho of an inverse transform of complex numbers divides by the length instead of its root."""
    return 1.0 / n if norm == "ortho" and inverse else original(name, norm, n, inverse)


@fault_in_function(FUNCTIONS, of_real, "factor")
def forward_norm_is_backward(original: Any, name: str, norm: Any, n: int, inverse: bool) -> float:
    """The norm forward is taken for backward in functions of real numbers of odd length."""
    return original(name, "backward" if norm == "forward" and n % 2 else norm, n, inverse)  # type: ignore[no-any-return]


@fault_in_function(FUNCTIONS, of_real, "conjugate")
def hermitian_transforms_forget_the_conjugate(original: Any, z: Any) -> Any:
    """hfft and ihfft do not conjugate."""
    return z


@fault_in_function(FUNCTIONS, of_complex, "fitted")
def padding_comes_first(original: Any, name: str, x: Any, n: Any, axis: int) -> Any:
    """Transforms of complex numbers put the zeros of a longer transform before the elements."""
    y, count = original(name, x, n, axis)
    missing = count - x.shape[axis]
    if missing <= 0:
        return y, count
    rows = [(0, m) for m in y.shape[:-1]]
    return y.crop([*rows, (count - missing, count)]).concatenate(
        y.crop([*rows, (0, count - missing)]), axis=y.ndim - 1
    ), count


@fault_in_function(FUNCTIONS, of_complex, "several")
def lengths_of_axes_in_order(
    original: Any, name: str, x: Any, s: Any, axes: Any, norm: Any, inverse: bool
) -> Any:
    """fftn gives lengths to the axes in ascending order, whatever order the axes have."""
    return original(name, x, s, None if axes is None else sorted(axes), norm, inverse)


@fault_in_function(FUNCTIONS, functions, "fftshift")
def odd_shift_rounds_up(original: Any, x: Any, axes: Any = None) -> Any:
    """fftshift is ifftshift, which differs for odd lengths."""
    return functions.ifftshift(x, axes)


@fault_in_function(FUNCTIONS, functions, "fftfreq")
def middle_frequency_is_positive(original: Any, n: int, d: float = 1.0, **given: Any) -> Any:
    """fftfreq gives the frequency n/2 of an even length a positive sign."""
    y = original(n, d, **given)
    half = n // 2
    return y if n % 2 else y.at[half].set(-y[half])


# ---- derivatives -----------------------------------------------------------------------------------------------


@fault_in_fact(DERIVATIVES, "fft", "vjp_all")
def cotangents_of_the_same_sign(original: Any, cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    """The VJP of fft is the conjugate of the transpose: it keeps the sign of the exponent."""
    return original(cotangents, ys, xs, (not params[0],))


@fault_in_fact(DERIVATIVES, "irfft", "vjp_all")
def highest_frequency_counts_twice(original: Any, cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    """The VJP of irfft doubles the cotangent at the frequency n/2 of an even length."""
    real, imag = original(cotangents, ys, xs, params)
    last = real.shape[-1] - 1
    return (real.at[..., last].multiply(2.0) if params[0] % 2 == 0 and last else real), imag


@fault_in_fact(DERIVATIVES, "irfft", "vjp_all")
def last_of_odd_counts_once(original: Any, cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    """The VJP of irfft does not double the last cotangent of an odd length, as if it were at the frequency n/2."""
    found = original(cotangents, ys, xs, params)
    last = found[0].shape[-1] - 1
    return tuple([x.at[..., last].multiply(0.5) if params[0] % 2 and last else x for x in found])


@fault_in_fact(DERIVATIVES, "rfft", "vjp_all")
def halves_are_whole(original: Any, cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    """The VJP of rfft does not halve the cotangents within the spectrum, so they count twice."""
    real, imag = [y.zeros_like() if t is None else t for t, y in zip(cotangents, ys, strict=True)]
    return (real.apply(OPS["irfft"], imag, xs[0].shape[-1]),)


@fault_in_fact(DERIVATIVES, "irfft", "jvp_all")
def tangents_of_imaginary_parts_are_dropped(original: Any, tangents: Any, *rest: Any) -> Any:
    """The JVP of irfft ignores the tangent of the imaginary parts of even lengths."""
    real, imag = tangents
    return original((real, None if rest[-1][0] % 2 == 0 else imag), *rest)
