"""tk.linalg agrees with numpy.linalg, on numpy and reference, in batches, and has clear errors."""

from __future__ import annotations

import inspect
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tensorken as tk
from core.tests.examples import examples
from core.tests.support import Nothing, Required, array
from tensorken.linalg import EighResult, LstsqResult, QRResult, SlogdetResult, SVDResult
from tensorken_core.errors import (
    ArgumentError,
    DTypeError,
    GradientError,
    LinearAlgebraError,
    ShapeError,
    TensorkenError,
)
from tensorken_reference.backend import Reference

pytestmark = pytest.mark.slow

linalg = tk.linalg
ON = pytest.mark.parametrize("backend", ["numpy", "reference", Required()], ids=str)
INF = math.inf


def normal(*shape, seed=0, dtype="float64"):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def positive(*batch, n=3, dtype="float64"):
    x = normal(*batch, n, n)
    return (x @ np.swapaxes(x, -1, -2) + np.eye(n)).astype(dtype)


def agree(mine, theirs, dtype="float64"):
    eps = np.finfo(dtype).eps
    results = mine if isinstance(mine, tuple) else (mine,)
    wanted = theirs if isinstance(theirs, tuple) else (theirs,)
    for y, expected in zip(results, wanted, strict=True):
        expected = np.asarray(expected)
        assert y.shape == expected.shape
        if expected.dtype.kind == "f":
            assert str(y.dtype) == str(expected.dtype)
        np.testing.assert_allclose(array(y), expected, rtol=200 * eps, atol=200 * eps)


# Each function with the same arguments for both libraries; results that are unique, so that they can be compared.
SAME = {
    "inv": [(normal(3, 3),), (normal(2, 2, 4, 4),), (normal(1, 1),)],
    "det": [(normal(3, 3),), (normal(2, 2, 4, 4),), (normal(1, 1),)],
    "slogdet": [(normal(3, 3),), (normal(2, 5, 4, 4),)],
    "cholesky": [(positive(),), (positive(2, 2, n=4),)],
    "eigvalsh": [(positive(),), (positive(2, 2, n=4),)],
    "svdvals": [(normal(3, 4),), (normal(2, 2, 4, 3),)],
    "solve": [
        (normal(3, 3), normal(3)),
        (normal(3, 3), normal(3, 2)),
        (normal(2, 3, 3), normal(3)),
        (normal(2, 1, 3, 3), normal(4, 3, 2)),
    ],
    "pinv": [(normal(3, 4),), (normal(2, 4, 3),), (np.outer(np.arange(3.0), np.ones(4)),)],
    "matrix_rank": [
        (normal(3, 4),),
        (np.zeros((3, 2)),),
        (np.stack([np.eye(3), np.ones((3, 3))]),),
        (np.ones(3),),
    ],
    "matrix_power": [
        (normal(3, 3), n) for n in (0, 1, 2, 3, 7, -1, -3)
    ] + [(normal(2, 2, 2), 3)],
    "matrix_transpose": [(normal(2, 3, 4),)],
    "trace": [(normal(2, 3, 4),), (normal(3, 3),)],
    "diagonal": [(normal(2, 3, 4),)],
    "outer": [(normal(3), normal(4))],
    "cross": [(normal(2, 3), normal(2, 3, seed=1))],
    "vecdot": [(normal(2, 3), normal(2, 3, seed=1))],
    "tensordot": [(normal(2, 3, 4), normal(3, 4, 2))],
    "matmul": [(normal(2, 3, 4), normal(4, 2))],
    "multi_dot": [
        ([normal(3, 4), normal(4, 2)],),
        ([normal(3), normal(3, 5), normal(5, 2), normal(2)],),
        ([normal(3, 5), normal(5, 2), normal(2, 7), normal(7, 1)],),
        ([normal(2), normal(2, 3)],),
    ],
    "cond": [(normal(3, 3),), (normal(2, 3, 3),), (normal(3, 4),)]
    + [(normal(2, 3, 3), p) for p in (1, -1, 2, -2, INF, -INF, "fro", "nuc")],
}  # fmt: skip
CASES = [(name, args) for name, calls in SAME.items() for args in calls]


@ON
@pytest.mark.parametrize(("name", "args"), CASES, ids=[f"{name}{i}" for i, (name, _) in enumerate(CASES)])
def test_it_computes_what_numpy_computes(backend, name, args):
    given = [
        [tk.tensor(x, backend=backend) for x in a] if isinstance(a, list) else
        tk.tensor(a, backend=backend) if isinstance(a, np.ndarray) else a
        for a in args
    ]  # fmt: skip
    expected = getattr(np.linalg, name)(*args)
    if name == "matrix_rank":
        expected = np.asarray(expected, "int32")
    agree(getattr(linalg, name)(*given), tuple(expected) if isinstance(expected, tuple) else expected)


@ON
@pytest.mark.parametrize("name", ["inv", "det", "cholesky", "eigvalsh", "svdvals", "pinv"])
def test_float32_stays_and_integers_become_float32(backend, name):
    whole = np.array([[4, 1], [1, 3]], "int32")
    expected = getattr(np.linalg, name)(whole.astype("float32"))
    for x in (whole.astype("float32"), whole, whole.astype("int64")):
        agree(getattr(linalg, name)(tk.tensor(x, backend=backend)), expected, "float32")
    assert linalg.det(tk.tensor([[True]])).dtype == tk.float32


@ON
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2)])
def test_qr_and_svd_in_all_their_forms(backend, shape):
    x = normal(*shape)
    t = tk.tensor(x, backend=backend)
    for mode in ("reduced", "complete"):
        factors = linalg.qr(t, mode=mode)
        assert isinstance(factors, QRResult)
        expected = np.linalg.qr(x, mode)  # Householder's reflections leave no choice, not even of signs
        agree((factors.Q, factors.R), (expected.Q, expected.R))
    agree(linalg.qr(t, mode="r"), np.linalg.qr(x, "r"))
    for full in (True, False):
        factors = linalg.svd(t, full_matrices=full)
        assert isinstance(factors, SVDResult)
        u, s, vh = map(array, factors)
        expected = np.linalg.svd(x, full)
        assert (u.shape, vh.shape) == (expected.U.shape, expected.Vh.shape)
        k = s.shape[-1]
        np.testing.assert_allclose((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x, atol=1e-14)
    agree(linalg.svd(t, compute_uv=False), np.linalg.svd(x, compute_uv=False))


@ON
def test_eigh_takes_the_symmetric_part_or_a_triangle(backend):
    x = normal(2, 3, 3)
    t = tk.tensor(x, backend=backend)
    result = linalg.eigh(t)
    assert isinstance(result, EighResult)
    half = (x + np.swapaxes(x, -1, -2)) / 2
    for uplo, whole in ((None, half), ("L", x), ("U", x)):
        values, vectors = linalg.eigh(t, uplo)
        expected = np.linalg.eigh(whole, uplo or "L")
        agree(values, expected.eigenvalues)
        agree(abs(vectors), np.abs(expected.eigenvectors))
        agree(linalg.eigvalsh(t, UPLO=uplo), expected.eigenvalues)


@ON
def test_cholesky_upper_and_the_symmetric_part(backend):
    x = positive(2)
    t = tk.tensor(x, backend=backend)
    agree(linalg.cholesky(t, upper=True), np.swapaxes(np.linalg.cholesky(x), -1, -2))
    skew = normal(3, 3)
    agree(linalg.cholesky(t + tk.tensor(skew - skew.T, backend=backend)), np.linalg.cholesky(x))


@ON
@pytest.mark.parametrize("lower", [True, False])
def test_solve_triangular(backend, lower):
    a, b = normal(2, 3, 3) + 3 * np.eye(3), normal(3, 2)
    x = linalg.solve_triangular(*(tk.tensor(v, backend=backend) for v in (a, b)), lower=lower)
    agree(x, np.linalg.solve(np.tril(a) if lower else np.triu(a), b))
    vector = linalg.solve_triangular(*(tk.tensor(v, backend=backend) for v in (a, b[:, 0])), lower=lower)
    agree(vector, array(x)[..., 0])


@ON
def test_slogdet_names_its_results_and_does_not_overflow(backend):
    result = linalg.slogdet(tk.tensor(np.eye(30) * 1e30, backend=backend))
    assert isinstance(result, SlogdetResult)
    assert result.logabsdet.item() == pytest.approx(30 * 30 * math.log(10))
    singular = linalg.slogdet(tk.zeros((2, 2), backend=backend))
    assert (singular.sign.item(), singular.logabsdet.item()) == (0.0, -INF)


@ON
@pytest.mark.parametrize("shapes", [((4, 2), (4,)), ((4, 2), (4, 3)), ((2, 4), (2,)), ((3, 3), (3, 1))])
def test_lstsq(backend, shapes):
    a, b = normal(*shapes[0]), normal(*shapes[1], seed=1)
    result = linalg.lstsq(tk.tensor(a, backend=backend), tk.tensor(b, backend=backend))
    assert isinstance(result, LstsqResult)
    x, residuals, rank, values = np.linalg.lstsq(a, b, rcond=None)
    agree((result.x, result.residuals, result.singular_values), (x, residuals, values))
    assert result.rank.item() == rank


@ON
def test_lstsq_of_a_rank_deficient_matrix_is_the_shortest_solution(backend):
    a, b = np.outer(np.arange(1.0, 5), [1.0, 2.0]), normal(4)
    result = linalg.lstsq(tk.tensor(a, backend=backend), tk.tensor(b, backend=backend))
    x, _, rank, _ = np.linalg.lstsq(a, b, rcond=None)
    agree(result.x, x)
    assert result.rank.item() == rank == 1
    agree(result.residuals, np.array([((b - a @ x) ** 2).sum()]))
    many = linalg.lstsq(tk.tensor(normal(5, 4, 2)), tk.tensor(normal(4)))
    assert (many.x.shape, many.residuals.shape, many.rank.shape) == ((5, 2), (5, 1), (5,))


def test_singular_values_below_rtol_count_as_zero():
    x = np.diag([1.0, 1e-3, 1e-12])
    for rtol, rank in ((None, 3), (1e-8, 2), (0.1, 1)):
        assert linalg.matrix_rank(tk.tensor(x), rtol=rtol).item() == rank
        agree(linalg.pinv(tk.tensor(x), rtol=rtol), np.linalg.pinv(x, rtol=rtol or 1e-15))
        agree(linalg.pinv(tk.tensor(x), rcond=rtol), np.linalg.pinv(x, rtol=rtol or 1e-15))
    assert linalg.matrix_rank(tk.tensor(x), tol=1e-2).item() == 1
    each = linalg.matrix_rank(tk.tensor(np.stack([x, x])), rtol=tk.tensor([1e-8, 0.1]))
    assert each.tolist() == [2, 1]


# ---- norms -------------------------------------------------------------------------------------------------


VECTOR_ORDERS = [None, 2, 1, 0, INF, -INF, 3, 0.5, -1, -2.5]
MATRIX_ORDERS = [None, "fro", "nuc", 1, -1, 2, -2, INF, -INF]


@ON
@pytest.mark.parametrize("ord", VECTOR_ORDERS)
def test_norms_of_vectors(backend, ord):
    x = normal(2, 3, 4)
    t = tk.tensor(x, backend=backend)
    for axis, keepdims in itertools.product((0, 1, -1), (False, True)):
        agree(linalg.norm(t, ord, axis, keepdims), np.linalg.norm(x, ord, axis, keepdims))
    order = 2 if ord is None else ord
    for axis, keepdims in itertools.product((None, 0, (0, 2), (-1, 0, 1)), (False, True)):
        agree(
            linalg.vector_norm(t, axis=axis, keepdims=keepdims, ord=order),
            np.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=order),
        )
    agree(linalg.norm(t[0, 0], ord), np.linalg.norm(x[0, 0], ord))


@ON
@pytest.mark.parametrize("ord", MATRIX_ORDERS)
def test_norms_of_matrices(backend, ord):
    x = normal(2, 3, 4)
    t = tk.tensor(x, backend=backend)
    for axis, keepdims in itertools.product(((0, 1), (1, 0), (2, 0), (-1, -2)), (False, True)):
        agree(linalg.norm(t, ord, axis, keepdims), np.linalg.norm(x, ord, axis, keepdims))
    agree(linalg.norm(t[0], ord), np.linalg.norm(x[0], ord))
    order = "fro" if ord is None else ord
    agree(linalg.matrix_norm(t, ord=order), np.linalg.matrix_norm(x, ord=order))
    agree(linalg.matrix_norm(t, ord=order, keepdims=True), np.linalg.matrix_norm(x, ord=order, keepdims=True))


@ON
def test_norm_of_all_elements(backend):
    x = normal(2, 3, 4)
    agree(linalg.norm(tk.tensor(x, backend=backend)), np.linalg.norm(x))
    agree(linalg.norm(tk.tensor(x, backend=backend), keepdims=True), np.linalg.norm(x, keepdims=True))
    assert tk.norm is linalg.norm
    assert linalg.norm(tk.tensor([3, 4], backend=backend)).dtype == tk.float32


@ON
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("ord", [2, 3, 0.5, -2, "fro", "nuc"])
def test_norms_neither_overflow_nor_vanish(backend, ord, dtype):
    info = np.finfo(dtype)
    for scale in (float(info.max) / 100, float(info.tiny) * 100):
        x = np.array([[1.0, 2.0], [2.0, 3.0]])
        big = tk.tensor((x * scale).astype(dtype), backend=backend)
        mine = linalg.matrix_norm(big, ord=ord) if isinstance(ord, str) else linalg.vector_norm(big, ord=ord)
        theirs = np.linalg.norm(x, ord) if isinstance(ord, str) else np.linalg.norm(x.ravel(), ord)
        assert mine.item() / scale == pytest.approx(theirs, rel=20 * float(info.eps))


@ON
@pytest.mark.parametrize("ord", [o for o in VECTOR_ORDERS if o is not None])
@settings(max_examples=examples(20), deadline=None)
@given(
    x=st.lists(
        st.sampled_from([0.0, -0.0, 1.0, -2.0, 0.5, INF, -INF, math.nan, 1e-50, 1e50]),
        min_size=1,
        max_size=4,
    )
)
def test_norms_at_the_edges(backend, ord, x):
    """Zeros with signs, infinities and NaN, at sizes whose powers numpy can hold as well."""
    with np.errstate(all="ignore"):
        expected = np.linalg.norm(np.array(x), ord)
    mine = linalg.vector_norm(tk.tensor(x, "float64", backend=backend), ord=ord).item()
    np.testing.assert_allclose(mine, expected, rtol=1e-14)


def test_the_norm_of_no_elements_is_zero():
    for ord in (2, 1, 0, 3, INF):
        assert linalg.vector_norm(tk.zeros((0,)), ord=ord).item() == 0.0
    assert linalg.vector_norm(tk.zeros((2, 0)), axis=1).tolist() == [0.0, 0.0]
    assert linalg.matrix_norm(tk.zeros((0, 3)), ord="nuc").item() == 0.0
    with pytest.raises(ShapeError, match="no elements to reduce"):
        linalg.vector_norm(tk.zeros((0,)), ord=-INF)


def test_condition_numbers_of_singular_matrices_are_infinite_and_nan_stays():
    singular = tk.tensor([[1.0, 1.0], [1.0, 1.0]], "float64")
    for p in (1, INF, "fro"):
        assert linalg.cond(singular, p).item() == INF
    assert linalg.cond(tk.zeros((2, 2))).item() == INF
    assert math.isnan(linalg.cond(tk.tensor([[math.nan, 1.0], [1.0, 1.0]])).item())


def test_diagonals_and_traces_are_of_the_last_two_axes():
    x = normal(2, 3, 4)
    for offset in (-2, 0, 1, 3):
        agree(linalg.diagonal(tk.tensor(x), offset=offset), np.linalg.diagonal(x, offset=offset))
        agree(linalg.trace(tk.tensor(x), offset=offset), np.linalg.trace(x, offset=offset))
    assert linalg.trace(tk.tensor([[1, 2], [3, 4]]), dtype="float64").dtype == tk.float64
    assert linalg.trace(tk.tensor([[True, False], [False, True]])).item() == 2


def test_powers_of_integer_matrices_are_integers():
    x = tk.tensor([[1, 1], [1, 0]])
    assert linalg.matrix_power(x, 10).tolist() == [[89, 55], [55, 34]]
    assert linalg.matrix_power(x, 0).tolist() == [[1, 0], [0, 1]]
    assert linalg.matrix_power(x, 0).dtype == tk.int32
    assert linalg.matrix_power(x, -1).dtype == tk.float32


# ---- what is wrong -----------------------------------------------------------------------------------------


@pytest.mark.feature(55)
@ON
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: linalg.inv(x), r"^inv: matrix of shape \(2, 2\) is singular; use lstsq or pinv"),
        (lambda x: linalg.solve(x, x), r"^solve: matrix of shape \(2, 2\) is singular"),
        (lambda x: linalg.solve_triangular(x - 1.0, x), r"^solve_triangular: matrix of .* is singular"),
        (lambda x: linalg.matrix_power(x, -2), r"^matrix_power: matrix of shape \(2, 2\) is singular"),
        (lambda x: linalg.cholesky(x * -1.0), r"^cholesky: matrix of .* is not positive definite; add to"),
        (
            lambda x: linalg.inv(
                tk.stack([tk.stack([tk.eye(2, dtype="float64", backend=x.interpreter), x])])
            ),
            r"^inv: matrix \(0, 1\) of shape \(1, 2, 2, 2\) is singular",
        ),
        (lambda x: tk.grad(lambda x: linalg.inv(x).sum())(x), r"^inv: matrix of .* is singular"),
        (lambda x: tk.jvp(linalg.inv, (x,), (x,)), r"^inv: matrix of .* is singular"),
    ],
)
def test_a_matrix_that_has_no_result_is_an_error_where_its_values_are_at_hand(backend, call, message):
    x = tk.tensor([[1.0, 1.0], [1.0, 1.0]], "float64", backend=backend)
    with pytest.raises(LinearAlgebraError, match=message) as caught:
        call(x)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, TensorkenError)
    assert linalg.LinAlgError is LinearAlgebraError


@pytest.mark.feature(197)
def test_under_vmap_a_matrix_that_has_no_result_gives_nan():
    x = tk.tensor([[[1.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 2.0]]])
    y = array(tk.vmap(linalg.inv)(x))
    assert np.isnan(y[0]).all()
    np.testing.assert_array_equal(y[1], [[1.0, 0.0], [0.0, 0.5]])
    assert np.isnan(array(tk.vmap(linalg.cholesky)(-x))).all()


@ON
def test_nan_passes_through_without_an_error(backend):
    x = tk.tensor([[math.nan, 1.0], [1.0, 1.0]], backend=backend)
    for f in (linalg.inv, linalg.cholesky, linalg.eigvalsh, linalg.svdvals, linalg.pinv, linalg.det):
        assert np.isnan(array(f(x))).any()
    assert np.isnan(array(linalg.solve(x, x))).any()
    assert np.isnan(array(linalg.eigh(x).eigenvectors)).all()
    assert np.isnan(array(linalg.svd(x).U)).all()
    assert np.isnan(linalg.norm(x).item())


SQUARE = ["inv", "det", "slogdet", "cholesky", "eigh", "eigvalsh"]


def test_numbers_combined_with_a_tensor_go_to_its_backend():
    x = linalg.solve([[2, 0], [0, 4]], tk.tensor([2.0, 8.0], "float64", backend="reference"))
    assert (x.tolist(), x.backend, x.dtype) == ([1.0, 2.0], "reference", tk.float64)
    x = linalg.solve(tk.tensor([[2.0, 0.0], [0.0, 4.0]], backend="reference"), [2, 8])
    assert (x.tolist(), x.backend, x.dtype) == ([1.0, 2.0], "reference", tk.float32)


def test_values_are_not_checked_if_only_shapes_are_known():
    x = tk.zeros((2, 3, 3), backend=tk.ShapeTracker(Nothing()))
    assert linalg.inv(x).shape == linalg.cholesky(x).shape == linalg.matrix_power(x, -1).shape == (2, 3, 3)
    assert linalg.solve(x, tk.zeros((3,), backend=x.interpreter)).shape == (2, 3)
    assert [y.shape for y in linalg.svd(x[..., :2])] == [(2, 3, 3), (2, 2), (2, 2, 2)]
    assert linalg.lstsq(x[..., :2], x).residuals.shape == (2, 3)


@pytest.mark.feature(55)
@pytest.mark.parametrize("name", SQUARE)
def test_matrices_that_are_not_square_are_refused(name):
    with pytest.raises(ShapeError, match=rf"^{name}: need square matrices, .*got shape \(2, 3\)"):
        getattr(linalg, name)(tk.ones((2, 3)))


@pytest.mark.feature(55)
@pytest.mark.parametrize(
    "name", [*SQUARE, "qr", "svd", "svdvals", "pinv", "matrix_norm", "diagonal", "trace"]
)
def test_vectors_are_refused_as_matrices(name):
    with pytest.raises(ShapeError, match=rf"^{name}: need matrices, at least 2 axes, got shape \(3,\)"):
        getattr(linalg, name)(tk.ones((3,)))


@pytest.mark.feature(55)
@pytest.mark.parametrize("name", [*SQUARE, "qr", "svd", "svdvals", "pinv"])
def test_half_precision_is_refused(name):
    with pytest.raises(
        DTypeError, match=rf"^{name}: not defined for float16; it takes float32, float64; cast"
    ):
        getattr(linalg, name)(tk.ones((2, 2), "float16", backend=Reference()))


@pytest.mark.feature(55)
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: linalg.solve(tk.eye(2), tk.ones(3)), ShapeError, r"^solve: 2 rows of shape \(2, 2\) and 3"),
        (lambda: linalg.solve(tk.eye(2), 1.0), ShapeError, r"^solve: need a right-hand side with at least one"),
        (
            lambda: linalg.solve(tk.ones((2, 2, 2)), tk.ones((3, 2, 2))),
            ShapeError,
            r"^solve: the batch axes of \(2, 2, 2\) and \(3, 2, 2\) do not broadcast",
        ),
        (lambda: linalg.solve(tk.ones((2, 3)), tk.ones(2)), ShapeError, r"^solve: need square matrices"),
        (lambda: linalg.qr(tk.eye(2), mode="raw"), ArgumentError, r"^qr: mode must be .*, got 'raw'"),
        (lambda: linalg.eigh(tk.eye(2), "X"), ArgumentError, r"^eigh: UPLO must be 'L', 'U' or None, got 'X'"),
        (lambda: linalg.norm(tk.eye(2), "max"), ArgumentError, r"^norm: ord of a matrix norm .*'max'"),
        (lambda: linalg.norm(tk.eye(2), 3), ArgumentError, r"^norm: ord of a matrix norm .*got 3"),
        (lambda: linalg.norm(tk.ones(2), "fro"), ArgumentError, r"^norm: ord .*'fro'"),
        (lambda: linalg.norm(tk.ones((2, 2, 2)), 1), ShapeError, r"^norm: ord=1 needs a vector or a matrix"),
        (lambda: linalg.norm(tk.ones((2, 2, 2)), 1, (0, 1, 2)), ShapeError, r"^norm: axis must be one axis or"),
        (lambda: linalg.norm(tk.ones((2, 2)), 1, (0, 0)), ShapeError, r"^norm: axes \(0, 0\) name an axis twice"),
        (lambda: linalg.norm(tk.ones((2, 2)), 1, (0, 5)), ShapeError, r"^norm: axis 5 is out of range"),
        (lambda: linalg.matrix_power(tk.eye(2), 0.5), ArgumentError, r"^matrix_power: the exponent must be an int"),
        (lambda: linalg.matrix_power(tk.ones((2, 3)), 2), ShapeError, r"^matrix_power: need square matrices"),
        (lambda: linalg.multi_dot([tk.eye(2)]), ArgumentError, r"^multi_dot: need at least two"),
        (lambda: linalg.multi_dot([tk.eye(2), tk.eye(3)]), ShapeError, r"^multi_dot: shapes \(2, 2\), \(3, 3\) do"),
        (lambda: linalg.multi_dot([tk.eye(2), tk.ones(2), tk.eye(2)]), ShapeError, r"^multi_dot: .* do not form"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.feature(55)
def test_factors_without_a_derivative_raise_an_error():
    x = tk.tensor(normal(3, 2))
    with pytest.raises(
        GradientError, match=r"^qr: cannot differentiate mode='complete' .*; use mode='reduced'"
    ):
        tk.grad(lambda x: linalg.qr(x, mode="complete").Q.sum())(x)
    with pytest.raises(
        GradientError, match=r"^svd: cannot differentiate full_matrices=True .*; use full_matrices=False"
    ):
        tk.jvp(lambda x: linalg.svd(x).S, (x,), (x,))


# ---- the shape of the module -------------------------------------------------------------------------------


FUNCTIONS = [name for name in linalg.__all__ if inspect.isfunction(getattr(linalg, name))]


def test_the_names_of_the_standard_are_here():
    standard = (
        "cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose "
        "outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm"
    )
    assert set(standard.split()) <= set(FUNCTIONS)
    assert {"norm", "cond", "lstsq", "multi_dot", "LinAlgError"} <= set(linalg.__all__)
    for name in ("cross", "matmul", "outer", "tensordot", "vecdot", "matrix_transpose"):
        assert getattr(linalg, name) is getattr(tk, name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_are_documented_with_an_example(name):
    text = inspect.getdoc(getattr(linalg, name)) or ""
    assert text.partition("\n")[0].endswith((".", ":", ";", ","))
    assert ">>> tk." in text or ">>> " in text


def test_expressions_name_the_ops():
    a = tk.symbol("A", (3, 3))
    assert str(linalg.inv(a)) == "A.inv()"
    assert str(linalg.det(a)) == "A.det()"
    assert str(linalg.svd(a).S) == "A.svd(True)[1]"
    assert str(linalg.solve(a, tk.symbol("B", (3, 3)))) == "A.solve(B)"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_determinant_of_one_element_is_that_element(dtype: str) -> None:
    values = np.array([0.1, -3.3, 1e30, -1e-30, 0.0, np.inf, np.nan, np.pi], dtype)
    for backend in ("numpy", "reference"):
        alone = [tk.linalg.det(tk.tensor([[v]], dtype, backend=backend)) for v in values]
        assert all(y.shape == () for y in alone)
        assert np.array_equal([y.item() for y in alone], values.astype(float), equal_nan=True)
        many = tk.linalg.det(tk.tensor(values.reshape(2, 4, 1, 1), backend=backend))
        assert many.shape == (2, 4)
        assert np.array_equal(np.asarray(many), values.reshape(2, 4), equal_nan=True)
