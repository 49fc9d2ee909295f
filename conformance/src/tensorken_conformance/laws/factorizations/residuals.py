"""Residuals: the error bounds that the checks of factorizations share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tensorken_conformance.case import Failure
from tensorken_conformance.oracles.bounds import Arithmetic, Array, Dyadic, gamma

SMALL = 8
"""The small integer constant c in gamma~_k = gamma_{c k}, which Higham, section 19.3, leaves open; one for all."""


@dataclass(frozen=True, slots=True)
class Given:
    """One matrix of a batch, and the results of an op on it.

    Attributes:
        operands: the matrix, and the other operands of the op.
        got: the results.
        params: of the op.
        arithmetic: of the backend.
        fact: computes a function of the matrix, once for all backends.
    """

    operands: tuple[Array, ...]
    got: tuple[Array, ...]
    params: tuple[Any, ...]
    arithmetic: Arithmetic
    fact: Callable[[Callable[[Array], Any]], Any]

    @property
    def unit(self) -> Fraction:
        """The relative error of one operation."""
        return self.arithmetic.error("add", "sub", "mul", "div", "sqrt")

    def gamma(self, count: int) -> Fraction:
        """gamma_n for this arithmetic."""
        return gamma(count, self.unit)

    def turned(self, count: int) -> Fraction:
        """gamma~_k: the relative error of a column after k elements of reflections or rotations."""
        return gamma(SMALL * max(count, 1), self.unit)


def root(n: int) -> int:
    """The smallest integer that is not below the root of n.

    >>> root(4), root(5), root(0)
    (2, 3, 0)
    """
    return math.isqrt(n - 1) + 1 if n > 0 else 0


def demand(good: Any, says: str, got: Array, ulp: float | None = None) -> None:
    """Require all of `good` to be True.

    Raises:
        Failure: if some is False.
    """
    if not np.all(good):
        text = np.array2string(got, separator=", ", floatmode="unique").replace("\n", "")
        raise Failure(f"expected {says}{', got ' + text if got.size <= 30 else ''}", ulp=ulp)


def _bounded(
    given: Given, says: str, good: Any, size: float, coefficient: Fraction, of: str, got: Array
) -> float:
    """Require `good`; returns the size of a residual in units in the last place, which is also in the message."""
    unit = float(2 * given.arithmetic.format.unit)
    ulp, allowed = size / unit, float(coefficient) / unit
    demand(good, f"{says} to {allowed:.3g} units in the last place of {of}, is off by {ulp:.3g}", got, ulp)
    return ulp


def small(
    given: Given, says: str, residual: Dyadic, coefficient: Fraction, scale: Dyadic, got: Array
) -> float:
    """Require the Frobenius norm of a residual to be at most `coefficient` times that of `scale`.

    Returns:
        The norm, in units in the last place of the norm of `scale`.
    """
    error, norm = (residual * residual).sum(), (scale * scale).sum()
    good, size = ~error.exceeds(norm.times(coefficient**2)), math.sqrt(float(error.over(norm)))
    return _bounded(given, says, good, size, coefficient, "the norm", got)


def elementwise(
    given: Given, says: str, residual: Dyadic, coefficient: Fraction, scale: Dyadic, got: Array
) -> float:
    """Require each element of a residual to be at most `coefficient` times that of `scale`.

    Returns:
        The largest element, in units in the last place of the elements of `scale`.
    """
    size = abs(residual)
    good, largest = ~size.exceeds(scale.times(coefficient)), float(np.max(size.over(scale), initial=0.0))
    return _bounded(given, says, good, largest, coefficient, "the sizes added up", got)


def identity(n: int) -> Dyadic:
    """The identity matrix."""
    return Dyadic(np.eye(n, dtype=np.int64).astype(object), 0)


def orthonormal(given: Given, says: str, q: Array, allowed: Fraction) -> float:
    """Require the columns to be orthonormal, with a deviation from an orthogonal matrix of at most `allowed` in norm.

    Q = P + D with orthonormal columns in P and a norm of D of at most d has |Q.T @ Q - 1| <= 2 d + d**2.
    """
    exact, n = Dyadic.of(q), q.shape[1]
    residual = (exact.T @ exact) - identity(n)
    error = (residual * residual).sum()
    ulp = math.sqrt(float(error.over(Dyadic.number(1)))) / float(2 * given.arithmetic.format.unit)
    demand(
        ~error.exceeds(Dyadic.number(1).times((2 * allowed + allowed**2) ** 2)),
        f"{says} to be orthonormal, but their products are off by {ulp:.3g} units in the last place of 1",
        q,
        ulp,
    )
    return ulp
