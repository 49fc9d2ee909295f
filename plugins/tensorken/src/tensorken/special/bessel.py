"""The modified Bessel functions of the first kind of order 0 and 1, also multiplied by exp(-abs(x)).

Raises:
    DTypeError: if the function is not defined for the dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorken.arrays.functions.own_derivatives import with_derivative
from tensorken.special.coefficients import I0E_LARGE, I0E_SMALL, I1E_LARGE, I1E_SMALL
from tensorken.special.evaluation import chebyshev
from tensorken_core.tensor.tensor import Tensor

__all__ = ["i0", "i0e", "i1", "i1e"]


def _scaled(size: Any, small: Sequence[float], large: Sequence[float], order: int) -> Any:
    """exp(-x) times the function of an order, for x >= 0."""
    near = size <= 8.0
    inner, outer = near.where(size, 8.0), near.where(8.0, size)
    low = chebyshev(inner * 0.25 - 1.0, small)
    return near.where(low * inner if order else low, chebyshev(16.0 / outer - 1.0, large) / outer.sqrt())


def _grown(value: Any, size: Any) -> Any:
    """value * exp(size), which overflows only if the product does."""
    half = (size * 0.5).exp()
    return value * half * half


@with_derivative(lambda x: i1e(x) - x.sign() * i0e(x))
def i0e(x: Any) -> Tensor:
    """exp(-abs(x)) * i0(x), elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.special.i0e([0.0, 1.0, 1e4]):.5f}")
    [1.00000 0.46576 0.00399]
    """
    return _scaled(x.abs(), I0E_SMALL, I0E_LARGE, 0)  # type: ignore[no-any-return]


@with_derivative(lambda x: i1(x))
def i0(x: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 0, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.special.i0([0.0, 1.0, 5.0]):.4f}")
    [ 1.0000  1.2661 27.2399]
    """
    size = x.abs()
    return _grown(_scaled(size, I0E_SMALL, I0E_LARGE, 0), size)  # type: ignore[no-any-return]


def _over_x(value: Any, x: Any) -> Any:
    """i1(x) / x or i1e(x) / x, which is 1/2 at 0."""
    zero = x.eq(0.0)
    return zero.where(0.5, value / zero.where(1.0, x))


@with_derivative(lambda x: i0e(x) - _over_x(i1e(x), x) - x.sign() * i1e(x))
def i1e(x: Any) -> Tensor:
    """exp(-abs(x)) * i1(x), elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.special.i1e([0.0, 1.0, 1e4]):.5f}")
    [0.00000 0.20791 0.00399]
    """
    value: Any = _scaled(x.abs(), I1E_SMALL, I1E_LARGE, 1)
    return (x < 0.0).where(-value, value)  # type: ignore[no-any-return]


@with_derivative(lambda x: i0(x) - _over_x(i1(x), x))
def i1(x: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 1, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.special.i1([0.0, 1.0, 5.0]):.4f}")
    [ 0.0000  0.5652 24.3356]
    """
    size = x.abs()
    value: Any = _grown(_scaled(size, I1E_SMALL, I1E_LARGE, 1), size)
    return (x < 0.0).where(-value, value)  # type: ignore[no-any-return]
