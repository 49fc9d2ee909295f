"""Interval: the possible values of each element of a tensor; functions that move ends outward.

The ends are float64 for floats, which holds every number of the narrower ones, int64 for integers, bool for bools.
There are no intervals of uint64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorken_conformance.numbers.host_arrays import BITS, in_dtype
from tensorken_conformance.numbers.rounding import FORMATS
from tensorken_core.language.dtypes import DType, integer_bounds

Array = np.ndarray[Any, Any]

LIBRARY = 4
"""The largest error of numpy's float64 functions, in representable numbers: that of Intel's SVML, which numpy uses; C
libraries are more accurate."""

PRECISION = {name: float(form.unit) for name, form in FORMATS.items()}
"""The unit roundoff of each dtype: the largest relative error of rounding to nearest."""

LARGEST = {name: form.max for name, form in FORMATS.items()}
SMALLEST_NORMAL = {name: form.tiny for name, form in FORMATS.items()}
SMALLEST = {name: form.smallest for name, form in FORMATS.items()}

_INFINITE = {name: int(np.array(np.inf, name).view(bits)) for name, bits in BITS.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """The possible values of each element: the numbers from `low` to `high`, and NaN where `maybe_nan`.

    Where low is above high there are no numbers: the element is NaN.

    The sums of a scatter also have their terms, and the sum of the terms' largest magnitudes: a program may add the
    terms to another value in turn.
    """

    low: Array
    high: Array
    maybe_nan: Array
    dtype: DType
    terms: Array | None = None
    magnitude: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The size along each axis."""
        return self.low.shape  # type: ignore[no-any-return]

    @property
    def empty(self) -> Array:
        """Where the element is certainly NaN."""
        return np.asarray(self.low > self.high)

    @property
    def exact(self) -> Array:
        """Where the element is certainly a single known number."""
        return np.asarray((self.low == self.high) & ~self.maybe_nan)

    @property
    def finite(self) -> Array:
        """Where the element is certainly a finite number."""
        return np.asarray(~(self.maybe_nan | self.empty | np.isinf(self.low) | np.isinf(self.high)))

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low, self.maybe_nan, self.dtype)

    def each(self, change: Callable[[Array], Array]) -> Interval:
        """The interval with a function applied to its three arrays, such as a movement."""
        terms, magnitude = [None if x is None else change(x) for x in (self.terms, self.magnitude)]
        return Interval(
            change(self.low), change(self.high), change(self.maybe_nan), self.dtype, terms, magnitude
        )


def combined(function: Callable[..., Array], *xs: Interval) -> Interval:
    """The interval with a function applied to the three arrays of several intervals, such as a concatenation."""
    arrays = zip(*[(x.low, x.high, x.maybe_nan) for x in xs], strict=True)
    low, high, maybe_nan = [function(*each) for each in arrays]
    return Interval(low, high, maybe_nan, xs[0].dtype)


def no_nan(*like: Array) -> Array:
    """False for each element of the broadcast arrays."""
    return np.zeros(np.broadcast_shapes(*[x.shape for x in like]), bool)


def exactly(values: Array, dtype: DType) -> Interval:
    """The interval of exactly these values.

    >>> from tensorken_core.language.dtypes import float32
    >>> x = exactly(np.array([1.0, np.nan]), float32)
    >>> x.low.tolist(), x.high.tolist(), x.maybe_nan.tolist()
    ([1.0, inf], [1.0, -inf], [False, True])
    """
    if dtype.kind != "float":
        wide = np.array(values, np.bool_ if dtype.kind == "bool" else np.int64)
        return Interval(wide, wide, no_nan(wide), dtype)
    wide = in_dtype(np.asarray(values, np.float64), dtype.name).astype(np.float64)
    nan = np.isnan(wide)
    if not nan.any():
        return Interval(wide, wide, nan, dtype)
    return Interval(np.where(nan, np.inf, wide), np.where(nan, -np.inf, wide), nan, dtype)


def anything(shape: tuple[int, ...], dtype: DType) -> Interval:
    """The interval of all values."""
    if dtype.kind == "float":
        return Interval(np.full(shape, -np.inf), np.full(shape, np.inf), np.ones(shape, bool), dtype)
    low, high = ends_of(dtype)
    kind: Any = np.bool_ if dtype.kind == "bool" else np.int64
    return Interval(np.full(shape, low, kind), np.full(shape, high, kind), np.zeros(shape, bool), dtype)


def ends_of(dtype: DType) -> tuple[int, int]:
    """The least and the largest number of an integer dtype, or of bool."""
    return (0, 1) if dtype.kind == "bool" else integer_bounds(dtype)


def hull(a: Interval, b: Interval) -> Interval:
    """The smallest interval that contains both."""
    return Interval(np.minimum(a.low, b.low), np.maximum(a.high, b.high), a.maybe_nan | b.maybe_nan, a.dtype)


def chosen(condition: Array, a: Interval, b: Interval) -> Interval:
    """a where the condition holds, else b."""

    def one(p: Array, q: Array) -> Array:
        return np.where(condition, p, q)

    return combined(one, a, b)


def where_known(known: Array, x: Interval) -> Interval:
    """x where it is known, else all values; a flag may be that of a vector or a matrix in the last axes."""
    flags = known.reshape(known.shape + (1,) * (x.low.ndim - known.ndim))
    return chosen(flags, x, anything(x.shape, x.dtype))


# ---- floats: ends that move outward --------------------------------------------------------------------------


def ordinal(x: Array, dtype: str) -> Array:
    """The position of each number among all of its dtype; both zeros are 0.

    >>> ordinal(np.array([0.0, 1e-45, -1e-45]), "float32").tolist()
    [0, 1, -1]
    """
    bits = in_dtype(x, dtype).view(BITS[dtype]).astype(np.int64)
    least = np.iinfo(BITS[dtype]).min
    return np.asarray(np.where(bits < 0, least - np.minimum(bits, 0), bits))


def stepped(x: Array, steps: int | Array, dtype: str) -> Array:
    """Each number, rounded to the dtype, moved up by so many representable ones, at most to infinity.

    >>> stepped(np.array([1.0]), 1, "float16").tolist()
    [1.0009765625]
    """
    if isinstance(steps, int) and steps == 0:
        return in_dtype(x, dtype).astype(np.float64)
    infinite = _INFINITE[dtype]
    position = ordinal(x, dtype)
    position = np.clip(position + steps, -infinite, infinite)
    bits = np.where(position < 0, np.iinfo(BITS[dtype]).min - np.minimum(position, 0), position)
    return bits.astype(BITS[dtype]).view(dtype).astype(np.float64)


def outward(low: Array, high: Array, spare: float | Array) -> tuple[Array, Array]:
    """Ends moved outward by a number of float64 roundings, the errors of computing the ends.

    An end that overflowed moves back to the largest number.
    """
    share, largest, smallest = np.asarray(spare) * 2.0**-52, LARGEST["float64"], SMALLEST["float64"]
    below, above = np.minimum(low, largest), np.maximum(high, -largest)
    below, above = below - (np.abs(below) * share + smallest), above + (np.abs(above) * share + smallest)
    return np.where(low == -np.inf, low, below), np.where(high == np.inf, high, above)


def rounded(low: Array, high: Array, maybe_nan: Array, dtype: DType, steps: int) -> Interval:
    """The interval of results between these ends with an error of at most so many representable numbers."""
    return Interval(stepped(low, -steps, dtype.name), stepped(high, steps, dtype.name), maybe_nan, dtype)


def around(middle: Array, slack: Array, known: Array, dtype: DType, steps: int = 1) -> Interval:
    """The interval `middle` plus or minus `slack`, rounded with an error of some numbers, where it is known."""
    return where_known(known, rounded(middle - slack, middle + slack, no_nan(middle), dtype, steps))


def width(x: Interval) -> Array:
    """The distance between the ends, in representable numbers of the dtype; -1 where only NaN is possible."""
    if x.dtype.kind != "float":
        return np.subtract(x.high, x.low, dtype=np.float64)
    return np.where(x.empty, -1.0, apart(x.low, x.high, x.dtype.name))


def apart(a: Array, b: Array, dtype: str) -> Array:
    """How many representable numbers b is above a, as float64.

    >>> apart(np.array([1.0]), np.array([1.0 + 2**-52]), "float64").tolist()
    [1.0]
    """
    p, q = ordinal(a, dtype), ordinal(b, dtype)
    roughly = q.astype(np.float64) - p.astype(np.float64)
    with np.errstate(over="ignore"):
        return np.asarray(np.where(np.abs(roughly) < 2.0**62, q - p, roughly))
