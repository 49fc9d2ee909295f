"""Transforms of real numbers, which have Hermitian results, and of Hermitian sequences, which have real ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.complex_numbers.arithmetic import conjugate
from tensorken.complex_numbers.tensor import ComplexTensor
from tensorken.fft.operands import factor, fitted, from_last, operand, scaled, size_of, sizes_and_axes
from tensorken.fft.transforms import transform
from tensorken_core.errors import ArgumentError
from tensorken_core.language.op import OPS
from tensorken_core.tensor.normalization import axis_of
from tensorken_core.tensor.tensor import Tensor

__all__ = ["hfft", "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn"]


def rfft(x: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The first n // 2 + 1 elements of `fft` of real numbers; the others are their mirrored conjugates.

    Args:
        x: real numbers.
        n, axis, norm: as in `fft`.

    >>> import tensorken as tk
    >>> tk.fft.rfft([1.0, 2.0, 3.0, 4.0]).tolist()
    [(10+0j), (-2+2j), (-2+0j)]
    """
    return _from_real("rfft", operand("rfft", x, real=True), n, axis, norm, False)


def irfft(x: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The inverse of `rfft`: n real numbers of the first n // 2 + 1 elements of their transform.

    Args:
        x: complex numbers; the imaginary parts of the first, and for even n of the last, are ignored.
        n: the length of the result, which `rfft` does not keep; None: 2 * (m - 1) for m elements.
        axis: the axis.
        norm: as in `ifft`.

    >>> import tensorken as tk
    >>> tk.fft.irfft([10.0, -2.0 + 2.0j, -2.0]).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    return _to_real("irfft", operand("irfft", x), n, axis, norm, True)


def hfft(x: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The `fft` of a Hermitian sequence of n elements, of which the first n // 2 + 1 are given: real numbers.

    Args:
        x, n, axis: as in `irfft`.
        norm: as in `fft`.

    >>> import tensorken as tk
    >>> tk.fft.hfft([1.0, 2.0 + 1.0j, 3.0]).tolist()
    [8.0, 0.0, 0.0, -4.0]
    """
    y = operand("hfft", x)
    return _to_real("hfft", conjugate(y) if isinstance(y, ComplexTensor) else y, n, axis, norm, False)


def ihfft(x: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The inverse of `hfft`: the first n // 2 + 1 elements of `ifft` of real numbers.

    Args:
        x: real numbers.
        n, axis: as in `fft`.
        norm: as in `ifft`.

    >>> import tensorken as tk
    >>> tk.fft.ihfft([8.0, 0.0, 0.0, -4.0]).tolist()
    [(1-0j), (2+1j), (3-0j)]
    """
    y: Any = _from_real("ihfft", operand("ihfft", x, real=True), n, axis, norm, True)
    return conjugate(y)


def rfftn(
    x: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = "backward",
) -> Tensor:
    """`rfft` along the last of several axes, and `fft` along the others.

    Args:
        x: real numbers.
        s, axes, norm: as in `fftn`.

    >>> import tensorken as tk
    >>> tk.fft.rfftn([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).shape
    (2, 2)
    """
    return _several_from_real("rfftn", x, s, axes, norm)


def irfftn(
    x: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = "backward",
) -> Tensor:
    """The inverse of `rfftn`: `ifft` along all axes but the last, and `irfft` along that one.

    Args:
        x: complex numbers.
        s: the lengths of the result; without them the last is 2 * (m - 1) for m elements.
        axes, norm: as in `ifftn`.

    >>> import tensorken as tk
    >>> tk.fft.irfftn(tk.fft.rfftn([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return _several_to_real("irfftn", x, s, axes, norm)


def rfft2(
    x: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = "backward",
) -> Tensor:
    """`rfftn` along two axes, by default the last.

    >>> import tensorken as tk
    >>> tk.fft.rfft2([[1.0, 2.0], [3.0, 4.0]]).tolist()
    [[(10+0j), (-2+0j)], [(-4+0j), 0j]]
    """
    return _several_from_real("rfft2", x, s, axes, norm)


def irfft2(
    x: ArrayLike,
    s: Sequence[int | None] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = "backward",
) -> Tensor:
    """`irfftn` along two axes, by default the last.

    >>> import tensorken as tk
    >>> tk.fft.irfft2([[10.0, -2.0], [-4.0, 0.0]]).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return _several_to_real("irfft2", x, s, axes, norm)


def _from_real(name: str, x: Tensor, n: int | None, axis: int, norm: str | None, inverse: bool) -> Tensor:
    """Half of the transform of real numbers, with the factor of the inverse or of the other transform."""
    y, n = fitted(name, x, n, axis)
    number = factor(name, norm, n, inverse)
    real, imag = [from_last(scaled(part, number), axis) for part in y.apply(OPS["rfft"])]
    return ComplexTensor(real, imag)


def _to_real(name: str, x: Tensor, n: int | None, axis: int, norm: str | None, inverse: bool) -> Tensor:
    """The real numbers of half of a transform, with the factor of the inverse or of the other transform."""
    size = x.shape[axis_of(name, x.shape, axis)]
    n = size_of(name, 2 * (size - 1) if n is None else n)
    y, _ = fitted(name, x, n // 2 + 1, axis)
    result = y.real.apply(OPS["irfft"], y.imag, n)
    return from_last(scaled(result, factor(name, norm, n, inverse)), axis)


def _several_from_real(
    name: str, x: Any, s: Sequence[int | None] | None, axes: Sequence[int] | None, norm: str | None
) -> Tensor:
    y = operand(name, x, real=True)
    sizes, found = sizes_and_axes(name, y, s, axes)
    _check_axes(name, found)
    y = _from_real(name, y, sizes[-1], found[-1], norm, False)
    for n, axis in zip(sizes[-2::-1], found[-2::-1], strict=True):
        y = transform(name, y, n, axis, norm, False)
    return y


def _several_to_real(
    name: str, x: Any, s: Sequence[int | None] | None, axes: Sequence[int] | None, norm: str | None
) -> Tensor:
    y = operand(name, x)
    sizes, found = sizes_and_axes(name, y, s, axes)
    _check_axes(name, found)
    for n, axis in zip(sizes[:-1], found[:-1], strict=True):
        y = transform(name, y, n, axis, norm, True)
    return _to_real(name, y, sizes[-1], found[-1], norm, True)


def _check_axes(name: str, axes: Sequence[int]) -> None:
    if not axes:
        raise ArgumentError(f"{name}: needs at least 1 axis; name one, or give x more")
