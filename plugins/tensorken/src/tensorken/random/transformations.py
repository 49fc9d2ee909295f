"""Random numbers that are functions of a few uniform, exponential or normal numbers."""

from __future__ import annotations

import math
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.random.bits import checked, dtype_of, shape_of, words
from tensorken.random.domains import check_order
from tensorken.random.floats import exponentials, fractions, normals, symmetric
from tensorken.random.keys import split
from tensorken.random.parameters import floating_parameters
from tensorken.special.error_functions import erfcx
from tensorken_core.errors import DTypeError
from tensorken_core.language.dtypes import DType, as_dtype, float32, int32
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms.custom_rules import custom_jvp

# ---- without parameters ------------------------------------------------------------------------------------


def laplace(key: Tensor, shape: Any = (), dtype: Any = float32) -> Tensor:
    """Numbers from the Laplace distribution with density exp(-abs(x)) / 2: a number from `exponential` with a sign.

    Args:
        key: shape (2,), int32.
        shape: of the result.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.laplace(tk.random.key(0), (3,)):.4f}")
    [-0.1780  0.2244 -0.8380]
    """
    key, sizes, result_dtype, inner = _arguments("laplace", key, shape, dtype)
    u = symmetric(key, sizes, inner)
    return (u.sign() * -(-u.abs()).log1p()).astype(result_dtype)


def logistic(key: Tensor, shape: Any = (), dtype: Any = float32) -> Tensor:
    """Numbers from the logistic distribution: 2 * atanh(u), u from (-1, 1).

    The distribution function is `tk.sigmoid`.

    Args:
        key: shape (2,), int32.
        shape: of the result.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.logistic(tk.random.key(0), (3,)):.4f}")
    [-0.3291  0.4075 -1.2874]
    """
    key, sizes, result_dtype, inner = _arguments("logistic", key, shape, dtype)
    u = symmetric(key, sizes, inner)
    result: Tensor = (u.apply(OPS["atanh"]) * 2.0).astype(result_dtype)
    return result


def cauchy(key: Tensor, shape: Any = (), dtype: Any = float32) -> Tensor:
    """Numbers from the Cauchy distribution with density 1 / (pi * (1 + x**2)): tan(pi * u / 2), u from (-1, 1).

    Args:
        key: shape (2,), int32.
        shape: of the result.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.cauchy(tk.random.key(0), (3,)):.4f}")
    [-0.2619  0.3267 -1.2378]
    """
    key, sizes, result_dtype, inner = _arguments("cauchy", key, shape, dtype)
    u = symmetric(key, sizes, inner)
    size = u.abs()
    steep = (
        size > 0.5
    )  # there the tangent is that of the other angle, inverted, which is accurate near the pole
    tangent = (steep.where(1.0 - size, size) * (0.5 * math.pi)).apply(OPS["tan"])
    return (u.sign() * steep.where(1.0 / tangent, tangent)).astype(result_dtype)


def maxwell(key: Tensor, shape: Any = (), dtype: Any = float32) -> Tensor:
    """Numbers from the Maxwell distribution: the length of a vector of three numbers from `normal`.

    Args:
        key: shape (2,), int32.
        shape: of the result.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.maxwell(tk.random.key(0), (3,)):.4f}")
    [1.3218 1.3457 1.3982]
    """
    key, sizes, result_dtype, inner = _arguments("maxwell", key, shape, dtype)
    return _lengths(key, sizes, inner).astype(result_dtype)


def rademacher(key: Tensor, shape: Any = (), dtype: Any = int32) -> Tensor:
    """-1 and 1 with equal probability, from one random bit each; the same on every backend.

    Args:
        key: shape (2,), int32.
        shape: of the result.
        dtype: a signed integer or floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid.
        DTypeError: if the dtype is neither.

    >>> import tensorken as tk
    >>> tk.random.rademacher(tk.random.key(0), (5,)).tolist()
    [1, -1, 1, -1, -1]
    """
    key, sizes = checked("rademacher", key), shape_of("rademacher", shape)
    kind = as_dtype(dtype).kind
    if kind not in ("int", "float") or not as_dtype(dtype).signed:
        raise DTypeError(
            f"rademacher: the dtype must be a signed integer or floating-point dtype, got {as_dtype(dtype)}; "
            f"for bools use tk.random.bernoulli"
        )
    return _signs(key, sizes).astype(dtype_of("rademacher", dtype, kind, key))


# ---- with parameters ---------------------------------------------------------------------------------------


def double_sided_maxwell(
    key: Tensor, loc: ArrayLike, scale: ArrayLike, shape: Any = None, dtype: Any = float32
) -> Tensor:
    """loc + scale * x, where x is from `maxwell` with a random sign.

    Args:
        key: shape (2,), int32.
        loc, scale: numbers or tensors; the result is differentiable with respect to them.
        shape: of the result; by default the broadcast shape of the parameters.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or the parameters do not broadcast to the shape.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.double_sided_maxwell(tk.random.key(0), 5.0, 0.1, (3,)):.4f}")
    [4.8643 5.0901 5.1892]
    """
    key, result_dtype, (center, size) = floating_parameters(
        "double_sided_maxwell", key, shape, dtype, loc=loc, scale=scale
    )
    for_length, for_sign = split(key)
    length = _lengths(for_length, size.shape, size.dtype)
    return (center + size * length * _signs(for_sign, size.shape).astype(size.dtype)).astype(result_dtype)


def lognormal(key: Tensor, sigma: ArrayLike = 1.0, shape: Any = None, dtype: Any = float32) -> Tensor:
    """Numbers whose logarithm is from the normal distribution with mean 0 and standard deviation sigma.

    Args:
        key: shape (2,), int32.
        sigma: a number or tensor; the result is differentiable with respect to it.
        shape: of the result; by default the shape of sigma.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or sigma does not broadcast to the shape.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.lognormal(tk.random.key(0), 0.5, (3,)):.4f}")
    [0.9022 1.1358 0.6754]
    """
    key, result_dtype, (deviation,) = floating_parameters("lognormal", key, shape, dtype, sigma=sigma)
    return (deviation * normals(key, deviation.shape, deviation.dtype)).exp().astype(result_dtype)


def pareto(key: Tensor, b: ArrayLike, shape: Any = None, dtype: Any = float32) -> Tensor:
    """Numbers from the Pareto distribution with density b / x**(b + 1) for x from 1: exp(e / b), e from `exponential`.

    Args:
        key: shape (2,), int32.
        b: a positive number or tensor; the result is differentiable with respect to it.
        shape: of the result; by default the shape of b.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or b does not broadcast to the shape.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.pareto(tk.random.key(0), 3.0, (3,)):.4f}")
    [1.1980 1.3578 1.0846]
    """
    key, result_dtype, (exponent,) = floating_parameters("pareto", key, shape, dtype, b=b)
    return (exponentials(key, exponent.shape, exponent.dtype) / exponent).exp().astype(result_dtype)


def rayleigh(key: Tensor, scale: ArrayLike = 1.0, shape: Any = None, dtype: Any = float32) -> Tensor:
    """Numbers from the Rayleigh distribution: scale * sqrt(2 * e), e from `exponential`.

    Args:
        key: shape (2,), int32.
        scale: a number or tensor; the result is differentiable with respect to it.
        shape: of the result; by default the shape of the scale.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or the scale does not broadcast to the shape.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.rayleigh(tk.random.key(0), 2.0, (3,)):.4f}")
    [2.0824 2.7093 1.3963]
    """
    key, result_dtype, (size,) = floating_parameters("rayleigh", key, shape, dtype, scale=scale)
    return (size * (exponentials(key, size.shape, size.dtype) * 2.0).sqrt()).astype(result_dtype)


def weibull_min(
    key: Tensor, scale: ArrayLike, concentration: ArrayLike, shape: Any = None, dtype: Any = float32
) -> Tensor:
    """Numbers from the Weibull distribution: scale * e**(1 / concentration), e from `exponential`.

    Args:
        key: shape (2,), int32.
        scale, concentration: positive numbers or tensors; the result is differentiable with respect to them.
        shape: of the result; by default the broadcast shape of the parameters.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or the parameters do not broadcast to the shape.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.weibull_min(tk.random.key(0), 2.0, 1.5, (3,)):.4f}")
    [1.3296 1.8885 0.7804]
    """
    key, result_dtype, (size, exponent) = floating_parameters(
        "weibull_min", key, shape, dtype, scale=scale, concentration=concentration
    )
    e = exponentials(key, size.shape, size.dtype)
    return (size * (e.log() / exponent).exp()).astype(result_dtype)


def triangular(
    key: Tensor, left: ArrayLike, mode: Any, right: ArrayLike, shape: Any = None, dtype: Any = float32
) -> Tensor:
    """Numbers from the distribution on [left, right] whose density is linear on both sides of the mode.

    Args:
        key: shape (2,), int32.
        left, mode, right: numbers or tensors in ascending order, with left < right; the result is differentiable with
            respect to them.
        shape: of the result; by default the broadcast shape of the parameters.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or the parameters do not broadcast to the shape.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.triangular(tk.random.key(0), 0.0, 1.0, 4.0, (3,)):.4f}")
    [1.3583 1.8105 0.9302]
    """
    key, result_dtype, (low, peak, high) = floating_parameters(
        "triangular", key, shape, dtype, left=left, mode=mode, right=right
    )
    check_order("triangular", low, peak, "left", "at most mode")
    check_order("triangular", peak, high, "mode", "at most right")
    u = fractions(key, low.shape, low.dtype)
    width, rise, fall = high - low, peak - low, high - peak
    is_rise = u * width < rise
    # Each root is of a positive number where it is selected, and of 1 elsewhere, whose derivative is finite.
    below = low + is_rise.where(u * width * rise, 1.0).sqrt()
    above = high - is_rise.where(1.0, (1.0 - u) * width * fall).sqrt()
    return is_rise.where(below, above).astype(result_dtype)


def wald(key: Tensor, mean: ArrayLike, shape: Any = None, dtype: Any = float32) -> Tensor:
    """Numbers from the inverse Gaussian distribution with this mean and the shape parameter 1.

    The method is that of J. R. Michael, W. R. Schucany and R. W. Haas, "Generating random variates using
    transformations with multiple roots" (1976).  The derivative is that of a quantile, as for `gamma`.

    Args:
        key: shape (2,), int32.
        mean: a positive number or tensor; the result is differentiable with respect to it.
        shape: of the result; by default the shape of the mean.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or the mean does not broadcast to the shape.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.wald(tk.random.key(0), 2.0, (3,)):.4f}")
    [4.1218 0.5256 0.8401]
    """
    key, result_dtype, (center,) = floating_parameters("wald", key, shape, dtype, mean=mean)
    result: Tensor = _wald(key, center).astype(result_dtype)
    return result


@custom_jvp
def _wald(key: Tensor, mean: Tensor) -> Tensor:
    for_root, for_choice = split(key)
    half = mean * normals(for_root, mean.shape, mean.dtype).square() * 0.5
    ratio = 1.0 / (1.0 + half + (half * (half + 2.0)).sqrt())  # the smaller root divided by the mean
    u = fractions(for_choice, mean.shape, mean.dtype)
    return mean * (u * (1.0 + ratio) <= 1.0).where(ratio, 1.0 / ratio)


@_wald.defjvp
def _push_wald(primals: Any, tangents: Any) -> Any:
    """The derivative of a quantile: -d/dmean of the distribution function divided by the density."""
    key, mean = primals
    x = _wald(key, mean)
    ratio: Any = erfcx((x / mean + 1.0) / (x * 2.0).sqrt())
    slope = math.sqrt(2.0 * math.pi) * x * x.sqrt() / (mean * mean) * ratio
    return x, slope * tangents[1]


# ---- shared code -------------------------------------------------------------------------------------------


def _arguments(name: str, key: Any, shape: Any, dtype: Any) -> tuple[Tensor, Shape, DType, DType]:
    """The key, the shape, the dtype of the result and that of the computation."""
    key, sizes, result = checked(name, key), shape_of(name, shape), dtype_of(name, dtype, "float", key)
    return key, sizes, result, result.wide


def _signs(key: Tensor, shape: Shape) -> Tensor:
    """-1 where the random bits as an int32 are negative, else 1."""
    return (words(key, shape, int32) < 0).where(-1, 1).astype(int32)


def _lengths(key: Tensor, shape: Shape, dtype: DType) -> Tensor:
    """The lengths of vectors of three normal numbers."""
    squares = [normals(one, shape, dtype).square() for one in split(key, 3)]
    return (squares[0] + squares[1] + squares[2]).sqrt()
