"""Functions that `jax.numpy` lacks, or that XLA compiles badly from the default bodies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from tensorken_core.language.shapes import Axes

Array = Any

_NARROW = (jnp.float16, jnp.bfloat16)

NARROW = (jnp.float16, jnp.bfloat16)
"""The floats that are computed in float32."""


def in_float32(function: Callable[..., Array]) -> Callable[..., Array]:
    """The function of arrays of one dtype, then params, which computes narrower floats in float32."""

    def call(x: Array, *params: Any) -> Array:
        if x.dtype not in NARROW:
            return function(x, *params)
        wide = [y.astype(jnp.float32) if getattr(y, "dtype", None) == x.dtype else y for y in (x, *params)]
        return function(*wide).astype(x.dtype)

    return call


@in_float32
def sigmoid(x: Array) -> Array:
    """z / (1 + z) with z = exp(min(x, 40)): the result is 1 from there on, and z does not overflow."""
    z = jnp.exp(jnp.minimum(x, 40.0))
    return z / (z + 1.0)


@in_float32
def softplus(x: Array) -> Array:
    """max(x, 0) + log1p(exp(-abs(x)))."""
    return jnp.maximum(x, 0.0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


@in_float32
def sech_squared(x: Array) -> Array:
    """4 * p / (1 + p) ** 2 with p = exp(-2 * abs(x)), computed from 4 * p, as p is subnormal where this is not."""
    root = 2.0 * jnp.exp(-jnp.abs(x))
    four = root * root
    return four / (1.0 + four * (0.5 + 0.0625 * four))


@in_float32
def exp2(x: Array) -> Array:
    """exp(r * log(2)) * 2**n with x = n + r and abs(r) <= 1/2; JAX's exp(x * log(2)) rounds the large product."""
    limit = 1.25 * np.finfo(x.dtype).maxexp
    x = jnp.clip(x, -limit, limit)
    n = jnp.round(x)
    half = jnp.floor(0.5 * n)  # 2**n may overflow where the result does not
    return jnp.exp((x - n) * np.log(2.0).item()) * _power_of_two(half, x) * _power_of_two(n - half, x)


def _power_of_two(n: Array, x: Array) -> Array:
    """2**n for integers n; 0 where x is NaN."""
    layout = np.finfo(n.dtype)
    bits = jnp.where(x == x, n + (layout.maxexp - 1), 0.0).astype(f"int{layout.bits}") << layout.nmant
    return lax.bitcast_convert_type(bits, n.dtype)


def log(x: Array) -> Array:
    """log(x), which is minus infinity for each number that compares as 0.

    XLA's own logarithm is that of 2**-150 for subnormal numbers of float32, in some shapes.
    """
    return jnp.where(x == 0, -np.inf, jnp.log(x))


def log1p(x: Array) -> Array:
    """log(u) + c / u where u + c is 1 + x exactly; that of XLA has errors of 100 ULP in float64."""
    if x.dtype != jnp.float64:
        return jnp.log1p(x)
    large = jnp.maximum(1.0, x)
    u = 1.0 + x
    c = jnp.minimum(1.0, x) - (u - large)
    # c / u is NaN for -1 and infinity.  log(1) + 0 is 0 for -0.0.
    return jnp.where(x == 0, x, jnp.log(u) + jnp.where((u > 0) & (u < np.inf), c / u, 0.0))


def tanh(x: Array) -> Array:
    """1 - 2 / (1 + exp(2 * x)) for large x of float64, where XLA's has errors of 7 ULP."""
    y = jnp.tanh(x)
    if x.dtype != jnp.float64:
        return y
    size = jnp.abs(x)
    return jnp.where(size < 2.0, y, jnp.copysign(1.0 - 2.0 / (1.0 + jnp.exp(2.0 * size)), x))


@in_float32
def div(a: Array, b: Array) -> Array:
    """a / b; float16 is computed in float32, as XLA multiplies by the reciprocal, which overflows in float16."""
    return lax.div(a, b)


def cast(x: Array, dtype: Any) -> Array:
    """x in another dtype; float16 and bfloat16 are rounded once, where XLA may go by way of float32."""
    if dtype == jnp.bfloat16 and x.dtype in (jnp.int32, jnp.int64, jnp.uint32, jnp.uint64):
        x = _to_double(x)
    return (_rounded_to_odd(x) if x.dtype == jnp.float64 and dtype in _NARROW else x).astype(dtype)


def _to_double(x: Array) -> Array:
    """Integers as float64, which has no more than 48 bits of large ones, the last of them set if others were.

    The bits before them suffice to round to bfloat16.
    """
    if x.dtype in (jnp.int64, jnp.uint64):
        sticky = (x >> 16 << 16) | jnp.where(x & 0xFFFF, 1 << 16, 0).astype(x.dtype)
        small = (x < 2**40) & ((x > -(2**40)) if x.dtype == jnp.int64 else True)
        x = jnp.where(small, x, sticky)
    return x.astype(jnp.float64)


def _rounded_to_odd(x: Array) -> Array:
    """float64 as float32: truncated, and with the last bit set where it is inexact, so that the next rounding is right.

    S. Boldo, G. Melquiond, "Emulation of a FMA and correctly rounded sums", 2008, theorem 1.
    """
    y = x.astype(jnp.float32)
    back = y.astype(jnp.float64)
    bits = lax.bitcast_convert_type(y, jnp.int32)
    truncated = bits - jnp.where(jnp.abs(back) > jnp.abs(x), 1, 0).astype(jnp.int32)
    odd = lax.bitcast_convert_type(truncated | 1, jnp.float32)
    return jnp.where((back != x) & jnp.isfinite(x), odd, y)


def pow(a: Array, b: Array) -> Array:
    """a**b, where a is 0 if it compares as 0: XLA's computes other powers of subnormal numbers in some shapes."""
    if jnp.issubdtype(a.dtype, jnp.floating):
        a = jnp.where(a == 0, jnp.copysign(jnp.zeros((), a.dtype), a), a)
    return jnp.power(a, b)


def remainder(a: Array, b: Array) -> Array:
    """The exact remainder with the sign of b, also for a zero."""
    rest = lax.rem(a, b)
    zero = jnp.zeros((), b.dtype)
    if not jnp.issubdtype(b.dtype, jnp.floating):
        rest = jnp.where(b == 0, zero, lax.rem(a, jnp.where(b == 0, zero + 1, b)))
        return jnp.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
    opposite = jnp.signbit(rest) != jnp.signbit(b)
    return jnp.where(rest == 0, jnp.copysign(zero, b), jnp.where(opposite, rest + b, rest))


def nextafter(x: Array, y: Array) -> Array:
    """The number next to x in the direction of y, by their bits, as XLA's comparisons take subnormals for zeros."""
    integer = np.dtype(f"int{8 * x.dtype.itemsize}")
    sign = np.array(np.iinfo(integer).min, integer)
    one = np.array(1, integer)
    bits, other_bits = (lax.bitcast_convert_type(z, integer) for z in (x, y))
    # Integers in the order of the numbers; both zeros are 0.
    at, to = (jnp.where(z < 0, sign - z, z) for z in (bits, other_bits))
    after = jnp.where(at < to, at + one, at - one)
    after_bits = jnp.where(after == 0, bits & sign, jnp.where(after < 0, sign - after, after))
    following = jnp.where(at == to, other_bits, after_bits)
    # A selection among bfloat16 numbers is one among float32 numbers, which may flush them.
    nan_bits = lax.bitcast_convert_type(x + y, integer)
    return lax.bitcast_convert_type(jnp.where(jnp.isnan(x) | jnp.isnan(y), nan_bits, following), x.dtype)


@in_float32
def softmax(x: Array, axes: Axes) -> Array:
    """exp(x - top) / sum(exp(x - top)), where top is the maximum."""
    if x.size == 0:
        return x
    powers = jnp.exp(_Below(x, axes).differences())
    return powers / powers.sum(axes, keepdims=True)


@in_float32
def log_softmax(x: Array, axes: Axes) -> Array:
    """x - top - log(sum(exp(x - top)))."""
    if x.size == 0:
        return x
    below = _Below(x, axes)
    differences = below.differences()
    # Four times a difference from an infinite maximum overflows to minus infinity; that of a maximum itself is 0.
    return differences * jnp.where(below.is_infinite, 4.0, 1.0).astype(x.dtype) - _log_of_sum(
        differences, axes
    )


@in_float32
def logsumexp(x: Array, axes: Axes) -> Array:
    """top + log(sum(exp(x - top)))."""
    if x.size == 0:
        return jnp.log(x.sum(axes, keepdims=True))
    below = _Below(x, axes)
    return below.top + _log_of_sum(below.differences(), axes)


def _log_of_sum(differences: Array, axes: Axes) -> Array:
    return jnp.log(jnp.exp(differences).sum(axes, keepdims=True))


class _Below:
    """The differences x - top from the maximum; 0 for each maximum that is infinite, too.

    A comparison of each element with the maximum would keep XLA from vectorising `exp`.  So rows with an infinite
    maximum are scaled, which makes their maxima plus infinity, and limited to the largest number, which is then
    subtracted: a difference is 0, or so negative that `exp` is 0.
    """

    def __init__(self, x: Array, axes: Axes) -> None:
        self.x = x
        self.top = x.max(axes, keepdims=True)
        self.is_infinite = jnp.isinf(self.top)

    def differences(self) -> Array:
        """The differences."""
        dtype = self.x.dtype
        largest = np.finfo(dtype).max
        scale = jnp.where(self.is_infinite, jnp.copysign(0.5, self.top), 1.0).astype(dtype)
        limit = jnp.where(self.is_infinite, largest, jnp.inf).astype(dtype)
        return jnp.minimum(self.x * scale, limit) - jnp.where(self.is_infinite, largest, self.top)


_INTEGERS: dict[str, tuple[Any, int, int]] = {
    "float32": (jnp.int32, 23, 127),
    "float64": (jnp.int64, 52, 1023),
}
"""For each dtype the integers of its size, the bits of a fraction, and the exponent of 1."""


@in_float32
def norm(x: Array, axes: Axes) -> Array:
    """The 2-norm, of numbers that are scaled by a power of two.

    The default body divides by the largest, for which XLA multiplies by its reciprocal, which may be subnormal.
    """
    if 0 in [x.shape[axis] for axis in axes]:
        return jnp.sum(x, axes, keepdims=True)
    integers, fraction, one = _INTEGERS[x.dtype.name]
    largest = jnp.max(jnp.abs(x), axes, keepdims=True)
    exponent = (lax.bitcast_convert_type(largest, integers) >> fraction) - one
    exponent = jnp.clip(exponent, 1 - one, one - 1)
    down, up = [lax.bitcast_convert_type((one + sign * exponent) << fraction, x.dtype) for sign in (-1, 1)]
    return jnp.sqrt(jnp.sum(jnp.square(x * down), axes, keepdims=True)) * up
