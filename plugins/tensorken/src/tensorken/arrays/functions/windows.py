"""Windows for spectral analysis: vectors that fall to small values at both ends.

Raises:
    ShapeError: if the size is negative.
"""

from __future__ import annotations

import math
from typing import Any

from tensorken.arrays.creation import shape_of, tensor
from tensorken_core.language.dtypes import float32
from tensorken_core.tensor.tensor import Tensor

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


def bartlett(m: int, dtype: Any = float32) -> Tensor:
    """The triangular window of m points, 0 at both ends.

    >>> import tensorken as tk
    >>> tk.bartlett(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _window("bartlett", m, dtype, lambda s: 1.0 - abs(s))


def hanning(m: int, dtype: Any = float32) -> Tensor:
    """Hann's window of m points: 0.5 + 0.5 * cos(pi * s) for s from -1 to 1.

    >>> import tensorken as tk
    >>> tk.hanning(3).tolist()
    [0.0, 1.0, 0.0]
    """
    return _window("hanning", m, dtype, lambda s: 0.5 + 0.5 * math.cos(math.pi * s))


def hamming(m: int, dtype: Any = float32) -> Tensor:
    """Hamming's window of m points: 0.54 + 0.46 * cos(pi * s) for s from -1 to 1.

    >>> import tensorken as tk
    >>> print(f"{tk.hamming(3):.2f}")
    [0.08 1.00 0.08]
    """
    return _window("hamming", m, dtype, lambda s: 0.54 + 0.46 * math.cos(math.pi * s))


def blackman(m: int, dtype: Any = float32) -> Tensor:
    """Blackman's window of m points: 0.42 + 0.5 * cos(pi * s) + 0.08 * cos(2 * pi * s) for s from -1 to 1.

    >>> import tensorken as tk
    >>> print(f"{tk.blackman(5)[1:4]:.2f}")
    [0.34 1.00 0.34]
    """
    return _window(
        "blackman", m, dtype, lambda s: 0.42 + 0.5 * math.cos(math.pi * s) + 0.08 * math.cos(2 * math.pi * s)
    )


def kaiser(m: int, beta: float, dtype: Any = float32) -> Tensor:
    """Kaiser's window of m points: i0(beta * sqrt(1 - s**2)) / i0(beta) for s from -1 to 1.

    >>> import tensorken as tk
    >>> print(f"{tk.kaiser(3, 5.0):.4f}")
    [0.0367 1.0000 0.0367]
    """
    scale = _i0(float(beta))
    return _window("kaiser", m, dtype, lambda s: _i0(beta * math.sqrt(max(1.0 - s * s, 0.0))) / scale)


def _window(name: str, m: int, dtype: Any, f: Any) -> Tensor:
    """A function of m equally spaced numbers from -1 to 1, computed in Python: a constant."""
    (count,) = shape_of(name, m)
    if count == 1:
        return tensor([1.0], dtype)
    return tensor([f((2 * i - (count - 1)) / (count - 1)) for i in range(count)], dtype)


def _i0(x: float) -> float:
    """The modified Bessel function of order 0 by its series, in which all terms are positive."""
    term = total = 1.0
    k = 1
    while term > total * 1e-17:
        term *= (x / (2 * k)) ** 2
        total += term
        k += 1
    return total
