"""Bounds: intervals that contain the results of a correct backend, from the same computation on intervals.

The intervals are those of the exact results of the ops, widened by the errors that the backend declares.  So they
contain the result of exact arithmetic, and the result of the backend if its ops are correct.  If the two sides of an
identity, computed on intervals, have no number in common, a rule is wrong, whatever the rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorken_conformance.case import Failure, Measured
from tensorken_conformance.enclosure import Enclosure, Interval, interval
from tensorken_conformance.enclosure.errors import EXACT, Errors
from tensorken_conformance.enclosure.interpreter import RULES
from tensorken_conformance.enclosure.interval import chosen, exactly, hull
from tensorken_conformance.laws.derivatives.monte_carlo_rounding import exaggerated, monte_carlo_bounds
from tensorken_conformance.numbers.host_arrays import is_float
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DTYPES, DType, bool_, float64
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.tensor.tensor import Tensor

Computation = Callable[[RawTensor[Any]], Sequence[Tensor]]
"""Makes its operands on a backend, and computes tensors there."""

ROUNDING = 2.0**-53
"""The largest relative error of a float64 operation of our own."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """A lower and an upper bound of each element of a tensor.

    Attributes:
        low: the lower ends.
        high: the upper ends.
        maybe_nan: where the element may be NaN.
        estimated: the number of elements with bounds from Monte Carlo rounding, where the intervals are too wide.
        unknown: the number of elements without bounds.

    >>> near = Bounds(np.array([1.0, 2.0]), np.array([1.5, 2.0]))
    >>> near.scaled(2.0).meets(Bounds(np.array([3.0, 4.0]), np.array([3.0, 5.0]))).tolist()
    [True, True]
    """

    low: Array
    high: Array
    maybe_nan: Array | bool = False
    estimated: int = 0
    unknown: int = 0

    def holds(self, values: Array) -> Array:
        """Where the values lie within."""
        wide = values.astype(self.low.dtype)
        within = (self.low <= wide) & (wide <= self.high)
        return np.where(np.isnan(wide), self.maybe_nan, within) if is_float(wide) else within

    def meets(self, other: Bounds) -> Array:
        """Where there is a number within both, or both may be NaN."""
        both = (self.low <= other.high) & (other.low <= self.high)
        return np.asarray(both | (np.asarray(self.maybe_nan) & other.maybe_nan))

    def scaled(self, by: float) -> Bounds:
        """The bounds of the elements times a power of two, which is exact."""
        ends = self.low * by, self.high * by
        return Bounds(np.minimum(*ends), np.maximum(*ends))

    def plus(self, other: Bounds) -> Bounds:
        """The bounds of the sums of two tensors' elements."""
        low, high = self.low + other.low, self.high + other.high
        return Bounds(np.nextafter(low, -np.inf), np.nextafter(high, np.inf))

    def dot(self, weights: Array) -> Bounds:
        """The bounds of the sum of the elements times exact weights."""
        ends = np.stack([self.low * weights, self.high * weights])
        return total(ends.min(0), ends.max(0))


def total(low: Array, high: Array) -> Bounds:
    """The bounds of the sum of products that lie between these, each computed with one rounding.

    The relative error of a product is at most u = 2**-53, and `math.fsum` rounds once.
    """
    ends = []
    for products, away in ((low, -1.0), (high, 1.0)):
        sizes = math.fsum(np.abs(products).ravel().tolist())
        ends.append(math.fsum(products.ravel().tolist()) + away * 3.0 * ROUNDING * sizes)
    return Bounds(np.array(ends[0]), np.array(ends[1]))


def certified(
    subject: Subject, computation: Computation, names: Sequence[str]
) -> tuple[list[Bounds], list[Array]]:
    """The bounds of the results of a computation, after checking that the numbers of the backend lie within.

    Args:
        subject: the backend under test.
        computation: runs on the backend as a user has it.
        names: names of the results, for messages.

    Returns:
        The bounds, and the numbers of the backend.

    Raises:
        Failure: if a number of the backend lies outside.
    """
    found = [subject.read(y) for y in subject.together(computation(subject.stack))]
    bounds = enclosed(subject, computation)
    for name, values, within in zip(names, found, bounds, strict=True):
        require_within(name, values, within)
    return bounds, found


def require_within(name: str, values: Array, within: Bounds) -> None:
    """Require the values to lie within the bounds.

    Raises:
        Failure: if one does not.
    """
    if values.shape != within.low.shape:
        raise Failure(f"{name}: expected shape {within.low.shape}, got {values.shape}")
    outside = ~within.holds(values)
    if outside.any():
        index = tuple(int(i) for i in np.argwhere(outside)[0])
        raise Failure(
            f"{name}: expected between {within.low[index].item()!r} and {within.high[index].item()!r}{_at(index)}, "
            f"got {values[index].item()!r}"
        )


def require_equal(left: str, a: Bounds, right: str, b: Bounds) -> None:
    """Require the bounds of two values that are equal in exact arithmetic to overlap.

    Raises:
        Failure: if some do not.
    """
    apart = ~a.meets(b)
    if apart.any():
        index = tuple(int(i) for i in np.argwhere(apart)[0])
        raise Failure(
            f"expected {left} = {right}{_at(index)}; "
            f"they are between {a.low[index].item()!r} and {a.high[index].item()!r}, "
            f"and between {b.low[index].item()!r} and {b.high[index].item()!r}, so a rule is wrong"
        )


def _at(index: tuple[int, ...]) -> str:
    return f" at {index}" if index else ""


# ---- intervals -----------------------------------------------------------------------------------------------


class NotEnclosedError(Exception):
    """A computation has an op that is not enclosed."""


class Roomy(Errors):
    """The errors that a backend declares, at least one number for each rounded op, to contain the exact result."""

    def steps(self, op: str, dtype: DType) -> int:
        return super().steps(op, dtype) if op in EXACT else max(1, super().steps(op, dtype))

    def result(self, op: str, low: Array, high: Array, maybe_nan: Array, dtype: DType) -> Interval:
        """The interval with the declared errors; `nextafter` is faster for an error of one float64 number."""
        if dtype is not float64 or self.steps(op, dtype) != 1:
            return super().result(op, low, high, maybe_nan, dtype)
        return self.flushed(
            Interval(np.nextafter(low, -np.inf), np.nextafter(high, np.inf), maybe_nan, dtype)
        )


class Known(Enclosure):
    """The enclosure of computations whose intervals are narrow, for exact arithmetic and for a backend.

    The body of an op on matrices is no bound: backends have algorithms of their own, each with its own error, and one
    that iterates until nothing changes never ends on intervals.  So such an op without a rule is not enclosed.

    Args:
        capabilities: of the backend.
        keen: whether to find sums and products that need no rounding, if the backend declares correct rounding of these
            ops; otherwise the interval of 2 - 1 would be wider than 1, and a comparison with 1 undecided.

    Attributes:
        has_met_matrices: whether there was an op on matrices, whose enclosures are wide even if `keen`.
    """

    def __init__(self, capabilities: Capabilities, keen: bool = False) -> None:
        super().__init__(capabilities)
        self.declared, self.errors, self.keen = self.errors, Roomy(capabilities), keen
        self.has_met_matrices = False

    def interpret(self, op: Op, operands: Sequence[Interval], params: tuple[Any, ...]) -> Any:
        if op.adjust_samples is not None:
            self.has_met_matrices = True
            if op.name not in RULES:
                raise NotEnclosedError(op.name)
        result = super().interpret(op, operands, params)
        keen = self.keen and op.name in _REMAINDERS and result.dtype.kind == "float"
        if not keen or self.declared.steps(op.name, result.dtype):
            return result
        return _unrounded(op.name, result, *operands)

    def has(self, op: Op) -> bool:
        return op.adjust_samples is not None or super().has(op)

    def eq(self, a: Interval, b: Interval) -> Interval:
        """Each number equals itself, even if its interval is wide; NaN does not."""
        if a is not b:
            return self.interpret(OPS["eq"], (a, b), ())  # type: ignore[no-any-return]
        return Interval(~a.maybe_nan, ~a.empty, np.zeros(a.shape, bool), bool_)


def _of_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The sum, and its rounding error: D. E. Knuth, "The Art of Computer Programming", 4.2.2, theorem B."""
    total = a + b
    share = total - a
    return total, (a - (total - share)) + (b - share)


def _of_product(a: Array, b: Array) -> tuple[Array, Array]:
    """The product, and its rounding error: T. J. Dekker, "A floating-point technique ...", 1971."""
    (p, q), (r, s) = _halves(a), _halves(b)
    product = a * b
    return product, q * s - (((product - p * r) - q * r) - p * s)


def _halves(x: Array) -> tuple[Array, Array]:
    """Two numbers of at most 26 bits whose sum is x."""
    scaled = x * (2.0**27 + 1.0)
    high = scaled - (scaled - x)
    return high, x - high


_REMAINDERS: dict[str, Callable[[Array, Array], tuple[Array, Array]]] = {
    "add": _of_sum,
    "sub": lambda a, b: _of_sum(a, -b),
    "mul": _of_product,
}


def _unrounded(name: str, result: Interval, a: Interval, b: Interval) -> Interval:
    """The result, as a single number where the operands are single numbers and no rounding is needed."""
    with np.errstate(all="ignore"):
        value, remainder = _REMAINDERS[name](a.low, b.low)
        fits = value.astype(result.dtype.name) == value
    exact = a.exact & b.exact & (remainder == 0.0) & fits
    return chosen(exact, Interval(value, value, np.zeros_like(exact), result.dtype), result)


def enclosed(subject: Subject, computation: Computation) -> list[Bounds]:
    """The bounds of the results of a computation: from intervals, or from Monte Carlo rounding where these are vague.

    An interval is vague if it leaves half of the digits open: if it is wider than the root of the unit roundoff,
    relative to the largest number of its tensor, or to 1, the size of operands and directions.

    Raises:
        Failure: if no bound is known, so that a comparison would prove nothing.
    """
    try:
        interpreter = Known(subject.capabilities)
        bounds, vague = _intervals(subject, computation, interpreter)
        if any(where.any() for where in vague) and not interpreter.has_met_matrices:
            bounds, vague = _intervals(subject, computation, Known(subject.capabilities, keen=True))
        if not any(where.any() for where in vague):
            return bounds
    except NotEnclosedError:
        bounds, vague = [], []
    runs = monte_carlo_bounds(subject.capabilities, computation)
    if bounds:
        found = [_filled(*facts) for facts in zip(bounds, vague, runs, strict=True)]
    else:
        found = [_filled(Bounds(*ends), np.ones(ends[0].shape, bool), ends) for ends in runs]
    if all(b.unknown == b.low.size for b in found):
        raise Failure("no bounds are known of any number of this case, so it proves nothing")
    return found


def _filled(bounds: Bounds, where: Array, ends: tuple[Array, Array]) -> Bounds:
    """The bounds, with other ends where they are vague; infinite ones where those are not known, either."""
    low, high = np.where(where, ends[0], bounds.low), np.where(where, ends[1], bounds.high)
    with np.errstate(invalid="ignore"):
        unknown = where & ~np.isfinite(low + high)
    low, high = np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)
    counts = int(where.sum() - unknown.sum()), int(unknown.sum())
    return Bounds(low, high, np.where(where, unknown, bounds.maybe_nan), *counts)


def _intervals(
    subject: Subject, computation: Computation, interpreter: Known
) -> tuple[list[Bounds], list[Array]]:
    """The bounds of a computation on intervals, and where they are vague."""
    found = list(computation(fused_as(subject, interpreter)))
    return [bounds_of(y) for y in found], [_vague(interval(y)) for y in found]


def fused_as(subject: Subject, interpreter: Known) -> RawTensor[Any]:
    """The enclosure, fused where the backend is."""
    return Fuse(interpreter) if isinstance(subject.stack, Fuse) else interpreter


def bounds_of(y: Tensor) -> Bounds:
    """The bounds of a tensor on intervals."""
    x = interval(y)
    return Bounds(x.low, x.high, x.maybe_nan)


def between(interpreter: RawTensor[Any], a: Array, b: Array, dtype: DType) -> Tensor:
    """The intervals between pairs of floats as a tensor; values of other dtypes are exact."""
    kind = dtype if is_float(a) else DTYPES[a.dtype.name]
    x = hull(exactly(a, kind), exactly(b, kind)) if kind is dtype else exactly(a, kind)
    return Tensor(interpreter, interpreter.wrap(x) if isinstance(interpreter, Fuse) else x, a.shape, kind)


def _vague(x: Interval) -> Array:
    if x.dtype.kind != "float" or not x.low.size:
        return np.zeros(x.shape, bool)
    share = exaggerated(x.dtype.name)
    ends = np.abs(np.stack([x.low, x.high]))
    scale = max(1.0, float(np.max(ends, where=np.isfinite(ends), initial=0.0)))
    with np.errstate(invalid="ignore"):
        return ~(x.high - x.low <= share * scale) & ~(x.empty & x.maybe_nan)


def measured(bounds: Iterable[Bounds]) -> Measured:
    """A note on the bounds that do not come from intervals, for the report."""
    listed = list(bounds)
    total = sum(b.low.size for b in listed)
    estimated, unknown = sum(b.estimated for b in listed), sum(b.unknown for b in listed)
    notes = [f"{estimated} of {total} bounds are from Monte Carlo rounding"] if estimated else []
    notes += [f"{unknown} of {total} are not known"] if unknown else []
    return Measured(worst="; ".join(notes))
