"""Rows for products and tk.linalg."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from hypothesis import strategies as st

from core.tests.drawing import DTYPES, Array, axes_of
from plugins.tensorken.tests.namespace.rows import (
    BOOL,
    KIND,
    Call,
    Draw,
    Row,
    floating,
    in_its_dtype,
    lasting,
    one,
    plus,
)

# ---- products and tk.linalg --------------------------------------------------------------------------------


def whole(draw: Draw, dtype: str, shape: tuple[int, ...]) -> Array:
    """Small integers, whose sums are exact in any order."""
    x = np.random.default_rng(draw(st.integers(0, 2**20))).integers(-3, 4, shape).astype(dtype)
    return x[(..., *[slice(None, None, -1)] * x.ndim)] if draw(st.booleans()) else x


def factors(*shapes: str) -> Callable[[Draw], Call]:
    """Operands whose axes are named by letters; `...` is zero or one further axis, which may have size 1."""

    def operands(draw: Draw) -> Call:
        sizes = {letter: draw(st.integers(0, 3)) for letter in sorted(set("".join(shapes)) - {"."})}
        batch, dtype = draw(st.integers(0, 3)), draw(st.sampled_from(DTYPES))
        found = []
        for shape in shapes:
            more = draw(st.sampled_from([(), (1,), (batch,)])) if shape.startswith("...") else ()
            kind = dtype if draw(st.booleans()) else draw(st.sampled_from(DTYPES))
            found.append(whole(draw, kind, (*more, *[sizes[letter] for letter in shape.strip(".")])))
        return tuple(found), {}

    return operands


def threes(draw: Draw) -> Call:
    rows = draw(st.integers(0, 3))
    return (whole(draw, draw(KIND), (rows, 3)), whole(draw, draw(KIND), (rows, 3))), {}


PRODUCTS = {
    "matmul": Row(factors("...ij", "...jk"), signs=False),
    "dot": Row(factors("...ij", "jk"), signs=False),
    "vdot": Row(factors("ij", "ij"), signs=False),
    "inner": Row(factors("ij", "...j"), signs=False),
    "outer": Row(factors("i", "k"), signs=False),
    "kron": Row(factors("ij", "kl"), signs=False),
    "vecdot": Row(factors("...i", "...i"), signs=False),
    "cross": Row(threes, signs=False, refused=BOOL),
    "tensordot": Row(
        plus(factors("ijk", "jkl"), axes=st.sampled_from([0, ((1, 2), (0, 1)), ((-2, 2), (0, -2))])),
        signs=False,
    ),
    "einsum": Row(lambda draw: (("...ij,jk->...k", *factors("...ij", "jk")(draw)[0]), {}), signs=False),
}


def square(draw: Draw) -> Array:
    """Well-conditioned matrices of small integers, of any dtype but float16."""
    n = draw(st.integers(0, 3))
    batch = tuple(draw(st.lists(st.integers(0, 2), max_size=1)))
    dtype = draw(st.sampled_from(["bool", "int32", "int64", "float32", "float64"]))
    if dtype == "bool":
        return np.broadcast_to(np.triu(np.ones((n, n), bool)), (*batch, n, n)).copy()
    x = whole(draw, dtype, (*batch, n, n)) + 10 * np.eye(n, dtype=dtype)
    return np.swapaxes(x, -1, -2) if draw(st.booleans()) else x


def oblong(draw: Draw, least: int = 0) -> Array:
    dtype = draw(st.sampled_from(["int32", "int64", "float32", "float64"]))
    shape = tuple(draw(st.integers(least, 3)) for _ in range(draw(st.integers(2, 3))))
    return whole(draw, dtype, shape)


def matrix(make: Callable[[Draw], Array]) -> Callable[[Draw], Call]:
    return lambda draw: ((make(draw),), {})


def symmetric(draw: Draw) -> Array:
    x = square(draw)
    return (x | np.swapaxes(x, -1, -2)) if x.dtype == bool else x + np.swapaxes(x, -1, -2)


def definite(draw: Draw) -> Array:
    x = symmetric(draw)
    return np.eye(x.shape[-1], dtype=bool) if x.dtype == bool else x


def system(draw: Draw) -> Call:
    a = square(draw)
    shape = a.shape[-1:] if draw(st.booleans()) else (*a.shape[:-1], draw(st.integers(0, 2)))
    return (a, whole(draw, draw(st.sampled_from(["int32", "float32", "float64"])), shape)), {}


def norms(draw: Draw) -> Call:
    x = oblong(draw, 1)
    return (x,), {
        "axis": draw(st.sampled_from([0, -1, (0, 1), (-1, 0)])),
        "keepdims": draw(st.booleans()),
        "ord": draw(st.sampled_from([None, 1, -1, math.inf, -math.inf])),
    }


def over_axes(draw: Draw) -> Call:
    x = oblong(draw)
    return (x,), {
        "axis": draw(axes_of(x.ndim)),
        "keepdims": draw(st.booleans()),
        "ord": draw(st.sampled_from([0, 1, 2, 3])),
    }


def chain(draw: Draw) -> Call:
    (a, b, c), _ = factors("ij", "jk", "kl")(draw)
    return ([a, b, c],), {}


def tensor_system(draw: Draw) -> Call:
    a, b = tensor_map(draw), draw(st.booleans())
    n = a.shape[0]
    rhs = whole(draw, "float64", (n, 1) if b else (n,))
    return (a.reshape((n, 1, 1, n)) if b else a.reshape((n, n, 1)), rhs), {}


def tensor_map(draw: Draw) -> Array:
    """One square matrix."""
    a = square(draw)
    return a[(0,) * (a.ndim - 2)] if a.size else np.eye(1, dtype=a.dtype)


def split_map(draw: Draw) -> Call:
    a = tensor_map(draw)
    n, ind = a.shape[0], draw(st.sampled_from([1, 2]))
    return (a.reshape((n, n, 1) if ind == 1 else (n, 1, n)),), {"ind": ind}


CLOSE = {"float32": 1e-3, "float64": 1e-10}


def solved(operands: Callable[[Draw], Call], numpy: Callable[..., Any] | None = None, **more: Any) -> Row:
    return Row(operands, numpy, cast=floating, near=True, tolerance=CLOSE, **more)


LINALG = {
    "inv": solved(matrix(square)),
    "det": solved(matrix(square)),
    "slogdet": solved(matrix(square)),
    "solve": solved(system),
    "solve_triangular": solved(
        plus(system, lower=st.booleans()),
        lambda a, b, lower: np.linalg.solve(np.tril(a) if lower else np.triu(a), b),
    ),
    "cholesky": solved(plus(matrix(definite), upper=st.booleans())),
    "eigvalsh": solved(matrix(symmetric)),
    "expm": solved(matrix(lambda draw: (square(draw) / 8.0).astype("float32")), scipy.linalg.expm),
    "tensorinv": solved(split_map),
    "tensorsolve": solved(tensor_system),
    "eigh": solved(
        matrix(symmetric),
        np.copy,
        read=lambda f: f.eigenvectors * f.eigenvalues[..., None, :] @ f.eigenvectors.mT,
    ),
    "svdvals": solved(matrix(oblong)),
    "svd": solved(
        plus(matrix(oblong), full_matrices=st.just(False)),
        lambda x, full_matrices: x,
        read=lambda f: f.U * f.S[..., None, :] @ f.Vh,
    ),
    "qr": solved(matrix(oblong), np.copy, read=lambda f: f.Q @ f.R),
    "lstsq": solved(system, np.linalg.solve, read=lambda f: f.x),
    "pinv": solved(matrix(oblong)),
    "matrix_rank": solved(matrix(oblong), result="int32"),
    "matrix_power": Row(plus(matrix(square), n=st.integers(0, 3)), near=True),
    "matrix_norm": solved(
        plus(
            matrix(lambda draw: oblong(draw, 1)),
            ord=st.sampled_from(["fro", "nuc", 1, 2, -1, -2]),
            keepdims=st.booleans(),
        )
    ),
    "vector_norm": solved(over_axes),
    "norm": solved(norms, np.linalg.norm),
    "cond": solved(matrix(square)),
    "multi_dot": Row(chain, signs=False),
    "diagonal": Row(plus(one(least_rank=2), offset=st.integers(-3, 3))),
    "trace": Row(
        plus(one(least_rank=2, finite=True), offset=st.integers(-3, 3)),
        in_its_dtype(np.linalg.trace),
        cast=lasting,
        signs=False,
    ),
    "matrix_transpose": Row(one()),
    **{name: PRODUCTS[name] for name in ("cross", "matmul", "outer", "tensordot", "vecdot")},
}
