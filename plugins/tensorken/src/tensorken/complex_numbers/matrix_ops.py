# mypy: disable-error-code="empty-body"
"""The ops on complex matrices, as pairs of their parts; a backend overrides them with its library's routines.

An op without such a method runs the body of the op on real matrices, on complex tensors.

The phases of eigenvectors and singular vectors are arbitrary.  The derivative of an eigenvector is orthogonal to it,
and that of a right singular vector too, as in JAX; a routine chooses the phases otherwise.  So the samples of `eigh`
and `svd`, which tests compare with difference quotients, are those whose phases are known.
"""

from __future__ import annotations

from tensorken.complex_numbers.parts import complex_form
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.raw import RawTensor


class ComplexMatrices(Interpreter[R]):
    """Systems and factorizations of complex matrices."""

    @complex_form("solve", (True, True))
    def complex_solve(self, a: R, a_imag: R, b: R, b_imag: R) -> tuple[R, R]:
        """The y with a @ y = b, for square a; NaN if a is singular."""

    @complex_form("triangular_solve", (True, True))
    def complex_triangular_solve(self, a: R, a_imag: R, b: R, b_imag: R, lower: bool) -> tuple[R, R]:
        """The y with a @ y = b, for triangular a; reads one triangle of a; NaN if a is singular."""

    @complex_form("inv")
    def complex_inv(self, x: R, x_imag: R) -> tuple[R, R]:
        """The inverse of a square matrix; NaN if it is singular."""

    @complex_form("det")
    def complex_det(self, x: R, x_imag: R) -> tuple[R, R]:
        """The determinant of a square matrix."""

    @complex_form("cofactors")
    def complex_cofactors(self, x: R, x_imag: R) -> tuple[R, R]:
        """The matrix of cofactors: (-1)**(i + j) * det(x without row i and column j)."""

    @complex_form("slogdet", results=(True, False))
    def complex_slogdet(self, x: R, x_imag: R) -> tuple[R, R, R]:
        """The determinant divided by its modulus, and the logarithm of that; 0 and -inf for a singular matrix."""

    @complex_form("pinv", (True, False))
    def complex_pinv(self, x: R, x_imag: R, rtol: R) -> tuple[R, R]:
        """The pseudoinverse; singular values that are at most rtol times the largest count as 0."""

    @complex_form("cholesky")
    def complex_cholesky(self, x: R, x_imag: R) -> tuple[R, R]:
        """The lower triangular L with L @ L.H = x, with a real diagonal; reads the lower triangle of x."""

    @complex_form("qr", results=(True, True))
    def complex_qr(self, x: R, x_imag: R, complete: bool) -> tuple[R, R, R, R]:
        """Q with orthonormal columns and upper triangular R with a real diagonal, Q @ R = x."""

    @complex_form("eigh", results=(False, True), samples=((((2, 1, 1),), ()),))
    def complex_eigh(self, x: R, x_imag: R) -> tuple[R, R, R]:
        """The eigenvalues of a Hermitian matrix, ascending, and its eigenvectors; reads the lower triangle."""

    @complex_form("eigvalsh", results=(False,))
    def complex_eigvalsh(self, x: R, x_imag: R) -> R:
        """The eigenvalues of a Hermitian matrix, ascending; only the lower triangle is read."""

    @complex_form("svd", results=(True, False, True), samples=((((2, 2, 1),), (False,)),))
    def complex_svd(self, x: R, x_imag: R, full_matrices: bool) -> tuple[R, R, R, R, R]:
        """U, S, Vh with (U * S) @ Vh = x: orthonormal columns, descending singular values, orthonormal rows."""

    @complex_form("svdvals", results=(False,))
    def complex_svdvals(self, x: R, x_imag: R) -> R:
        """The singular values, descending."""


for _name, _method in vars(ComplexMatrices).items():
    if hasattr(_method, "op"):
        setattr(RawTensor, _name, _method)  # so that backends have it, like all ops
