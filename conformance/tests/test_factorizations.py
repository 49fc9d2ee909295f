"""The law on factorizations: unstable ways, wrong triangles, orders and signs fail; its facts are those of numpy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from conformance.tests.examining import failures, faulty, results
from tensorken_conformance.laws.factorizations import KINDS, facts, operands
from tensorken_numpy.backend import Numpy

LAW = "values.factorizations"


def off_in_the_last(part: int) -> Callable[..., Any]:
    """The last element of a result is off by one in ten thousand."""

    def change(right: Callable[..., Any], *args: Any) -> Any:
        result = right(*args)
        parts = [np.array(y) for y in (result if isinstance(result, tuple) else (result,))]
        if parts[part].size:
            parts[part].reshape(-1)[-1] *= 1.0001
        return tuple(parts) if isinstance(result, tuple) else parts[0]

    return change


PARTS = {"qr": 2, "eigh": 2, "svd": 3, "slogdet": 2}
NATIVE = [op for op in KINDS if op not in ("cofactors", "pinv")]


@pytest.mark.parametrize(("op", "part"), [(op, part) for op in NATIVE for part in range(PARTS.get(op, 1))])
def test_one_wrong_element_fails(op: str, part: int) -> None:
    found = failures(
        faulty(op, off_in_the_last(part)),
        LAW,
        where=lambda case: case.op == op and case.values == "normals" and case.shape in ("1x1", "5x5", "7x4"),
    )
    assert found


def upper(right: Callable[..., Any], x: Any) -> Any:
    return right(np.swapaxes(x, -1, -2))


def averaged(right: Callable[..., Any], x: Any) -> Any:
    return right((x + np.swapaxes(x, -1, -2)) / 2)


def below_the_diagonal(right: Callable[..., Any], x: Any, complete: bool) -> Any:
    q, r = right(x, complete)
    return q, r + np.tril(np.full_like(r, 1e-30), -1)


def backwards(right: Callable[..., Any], x: Any) -> Any:
    return right(x)[..., ::-1]


def by_squares(right: Callable[..., Any], a: Any, b: Any) -> Any:
    """By the normal equations, which square the condition."""
    transposed = np.swapaxes(a, -1, -2)
    return right(transposed @ a, transposed @ b)


def by_inverse(right: Callable[..., Any], a: Any, b: Any) -> Any:
    y = right(a, b)
    return np.where(np.isnan(y), y, Numpy().inv(a) @ np.where(np.isnan(b), 0, b))


def numbers_for_nan(right: Callable[..., Any], x: Any) -> Any:
    return np.nan_to_num(right(x), nan=0.0)


def spoiling_the_batch(right: Callable[..., Any], x: Any) -> Any:
    """One matrix without an inverse takes all others with it."""
    y = right(x)
    return np.full_like(y, np.nan) if np.isnan(y).any() else y


def by_elimination(right: Callable[..., Any], a: Any, b: Any, lower: bool) -> Any:
    """As numpy.linalg.solve, which chooses other rows than are first."""
    return np.where(np.isnan(right(a, b, lower)), np.nan, _solved(a, b, lower)).astype(a.dtype)


def _solved(a: Any, b: Any, lower: bool) -> Any:
    triangle = np.tril(a) if lower else np.triu(a)
    regular = (np.diagonal(triangle, 0, -2, -1) != 0).all(-1) & np.isfinite(triangle).all((-2, -1))
    return np.linalg.solve(np.where(regular[..., None, None], triangle, np.eye(a.shape[-1])), b)


def without_sign(right: Callable[..., Any], x: Any) -> Any:
    return np.abs(right(x))


FAULTS = {
    "upper": ("cholesky", upper, "garbage"),
    "averaged": ("eigvalsh", averaged, "garbage"),
    "below": ("qr", below_the_diagonal, "normals"),
    "backwards": ("eigvalsh", backwards, "normals"),
    "squares": ("solve", by_squares, "nearly-singular"),
    "inverse": ("solve", by_inverse, "nearly-singular"),
    "numbers": ("inv", numbers_for_nan, "singular"),
    "batch": ("inv", spoiling_the_batch, "singular"),
    "elimination": ("triangular_solve", by_elimination, "graded"),
    "sign": ("det", without_sign, "small-integers"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_way_fails(name: str) -> None:
    op, change, values = FAULTS[name]
    found = failures(faulty(op, change), LAW, where=lambda case: case.op == op and case.dtype == "float64")
    assert values in {id.split("/")[4] for id in found}


# ---- large matrices ----------------------------------------------------------------------------------------


def beyond_a_block(right: Callable[..., Any], *args: Any) -> Any:
    """What comes after the first 64 columns, or 128 of larger ones, is four times as large."""
    result = right(*args)
    parts = [np.array(y) for y in (result if isinstance(result, tuple) else (result,))]
    end = 128 if parts[-1].shape[-2] > 128 else 64
    parts[-1][end:, -1] *= 4
    return tuple(parts) if isinstance(result, tuple) else parts[0]


@pytest.mark.parametrize("op", ["cholesky", "qr", "solve", "triangular_solve", "inv"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_wrong_block_is_seen(op: str, dtype: str) -> None:
    found = failures(
        faulty(op, beyond_a_block),
        LAW,
        where=lambda case: (case.op, case.dtype) == (op, dtype) and case.shape in operands.LARGE,
    )
    assert {id.split("/")[3] for id in found} == {"65x65", *(["130x130"] if op == "qr" else [])}


@pytest.mark.nightly
def test_in_a_deep_run_more_ops_have_large_matrices() -> None:
    found = results(Numpy(), LAW, depth="deep", where=lambda case: case.shape in operands.LARGE)
    assert {result.status for result in found} == {"passed"}
    assert {(result.case.op, result.case.shape) for result in found} == {
        *itertools.product(["cholesky", "qr", "solve", "triangular_solve", "inv"], operands.LARGE),
        ("eigh", "65x65"),
        ("svd", "65x65"),
    }


def test_factors_of_dominant_matrices_are_those_of_elimination() -> None:
    a = np.random.default_rng(0).standard_normal((6, 6))
    with pytest.raises(ValueError, match="dominant"):
        facts.factors_of_dominant(a)
    a += np.diag(np.abs(a).sum(0) + 1)
    found = facts.factors_of_dominant(a)
    assert (found >= np.abs(a) * (1 - 1e-12)).all()
    assert found.max() <= 6 * float(facts.eliminated(a).growth)
    assert facts.factors_of_dominant(np.diag([1.0, -2.0])).tolist() == [[1.0, 0.0], [0.0, 2.0]]


# ---- facts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(1, 6))
def test_facts_are_those_of_numpy(n: int) -> None:
    a = np.random.default_rng(n).standard_normal((n, n))
    rows = facts.rows_of(a)
    assert float(facts.determinant(rows)) == pytest.approx(np.linalg.det(a))
    minors = np.array([[float(v) for v in row] for row in facts.cofactors(rows)])
    assert minors == pytest.approx(np.linalg.det(a) * np.linalg.inv(a).T)
    assert facts.eigenvalues(a + a.T) == pytest.approx(np.linalg.eigvalsh(a + a.T))
    assert facts.singular_values(a) == pytest.approx(np.linalg.svd(a, compute_uv=False))
    found = facts.eliminated(a)
    assert abs(np.prod([float(pivot) for pivot in found.pivots])) == pytest.approx(abs(np.linalg.det(a)))
    assert abs(a).max() <= float(found.growth) <= abs(a).max() * 2 ** (n - 1)


def test_pseudoinverses_of_any_rank() -> None:
    a = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0]])
    found = facts.pseudoinverse(facts.rows_of(a))
    assert np.array(found, float) == pytest.approx(np.linalg.pinv(a))
    assert facts.pseudoinverse(facts.rows_of(np.zeros((2, 3)))) == [[Fraction(0)] * 2] * 3


def test_growth_follows_rows_that_tie() -> None:
    """Elimination of this matrix doubles the last column in each step, whichever of the tying rows is taken."""
    n = 5
    a = np.tril(-np.ones((n, n)), -1) + np.eye(n)
    a[:, -1] = 1
    assert facts.eliminated(a).growth >= 2 ** (n - 1)
