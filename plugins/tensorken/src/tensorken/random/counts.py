"""Random counts: the Poisson, binomial, multinomial and geometric distributions.

Small means are counted event by event, with the times between events from the exponential or geometric distribution.
Large ones are drawn by W. Hörmann's transformed rejection, "The transformed rejection method for generating Poisson
random variables" and "The generation of binomial random variates" (1993), with C. Loader's form of the probabilities,
"Fast and accurate computation of binomial probabilities" (2000), in which no large logarithms are subtracted.

The counts are computed in float32, which holds integers to 2**24, or in float64 if the dtype or a parameter is.
"""

from __future__ import annotations

import math
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.stop_gradient import stop_gradient
from tensorken.arrays.indexing.checks import require
from tensorken.control_flow import scan
from tensorken.random.bits import broadcast_argument, shape_of
from tensorken.random.floats import exponentials, fractions, symmetric
from tensorken.random.keys import fold_in, split
from tensorken.random.parameters import (
    broadcast_shape,
    counting_dtypes,
    counting_parameters,
    in_one_shape,
)
from tensorken.random.rejection import count_until, first_accepted
from tensorken.special.gamma_functions import correction, gammaln
from tensorken.special.gamma_quantiles import log1p_minus
from tensorken_core.errors import ShapeError
from tensorken_core.language.dtypes import DType, float32, int32, integer_bounds
from tensorken_core.tensor.tensor import Tensor

_SMALL_MEAN = 10.0
"""Below this mean, events are counted one by one."""


def poisson(key: Tensor, lam: ArrayLike, shape: Any = None, dtype: Any = int32) -> Tensor:
    """Counts of events from the Poisson distribution, whose mean is lam.

    Below 10, events are counted; from 10 on the method is that of W. Hörmann, "The transformed rejection method for
    generating Poisson random variables" (1993).

    Args:
        key: shape (2,), int32.
        lam: a number or tensor from 0; not differentiated.  Where it is negative or NaN, the result is -1, in a
            floating-point dtype NaN.  It is rounded to float32, in which counts above 2**24 have gaps, unless it is a
            tensor of float64.
        shape: of the result; by default the shape of lam.
        dtype: an integer or floating-point dtype; a count that does not fit is its largest number.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or lam does not broadcast to the shape.
        DTypeError: if the dtype is neither.

    >>> import tensorken as tk
    >>> tk.random.poisson(tk.random.key(0), 4.0, (5,)).tolist()
    [3, 5, 5, 4, 6]
    """
    key, result_dtype, (mean,) = counting_parameters("poisson", key, shape, dtype, lam=lam)
    infinite, small = mean.eq(math.inf), (mean >= 0.0) & (mean < _SMALL_MEAN)
    large = (mean >= _SMALL_MEAN) & ~infinite
    for_small, for_large = split(key)
    few = count_until(
        for_small,
        lambda key: exponentials(key, mean.shape, mean.dtype),
        small.where(mean, 0.0),
        small,
    )
    many = _large_poisson(for_large, large.where(mean, _SMALL_MEAN), large)
    counts = large.where(many, infinite.where(math.inf, small.where(few, math.nan)))
    return _as_counts(counts, result_dtype)


def binomial(key: Tensor, n: ArrayLike, p: ArrayLike, shape: Any = None, dtype: Any = float32) -> Tensor:
    """The number of successes in n trials of probability p.

    Where n * min(p, 1 - p) is less than 10, successes are counted; elsewhere the method is that of W. Hörmann, "The
    generation of binomial random variates" (1993).

    Args:
        key: shape (2,), int32.
        n: a whole number or tensor of such, from 0; others are rounded down.
        p: a probability or tensor; neither parameter is differentiated.  Where one is out of range or NaN, the result
            is NaN, in an integer dtype -1.
        shape: of the result; by default the broadcast shape of the parameters.
        dtype: an integer or floating-point dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or the parameters do not broadcast to the shape.
        DTypeError: if the dtype is neither.

    >>> import tensorken as tk
    >>> tk.random.binomial(tk.random.key(0), 100, 0.3, (5,)).tolist()
    [25.0, 25.0, 30.0, 33.0, 25.0]
    """
    key, result_dtype, (trials, chance) = counting_parameters("binomial", key, shape, dtype, n=n, p=p)
    return _as_counts(_successes(key, trials, chance), result_dtype)


def multinomial(
    key: Tensor, n: ArrayLike, p: ArrayLike, *, shape: Any = None, dtype: Any = float32
) -> Tensor:
    """How often each of k categories is drawn in n draws: binomial counts, category by category.

    Args:
        key: shape (2,), int32.
        n: a whole number or tensor of such, whose shape broadcasts with the first axes of p.
        p: a tensor of shape (..., k) of probabilities, up to a common factor; neither parameter is differentiated.
        shape: of the result without its last axis; by default the broadcast shape of n and the first axes of p.
        dtype: an integer or floating-point dtype.

    Returns:
        A tensor of shape `(*shape, k)`, whose sums along the last axis are n.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, p has no axis, or n and p do not broadcast.
        DTypeError: if the dtype is neither an integer nor a floating-point dtype.

    >>> import tensorken as tk
    >>> tk.random.multinomial(tk.random.key(0), 100, [0.2, 0.3, 0.5]).tolist()
    [19.0, 42.0, 39.0]
    """
    name = "multinomial"
    key, result_dtype, inner = counting_dtypes(name, key, dtype, n, p)
    (trials,), (chances,) = (
        in_one_shape(name, key, None, inner, n=n),
        in_one_shape(name, key, None, inner, p=p),
    )
    if not chances.shape:
        raise ShapeError(f"{name}: p must have an axis, got shape (); give one probability for each category")
    *batch, count = chances.shape
    if count:
        total = chances.sum(-1)
        require(name, "p", (total > 0) & (total < math.inf), "of a positive and finite sum", total)
    if shape is None:
        sizes = broadcast_shape(name, {"n": trials.shape, "p without its last axis": tuple(batch)})
    else:
        sizes = shape_of(name, shape)
    trials = stop_gradient(broadcast_argument(name, "n", trials, sizes))
    chances = stop_gradient(broadcast_argument(name, "p", chances, (*sizes, count)))
    rest = chances.flip(-1).cumsum(-1).flip(-1)
    none_left = rest.eq(0.0)
    shares = none_left.where(0.0, chances / none_left.where(1.0, rest))
    last = shares.ndim - 1
    by_category = shares.permute((last, *range(last)))

    def step(left: Any, category: Any) -> Any:
        index, share = category
        drawn = _successes(fold_in(key, index), left, share)
        return left - drawn, drawn

    counts = scan(step, trials, (key.constant(range(count), key.dtype, (count,)), by_category))[1]
    return _as_counts(counts.permute((*range(1, counts.ndim), 0)), result_dtype)


def geometric(key: Tensor, p: ArrayLike, shape: Any = None, dtype: Any = int32) -> Tensor:
    """The number of trials of probability p up to the first success, from 1: floor(e / -log(1 - p)) + 1.

    e is from `exponential`.

    Args:
        key: shape (2,), int32.
        p: a probability or tensor; not differentiated.  Where it is out of range or NaN, the result is -1, in a
            floating-point dtype NaN.
        shape: of the result; by default the shape of p.
        dtype: an integer or floating-point dtype; a count that does not fit is its largest number.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, or p does not broadcast to the shape.
        DTypeError: if the dtype is neither.

    >>> import tensorken as tk
    >>> tk.random.geometric(tk.random.key(0), 0.2, (5,)).tolist()
    [3, 5, 2, 8, 16]
    """
    key, result_dtype, (chance,) = counting_parameters("geometric", key, shape, dtype, p=p)
    valid = (chance >= 0.0) & (chance <= 1.0)
    times = _waiting_times(key, valid.where(chance, 1.0))
    return _as_counts(valid.where(times, math.nan), result_dtype)


# ---- shared code -------------------------------------------------------------------------------------------


def _large_poisson(key: Tensor, mean: Any, wanted: Tensor) -> Tensor:
    """Counts for means from 10 on; the constants are those of the algorithm PTRS."""
    b = mean.sqrt() * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    scale, squeeze = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2.0)
    constants = (a, b, squeeze, scale)
    return _transformed(key, constants, mean + 0.43, lambda k: _log_poisson(k, mean), math.inf, wanted)


def _successes(key: Tensor, n: Any, p: Any) -> Any:
    """Binomial counts as floats; NaN where a parameter is out of range."""
    n = n.floor()
    valid = (n >= 0.0) & (n < math.inf) & (p >= 0.0) & (p <= 1.0)
    mirrored = p > 0.5
    chance = mirrored.where(1.0 - p, p)
    small = valid & (n * chance < _SMALL_MEAN)
    large = valid & ~small
    for_small, for_large = split(key)
    rare = small.where(chance, 0.0)
    few = count_until(for_small, lambda key: _waiting_times(key, rare), small.where(n, 0.0), small)
    many = _large_binomial(for_large, large.where(n, 4.0 * _SMALL_MEAN), large.where(chance, 0.25), large)
    counts = large.where(many, few)
    return valid.where(mirrored.where(n - counts, counts), math.nan)


def _large_binomial(key: Tensor, n: Any, p: Any, wanted: Tensor) -> Tensor:
    """Counts for p up to 1/2 and n * p from 10 on; the constants are those of the algorithm BTRS."""
    mean, other_mean = n * p, n * (1.0 - p)
    deviation = (mean * (1.0 - p)).sqrt()
    b = deviation * 2.53 + 1.15
    a = b * 0.0248 - 0.0873 + p * 0.01
    scale, squeeze = (2.83 + 5.1 / b) * deviation, 0.92 - 4.2 / b

    def log_probability(k: Any) -> Any:
        """Up to a constant: a binomial probability is a product of two of Poisson's divided by a third."""
        return _log_poisson(k, mean) + _log_poisson(n - k, other_mean)

    at_mode = log_probability(((n + 1.0) * p).floor())
    constants = (a, b, squeeze, scale)
    return _transformed(key, constants, mean + 0.5, lambda k: log_probability(k) - at_mode, n, wanted)


def _transformed(
    key: Tensor, constants: tuple[Any, ...], center: Any, log_probability: Any, most: Any, wanted: Tensor
) -> Tensor:
    """Counts by transformed rejection.

    Args:
        key: of the loop.
        constants: a and b of the transformation, the bound of the squeeze, and the factor of the hat.
        center: the offset of the transformation.
        log_probability: of a count, up to the constant that the factor of the hat includes.
        most: the largest count.
        wanted: whether the element gets a count.
    """
    a, b, squeeze, scale = constants

    def attempt(key: Tensor) -> tuple[Tensor, Tensor]:
        for_u, for_v = split(key)
        u = symmetric(for_u, center.shape, center.dtype) * 0.5
        v = fractions(for_v, center.shape, center.dtype)
        distance = 0.5 - u.abs()
        k = ((a * 2.0 / distance + b) * u + center).floor()
        possible = (k >= 0.0) & (k <= most)
        k = possible.where(k, 0.0)
        below = (v * scale / (a / (distance * distance) + b)).log() <= log_probability(k)
        return k, possible & (((distance >= 0.07) & (v <= squeeze)) | below)

    return first_accepted(key, attempt, center.zeros_like(), wanted)


def _log_poisson(k: Any, mean: Any) -> Any:
    """The logarithm of Poisson's probability of k, from k = 10 on in Loader's form."""
    many = k >= 10.0
    few, count = many.where(0.0, k), many.where(k, 10.0)
    direct = few * mean.log() - mean - gammaln(few + 1.0)
    deviance = count * log1p_minus((mean - count) / count)
    return many.where(deviance - correction(count) - (count * (2.0 * math.pi)).log() * 0.5, direct)


def _waiting_times(key: Tensor, p: Any) -> Any:
    """The number of trials up to the first success, as floats; infinite for p = 0."""
    certain = p.eq(1.0)
    rate = -(-certain.where(0.5, p)).log1p()
    times = (exponentials(key, p.shape, p.dtype) / rate).floor() + 1.0
    return certain.where(1.0, times)


def _as_counts(x: Any, dtype: DType) -> Tensor:
    """Counts in a dtype: in an integer dtype -1 for NaN, and its largest number if they do not fit."""
    if dtype.kind == "float":
        result: Tensor = x.astype(dtype)
        return result
    least, most = integer_bounds(dtype)
    fits = x < float(most)
    counts: Any = fits.where(x, 0.0).astype(dtype)
    return fits.where(counts, x.eq(x).where(counts.scalar(most), max(least, -1)))  # type: ignore[no-any-return]
