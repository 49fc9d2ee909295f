"""values.complex-factorizations: factors and solutions of complex matrices, and complex eigenvalues.

A complex matrix X + iY acts as the real matrix [[X, -Y], [Y, X]], and so do its products and its adjoint.
Residuals are those of these real matrices, without rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws.factorizations import facts, operands
from tensorken_conformance.laws.factorizations.residuals import (
    Given,
    demand,
    identity,
    orthonormal,
    root,
    small,
)
from tensorken_conformance.oracles import terms
from tensorken_conformance.oracles.bounds import Arithmetic, Array, Dyadic
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS

ID = "values.complex-factorizations"

Pair = tuple[Array, Array]

SQUARE = ("1x1", "2x2", "3x3", "5x5", "batch", "0x0")
RECTANGULAR = ("3x2", "2x3", "5x1", "tall-batch")

VALUES = ("normals", "small-integers", "structured", "nan")


def embedded(x: Pair) -> Array:
    """The real matrix that acts as a complex one.

    >>> embedded((np.array([[1]]), np.array([[2]]))).tolist()
    [[1, -2], [2, 1]]
    """
    return np.block([[x[0], -x[1]], [x[1], x[0]]])


def exactly(x: Pair) -> Dyadic:
    """The same without rounding in what follows."""
    return Dyadic.of(embedded(x))


def diagonal(values: Array) -> Dyadic:
    """The real diagonal matrix, embedded."""
    return Dyadic.of(np.diag(np.concatenate([values, values])))


def hermitian(a: Pair) -> Pair:
    """The Hermitian matrix with this lower triangle; imaginary parts of its diagonal are not read."""
    real, imag = np.tril(a[0]), np.tril(a[1], -1)
    return real + np.tril(real, -1).T, imag - imag.T


def _bound(given: Given, n: int, growth: bool = False) -> Fraction:
    """The backward error of n * n complex reflections, or of elimination, whose elements may grow by 2**(n - 1)."""
    return given.turned(4 * n * n) * (2 ** max(n - 1, 0) if growth else 1)


# ---- checks ------------------------------------------------------------------------------------------------


def _solve(given: Given) -> None:
    a, b, x = given.operands[:2], given.operands[2:], given.got
    matrix, n, growth = (a[0], a[1]), len(a[0]), True
    if given.params:
        inside = np.tri(n) == 1 if given.params[0] else np.tri(n).T == 1
        matrix, growth = (np.where(inside, a[0], 0), np.where(inside, a[1], 0)), False
    exact, found = exactly(matrix), exactly((x[0], x[1]))
    residual = exactly((b[0], b[1])) - (exact @ found)
    small(given, "A @ x = b", residual, _bound(given, n, growth), abs(exact) @ abs(found), x[0])


def _inv(given: Given) -> None:
    exact, found = exactly(given.operands[:2]), exactly(given.got[:2])  # type: ignore[arg-type]
    n = len(given.got[0])
    scale = abs(exact) @ abs(found)
    small(given, "A @ X = 1", (exact @ found) - identity(2 * n), _bound(given, n, True), scale, given.got[0])


def _pinv(given: Given) -> None:
    a, x = exactly(given.operands[:2]), exactly(given.got[:2])  # type: ignore[arg-type]
    bound = (
        _bound(given, max(given.operands[0].shape)) * 64
    )  # the matrices have full rank, and condition below 8
    for says, residual, scale in (
        ("A @ X @ A = A", (a @ x @ a) - a, abs(a) @ abs(x) @ abs(a)),
        ("X @ A @ X = X", (x @ a @ x) - x, abs(x) @ abs(a) @ abs(x)),
        ("A @ X to be Hermitian", (a @ x) - (a @ x).T, abs(a) @ abs(x)),
        ("X @ A to be Hermitian", (x @ a) - (x @ a).T, abs(x) @ abs(a)),
    ):
        small(given, says, residual, bound, scale, given.got[0])


def _cholesky(given: Given) -> None:
    a, got = hermitian((given.operands[0], given.operands[1])), (given.got[0], given.got[1])
    demand([np.triu(part, 1) == 0 for part in got], "zeros above the diagonal of L", got[0])
    demand((np.diag(got[0]) > 0) & (np.diag(got[1]) == 0), "a real positive diagonal of L", got[0])
    factor = exactly(got)
    residual, scale = exactly(a) - (factor @ factor.T), abs(factor) @ abs(factor).T
    small(given, "L @ L.H = A", residual, _bound(given, len(a[0])), scale, got[0])


def _qr(given: Given) -> None:
    a, q, r = exactly(given.operands[:2]), given.got[:2], given.got[2:]  # type: ignore[arg-type]
    n = max(given.operands[0].shape)
    demand([np.tril(part, -1) == 0 for part in r], "zeros below the diagonal of R", r[0])
    demand(np.diag(r[1]) == 0, "a real diagonal of R", r[1])
    deviation = root(2 * n) * _bound(given, n)
    orthonormal(given, "the columns of Q", embedded((q[0], q[1])), deviation)
    product = exactly((q[0], q[1])) @ exactly((r[0], r[1]))
    small(given, "Q @ R = A", product - a, 2 * deviation, a, r[0])


def _eigh(given: Given) -> None:
    a, values = hermitian((given.operands[0], given.operands[1])), given.got[0]
    demand(np.diff(values) >= 0, "ascending values", values)
    vectors = (given.got[1], given.got[2])
    deviation = root(2 * len(values)) * _bound(given, len(values))
    orthonormal(given, "the columns of V", embedded(vectors), deviation)
    matrix, turned = exactly(a), exactly(vectors)
    residual = (matrix @ turned) - (turned @ diagonal(values))
    small(given, "A @ V = V * values", residual, 2 * deviation, matrix, values)


def _svd(given: Given) -> None:
    left, values, right = given.got[:2], given.got[2], given.got[3:]
    a, least = exactly(given.operands[:2]), len(values)  # type: ignore[arg-type]
    n = max(given.operands[0].shape)
    demand(np.append(np.diff(values) <= 0, values >= 0), "descending values, none of them negative", values)
    deviation = root(2 * n) * _bound(given, n)
    orthonormal(given, "the columns of U", embedded((left[0], left[1])), deviation)
    orthonormal(given, "the rows of Vh", embedded((right[0], right[1])).T, deviation)
    first = exactly((left[0][:, :least], left[1][:, :least])) @ diagonal(values)
    residual = a - (first @ exactly((right[0][:least], right[1][:least])))
    small(given, "(U * S) @ Vh = A", residual, 3 * deviation, a, values)


def _values(true: Callable[[Array], list[float]], matrix: Callable[[Pair], Pair], order: int) -> Any:
    """A check of real eigenvalues or singular values; the embedded matrix has each of them twice."""

    def check(given: Given) -> None:
        a, (got,) = embedded(matrix((given.operands[0], given.operands[1]))), given.got
        demand(order * np.diff(got) >= 0, "values in order", got)
        known = true(a)
        off = np.abs(got.astype(np.float64) - np.array(known[::2][: len(got)]))
        allowed = float(_bound(given, max(a.shape) // 2)) * float(np.linalg.norm(a.astype(np.float64)))
        demand(off <= allowed, f"the values {known[::2]} give or take {allowed:.3g}", got)

    return check


Gaussian = tuple[Fraction, Fraction]


def _times(x: Gaussian, y: Gaussian) -> Gaussian:
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def _determinant(rows: list[list[Gaussian]]) -> tuple[Gaussian, float]:
    """The determinant by its definition, and the sum of the sizes of its terms."""
    n = len(rows)
    total, size = (Fraction(0), Fraction(0)), 0.0
    for order in itertools.permutations(range(n)):
        term: Gaussian = (Fraction(1), Fraction(0))
        for i, j in enumerate(order):
            term = _times(term, rows[i][j])
        odd = sum(order[i] > order[j] for i in range(n) for j in range(i + 1, n)) % 2
        total = (total[0] - term[0], total[1] - term[1]) if odd else (total[0] + term[0], total[1] + term[1])
        size += float(abs(term[0]) + abs(term[1]))
    return total, size


def _rows(given: Given) -> list[list[Gaussian]]:
    parts = [facts.rows_of(x) for x in given.operands[:2]]
    return [list(zip(p, q, strict=True)) for p, q in zip(*parts, strict=True)]


def _near(given: Given, says: str, got: Any, true: Gaussian, size: float, n: int) -> None:
    allowed = float(_bound(given, n, True)) * size
    off = max([abs(float(Fraction(float(x)) - y)) for x, y in zip(got, true, strict=True)])
    expected = complex(float(true[0]), float(true[1]))
    demand(off <= allowed, f"{says} {expected} give or take {allowed:.3g}", np.array(got))


def _det(given: Given) -> None:
    true, size = _determinant(_rows(given))
    _near(given, "the determinant", given.got, true, size, len(given.operands[0]))


def _slogdet(given: Given) -> None:
    real, imag, logarithm = [np.float64(x) for x in given.got]
    true, size = _determinant(_rows(given))
    unit = float(_bound(given, 1))
    demand(abs(np.hypot(real, imag) - 1.0) <= unit, "a sign of modulus 1", given.got[0])
    found = np.exp(logarithm) * np.array([real, imag])
    _near(given, "the determinant", found, true, size * (1.0 + abs(logarithm)), len(given.operands[0]))


def _cofactors(given: Given) -> None:
    rows = _rows(given)
    for i, j in np.ndindex(given.got[0].shape):
        minor = [[v for q, v in enumerate(row) if q != j] for p, row in enumerate(rows) if p != i]
        (real, imag), _ = _determinant(minor)
        true = (-real, -imag) if (i + j) % 2 else (real, imag)
        norm = float(np.linalg.norm(embedded((given.operands[0], given.operands[1])).astype(np.float64)))
        got = given.got[0][i, j], given.got[1][i, j]
        _near(
            given, f"the cofactor [{i}, {j}]", got, true, max(norm, 1.0) ** max(len(rows) - 1, 0), len(rows)
        )


def _eig(given: Given) -> None:
    n = len(given.got[0])
    values, vectors = (given.got[0], given.got[1]), (given.got[2], given.got[3])
    lengths = (vectors[0].astype(np.float64) ** 2 + vectors[1].astype(np.float64) ** 2).sum(0)
    demand(abs(lengths - 1.0) <= float(_bound(given, n)), "columns of length 1", vectors[0])
    turned = exactly(vectors)
    matrix = exactly(_complex(given))
    residual = (matrix @ turned) - (turned @ exactly((np.diag(values[0]), np.diag(values[1]))))
    small(given, "A @ V = V * values", residual, 16 * n * _bound(given, n), matrix, values[0])


def _eigvals(given: Given) -> None:
    """The sums of powers of the eigenvalues are the traces of powers of the matrix."""
    real, imag = _complex(given)
    a = real.astype(np.complex128) + 1j * imag
    values = given.got[0].astype(np.complex128) + 1j * given.got[1]
    norm, power = float(np.linalg.norm(a)), np.eye(len(a), dtype=np.complex128)
    for k in range(1, len(a) + 1):
        power = power @ a
        allowed = 16 * k * len(a) ** 2 * float(_bound(given, len(a))) * norm**k
        off = abs(np.sum(values**k) - np.trace(power))
        demand(off <= allowed, f"values whose powers {k} add up to {np.trace(power)}", np.stack(given.got))


def _complex(given: Given) -> Pair:
    real = given.operands[0]
    return real, given.operands[1] if len(given.operands) > 1 else np.zeros_like(real)


CHECKS: dict[str, tuple[str, Callable[[Given], None], tuple[tuple[Any, ...], ...]]] = {
    "complex_solve": ("general", _solve, ((),)),
    "complex_triangular_solve": ("general", _solve, ((True,), (False,))),
    "complex_inv": ("general", _inv, ((),)),
    "complex_det": ("general", _det, ((),)),
    "complex_cofactors": ("general", _cofactors, ((),)),
    "complex_slogdet": ("general", _slogdet, ((),)),
    "complex_pinv": ("deficient", _pinv, ((),)),
    "complex_cholesky": ("positive", _cholesky, ((),)),
    "complex_qr": ("general", _qr, ((False,), (True,))),
    "complex_eigh": ("general", _eigh, ((),)),
    "complex_eigvalsh": ("general", _values(facts.eigenvalues, hermitian, 1), ((),)),
    "complex_svd": ("general", _svd, ((False,), (True,))),
    "complex_svdvals": ("general", _values(facts.singular_values, lambda a: a, -1), ((),)),
    "complex_eig": ("general", _eig, ((),)),
    "complex_eigvals": ("general", _eigvals, ((),)),
    "eig": ("general", _eig, ((),)),
    "eigvals": ("general", _eigvals, ((),)),
}
"""For each op the kind of its matrices, the check of one matrix, and the params that are tried."""

ANY_SHAPE = ("complex_pinv", "complex_qr", "complex_svd", "complex_svdvals")
"""The ops that take matrices that are not square."""

NOT_STRUCTURED = ("complex_solve", "complex_inv", "complex_slogdet", "complex_svdvals")
"""The ops without structured matrices: those may be singular, and mpmath finds no values of some."""


def _at_once(function: Callable[[Array], Any]) -> Any:
    raise AssertionError("checks of complex matrices remember nothing")


# ---- cases -------------------------------------------------------------------------------------------------


def cases(subject: Subject) -> Iterator[Case]:
    """Each op and dtype on matrices of some shapes and classes; in the smoke run one of each op that is overridden."""
    has = [name for name in ("float32", "float64") if name in subject.capabilities.dtypes]
    if subject.depth == "smoke":
        own = [op for op in CHECKS if subject.backend.has(OPS[op])]
        yield from [Case(ID, op, dtype, "3x3", "normals", "0") for op in own for dtype in has[:1]]
        return
    for op, (_, _, params) in CHECKS.items():
        for dtype, values in itertools.product(has, VALUES):
            if values == "structured" and op in NOT_STRUCTURED:
                continue
            for shape in (*SQUARE, *(RECTANGULAR if op in ANY_SHAPE else ())):
                if values == "nan" and (
                    0 in operands.SHAPES[shape] or (op, shape) == ("complex_cofactors", "1x1")
                ):
                    continue
                yield from [Case(ID, op, dtype, shape, values, str(i)) for i in range(len(params))]


def _drawn(rng: np.random.Generator, case: Case) -> list[Array]:
    """The operands of a case."""
    kind, values = CHECKS[case.op][0], case.values
    if case.op == "complex_triangular_solve":
        kind = ("lower", "upper")[int(case.detail)]
    shape = operands.SHAPES[case.shape]
    one = "normals" if values == "nan" or (kind == "deficient" and values == "small-integers") else values
    real = operands.drawn(rng, one, shape, case.dtype, kind)
    imag = operands.drawn(rng, one, shape, case.dtype, kind if kind in ("lower", "upper") else "general")
    if (
        kind in ("positive", "deficient") and real.size
    ):  # so little that the matrix stays positive, or regular
        imag = np.tril(imag, -1)
        imag = (imag * (0.25 / (1.0 + np.abs(imag).sum()))).astype(case.dtype)
    if values == "nan":
        real[(0,) * (real.ndim - 2) + (shape[-2] - 1, 0)] = np.nan
    found = [real] if case.op in ("eig", "eigvals") else [real, imag]
    if case.op.endswith("solve"):
        sides = rng.standard_normal((2, *shape[:-1], 2)).astype(case.dtype)
        found += [sides[0], sides[1]]
    if case.op == "complex_pinv":
        found.append(np.full(shape[:-2], 2.0**-10, case.dtype))
    return found


@law(ID, cases, level=2)
def complex_factorizations(subject: Subject, case: Case) -> None:
    """Results on complex matrices, and complex eigenvalues, are exact for a matrix within the backward error.

    As `values.factorizations` has it for real matrices, with bounds for complex reflections and elimination.  Triangles
    are zero where they should be, diagonals of factors are real, eigenvalues ascend, singular values descend; a matrix
    with NaN has NaN in its result, and the others of its batch are right.
    """
    _, check, params = CHECKS[case.op]
    given, arguments = _drawn(terms.generator(subject, case), case), params[int(case.detail)]
    tensors = [subject.tensor(x, DTYPES[case.dtype]) for x in given]
    got = [subject.read(y) for y in Subject.results(OPS[case.op], tensors, arguments)]
    arithmetic = Arithmetic(subject.capabilities, case.dtype)
    indices = list(np.ndindex(given[0].shape[:-2]))
    for index in indices:
        parts, where = tuple([x[index] for x in got]), f"{case.op}{arguments or ''}{terms.at(index)}"
        reads_nan = arguments != (False,) or case.op != "complex_triangular_solve" or case.shape == "1x1"
        try:
            if case.values == "nan" and index == indices[0] and reads_nan:
                demand(any([np.isnan(x).any() for x in parts]), "NaN, as the matrix has one", parts[0])
                continue
            demand(all([np.isfinite(x).all() for x in parts]), "finite results", parts[0])
            check(Given(tuple([x[index] for x in given]), parts, arguments, arithmetic, _at_once))
        except Failure as failure:
            raise Failure(f"{where}: {failure.says}", ulp=failure.ulp) from None
