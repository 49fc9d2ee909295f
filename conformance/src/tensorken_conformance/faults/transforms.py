"""Transforms: a sign, a root of unity, a norm, or an end of half a spectrum is wrong, for some lengths alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken import fft as functions
from tensorken.fft import of_real
from tensorken.fft import transforms as of_complex
from tensorken.ops import fourier_bodies as bodies
from tensorken_conformance.faults.changes import rules
from tensorken_conformance.faults.fault import Original, Patch, fault, fault_in_function
from tensorken_conformance.subject import Array
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_numpy.backend import Numpy

LAW = "values.transforms"
FUNCTIONS = "values.spectra"
DERIVATIVES = "derivatives.spectra"

Parts = tuple[Array, Array]


class Bodies(Numpy):
    """numpy's backend without its Fourier transforms, so that their bodies run."""

    def __repr__(self) -> str:
        return "Bodies()"


for _name in ("fft", "rfft", "irfft"):
    setattr(Bodies, _name, getattr(RawTensor, _name))


# ---- a backend -----------------------------------------------------------------------------------------------


@fault(LAW, "fft", dtype="float32")
def inverse_of_pairs_is_forward(original: Original, real: Array, imag: Array, inverse: bool) -> Parts:
    """fft of float32 ignores the direction for lengths beyond 128."""
    y: Any = original(real, imag, inverse and real.shape[-1] <= 128)
    return y  # type: ignore[no-any-return]


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
def highest_frequency_is_missing(original: Original, x: Array) -> Parts:
    """rfft of float64 leaves the last element of the spectrum of 30 numbers 0."""
    real, imag = (np.array(part) for part in original(x))
    if x.shape[-1] == 30:
        real[..., -1] = 0.0
    return real, imag


@fault(LAW, "fft", dtype="float64")
def rows_share_the_first(original: Original, real: Array, imag: Array, inverse: bool) -> Parts:
    """fft of float64 transforms the first row of a batch of 31 elements for each of them."""
    if real.shape[-1] == 31:
        real, imag = (np.broadcast_to(part[:1], part.shape) for part in (real, imag))
    y: Any = original(real, imag, inverse)
    return y  # type: ignore[no-any-return]


@fault(LAW, "fft", dtype="float64")
def computed_in_single_precision(original: Original, real: Array, imag: Array, inverse: bool) -> Parts:
    """fft of float64 computes 97 elements in float32."""
    if real.shape[-1] != 97:
        y: Any = original(real, imag, inverse)
        return y  # type: ignore[no-any-return]
    parts = original(real.astype("float32"), imag.astype("float32"), inverse)
    return parts[0].astype("float64"), parts[1].astype("float64")


@fault(LAW, "rfft", dtype="float32")
def large_numbers_are_squared(original: Original, x: Array) -> Parts:
    """rfft of float32 divides by the norm, whose square overflows for large numbers of length 12."""
    if x.shape[-1] == 12:
        with np.errstate(all="ignore"):
            norm = np.sqrt(np.maximum((x * x).sum(-1, keepdims=True), np.finfo("float32").tiny))
            real, imag = original((x / norm).astype("float32"))
            return (real * norm).astype("float32"), (imag * norm).astype("float32")
    y: Any = original(x)
    return y  # type: ignore[no-any-return]


# ---- the bodies ------------------------------------------------------------------------------------------------


def _of_body(wrong: Any, name: str, *ops: str, law: str = LAW) -> None:
    """Declare a fault in a function of the bodies; it receives the original function and its arguments."""

    def patch() -> Patch:
        original = getattr(bodies, name)
        setattr(bodies, name, lambda *args: wrong(original, *args))
        try:
            yield None
        finally:
            setattr(bodies, name, original)

    patch.__name__, patch.__doc__, patch.__module__ = wrong.__name__, wrong.__doc__, wrong.__module__
    fault(law, *ops, on=Bodies)(patch)


def sines_of_odd_lengths_are_swapped(original: Any, x: Any, radix: int, sign: float) -> Any:
    """The body of fft for a radix of 5 has sines of the other sign."""
    return original(x, radix, -sign if radix == 5 else sign)


def turned_forward_in_radix_4(original: Any, x: Any, sign: float) -> Any:
    """The body of fft multiplies by i where it should divide, in forward transforms of radix 4 with many elements."""
    return original(x, 1.0 if x[0].shape[-1] == 32 else sign)


def twiddles_lose_digits(original: Any, radix: int, rest: int) -> Any:
    """The roots of unity between two stages of the body of fft are rounded to nine digits for lengths of 100."""
    found = original(radix, rest)
    return [[round(v, 9) for v in part] for part in found] if radix * rest == 100 else found


def convolution_wraps_around(original: Any, x: Any, sign: float) -> Any:
    """The convolution in the body of fft for large primes has half of the length that it needs, for 67 elements."""
    n = x[0].shape[1]
    if n != 67:
        return original(x, sign)
    short = tuple([part.crop([(0, part.shape[0]), (0, n - 1)]).pad([(0, 0), (0, 1)]) for part in x])
    return original(short, sign)


_of_body(sines_of_odd_lengths_are_swapped, "_odd", "fft", "rfft", "irfft")
_of_body(turned_forward_in_radix_4, "_turned", "fft", "rfft", "irfft")
_of_body(twiddles_lose_digits, "_cached_twiddles", "fft", "rfft", "irfft")
_of_body(convolution_wraps_around, "_bluestein", "fft", "rfft", "irfft")


# ---- functions -------------------------------------------------------------------------------------------------


@fault_in_function(FUNCTIONS, of_complex, "factor", "fft", "ifft", "fftn", "ifftn", "fft2", "ifft2")
def ortho_divides_by_the_length(original: Any, name: str, norm: Any, n: int, inverse: bool) -> float:
    """The norm ortho of an inverse transform of complex numbers divides by the length instead of its root."""
    return 1.0 / n if norm == "ortho" and inverse else original(name, norm, n, inverse)  # type: ignore[no-any-return]


@fault_in_function(FUNCTIONS, of_real, "factor", "rfft", "irfft", "hfft", "ihfft", "rfftn", "irfftn")
def forward_norm_is_backward(original: Any, name: str, norm: Any, n: int, inverse: bool) -> float:
    """The norm forward is taken for backward in functions of real numbers of odd length."""
    return original(name, "backward" if norm == "forward" and n % 2 else norm, n, inverse)  # type: ignore[no-any-return]


@fault_in_function(FUNCTIONS, of_real, "conjugate", "hfft", "ihfft")
def hermitian_transforms_forget_the_conjugate(original: Any, z: Any) -> Any:
    """hfft and ihfft do not conjugate."""
    return z


@fault_in_function(FUNCTIONS, of_complex, "fitted", "fft", "ifft", "fftn", "ifftn")
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


@fault_in_function(FUNCTIONS, of_complex, "several", "fftn", "fft2")
def lengths_of_axes_in_order(
    original: Any, name: str, x: Any, s: Any, axes: Any, norm: Any, inverse: bool
) -> Any:
    """fftn gives lengths to the axes in ascending order, whatever order the axes have."""
    return original(name, x, s, None if axes is None else sorted(axes), norm, inverse)


@fault_in_function(FUNCTIONS, functions, "fftshift", "fftshift")
def odd_shift_rounds_up(original: Any, x: Any, axes: Any = None) -> Any:
    """fftshift is ifftshift, which differs for odd lengths."""
    return functions.ifftshift(x, axes)


@fault_in_function(FUNCTIONS, functions, "fftfreq", "fftfreq")
def middle_frequency_is_positive(original: Any, n: int, d: float = 1.0, **given: Any) -> Any:
    """fftfreq gives the frequency n/2 of an even length a positive sign."""
    y = original(n, d, **given)
    half = n // 2
    return y if n % 2 else y.at[half].set(-y[half])


# ---- derivatives -----------------------------------------------------------------------------------------------


@fault(DERIVATIVES)
def cotangents_of_the_same_sign() -> Patch:
    """The VJP of fft is the conjugate of the transpose: it keeps the sign of the exponent."""

    def pull(cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
        return bodies.fft_vjp(cotangents, ys, xs, (not params[0],))

    with rules("fft", vjp_all=pull):
        yield None


@fault(DERIVATIVES)
def highest_frequency_counts_twice() -> Patch:
    """The VJP of irfft doubles the cotangent at the frequency n/2 of an even length."""

    def pull(cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
        real, imag = bodies.irfft_vjp(cotangents, ys, xs, params)
        last = real.shape[-1] - 1
        return (real.at[..., last].multiply(2.0) if params[0] % 2 == 0 and last else real), imag

    with rules("irfft", vjp_all=pull):
        yield None


@fault(DERIVATIVES)
def last_of_odd_counts_once() -> Patch:
    """The VJP of irfft does not double the last cotangent of an odd length, as if it were at the frequency n/2."""

    def pull(cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
        found = bodies.irfft_vjp(cotangents, ys, xs, params)
        last = found[0].shape[-1] - 1
        return tuple([x.at[..., last].multiply(0.5) if params[0] % 2 and last else x for x in found])

    with rules("irfft", vjp_all=pull):
        yield None


@fault(DERIVATIVES)
def halves_are_whole() -> Patch:
    """The VJP of rfft does not halve the cotangents within the spectrum, so they count twice."""

    def pull(cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
        size = xs[0].shape[-1]
        real, imag = [y.zeros_like() if t is None else t for t, y in zip(cotangents, ys, strict=True)]
        return (real.apply(OPS["irfft"], imag, size),)

    with rules("rfft", vjp_all=pull):
        yield None


@fault(DERIVATIVES)
def tangents_of_imaginary_parts_are_dropped() -> Patch:
    """The JVP of irfft ignores the tangent of the imaginary parts of even lengths."""

    def push(tangents: Any, ys: Any, xs: Any, params: Any) -> Any:
        real, imag = tangents
        return bodies.irfft_jvp((real, None if params[0] % 2 == 0 else imag), ys, xs, params)

    with rules("irfft", jvp_all=push):
        yield None
