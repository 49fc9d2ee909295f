"""Random numbers from common distributions, computed from random bits."""

from __future__ import annotations

import math
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.operands import floating_of
from tensorken.random.bits import broadcast_argument, checked, dtype_of, shape_of
from tensorken.random.domains import check_domain, check_order
from tensorken.random.floats import exponentials, fractions, normals, symmetric
from tensorken.random.parameters import floating_parameters
from tensorken.special.error_functions import erfcx, ndtr, ndtri
from tensorken_core.language.dtypes import float32
from tensorken_core.language.op import OPS
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.tensor import Tensor


def uniform(
    key: Tensor, shape: Any = (), dtype: Any = float32, minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0
) -> Tensor:
    """Numbers from the uniform distribution on [minval, maxval).

    They are minval * (1 - u) + maxval * u with u a multiple of 2**-24 in [0, 1), in float64 of 2**-53, in float16 of
    2**-11: all bits of the significand are random, and all multiples are equally likely.  A result that rounds to
    maxval becomes the next smaller number, so maxval is never drawn; where both are equal, the result is minval.

    float64 uses 64 random bits for each number, the other dtypes 32.

    Args:
        key: shape (2,), int32.
        shape: of the result.
        dtype: a floating-point dtype.
        minval, maxval: numbers or tensors that broadcast to the shape; the result is differentiable with respect to
            them.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, the bounds do not broadcast to the shape, or
            minval is known to be above maxval, or one of them to be infinite.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.uniform(tk.random.key(0), (3,)):.5f}")
    [0.41846 0.60050 0.21630]
    >>> tk.random.uniform(tk.random.key(0), (2, 2), minval=-1.0, maxval=tk.tensor([1.0, 9.0])).shape
    (2, 2)
    """
    key, sizes, result_dtype = (
        checked("uniform", key),
        shape_of("uniform", shape),
        dtype_of("uniform", dtype, "float", key),
    )
    u = fractions(key, sizes, result_dtype)
    if type(minval) in (int, float) and type(maxval) in (int, float) and (minval, maxval) == (0, 1):
        return u
    low = _bound("uniform", "minval", minval, u)
    high = _bound("uniform", "maxval", maxval, u)
    check_domain("uniform", "minval", low)
    check_domain("uniform", "maxval", high)
    check_order("uniform", low, high, "minval", "at most maxval")
    x = low * (1.0 - u) + high * u
    x = (x < high).where(x, high.apply(OPS["nextafter"], low))
    result: Tensor = (x < low).where(low, x)
    return result


def normal(key: Tensor, shape: Any = (), dtype: Any = float32) -> Tensor:
    """Numbers from the standard normal distribution: sqrt(2) * erfinv(u), u from (-1, 1).

    u is an odd multiple of 2**-24, in float64 of 2**-53, all equally likely: symmetric about 0 and never -1 or 1.
    So the largest magnitude is 5.42, in float64 8.29.  float16 is rounded from float32.

    Args:
        key: shape (2,), int32.
        shape: of the result.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.normal(tk.random.key(0), (3,)):.5f}")
    [-0.20584  0.25464 -0.78477]
    >>> mean, deviation = 10.0, 2.0
    >>> x = mean + deviation * tk.random.normal(tk.random.key(0), (1000,))
    """
    key, sizes, result_dtype = (
        checked("normal", key),
        shape_of("normal", shape),
        dtype_of("normal", dtype, "float", key),
    )
    return normals(key, sizes, result_dtype.wide).astype(result_dtype)


def truncated_normal(
    key: Tensor, lower: ArrayLike, upper: ArrayLike, shape: Any = None, dtype: Any = float32
) -> Tensor:
    """Numbers from the standard normal distribution truncated to [lower, upper].

    They are sqrt(2) * erfinv(u) with u between erf(lower / sqrt(2)) and erf(upper / sqrt(2)), or if both bounds are on
    one side of 0, quantiles of probabilities of that tail.  Where the nearer bound is beyond 4, the logarithm of the
    probability is inverted, relative to that of the bound, so that nothing underflows.

    Args:
        key: shape (2,), int32.
        lower, upper: numbers or tensors, also infinite ones; the result is differentiable with respect to them.
        shape: of the result; by default the broadcast shape of the bounds.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or the bounds do not broadcast to the shape.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.truncated_normal(tk.random.key(0), -1.0, 1.0, (3,)):.5f}")
    [-0.14000  0.17284 -0.50631]
    """
    name = "truncated_normal"
    key, result_dtype, (low, high) = floating_parameters(name, key, shape, dtype, lower=lower, upper=upper)
    check_order(name, low, high, "lower", "at most upper")
    share = symmetric(key, low.shape, low.dtype)
    start, end = [(bound * math.sqrt(0.5)).apply(OPS["erf"]) for bound in (low, high)]
    u = (start + end) * 0.5 + (end - start) * 0.5 * share
    last = 1.0 - 2.0**-low.dtype.precision
    x = u.maximum(-last).minimum(last).apply(OPS["erfinv"]) * math.sqrt(2.0)
    if not (isinstance(lower, (int, float)) and isinstance(upper, (int, float)) and lower <= 0 <= upper):
        beside = (low > 0.0) | (high < 0.0)
        x = beside.where(_tail(beside.where(low, 1.0), beside.where(high, 2.0), share), x)
        upper = low > 0.0
        near, end = upper.where(low, -high), upper.where(high, -low)
        far = (near > 4.0) & (near < math.inf)
        beyond = _far_tail(far.where(near, 5.0), far.where(end, 6.0), upper.where(share, -share))
        x = far.where(upper.where(beyond, -beyond), x)
    result: Tensor = (x < low).where(low, (x > high).where(high, x)).astype(result_dtype)
    return result


def _far_tail(low: Any, high: Any, share: Any) -> Any:
    """Numbers between positive bounds: low + d, where the logarithm of tail(low + d) / tail(low) has a value.

    The tail is the density times a multiple of T(x) = erfcx(x / sqrt(2)), so the logarithm is
    log(T(low + d) / T(low)) - d * (low + d / 2).  Newton's method finds d.
    """
    scale = math.sqrt(0.5)
    first = erfcx(low * scale)

    def logarithm(d: Any) -> Any:
        return (erfcx((low + d) * scale) / first).log() - d * (low + d * 0.5)

    infinite = high.eq(math.inf)
    mass = infinite.where(
        1.0, -logarithm(infinite.where(1.0, high - low)).expm1()
    )  # the share of the tail up to high
    upper = share > 0.0
    kept = (1.0 - upper.where(share, 0.0)) * 0.5
    target = upper.where(
        (kept * mass + (1.0 - mass)).log(), (-(upper.where(0.0, share) + 1.0) * 0.5 * mass).log1p()
    )
    d = target * -2.0 / ((low * low - target * 2.0).sqrt() + low)
    for _ in range(4):
        d = d + (logarithm(d) - target) * erfcx((low + d) * scale) * math.sqrt(0.5 * math.pi)
    return low + d


def _tail(low: Any, high: Any, share: Any) -> Any:
    """Numbers between bounds on one side of 0: quantiles of the lower tail, which increase with a share in (-1, 1)."""
    is_upper = low > 0.0
    start, end = ndtr(is_upper.where(-high, low)), ndtr(is_upper.where(-low, high))
    u: Any = (start + end) * 0.5 + (end - start) * 0.5 * is_upper.where(-share, share)
    x = ndtri(u.maximum(2.0 ** (2 - low.dtype.limit)))
    return is_upper.where(-x, x)


def exponential(key: Tensor, shape: Any = (), dtype: Any = float32) -> Tensor:
    """Numbers from the exponential distribution with mean 1: -log(1 - u), u from (0, 1).

    u is an odd multiple of 2**-24, in float64 of 2**-53, so that none is 0 or infinite.  float16 is rounded from
    float32.

    Args:
        key: shape (2,), int32.
        shape: of the result.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.exponential(tk.random.key(0), (3,)):.5f}")
    [0.54207 0.91754 0.24372]
    """
    key, sizes, result_dtype = (
        checked("exponential", key),
        shape_of("exponential", shape),
        dtype_of("exponential", dtype, "float", key),
    )
    return exponentials(key, sizes, result_dtype.wide).astype(result_dtype)


def gumbel(key: Tensor, shape: Any = (), dtype: Any = float32) -> Tensor:
    """Numbers from the standard Gumbel distribution: -log(e), where e is from the exponential distribution.

    If they are added to log-probabilities, the position of the largest sum is a sample with these probabilities.

    Args:
        key: shape (2,), int32.
        shape: of the result.
        dtype: a floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid.
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> print(f"{tk.random.gumbel(tk.random.key(0), (3,)):.5f}")
    [0.61236 0.08606 1.41172]
    """
    key, sizes, result_dtype = (
        checked("gumbel", key),
        shape_of("gumbel", shape),
        dtype_of("gumbel", dtype, "float", key),
    )
    return (-exponentials(key, sizes, result_dtype.wide).log()).astype(result_dtype)


def bernoulli(key: Tensor, p: ArrayLike = 0.5, shape: Any = None) -> Tensor:
    """True with probability p, else False: whether a uniform number from [0, 1) is less than p.

    So the result is always False for p = 0, and always True for p = 1.

    Args:
        key: shape (2,), int32.
        p: a number or a tensor; float64 is compared with 53 random bits, other dtypes with 24.
        shape: of the result; by default the shape of p.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or p does not broadcast to the shape.

    >>> import tensorken as tk
    >>> tk.random.bernoulli(tk.random.key(0), 0.5, (3,)).tolist()
    [True, False, True]
    """
    key = checked("bernoulli", key)
    probability = floating_of(as_operand("bernoulli", p, key))
    probability = probability.astype(probability.dtype.wide)
    check_domain("bernoulli", "p", probability)
    sizes = probability.shape if shape is None else shape_of("bernoulli", shape)
    probability = broadcast_argument("bernoulli", "p", probability, sizes)
    return fractions(key, sizes, probability.dtype) < probability


def _bound(name: str, what: str, bound: Any, like: Tensor) -> Tensor:
    return broadcast_argument(name, what, as_operand(name, bound, like).astype(like.dtype), like.shape)
