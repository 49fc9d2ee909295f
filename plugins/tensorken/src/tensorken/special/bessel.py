"""The modified Bessel functions of the first kind of order 0 and 1, also multiplied by exp(-abs(x)).

Raises:
    DTypeError: if the function is not defined for the dtype.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from tensorken.arrays.functions.own_derivatives import with_derivative
from tensorken.control_flow import fori_loop
from tensorken.special.coefficients import I0E_LARGE, I0E_SMALL, I1E_LARGE, I1E_SMALL
from tensorken.special.evaluation import chebyshev, horner
from tensorken_core.language.dtypes import float32, float64
from tensorken_core.tensor.tensor import Tensor

__all__ = ["i0", "i0e", "i1", "i1e"]


def _zeroth(size: Any) -> Any:
    """exp(-x) times the function of order 0, for x >= 0."""
    near, inner, outer = _halves(size)
    return near.where(chebyshev(inner * 0.25 - 1.0, I0E_SMALL), _beyond(outer, I0E_LARGE))


def _first(size: Any) -> Any:
    """exp(-x) times the function of order 1, for x >= 0."""
    near, inner, outer = _halves(size)
    return near.where(chebyshev(inner * 0.25 - 1.0, I1E_SMALL) * inner, _beyond(outer, I1E_LARGE))


def _first_quotient(size: Any) -> Any:
    """exp(-x) times the function of order 1, divided by x, for x >= 0; 1/2 at 0."""
    near, inner, outer = _halves(size)
    return near.where(chebyshev(inner * 0.25 - 1.0, I1E_SMALL), _beyond(outer, I1E_LARGE) / outer)


def _halves(size: Any) -> tuple[Any, Any, Any]:
    """Whether x is at most 8, and x for both cases."""
    near = size <= 8.0
    return near, near.where(size, 8.0), near.where(8.0, size)


def _beyond(outer: Any, coefficients: Sequence[float]) -> Any:
    return chebyshev(16.0 / outer - 1.0, coefficients) / outer.sqrt()


def _grown(value: Any, size: Any) -> Any:
    """value * exp(size), which overflows only if the product does; neither is negative."""
    infinite = size.eq(math.inf)
    half = (infinite.where(0.0, size) * 0.5).exp()
    return infinite.where(math.inf, value * half * half)


def _signed(value: Any, x: Any) -> Any:
    return (x < 0.0).where(-value, value)


@functools.cache
def _derivative_of_i0e(n: int) -> Callable[[Any], Any]:
    """The n-th derivative of i0e, with its derivative."""

    @with_derivative(lambda x: _derivative_of_i0e(n + 1)(x))
    def derivative_of_i0e(x: Any) -> Any:
        value = _mean(n, x.abs())
        return value * -x.sign() if n % 2 else value

    return derivative_of_i0e


def _mean(n: int, size: Any) -> Any:
    """The mean K(n) of s**n * exp(-s * x) where s is 1 - cos(t), for t from 0 to pi: abs of the n-th derivative of i0e.

    K(n + 1) / K(n) = (2 * n + 1) / (n + 1 + x * q), where q is 2 minus the next quotient: a continued fraction of
    positive terms.  The first derivative is also the difference of i1e and i0e, but that cancels for large x.
    """
    far = size > _FAR[size.dtype]  # there the quotient is that of the first term
    inner = far.where(1.0, size)
    steps = 45 if size.dtype is float32 else 90

    def body(i: Any, rest: Any) -> Any:
        k = float(n + steps - 1) - i.astype(size.dtype)
        return (1.0 + 2.0 * inner * rest) / (k + 1.0 + inner * rest)

    rest = fori_loop(0, steps, body, inner.ones_like())
    result: Any = _zeroth(size)
    for k in range(n - 1, -1, -1):  # rest is that of order k + 1
        divisor = k + 1.0 + inner * rest
        rest = (1.0 + 2.0 * inner * rest) / divisor
        result = result * far.where((k + 0.5) / far.where(size, 1.0), (2.0 * k + 1.0) / divisor)
    return result


@with_derivative(lambda x: x.sign() * -_derivative_of_i0e(2)(x))
def _difference(x: Any) -> Any:
    """exp(-abs(x)) times the difference of the functions of order 0 and 1 of abs(x)."""
    return _mean(1, x.abs())


_FAR = {float32: 1e8, float64: 1e17}
"""From this size on, only the first term of an expansion in 1 / x counts."""


@with_derivative(lambda x: _derivative_of_i0e(1)(x))
def i0e(x: Any) -> Tensor:
    """exp(-abs(x)) * i0(x), elementwise; its derivative at 0 is 0.

    >>> import tensorken as tk
    >>> print(f"{tk.special.i0e([0.0, 1.0, 1e4]):.5f}")
    [1.00000 0.46576 0.00399]
    """
    return _zeroth(x.abs())  # type: ignore[no-any-return]


@with_derivative(lambda x: i1(x))
def i0(x: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 0, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.special.i0([0.0, 1.0, 5.0]):.4f}")
    [ 1.0000  1.2661 27.2399]
    """
    size = x.abs()
    return _grown(_zeroth(size), size)  # type: ignore[no-any-return]


_NEAR = 2.0
"""Up to this size the quotient of the function of order 2 and x**2 is computed by its power series."""

_I2 = [1.0 / (4.0 ** (k + 1) * math.factorial(k) * math.factorial(k + 2)) for k in range(14)]
"""The function of order 2 divided by x**2, in powers of x**2."""


def _second_quotient(x: Any) -> Any:
    """exp(-abs(x)) times the function of order 2, divided by x**2; the recurrence cancels near 0."""
    size = x.abs()
    near = size < _NEAR
    outer = near.where(_NEAR, size)
    low = horner(near.where(size, 0.0).square(), _I2) * (-near.where(size, 0.0)).exp()
    high = (_zeroth(outer) - _first_quotient(outer) * 2.0) / outer / outer
    return near.where(low, high)


def _slope_of_scaled_quotient(x: Any) -> Any:
    """The derivative of i1e(x) / x, 0 at 0, where it changes its sign."""
    size = x.abs()
    near = size < _NEAR
    value, inner = _scaled_quotient(x), near.where(size, 0.0)
    low = inner * _second_quotient(inner) - value
    high = (_difference(size) - value * 2.0) / near.where(1.0, size)
    return x.sign() * near.where(low, high)


@with_derivative(_slope_of_scaled_quotient)
def _scaled_quotient(x: Any) -> Any:
    """i1e(x) / x, which is 1/2 at 0."""
    return _first_quotient(x.abs())


@with_derivative(lambda x: _difference(x) - _scaled_quotient(x))
def i1e(x: Any) -> Tensor:
    """exp(-abs(x)) * i1(x), elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.special.i1e([0.0, 1.0, 1e4]):.5f}")
    [0.00000 0.20791 0.00399]
    """
    return _signed(_first(x.abs()), x)  # type: ignore[no-any-return]


def _curvature_of_i1(x: Any) -> Any:
    """i1(x) - i2(x) / x."""
    size = x.abs()
    infinite = size.eq(math.inf)
    inner = infinite.where(1.0, size)
    return _signed(_grown(i1e(inner) - inner * _second_quotient(inner), size), x)


@with_derivative(_curvature_of_i1)
def _slope_of_i1(x: Any) -> Any:
    """i0(x) - i1(x) / x."""
    size = x.abs()
    return _grown(_zeroth(size) - _first_quotient(size), size)


@with_derivative(lambda x: _slope_of_i1(x))
def i1(x: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 1, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.special.i1([0.0, 1.0, 5.0]):.4f}")
    [ 0.0000  0.5652 24.3356]
    """
    size = x.abs()
    return _signed(_grown(_first(size), size), x)  # type: ignore[no-any-return]
