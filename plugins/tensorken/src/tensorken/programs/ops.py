"""Ops that only passes write; they have no public functions and no derivatives."""

from __future__ import annotations

from typing import Any

from tensorken_core.language.dtype_rules import indexed_sum
from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import Op
from tensorken_core.language.shapes import Shape, scattered


def _updated(y: Shape, x: Shape, indices: Shape, axis: int) -> Shape:
    return scattered(x, indices, axis, y[axis])


def _sum_of_one_dtype(y: DType, x: DType, indices: DType, *params: Any) -> DType:
    return indexed_sum(x, indices)


def _zeros_and_addition(y: Any, x: Any, indices: Any, axis: int) -> Any:
    return y + x.scatter_add(indices, axis, y.shape[axis])


ADD_AT = Op(
    "add_at",
    3,
    _updated,
    _sum_of_one_dtype,
    ("axis",),
    operand_kinds=("data", "data", "indices"),
    body=_zeros_and_addition,
    method=True,
)
"""`add_at(y, x, indices, axis)`: y with the slices of x added at the indices along the axis, one after the other in
order.  An element to which nothing is added keeps its bits."""

IOTA = Op(
    "iota",
    0,
    lambda shape, *_: shape,
    lambda *params: params[-1],
    ("shape", "axis", "data", "data", "dtype"),
    ("shape", "axis", "start", "step", "dtype"),
)
"""`iota(shape, axis, start, step, dtype)`: integers that count from start, which is not negative, in positive steps
along an axis.  It occurs only in programs that are lowered to kernels; no backend implements it."""

STEP_SLICE = Op(
    "step_slice",
    1,
    lambda shape, axis: (*shape[:axis], *shape[axis + 1 :]),
    lambda dtype, *_: dtype,
    ("axis",),
)
"""`step_slice(x, axis)`, in the program of a loop's step: the slice of x at the number of the step, without the axis.
It occurs only in programs that are lowered to kernels, which get the number when they run."""

STEP_STACK = Op(
    "step_stack",
    1,
    lambda shape, length: shape,
    lambda dtype, *_: dtype,
    ("size",),
)
"""`step_stack(x, length)`, in the program of a loop's step: x, stored at the number of the step in a stack of this
length along a new first axis.  It occurs only in programs that are lowered to kernels."""
