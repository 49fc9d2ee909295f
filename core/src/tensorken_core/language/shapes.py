"""Shape rules: pure functions from operand shapes and params to the result's shape.

The caller puts the op's name before the message of an error.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from tensorken_core.errors import AxisError, ConcretizationError, ShapeError

Shape = tuple[int, ...]
Axes = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]

MOST_AXES = 64
"""The largest number of axes of a numpy array; other backends may have more."""

MOST_ELEMENTS = 2**60
"""A limit above the number of eight-byte elements that 64-bit addresses can reach."""


def same(first: Shape, *rest: Shape) -> Shape:
    """Elementwise ops: all operands have one shape."""
    for other in rest:
        if other != first:
            raise ShapeError(f"operands need one shape, got {first} and {other}; broadcast them first")
    return first


def reduced(x: Shape, axes: Axes) -> Shape:
    """Reductions: the axes are kept with size 1."""
    check_axes(x, axes)
    sizes = list(x)
    for i in axes:
        sizes[i] = 1
    return tuple(sizes)


def reduced_nonempty(x: Shape, axes: Axes) -> Shape:
    """Reductions without an identity: the axes are kept with size 1, and must not be empty."""
    shape = reduced(x, axes)
    if any(x[i] == 0 for i in axes):
        raise ShapeError(f"no elements to reduce: shape {x} has size 0 along axes {axes}; reduce other axes")
    return shape


def reshaped(x: Shape, new: Shape) -> Shape:
    """Reshape: the same number of elements."""
    if math.prod(x) != math.prod(new) or (new and min(new) < 0):
        need = "sizes must agree" if min(new, default=0) >= 0 else "no size but one -1 may be negative"
        raise ShapeError(f"cannot reshape {x} ({math.prod(x)} elements) to {new} ({math.prod(new)}); {need}")
    return new


def permuted(x: Shape, order: Axes) -> Shape:
    """Permute: the order names every axis once."""
    if sorted(order) != list(range(len(x))):
        raise AxisError(
            f"the order {order} is not a permutation of the axes of shape {x}; name each of 0..{len(x) - 1} once"
        )
    return tuple(map(x.__getitem__, order))


def expanded(x: Shape, new: Shape) -> Shape:
    """Expand: axes of size 1 are repeated, none is added."""
    if len(x) != len(new):
        raise ShapeError(f"cannot expand {x} to {new}: the number of axes differs; reshape first")
    for i, (a, b) in enumerate(zip(x, new, strict=True)):
        if a not in (1, b) or type(b) is not int or b < 0:
            raise ShapeError(
                f"cannot expand {x} to {new}: axis {i} has size {a}, and only size 1 can be repeated"
            )
    return new


def flipped(x: Shape, axes: Axes) -> Shape:
    """Flip: the shape is unchanged."""
    check_axes(x, axes)
    return x


def padded(x: Shape, pads: Pairs) -> Shape:
    """Pad: sizes grow by (before, after) along each axis."""
    if len(pads) != len(x):
        raise ShapeError(
            f"shape {x} needs {len(x)} (before, after) pairs, got {len(pads)}; give each axis one"
        )
    if any(p < 0 for pair in pads for p in pair):
        raise ShapeError(f"pads must not be negative, got {pads}; use crop to cut")
    return tuple([n + before + after for n, (before, after) in zip(x, pads, strict=True)])


def cropped(x: Shape, limits: Pairs) -> Shape:
    """Crop: along each axis the elements from start to end are kept."""
    if len(limits) != len(x):
        raise ShapeError(
            f"shape {x} needs {len(x)} (start, end) pairs, got {len(limits)}; give each axis one"
        )
    for i, (n, (start, end)) in enumerate(zip(x, limits, strict=True)):
        if not 0 <= start <= end <= n:
            raise ShapeError(
                f"limits ({start}, {end}) of axis {i} do not fit shape {x}; need 0 <= start <= end <= {n}"
            )
    return tuple([end - start for start, end in limits])


def gathered(x: Shape, indices: Shape, axis: int) -> Shape:
    """Gather: the axis takes the length of the indices."""
    check_axes(x, (axis,))
    if len(indices) != 1:
        raise ShapeError(f"indices must have one axis, got shape {indices}; flatten them, or use tk.take")
    return x[:axis] + indices + x[axis + 1 :]


def scattered(x: Shape, indices: Shape, axis: int, size: int) -> Shape:
    """scatter_add: the axis, with one slice for each index, gets the given size."""
    check_axes(x, (axis,))
    if indices != (x[axis],):
        raise ShapeError(
            f"axis {axis} of shape {x} needs indices of shape ({x[axis]},), got {indices}; give each slice one"
        )
    if type(size) is not int or size < 0:
        raise ShapeError(
            f"the size of axis {axis} must be an int that is not negative, got {short_repr(size)}"
        )
    return x[:axis] + (size,) + x[axis + 1 :]


def multiplied(a: Shape, b: Shape, axes: Axes) -> Shape:
    """Fused multiply-add: per axis the sizes are equal or one is 1, then the axes are reduced."""
    if len(a) != len(b) or any(n != m and 1 not in (n, m) for n, m in zip(a, b, strict=True)):
        raise ShapeError(f"sizes must be equal or 1 along each axis, got {a} and {b}")
    return reduced(tuple([m if n == 1 else n for n, m in zip(a, b, strict=True)]), axes)


def concatenated(*args: object) -> Shape:
    """concatenate: shapes are equal except along the axis, where the sizes are added."""
    *shapes, axis = args
    if not shapes:
        raise ShapeError("need at least one operand; got none")
    first = shapes[0]
    assert isinstance(axis, int) and isinstance(first, tuple)
    check_axes(first, (axis,))
    total = 0
    for shape in shapes:
        assert isinstance(shape, tuple)
        if shape[:axis] + shape[axis + 1 :] != first[:axis] + first[axis + 1 :] or len(shape) != len(first):
            raise ShapeError(
                f"shapes must be equal except along axis {axis}, got {first} and {shape}; reshape or pad one"
            )
        total += shape[axis]
    return first[:axis] + (total,) + first[axis + 1 :]


def without_axis(x: Shape, axis: int) -> Shape:
    """argmax and argmin: the axis is kept with size 1, and must not be empty; its positions fit int32."""
    return _with_positions(reduced_nonempty(x, (axis,)), x[axis])


def along_axis(x: Shape, axis: int) -> Shape:
    """Scans and sorts along an axis: the shape is unchanged."""
    check_axes(x, (axis,))
    return x


def sorted_positions(x: Shape, axis: int) -> Shape:
    """argsort: the shape is unchanged; the positions along the axis fit int32."""
    return _with_positions(along_axis(x, axis), x[axis])


def _with_positions(result: Shape, size: int) -> Shape:
    if size > 2**31:
        raise ShapeError(
            f"an axis of {size} elements has positions that do not fit int32; split it into shorter ones"
        )
    return result


def check_axes(x: Shape, axes: Sequence[int]) -> None:
    """Raise AxisError if an axis is out of range for shape x, or occurs twice."""
    for axis in axes:
        if not 0 <= axis < len(x):
            raise AxisError(f"axis {axis} is out of range for shape {x}")
    if len(axes) > 1 and len(set(axes)) != len(axes):
        raise AxisError(f"axes {tuple(axes)} name an axis twice")


def broadcast(a: Shape, b: Shape) -> Shape:
    """The shape to which two shapes broadcast by numpy's rules.

    Raises:
        ShapeError: if they do not broadcast; the message names the axis.

    >>> broadcast((3, 1), (4,))
    (3, 4)
    """
    if a == b:
        return a
    n = max(len(a), len(b))
    long_a, long_b = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
    for i, (p, q) in enumerate(zip(long_a, long_b, strict=True)):
        if p != q and p != 1 and q != 1:
            raise ShapeError(
                f"shapes {a} and {b} do not broadcast: sizes {p} and {q} clash at axis {i - n} "
                f"(need equal, or 1); reshape one"
            )
    return tuple([q if p == 1 else p for p, q in zip(long_a, long_b, strict=True)])


def short_repr(value: object) -> str:
    """The repr of an argument for a one-line message; the type's name if the repr is long."""
    text = repr(value)
    return text if len(text) <= 60 and "\n" not in text else f"<{type(value).__name__}>"


def normalize_axis(axis: Any, rank: int, shape: Shape) -> int:
    """A non-negative axis; negative ones count from the end."""
    try:
        if isinstance(axis, bool):
            raise TypeError
        axis = operator.index(axis)
    except ConcretizationError:
        raise
    except TypeError:
        raise AxisError(f"an axis must be an int, got {short_repr(axis)} for shape {shape}") from None
    if not -rank <= axis < rank:
        need = f"axes run from {-rank} to {rank - 1}" if rank else "it has no axes"
        raise AxisError(f"axis {axis} is out of range for shape {shape}; {need}")
    return int(axis % rank)


def normalize_axes(axis: int | Sequence[int] | None, shape: Shape) -> Axes:
    """Sorted, unique, non-negative axes; None means all."""
    rank = len(shape)
    if axis is None:
        return tuple(range(rank))
    if type(axis) is int or (type(axis) is not tuple and not isinstance(axis, Sequence)):
        return (normalize_axis(axis, rank, shape),)
    axes = tuple(sorted([normalize_axis(a, rank, shape) for a in axis]))
    if len(set(axes)) != len(axes):
        raise AxisError(f"axes {tuple(axis)} name an axis twice for shape {shape}; name each once")
    return axes


def contraction_axes(a: Shape, b: Shape, summed: Axes) -> tuple[list[int], ...]:
    """The axes of a contraction of operands of these shapes, in groups.

    Returns:
        The axes that both operands have, that the first has, and that the second has, of those that are kept: batch,
        rows and columns; the same of those that are summed; and the axes of size 1.

    >>> contraction_axes((2, 3, 1), (1, 3, 4), (1,))
    ([], [0], [2], [1], [], [], [])
    """
    groups: tuple[list[int], ...] = tuple([[] for _ in range(7)])
    batch, rows, columns, inner, of_a, of_b, none = groups
    for i, (n, m) in enumerate(zip(a, b, strict=True)):
        both, only_a, only_b = (inner, of_a, of_b) if i in summed else (batch, rows, columns)
        (both if n != 1 != m else only_a if n != 1 else only_b if m != 1 else none).append(i)
    return groups
