# mypy: disable-error-code="empty-body"
"""The ops `eig` and `eigvals` of general matrices, real and complex; their results are always complex.

A backend without a routine runs the QR algorithm in Python, on the values (`schur.py`): its steps depend on them, so
the ops are opaque, and programs are cut there.

Derivatives: M. B. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation", 2008.  The vectors keep length 1 and their largest component real, as LAPACK's and JAX's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorken.complex_numbers.parts import Flags, on_parts, rule_of
from tensorken.complex_numbers.schur import eigen, eigenvalues
from tensorken.complex_numbers.tensor import ComplexTensor, complex_of
from tensorken.ops.matrices import (
    adjoint,
    as_row,
    conjugate,
    diagonal,
    diagonal_matrix,
    divided_by_gaps,
    gaps_of,
    row_indices,
)
from tensorken.ops.matrix_op import SQUARES, dominant, square
from tensorken_core.errors import DTypeError
from tensorken_core.language.declare import Method
from tensorken_core.language.dtype_rules import floating
from tensorken_core.language.dtypes import DType, complex_dtype, real_dtype
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape


def eig(x: Any) -> tuple[ComplexTensor, ComplexTensor]:
    """The eigenvalues and eigenvectors of a real or complex tensor of matrices."""
    return _run("eig", x, (True, True))  # type: ignore[no-any-return]


def eigvals(x: Any) -> ComplexTensor:
    """The eigenvalues of a real or complex tensor of matrices."""
    return _run("eigvals", x, (True,))  # type: ignore[no-any-return]


def _run(name: str, x: Any, results: Flags) -> Any:
    is_complex = isinstance(x, ComplexTensor)
    return rule_of(OPS[f"complex_{name}" if is_complex else name], (is_complex,), results)(x)


# ---- bodies ----------------------------------------------------------------------------------------------------


def _eig(x: Any) -> tuple[Any, Any]:
    found = [eigen(rows) for rows in _matrices(x)]
    values = [value for of_one, _ in found for value in of_one]
    vectors = [v for _, rows in found for row in rows for v in row]
    return _constant(x, values, x.shape[:-1]), _constant(x, vectors, x.shape)


def _eigvals(x: Any) -> Any:
    return _constant(x, [value for rows in _matrices(x) for value in eigenvalues(rows)], x.shape[:-1])


def _constant(x: Any, values: list[complex], shape: Shape) -> ComplexTensor:
    """The complex numbers at the level of x."""
    dtype = real_dtype(x.dtype)
    real, imag = [v.real for v in values], [v.imag for v in values]
    return ComplexTensor(x.real.constant(real, dtype, shape), x.real.constant(imag, dtype, shape))


def _matrices(x: Any) -> list[list[list[Any]]]:
    """The rows of each matrix, of Python's numbers."""
    n = x.shape[-1]
    flat = [v if isinstance(v, complex) else float(v) for v in x.flat()]
    rows = [flat[i : i + n] for i in range(0, len(flat), n or 1)]
    return [rows[i : i + n] for i in range(0, len(rows), n or 1)]


# ---- derivatives -----------------------------------------------------------------------------------------------


def _complex(x: Any) -> Any:
    return x if isinstance(x, ComplexTensor) else complex_of(x, complex_dtype(x.dtype))


def _is_largest(vectors: Any) -> Any:
    """Whether an element is the largest of its eigenvector."""
    place = vectors.abs().apply(OPS["argmax"], vectors.ndim - 2)
    return row_indices(vectors, vectors.shape[-1]).eq(place)


def _eig_jvp(tangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    (t,), (values, vectors) = tangents, ys
    inner = vectors.apply(OPS["solve"], _complex(t) @ vectors)
    moved = vectors @ divided_by_gaps(inner, gaps_of(values))
    largest = _is_largest(vectors)
    along = (conjugate(vectors) * moved).sum(-2).real
    turn = largest.where(moved, 0.0).sum(-2).imag / largest.where(vectors, 0.0).sum(-2).real
    return diagonal(inner), moved - vectors * as_row(ComplexTensor(along, turn))


def _eig_vjp(cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    (values_ct, vectors_ct), (values, vectors) = cotangents, ys
    inner = None if values_ct is None else diagonal_matrix(values_ct)
    if vectors_ct is not None:
        largest = _is_largest(vectors)
        pairing = (conjugate(vectors_ct) * vectors).sum(-2)
        turn = pairing.imag / largest.where(vectors, 0.0).sum(-2).real
        moved = vectors_ct - vectors * as_row(pairing.real)
        moved = ComplexTensor(moved.real, moved.imag + largest.where(as_row(turn), 0.0))
        of_gaps = divided_by_gaps(adjoint(vectors) @ moved, conjugate(gaps_of(values)))
        inner = of_gaps if inner is None else inner + of_gaps
    right = adjoint(vectors)
    return (right.apply(OPS["solve"], inner @ right),)


def _eigvals_jvp(tangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    vectors = eig(xs[0])[1]
    return (diagonal(vectors.apply(OPS["solve"], _complex(tangents[0]) @ vectors)),)


def _eigvals_vjp(cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    right = adjoint(eig(xs[0])[1])
    return (right.apply(OPS["solve"], diagonal_matrix(cotangents[0]) @ right),)


# ---- declarations ----------------------------------------------------------------------------------------------


def _dtype(*parts: DType) -> DType:
    dtype = floating(*parts)
    if dtype.wide is not dtype:
        raise DTypeError(f"not defined for {dtype}; it takes float32, float64; cast first (x.astype)")
    return dtype


def _eigen_op(operand: bool, results: Flags) -> Callable[[Method], Method]:
    """Declare an op that returns eigenvalues, or also eigenvectors.

    Args:
        operand: whether the operand is complex.
        results: a flag for each result, which is complex.
    """
    both = len(results) == 2
    return on_parts(
        (operand,),
        results,
        shape=lambda x: (square(x)[:-1], x) if both else square(x)[:-1],
        dtype=lambda *parts: (_dtype(*parts),) * 2 if both else _dtype(*parts),
        jvp=_eig_jvp if both else _eigvals_jvp,
        vjp=_eig_vjp if both else _eigvals_vjp,
        body=_eig if both else _eigvals,
        adjust_samples=dominant,
        samples=((((2, 1, 1),), ()),) if both else SQUARES[1:],  # signs and order of vectors are arbitrary
        opaque="pure",
    )


class Eigenvalues(Interpreter[R]):
    """Eigenvalues of general matrices."""

    @_eigen_op(False, (True, True))
    def eig(self, x: R) -> tuple[R, R, R, R]:
        """The eigenvalues of a real matrix, and its eigenvectors as columns of length 1; NaN if they are not found."""

    @_eigen_op(False, (True,))
    def eigvals(self, x: R) -> tuple[R, R]:
        """The eigenvalues of a real matrix, in no order."""

    @_eigen_op(True, (True, True))
    def complex_eig(self, x: R, x_imag: R) -> tuple[R, R, R, R]:
        """The eigenvalues of a complex matrix, and its eigenvectors as columns of length 1."""

    @_eigen_op(True, (True,))
    def complex_eigvals(self, x: R, x_imag: R) -> tuple[R, R]:
        """The eigenvalues of a complex matrix, in no order."""


for _name, _method in vars(Eigenvalues).items():
    if hasattr(_method, "op"):
        setattr(RawTensor, _name, _method)  # so that backends have it, like all ops
