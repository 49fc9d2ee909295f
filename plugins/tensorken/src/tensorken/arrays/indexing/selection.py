"""Selections: the part of a tensor that a key selects, as movement ops and one gather for each group of indices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorken.arrays.indexing.checks import checked
from tensorken.arrays.indexing.keys import Indices, in_range, parsed
from tensorken.arrays.indexing.masks import true_indices
from tensorken.arrays.indexing.movement import Step, apply_steps, movement_steps, row_steps, shapes_along
from tensorken_core.errors import IndexingError, ShapeError
from tensorken_core.language.dtypes import position_dtype, promote
from tensorken_core.language.shapes import Shape, broadcast
from tensorken_core.tensor.tensor import Tensor


def get(x: Tensor, key: Any) -> Tensor:
    """The part of x that a key selects, by numpy's rules.

    Raises:
        IndexingError: if an index is out of range, the key does not fit the shape, or an entry is not an index.
        ConcretizationError: if a mask has no known value, such as inside vmap if it differs between the examples.
    """
    shape = x.shape
    if shape:  # a fast path for the two most common keys
        if type(key) is int:
            return apply_steps(x, row_steps(shape, in_range(key, 0, shape)))
        if type(key) is Tensor and key.dtype.kind == "int" and key.shape:
            return slices(x, checked("index", key.in_index_dtype(), 0, shape), 0)
    return select(x, key).of(x)


def slices(x: Tensor, places: Tensor, axis: int) -> Tensor:
    """The slices of x at positions in [0, size) along an axis; the axes of the positions replace that axis."""
    result = x.gather(places.ravel(), axis)
    shape = x.shape
    return result if places.ndim == 1 else result.reshape(shape[:axis] + places.shape + shape[axis + 1 :])


# ---- groups ------------------------------------------------------------------------------------------------

Grouping = Callable[[list[Any]], list[tuple[bool, list[Indices]]]]
"""A function from the entries of a key to its groups of indices, with a flag for each: whether its axes come first."""


def together(entries: list[Any]) -> list[tuple[bool, list[Indices]]]:
    """All indices broadcast together, as in numpy; their axes come first if another entry is between two indices.

    An int counts as an index.
    """
    positions = [i for i, entry in enumerate(entries) if type(entry) in (int, Indices)]
    separated = positions[-1] - positions[0] + 1 > len(positions)
    return [(separated, [entry for entry in entries if type(entry) is Indices])]


def outer(entries: list[Any]) -> list[tuple[bool, list[Indices]]]:
    """Each index is a group, whose axes are at the index's position."""
    return [(False, [entry]) for entry in entries if type(entry) is Indices]


def vectorized(entries: list[Any]) -> list[tuple[bool, list[Indices]]]:
    """Integers broadcast together, their axes come first; each mask is a group, its axis at the mask's position."""
    integers = [entry for entry in entries if type(entry) is Indices and not entry.is_mask]
    masks = [(False, [entry]) for entry in entries if type(entry) is Indices and entry.is_mask]
    return [(True, integers), *masks] if integers else masks


@dataclass(slots=True)
class Group:
    """Indices that broadcast together; the axes that they index are merged into one."""

    name: str  # the called function, for messages
    shape: Shape  # of the indexed tensor
    indices: list[Indices]
    sizes: list[int]  # of the merged axes
    axis: int
    _cached: tuple[Tensor, Shape] | None = None

    @property
    def mask(self) -> Tensor | None:
        """The mask, if the group consists of a single mask."""
        return self.indices[0].values if len(self.indices) == 1 and self.indices[0].is_mask else None

    @property
    def rank(self) -> int:
        """The number of axes that the group adds to the result; known even if their sizes are not."""
        return max([1 if entry.is_mask else entry.values.ndim for entry in self.indices])

    def positions(self) -> Tensor:
        """The positions along the merged axis, each in [0, size), as a 1-D tensor."""
        return self._positions_and_shape()[0]

    def result(self) -> Shape:
        """The sizes of the axes that the group adds to the result."""
        return self._positions_and_shape()[1]

    def _positions_and_shape(self) -> tuple[Tensor, Shape]:
        if self._cached is None:
            parts = [
                true_indices(self.name, entry.values)
                if entry.is_mask
                else checked(self.name, entry.values, entry.axis, self.shape)
                for entry in self.indices
            ]
            positions = self._merged(parts)
            self._cached = positions.reshape((positions.size,)), positions.shape
        return self._cached

    def _merged(self, parts: list[Tensor]) -> Tensor:
        """Several indices combined to one position in row-major order."""
        first, *rest = parts
        if not rest:
            return first
        shape = first.shape
        for part in rest:
            try:
                shape = broadcast(shape, part.shape)
            except ShapeError:
                shapes = " and ".join([str(part.shape) for part in parts])
                raise IndexingError(
                    f"{self.name}: indices of shapes {shapes} do not broadcast together; "
                    f"use x.oindex to apply each along its own axis"
                ) from None
        dtype = position_dtype(math.prod(self.sizes))
        for part in parts:
            dtype = promote(dtype, part.dtype)
        position = first.astype(dtype)
        for part, size in zip(rest, self.sizes[1:], strict=True):
            position = position * size + part.astype(dtype)
        return position.broadcast_to(shape)


# ---- selections --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Selection:
    """Movement ops to a tensor with one axis per group, and the groups."""

    steps: list[Step]
    groups: list[Group]
    sizes: Shape  # of the tensor after the steps; () if there are no groups

    def of(self, x: Tensor) -> Tensor:
        """The selected part of x."""
        x = apply_steps(x, self.steps)
        for group in self.groups:
            x = x.gather(group.positions(), group.axis)
        return x.reshape(self.shape()) if self.groups else x

    def shape(self) -> Shape:
        """The shape of the part."""
        return self.laid_out(Group.result)

    def laid_out(self, axes_of: Callable[[Group], Shape]) -> Shape:
        """The shape with the given axes for each group."""
        groups = {group.axis: group for group in self.groups}
        shape: list[int] = []
        for axis, size in enumerate(self.sizes):
            shape += axes_of(groups[axis]) if axis in groups else (size,)
        return tuple(shape)


def select(x: Tensor, key: Any, grouping: Grouping = together) -> Selection:
    """The selection of a key for a tensor."""
    entries, advanced = parsed(x, key)
    if not advanced:
        return Selection(movement_steps(x.shape, [entry for entry in entries if entry is not ...]), [], ())
    steps = _merging_masks(x.shape, entries)
    shape = shapes_along(x.shape, steps)[-1]
    steps += movement_steps(shape, _with_whole_axes(shape, entries))
    sizes = shapes_along(x.shape, steps)[-1]
    axis_of: dict[int, int] = {}  # the current axis of each of the indices
    axis = 0
    for entry in entries:
        if type(entry) is Indices:
            axis_of[id(entry)] = axis
        axis += type(entry) in (range, Indices, type(None))
    first: list[int] = []
    groups: dict[int, Group] = {}  # by their first axis
    merged: set[int] = set()
    for comes_first, indices in grouping(entries):
        axes = [axis_of[id(entry)] for entry in indices]
        if comes_first:
            first = axes
        merged.update(axes[1:])
        groups[axes[0]] = Group("index", x.shape, indices, [sizes[axis] for axis in axes], 0)
    order = (*first, *[axis for axis in range(len(sizes)) if axis not in first])
    if order != tuple(range(len(sizes))):
        steps.append(("permute", order))
    final: list[int] = []
    for axis in order:
        if axis in groups:
            groups[axis].axis = len(final)
            final.append(math.prod(groups[axis].sizes))
        elif axis not in merged:
            final.append(sizes[axis])
    if len(final) != len(sizes):
        steps.append(("reshape", tuple(final)))
    return Selection(steps, list(groups.values()), tuple(final))


def _merging_masks(shape: Shape, entries: list[Any]) -> list[Step]:
    """A reshape that merges the axes of each mask into one."""
    sizes: list[int] = []
    axis = 0
    for entry in entries:
        span = entry.span if type(entry) is Indices else 1
        if entry is not None and entry is not ...:
            sizes.append(math.prod(shape[axis : axis + span]))
            axis += span
    return [("reshape", tuple(sizes))] if tuple(sizes) != shape else []


def _with_whole_axes(shape: Shape, entries: list[Any]) -> list[Any]:
    """The entries for `movement_steps`, with a full range for each axis of indices."""
    sizes = iter(shape)
    result: list[Any] = []
    for entry in entries:
        if entry is not ...:
            size = 0 if entry is None else next(sizes)
            result.append(range(size) if type(entry) is Indices else entry)
    return result


# ---- outer and vectorized indexing -------------------------------------------------------------------------


class Outer:
    """The object `x.oindex`: when it is indexed, each index works along its own axis."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __getitem__(self, key: Any) -> Tensor:
        return select(self._tensor, key, outer).of(self._tensor)


class Vectorized:
    """The object `x.vindex`: when it is indexed, integer arrays broadcast together, and their axes come first."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __getitem__(self, key: Any) -> Tensor:
        return select(self._tensor, key, vectorized).of(self._tensor)
