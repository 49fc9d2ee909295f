"""Enclosures of logsumexp, softmax and log_softmax."""

from __future__ import annotations

import numpy as np

from tensorken_conformance.enclosure.arithmetic import Rule, on_flushed_operands, propagates_nan, sizes
from tensorken_conformance.enclosure.errors import Errors
from tensorken_conformance.enclosure.interval import LIBRARY, PRECISION, Array, Interval, no_nan, outward
from tensorken_core.language.shapes import Axes


def _flattened(x: Interval, axes: Axes) -> Interval:
    """The reduced axes, flattened into the last one."""
    kept = [i for i in range(x.low.ndim) if i not in axes]
    order = (*kept, *axes)
    shape = (*[x.shape[i] for i in kept], -1)
    if 0 in x.shape:
        shape = (*shape[:-1], int(np.prod([x.shape[i] for i in axes], dtype=int)))
    return x.each(lambda values: values.transpose(order).reshape(shape))


def _restored(y: Array, like: Interval, axes: Axes) -> Array:
    kept = [i for i in range(like.low.ndim) if i not in axes]
    order = (*kept, *axes)
    back = tuple(np.argsort(order)) if order else ()
    return y.reshape([like.shape[i] for i in order]).transpose(back)


def _others(mine: Array, its: Array) -> Array:
    """The sum of exp(its - mine) over the others of each row."""
    n = mine.shape[-1]
    difference = its[..., None, :] - mine[..., :, None]
    terms = np.exp(np.where(np.isnan(difference), 0.0, difference))
    terms = np.where(np.arange(n)[:, None] == np.arange(n)[None, :], 0.0, terms)
    return terms.sum(-1)  # type: ignore[no-any-return]


def _log1p(others: Array, mine: Array, its: Array) -> Array:
    """log1p of the sum of the others, also where that overflows."""
    top = its.max(-1, keepdims=True) - mine
    difference = its[..., None, :] - mine[..., :, None] - np.where(np.isfinite(top), top, 0.0)[..., None]
    beyond = top + np.log(np.exp(np.where(np.isnan(difference), 0.0, difference)).sum(-1))
    return np.where(top > 100.0, beyond, np.log1p(others))


def weights(name: str) -> Rule:
    """softmax or its logarithm: 1 / (1 + the sum of exp(other - mine)), or minus log1p of that sum."""

    @propagates_nan
    def rule(errors: Errors, x: Interval, axes: Axes) -> Interval:
        if 0 in x.shape:
            return x
        rows = _flattened(x, axes)
        n = rows.shape[-1]
        more, fewer = _others(rows.low, rows.high), _others(rows.high, rows.low)
        spare = 2 * LIBRARY + n + 2.0 * _spread(rows)[..., None]
        if name == "softmax":
            ends, least, most = (1.0 / (1.0 + more), 1.0 / (1.0 + fewer)), 0.0, 1.0
        else:
            ends = -_log1p(more, rows.low, rows.high), -_log1p(fewer, rows.high, rows.low)
            least, most = -np.inf, 0.0
        low, high = outward(*ends, spare)
        endless = (np.isinf(rows.low) | np.isinf(rows.high)).any(-1, keepdims=True)
        low, high = np.where(endless, least, low), np.where(endless, most, high)
        share = errors.gamma(n, x.dtype) if n > 1 else 0.0
        low, high = low - np.abs(low) * share, high + np.abs(high) * share
        low = np.where(np.isnan(low), -np.inf, low)
        low, high = [_restored(end, x, axes) for end in (low, high)]
        return errors.result(name, low, high, no_nan(low), x.dtype)

    return rule


def _spread(rows: Interval) -> Array:
    """The largest magnitude in a row, which bounds the rounding errors of differences."""
    largest = sizes(rows)[1].max(-1, initial=0.0)
    return np.where(np.isfinite(largest), largest, 0.0)


@propagates_nan
def logsumexp(errors: Errors, x: Interval, axes: Axes) -> Interval:
    """Increases with all operands; near 0 the error is that of rounding the largest operand."""
    count = int(np.prod([x.shape[i] for i in axes], dtype=int))
    if count == 0:
        nothing = np.full([1 if i in axes else n for i, n in enumerate(x.shape)], -np.inf)
        return Interval(nothing, nothing, no_nan(nothing), x.dtype)
    ends = []
    for end in (x.low, x.high):
        top = np.maximum.reduce(end, axes, keepdims=True)
        middle = np.where(np.isfinite(top), top, 0.0)
        ends.append(np.log(np.add.reduce(np.exp(end - middle), axes, keepdims=True)) + middle)
    largest = np.maximum.reduce(sizes(x)[1], axes, keepdims=True)
    slack = np.where(np.isfinite(largest), largest, 0.0) + np.log(count) + 1.0
    share = PRECISION[x.dtype.name] * (2.0 + count) + 2.0**-52 * (LIBRARY + count)
    low, high = outward(ends[0], ends[1], 2 * LIBRARY + count)
    low, high = (ends[0], ends[1]) if count == 1 else (low - slack * share, high + slack * share)
    return errors.result("logsumexp", low, high, no_nan(low), x.dtype)


RULES: dict[str, Rule] = on_flushed_operands(
    {"softmax": weights("softmax"), "log_softmax": weights("log_softmax"), "logsumexp": logsumexp}
)
