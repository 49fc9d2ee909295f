"""Errors: the largest errors of a backend, as declared, and at most the limits of the kit."""

from __future__ import annotations

import numpy as np

from tensorken_conformance import limits
from tensorken_conformance.enclosure.interval import (
    PRECISION,
    SMALLEST,
    SMALLEST_NORMAL,
    Array,
    Interval,
    hull,
    rounded,
)
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DType

EXACT = frozenset(
    ("neg", "abs", "sign", "maximum", "minimum", "relu", "round", "trunc", "ceil", "floor", "remainder")
    + ("signbit", "copysign", "nextafter", "max", "min", "sort", "cast")
)
"""The ops that do not round, or round an exact result once."""

PRODUCTS = frozenset(("mul", "square", "fused_multiply_add"))
"""The ops whose results a sum may read before they are rounded."""


class Errors:
    """The largest errors of a backend with these capabilities.

    >>> from tensorken_core.language.dtypes import float32
    >>> Errors(Capabilities(ulp={"exp": 2})).steps("exp", float32)
    2

    Declared errors beyond the limits of the kit's levels do not count:

    >>> Errors(Capabilities(ulp={"sub": 1000})).steps("sub", float32)
    0
    """

    def __init__(self, capabilities: Capabilities) -> None:
        self.capabilities = capabilities
        self._steps: dict[tuple[str, DType], int] = {}

    def steps(self, op: str, dtype: DType) -> int:
        """The largest distance of a result from the correctly rounded one, in representable numbers."""
        key = op, dtype
        found = self._steps.get(key)
        if found is None:
            limit = 0 if op in EXACT else limits.allowed(self.capabilities, op, dtype.name, 2)
            if self.capabilities.contracts and op in PRODUCTS:  # an exact product lies between two numbers
                limit = max(limit, 1)
            found = self._steps[key] = limit
        return found

    def unit(self, dtype: DType) -> float:
        """The relative error of one sum or product of two numbers: half a unit, and the declared error."""
        steps = max(self.steps(op, dtype) for op in ("add", "sub", "mul"))
        return (2 * steps + 1) * PRECISION[dtype.name]

    def gamma(self, terms: float | Array, dtype: DType) -> Array:
        """n * u / (1 - n * u): the error of a sum of n terms, relative to the sum of their magnitudes.

        N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, 2002, section 4.2; infinite
        where n * u is not below 1, since there is no bound then.
        """
        share = np.asarray(terms) * self.unit(dtype)
        return np.where(share < 1.0, share / np.where(share < 1.0, 1.0 - share, 1.0), np.inf)

    def flushes(self, dtype: DType) -> bool:
        """Whether subnormal numbers may be flushed to zero."""
        return dtype.name in self.capabilities.flushes_subnormals

    def lost(self, dtype: DType) -> float:
        """The largest absolute error of rounding to nearest below the normal numbers."""
        name = dtype.name
        return SMALLEST_NORMAL[name] if self.flushes(dtype) else SMALLEST[name]

    def flushed(self, x: Interval) -> Interval:
        """The interval, extended to zero if its subnormal numbers may be flushed."""
        if x.dtype.kind != "float" or not self.flushes(x.dtype):
            return x
        normal = SMALLEST_NORMAL[x.dtype.name]
        low = np.where((x.low > 0) & (x.low < normal), 0.0, x.low)
        high = np.where((x.high < 0) & (x.high > -normal), 0.0, x.high)
        return Interval(low, high, x.maybe_nan, x.dtype)

    def result(self, op: str, low: Array, high: Array, maybe_nan: Array, dtype: DType) -> Interval:
        """The possible results of an op whose exact result, rounded once to float64, lies between the ends."""
        return self.flushed(rounded(low, high, maybe_nan, dtype, self.steps(op, dtype)))


def with_hull(x: Interval, where: Array, value: float) -> Interval:
    """The interval with one more value where the condition holds."""
    one = np.full(x.shape, value)
    wider = hull(x, Interval(one, one, x.maybe_nan, x.dtype))
    return Interval(
        np.where(where, wider.low, x.low), np.where(where, wider.high, x.high), x.maybe_nan, x.dtype
    )
