"""Rows of linear algebra and of Fourier transforms, whose results are compared as far as they are unique."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg

from oracles.sweep.operands import INTEGERS, kind, limits, numpy_dtype, part, regular
from oracles.sweep.row import MOVES, Case, Row, always, complex_of, inexact, real_inexact, same, summed

MATRICES: dict[str, Row] = {}


def matrix(d: str, n: int = 3, seed: int = 0) -> Any:
    """A regular matrix of a dtype, far from singular."""
    x = regular(d, (n, n), seed)
    if d == "bool":
        return np.tril(np.ones((n, n), bool))
    if d in INTEGERS:
        x = x % 5
    return (x + 9 * np.eye(n)).astype(numpy_dtype(d))


def hermitian(d: str) -> Any:
    """A positive definite matrix of a dtype."""
    x = matrix(d)
    if d == "bool":
        return np.eye(3, dtype=bool)
    return ((x + x.conj().T) / 2 + np.eye(3)).astype(numpy_dtype(d))


def square(
    *arguments: Any, make: Callable[[str], Any] = matrix, empty: bool = True, **params: Any
) -> Callable[[str], list[Case]]:
    """Matrices: regular, the identity, one with an infinity or NaN or of large numbers, one without elements."""

    def cases(d: str) -> list[Case]:
        dtype = numpy_dtype(d)
        found = [
            Case("regular", (make(d), *arguments), params),
            Case("equal", (np.eye(3).astype(dtype), *arguments), params),
            Case("one", (make(d)[:1, :1], *arguments), params),
        ]
        if empty:
            found.append(Case("none", (np.zeros((0, 0), dtype), *arguments), params))
        if kind(d) == "float" and d not in ("float16", "bfloat16"):
            for label, v in (
                ("largest", float(limits(d).max) ** 0.75),
                ("smallest", float(limits(d).smallest_normal) ** 0.75),
            ):
                found.append(Case(label, ((make(d).astype("float64") * v).astype(dtype), *arguments), params))
        return found

    return cases


def right_sides(d: str) -> list[Case]:
    """A matrix, and a vector or a matrix of right sides."""
    return [
        Case("regular", (matrix(d), regular(d, (3,)))),
        Case("rows", (matrix(d), regular(d, (3, 2)))),
        Case("none", (np.zeros((0, 0), numpy_dtype(d)), np.zeros((0, 2), numpy_dtype(d)))),
    ]


def lapack(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numpy on float64, which LAPACK has, instead of longer numbers."""

    def computed(*xs: Any, **params: Any) -> Any:
        given = [
            x.astype("complex128" if x.dtype.kind == "c" else "float64") if isinstance(x, np.ndarray) else x
            for x in xs
        ]
        return f(*given, **params)

    return computed


def _linalg(names: str, f: Callable[..., Any] | None = None, **facts: Any) -> None:
    for name in names.split():
        facts = {"cases": square(), "ulp": 256, "scale": "largest", **facts}
        MATRICES[f"tk.linalg.{name}"] = Row(lapack(f or getattr(np.linalg, name)), **facts)


_linalg("cholesky", cases=square(make=hermitian))
_linalg("det inv")
_linalg("pinv")
_linalg("matrix_rank", result=always("int32"))
_linalg("cond", result=real_inexact)
_linalg("svdvals", result=real_inexact)
_linalg("matrix_norm", lambda x: _length(np.ravel(x)), result=real_inexact)
_linalg("eigvalsh", cases=square(make=hermitian), result=real_inexact)
_linalg(
    "expm",
    scipy.linalg.expm,
    cases=lambda d: [
        Case(
            "regular",
            ((matrix(d) / 9).astype(numpy_dtype(d)) if d not in ("bool", *INTEGERS) else matrix(d) // 5,),
        )
    ],
)
_linalg("slogdet", lambda x: tuple(np.linalg.slogdet(x)), result=(inexact, real_inexact))
MATRICES["tk.linalg.matrix_power"] = Row(
    np.linalg.matrix_power,
    cases=lambda d: [Case("regular", (matrix(d), n)) for n in (0, 1, 3)] if d != "bool" else [],
    precision="same",
    result=None,
    ulp=16,
    scale="largest",
)
_linalg("solve", cases=right_sides)
_linalg("solve_triangular", lambda a, b: np.linalg.solve(np.triu(a), b), cases=right_sides)
MATRICES["tk.linalg.lstsq"] = Row(
    lapack(lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0]),
    call=lambda f, a, b: f(a, b)[0],
    cases=lambda d: right_sides(d)[:2],
    ulp=256,
    scale="largest",
)
MATRICES["tk.linalg.multi_dot"] = Row(
    lambda *xs: np.linalg.multi_dot(xs),
    call=lambda f, *xs: f(list(xs)),
    cases=lambda d: [Case("regular", (matrix(d), matrix(d, seed=1), matrix(d)))],
    precision="same",
    result=same,
    ulp=256,
    scale="largest",
)
MATRICES["tk.linalg.tensorinv"] = Row(
    lapack(lambda x: np.linalg.tensorinv(x, 1)),
    call=lambda f, x: f(x, 1),
    cases=lambda d: [Case("regular", (matrix(d),))],
    ulp=256,
    scale="largest",
)
_linalg("tensorsolve", cases=lambda d: right_sides(d)[:1])
# factors are unique up to signs, so the product that defines them is compared
MATRICES["tk.linalg.qr"] = Row(
    lapack(lambda x: x), call=lambda f, x: operator.matmul(*f(x)), cases=square(), ulp=256, scale="largest"
)
MATRICES["tk.linalg.svd"] = Row(
    lapack(lambda x: x),
    call=lambda f, x: (lambda u, s, v: (u * s) @ v)(*f(x, full_matrices=False)),
    cases=square(),
    ulp=256,
    scale="largest",
)
MATRICES["tk.linalg.eigh"] = Row(
    lapack(lambda x: x),
    call=lambda f, x: (lambda w, v: (v * w) @ v.mT.conj())(*f(x)),
    cases=square(make=hermitian),
    ulp=256,
    scale="largest",
)
MATRICES["tk.linalg.eig"] = Row(
    lapack(lambda x: 0j * x),
    call=lambda f, x: (lambda w, v: x @ v - v * w)(*f(x)),
    cases=lambda d: square()(d)[:2],
    ulp=4096,
    scale="one",
    result=complex_of,
)
MATRICES["tk.linalg.eigvals"] = Row(
    lapack(lambda x: np.linalg.eigvals(x).sum() + 0j),
    call=lambda f, x: f(x).sum(),
    cases=lambda d: square()(d)[:2],
    ulp=256,
    scale="largest",
    result=complex_of,
)
MATRICES["tk.linalg.diagonal"] = Row(np.linalg.diagonal, cases=square(), **MOVES)
MATRICES["tk.linalg.trace"] = Row(
    lambda x: np.trace(x, dtype=numpy_dtype(summed(x.dtype.name))),
    cases=square(),
    precision="same",
    result=summed,
    ulp=16,
    scale="terms",
)


def vectors_of(d: str) -> list[Case]:
    """Vectors whose norms overflow or underflow if their squares are taken."""
    found = [
        Case("regular", (regular(d, (4,)),)),
        Case("none", (regular(d, (0,)),)),
        Case("one", (regular(d, (1,)),)),
    ]
    if kind(d) == "float":
        limit = limits(d)
        for label, v in (
            ("largest", float(limit.max) / 8),
            ("smallest", float(limit.smallest_normal)),
            ("infinite", np.inf),
            ("nan", np.nan),
            ("zero", 0.0),
        ):
            found.append(Case(label, (np.array([v, v / 2, v]).astype(numpy_dtype(d)),)))
    return found


def _length(x: Any) -> Any:
    return np.sqrt((np.abs(x).astype("longdouble") ** 2).sum())


MATRICES["tk.linalg.vector_norm"] = Row(_length, cases=vectors_of, result=real_inexact, ulp=16)
MATRICES["tk.linalg.norm"] = Row(_length, cases=vectors_of, result=real_inexact, ulp=16)

# ---- Fourier transforms ---------------------------------------------------------------------------------------------


def signals(shape: Sequence[int]) -> Callable[[str], list[Case]]:
    """Signals: regular, equal, one element, with an infinity, of large numbers."""

    def cases(d: str) -> list[Case]:
        x = regular(d, shape)
        found = [Case("regular", (x,)), Case("equal", (np.broadcast_to(x.reshape(-1)[0], shape).copy(),))]
        if kind(d) == "float":
            wide = x.astype("float64")
            largest = wide / np.abs(wide).max() * float(limits(d).max) / 64
            found.append(Case("largest", (largest.astype(x.dtype),)))
            y = x.copy()
            y.reshape(-1)[1] = np.nan
            found.append(Case("nan", (y,)))
        return found

    return cases


def _transform(names: str, shape: Sequence[int], result: Any) -> None:
    for name in names.split():
        MATRICES[f"tk.fft.{name}"] = Row(
            lapack(getattr(np.fft, name)), cases=signals(shape), result=result, ulp=32, scale="largest"
        )


_transform("fft ifft rfft ihfft", (6,), complex_of)
_transform("fft2 ifft2 rfft2 fftn ifftn rfftn", (2, 6), complex_of)
_transform("irfft hfft", (5,), lambda d: part(complex_of(d)))
_transform("irfft2 irfftn", (2, 5), lambda d: part(complex_of(d)))
for _name in ("fftshift", "ifftshift"):
    MATRICES[f"tk.fft.{_name}"] = Row(getattr(np.fft, _name), cases=signals((5,)), **MOVES)
