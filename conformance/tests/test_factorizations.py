"""values.factorizations: unstable algorithms, wrong triangles, orders and signs fail; exact facts agree with numpy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from conformance.tests.examining import failed_cases, faulty_backend, run_law
from tensorken_conformance.laws.factorizations import KINDS, facts, operands
from tensorken_numpy.backend import Numpy

LAW = "values.factorizations"


def with_wrong_last_element(part: int) -> Callable[..., Any]:
    """A change that multiplies the last element of a result by 1.0001."""

    def change(original: Callable[..., Any], *args: Any) -> Any:
        result = original(*args)
        parts = [np.array(y) for y in (result if isinstance(result, tuple) else (result,))]
        if parts[part].size:
            parts[part].reshape(-1)[-1] *= 1.0001
        return tuple(parts) if isinstance(result, tuple) else parts[0]

    return change


PARTS = {"qr": 2, "eigh": 2, "svd": 3, "slogdet": 2}
NATIVE = [op for op in KINDS if op not in ("cofactors", "pinv")]


@pytest.mark.parametrize(("op", "part"), [(op, part) for op in NATIVE for part in range(PARTS.get(op, 1))])
def test_a_wrong_last_element_fails(op: str, part: int) -> None:
    failed = failed_cases(
        faulty_backend(op, with_wrong_last_element(part)),
        LAW,
        where=lambda case: case.op == op and case.values == "normals" and case.shape in ("1x1", "5x5", "7x4"),
    )
    assert failed


def of_transpose(original: Callable[..., Any], x: Any) -> Any:
    return original(np.swapaxes(x, -1, -2))


def of_symmetric_part(original: Callable[..., Any], x: Any) -> Any:
    return original((x + np.swapaxes(x, -1, -2)) / 2)


def nonzero_below_the_diagonal(original: Callable[..., Any], x: Any, complete: bool) -> Any:
    q, r = original(x, complete)
    return q, r + np.tril(np.full_like(r, 1e-30), -1)


def reversed_values(original: Callable[..., Any], x: Any) -> Any:
    return original(x)[..., ::-1]


def by_normal_equations(original: Callable[..., Any], a: Any, b: Any) -> Any:
    """Solve the normal equations, which square the condition number."""
    transposed = np.swapaxes(a, -1, -2)
    return original(transposed @ a, transposed @ b)


def by_inverse(original: Callable[..., Any], a: Any, b: Any) -> Any:
    y = original(a, b)
    return np.where(np.isnan(y), y, Numpy().inv(a) @ np.where(np.isnan(b), 0, b))


def zeros_for_nan(original: Callable[..., Any], x: Any) -> Any:
    return np.nan_to_num(original(x), nan=0.0)


def nan_for_the_batch(original: Callable[..., Any], x: Any) -> Any:
    """Return NaN for the whole batch if one matrix is singular."""
    y = original(x)
    return np.full_like(y, np.nan) if np.isnan(y).any() else y


def by_elimination(original: Callable[..., Any], a: Any, b: Any, lower: bool) -> Any:
    """Use numpy.linalg.solve, which pivots rows."""
    return np.where(np.isnan(original(a, b, lower)), np.nan, _solved(a, b, lower)).astype(a.dtype)


def _solved(a: Any, b: Any, lower: bool) -> Any:
    triangle = np.tril(a) if lower else np.triu(a)
    regular = (np.diagonal(triangle, 0, -2, -1) != 0).all(-1) & np.isfinite(triangle).all((-2, -1))
    return np.linalg.solve(np.where(regular[..., None, None], triangle, np.eye(a.shape[-1])), b)


def without_sign(original: Callable[..., Any], x: Any) -> Any:
    return np.abs(original(x))


FAULTS = {
    "transpose": ("cholesky", of_transpose, "garbage"),
    "symmetric part": ("eigvalsh", of_symmetric_part, "garbage"),
    "below": ("qr", nonzero_below_the_diagonal, "normals"),
    "backwards": ("eigvalsh", reversed_values, "normals"),
    "normal equations": ("solve", by_normal_equations, "nearly-singular"),
    "inverse": ("solve", by_inverse, "nearly-singular"),
    "zeros": ("inv", zeros_for_nan, "singular"),
    "batch": ("inv", nan_for_the_batch, "singular"),
    "elimination": ("triangular_solve", by_elimination, "graded"),
    "sign": ("det", without_sign, "small-integers"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faulty_algorithms_fail(name: str) -> None:
    op, change, values = FAULTS[name]
    failed = failed_cases(
        faulty_backend(op, change), LAW, where=lambda case: case.op == op and case.dtype == "float64"
    )
    assert values in {id.split("/")[4] for id in failed}


# ---- large matrices ----------------------------------------------------------------------------------------


def wrong_after_a_block(original: Callable[..., Any], *args: Any) -> Any:
    """Multiply the last column by 4 after the first 64 rows, or 128 of larger matrices."""
    result = original(*args)
    parts = [np.array(y) for y in (result if isinstance(result, tuple) else (result,))]
    end = 128 if parts[-1].shape[-2] > 128 else 64
    parts[-1][end:, -1] *= 4
    return tuple(parts) if isinstance(result, tuple) else parts[0]


@pytest.mark.parametrize("op", ["cholesky", "qr", "solve", "triangular_solve", "inv"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_wrong_rows_of_large_matrices_fail(op: str, dtype: str) -> None:
    failed = failed_cases(
        faulty_backend(op, wrong_after_a_block),
        LAW,
        where=lambda case: (case.op, case.dtype) == (op, dtype) and case.shape in operands.LARGE,
    )
    assert {id.split("/")[3] for id in failed} == {"65x65", *(["130x130"] if op == "qr" else [])}


@pytest.mark.nightly
def test_deep_runs_have_large_matrices_for_more_ops() -> None:
    results = run_law(Numpy(), LAW, depth="deep", where=lambda case: case.shape in operands.LARGE)
    assert {result.status for result in results} == {"passed"}
    assert {(result.case.op, result.case.shape) for result in results} == {
        *itertools.product(["cholesky", "qr", "solve", "triangular_solve", "inv"], operands.LARGE),
        ("eigh", "65x65"),
        ("svd", "65x65"),
    }


def test_factors_of_dominant_matrices_bound_those_of_elimination() -> None:
    a = np.random.default_rng(0).standard_normal((6, 6))
    with pytest.raises(ValueError, match="dominant"):
        facts.factors_of_dominant(a)
    a += np.diag(np.abs(a).sum(0) + 1)
    bounds = facts.factors_of_dominant(a)
    assert (bounds >= np.abs(a) * (1 - 1e-12)).all()
    assert bounds.max() <= 6 * float(facts.eliminated(a).growth)
    assert facts.factors_of_dominant(np.diag([1.0, -2.0])).tolist() == [[1.0, 0.0], [0.0, 2.0]]


# ---- facts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(1, 6))
def test_facts_agree_with_numpy(n: int) -> None:
    a = np.random.default_rng(n).standard_normal((n, n))
    rows = facts.rows_of(a)
    assert float(facts.determinant(rows)) == pytest.approx(np.linalg.det(a))
    minors = np.array([[float(v) for v in row] for row in facts.cofactors(rows)])
    assert minors == pytest.approx(np.linalg.det(a) * np.linalg.inv(a).T)
    assert facts.eigenvalues(a + a.T) == pytest.approx(np.linalg.eigvalsh(a + a.T))
    assert facts.singular_values(a) == pytest.approx(np.linalg.svd(a, compute_uv=False))
    elimination = facts.eliminated(a)
    assert abs(np.prod([float(pivot) for pivot in elimination.pivots])) == pytest.approx(
        abs(np.linalg.det(a))
    )
    assert abs(a).max() <= float(elimination.growth) <= abs(a).max() * 2 ** (n - 1)


def test_pseudoinverses_of_rank_deficient_matrices() -> None:
    a = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0]])
    inverse = facts.pseudoinverse(facts.rows_of(a))
    assert np.array(inverse, float) == pytest.approx(np.linalg.pinv(a))
    assert facts.pseudoinverse(facts.rows_of(np.zeros((2, 3)))) == [[Fraction(0)] * 2] * 3


def test_growth_considers_tied_pivots() -> None:
    """Elimination of this matrix doubles the last column in each step, whichever tied row is the pivot."""
    n = 5
    a = np.tril(-np.ones((n, n)), -1) + np.eye(n)
    a[:, -1] = 1
    assert facts.eliminated(a).growth >= 2 ** (n - 1)
