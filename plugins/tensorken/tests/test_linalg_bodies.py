"""The default bodies of the ops on matrices have small residuals and orthonormal factors, like LAPACK."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tensorken as tk
from core.tests.examples import examples
from core.tests.support import Required, array
from tensorken.ops.jacobi import round_robin
from tensorken_core.language.op import OPS
from tensorken_core.tensor.tensor import apply
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

pytestmark = pytest.mark.slow

BACKENDS = {
    "Required()": Required(),
    "Reference()": Reference(),
    "Numpy()": Numpy(),
}
BODIES = pytest.mark.parametrize("backend", BACKENDS)
TRIALS = settings(max_examples=examples(15), deadline=None)

NUMBERS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 2.0, 0.5, 1e-9, 1e9]),
    st.floats(1e-9, 4.0),
    st.floats(-4.0, -1e-9),  # squares of smaller numbers underflow
)


@st.composite
def matrices(draw, square=False, most=8):
    """A small stack of matrices: of any numbers, or of low rank, or with equal rows, in either dtype."""
    dtype = draw(st.sampled_from(["float32", "float64"]))
    m = draw(st.integers(1, most))
    n = m if square else draw(st.integers(1, most))
    batch = draw(st.sampled_from([(), (2,), (1, 2)]))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    kind = draw(st.sampled_from(["any", "normal", "low rank", "equal", "graded", "listed"]))
    if kind == "listed":
        x = rng.choice(draw(st.lists(NUMBERS, min_size=1, max_size=6)), (*batch, m, n))
    elif kind == "low rank":
        rank = draw(st.integers(0, min(m, n)))
        x = rng.standard_normal((*batch, m, rank)) @ rng.standard_normal((*batch, rank, n))
    elif kind == "equal":
        x = np.ones((*batch, m, n)) * rng.standard_normal()
    elif kind == "graded":
        x = rng.standard_normal((*batch, m, n)) * np.logspace(0, -12, n)
    else:
        x = rng.uniform(-2, 2, (*batch, m, n)) if kind == "any" else rng.standard_normal((*batch, m, n))
    return np.asarray(x, dtype)


def run(name, backend, *operands, params=()):
    result = apply(OPS[name], [tk.tensor(x, backend=BACKENDS[backend]) for x in operands], params)
    return tuple(map(array, result)) if isinstance(result, tuple) else array(result)


def agree_but_for_rounding(x, y, scale=1.0, times=8):
    """Two matrices of at most 8 rows differ by a few rounding errors, relative to a size."""
    assert x.shape == y.shape
    assert x.dtype == y.dtype
    bound = times * 8 * np.finfo(x.dtype).eps * scale
    assert np.abs(x - y).max(initial=0.0) <= bound, f"{np.abs(x - y).max()} > {bound}"


def size(x):
    """The largest size of an element, 1 if that is 0."""
    return float(np.abs(x).max(initial=0.0)) or 1.0


def identity(x):
    return np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape)


def transposed(x):
    return np.swapaxes(x, -1, -2)


@BODIES
@TRIALS
@given(x=matrices(), complete=st.booleans())
def test_qr(backend, x, complete):
    q, r = run("qr", backend, x, params=(complete,))
    agree_but_for_rounding(q @ r, x, size(x))
    agree_but_for_rounding(transposed(q) @ q, identity(transposed(q) @ q))
    assert not np.tril(r, -1).any()


@BODIES
@TRIALS
@given(x=matrices(), full=st.booleans())
def test_svd(backend, x, full):
    left, values, right = run("svd", backend, x, params=(full,))
    count = values.shape[-1]
    agree_but_for_rounding((left[..., :count] * values[..., None, :]) @ right[..., :count, :], x, 8 * size(x))
    agree_but_for_rounding(transposed(left) @ left, identity(transposed(left) @ left))
    agree_but_for_rounding(right @ transposed(right), identity(right @ transposed(right)))
    assert (values >= 0).all()
    assert (np.diff(values) <= 0).all()
    agree_but_for_rounding(values, np.linalg.svd(x, compute_uv=False), 8 * size(x))
    agree_but_for_rounding(run("svdvals", backend, x), values, 8 * size(x))


@BODIES
@TRIALS
@given(x=matrices(square=True))
def test_eigh_reads_the_lower_triangle(backend, x):
    whole = np.tril(x) + transposed(np.tril(x, -1))
    values, vectors = run("eigh", backend, x)
    agree_but_for_rounding((vectors * values[..., None, :]) @ transposed(vectors), whole, 8 * size(x))
    agree_but_for_rounding(transposed(vectors) @ vectors, identity(vectors))
    assert (np.diff(values) >= 0).all()
    agree_but_for_rounding(values, np.linalg.eigvalsh(whole), 8 * size(x))
    agree_but_for_rounding(run("eigvalsh", backend, x), values, 8 * size(x))


@BODIES
@TRIALS
@given(x=matrices(square=True))
def test_cholesky_reads_the_lower_triangle(backend, x):
    n = x.shape[-1]
    positive = x @ transposed(x) + np.asarray(size(x) ** 2 * 0.1 * n, x.dtype) * identity(x)
    factor = run("cholesky", backend, np.tril(positive))
    agree_but_for_rounding(factor @ transposed(factor), positive, size(positive))
    assert not np.triu(factor, 1).any()
    assert (np.diagonal(factor, 0, -2, -1) > 0).all()


def well_conditioned(x):
    return x / np.asarray(size(x), x.dtype) + np.asarray(2 * x.shape[-1], x.dtype) * identity(x)[..., ::-1, :]


@BODIES
@TRIALS
@given(x=matrices(square=True), count=st.integers(0, 3))
def test_solutions_inverses_and_determinants(backend, x, count):
    """The largest elements are on the antidiagonal, so that rows must be exchanged."""
    x = well_conditioned(x)
    b = np.sin(np.arange(np.prod((*x.shape[:-1], count)))).reshape((*x.shape[:-1], count)).astype(x.dtype)
    agree_but_for_rounding(x @ run("solve", backend, x, b), b, size(x))
    agree_but_for_rounding(x @ run("inv", backend, x), identity(x), size(x))
    exact = np.linalg.det(x.astype("float64"))
    np.testing.assert_allclose(run("det", backend, x), exact, rtol=64 * np.finfo(x.dtype).eps)
    sign, logarithm = run("slogdet", backend, x)
    np.testing.assert_array_equal(sign, np.sign(exact).astype(x.dtype))
    np.testing.assert_allclose(logarithm, np.log(np.abs(exact)), rtol=64 * np.finfo(x.dtype).eps)


@BODIES
@pytest.mark.parametrize("lower", [True, False])
@TRIALS
@given(x=matrices(square=True))
def test_triangular_solve_does_not_read_the_other_triangle(backend, lower, x):
    n = x.shape[-1]
    x = x / np.asarray(size(x), x.dtype) + np.asarray(2 * n, x.dtype) * identity(x)
    triangle = np.tril(x) if lower else np.triu(x)
    inside = (np.tri(n) if lower else np.tri(n).T) == 1
    spoilt = np.where(inside, triangle, np.asarray(np.nan, x.dtype))
    b = np.cos(np.arange(np.prod((*x.shape[:-1], 2)))).reshape((*x.shape[:-1], 2)).astype(x.dtype)
    agree_but_for_rounding(
        triangle @ run("triangular_solve", backend, spoilt, b, params=(lower,)), b, size(x)
    )


@BODIES
@pytest.mark.parametrize("lower", [True, False])
@TRIALS
@given(seed=st.integers(0, 10**6), n=st.integers(1, 8), dtype=st.sampled_from(["float32", "float64"]))
def test_triangular_solve_keeps_the_short_rows_of_graded_matrices(backend, lower, seed, n, dtype):
    """|b - a @ x| <= gamma_n |a| @ |x|: N. J. Higham, "Accuracy and Stability of Numerical Algorithms", theorem 8.5."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, n)) * 2.0 ** -(4.0 * rng.permutation(n))[:, None]
    a = np.asarray(np.tril(x) if lower else np.triu(x), dtype)
    b = np.asarray(rng.standard_normal((n, 1)), dtype)
    got = run("triangular_solve", backend, a, b, params=(lower,))
    a, b, got = (np.vectorize(Fraction, otypes=[object])(v.astype("float64")) for v in (a, b, got))
    unit = Fraction(float(np.finfo(dtype).eps)) / 2
    assert (abs(b - a @ got) <= (n + 2) * unit * (abs(a) @ abs(got))).all()


@BODIES
@TRIALS
@given(x=matrices(square=True, most=5))
def test_cofactors_of_any_matrix(backend, x):
    """x @ cofactors.mT = det * identity, also where x is singular; and each is the determinant of a minor."""
    x = x / np.asarray(size(x), x.dtype)
    n = x.shape[-1]
    cofactors = run("cofactors", backend, x)
    expected = np.empty_like(x, "float64")
    for i in range(n):
        for j in range(n):
            minor = np.delete(np.delete(x, i, -2), j, -1).astype("float64")
            expected[..., i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    agree_but_for_rounding(cofactors, expected.astype(x.dtype), 24.0)


def test_every_pair_of_columns_meets_once_in_a_sweep():
    for n in range(2, 12):
        meetings = [frozenset((i, p)) for partner in round_robin(n) for i, p in enumerate(partner) if i < p]
        assert len(meetings) == len(set(meetings)) == n * (n - 1) // 2
        assert all(partner[p] == i for partner in round_robin(n) for i, p in enumerate(partner))


def difficult(n):
    """Matrices on which rotations converge late: graded, clustered, defective, of rank one."""
    rng = np.random.default_rng(n)
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    yield "hilbert", 1 / (np.arange(n)[:, None] + np.arange(n) + 1.0)
    yield "graded", (q * np.logspace(0, -30, n)) @ q.T
    yield "graded rows", np.logspace(0, -30, n)[:, None] * rng.standard_normal((n, n))
    yield "cluster", (q * (1 + 1e-9 * np.arange(n))) @ q.T
    yield "two values", (q * np.where(np.arange(n) % 2, 1.0, -1.0)) @ q.T
    yield "ones", np.ones((n, n))
    yield "tiny", np.outer(q[0], q[-1]) * 1e-30
    yield "jordan", np.eye(n) + np.diag(np.ones(n - 1), 1)
    yield "zero", np.zeros((n, n))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [5, 20])
def test_the_number_of_sweeps_settles_difficult_matrices(n, dtype):
    names, stack = zip(*difficult(n), strict=True)
    x = np.stack(stack).astype(dtype)
    symmetric = (x + transposed(x)) / 2
    left, singular, right = run("svd", "Required()", x, params=(False,))
    values, vectors = run("eigh", "Required()", symmetric)
    errors = {
        "svd": (left * singular[:, None, :]) @ right - x,
        "eigh": (vectors * values[:, None, :]) @ transposed(vectors) - symmetric,
    }
    scale = np.maximum(np.abs(x).max((-2, -1)), np.finfo(dtype).tiny)
    relative = {what: np.abs(error).max((-2, -1)) / scale for what, error in errors.items()}
    for what, factor in {"U": left, "V": transposed(right), "vectors": vectors}.items():
        relative[what] = np.abs(transposed(factor) @ factor - np.eye(n)).max((-2, -1))
    for what, errors_of_all in relative.items():
        for name, error in zip(names, errors_of_all.tolist(), strict=True):
            assert error <= 8 * n * np.finfo(dtype).eps, (what, name)


@BODIES
def test_a_singular_matrix_of_a_batch_is_nan_and_spoils_no_other(backend):
    x = np.array([[[2.0, 0.0], [0.0, 4.0]], [[1.0, 2.0], [2.0, 4.0]], [[0.0, 1.0], [1.0, 0.0]]])
    inverse = run("inv", backend, x)
    assert np.isnan(inverse[1]).all()
    np.testing.assert_array_equal(inverse[::2], [[[0.5, 0.0], [0.0, 0.25]], [[0.0, 1.0], [1.0, 0.0]]])
    factor = run("cholesky", backend, x)
    np.testing.assert_array_equal(factor[0], [[2.0**0.5, 0.0], [0.0, 2.0]])
    assert np.isnan(factor[1:]).all()
    solution = run("triangular_solve", backend, np.triu(x), np.ones((3, 2, 1)), params=(False,))
    np.testing.assert_array_equal(solution[:, :, 0], [[0.5, 0.25], [0.5, 0.25], [np.nan] * 2])
    sign, logarithm = run("slogdet", backend, x)
    np.testing.assert_array_equal(sign, [1.0, 0.0, -1.0])
    np.testing.assert_allclose(logarithm, [np.log(8), -np.inf, 0.0], rtol=1e-15)


@BODIES
@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "svd", "svdvals", "qr", "inv", "det", "cholesky"])
def test_nan_in_a_matrix_gives_nan_and_no_error(backend, name):
    x = np.array([[[np.nan, 1.0], [1.0, 2.0]], [[2.0, 0.0], [0.0, 1.0]]])
    result = run(name, backend, x, params=(False,) * len(OPS[name].params))
    for y in result if isinstance(result, tuple) else (result,):
        assert np.isnan(y[0]).any()
        assert np.isfinite(y[1]).all()


@BODIES
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 0), (0, 2, 2), (2, 0, 3)])
def test_empty_matrices(backend, shape):
    """As numpy has them."""
    x = np.zeros(shape)
    for complete in (False, True):
        mode = "complete" if complete else "reduced"
        for mine, theirs in zip(
            run("qr", backend, x, params=(complete,)), np.linalg.qr(x, mode), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)
        for mine, theirs in zip(
            run("svd", backend, x, params=(complete,)), np.linalg.svd(x, complete), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)
    if shape[-1] == shape[-2]:
        for name in ("inv", "det", "cholesky", "eigvalsh"):
            np.testing.assert_array_equal(run(name, backend, x), getattr(np.linalg, name)(x))
        for name in ("slogdet", "eigh"):
            for mine, theirs in zip(run(name, backend, x), getattr(np.linalg, name)(x), strict=True):
                np.testing.assert_array_equal(mine, theirs)


@BODIES
def test_eigenvalues_near_the_largest_number_do_not_overflow(backend):
    x = np.array([[[65510.0, 1.0], [3e38, 12.0]], [[2.0, 0.0], [0.0, 1.0]]], "float32")
    np.testing.assert_allclose(run("eigvalsh", backend, x), [[-3e38, 3e38], [1.0, 2.0]], rtol=1e-6)
