"""Repetition and padding: tile, repeat, pad."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arguments import with_numpys_names
from tensorken_core.errors import ArgumentError, ConcretizationError, ShapeError
from tensorken_core.language.dtypes import position_dtype
from tensorken_core.language.shapes import Pairs, short_repr
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.normalization import axis_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "pad",
    "repeat",
    "tile",
]


def tile(x: ArrayLike, repetitions: int | Sequence[int]) -> Tensor:
    """x repeated as a tile along each axis.

    Args:
        x: the tensor.
        repetitions: the number of repetitions along each axis; leading ones are added to it or to the shape.

    Raises:
        ShapeError: if a number of repetitions is negative.

    >>> import tensorken as tk
    >>> tk.tile([1, 2], (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    old = as_tensor(x)
    counts = _counts("tile", repetitions)
    rank = max(old.ndim, len(counts))
    counts = [1] * (rank - len(counts)) + counts
    sizes = (1,) * (rank - old.ndim) + old.shape
    if not any(count != 1 for count in counts):
        return old.reshape(sizes)
    pairs = list(zip(counts, sizes, strict=True))
    with_ones = old.reshape(tuple([size for _, n in pairs for size in (1, n)]))
    repeated = with_ones.expand(tuple([size for pair in pairs for size in pair]))
    return repeated.reshape(tuple([count * n for count, n in pairs]))


@with_numpys_names
def repeat(x: ArrayLike, repeats: int | Sequence[int] | Tensor, axis: int | None = None) -> Tensor:
    """Each element, or each slice along an axis, repeated consecutively.

    Args:
        x: the tensor.
        repeats: the number of repetitions: an int, or an int for each element along the axis.  The values of a
            tensor are read, as the shape of the result depends on them.
        axis: the axis; without it the elements of the flattened tensor are repeated.

    Raises:
        ShapeError: if there is neither one number nor one for each element, or a number is negative.

    >>> import tensorken as tk
    >>> tk.repeat([1, 2], 2).tolist(), tk.repeat([1, 2], [2, 1]).tolist()
    ([1, 1, 2, 2], [1, 1, 2])
    """
    old: Tensor = as_tensor(x)
    if axis is None:
        old, axis = old.ravel(), 0
    along = axis_of("repeat", old.shape, axis)
    before, n, after = old.shape[:along], old.shape[along], old.shape[along + 1 :]
    counts = _counts("repeat", repeats)
    if len(counts) == 1:
        (count,) = counts
        repeated = old.reshape((*before, n, 1, *after)).expand((*before, n, count, *after))
        return repeated.reshape((*before, n * count, *after))
    if len(counts) != n:
        raise ShapeError(
            f"repeat: {len(counts)} repeats for axis {along} of shape {old.shape}; give 1, or {n}, one for each element"
        )
    return slices_at(old, [i for i, count in enumerate(counts) for _ in range(count)], along)


# ---- padding -----------------------------------------------------------------------------------------------


def pad(x: ArrayLike, pad_width: ArrayLike, mode: str = "constant", constant_values: ArrayLike = 0) -> Tensor:
    """x padded before and after its elements along each axis.

    Args:
        x: the tensor.
        pad_width: the widths of the margins: an int for all; a pair (before, after) for all axes; a pair, or an int,
            for each axis; or a dict from axes to pairs or ints.
        mode: the elements of the margins: `"constant"`; `"edge"`, the outermost element; `"reflect"`, a reflection at
            the outermost element, without repeating it; `"symmetric"`, a reflection that repeats it;
            `"wrap"`, the elements of the other end; `"empty"`, unspecified.
        constant_values: for `"constant"`: a number or tensor for all margins, or numbers in any form that `pad_width`
            allows.  They are cast to the dtype of x.

    Raises:
        ShapeError: if a width is negative, the widths do not fit the number of axes, or an axis to pad from its
            elements is empty.
        ArgumentError: if the mode is unknown.

    >>> import tensorken as tk
    >>> tk.pad([1, 2, 3], 1).tolist(), tk.pad([1, 2, 3], (2, 1), "reflect").tolist()
    ([0, 1, 2, 3, 0], [3, 2, 1, 2, 3, 2])
    """
    y: Tensor = as_tensor(x)
    pads: Pairs = _pairs("pad_width", pad_width, y, _as_int)
    if any(width < 0 for pair in pads for width in pair):
        raise ShapeError(f"pad: widths must not be negative, got {pads}; cut with x[...] instead")
    if mode == "empty" or (mode == "constant" and _is_zero(constant_values)):
        return y.pad(pads)
    if mode == "constant":
        return _framed(y, pads, _pairs("constant_values", constant_values, y, lambda value: value))
    if mode not in SOURCE_INDICES:
        raise ArgumentError(
            f"pad: unknown mode {short_repr(mode)}; use constant, empty, {', '.join(SOURCE_INDICES)}"
        )
    for axis, (before, after) in enumerate(pads):
        if before or after:
            n = y.shape[axis]
            if n == 0:
                raise ShapeError(
                    f"pad: axis {axis} of shape {y.shape} has no element to repeat; use mode='constant'"
                )
            y = slices_at(y, [SOURCE_INDICES[mode](i, n) for i in range(-before, n + after)], axis)
    return y


def _edge(i: int, n: int) -> int:
    return min(max(i, 0), n - 1)


def _reflected(i: int, n: int) -> int:
    """Element i of the periodic sequence 0, 1, ..., n - 1, n - 2, ..., 1."""
    i %= max(2 * (n - 1), 1)
    return min(i, 2 * (n - 1) - i)


def _mirrored(i: int, n: int) -> int:
    """Element i of the periodic sequence 0, 1, ..., n - 1, n - 1, ..., 0."""
    i %= 2 * n
    return min(i, 2 * n - 1 - i)


SOURCE_INDICES: dict[str, Callable[[int, int], int]] = {
    "edge": _edge,
    "reflect": _reflected,
    "symmetric": _mirrored,
    "wrap": lambda i, n: i % n,
}
"""For each mode, the source index of position i, inside or outside [0, n), along an axis of size n."""


def _framed(x: Tensor, pads: Pairs, values: tuple[tuple[Any, Any], ...]) -> Tensor:
    """Concatenate constants axis by axis, so that the constants of the last axis fill the corners, as in numpy."""
    for axis, (widths, constants) in enumerate(zip(pads, values, strict=True)):
        margins = []
        for width, constant in zip(widths, constants, strict=True):
            value = as_operand("pad", constant, x).astype(x.dtype)
            margins.append(
                value.broadcast_to((*x.shape[:axis], width, *x.shape[axis + 1 :])) if width else None
            )
        pieces = [piece for piece in (margins[0], x, margins[1]) if piece is not None]
        x = pieces[0].concatenate(*pieces[1:], axis=axis) if len(pieces) > 1 else x
    return x


def _pairs(what: str, value: Any, x: Tensor, read: Callable[[Any], Any]) -> tuple[tuple[Any, Any], ...]:
    """Broadcast `value` to a pair (before, after) for each axis, as numpy broadcasts to (ndim, 2)."""
    if isinstance(value, Mapping):
        by_axis = {axis_of("pad", x.shape, axis): entry for axis, entry in value.items()}
        rows = [_entries(by_axis.get(axis, 0)) or [by_axis.get(axis, 0)] for axis in range(x.ndim)]
    else:
        several = _entries(value)
        if several is None:
            several = [value]
        nested = [_entries(entry) for entry in several]
        flat = several and all(entry is None for entry in nested)
        rows = [several] if flat else [entry or [] for entry in nested]
        rows = rows * x.ndim if len(rows) == 1 else rows
    if any(not row or len(row) > 2 or any(_entries(side) is not None for side in row) for row in rows):
        raise ArgumentError(
            f"pad: {what} must be one number, a pair, or a pair for each of {x.ndim} axes, got {short_repr(value)}"
        )
    if len(rows) != x.ndim:
        raise ShapeError(
            f"pad: shape {x.shape} needs {x.ndim} pairs in {what}, got {len(rows)}; give each axis one"
        )
    return tuple([(read(row[0]), read(row[-1])) for row in rows])


def _entries(value: Any) -> list[Any] | None:
    """The entries of a sequence, or of an array with at least one axis; None for a single value."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(value)
    return list(value.tolist()) if hasattr(value, "tolist") and value.ndim else None


def _is_zero(value: Any) -> bool:
    """Whether a value is zero, but not -0.0; the pad op of the language pads with this zero."""
    return type(value) in (bool, int, float) and repr(value) in ("0", "0.0", "False")


def _as_int(value: Any) -> int:
    try:
        return operator.index(value)
    except ConcretizationError as error:
        raise error.at("pad") from None
    except TypeError:
        raise ArgumentError(f"pad: widths must be ints, got {short_repr(value)}") from None


# ---- shared code -------------------------------------------------------------------------------------------


def slices_at(x: Tensor, indices: list[int], axis: int) -> Tensor:
    """The slices of x at these indices along an axis."""
    dtype = position_dtype(x.shape[axis])
    return x.gather(x.constant(indices, dtype, (len(indices),)), axis)


def _counts(name: str, value: Any) -> list[int]:
    """Convert the numbers of repetitions to a list of ints."""
    several = _entries(value)
    try:
        counts = [operator.index(count) for count in ([value] if several is None else several)]
    except ConcretizationError as error:
        raise error.at(name) from None
    except TypeError:
        raise ArgumentError(f"{name}: repetitions must be ints, got {short_repr(value)}") from None
    if min(counts, default=0) < 0:
        raise ShapeError(f"{name}: repetitions must not be negative, got {counts}; give at least 0")
    return counts
