"""Contractions: sums of products as products of matrices.  A plan, cached by the two shapes, classifies the axes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from tensorken_core.language.shapes import Axes, Shape


@dataclass(frozen=True, slots=True)
class Plan:
    """How `matmul` computes a contraction.

    Attributes:
        sum_a, sum_b: the contracted axes that one operand has alone.
        order_a, order_b: the order of an operand's axes; those of size 1 come last.
        matrix_a, matrix_b: the shapes of the operands of the product; None if there is no contracted axis, and the
            operands are multiplied.
        split: the shape of the result, with its axes in the order `order`.
        order: the order that sorts the axes of the result.
        shape: the shape of the result.
    """

    sum_a: Axes
    sum_b: Axes
    order_a: Axes
    order_b: Axes
    matrix_a: Shape | None
    matrix_b: Shape | None
    split: Shape
    order: Axes
    shape: Shape


def contract(a: Tensor, b: Tensor, axes: Axes) -> Tensor:
    """sum(a * b, axes) with reduced axes kept at size 1; along each axis the sizes are equal, or one is 1."""
    plan = plan_contraction(tuple(a.shape), tuple(b.shape), axes)
    if plan.sum_a:
        a = torch.sum(a, plan.sum_a, True, dtype=a.dtype)
    if plan.sum_b:
        b = torch.sum(b, plan.sum_b, True, dtype=b.dtype)
    if plan.matrix_a is None:
        return torch.mul(a, b)
    a = a.permute(plan.order_a).reshape(plan.matrix_a)
    b = b.permute(plan.order_b).reshape(plan.matrix_b)
    return torch.matmul(a, b).reshape(plan.split).permute(plan.order).reshape(plan.shape)


@lru_cache(maxsize=4096)
def plan_contraction(shape_a: Shape, shape_b: Shape, axes: Axes) -> Plan:
    """The plan for operands of these shapes."""
    groups: dict[str, list[int]] = {
        name: [] for name in ("batch", "rows", "columns", "inner", "sum_a", "sum_b", "none")
    }
    for i, (n, m) in enumerate(zip(shape_a, shape_b, strict=True)):
        both, only_a, only_b = ("inner", "sum_a", "sum_b") if i in axes else ("batch", "rows", "columns")
        groups[both if n != 1 != m else only_a if n != 1 else only_b if m != 1 else "none"].append(i)
    batch, rows, columns, inner, sum_a, sum_b, none = groups.values()
    full = tuple([m if n == 1 else n for n, m in zip(shape_a, shape_b, strict=True)])
    result = [*batch, *rows, *columns]

    def size(group: list[int]) -> int:
        return math.prod([full[i] for i in group])

    lead = [size(batch)] if batch else []
    return Plan(
        sum_a=tuple(sum_a),
        sum_b=tuple(sum_b),
        order_a=(*batch, *rows, *inner, *columns, *sum_a, *sum_b, *none),
        order_b=(*batch, *inner, *columns, *rows, *sum_a, *sum_b, *none),
        matrix_a=(*lead, size(rows), size(inner)) if inner else None,
        matrix_b=(*lead, size(inner), size(columns)) if inner else None,
        split=tuple([full[i] for i in result]),
        order=tuple([result.index(i) for i in sorted(result)]),
        shape=tuple([1 if i in axes else n for i, n in enumerate(full)]),
    )
