"""Transforms of complex numbers: fft, ifft, and those of several axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.complex_numbers.tensor import ComplexTensor
from tensorken.fft.operands import factor, fitted, from_last, operand, scaled, sizes_and_axes
from tensorken_core.language.op import OPS
from tensorken_core.tensor.tensor import Tensor

__all__ = ["fft", "fft2", "fftn", "ifft", "ifft2", "ifftn"]


def fft(x: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The discrete Fourier transform: the sums of x[j] * exp(-2 pi i j k / n) over j, along an axis.

    Args:
        x: real or complex numbers.
        n: the length; x is cropped or padded with zeros to it; None: that of x.
        axis: the axis.
        norm: "backward": no factor; "ortho": divided by sqrt(n); "forward": divided by n.

    Returns:
        complex64 or complex128.

    >>> import tensorken as tk
    >>> tk.fft.fft([1.0, 2.0, 3.0, 4.0]).tolist()
    [(10+0j), (-2+2j), (-2+0j), (-2-2j)]
    """
    return transform("fft", operand("fft", x), n, axis, norm, False)


def ifft(x: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The inverse of `fft`: the sums of x[k] * exp(2 pi i j k / n) over k, divided by n, along an axis.

    Args:
        x, n, axis: as in `fft`.
        norm: "backward": divided by n; "ortho": divided by sqrt(n); "forward": no factor.

    >>> import tensorken as tk
    >>> tk.fft.ifft([10.0, -2.0 + 2.0j, -2.0, -2.0 - 2.0j]).tolist()
    [(1+0j), (2+0j), (3+0j), (4+0j)]
    """
    return transform("ifft", operand("ifft", x), n, axis, norm, True)


def fftn(
    x: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = "backward",
) -> Tensor:
    """The discrete Fourier transform along several axes.

    Args:
        x: real or complex numbers.
        s: the length along each axis; -1 or None: that of x.
        axes: the axes; without them the last ones, as many as `s` has lengths, or else all.
        norm: as in `fft`, for the product of the lengths.

    >>> import tensorken as tk
    >>> tk.fft.fftn([[1.0, 2.0], [3.0, 4.0]]).tolist()
    [[(10+0j), (-2+0j)], [(-4+0j), 0j]]
    """
    return several("fftn", x, s, axes, norm, False)


def ifftn(
    x: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = "backward",
) -> Tensor:
    """The inverse of `fftn`; arguments as there, and `norm` as in `ifft`.

    >>> import tensorken as tk
    >>> tk.fft.ifftn([[10.0, -2.0], [-4.0, 0.0]]).tolist()
    [[(1+0j), (2+0j)], [(3+0j), (4+0j)]]
    """
    return several("ifftn", x, s, axes, norm, True)


def fft2(
    x: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = "backward",
) -> Tensor:
    """`fftn` along two axes, by default the last.

    >>> import tensorken as tk
    >>> tk.fft.fft2([[1.0, 2.0], [3.0, 4.0]]).tolist()
    [[(10+0j), (-2+0j)], [(-4+0j), 0j]]
    """
    return several("fft2", x, s, axes, norm, False)


def ifft2(
    x: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = "backward",
) -> Tensor:
    """`ifftn` along two axes, by default the last.

    >>> import tensorken as tk
    >>> tk.fft.ifft2([[10.0, -2.0], [-4.0, 0.0]]).tolist()
    [[(1+0j), (2+0j)], [(3+0j), (4+0j)]]
    """
    return several("ifft2", x, s, axes, norm, True)


def transform(name: str, x: Tensor, n: int | None, axis: int, norm: str | None, inverse: bool) -> Tensor:
    """The transform of real or complex numbers along an axis."""
    y, n = fitted(name, x, n, axis)
    number = factor(name, norm, n, inverse)
    parts = y.real.apply(OPS["fft"], y.imag, inverse)
    real, imag = [from_last(scaled(part, number), axis) for part in parts]
    return ComplexTensor(real, imag)


def several(
    name: str,
    x: Any,
    s: Sequence[int | None] | None,
    axes: Sequence[int] | None,
    norm: str | None,
    inverse: bool,
) -> Tensor:
    """The transforms along several axes, one after another."""
    y = operand(name, x)
    sizes, found = sizes_and_axes(name, y, s, axes)
    factor(name, norm, 1, inverse)
    for n, axis in zip(reversed(sizes), reversed(found), strict=True):
        y = transform(name, y, n, axis, norm, inverse)
    return y if isinstance(y, ComplexTensor) else ComplexTensor(y, y.zeros_like())
