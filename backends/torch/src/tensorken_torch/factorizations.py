"""The ops on matrices, by torch.linalg.  They never raise: a matrix without a result gives NaN.

All are functions of tensors, so that the graph of a program can call them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

OPERANDS = {"solve": 2, "triangular_solve": 2}
"""The number of operands, where it is not 1."""


def op(name: str) -> Callable[..., Any]:
    """The function of an op; a complex op has operands and results in parts.

    Apple's GPUs lack most of torch.linalg, so their matrices go to the CPU and back.
    """
    real = name.removeprefix("complex_")
    function, count = globals()[real], 0 if real == name else OPERANDS.get(real, 1)

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        device = args[0].device
        if device.type == "mps":
            args = tuple(x.cpu() if isinstance(x, Tensor) else x for x in args)
        operands = [torch.complex(*args[2 * i : 2 * i + 2]) for i in range(count)]
        results = function(*operands, *args[2 * count :])
        parts = [
            part.contiguous().to(device)
            for y in (results if isinstance(results, tuple) else (results,))
            for part in ((y.real, y.imag) if y.is_complex() else (y,))
        ]
        return tuple(parts) if len(parts) > 1 else parts[0]

    return call


def ops(names: str) -> list[Callable[..., Any]]:
    """The functions of these ops, in order."""
    return [op(name) for name in names.split()]


def solve(a: Tensor, b: Tensor) -> Tensor:
    """The x with a @ x = b."""
    x, info = torch.linalg.solve_ex(a, b)
    return _nan_where(info != 0, x)


def inv(x: Tensor) -> Tensor:
    """The inverse."""
    y, info = torch.linalg.inv_ex(x)
    return _nan_where(info != 0, y)


def triangular_solve(a: Tensor, b: Tensor, lower: bool) -> Tensor:
    """The x with a @ x = b for triangular a."""
    x = torch.linalg.solve_triangular(a, b, upper=not lower)
    return _nan_where((a.diagonal(dim1=-2, dim2=-1) == 0).any(-1), x)


def det(x: Tensor) -> Tensor:
    """The determinant."""
    return torch.linalg.det(x)


def slogdet(x: Tensor) -> tuple[Tensor, Tensor]:
    """The determinant's sign, or its phase if it is complex, and the logarithm of its modulus."""
    return tuple(torch.linalg.slogdet(x))


def cholesky(x: Tensor) -> Tensor:
    """The lower factor; the operand's upper triangle is not read."""
    lower, invalid = _finite(_lower(x))
    factor, info = torch.linalg.cholesky_ex(lower)
    return _nan_where(invalid | (info != 0), factor)


def qr(x: Tensor, complete: bool) -> tuple[Tensor, Tensor]:
    """Q and R."""
    return tuple(torch.linalg.qr(x, "complete" if complete else "reduced"))


def eigh(x: Tensor) -> tuple[Tensor, Tensor]:
    """The eigenvalues in ascending order, and the eigenvectors; the operand's upper triangle is not read."""
    lower, invalid = _finite(_lower(x))
    values, vectors = torch.linalg.eigh(lower)
    return _nan_where(invalid, values, 1), _nan_where(invalid, vectors)


def eigvalsh(x: Tensor) -> Tensor:
    """The eigenvalues in ascending order."""
    lower, invalid = _finite(_lower(x))
    return _nan_where(invalid, torch.linalg.eigvalsh(lower), 1)


def svd(x: Tensor, full_matrices: bool) -> tuple[Tensor, Tensor, Tensor]:
    """U, the singular values in descending order, and the adjoint of V."""
    x, invalid = _finite(x)
    u, values, vh = torch.linalg.svd(x, full_matrices)
    return _nan_where(invalid, u), _nan_where(invalid, values, 1), _nan_where(invalid, vh)


def svdvals(x: Tensor) -> Tensor:
    """The singular values in descending order."""
    x, invalid = _finite(x)
    return _nan_where(invalid, torch.linalg.svdvals(x), 1)


def _lower(x: Tensor) -> Tensor:
    """The lower triangle, without imaginary parts on the diagonal."""
    lower = x.tril()
    if x.is_complex():
        lower = torch.where(torch.eye(x.shape[-1], dtype=torch.bool, device=x.device), lower.real + 0j, lower)
    return lower


def _finite(x: Tensor) -> tuple[Tensor, Tensor]:
    """The matrices with zeros in place of those with an element that is not finite, and which these are."""
    invalid = ~x.isfinite().flatten(-2).all(-1)
    return torch.where(invalid[..., None, None], torch.zeros_like(x), x), invalid


def _nan_where(invalid: Tensor, x: Tensor, axes: int = 2) -> Tensor:
    """NaN in the matrices, or for 1 axis vectors, that are invalid."""
    return torch.where(invalid.reshape(*invalid.shape, *[1] * axes), torch.full_like(x, torch.nan), x)
