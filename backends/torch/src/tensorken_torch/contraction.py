"""Contractions: sums of products as products of matrices.  A plan, cached by the two shapes, classifies the axes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor

from tensorken_core.language.shapes import Axes, Shape, contraction_axes


@dataclass(frozen=True, slots=True)
class Matrix:
    """How an operand becomes a matrix, or a batch of matrices.

    Attributes:
        order: the order of its axes; those of size 1 come last.
        shape: its shape, after that.
        transposed: whether the matrix is then transposed, so that a reshape copies no rows to columns.
    """

    order: Axes
    shape: Shape
    transposed: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """How a contraction is computed.

    Attributes:
        sum_a: the contracted axes that only the first operand has.
        sum_b: the contracted axes that only the second operand has.
        method: `multiply` without a common contracted axis, `reduce` for products that are summed along common axes
            only, else `matmul`.
        axes: the axes that `reduce` sums.
        swap: whether `matmul` takes the second operand first, so that its result has the order of the axes.
        first: how the first operand becomes a matrix.
        second: how the second operand becomes a matrix.
        split: the shape of the result of `matmul`, with its axes in the order of the operands.
        order: the order that sorts these axes.
        shape: the shape of the result.
    """

    sum_a: Axes
    sum_b: Axes
    method: Literal["multiply", "reduce", "matmul"]
    axes: Axes
    swap: bool
    first: Matrix
    second: Matrix
    split: Shape
    order: Axes
    shape: Shape


def contract(a: Tensor, b: Tensor, axes: Axes) -> Tensor:
    """sum(a * b, axes) with reduced axes kept at size 1; along each axis the sizes are equal, or one is 1."""
    plan = plan_contraction(tuple(a.shape), tuple(b.shape), axes, has_matmul(a.dtype, a.device))
    if plan.sum_a:
        a = torch.sum(a, plan.sum_a, True, dtype=a.dtype)
    if plan.sum_b:
        b = torch.sum(b, plan.sum_b, True, dtype=b.dtype)
    if plan.method == "multiply":
        return torch.mul(a, b)
    if plan.method == "reduce":
        return torch.sum(torch.mul(a, b), plan.axes, True, dtype=a.dtype)
    a, b = _as_matrix(a, plan.first), _as_matrix(b, plan.second)
    y = torch.matmul(b, a) if plan.swap else torch.matmul(a, b)
    return y.reshape(plan.split).permute(plan.order).reshape(plan.shape)


def _as_matrix(x: Tensor, matrix: Matrix) -> Tensor:
    y = x.permute(matrix.order).reshape(matrix.shape)
    return y.mT if matrix.transposed else y


def has_matmul(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether torch has products of matrices of a dtype on a device."""
    return bool(dtype.is_floating_point or (device.type == "cpu" and dtype != torch.bool))


@lru_cache(maxsize=4096)
def plan_contraction(shape_a: Shape, shape_b: Shape, axes: Axes, matmul: bool) -> Plan:
    """The plan for operands of these shapes."""
    batch, rows, columns, inner, sum_a, sum_b, _none = contraction_axes(shape_a, shape_b, axes)
    full = tuple([m if n == 1 else n for n, m in zip(shape_a, shape_b, strict=True)])
    swap = bool(rows and columns) and columns[0] < rows[0]
    result = [*batch, *columns, *rows] if swap else [*batch, *rows, *columns]

    def size(group: list[int]) -> int:
        return math.prod([full[i] for i in group])

    method: Literal["multiply", "reduce", "matmul"] = "multiply"
    if inner:
        method = "matmul" if matmul and (rows or columns or not batch) else "reduce"
    return Plan(
        sum_a=tuple(sum_a),
        sum_b=tuple(sum_b),
        method=method,
        axes=tuple(inner),
        swap=swap,
        first=_operand(batch, inner if swap else rows, rows if swap else inner, full),
        second=_operand(batch, columns if swap else inner, inner if swap else columns, full),
        split=tuple([full[i] for i in result]),
        order=tuple([result.index(i) for i in sorted(result)]),
        shape=tuple([1 if i in axes else n for i, n in enumerate(full)]),
    )


def _operand(batch: list[int], rows: list[int], columns: list[int], full: Shape) -> Matrix:
    """An operand with these axes, of sizes in `full`; all other axes have size 1."""
    order = [*batch, *columns, *rows]
    transposed = order == sorted(order) and bool(rows and columns)
    groups = [columns, rows] if transposed else [rows, columns]
    named = [*batch, *groups[0], *groups[1]]
    sizes = [math.prod([full[i] for i in group]) for group in ([batch] if batch else []) + groups]
    return Matrix((*named, *[i for i in range(len(full)) if i not in named]), tuple(sizes), transposed)
