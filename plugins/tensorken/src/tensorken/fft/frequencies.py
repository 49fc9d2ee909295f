"""The frequencies of the elements of a transform, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.creation import tensor
from tensorken.arrays.functions.arguments import ordered_axes_of
from tensorken.arrays.functions.reordering import roll
from tensorken.fft.operands import size_of
from tensorken_core.errors import ArgumentError, DTypeError
from tensorken_core.language.dtypes import as_dtype, float32
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def fftfreq(
    n: int, d: float = 1.0, *, dtype: Any = None, backend: Any = None, device: str | None = None
) -> Tensor:
    """The frequencies of the elements of `fft`: 0, 1, ..., then the negative ones from the least to -1, over n * d.

    Args:
        n: the length of the transform.
        d: the distance of samples.
        dtype: float32 by default.
        backend, device: as in `tk.tensor`.

    >>> import tensorken as tk
    >>> tk.fft.fftfreq(4, 0.5).tolist(), tk.fft.fftfreq(5, 0.2).tolist()
    ([0.0, 0.5, -1.0, -0.5], [0.0, 1.0, 2.0, -2.0, -1.0])
    """
    n = size_of("fftfreq", n)
    return _frequencies("fftfreq", [*range((n + 1) // 2), *range(-(n // 2), 0)], n, d, dtype, backend, device)


def rfftfreq(
    n: int, d: float = 1.0, *, dtype: Any = None, backend: Any = None, device: str | None = None
) -> Tensor:
    """The frequencies of the elements of `rfft`: 0, 1, ..., n // 2, over n * d.

    Args:
        n: the length of the transform, which has n // 2 + 1 elements.
        d, dtype, backend, device: as in `fftfreq`.

    >>> import tensorken as tk
    >>> tk.fft.rfftfreq(4, 0.5).tolist(), tk.fft.rfftfreq(5, 0.2).tolist()
    ([0.0, 0.5, 1.0], [0.0, 1.0, 2.0])
    """
    n = size_of("rfftfreq", n)
    return _frequencies("rfftfreq", range(n // 2 + 1), n, d, dtype, backend, device)


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Tensor:
    """x with the element of frequency 0 in the middle of the axes, by default of all.

    >>> import tensorken as tk
    >>> tk.fft.fftshift(tk.fft.fftfreq(5, 0.2)).tolist()
    [-2.0, -1.0, 0.0, 1.0, 2.0]
    """
    return _shifted("fftshift", x, axes, lambda n: n // 2)


def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`, from which it differs for odd lengths.

    >>> import tensorken as tk
    >>> tk.fft.ifftshift([-2.0, -1.0, 0.0, 1.0, 2.0]).tolist()
    [0.0, 1.0, 2.0, -2.0, -1.0]
    """
    return _shifted("ifftshift", x, axes, lambda n: -(n // 2))


def _frequencies(
    name: str, numbers: Sequence[int], n: int, d: Any, dtype: Any, backend: Any, device: str | None
) -> Tensor:
    found = float32 if dtype is None else as_dtype(dtype)
    if found.kind != "float":
        raise DTypeError(f"{name}: frequencies are floats, got dtype {found}; use float32 or float64")
    if not isinstance(d, int | float) or d == 0:
        raise ArgumentError(f"{name}: d must be a number other than 0, got {short_repr(d)}")
    step = 1.0 / (n * d)
    return tensor([k * step for k in numbers], found, backend=backend, device=device)


def _shifted(name: str, x: Any, axes: int | Sequence[int] | None, shift: Any) -> Tensor:
    y = as_tensor(x)
    found = range(y.ndim) if axes is None else ordered_axes_of(name, y.shape, axes)
    for axis in found:
        y = roll(y, shift(y.shape[axis]), axis)
    return y
