"""Checks of the operands of tk.linalg, and detection of nonexistent results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorken.arrays.functions.operands import first_tensor, floating_of
from tensorken.complex_numbers.tensor import ComplexTensor
from tensorken.ops.matrices import adjoint
from tensorken_core.errors import ConcretizationError, LinearAlgebraError, ShapeError
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Shape, broadcast
from tensorken_core.tensor.coercion import pair_of_operands
from tensorken_core.tensor.level import lower
from tensorken_core.tensor.tensor import Tensor, as_tensor


def matrices(name: str, x: Any) -> Tensor:
    """x as floating-point matrices."""
    y = floating_of(as_tensor(x))
    if y.ndim < 2:
        raise ShapeError(f"{name}: need matrices, at least 2 axes, got shape {y.shape}; reshape first")
    return y


ALTERNATIVES = {
    "solve": "use tk.linalg.lstsq for other shapes",
    "inv": "use tk.linalg.pinv for other shapes",
    "eig": "use tk.linalg.svd for other shapes",
    "eigh": "use tk.linalg.svd for other shapes",
    "eigvals": "use tk.linalg.svdvals for other shapes",
    "eigvalsh": "use tk.linalg.svdvals for other shapes",
    "cond": "leave out p, or use 2 or -2, for other shapes",
}
"""For each function the alternative for matrices that are not square."""


def square(name: str, x: Any) -> Tensor:
    """x as floating-point square matrices."""
    y = matrices(name, x)
    if y.shape[-1] != y.shape[-2]:
        raise ShapeError(
            f"{name}: need square matrices, got shape {y.shape}; "
            f"{ALTERNATIVES.get(name, 'give as many rows as columns')}"
        )
    return y


def symmetric(name: str, x: Any) -> Tensor:
    """The symmetric, or Hermitian, part of square matrices, so that derivatives are symmetric too."""
    y = square(name, x)
    return y * 0.5 + adjoint(y) * 0.5  # type: ignore[no-any-return]


def system(
    name: str, a: Any, b: Any, checked: Callable[[str, Any], Tensor] = square
) -> tuple[Tensor, Tensor, Shape]:
    """Matrices and right-hand sides with equal dtype, batch axes and number of rows, and the shape of the solution.

    A right-hand side with one axis becomes a column.
    """
    a, b = pair_of_operands(name, a, b, first_tensor(a, b))
    a, b = checked(name, a), floating_of(b)
    if b.ndim == 0:
        raise ShapeError(
            f"{name}: need a right-hand side with at least one axis, got shape (); reshape it to (1,)"
        )
    columns = b.reshape((b.size, 1)) if b.ndim == 1 else b
    if columns.shape[-2] != a.shape[-2]:
        raise ShapeError(
            f"{name}: {a.shape[-2]} rows of shape {a.shape} and {columns.shape[-2]} of {b.shape}; need equal numbers"
        )
    try:
        batch = broadcast(a.shape[:-2], columns.shape[:-2])
    except ShapeError:
        raise ShapeError(
            f"{name}: the batch axes of {a.shape} and {b.shape} do not broadcast; need equal sizes, or 1"
        ) from None
    solution = (*batch, a.shape[-1], columns.shape[-1])
    return (
        a.broadcast_to(batch + a.shape[-2:]),
        columns.broadcast_to(batch + columns.shape[-2:]),
        solution[:-1] if b.ndim == 1 else solution,
    )


def applied(name: str, x: Tensor, *rest: Any) -> Tensor:
    """Apply the op `name` to x, followed by its other operands and its params."""
    result: Tensor = x.apply(OPS[name], *rest)
    return result


# ---- nonexistent results -----------------------------------------------------------------------------------


def check(name: str, y: Tensor, operands: Sequence[Tensor], problem: str) -> None:
    """Raise a LinearAlgebraError for the first matrix of finite numbers for which y is NaN, if values are known."""
    result = _known_value(y)
    if result is None or not _is_nan(result.sum()):  # the usual case; one NaN makes the sum NaN
        return
    failed = result.eq(result).astype("int32").min((-2, -1)).eq(0)
    for operand in operands:
        x = _below_levels(operand)
        failed = failed & (x - x).eq(0.0).astype("int32").min((-2, -1)).eq(1)
    marks = failed.ravel().tolist()
    if True not in marks:
        return
    index, rest = [], marks.index(True)
    for size in reversed(failed.shape):
        index.append(rest % size)
        rest //= size
    which = f" {tuple(index[::-1])}" if index else ""
    raise LinearAlgebraError(f"{name}: matrix{which} of shape {operands[0].shape} {problem}")


def _known_value(x: Tensor) -> Tensor | None:
    """The value below all levels; None if it is unknown, or differs between the examples under vmap."""
    try:
        return _below_levels(x)
    except ConcretizationError:
        return None


def _below_levels(x: Tensor) -> Tensor:
    if isinstance(x, ComplexTensor):
        return ComplexTensor(_below_levels(x.real), _below_levels(x.imag))
    return Tensor(*lower(x.representation, x.interpreter))


def _is_nan(x: Tensor) -> bool:
    """Whether a single number is NaN; False if its value is unknown."""
    try:
        value = x.item()
    except (ConcretizationError, NotImplementedError):
        return False
    return value != value  # type: ignore[no-any-return]
