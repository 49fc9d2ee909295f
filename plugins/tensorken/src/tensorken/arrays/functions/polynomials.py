"""Polynomials as vectors of coefficients, the highest power first.

Leading zeros are kept: the number of coefficients depends on shapes alone.

Raises:
    ShapeError: if coefficients are not a vector, or shapes do not fit together.
"""

from __future__ import annotations

from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.broadcasting import atleast_1d
from tensorken.arrays.functions.grids import vander
from tensorken.arrays.functions.operands import floating_of, promoted_tensors
from tensorken.arrays.functions.promotion import finfo
from tensorken.arrays.functions.signals import convolve
from tensorken.arrays.functions.stop_gradient import stop_gradient
from tensorken.complex_numbers.eigenvalues import eigvals
from tensorken.ops.matrices import adjoint, square_of_modulus
from tensorken_core.errors import ArgumentError, ConcretizationError, ShapeError
from tensorken_core.language.dtypes import int32, promote
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.normalization import integer_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "poly",
    "polyadd",
    "polyder",
    "polydiv",
    "polyfit",
    "polyint",
    "polymul",
    "polysub",
    "polyval",
    "roots",
]


def polyval(p: ArrayLike, x: ArrayLike) -> Tensor:
    """The value of the polynomial p[0] * x**n + ... + p[n] at x, elementwise, by Horner's scheme.

    >>> import tensorken as tk
    >>> tk.polyval([3.0, 0.0, 1.0], [0.0, 5.0]).tolist()
    [1.0, 76.0]
    """
    coefficients, points = promoted_tensors("polyval", (p, x))
    _vector("polyval", coefficients)
    value: Tensor = points.zeros_like()
    for i in range(coefficients.size):
        value = value * points + coefficients[i]
    return value


def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    w: ArrayLike | None = None,
    cov: Any = False,
) -> Any:
    """The coefficients of the polynomial of a degree with the least squares of the distances from the points (x, y).

    Args:
        x: the x-coordinates of the points, a vector.
        y: the y-coordinates: a vector, or a matrix with a column for each of several polynomials.
        deg: the degree.
        rcond: singular values of the scaled system below this fraction of the largest one count as 0; by default the
            size of x times the precision of the dtype.
        w: weights of the distances, before they are squared.
        cov: whether to return a pair with the covariance matrix of the coefficients, too; it is scaled by the squared
            distances, or with "unscaled" it is not.

    Returns:
        A vector of deg + 1 coefficients; with several polynomials, a column for each.

    Raises:
        ArgumentError: if the degree is negative; or the covariance is wanted and there are too few points to scale it.
        ShapeError: if the shapes do not fit together, or there are no points.
        DTypeError: if the dtype is float16.

    >>> import tensorken as tk
    >>> print(f"{tk.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1):.3f}")
    [2.000 1.000]
    """
    points, values = [floating_of(t) for t in promoted_tensors("polyfit", (x, y))]
    if as_tensor(x).dtype.kind != "complex":
        points = points.real
    order = integer_of("polyfit", "deg", deg) + 1
    if order < 1:
        raise ArgumentError(f"polyfit: deg must not be negative, got {short_repr(deg)}")
    if points.ndim != 1 or points.size == 0 or values.ndim not in (1, 2) or values.shape[0] != points.size:
        raise ShapeError(
            f"polyfit: need a vector x with elements and as many rows of y, got {points.shape} and {values.shape}"
        )
    n = points.size
    matrix: Any = vander(points, order)
    columns: Any = values.reshape((n, -1))
    if w is not None:
        weights = as_operand("polyfit", w, points).astype(points.dtype)
        if weights.shape != points.shape:
            raise ShapeError(f"polyfit: w must have the shape {points.shape} of x, got {weights.shape}")
        matrix, columns = matrix * weights.reshape((n, 1)), columns * weights.reshape((n, 1))
    scale = square_of_modulus(matrix).sum(0).sqrt()
    cutoff = n * finfo(points.dtype).eps if rcond is None else rcond
    inverse = (matrix / scale).apply(OPS["pinv"], matrix.constant([cutoff], matrix.dtype, (1,)).reshape(()))
    coefficients = (inverse @ columns) / scale.reshape((order, 1))
    result: Tensor = coefficients.reshape((order, *values.shape[1:]))
    if not cov:
        return result
    base = (inverse @ adjoint(inverse)) / scale / scale.reshape((order, 1))
    if cov == "unscaled":
        factors = columns[:1].real.ones_like()
    elif n <= order:
        raise ArgumentError(
            f"polyfit: the covariance needs more than {order} points, got {n}; cov='unscaled' does not"
        )
    else:
        factors = square_of_modulus(matrix @ coefficients - columns).sum(0, True) / (n - order)
    covariance: Tensor = base.reshape((order, order, 1)) * factors
    return result, covariance.reshape((order, order)) if values.ndim == 1 else covariance


def polyadd(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The sum of two polynomials.

    >>> import tensorken as tk
    >>> tk.polyadd([1, 2], [9, 5, 4]).tolist()
    [9, 6, 6]
    """
    x, y = _equally_long("polyadd", a, b)
    result: Tensor = x + y
    return result


def polysub(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The difference of two polynomials.

    >>> import tensorken as tk
    >>> tk.polysub([1, 2], [9, 5, 4]).tolist()
    [-9, -4, -2]
    """
    x, y = _equally_long("polysub", a, b)
    result: Tensor = x - y
    return result


def polymul(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The product of two polynomials.

    >>> import tensorken as tk
    >>> tk.polymul([1, 2], [1, -2]).tolist()
    [1, 0, -4]
    """
    x, y = _vectors("polymul", a, b)
    return convolve(x, y)


def polydiv(u: ArrayLike, v: ArrayLike) -> tuple[Tensor, Tensor]:
    """The quotient and the remainder of two polynomials; the remainder has one coefficient less than v, at least one.

    >>> import tensorken as tk
    >>> quotient, rest = tk.polydiv([3.0, 5.0, 2.0], [2.0, 1.0])
    >>> quotient.tolist(), rest.tolist()
    ([1.5, 1.75], [0.25])
    """
    x, y = [floating_of(t) for t in _vectors("polydiv", u, v)]
    if y.size == 0:
        raise ShapeError("polydiv: the divisor has no coefficients")
    count = max(x.size - y.size + 1, 0)
    quotient = []
    for _ in range(count):
        factor = x[:1] / y[:1]
        quotient.append(factor)
        x = (x[: y.size] - factor * y)[1:].concatenate(x[y.size :], axis=0)
    if not quotient:
        return x[:1].zeros_like(), x
    rest = x if x.size else quotient[0].zeros_like()
    return quotient[0].concatenate(*quotient[1:], axis=0), rest


def polyder(p: ArrayLike, m: int = 1) -> Tensor:
    """The m-th derivative of a polynomial; it has m coefficients less.

    Raises:
        ArgumentError: if m is negative.

    >>> import tensorken as tk
    >>> tk.polyder([1.0, 1.0, 1.0, 1.0]).tolist()
    [3.0, 2.0, 1.0]
    """
    (x,), count = _vectors("polyder", p), _times("polyder", m)
    x = x if x.dtype.inexact else x.astype(promote(x.dtype, int32))
    for _ in range(count):
        n = max(x.size - 1, 0)
        x = x.crop(((0, n),)) * x.constant(range(n, 0, -1), x.dtype, (n,))
    return x


def polyint(p: ArrayLike, m: int = 1, k: Any = None) -> Tensor:
    """The m-th integral of a polynomial; it has m coefficients more.

    Args:
        k: the constants of integration, in the order of the integrations: 0 by default, or one number for all.

    Raises:
        ArgumentError: if m is negative, or there are not as many constants.

    >>> import tensorken as tk
    >>> tk.polyint([6.0, 2.0], k=5.0).tolist()
    [3.0, 2.0, 5.0]
    """
    (x,), count = _vectors("polyint", p), _times("polyint", m)
    x = floating_of(x)
    constants = as_operand("polyint", 0.0 if k is None else k, x).astype(x.dtype).ravel()
    if constants.size == 1:
        constants = constants.broadcast_to((count,))
    if constants.size < count:
        raise ArgumentError(f"polyint: need {count} constants or one, got {constants.size}")
    for i in range(count):
        n = x.size
        x = (x / x.constant(range(n, 0, -1), x.dtype, (n,))).concatenate(constants[i : i + 1], axis=0)
    return x


def poly(zeros: ArrayLike) -> Tensor:
    """The coefficients of the polynomial with these zeros, whose first coefficient is 1.

    Args:
        zeros: a vector; or a square matrix, for its characteristic polynomial, whose zeros are its eigenvalues.

    >>> import tensorken as tk
    >>> tk.poly([1.0, 2.0]).tolist()
    [1.0, -3.0, 2.0]
    >>> print(tk.poly(tk.tensor([[0.0, 2.0], [-2.0, 0.0]])))
    [1. 0. 4.]
    """
    (x,) = promoted_tensors("poly", (zeros,))
    if x.ndim == 2 and x.shape[0] == x.shape[1]:
        y = floating_of(x)
        found = poly(eigvals(y))
        return found if y.dtype.kind == "complex" else found.real
    if x.ndim > 1:
        raise ShapeError(f"poly: need a vector of zeros, or a square matrix, got shape {x.shape}")
    x = floating_of(atleast_1d(x))
    coefficients: Tensor = x.constant([1.0], x.dtype, (1,))
    for i in range(x.size):
        shifted = coefficients * x[i]
        coefficients = coefficients.pad(((0, 1),)) - shifted.pad(((1, 0),))
    return coefficients


def roots(p: Any, *, strip_zeros: bool = True) -> Tensor:
    """The zeros of the polynomial p[0] * x**n + ... + p[n], in no order, as complex numbers.

    They are the eigenvalues of the companion matrix: R. A. Horn, C. R. Johnson, "Matrix Analysis", 1985, section 3.3.

    Args:
        p: a vector of coefficients.
        strip_zeros: whether leading coefficients of 0 are removed, and those at the end become zeros at 0, as in numpy.
            Their number must be known, so compiled functions need False, where the first coefficient must not be 0.

    Raises:
        ShapeError: if p is not a vector.
        ConcretizationError: if the values are not known and `strip_zeros` is True.

    >>> import tensorken as tk
    >>> print(tk.roots([1.0, -3.0, 2.0]))
    [2.+0.j 1.+0.j]
    """
    (x,) = _vectors("roots", p)
    x = floating_of(x)
    at_zero = 0
    if strip_zeros:
        nonzero = [i for i, value in enumerate(_values(x)) if value]
        at_zero = x.size - 1 - nonzero[-1] if nonzero else 0
        x = x[nonzero[0] : nonzero[-1] + 1] if nonzero else x[:0]
    return eigvals(_companion(x)).pad(((0, at_zero),))


def _companion(p: Tensor) -> Tensor:
    """The companion matrix of a polynomial whose first coefficient is not 0."""
    n = max(p.size - 1, 0)
    if n == 0:
        return p.reshape((1, p.size))[:0, :0]
    first = (-p[1:] / p[0]).reshape((1, n))
    below = p.constant([i == j for i in range(n - 1) for j in range(n)], p.dtype, (n - 1, n))
    return first.concatenate(below, axis=0)


def _values(x: Tensor) -> list[Any]:
    """The elements; an error if they are not known."""
    try:
        return stop_gradient(x).tolist()  # type: ignore[no-any-return]
    except ConcretizationError:
        raise ConcretizationError(
            "roots: the number of coefficients of 0 is not known here; pass strip_zeros=False"
        ) from None


def _vector(name: str, x: Tensor) -> Tensor:
    if x.ndim != 1:
        raise ShapeError(f"{name}: coefficients must be a vector, got shape {x.shape}")
    return x


def _vectors(name: str, *polynomials: Any) -> list[Tensor]:
    return [_vector(name, atleast_1d(x)) for x in promoted_tensors(name, polynomials)]


def _equally_long(name: str, a: Any, b: Any) -> list[Tensor]:
    """The coefficients of both, with zeros before the shorter ones."""
    both = _vectors(name, a, b)
    longest = max([x.size for x in both])
    return [x.pad(((longest - x.size, 0),)) for x in both]


def _times(name: str, m: Any) -> int:
    count = integer_of(name, "m", m)
    if count < 0:
        raise ArgumentError(f"{name}: m must not be negative, got {short_repr(m)}")
    return count
