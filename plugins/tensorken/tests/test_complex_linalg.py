"""Linear algebra over complex numbers, and eigenvalues of general matrices: values, factors, derivatives, errors."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings, strategies as st

import tensorken as tk
from core.tests.each import each_of
from core.tests.examples import examples
from core.tests.support import FUSED, Required, array
from tensorken.complex_numbers.parts import FORMS
from tensorken.complex_numbers.schur import eigen, eigenvalues
from tensorken_core.errors import (
    ConcretizationError,
    DTypeError,
    GradientError,
    LinearAlgebraError,
    ShapeError,
)
from tensorken_core.language.op import OPS
from tensorken_core.rewriting.fuse import Fuse

linalg = tk.linalg
BODIES = Fuse(Required())
BACKENDS = {"numpy": FUSED, "bodies": BODIES}
ALL_BACKENDS = {**BACKENDS, "reference": "reference"}
EPS = {"complex64": 2.0**-23, "complex128": 2.0**-52, "float32": 2.0**-23, "float64": 2.0**-52}
INF = math.inf


def normal(*shape: int, seed: int = 0, dtype: str = "complex128") -> Any:
    """Complex numbers with normal parts; of a real dtype, the real parts."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return (z if dtype.startswith("complex") else z.real).astype(dtype)


def adjoint(x: Any) -> Any:
    return np.swapaxes(x, -1, -2).conj()


def hermitian(*shape: int, dtype: str = "complex128") -> Any:
    x = normal(*shape, dtype=dtype)
    return x + adjoint(x)


def positive(*shape: int, dtype: str = "complex128") -> Any:
    x = normal(*shape, dtype=dtype)
    return (x @ adjoint(x) + np.eye(shape[-1])).astype(dtype)


def close(found: Any, expected: Any, times: float = 200.0) -> None:
    """Equal shapes and dtypes, and numbers that differ by some rounding errors of the largest."""
    results = found if isinstance(found, tuple) else (found,)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    for y, w in zip(results, wanted, strict=True):
        x, w = y.numpy() if isinstance(y, tk.Tensor) else np.asarray(y), np.asarray(w)
        assert x.shape == w.shape
        if w.dtype.kind == "i":
            assert (x == w).all()
            continue
        assert x.dtype == w.dtype
        size = max(float(np.abs(w).max(initial=0.0)), 1.0)
        assert np.abs(x - w).max(initial=0.0) <= times * EPS[w.dtype.name] * size


# ---- values that are unique ------------------------------------------------------------------------------------


def same(name: str, *args: Any, numpy: Any = None, **keywords: Any) -> Any:
    """The row of a function that has numpy's name and arguments."""
    return getattr(linalg, name), numpy or getattr(np.linalg, name), args, keywords


def _solve_triangular(a: Any, b: Any, lower: bool = False) -> Any:
    return np.linalg.solve(np.tril(a) if lower else np.triu(a), b)


SQUARE = [normal(3, 3), normal(2, 2, 4, 4), normal(1, 1), normal(0, 0), normal(2, 2, dtype="complex64")]
SAME = [
    *[same(name, x) for name in ("inv", "det", "slogdet") for x in SQUARE],
    *[same("solve", normal(*a), normal(*b, seed=1)) for a, b in (((3, 3), (3,)), ((2, 1, 3, 3), (4, 3, 2)))],
    same("solve", normal(3, 3, dtype="float64"), normal(3, 2)),
    same("solve", normal(3, 3), normal(3, 2, dtype="float64")),
    same("solve_triangular", normal(3, 3), normal(3, 2), numpy=_solve_triangular),
    same("solve_triangular", normal(2, 3, 3), normal(3, 2), numpy=_solve_triangular, lower=True),
    *[same("cholesky", positive(*shape)) for shape in ((3, 3), (2, 2, 2), (0, 0))],
    same("cholesky", positive(3, 3), upper=True),
    same("cholesky", positive(3, 3, dtype="complex64")),
    *[same("eigvalsh", hermitian(*shape)) for shape in ((3, 3), (2, 2, 4, 4), (0, 0))],
    same("eigvalsh", hermitian(3, 3, dtype="complex64")),
    *[same("svdvals", normal(*shape)) for shape in ((3, 4), (2, 4, 3), (2, 0))],
    *[same("pinv", normal(*shape)) for shape in ((3, 4), (2, 4, 3), (0, 2))],
    same("pinv", np.outer(normal(3), normal(4, seed=1))),
    *[
        same("qr", normal(*shape), mode=mode)
        for shape in ((3, 3), (2, 5, 3), (3, 5), (1, 1), (3, 1))
        for mode in ("reduced", "complete", "r")
    ],
    *[same("matrix_rank", x) for x in (normal(3, 4), np.outer(normal(3), normal(4)), normal(3))],
    *[same("matrix_power", normal(3, 3), n) for n in (0, 3, -2)],
    same("lstsq", normal(5, 3), normal(5, 2, seed=1)),
    same("lstsq", normal(3, 3), normal(3, 2, seed=1)),
    *[same("cond", normal(2, 3, 3), p) for p in (None, 1, -1, 2, -2, INF, "fro", "nuc")],
    *[same("matrix_norm", normal(2, 3, 4), ord=p) for p in ("fro", "nuc", 1, -1, 2, -2, INF, -INF)],
    *[same("vector_norm", normal(2, 5), ord=p, axis=-1) for p in (0, 1, 2, 3, 0.5, -1, -1.5, INF, -INF)],
    same("norm", normal(3, 4), axis=0),
    same("expm", normal(2, 3, 3) * 3.0, numpy=scipy.linalg.expm),
    same("multi_dot", [normal(2, 5), normal(5, 3), normal(3)]),
    same("tensorsolve", normal(2, 3, 6), normal(2, 3)),
    same("tensorinv", normal(2, 3, 6)),
    same("trace", normal(2, 3, 4)),
]


OTHERS = (linalg.cond, linalg.matrix_norm, linalg.matrix_power, linalg.vector_norm, linalg.expm)
"""Functions of other functions, which have no bodies of their own."""


@each_of(
    ("backend", "row"), [(b, row) for b in BACKENDS for row in SAME if b == "numpy" or row[0] not in OTHERS]
)
def test_results_are_numpys(backend: str, row: Any) -> None:
    ours, theirs, args, keywords = row
    with tk.use_backend(BACKENDS[backend]):
        found = ours(*[[*map(tk.tensor, x)] if isinstance(x, list) else x for x in args], **keywords)
        expected = theirs(*args, **keywords)
        close(tuple(found) if isinstance(found, tuple) else found, expected, 4000.0)


PRODUCTS = {
    "matmul": ("i", (2, 3, 4), (4, 2)),
    "inner": ("i", (2, 3), (4, 3)),
    "outer": ("i", (2,), (3,)),
    "kron": ("i", (2, 3), (2, 2)),
    "tensordot": ("i", (2, 3, 4), (3, 4, 2)),
    "vdot": ("i", (3,), (3,)),
    "vecdot": ("i", (2, 3), (2, 3)),
    "cross": ("i", (2, 3), (2, 3)),
}


@each_of(
    ("name", "kinds"),
    list(itertools.product(PRODUCTS, itertools.product(("complex128", "float64"), repeat=2))),
)
def test_products_take_complex_and_real_operands(name: str, kinds: Any) -> None:
    _, *shapes = PRODUCTS[name]
    a, b = [normal(*s, seed=i, dtype=d) for i, (s, d) in enumerate(zip(shapes, kinds, strict=True))]
    close(getattr(tk, name)(a, b), getattr(np, name)(a, b))


def test_einsum_of_complex_operands() -> None:
    a, b, v = normal(3, 4), normal(4, 3, seed=1), normal(3, seed=2)
    for text, operands in (
        ("ij,jk->ik", (a, b)),
        ("ij,ji", (a, b)),
        ("ij,jk,k->i", (a, b, v)),
        ("ii->i", (a @ b,)),
    ):
        close(tk.einsum(text, *operands), np.einsum(text, *operands))


# ---- factors that are not unique -------------------------------------------------------------------------------


def eye_of(x: Any) -> Any:
    return np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape)


@each_of(
    ("backend", "dtype", "shape"),
    [
        *itertools.product(BACKENDS, ("complex64", "complex128"), ((2, 3, 2), (1, 1))),
        *itertools.product(("numpy",), ("complex128",), ((3, 3), (2, 5, 3), (2, 4))),
    ],
)
def test_factors_multiply_to_the_matrix(backend: str, dtype: str, shape: Any) -> None:
    x = normal(*shape, dtype=dtype)
    with tk.use_backend(BACKENDS[backend]):
        for full in (False, True):
            u, s, vh = map(array, linalg.svd(x, full_matrices=full))
            k = s.shape[-1]
            close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x)
            close(adjoint(u) @ u, eye_of(adjoint(u) @ u))
            close(vh @ adjoint(vh), eye_of(vh @ adjoint(vh)))
            assert s.dtype == x.real.dtype
        square = x[..., : min(shape[-2:]), : min(shape[-2:])]
        for triangle in ("L", "U", None):
            values, vectors = map(array, linalg.eigh(square, triangle))
            lower = np.tril(square, -1) if triangle == "L" else adjoint(np.triu(square, 1))
            whole = lower + adjoint(lower) + eye_of(square) * square.real
            whole = whole if triangle else (square + adjoint(square)) / 2
            close((vectors * values[..., None, :]) @ adjoint(vectors), whole.astype(dtype))
            close(adjoint(vectors) @ vectors, eye_of(vectors))


@each_of(
    ("backend", "dtype", "shape"),
    list(itertools.product(ALL_BACKENDS, EPS, ((3, 3), (2, 1, 4, 4), (1, 1), (7, 7), (0, 0), (0, 2, 2)))),
)
def test_eig_has_numpys_values_and_vectors_of_length_1(backend: str, dtype: str, shape: Any) -> None:
    x = normal(*shape, dtype=dtype)
    with tk.use_backend(ALL_BACKENDS[backend]):
        values, vectors = map(array, linalg.eig(x))
        alone = array(linalg.eigvals(x))
    complex_dtype = np.result_type(dtype, np.complex64)
    assert values.dtype == vectors.dtype == alone.dtype == complex_dtype
    close(x @ vectors, vectors * values[..., None, :])
    close(np.linalg.norm(vectors, axis=-2), np.ones(values.shape, vectors.real.dtype))
    if x.size:
        largest = np.take_along_axis(vectors, np.abs(vectors).argmax(-2)[..., None, :], -2)
        close(largest.imag, np.zeros_like(largest.imag))
    for of_one in (values, alone):
        close(np.sort(of_one), np.sort(np.linalg.eigvals(x).astype(complex_dtype)), 1000.0)


def test_real_matrices_have_exact_conjugate_pairs() -> None:
    for backend in ALL_BACKENDS.values():
        with tk.use_backend(backend):
            values, vectors = map(array, linalg.eig(normal(6, 6, dtype="float64")))
        for value, vector in zip(values, vectors.T, strict=True):
            twin = int(np.argmin(np.abs(values - value.conj())))
            assert values[twin] == value.conj()
            np.testing.assert_array_equal(vectors[:, twin], vector.conj())


# ---- the QR algorithm in Python --------------------------------------------------------------------------------


@st.composite
def squares(draw: Any) -> Any:
    """Small matrices: normal ones, of few different numbers, permutations, triangles, blocks that are defective."""
    n = draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    kind = draw(st.sampled_from(["normal", "few", "permutation", "triangle", "defective", "graded", "skew"]))
    x = rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))
    if kind == "few":
        x = rng.choice([0.0, 0.0, 1.0, -1.0, 2.0, 1j], (n, n))
    elif kind == "permutation":
        x = np.eye(n)[rng.permutation(n)] * rng.choice([1.0, 1.0, 1j])
    elif kind == "triangle":
        x = np.triu(rng.choice([1.0, 2.0, -1.0], (n, n)))
    elif kind == "defective":
        x = rng.integers(-2, 3) * np.eye(n) + np.eye(n, k=draw(st.sampled_from([-1, 1])))
    elif kind == "graded":
        x = x * np.logspace(0, -12, n)
    elif kind == "skew":
        x = x.real - x.real.T
    return x if draw(st.booleans()) else np.ascontiguousarray(x.real)


@settings(max_examples=examples(60), deadline=None)
@given(x=squares(), scale=st.sampled_from([1.0, 1e300, 1e-300]))
def test_the_qr_algorithm_finds_eigenvectors_of_any_matrix(x: Any, scale: float) -> None:
    values, vectors = map(np.array, eigen((x * scale).tolist()))
    assert np.isfinite(values).all()
    residual = x @ vectors - vectors * (values / scale)
    assert np.abs(residual).max() <= 500 * EPS["float64"] * max(np.abs(x).max(), 1e-30)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1.0, rtol=1e-14)
    same_sum = np.abs(
        values.sum() / scale - np.trace(x)
    )  # the sum is well conditioned, also for defective matrices
    assert same_sum <= 500 * EPS["float64"] * max(np.abs(x).max(), 1e-30)
    assert sorted(map(abs, eigenvalues((x * scale).tolist()))) == pytest.approx(
        sorted(map(abs, values)), rel=1e-2, abs=0.1 * scale
    )


def test_matrices_that_are_badly_scaled_are_balanced() -> None:
    weights = np.exp(np.arange(8.0) * 4.0)
    x = normal(8, 8, dtype="float64")
    values = np.sort(eigenvalues((x * weights[:, None] / weights).tolist()))
    np.testing.assert_allclose(values, np.sort(np.linalg.eigvals(x)), rtol=1e-12)


def test_elements_that_are_not_finite_give_nan() -> None:
    for bad in (math.nan, INF):
        values, vectors = eigen([[bad, 1.0], [0.0, 1.0]])
        assert np.isnan(values).all()
        assert np.isnan(vectors).all()
        for backend in ALL_BACKENDS.values():
            with tk.use_backend(backend):
                both = (
                    array(
                        linalg.eigvals(tk.tensor([[[bad, 1.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 2.0]]])) + 0.0
                    )
                    if math.isnan(bad)
                    else array(tk.vmap(linalg.eigvals)(tk.tensor([[[bad]], [[2.0]]])))
                )
                assert np.isnan(both[0]).all()
                assert (both[1] == 2.0).all()


# ---- derivatives -----------------------------------------------------------------------------------------------


def projector(v: Any) -> Any:
    """The projector on the first vector, which does not depend on its phase."""
    return v[..., :, :1] @ v[..., :, :1].mT.conj()


def of_svd(x: Any) -> Any:
    u, s, vh = linalg.svd(x, full_matrices=False)
    return projector(u), s, projector(vh.mT.conj()), u[..., :, :1] @ vh[..., :1, :]


def gram(x: Any) -> Any:
    return x @ x.mT.conj()


SMOOTH = {
    "inv": (linalg.inv, [(2, 2)]),
    "solve": (linalg.solve, [(2, 2, 2), (2, 1)]),
    "solve_triangular": (linalg.solve_triangular, [(2, 2), (2, 1)]),
    "det 2": (linalg.det, [(2, 2)]),
    "det 4": (linalg.det, [(4, 4)]),
    "slogdet": (lambda x: tuple(linalg.slogdet(x)), [(3, 3)]),
    "cholesky": (lambda x: linalg.cholesky(gram(x)), [(3, 3)]),
    "qr": (lambda x: tuple(linalg.qr(x)), [(3, 2)]),
    "qr, wide": (lambda x: tuple(linalg.qr(x)), [(2, 3)]),
    "eigh": (lambda x: (linalg.eigh(x)[0], projector(linalg.eigh(x)[1])), [(3, 3)]),
    "eigvalsh": (linalg.eigvalsh, [(3, 3)]),
    "svd": (of_svd, [(3, 2)]),
    "svd, wide": (of_svd, [(2, 3)]),
    "svdvals": (linalg.svdvals, [(2, 3)]),
    "pinv": (linalg.pinv, [(3, 2)]),
    "expm": (lambda x: linalg.expm(x * 0.1), [(2, 2)]),
    "nuc": (lambda x: linalg.matrix_norm(x, ord="nuc"), [(3, 2)]),
    "norm 3": (lambda x: linalg.vector_norm(x, ord=3), [(4,)]),
    "eig": (lambda x: tuple(linalg.eig(x)), [(3, 3)]),
    "eig, real": (lambda x: tuple(linalg.eig(x.real + 9.0 * tk.stop_gradient(x.real.ones_like()))), [(3, 3)]),
    "eigvals": (linalg.eigvals, [(3, 3)]),
}


def separated(*shape: int, seed: int = 0, backend: Any = FUSED) -> Any:
    """Complex numbers; a matrix has large ones on its diagonal, so its values differ."""
    x = normal(*shape, seed=seed)
    if len(shape) > 1:
        x = x + np.eye(*shape[-2:]) * (3.0 * np.arange(1, shape[-2] + 1)[:, None])
    return tk.tensor(x, backend=backend)


@each_of("name", SMOOTH)
def test_derivatives_to_second_order_in_every_mix_of_modes(name: str) -> None:
    f, shapes = SMOOTH[name]
    tk.testing.check_grads(f, [separated(*s, seed=i) for i, s in enumerate(shapes)], order=2)


@each_of("name", SMOOTH)
def test_derivatives_of_the_bodies_and_under_jit_and_vmap(name: str) -> None:
    f, shapes = SMOOTH[name]

    def total(*xs: Any) -> Any:
        return sum(
            (abs(y) ** 2).sum() for y in tk.tree.leaves(f(*xs), is_leaf=lambda y: isinstance(y, tk.Tensor))
        )

    places = tuple(range(len(shapes)))
    gradient = tk.grad(lambda *xs: total(*xs).sum(), argnums=places)
    batch = [separated(2, *s, seed=i) for i, s in enumerate(shapes)]
    one_by_one = [gradient(*[x[i] for x in batch]) for i in range(2)]
    expected = [np.stack([array(row[p]) for row in one_by_one]) for p in places]
    for function, backend in ((tk.jit(tk.vmap(gradient)), FUSED), (tk.vmap(gradient), BODIES)):
        found = function(*[tk.tensor(array(x), backend=backend) for x in batch])
        for y, w in zip(found, expected, strict=True):
            np.testing.assert_allclose(array(y), w, rtol=1e-8, atol=1e-8)


def test_the_derivative_of_det_is_correct_for_singular_matrices() -> None:
    x = np.outer(normal(4), normal(4, seed=1))
    for rank in (1, 2, 3):
        found = array(tk.grad(linalg.det, holomorphic=True)(tk.tensor(x)))
        minors = [
            [np.linalg.det(np.delete(np.delete(x, i, 0), j, 1)) * (-1) ** (i + j) for j in range(4)]
            for i in range(4)
        ]
        np.testing.assert_allclose(found, minors, atol=1e-12)
        x = x + np.outer(normal(4, seed=10 * rank), normal(4, seed=20 * rank))


def test_a_holomorphic_function_has_a_complex_derivative() -> None:
    x = normal(3, 3)
    gradient = array(tk.grad(lambda z: linalg.inv(z)[0, 1], holomorphic=True)(tk.tensor(x)))
    inverse = np.linalg.inv(x)
    np.testing.assert_allclose(gradient, -np.outer(inverse[0], inverse[:, 1]), rtol=1e-12)


# ---- polynomials -----------------------------------------------------------------------------------------------


POLYNOMIALS = [
    [1, -6, 11, -6],
    [0, 0, 1.0, 0, -1, 0, 0],
    [0.0, 0.0],
    [3.0],
    [],
    [1, 2j, 3 - 1j, 4],
    [2.0, 5],
    [1, 0, 0, 1],
]


@each_of(("backend", "p"), list(itertools.product(ALL_BACKENDS, POLYNOMIALS)))
def test_roots_and_polynomials_of_matrices_are_numpys(backend: str, p: Any) -> None:
    with tk.use_backend(ALL_BACKENDS[backend]):
        found = tk.roots(tk.tensor(p, "complex128" if any(isinstance(c, complex) for c in p) else "float64"))
        close(np.sort(array(found)), np.sort(np.roots(p)).astype(complex))
        for x in (normal(3, 3), normal(3, 3, dtype="float64")):
            close(tk.poly(x), np.poly(x))


def test_roots_in_programs_and_their_derivative() -> None:
    p = tk.tensor([2.0, -3.0, 1.0, 5.0], "float64")
    tk.testing.check_grads(lambda p: (abs(tk.roots(p) - 1j) ** 3).sum(), (p,), order=2)
    close(np.sort(array(tk.jit(lambda p: tk.roots(p, strip_zeros=False))(p))), np.sort(array(tk.roots(p))))
    with pytest.raises(ConcretizationError, match=r"roots: .* pass strip_zeros=False"):
        tk.jit(tk.roots)(p)
    with pytest.raises(ShapeError, match="poly: need a vector of zeros, or a square matrix"):
        tk.poly(tk.ones((2, 3)))


def test_polyfit_of_complex_values() -> None:
    x = np.linspace(0.0, 1.0, 7)
    y = np.exp(3j * x)
    for w in (None, x + 1.0):
        ours, theirs = tk.polyfit(x, y, 2, w=w, cov=True), np.polyfit(x, y, 2, w=w, cov=True)
        close(tuple(ours), theirs)


# ---- errors ----------------------------------------------------------------------------------------------------


SINGULAR = np.array([[1.0, 1j], [1j, -1.0]])
ERRORS = [
    (lambda: linalg.inv(SINGULAR), LinearAlgebraError, "inv: matrix of shape (2, 2) is singular"),
    (lambda: linalg.solve(SINGULAR, np.ones(2)), LinearAlgebraError, "solve: matrix"),
    (lambda: linalg.cholesky(-np.eye(2) * (1 + 0j)), LinearAlgebraError, "cholesky: matrix"),
    (lambda: linalg.eig(np.ones((2, 3))), ShapeError, "eig: need square matrices, got shape (2, 3)"),
    (
        lambda: linalg.eigvals(tk.ones((2, 2), dtype="float16")),
        DTypeError,
        "eigvals: not defined for float16",
    ),
    (
        lambda: tk.grad(lambda x: abs(linalg.qr(x, mode="complete")[0]).sum())(tk.tensor(normal(3, 2))),
        GradientError,
        "qr: cannot",
    ),
    (lambda: tk.tensor([1j]).apply(OPS["floor"]), DTypeError, "floor: not defined for complex64"),
]


@each_of(("call", "kind", "text"), ERRORS)
def test_errors(call: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


def test_every_op_on_matrices_has_a_complex_form() -> None:
    of_real = {name for name, op in OPS.items() if op.body is not None and op.body.__module__ in MODULES}
    assert of_real == set(FORMS)


MODULES = {"tensorken.ops.elimination", "tensorken.ops.jacobi", "tensorken.ops.spectral"}
