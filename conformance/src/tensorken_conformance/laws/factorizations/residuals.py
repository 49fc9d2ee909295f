"""What the checks of factorizations share: one matrix with its results, residuals, the constants of the theorems."""

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
    """One matrix of a batch, and what an op made of it.

    Attributes:
        operands: the matrix, and what else the op takes.
        got: the results.
        params: of the op.
        arithmetic: of the backend.
        fact: what a function of the matrix gives; it is computed once for all backends.
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
        """gamma~_k: what k applications of elements of reflections or rotations do to a column."""
        return gamma(SMALL * max(count, 1), self.unit)


def root(n: int) -> int:
    """The least whole number that is not below the root of n.

    >>> root(4), root(5), root(0)
    (2, 3, 0)
    """
    return math.isqrt(n - 1) + 1 if n > 0 else 0


def demand(good: Any, says: str, got: Array, ulp: float | None = None) -> None:
    """Say what is not as it should be.

    Raises:
        Failure: unless all is good.
    """
    if not np.all(good):
        text = (
            np.array2string(got, separator=", ", floatmode="unique").replace("\n", "")
            if got.size <= 30
            else ""
        )
        raise Failure(f"expected {says}{', got ' + text if text else ''}", ulp=ulp)


def small(
    given: Given, says: str, residual: Dyadic, coefficient: Fraction, scale: Dyadic, got: Array
) -> float:
    """Demand that the Frobenius norm of a residual is at most `coefficient` times that of `scale`.

    Returns:
        How large it is, in units in the last place of the norm of `scale`.
    """
    error, norm = (residual * residual).sum(), (scale * scale).sum()
    unit = 2 * given.arithmetic.format.unit
    ulp = math.sqrt(float(error.over(norm))) / float(unit)
    allowed = float(coefficient / unit)
    demand(
        ~error.exceeds(norm.times(coefficient**2)),
        f"{says} to {allowed:.3g} units in the last place of the norm, is off by {ulp:.3g}",
        got,
        ulp,
    )
    return ulp


def elementwise(
    given: Given, says: str, residual: Dyadic, coefficient: Fraction, scale: Dyadic, got: Array
) -> float:
    """Demand that each element of a residual is at most `coefficient` times that of `scale`.

    Returns:
        How large they are at most, in units in the last place of the elements of `scale`.
    """
    size = abs(residual)
    unit = 2 * given.arithmetic.format.unit
    ulp = float(np.max(size.over(scale), initial=0.0)) / float(unit)
    allowed = float(coefficient / unit)
    demand(
        ~size.exceeds(scale.times(coefficient)),
        f"{says} to {allowed:.3g} units in the last place of the sizes added up, is off by {ulp:.3g}",
        got,
        ulp,
    )
    return ulp


def identity(n: int) -> Dyadic:
    """The identity matrix."""
    return Dyadic(np.eye(n, dtype=np.int64).astype(object), 0)


def orthonormal(given: Given, says: str, q: Array, allowed: Fraction) -> float:
    """Demand that the columns are orthonormal up to a deviation of `allowed` in norm from a matrix that is orthogonal.

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
