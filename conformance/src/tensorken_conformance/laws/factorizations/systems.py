"""Checks of solutions, inverses, determinants and pseudoinverses."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from tensorken_conformance.laws.factorizations import facts
from tensorken_conformance.laws.factorizations.residuals import Given, demand, elementwise, identity, root
from tensorken_conformance.oracles.bounds import Array, Dyadic

UP = 1 + 2.0**-20
"""The factor of bounds computed in float64, which makes up for their rounding errors."""

EXACTLY = 8
"""The largest size of matrices that are eliminated with fractions."""


def solve(given: Given) -> float:
    """|b - A @ x| <= gamma_{3n} |L| @ |U| @ |x|, for the L and U of elimination with partial pivoting.

    Higham, theorem 9.4. No element of L is above 1 in size, none of U above the growth of A, which is known exactly or,
    of large matrices, by theorem 9.9; n of their products are added.
    """
    (a, b), (x,) = given.operands, given.got
    return _solved(given, "A @ x = b", Dyadic.of(a), Dyadic.of(b), Dyadic.of(x), x)


def _solved(given: Given, says: str, a: Dyadic, b: Dyadic, x: Dyadic, got: Array) -> float:
    """Require the columns of x to solve a @ x = b within the backward error of elimination."""
    if not got.size:
        return 0.0
    sizes, coefficient = _sizes(given)
    return elementwise(given, says, b - (a @ x), coefficient, sizes @ abs(x), got)


def _growth(given: Given) -> Fraction:
    """The largest element that occurs in elimination of the matrix."""
    return Fraction(given.fact(facts.eliminated).growth)


def _sizes(given: Given) -> tuple[Dyadic, Fraction]:
    """A bound on |L| @ |U|, and the backward error of elimination and of its triangular solves, relative to that.

    For a large matrix, which is dominant and thus well conditioned, twice the factors without rounding.
    """
    n = len(given.operands[0])
    if n > EXACTLY:
        return Dyadic.of(2 * given.fact(facts.factors_of_dominant)), given.gamma(3 * n)
    return Dyadic.of(np.ones((n, n))).times(_growth(given)), _backward(given, n, 3 * n)


def _backward(given: Given, n: int, count: int) -> Fraction:
    """gamma_count |L| @ |U| over the growth: n elements of L are at most 1, and the growth has a rounding error."""
    return given.gamma(count) * n * (1 + n * given.gamma(3 * n))


def triangular_solve(given: Given) -> float:
    """|b - T @ x| <= gamma_{n+1} |T| @ |x|: Higham, theorem 8.5, and a rounding for a product with a reciprocal."""
    (a, b), (x,) = given.operands, given.got
    inside = np.tri(*a.shape) == 1 if given.params[0] else np.tri(*a.shape).T == 1
    triangle, exact = Dyadic.of(np.where(inside, a, 0)), Dyadic.of(x)
    if not x.size:
        return 0.0
    residual, scale = Dyadic.of(b) - (triangle @ exact), abs(triangle) @ abs(exact)
    return elementwise(given, "T @ x = b", residual, given.gamma(len(a) + 1), scale, x)


def inv(given: Given) -> float:
    """A @ X = 1 or X @ A = 1, each to the backward error of elimination: Higham, section 14.3, methods A to D."""
    (a,), (x,) = given.operands, given.got
    n, exact, found = len(a), Dyadic.of(a), Dyadic.of(x)
    if not n:
        return 0.0
    sizes, coefficient = _sizes(given)
    right = identity(n) - (exact @ found), sizes @ abs(found)
    left = identity(n) - (found @ exact), abs(found) @ sizes
    sided = right if abs(left[0]).exceeds(left[1].times(coefficient)).any() else left
    return elementwise(given, "A @ X = 1 or X @ A = 1", sided[0], coefficient, sided[1], x)


def _determinant(a: Array) -> tuple[Fraction, Fraction]:
    """The determinant, and the sum of the sizes of its cofactors."""
    rows = facts.rows_of(a)
    sizes = sum([abs(v) for row in facts.cofactors(rows) for v in row], Fraction(0))
    return facts.determinant(rows), sizes


def _moved(given: Given, a: Array) -> tuple[Fraction, float]:
    """The determinant, and a bound on its error by elimination.

    Elimination gives factors of A + E (Higham, theorem 9.3), and det(A + E) is the sum over k of products of minors of
    E of size k and of A of size n - k. The first is exact; those from k = 2 on are bounded after J. Hadamard.
    """
    n = len(a)
    det, sizes = given.fact(_determinant)
    error = float(_backward(given, n, n) * _growth(given)) if n > 1 else 0.0
    lengths = sorted([float(np.linalg.norm(row)) for row in a.astype(np.float64)], reverse=True)
    rest = 0.0
    for k in range(2, n + 1):
        rest += math.comb(n, k) ** 2 * k ** (k / 2) * error**k * math.prod(lengths[: n - k])
    return det, (error * float(sizes) + rest) * UP


def _logs(given: Given, det: Fraction, moved: float) -> float:
    """The sum of the sizes of the logarithms of pivots; the last may be anything if the matrix is nearly singular."""
    pivots = given.fact(facts.eliminated).pivots
    logs = sum([abs(math.log(abs(pivot))) for pivot in pivots if pivot])
    form = given.arithmetic.format
    return logs + (0.0 if moved * 2 < abs(det) else -form.least * math.log(2))


def det(given: Given) -> None:
    """The determinant is that of a matrix within the backward error of elimination, as the product of its pivots.

    Or as the exponential of the sum of their logarithms, with the errors of exp and log (Higham, section 14.6).
    """
    (a,), (got,) = given.operands, given.got
    n, arithmetic = len(a), given.arithmetic
    true, moved = _moved(given, a)
    adding, log, exp = (
        float(x) for x in (given.gamma(n + 1), arithmetic.error("log"), arithmetic.error("exp"))
    )
    by_logs = math.expm1(_logs(given, true, moved) * (adding + log)) * (1 + exp) + exp
    allowed = (moved + (float(abs(true)) + moved) * max(adding, by_logs)) * UP
    allowed += float(arithmetic.format.subnormal)
    off = abs(float(Fraction(float(got)) - true))
    demand(off <= allowed, f"{float(true)!r} give or take {allowed:.3g}", got)


def slogdet(given: Given) -> None:
    """The sign is that of the determinant if rounding cannot change it; the logarithm is that of its size."""
    (a,), (sign, log) = given.operands, given.got
    n, arithmetic = len(a), given.arithmetic
    true, moved = _moved(given, a)
    size = float(abs(true))
    adding, each = float(given.gamma(n + 1)), float(arithmetic.error("log"))
    if size <= 2 * moved:
        demand(sign in (-1, 0, 1), "a sign of -1, 0 or 1", sign)
        return
    demand(sign == (1 if true > 0 else -1), f"the sign of {float(true)!r}", sign)
    with localcontext() as context:
        context.prec = 40
        exact = (Decimal(abs(true).numerator) / Decimal(true.denominator)).ln()
        off = float(abs(Decimal(float(log)) - exact))
    allowed = -math.log1p(-moved / size) + _logs(given, true, moved) * ((1 + adding) * (1 + each) - 1)
    allowed = allowed * UP + float(arithmetic.format.subnormal)
    demand(off <= allowed, f"the logarithm {float(exact)!r} give or take {allowed:.3g}", log)


def cofactors(given: Given) -> None:
    """The cofactors are those of a matrix within the backward error of the singular value decomposition.

    The cofactors of A + E are off by at most (n - 1) |E| times the n - 2 largest singular values, in the 2-norm, as
    those of the matrix of minors (R. A. Horn, C. R. Johnson, "Matrix Analysis", section 0.8).
    """
    (a,), (got,) = given.operands, given.got
    n = len(a)
    if n < 2:
        demand(got == 1, "1, the determinant of nothing", got)
        return
    values = given.fact(facts.singular_values)
    true = given.fact(lambda a: facts.cofactors(facts.rows_of(a)))
    turned = float(given.turned(2 * n * n))
    error = turned * math.hypot(*values)
    largest = [value + error for value in values]
    factors = math.prod(largest[: n - 1])
    allowed = root(n) * (n - 1) * error * math.prod(largest[: n - 2])
    allowed += factors * (2 * root(n) * turned * (1 + turned) + n * float(given.gamma(3 * n)))
    _beside("the cofactors of A", got, true, allowed * UP)


def _beside(says: str, got: Array, true: facts.Rows, allowed: float) -> None:
    """Require a matrix to be within a distance of the true one, in norm."""
    off = [
        [Fraction(float(v)) - w for v, w in zip(p, q, strict=True)] for p, q in zip(got, true, strict=True)
    ]
    norm = math.hypot(*[float(v) for row in off for v in row])
    demand(norm <= allowed, f"{says} give or take {allowed:.3g} in norm, is off by {norm:.3g}", got)


def pinv(given: Given) -> None:
    """The pseudoinverse is that of a matrix of the same rank within the backward error of the singular values.

    P.-A. Wedin, "Perturbation theory for pseudo-inverses", 1973: the pseudoinverses of A and A + E of the same rank are
    apart by at most (1 + sqrt(5)) / 2 times the product of their norms and that of E.
    """
    (a, _), (got,) = given.operands, given.got
    if not a.size:
        return
    true = given.fact(lambda a: facts.pseudoinverse(facts.rows_of(a)))
    values = given.fact(facts.singular_values)
    least = min(a.shape)
    turned = float(given.turned(a.size + least**2))
    # and the singular values that were cut off
    error = 2 * turned * (1 + 2 * root(least)) * math.hypot(*values)
    kept = [value for value in values if value > 2 * error]
    if not kept:
        demand(got == 0, "zeros", got)
        return
    inverse = 1 / (kept[-1] - error)
    allowed = root(least) * 1.62 * inverse**2 * error
    allowed += inverse * (2 * root(least) * turned * (1 + turned) + least * float(given.gamma(least + 4)))
    _beside("the pseudoinverse of A", got, true, allowed * UP)
