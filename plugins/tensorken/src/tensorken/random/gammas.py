"""The gamma distribution, and the distributions that are made of it; their derivatives are those of quantiles.

A sample is a quantile of its distribution, so its derivative with respect to a parameter is that of the distribution
function with the sign reversed, divided by the density: M. Figurnov, S. Mohamed and A. Mnih, "Implicit
reparameterization gradients" (2018).
"""

from __future__ import annotations

import math
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.reductions import softmax
from tensorken.random.bits import broadcast_argument, checked, dtype_of, shape_of
from tensorken.random.floats import exponentials, normals
from tensorken.random.keys import split
from tensorken.random.parameters import floating_parameters, in_one_shape
from tensorken.random.rejection import first_accepted
from tensorken.random.transformations import rademacher
from tensorken.special.gamma_quantiles import log_quantile_derivative
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.language.dtypes import float32, int32
from tensorken_core.tensor.normalization import integer_of
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms.custom_rules import custom_jvp


def gamma(key: Tensor, a: ArrayLike, shape: Any = None, dtype: Any = float32) -> Tensor:
    """Numbers from the gamma distribution with density x**(a - 1) * exp(-x) / gamma(a).

    The method is that of G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables" (2000).  The
    derivative with respect to a is that of the quantile: M. Figurnov, S. Mohamed and A. Mnih, "Implicit
    reparameterization gradients" (2018).

    Args:
        key: shape (2,), int32.
        a: a positive number or tensor; the result is differentiable with respect to it, to any order.  Where it is 0
            the result is 0, where it is negative NaN.
        shape: of the result; by default the shape of a.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or a does not broadcast to the shape.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.gamma(tk.random.key(0), 2.5, (3,)):.4f}")
    [4.2368 2.4586 4.1740]
    >>> print(f"{tk.grad(lambda a: tk.random.gamma(tk.random.key(0), a, (1000,)).mean())(2.5):.4f}")
    1.0120
    """
    key, result_dtype, (alpha,) = floating_parameters("gamma", key, shape, dtype, a=a)
    result: Tensor = _samples(key, alpha)[0].astype(result_dtype)
    return result


def loggamma(key: Tensor, a: ArrayLike, shape: Any = None, dtype: Any = float32) -> Tensor:
    """The logarithm of `gamma` with the same arguments, also where that is too small for a float.

    Args:
        key: shape (2,), int32.
        a: a positive number or tensor; the result is differentiable with respect to it.
        shape: of the result; by default the shape of a.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or a does not broadcast to the shape.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.loggamma(tk.random.key(0), 0.001, (3,)):.1f}")
    [-1691.2  -281.1  -117.8]
    """
    key, result_dtype, (alpha,) = floating_parameters("loggamma", key, shape, dtype, a=a)
    result: Tensor = _samples(key, alpha)[1].astype(result_dtype)
    return result


def beta(key: Tensor, a: ArrayLike, b: ArrayLike, shape: Any = None, dtype: Any = float32) -> Tensor:
    """Numbers from the beta distribution: x / (x + y) with x and y from `gamma` with a and b.

    Args:
        key: shape (2,), int32.
        a, b: positive numbers or tensors; the result is differentiable with respect to them, as `gamma` is.
        shape: of the result; by default the broadcast shape of the parameters.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or the parameters do not broadcast to the shape.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.beta(tk.random.key(0), 2.0, 3.0, (3,)):.4f}")
    [0.4668 0.6803 0.6320]
    """
    key, result_dtype, (alpha, other) = floating_parameters("beta", key, shape, dtype, a=a, b=b)
    for_x, for_y = split(key)
    x, y = _samples(for_x, alpha)[1], _samples(for_y, other)[1]
    result: Tensor = (x - y).sigmoid().astype(result_dtype)
    return result


def dirichlet(key: Tensor, alpha: ArrayLike, shape: Any = None, dtype: Any = float32) -> Tensor:
    """Vectors from the Dirichlet distribution: numbers from `gamma` divided by their sum.

    Args:
        key: shape (2,), int32.
        alpha: a tensor of positive numbers of shape (..., k); the result is differentiable with respect to it.
        shape: of the result without its last axis, to which the first axes of alpha broadcast; by default they
            themselves.
        dtype: a floating-point dtype.

    Returns:
        A tensor of shape `(*shape, k)`.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, alpha has no axis, or does not broadcast.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> x = tk.random.dirichlet(tk.random.key(0), [1.0, 2.0, 3.0], (2,))
    >>> print(f"{x:.4f}")
    [[0.2315 0.2185 0.5500]
     [0.2652 0.2077 0.5270]]
    """
    name = "dirichlet"
    key, result_dtype = checked(name, key), dtype_of(name, dtype, "float", key)
    (concentration,) = in_one_shape(name, key, None, result_dtype.wide, alpha=alpha)
    if not concentration.shape:
        raise ShapeError(f"{name}: alpha must have an axis, got shape (); give one number for each component")
    if shape is not None:
        sizes = (*shape_of(name, shape), concentration.shape[-1])
        concentration = broadcast_argument(name, "alpha", concentration, sizes)
    logs = _samples(key, concentration)[1]
    result: Tensor = softmax(logs).astype(result_dtype)
    return result


def chisquare(key: Tensor, df: ArrayLike, shape: Any = None, dtype: Any = float32) -> Tensor:
    """Numbers from the chi-square distribution: twice a number from `gamma` with df / 2.

    Args:
        key: shape (2,), int32.
        df: degrees of freedom, a positive number or tensor; the result is differentiable with respect to it.
        shape: of the result; by default the shape of df.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or df does not broadcast to the shape.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.chisquare(tk.random.key(0), 4.0, (3,)):.4f}")
    [7.0828 3.8485 6.9665]
    """
    key, result_dtype, (freedom,) = floating_parameters("chisquare", key, shape, dtype, df=df)
    result: Tensor = (_samples(key, freedom * 0.5)[0] * 2.0).astype(result_dtype)
    return result


def t(key: Tensor, df: ArrayLike, shape: Any = None, dtype: Any = float32) -> Tensor:
    """Numbers from Student's t distribution: a normal number divided by sqrt(x / df), x from `chisquare`.

    Args:
        key: shape (2,), int32.
        df: degrees of freedom, a positive number or tensor; the result is differentiable with respect to it.
        shape: of the result; by default the shape of df.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or df does not broadcast to the shape.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.t(tk.random.key(0), 4.0, (3,)):.4f}")
    [-0.6621 -3.6265  1.4012]
    """
    key, result_dtype, (freedom,) = floating_parameters("t", key, shape, dtype, df=df)
    for_normal, for_gamma = split(key)
    half = freedom * 0.5
    scale = ((half.log() - _samples(for_gamma, half)[1]) * 0.5).exp()
    result: Tensor = (normals(for_normal, half.shape, half.dtype) * scale).astype(result_dtype)
    return result


def f(key: Tensor, dfnum: ArrayLike, dfden: ArrayLike, shape: Any = None, dtype: Any = float32) -> Tensor:
    """Numbers from Fisher's F distribution: (x / dfnum) / (y / dfden), x and y from `chisquare`.

    Args:
        key: shape (2,), int32.
        dfnum, dfden: degrees of freedom, positive numbers or tensors; the result is differentiable with respect to
            them.
        shape: of the result; by default the broadcast shape of the parameters.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or the parameters do not broadcast to the shape.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.f(tk.random.key(0), 4.0, 8.0, (3,)):.4f}")
    [1.2301 2.2554 2.0857]
    """
    key, result_dtype, (above, below) = floating_parameters("f", key, shape, dtype, dfnum=dfnum, dfden=dfden)
    for_above, for_below = split(key)
    x, y = _samples(for_above, above * 0.5)[1], _samples(for_below, below * 0.5)[1]
    result: Tensor = ((x - y).exp() * (below / above)).astype(result_dtype)
    return result


def generalized_normal(key: Tensor, p: ArrayLike, shape: Any = None, dtype: Any = float32) -> Tensor:
    """Numbers with a density proportional to exp(-abs(x)**p): x**(1 / p) with a sign, x from `gamma` with 1 / p.

    Args:
        key: shape (2,), int32.
        p: a positive number or tensor; the result is differentiable with respect to it.
        shape: of the result; by default the shape of p.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or p does not broadcast to the shape.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.generalized_normal(tk.random.key(0), 4.0, (3,)):.4f}")
    [-0.5993  0.4082  0.9113]
    """
    key, result_dtype, (power,) = floating_parameters("generalized_normal", key, shape, dtype, p=p)
    for_size, for_sign = split(key)
    share = 1.0 / power
    sign = rademacher(for_sign, power.shape, int32).astype(power.dtype)
    result: Tensor = ((_samples(for_size, share)[1] * share).exp() * sign).astype(result_dtype)
    return result


def ball(key: Tensor, d: int, p: ArrayLike = 2.0, shape: Any = (), dtype: Any = float32) -> Tensor:
    """Vectors distributed uniformly in the unit ball of the p-norm.

    The method is that of F. Barthe, O. Guedon, S. Mendelson and A. Naor, "A probabilistic approach to the geometry of
    the l_p^n-ball" (2005).

    Args:
        key: shape (2,), int32.
        d: the number of components.
        p: a positive number, or a tensor of shape ().
        shape: of the result without its last axis.
        dtype: a floating-point dtype.

    Returns:
        A tensor of shape `(*shape, d)`.

    Raises:
        ArgumentError, ShapeError: if the key, d or the shape is invalid.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> x = tk.random.ball(tk.random.key(0), 3, shape=(1000,))
    >>> (tk.linalg.norm(x, axis=-1) <= 1.0).all().item()
    True
    """
    name = "ball"
    key, result_dtype, (power,) = floating_parameters(name, key, (), dtype, p=p)
    count = integer_of(name, "d", d)
    if count < 1:
        raise ArgumentError(f"{name}: d must be positive, got {count}; give the number of components")
    sizes = (*shape_of(name, shape), count)
    for_vector, for_radius = split(key)
    vector = generalized_normal(for_vector, power, sizes, power.dtype)
    sums = (vector.abs() ** power).sum(-1, keepdims=True)
    radius = (sums + exponentials(for_radius, sums.shape, power.dtype)) ** (1.0 / power)
    result: Tensor = (vector / radius).astype(result_dtype)
    return result


# ---- samples and their derivatives -------------------------------------------------------------------------


@custom_jvp
def _samples(key: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers from the gamma distribution and their logarithms, in the shape of a.

    A number for a < 1 is one for a + 1 multiplied by u**(1 / a), u from (0, 1).
    """
    for_loop, for_power = split(key)
    valid = (a >= 0.0) & (a < math.inf)
    small = valid & (a < 1.0)
    base = small.where(a + 1.0, valid.where(a, 1.0))
    d = base - 1.0 / 3.0
    c = 1.0 / (3.0 * d.sqrt())

    def attempt(key: Tensor) -> tuple[Tensor, Tensor]:
        for_normal, for_bound = split(key)
        x = normals(for_normal, a.shape, a.dtype)
        root = 1.0 + c * x
        positive = root > 0.0
        v = positive.where(root * root * root, 1.0)
        bound = x * x * 0.5 + d * (1.0 - v + v.log())
        return v, positive & (-exponentials(for_bound, a.shape, a.dtype) < bound)

    v = first_accepted(for_loop, attempt, valid.where(a.ones_like(), math.nan), valid)
    power = small.where(-exponentials(for_power, a.shape, a.dtype) / small.where(a, 1.0), 0.0)
    infinite = a.eq(math.inf)
    x, y = d * v * power.exp(), d.log() + v.log() + power
    return infinite.where(a, x), infinite.where(a, y)


@_samples.defjvp
def _push_samples(primals: Any, tangents: Any) -> Any:
    key, a = primals
    x, y = _samples(key, a)
    slope: Any = log_quantile_derivative(a, y)
    return (x, y), (x * slope * tangents[1], slope * tangents[1])
