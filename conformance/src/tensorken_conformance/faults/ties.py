"""Ties: derivatives are wrong only where elements are equal, or lie on a limit."""

from __future__ import annotations

from typing import Any

import tensorken as tk
from tensorken.arrays.functions import statistics
from tensorken.arrays.indexing import updates
from tensorken_conformance.faults.changes import extreme_weights, rules
from tensorken_conformance.faults.fault import Place, fault, fault_in_function, fault_in_rule
from tensorken_core.language.bodies import arrangement
from tensorken_core.language.op import OPS

LAW = "derivatives.decisions"


@fault_in_function(LAW, statistics, "_between", "median-of-even", "median-of-two", "quantile", "percentile")
def equal_neighbours_are_the_lower(original: Any, low: Any, high: Any, part: Any) -> Any:
    """A quantile between two equal elements is the lower one, and has no derivative by the upper one."""
    return low.eq(high).where(low, original(low, high, part))


@fault_in_function(LAW, statistics, "_interpolated_at_each", "quantile-by-share")
def shares_have_no_slope(original: Any, ordered: Any, shares: Any, method: str) -> Any:
    """A quantile has no derivative by a share that is a tensor."""
    return original(ordered, tk.stop_gradient(shares), method)


def _all_to_first(t: Any, y: Any, a: Any, b: Any) -> Any:
    return a.eq(y).where(t, 0.0)


def _rest_to_second(t: Any, y: Any, a: Any, b: Any) -> Any:
    return a.eq(y).where(0.0, t)


@fault(LAW, "maximum", "fmax", "clip", "maximum-broadcast")
def first_of_two_has_all() -> Place:
    """The derivative of maximum goes to its first operand where both are equal, in both modes."""
    both = (_all_to_first, _rest_to_second)
    return rules("maximum", jvp=both, vjp=both)


@fault(LAW, "minimum", "fmin")
def each_of_two_has_all() -> Place:
    """The derivative of minimum goes to each of two equal operands in full, in both modes."""
    both = (_all_to_first, lambda t, y, a, b: b.eq(y).where(t, 0.0))
    return rules("minimum", jvp=both, vjp=both)


@fault(LAW, "clip", "clip-from-above")
def flat_at_the_upper_limit() -> Place:
    """Where minimum is of two equal operands its derivative by the first is 0, so clip is flat at its upper limit."""
    both = (lambda t, y, a, b: (a < b).where(t, 0.0), lambda t, y, a, b: (a < b).where(0.0, t))
    return rules("minimum", jvp=both, vjp=both)


def _weights_of_last(y: Any, x: Any, axes: Any) -> Any:
    hits = x.eq(y.expand(x.shape)).astype(x.dtype)
    axis = axes[-1] if axes else 0
    behind = hits.flip((axis,)).cumsum(axis).flip((axis,))
    return (behind <= 1.0).where(hits, 0.0)


@fault(LAW, "min", "min-of-two", "min-over-all", "range")
def last_minimum_has_all() -> Place:
    """The derivative of min goes to the last of several equal elements along an axis, in both modes."""
    return extreme_weights("min", _weights_of_last)


@fault(LAW, "max-over-all")
def shares_of_the_last_axis_alone() -> Place:
    """The derivative of max over several axes is shared among equal elements of the last of these axes alone."""

    def weights(y: Any, x: Any, axes: Any) -> Any:
        hits = x.eq(y.expand(x.shape)).astype(x.dtype)
        return hits / hits.sum(axes[-1:], keepdims=True).maximum(1.0).expand(x.shape)

    return extreme_weights("max", weights)


def _backwards(x: Any, axis: int) -> Any:
    """The indices that sort an axis, equal elements from the last to the first."""
    return (x.shape[axis] - 1) - x.flip((axis,)).apply(OPS["argsort"], axis)


@fault(LAW, "sort", "sort-descending", "median", "quantile-at-an-element")
def equal_elements_change_places() -> Place:
    """The derivative of sort takes equal elements from the last to the first, in both modes."""

    def push(t: Any, y: Any, x: Any, axis: int) -> Any:
        return arrangement.take_along(t, _backwards(x, axis), axis)

    def pull(t: Any, y: Any, x: Any, axis: int) -> Any:
        places = arrangement.flat_indices(_backwards(x, axis), x.shape[axis], axis)
        return t.reshape((t.size,)).scatter_add(places, 0, t.size).reshape(x.shape)

    return rules("sort", jvp=(push,), vjp=(pull,))


@fault_in_rule(LAW, "abs", "absolute-norm")
def magnitude_is_flat_at_zero(original: Any, t: Any, y: Any, x: Any) -> Any:
    """The derivative of abs at 0 is 0, in both modes."""
    return t * x.sign()


@fault_in_rule(LAW, "relu")
def half_a_slope_at_zero(original: Any, t: Any, y: Any, x: Any) -> Any:
    """The derivative of relu at 0 is a half, as that of maximum, in both modes."""
    return (x > 0.0).where(t, x.eq(0.0).where(t * 0.5, 0.0))


@fault_in_function(LAW, updates, "extreme", "at-max")
def written_value_has_all(original: Any, name: str, x: Any, values: Any, places: Any, axis: int) -> Any:
    """Where `x.at[i].max(v)` writes a value that equals the element, the derivative goes to the value."""
    if name == "maximum":
        old = x.gather(places, axis)
        lower = values.eq(old).astype(x.dtype).scatter_add(places, axis, x.shape[axis])
        x = (lower > 0.0).where(tk.stop_gradient(x), x)
        values = values.eq(old).where(values * 2.0 - tk.stop_gradient(values), values)
    return original(name, x, values, places, axis)


@fault(LAW, "where-not-smaller", "where-larger")
def condition_forgets_equality() -> Place:
    """The derivative of where, whose condition came from a comparison, is a half on both sides of equal operands."""
    _, yes, no = OPS["where"].vjp
    assert yes is not None and no is not None

    def first(t: Any, y: Any, c: Any, a: Any, b: Any) -> Any:
        return a.eq(b).where(t * 0.5, yes(t, y, c, a, b))

    def second(t: Any, y: Any, c: Any, a: Any, b: Any) -> Any:
        return a.eq(b).where(t * 0.5, no(t, y, c, a, b))

    return rules("where", jvp=(None, first, second), vjp=(None, first, second))
