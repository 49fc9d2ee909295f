"""Derivatives of tk.linalg: right to second order in every mix of modes, at the edges, and under vmap."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import FUSED, Counting, Required, array
from tensorken_core.rewriting.fuse import Fuse

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_numpy")]

linalg = tk.linalg
INF = math.inf
BODIES = Fuse(Required())
"""numpy without the routines of LAPACK."""


def drawn(*shape, seed=0, backend=FUSED):
    """A matrix with large numbers on the diagonal, which is well conditioned and has singular values that differ."""
    x = np.random.default_rng(seed).uniform(-1.0, 1.0, shape)
    if len(shape) > 1:
        m, n = shape[-2:]
        x += np.eye(m, n) * (3.0 * np.arange(1, m + 1)[:, None])
    return tk.tensor(x, "float64", backend=backend)


def of_projector(u):
    """The projector on the first vector, which does not depend on its sign."""
    return u[..., :, :1] @ u[..., :, :1].mT


def of_svd(x):
    u, s, vh = linalg.svd(x, full_matrices=False)
    return of_projector(u), s, of_projector(vh.mT), u[..., :, :1] * vh[..., :1, :]


FUNCTIONS = {
    "inv": (linalg.inv, [(3, 3)]),
    "inv of a batch": (linalg.inv, [(2, 2, 2)]),
    "solve": (linalg.solve, [(3, 3), (3, 2)]),
    "solve a vector": (linalg.solve, [(3, 3), (3,)]),
    "solve, broadcast": (linalg.solve, [(2, 2, 2), (2, 1)]),
    "solve_triangular": (linalg.solve_triangular, [(3, 3), (3,)]),
    "solve_triangular, lower": (lambda a, b: linalg.solve_triangular(a, b, lower=True), [(3, 3), (2, 3, 2)]),
    "det 1": (linalg.det, [(1, 1)]),
    "det 2": (linalg.det, [(2, 2, 2)]),
    "det 3": (linalg.det, [(3, 3)]),
    "det 4": (linalg.det, [(4, 4)]),
    "slogdet": (lambda x: linalg.slogdet(x).logabsdet, [(2, 3, 3)]),
    "cholesky": (linalg.cholesky, [(3, 3)]),
    "cholesky, upper": (lambda x: linalg.cholesky(x, upper=True), [(2, 2, 2)]),
    "qr, tall": (lambda x: tuple(linalg.qr(x)), [(4, 2)]),
    "qr, wide": (lambda x: tuple(linalg.qr(x)), [(2, 4)]),
    "qr, square": (lambda x: tuple(linalg.qr(x, mode="complete")), [(2, 3, 3)]),
    "r": (lambda x: linalg.qr(x, mode="r"), [(3, 2)]),
    "eigh": (lambda x: (linalg.eigh(x)[0], of_projector(linalg.eigh(x)[1])), [(3, 3)]),
    "eigh, lower": (lambda x: (linalg.eigh(x, "L")[0], of_projector(linalg.eigh(x, "L")[1])), [(3, 3)]),
    "eigvalsh": (linalg.eigvalsh, [(2, 3, 3)]),
    "svd, tall": (of_svd, [(4, 2)]),
    "svd, wide": (of_svd, [(2, 3)]),
    "svd, square": (of_svd, [(2, 2, 2)]),
    "svdvals": (linalg.svdvals, [(3, 4)]),
    "pinv, tall": (linalg.pinv, [(4, 2)]),
    "pinv, wide": (linalg.pinv, [(2, 2, 3)]),
    "lstsq": (lambda a, b: (linalg.lstsq(a, b).x, linalg.lstsq(a, b).residuals), [(4, 2), (4, 3)]),
    "matrix_power": (lambda x: linalg.matrix_power(x * 0.1, 5), [(3, 3)]),
    "matrix_power, negative": (lambda x: linalg.matrix_power(x, -2), [(3, 3)]),
    "multi_dot": (lambda *xs: linalg.multi_dot(xs), [(2, 3), (3, 4), (4, 2)]),
    "trace": (linalg.trace, [(2, 3, 3)]),
    "diagonal": (linalg.diagonal, [(2, 3, 4)]),
    "cond": (linalg.cond, [(3, 3)]),
    "cond 1": (lambda x: linalg.cond(x, 1), [(3, 3)]),
    "norm": (linalg.norm, [(2, 3)]),
    "norm along an axis": (lambda x: linalg.norm(x, axis=0, keepdims=True), [(2, 3)]),
    **{
        f"vector_norm {p}": (lambda x, p=p: linalg.vector_norm(x, ord=p, axis=-1), [(2, 3)])
        for p in (1, 2, 3, 0.5, -1, -2.5, INF, -INF, 0)
    },
    **{
        f"matrix_norm {p}": (lambda x, p=p: linalg.matrix_norm(x, ord=p), [(2, 3, 2)])
        for p in ("fro", "nuc", 1, -1, 2, -2, INF, -INF)
    },
}
EACH = pytest.mark.parametrize("name", FUNCTIONS)


def symmetric_if(name, x):
    return x @ x.mT if name.startswith("cholesky") else x


@pytest.mark.feature(107, 108)
@EACH
def test_derivatives_are_right_to_second_order_in_every_mix_of_modes(name):
    f, shapes = FUNCTIONS[name]
    operands = [drawn(*shape, seed=i) for i, shape in enumerate(shapes)]
    tk.testing.check_grads(lambda *xs: f(*[symmetric_if(name, x) for x in xs]), operands, order=2)


@pytest.mark.feature(107)
@EACH
def test_the_derivatives_are_correct_with_bodies(name):
    f, shapes = FUNCTIONS[name]
    operands = [drawn(*shape, seed=i, backend=BODIES) for i, shape in enumerate(shapes)]
    tk.testing.check_grads(lambda *xs: f(*[symmetric_if(name, x) for x in xs]), operands, order=1)


@EACH
@pytest.mark.parametrize("derive", [tk.grad, tk.jacfwd])
def test_derivatives_of_large_and_small_matrices_are_those_of_others_scaled(name, derive):
    """All functions are homogeneous: no intermediate result overflows or underflows before the derivatives do."""
    f, shapes = FUNCTIONS[name]
    first, *rest = [symmetric_if(name, drawn(*shape, seed=i)) for i, shape in enumerate(shapes)]

    def derivatives(leaf, exponent):
        def weighted(*xs):
            y = tk.tree.leaves(f(*xs))[leaf]
            return (y * tk.arange(1.0, y.size + 1, dtype="float64").cos().reshape(y.shape)).sum()

        found = derive(weighted, tuple(range(len(shapes))))(first * 2.0**exponent, *rest)
        return [array(x) for x in found]

    for leaf in range(len(tk.tree.leaves(f(first, *rest)))):
        ones, fours = derivatives(leaf, 0), derivatives(leaf, 2)
        for k, (one, four) in enumerate(zip(ones, fours, strict=True)):
            size = np.abs(one).max()
            degree = round(math.log2(np.abs(four).max() / size)) / 2 if size else 0.0
            # the residuals of least squares differentiate the solution, whose degree is -2
            largest = max(abs(degree), abs(degree + 1), 2 if name == "lstsq" else 1)
            for exponent in (4 * int(225 / largest), -4 * int(225 / largest)):
                scaled = derivatives(leaf, exponent)[k] * 2.0 ** (-degree * exponent)
                np.testing.assert_allclose(scaled, one, rtol=1e-9, atol=1e-12 * size)


@pytest.mark.feature(197)
@EACH
def test_vmap_of_it_and_of_its_gradient_is_the_loop(name):
    f, shapes = FUNCTIONS[name]

    def total(*xs):
        leaves = tk.tree.leaves(f(*[symmetric_if(name, x) for x in xs]))
        return sum((y * y).sum() for y in leaves)

    batches = [drawn(3, *shape, seed=i) for i, shape in enumerate(shapes)]
    places = tuple(range(len(shapes)))
    for function in (total, tk.grad(total, argnums=places)):
        together = tk.tree.leaves(tk.vmap(function)(*batches))
        one_by_one = [tk.tree.leaves(function(*[x[i] for x in batches])) for i in range(3)]
        for place, y in enumerate(together):
            expected = np.stack([array(row[place]) for row in one_by_one])
            np.testing.assert_allclose(array(y), expected, rtol=1e-10, atol=1e-12)
    shared = tk.vmap(tk.grad(total), in_axes=(0, *[None] * (len(shapes) - 1)))
    y = shared(batches[0], *[x[0] for x in batches[1:]])
    np.testing.assert_allclose(
        array(y[1]), array(tk.grad(total)(batches[0][1], *[x[0] for x in batches[1:]])), rtol=1e-10
    )


@pytest.mark.feature(108, 197)
def test_hessians_go_through_one_batched_pass():
    x = drawn(3, 3)
    hessian = array(tk.hessian(lambda x: linalg.slogdet(x).logabsdet)(x))
    inverse = np.linalg.inv(array(x))
    np.testing.assert_allclose(hessian, -np.einsum("jk,li->ijkl", inverse, inverse), rtol=1e-10, atol=1e-12)


# ---- determinants of singular matrices ---------------------------------------------------------------------


def of_rank(rank, n):
    rng = np.random.default_rng(rank + 10 * n)
    return rng.standard_normal((n, rank)) @ rng.standard_normal((rank, n))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_the_gradient_of_a_determinant_is_correct_at_every_rank(n):
    for rank in range(n + 1):
        x = of_rank(rank, n)
        expected = np.empty((n, n))
        for i in range(n):
            for j in range(n):
                expected[i, j] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x, i, 0), j, 1))
        gradient = array(tk.grad(linalg.det)(tk.tensor(x)))
        np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_so_is_the_second_derivative(n):
    """Which finite differences of a polynomial can tell."""
    for rank in range(n + 1):
        tk.testing.check_grads(linalg.det, (tk.tensor(of_rank(rank, n)),), order=2)


def test_up_to_size_three_so_are_all_others():
    for n in (2, 3):
        for rank in range(n + 1):
            tk.testing.check_grads(linalg.det, (tk.tensor(of_rank(rank, n)),), order=3)
    tk.testing.check_grads(linalg.det, (drawn(4, 4),), order=3)


# ---- values that coincide ----------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", [FUSED, BODIES], ids=repr)
def test_eigenvalues_and_singular_values_that_coincide_have_gradients(backend):
    x = tk.eye(3, dtype="float64", backend=backend) * 2.0
    for f in (
        linalg.eigvalsh,
        linalg.svdvals,
        lambda x: linalg.eigh(x)[0],
        lambda x: linalg.svd(x, False)[1],
    ):
        np.testing.assert_allclose(array(tk.grad(lambda x, f=f: f(x).sum())(x)), np.eye(3), atol=1e-15)
        direction = tk.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], backend=backend)
        pushed = tk.jvp(lambda x, f=f: (f(x) ** 2).sum(), (x,), (direction.astype("float64"),))[1]
        assert pushed.item() == pytest.approx(0.0, abs=1e-14)
    np.testing.assert_allclose(array(tk.grad(lambda x: linalg.norm(x, "nuc"))(x)), np.eye(3), atol=1e-15)
    np.testing.assert_allclose(array(tk.grad(lambda x: linalg.norm(x, 2))(x)).trace(), 1.0, atol=1e-15)


def test_derivatives_of_eigenvectors_of_equal_eigenvalues_are_not_finite():
    x = tk.eye(2, dtype="float64")
    gradient = tk.grad(lambda x: linalg.eigh(x).eigenvectors[1, 0])(x)
    assert not np.isfinite(array(gradient)).all()


def test_gradients_with_respect_to_symmetric_matrices_are_symmetric():
    x = drawn(3, 3)
    x = x @ x.mT
    for f in (linalg.cholesky, linalg.eigvalsh, lambda x: linalg.eigh(x).eigenvectors):
        gradient = array(tk.grad(lambda x, f=f: f(x).sum())(x))
        np.testing.assert_allclose(gradient, gradient.T, rtol=1e-12, atol=1e-14)
    # ... and where one triangle is read, the other has none
    gradient = array(tk.grad(lambda x: linalg.eigvalsh(x, "L").max())(x))
    assert not np.triu(gradient, 1).any()


def test_the_pseudoinverse_of_equal_singular_values_and_of_low_rank_has_a_gradient():
    q = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 3)))[0]
    tk.testing.check_grads(linalg.pinv, (tk.tensor(q),), order=2)
    low = np.outer([1.0, 2.0, 3.0], [1.0, -1.0])  # along directions that keep the rank
    factors = tk.tensor(low[:, :1]), tk.tensor([[1.0, -1.0]], "float64")
    tk.testing.check_grads(lambda a, b: linalg.pinv(a @ b), factors)


# ---- norms where they are not smooth -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("ord", [0, 0.5, 1, 1.5, 2, 3, INF, -INF, -1])
def test_at_zero_the_norm_of_a_vector_has_the_gradient_zero_or_that_of_abs(ord, dtype):
    x = tk.zeros((3,), dtype)

    def f(x):
        return linalg.vector_norm(x, ord=ord)

    assert f(x).item() == 0.0
    slope = {1: 1.0, INF: 1.0 / 3.0, -INF: 1.0 / 3.0}.get(ord, 0.0)
    np.testing.assert_allclose(array(tk.grad(f)(x)), [slope] * 3, rtol=1e-6)
    assert tk.jvp(f, (x,), (tk.ones_like(x),))[1].item() == pytest.approx(3.0 * slope, rel=1e-6)
    assert np.isfinite(array(tk.grad(lambda x: tk.grad(f)(x).sum())(x))).all()


@pytest.mark.parametrize("ord", ["fro", "nuc", 1, 2, -2, INF, -INF])
def test_at_zero_the_norm_of_a_matrix_has_the_gradient_zero_or_that_of_abs(ord):
    """Equal sums of a row or column share the slope 1 of abs."""
    x = tk.zeros((2, 3), "float64")
    slope = {1: 1.0 / 3.0, INF: 0.5, -INF: 0.5}.get(ord, 0.0)
    gradient = array(tk.grad(lambda x: linalg.matrix_norm(x, ord=ord))(x))
    np.testing.assert_allclose(gradient, np.full((2, 3), slope), rtol=1e-12)


@pytest.mark.parametrize("ord", [0.5, 1, 1.5, 2, 3])
def test_zeros_among_others_have_the_derivative_zero_or_that_of_abs(ord):
    x = tk.tensor([0.0, 2.0, -0.0, -1.0], "float64")
    gradient = array(tk.grad(lambda x: linalg.vector_norm(x, ord=ord))(x))
    np.testing.assert_array_equal(gradient[[0, 2]], [1.0, 1.0] if ord == 1 else [0.0, 0.0])
    rest = tk.tensor([2.0, -1.0], "float64")
    expected = array(tk.grad(lambda x: linalg.vector_norm(x, ord=ord))(rest))
    np.testing.assert_allclose(gradient[[1, 3]], expected, rtol=1e-15)


@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_gradients_of_norms_neither_overflow_nor_vanish_in_float32(scale):
    norms = [lambda x, p=p: linalg.vector_norm(x, ord=p) for p in (2, 3, 0.5)]
    for norm in (*norms, linalg.matrix_norm):
        gradient = array(tk.grad(norm)(tk.tensor([[3.0, -4.0]]) * scale))
        expected = array(tk.grad(norm)(tk.tensor([[3.0, -4.0]], "float64")))
        np.testing.assert_allclose(gradient, expected, rtol=2e-6)


def test_gradients_factor_no_more_than_they_need():
    """That of an inverse needs no factorization; that of a solution one, of the transposed matrix."""
    counting = Counting()
    a, b = drawn(3, 3, backend=counting), drawn(3, seed=1, backend=counting)
    for f, calls in (
        (lambda: tk.grad(lambda a: linalg.inv(a).sum())(a), {"inv": 1}),
        (lambda: tk.grad(lambda a, b: linalg.solve(a, b).sum(), argnums=(0, 1))(a, b), {"solve": 2}),
        (lambda: tk.grad(lambda a: linalg.slogdet(a).logabsdet)(a), {"slogdet": 1, "inv": 1}),
        (lambda: tk.grad(lambda a: linalg.eigvalsh(a).sum())(a), {"eigvalsh": 1, "eigh": 1}),
        (lambda: linalg.svdvals(a), {"svdvals": 1}),
    ):
        counting.clear()
        f()
        ops = ("inv", "solve", "slogdet", "det", "eigh", "eigvalsh", "svd", "svdvals", "triangular_solve")
        assert {name: counting.calls[name] for name in ops if counting.calls[name]} == calls


# ---- equal eigenvalues and singular values -----------------------------------------------------------------


def _with_values(values: tuple[float, ...], shape: tuple[int, int]) -> Any:
    """A matrix with these singular values, symmetric positive definite if it is square."""
    rng = np.random.default_rng(3)
    left = np.linalg.qr(rng.standard_normal((shape[0], shape[0])))[0]
    right = left if shape[0] == shape[1] else np.linalg.qr(rng.standard_normal((shape[1], shape[1])))[0]
    return left[:, : len(values)] @ np.diag(values) @ right[:, : len(values)].T


WEIGHTS = np.random.default_rng(4).standard_normal((4, 4))


def projector(xp: Any, x: Any, weights: Any) -> Any:
    vectors = xp.linalg.eigh((x + x.T) / 2.0)[1][:, :2]
    return ((vectors @ vectors.T) * weights).sum()


def polar_factor(xp: Any, x: Any, weights: Any) -> Any:
    left, _, right = xp.linalg.svd(x, full_matrices=False)
    return ((left @ right) * weights[: x.shape[0], : x.shape[1]]).sum()


SMOOTH_AT_EQUAL_VALUES = [
    *[
        (projector, values, (4, 4))
        for values in ((1.0, 1.0, 2.0, 2.0), (1.0, 1.0, 2.0, 3.0), (1.0, 1.5, 2.0, 2.0))
    ],
    *[
        (polar_factor, values, shape)
        for values in ((1.0, 1.0, 1.0), (1.0, 1.0, 2.0))
        for shape in ((3, 3), (4, 3), (3, 4))
    ],
]


@each_of(("function", "values", "shape"), SMOOTH_AT_EQUAL_VALUES)
def test_gradients_of_smooth_functions_of_vectors_where_values_are_equal(
    function: Any, values: tuple[float, ...], shape: tuple[int, int]
) -> None:
    x = _with_values(values, shape)
    quotients = np.zeros(shape)
    for at in np.ndindex(shape):
        step = np.zeros(shape)
        step[at] = 1e-5
        quotients[at] = (function(np, x + step, WEIGHTS) - function(np, x - step, WEIGHTS)) / 2e-5
    gradient = tk.grad(lambda x: function(tk, x, tk.tensor(WEIGHTS)))
    for compute in (gradient, tk.jit(gradient)):
        np.testing.assert_allclose(np.asarray(compute(tk.tensor(x))), quotients, atol=1e-8)


VALUES = {
    "eigvalsh": tk.linalg.eigvalsh,
    "eigh": lambda x: tk.linalg.eigh(x)[0],
    "svdvals": tk.linalg.svdvals,
    "svd": lambda x: tk.linalg.svd(x)[1],
}


@each_of("name", VALUES)
def test_second_derivatives_of_equal_values_are_never_wrong_numbers(name: str) -> None:
    f = lambda x: (VALUES[name](x) ** 2).sum()  # noqa: E731
    x = tk.eye(3, dtype="float64")
    assert tk.grad(f)(x).tolist() == (2.0 * tk.eye(3)).tolist()
    with np.errstate(all="ignore"):
        for second in (tk.hessian(f), tk.jacfwd(tk.jacfwd(f)), tk.jacrev(tk.jacfwd(f))):
            assert np.isnan(np.asarray(second(x))).any()
