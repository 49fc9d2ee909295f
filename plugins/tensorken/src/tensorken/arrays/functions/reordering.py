"""Reordering along axes: flips, rotations, rolls."""

from __future__ import annotations

from collections.abc import Sequence

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arguments import ordered_axes_of, with_numpys_names
from tensorken.arrays.functions.shaping import swapaxes
from tensorken_core.errors import ArgumentError, AxisError
from tensorken_core.language.bodies.arrangement import slice_along
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.normalization import Axis, axis_of, integer_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "flip",
    "fliplr",
    "flipud",
    "roll",
    "rot90",
]


@with_numpys_names
def flip(x: ArrayLike, axis: Axis = None) -> Tensor:
    """The elements in reverse order along axes, all by default.

    Raises:
        AxisError: if an axis is out of range or given twice.

    >>> import tensorken as tk
    >>> tk.flip([1, 2, 3]).tolist()
    [3, 2, 1]
    """
    return as_tensor(x).flip(axis)


def flipud(x: ArrayLike) -> Tensor:
    """The rows in reverse order: `tk.flip` along axis 0.

    Raises:
        AxisError: if x has no axes.

    >>> import tensorken as tk
    >>> tk.flipud([[1, 2], [3, 4]]).tolist()
    [[3, 4], [1, 2]]
    """
    old = as_tensor(x)
    return old.flip(axis_of("flipud", old.shape, 0))


def fliplr(x: ArrayLike) -> Tensor:
    """The columns in reverse order: `tk.flip` along axis 1.

    Raises:
        AxisError: if x has fewer than two axes.

    >>> import tensorken as tk
    >>> tk.fliplr([[1, 2], [3, 4]]).tolist()
    [[2, 1], [4, 3]]
    """
    old = as_tensor(x)
    return old.flip(axis_of("fliplr", old.shape, 1))


def rot90(x: ArrayLike, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """x rotated k times by 90 degrees in the plane of two axes, from the first towards the second.

    Raises:
        AxisError: if `axes` are not two different axes.

    >>> import tensorken as tk
    >>> tk.rot90([[1, 2], [3, 4]]).tolist()
    [[2, 4], [1, 3]]
    """
    old, turns = as_tensor(x), integer_of("rot90", "k", k) % 4
    plane = ordered_axes_of("rot90", old.shape, tuple(axes))
    if len(plane) != 2:
        raise AxisError(
            f"rot90: need two axes of shape {old.shape}, got {short_repr(axes)}; give the two axes of the plane"
        )
    if turns % 2 == 0:
        return old.flip(plane) if turns else old
    turned = old.flip(plane[1]) if turns == 1 else old
    turned = swapaxes(turned, *plane)
    return turned if turns == 1 else turned.flip(plane[1])


@with_numpys_names
def roll(x: ArrayLike, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Tensor:
    """The elements shifted by `shift` positions along axes; elements shifted past the end reappear at the start.

    Args:
        x: the tensor.
        shift: the number of positions, negative for a shift backwards; one number for all axes, or one for each.
        axis: the axes; without them the flattened tensor is rolled and reshaped to the shape of x.

    Raises:
        ArgumentError: if the number of shifts differs from the number of axes.

    >>> import tensorken as tk
    >>> tk.roll([1, 2, 3, 4], 1).tolist()
    [4, 1, 2, 3]
    """
    x = as_tensor(x)
    shifts = [integer_of("roll", "a shift", s) for s in (shift if isinstance(shift, Sequence) else (shift,))]
    if axis is None:
        return _rolled(x.reshape((x.size,)), sum(shifts), 0).reshape(x.shape)
    several = axis if isinstance(axis, Sequence) else (axis,)
    axes = [axis_of("roll", x.shape, i) for i in several]
    count = max(len(shifts), len(axes))
    if any(len(entries) not in (1, count) for entries in (shifts, axes)):
        raise ArgumentError(
            f"roll: {len(shifts)} shifts and {len(axes)} axes for shape {x.shape}; give each axis one shift"
        )
    shifts, axes = (entries * count if len(entries) != count else entries for entries in (shifts, axes))
    for by, i in zip(shifts, axes, strict=True):
        x = _rolled(x, by, i)
    return x


def _rolled(x: Tensor, shift: int, axis: int) -> Tensor:
    n = x.shape[axis]
    start = -shift % n if n else 0
    if start == 0:
        return x
    result: Tensor = slice_along(x, axis, start, n).concatenate(slice_along(x, axis, 0, start), axis=axis)
    return result
