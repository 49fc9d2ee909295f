# mypy: disable-error-code="empty-body"
"""The ops `fft`, `rfft` and `irfft`: discrete Fourier transforms along the last axis, without factors.

No backend has complex values: a complex operand or result is two real ones.  All three are linear, and the transpose of
each is another.
"""

from __future__ import annotations

from tensorken.ops import fourier_bodies as bodies
from tensorken_core.errors import DTypeError, ShapeError
from tensorken_core.language.declare import primitive
from tensorken_core.language.dtype_rules import floating
from tensorken_core.language.dtypes import DType
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.shapes import Shape


def _dtype(*dtypes: DType) -> DType:
    dtype = floating(*dtypes)
    if dtype.wide is not dtype:
        raise DTypeError(f"not defined for {dtype}; it takes float32, float64; cast first (x.astype)")
    return dtype


def _length(x: Shape) -> int:
    """The length of the last axis, at least 1."""
    if not x or x[-1] < 1:
        raise ShapeError(f"need at least 1 element along the last axis, got shape {x}; pad it with zeros")
    return x[-1]


def _pair(real: Shape, imag: Shape) -> Shape:
    """The one shape of real and imaginary parts."""
    _length(real)
    if real != imag:
        raise ShapeError(
            f"need real and imaginary parts of one shape, got {real} and {imag}; broadcast first"
        )
    return real


def _half(x: Shape) -> tuple[Shape, Shape]:
    shape = (*x[:-1], _length(x) // 2 + 1)
    return shape, shape


def _whole(real: Shape, imag: Shape, size: int) -> Shape:
    count = _length(_pair(real, imag))
    if size < 1 or count != size // 2 + 1:
        raise ShapeError(
            f"a result of size {size} needs {max(size, 1) // 2 + 1} elements along the last axis, got shape {real}; "
            f"pad or crop it"
        )
    return (*real[:-1], size)


class FourierTransforms(Interpreter[R]):
    """Discrete Fourier transforms."""

    @primitive(
        shape=lambda real, imag, inverse: (_pair(real, imag),) * 2,
        dtype=lambda real, imag, inverse: (_dtype(real, imag),) * 2,
        params=("flag",),
        results=2,
        jvp_all=bodies.fft_jvp,
        vjp_all=bodies.fft_vjp,
        body=bodies.fft,
        samples=((((3,), (3,)), (False,)), (((2, 4), (2, 4)), (True,)), (((2, 3, 6), (2, 3, 6)), (False,))),
    )
    def fft(self, real: R, imag: R, inverse: bool) -> tuple[R, R]:
        """The sums of (real + i imag)[j] * exp(-2 pi i j k / n) over j, or with +2 if inverse, as two parts."""

    @primitive(
        shape=_half,
        dtype=lambda x: (_dtype(x),) * 2,
        results=2,
        jvp_all=bodies.rfft_jvp,
        vjp_all=bodies.rfft_vjp,
        body=bodies.rfft,
        samples=((((5,),), ()), (((2, 4),), ())),
    )
    def rfft(self, x: R) -> tuple[R, R]:
        """The first n // 2 + 1 elements of the transform of real numbers; the others are their mirrored conjugates."""

    @primitive(
        shape=_whole,
        dtype=lambda real, imag, size: _dtype(real, imag),
        jvp_all=bodies.irfft_jvp,
        vjp_all=bodies.irfft_vjp,
        body=bodies.irfft,
        samples=((((3,), (3,)), (5,)), (((2, 3), (2, 3)), (4,))),
    )
    def irfft(self, real: R, imag: R, size: int) -> R:
        """The inverse transform of a sequence of real numbers, of which the first size // 2 + 1 elements are given.

        Their mirrored conjugates are the others; imaginary parts of elements that are their own mirror images are
        ignored.
        """
