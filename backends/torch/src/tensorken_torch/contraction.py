"""Contractions: sums of products as products of matrices.  A plan, cached by the two shapes, classifies the axes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor

from tensorken_core.language.shapes import Axes, Shape


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
        order_a: the order of the axes of the first operand; those of size 1 come last.
        order_b: the order of the axes of the second operand.
        matrix_a: the shape of the first operand of `matmul`.
        matrix_b: the shape of the second operand of `matmul`.
        split: the shape of the result of `matmul`, with its axes in the order of the operands.
        order: the order that sorts these axes.
        shape: the shape of the result.
    """

    sum_a: Axes
    sum_b: Axes
    method: Literal["multiply", "reduce", "matmul"]
    axes: Axes
    swap: bool
    order_a: Axes
    order_b: Axes
    matrix_a: Shape
    matrix_b: Shape
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
    a = a.permute(plan.order_a).reshape(plan.matrix_a)
    b = b.permute(plan.order_b).reshape(plan.matrix_b)
    y = torch.matmul(b, a) if plan.swap else torch.matmul(a, b)
    return y.reshape(plan.split).permute(plan.order).reshape(plan.shape)


def has_matmul(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether torch has products of matrices of a dtype on a device."""
    return dtype.is_floating_point or (device.type == "cpu" and dtype != torch.bool)


@lru_cache(maxsize=4096)
def plan_contraction(shape_a: Shape, shape_b: Shape, axes: Axes, matmul: bool) -> Plan:
    """The plan for operands of these shapes."""
    groups: dict[str, list[int]] = {
        name: [] for name in ("batch", "rows", "columns", "inner", "sum_a", "sum_b", "none")
    }
    for i, (n, m) in enumerate(zip(shape_a, shape_b, strict=True)):
        both, only_a, only_b = ("inner", "sum_a", "sum_b") if i in axes else ("batch", "rows", "columns")
        groups[both if n != 1 != m else only_a if n != 1 else only_b if m != 1 else "none"].append(i)
    batch, rows, columns, inner, sum_a, sum_b, none = groups.values()
    full = tuple([m if n == 1 else n for n, m in zip(shape_a, shape_b, strict=True)])
    swap = bool(rows and columns) and columns[0] < rows[0]
    result = [*batch, *columns, *rows] if swap else [*batch, *rows, *columns]

    def size(group: list[int]) -> int:
        return math.prod([full[i] for i in group])

    method: Literal["multiply", "reduce", "matmul"] = "multiply"
    if inner:
        method = "matmul" if matmul and (rows or columns or not batch) else "reduce"
    lead = [size(batch)] if batch else []
    return Plan(
        sum_a=tuple(sum_a),
        sum_b=tuple(sum_b),
        method=method,
        axes=tuple(inner),
        swap=swap,
        order_a=(*batch, *(inner + rows if swap else rows + inner), *columns, *sum_a, *sum_b, *none),
        order_b=(*batch, *(columns + inner if swap else inner + columns), *rows, *sum_a, *sum_b, *none),
        matrix_a=(*lead, *((size(inner), size(rows)) if swap else (size(rows), size(inner)))),
        matrix_b=(*lead, *((size(columns), size(inner)) if swap else (size(inner), size(columns)))),
        split=tuple([full[i] for i in result]),
        order=tuple([result.index(i) for i in sorted(result)]),
        shape=tuple([1 if i in axes else n for i, n in enumerate(full)]),
    )
