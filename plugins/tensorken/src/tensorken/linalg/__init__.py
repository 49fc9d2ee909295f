"""tk.linalg: systems, factorizations, norms and products of matrices, under the names of the array API and numpy.

A matrix is the last two axes of a tensor; all axes before them are a batch.  Integers and bools become float32.
All functions take complex matrices; transposes of these are conjugate transposes.  Everything can be differentiated to
any order, in both modes, where it is smooth.

A matrix that is singular, or not positive definite where it must be, raises a `LinearAlgebraError` if its values are
known.  Under `vmap`, where values differ between examples, and on backends without values, the result is NaN instead.
NaN in a matrix results in NaN, not in an error.

Raises:
    ShapeError: if an operand has fewer than two axes, is not square where it must be, or does not fit another.
    DTypeError: if the operand of a factorization is float16, or the operand of a product is bool.

The factorizations are ops of the language: a backend calls its own routines for them, or computes them from its
other ops, on its device.

>>> import tensorken as tk
>>> a = tk.tensor([[2.0, 1.0], [1.0, 3.0]])
>>> print(tk.linalg.solve(a, tk.tensor([5.0, 10.0])))
[1. 3.]
"""

import sys as _sys
import typing as _typing

from tensorken.arrays.functions.products import cross, matmul, outer, tensordot, vecdot
from tensorken.arrays.functions.shaping import matrix_transpose
from tensorken.linalg.decompositions import (
    EighResult,
    EigResult,
    QRResult,
    SVDResult,
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from tensorken.linalg.exponentials import expm
from tensorken.linalg.norms import cond, matrix_norm, norm, vector_norm
from tensorken.linalg.products import diagonal, matrix_power, multi_dot, trace
from tensorken.linalg.systems import (
    LstsqResult,
    SlogdetResult,
    det,
    inv,
    lstsq,
    matrix_rank,
    pinv,
    slogdet,
    solve,
    solve_triangular,
)
from tensorken.linalg.tensors import tensorinv, tensorsolve
from tensorken_core.errors import LinearAlgebraError

if not _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """The error for an unknown name; for a name of another library it names the equivalent."""
        from tensorken.arrays.elsewhere.table import missing

        raise missing("module 'tensorken.linalg'", "tk.linalg", name, _sys.modules[__name__])


__all__ = [
    "EigResult",
    "EighResult",
    "LinAlgError",
    "LinearAlgebraError",
    "LstsqResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]

LinAlgError = LinearAlgebraError
"""The name of `LinearAlgebraError` in numpy."""
