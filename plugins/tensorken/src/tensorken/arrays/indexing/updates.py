"""Updated copies: `x.at[key].set(v)`, `.add(v)` and the like.

If a key contains a position more than once, `set` keeps its last value, and the other methods apply all of its values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorken.arrays.indexing.movement import apply_steps, replace_part
from tensorken.arrays.indexing.repeats import (
    broadcast_along,
    combine_repeats,
    extreme,
    product_where,
    values_by_position,
)
from tensorken.arrays.indexing.selection import Grouping, Selection, outer, select, together, vectorized
from tensorken_core.errors import DTypeError, ImmutableError, ShapeError
from tensorken_core.language.dtypes import bool_, int32, position_dtype, promote
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.tensor import Tensor


class At:
    """The object `x.at`, which returns a `Part` when indexed; its `oindex` and `vindex` are like a tensor's."""

    __slots__ = ("_grouping", "_tensor")

    def __init__(self, tensor: Tensor, grouping: Grouping = together) -> None:
        self._tensor = tensor
        self._grouping = grouping

    def __getitem__(self, key: Any) -> Part:
        return Part(self._tensor, select(self._tensor, key, self._grouping))

    def __setitem__(self, key: Any, value: Any) -> None:
        raise ImmutableError(
            "assignment: tensors are immutable; x.at[i].set(v) returns a new tensor with v at i"
        )

    @property
    def oindex(self) -> At:
        """Each index works along its own axis, as in `x.oindex`."""
        return At(self._tensor, outer)

    @property
    def vindex(self) -> At:
        """The axes of integer arrays come first, as in `x.vindex`."""
        return At(self._tensor, vectorized)


@dataclass(frozen=True, slots=True)
class Change:
    """An update: a function of the old and the new value, and the rule that combines new values for one position."""

    new: Callable[[Tensor, Tensor], Tensor]
    fold: str  # last, sum, product, maximum or minimum
    neutral: int | None = None  # the value that leaves the old value unchanged


SET = Change(lambda old, value: value, "last")
ADD = Change(lambda old, value: old + value, "sum", 0)
SUBTRACT = Change(lambda old, value: old - value, "sum", 0)
MULTIPLY = Change(lambda old, value: old * value, "product", 1)
DIVIDE = Change(lambda old, value: old / value, "product", 1)
MAX = Change(lambda old, value: old.maximum(value), "maximum")
MIN = Change(lambda old, value: old.minimum(value), "minimum")


class Part:
    """A part of a tensor, with methods that return a copy of the tensor with a changed part.

    Each value is broadcast to the part and converted to the tensor's dtype.  Each method raises ShapeError if the value
    does not broadcast.  All are differentiable with respect to the tensor and the value.
    """

    __slots__ = ("_selection", "_tensor")

    def __init__(self, tensor: Tensor, selection: Selection) -> None:
        self._tensor = tensor
        self._selection = selection

    def __repr__(self) -> str:
        return f"<a part of a tensor of shape {self._tensor.shape}; call get(), set(v), add(v) or another method>"

    def get(self) -> Tensor:
        """The part itself."""
        return self._selection.of(self._tensor)

    def set(self, value: Any) -> Tensor:
        """The tensor with `value` in place of the part; the last value if a position is repeated.

        >>> import tensorken as tk
        >>> tk.zeros(3).at[1].set(5.0).tolist()
        [0.0, 5.0, 0.0]
        >>> tk.zeros(3).at[[0, 0]].set([1.0, 2.0]).tolist()
        [2.0, 0.0, 0.0]
        """
        return self._changed(value, SET)

    def add(self, value: Any) -> Tensor:
        """The tensor with `value` added to the part; all of the values if a position is repeated.

        >>> import tensorken as tk
        >>> tk.zeros(3, "int32").at[[0, 2, 0]].add(1).tolist()
        [2, 0, 1]
        """
        return self._changed(value, ADD)

    def subtract(self, value: Any) -> Tensor:
        """The tensor with `value` subtracted from the part; all of the values if a position is repeated."""
        return self._changed(value, SUBTRACT)

    def multiply(self, value: Any) -> Tensor:
        """The tensor with the part multiplied by `value`; by all of the values if a position is repeated."""
        return self._changed(value, MULTIPLY)

    def divide(self, value: Any) -> Tensor:
        """The tensor with the part divided by `value`; by all of the values if a position is repeated."""
        return self._changed(value, DIVIDE)

    def max(self, value: Any) -> Tensor:
        """The tensor with the maximum of the part and `value`; ties share the derivative equally."""
        return self._changed(value, MAX)

    def min(self, value: Any) -> Tensor:
        """The tensor with the minimum of the part and `value`; ties share the derivative equally."""
        return self._changed(value, MIN)

    def _changed(self, value: Any, change: Change) -> Tensor:
        x, selection = self._tensor, self._selection
        operand = as_operand("at", value, x)
        is_complex = "complex" in (x.dtype.kind, operand.dtype.kind)
        if is_complex and (x.dtype.kind != "complex" or change.fold in ("maximum", "minimum")):
            raise DTypeError(
                f"at: a tensor of {x.dtype} takes no {operand.dtype} here; "
                + (
                    "complex numbers have no order"
                    if x.dtype.kind == "complex"
                    else "take value.real, or cast the tensor (x.astype)"
                )
            )
        if change is SET or operand.dtype is bool_:
            operand = operand.astype(x.dtype)
        if x.dtype is bool_ and change is not SET:  # as 0 and 1
            dtype = promote(int32, operand.dtype)
            return Part(x.astype(dtype), selection)._changed(operand.astype(dtype), change).astype(bool_)
        part = apply_steps(x, selection.steps)
        if selection.groups:
            return replace_part(x, selection.steps, _updated_at_groups(part, operand, selection, change))
        new = change.new(part, _without_excess_axes(operand, part.shape)).astype(x.dtype)
        return replace_part(x, selection.steps, new.broadcast_to(part.shape))


def _is_broadcastable(shape: Shape, part: Shape) -> bool:
    """Whether a value of this shape can be written to the part; it may have more axes of size 1 in front."""
    excess = len(shape) - len(part)
    if excess > 0 and shape[:excess] != (1,) * excess:
        return False
    return all([n in (1, size) for n, size in zip(shape[::-1], part[::-1], strict=False)])


def _without_excess_axes(value: Tensor, part: Shape) -> Tensor:
    """The value without its leading axes of size 1 that the part lacks."""
    if not _is_broadcastable(value.shape, part):
        raise ShapeError(
            f"at: a value of shape {value.shape} does not broadcast to the indexed shape {part}; reshape it"
        )
    return value.reshape(value.shape[max(value.ndim - len(part), 0) :])


def _updated_at_groups(x: Tensor, value: Tensor, selection: Selection, change: Change) -> Tensor:
    """x, after the steps of the selection, updated at the positions of its groups."""
    groups = selection.groups
    mask = groups[0].mask if len(groups) == 1 else None
    shape_for_all = selection.laid_out(lambda group: (1,) * group.rank)
    if _is_broadcastable(
        value.shape, shape_for_all
    ):  # one value for all positions: their number need not be known
        value = _without_excess_axes(value, shape_for_all)
        value = value.reshape((1,) * (len(shape_for_all) - value.ndim) + value.shape)
        value = value.reshape(_one_axis_per_group(value.shape, selection))
        if mask is not None:
            return _updated_where(x, value, broadcast_along(mask.ravel(), x, groups[0].axis), change)
    else:
        part = selection.shape()
        value = _without_excess_axes(value, part).broadcast_to(part)
        value = value.reshape(_one_axis_per_group(part, selection))
    axis, positions = groups[0].axis, groups[0].positions()
    unique = all([group.mask is not None for group in groups])
    if len(groups) == 1:
        return _updated_at(x, value, positions, axis, change, unique)
    # Several groups become one: their axes are moved to the front and merged.
    axes = [group.axis for group in groups]
    order = (*axes, *[axis for axis in range(x.ndim) if axis not in axes])
    merged = _merged(x.shape, order, len(axes))
    positions = positions.astype(promote(positions.dtype, position_dtype(merged[0])))
    for group in groups[1:]:
        positions = (positions.reshape((positions.size, 1)) * x.shape[group.axis] + group.positions()).ravel()
    steps = [("permute", order), ("reshape", merged)]
    value = value.permute(order).reshape(_merged(value.shape, order, len(axes)))
    return replace_part(x, steps, _updated_at(apply_steps(x, steps), value, positions, 0, change, unique))


def _one_axis_per_group(shape: Shape, selection: Selection) -> Shape:
    """The shape of the part, or of a value that broadcasts to it, with one axis per group."""
    sizes = list(shape)
    for group in selection.groups:  # in the order of their axes
        axes = slice(group.axis, group.axis + group.rank)
        sizes[axes] = [math.prod(sizes[axes])]
    return tuple(sizes)


def _merged(shape: Shape, order: Shape, count: int) -> Shape:
    """The shape with the axes permuted and the first `count` axes merged."""
    sizes = [shape[axis] for axis in order]
    return (math.prod(sizes[:count]), *sizes[count:])


def _updated_where(x: Tensor, value: Tensor, mask: Tensor, change: Change) -> Tensor:
    """x updated where the mask is True."""
    value = value.broadcast_to(x.shape)
    if change.neutral is not None:  # so that a derivative of 0 is not multiplied by infinity
        value = mask.where(value, change.neutral)
    return mask.where(change.new(x, value).astype(x.dtype), x)


def _updated_at(
    x: Tensor, value: Tensor, positions: Tensor, axis: int, change: Change, unique: bool
) -> Tensor:
    """x updated at positions along an axis by the slices of the value: one slice per position, or one for all."""
    if positions.size == 0 or x.size == 0:
        return x
    size, dtype = x.shape[axis], promote(x.dtype, value.dtype)
    if change is SET and value.shape[axis] == 1:
        return _updated_where(x, value, broadcast_along(_is_written(positions, size), x, axis), change)
    value = value.expand((*x.shape[:axis], positions.size, *x.shape[axis + 1 :]))
    keeps = dtype is x.dtype
    if change.fold == "sum":
        value = value.astype(dtype)
        if keeps:  # subtracting 0.0 preserves -0.0; adding 0.0 would not
            return x - (-value if change is ADD else value).scatter_add(positions, axis, size)
        values, touched = value.scatter_add(positions, axis, size), _is_written(positions, size)
    elif change.fold in ("maximum", "minimum"):
        new = extreme(change.fold, x.astype(dtype), value.astype(dtype), positions, axis)
        return (
            new
            if keeps
            else broadcast_along(_is_written(positions, size), x, axis).where(new.astype(x.dtype), x)
        )
    else:
        combine = product_where if change.fold == "product" else None
        values, source = combine_repeats(value, positions, axis, size, combine, unique)
        touched, values = values_by_position(values, source, axis)
    return _updated_where(x, values, broadcast_along(touched, x, axis), change)


def _is_written(positions: Tensor, size: int) -> Tensor:
    return positions.ones_like().scatter_add(positions, 0, size) > 0
