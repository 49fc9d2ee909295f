"""Other shapes, orders and dtypes for the same elements."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from tensorken.creation import as_tensor
from tensorken.errors import ArgumentError, AxisError, DTypeError, ShapeError
from tensorken.functions.operands import together
from tensorken.indexing import checked, indices_beside
from tensorken.normalization import Axis, axes_of, axis_of, filled_in, sizes_of
from tensorken.spec.shapes import Axes, Shape, broadcast, shown
from tensorken.tensor import Tensor

__all__ = [
    "astype",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "expand_dims",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "ravel",
    "reshape",
    "roll",
    "rollaxis",
    "rot90",
    "squeeze",
    "swapaxes",
    "take",
    "transpose",
]


def astype(x: Any, dtype: Any) -> Tensor:
    """x in another dtype.

    >>> import tensorken as tk
    >>> tk.astype([1.5, -1.5], "int32").tolist()
    [1, -1]
    """
    return as_tensor(x).astype(dtype)


def reshape(x: Any, shape: int | Sequence[int], order: str = "C", *, copy: bool | None = None) -> Tensor:
    """The same elements in another shape, one size of which may be -1.

    Args:
        x: the tensor.
        shape: the new sizes, whose product is that of the old.
        order: `"C"` reads and writes with the last index running fastest, `"F"` with the first.
        copy: makes no difference, as tensors are immutable.

    Raises:
        ShapeError: if the numbers of elements differ.

    >>> import tensorken as tk
    >>> tk.reshape([1, 2, 3, 4], (2, -1)).tolist()
    [[1, 2], [3, 4]]
    """
    old = as_tensor(x)
    if _is_row_major("reshape", order):
        return old.reshape(shape)
    sizes = sizes_of("reshape", (shape,))
    if -1 in sizes:
        sizes = filled_in(old.shape, sizes)
    return old.transpose().reshape(sizes[::-1]).transpose()


def ravel(x: Any, order: str = "C") -> Tensor:
    """All elements along one axis, with the last index running fastest, or with `order="F"` the first.

    >>> import tensorken as tk
    >>> tk.ravel([[1, 2], [3, 4]]).tolist()
    [1, 2, 3, 4]
    """
    old = as_tensor(x)
    return (old if _is_row_major("ravel", order) else old.transpose()).reshape((old.size,))


flatten = ravel


def transpose(x: Any, axes: Sequence[int] | None = None) -> Tensor:
    """The axes in another order; reversed by default.

    Raises:
        AxisError: if the order does not name every axis once.

    >>> import tensorken as tk
    >>> tk.transpose(tk.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return as_tensor(x).transpose(axes)


permute_dims = transpose


def matrix_transpose(x: Any) -> Tensor:
    """The last two axes exchanged; `x.mT`.

    Raises:
        ShapeError: if x has fewer than two axes.

    >>> import tensorken as tk
    >>> tk.matrix_transpose(tk.zeros((5, 2, 3))).shape
    (5, 3, 2)
    """
    old = as_tensor(x)
    if old.ndim < 2:
        raise ShapeError(f"matrix_transpose: need at least 2 axes, got shape {old.shape}; reshape first")
    return old.mT


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged.

    >>> import tensorken as tk
    >>> tk.swapaxes(tk.zeros((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """
    old = as_tensor(x)
    first, second = axis_of("swapaxes", old.shape, axis1), axis_of("swapaxes", old.shape, axis2)
    order = list(range(old.ndim))
    order[first], order[second] = second, first
    return old.permute(order)


def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Axes moved to other places; the rest keep their order.

    Raises:
        AxisError: if an axis is out of range or given twice.
        ArgumentError: if there are not as many places as axes.

    >>> import tensorken as tk
    >>> tk.moveaxis(tk.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    old = as_tensor(x)
    start, end = _places("moveaxis", old.shape, source), _places("moveaxis", old.shape, destination)
    if len(start) != len(end):
        raise ArgumentError(
            f"moveaxis: {len(start)} axes and {len(end)} places for shape {old.shape}; give each axis one place"
        )
    order = [i for i in range(old.ndim) if i not in start]
    for place, axis in sorted(zip(end, start, strict=True)):
        order.insert(place, axis)
    return old.permute(order)


def rollaxis(x: Any, axis: int, start: int = 0) -> Tensor:
    """An axis moved to before another, as in numpy; `tk.moveaxis` is easier to read.

    >>> import tensorken as tk
    >>> tk.rollaxis(tk.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = as_tensor(x)
    axis, start = axis_of("rollaxis", x.shape, axis), axis_of("rollaxis", (*x.shape, 1), start)
    return moveaxis(x, axis, start - 1 if axis < start else start)


def expand_dims(x: Any, axis: int | Sequence[int] = 0) -> Tensor:
    """New axes of size 1 at these places of the result.

    Raises:
        AxisError: if a place is out of range or given twice.

    >>> import tensorken as tk
    >>> tk.expand_dims(tk.zeros((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    old = as_tensor(x)
    count = len(axis) if isinstance(axis, Sequence) else 1
    axes = axes_of("expand_dims", (*old.shape, *[1] * count), axis)
    sizes = iter(old.shape)
    return old.reshape(tuple([1 if i in axes else next(sizes) for i in range(old.ndim + count)]))


def squeeze(x: Any, axis: Axis = None) -> Tensor:
    """Without axes of size 1: all of them, or the given ones, which must have size 1.

    Raises:
        ShapeError: if a given axis has another size.

    >>> import tensorken as tk
    >>> tk.squeeze(tk.zeros((1, 2, 1)), 0).shape
    (2, 1)
    """
    old = as_tensor(x)
    if axis is None:
        return old.reshape(tuple([n for n in old.shape if n != 1]))
    axes = axes_of("squeeze", old.shape, axis)
    for i in axes:
        if old.shape[i] != 1:
            raise ShapeError(
                f"squeeze: axis {i} of shape {old.shape} has size {old.shape[i]}, need 1; leave it out"
            )
    return old.reshape(tuple([n for i, n in enumerate(old.shape) if i not in axes]))


def atleast_1d(*tensors: Any) -> Any:
    """The tensor with one axis if it has none; a list, if several are given.

    >>> import tensorken as tk
    >>> tk.atleast_1d(3.0).shape
    (1,)
    """
    return _each(tensors, lambda x: x.reshape((1,)) if x.ndim == 0 else x)


def atleast_2d(*tensors: Any) -> Any:
    """The tensor with axes of size 1 put in front until there are two; a list, if several are given.

    >>> import tensorken as tk
    >>> tk.atleast_2d([1.0, 2.0]).shape
    (1, 2)
    """
    return _each(tensors, lambda x: x.reshape((1,) * (2 - x.ndim) + x.shape))


def atleast_3d(*tensors: Any) -> Any:
    """The tensor with axes of size 1 until there are three, as in numpy; a list, if several are given.

    A vector of size n becomes (1, n, 1), an m × n matrix (m, n, 1).

    >>> import tensorken as tk
    >>> tk.atleast_3d([1.0, 2.0]).shape
    (1, 2, 1)
    """

    def deepened(x: Tensor) -> Tensor:
        flat = x if x.ndim > 1 else x.reshape((1, x.size))
        return flat if flat.ndim > 2 else flat.reshape((*flat.shape, 1))

    return _each(tensors, deepened)


# ---- broadcasting ------------------------------------------------------------------------------------------


def broadcast_to(x: Any, shape: int | Sequence[int]) -> Tensor:
    """x repeated to a shape, by numpy's rules.

    Raises:
        ShapeError: if, from the last axis on, a size is neither equal nor 1.

    >>> import tensorken as tk
    >>> tk.broadcast_to([1, 2], (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    return as_tensor(x).broadcast_to(sizes_of("broadcast_to", (shape,)))


def broadcast_shapes(*shapes: int | Sequence[int]) -> Shape:
    """The shape to which all shapes broadcast, by numpy's rules.

    Raises:
        ShapeError: if they do not.

    >>> import tensorken as tk
    >>> tk.broadcast_shapes((2, 1), (3,), ())
    (2, 3)
    """
    return _common("broadcast_shapes", [sizes_of("broadcast_shapes", (shape,)) for shape in shapes])


def broadcast_arrays(*tensors: Any) -> list[Tensor]:
    """Tensors repeated to the shape to which all of them broadcast; each keeps its dtype.

    Raises:
        ShapeError: if they do not broadcast.

    >>> import tensorken as tk
    >>> a, b = tk.broadcast_arrays([[1], [2]], [3.0, 4.0])
    >>> a.tolist(), b.tolist()
    ([[1, 1], [2, 2]], [[3.0, 4.0], [3.0, 4.0]])
    """
    if not tensors:
        return []
    found = together("broadcast_arrays", tensors)
    shape = _common("broadcast_arrays", [x.shape for x in found])
    return [x.broadcast_to(shape) for x in found]


# ---- the order of elements ---------------------------------------------------------------------------------


def flip(x: Any, axis: Axis = None) -> Tensor:
    """The elements in reverse order along axes, all by default.

    >>> import tensorken as tk
    >>> tk.flip([1, 2, 3]).tolist()
    [3, 2, 1]
    """
    return as_tensor(x).flip(axis)


def flipud(x: Any) -> Tensor:
    """The rows in reverse order: `tk.flip` along axis 0.

    >>> import tensorken as tk
    >>> tk.flipud([[1, 2], [3, 4]]).tolist()
    [[3, 4], [1, 2]]
    """
    old = as_tensor(x)
    return old.flip(axis_of("flipud", old.shape, 0))


def fliplr(x: Any) -> Tensor:
    """The columns in reverse order: `tk.flip` along axis 1.

    >>> import tensorken as tk
    >>> tk.fliplr([[1, 2], [3, 4]]).tolist()
    [[2, 1], [4, 3]]
    """
    old = as_tensor(x)
    return old.flip(axis_of("fliplr", old.shape, 1))


def rot90(x: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """Turned k times by 90 degrees in the plane of two axes, from the first towards the second.

    Raises:
        AxisError: if the axes are not two different ones.

    >>> import tensorken as tk
    >>> tk.rot90([[1, 2], [3, 4]]).tolist()
    [[2, 4], [1, 3]]
    """
    old, turns = as_tensor(x), _integer("rot90", "k", k) % 4
    places = _places("rot90", old.shape, tuple(axes))
    if len(places) != 2:
        raise AxisError(f"rot90: need two axes of shape {old.shape}, got {shown(axes)}; they span the plane")
    if turns % 2 == 0:
        return old.flip(places) if turns else old
    turned = old.flip(places[1]) if turns == 1 else old
    turned = swapaxes(turned, *places)
    return turned if turns == 1 else turned.flip(places[1])


def roll(x: Any, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Tensor:
    """The elements moved on by `shift` places along axes; those that leave at the end come back at the start.

    Args:
        x: the tensor.
        shift: how far, backwards if negative; one number for all axes, or one for each.
        axis: along which axes; without it the flat tensor is rolled, and takes its old shape again.

    Raises:
        ArgumentError: if there are not as many shifts as axes.

    >>> import tensorken as tk
    >>> tk.roll([1, 2, 3, 4], 1).tolist()
    [4, 1, 2, 3]
    """
    x = as_tensor(x)
    shifts = [_integer("roll", "a shift", s) for s in (shift if isinstance(shift, Sequence) else (shift,))]
    if axis is None:
        return _rolled(x.reshape((x.size,)), sum(shifts), 0).reshape(x.shape)
    several = axis if isinstance(axis, Sequence) else (axis,)
    axes = [axis_of("roll", x.shape, i) for i in several]
    count = max(len(shifts), len(axes))
    if any(len(given) not in (1, count) for given in (shifts, axes)):
        raise ArgumentError(
            f"roll: {len(shifts)} shifts and {len(axes)} axes for shape {x.shape}; give each axis one shift"
        )
    shifts, axes = (given * count if len(given) != count else given for given in (shifts, axes))
    for by, i in zip(shifts, axes, strict=True):
        x = _rolled(x, by, i)
    return x  # type: ignore[no-any-return]


def _rolled(x: Tensor, shift: int, axis: int) -> Tensor:
    n = x.shape[axis]
    start = -shift % n if n else 0
    if start == 0:
        return x
    pieces = []
    for limits in ((start, n), (0, start)):
        pieces.append(x.crop(tuple([limits if i == axis else (0, size) for i, size in enumerate(x.shape)])))
    return pieces[0].concatenate(pieces[1], axis=axis)


def take(x: Any, indices: Any, axis: int | None = None) -> Tensor:
    """The slices of x at integer indices along an axis, or of the flat tensor; negative ones count from the end.

    Raises:
        IndexingError: if an index is out of range.

    >>> import tensorken as tk
    >>> tk.take(tk.tensor([10.0, 20.0, 30.0]), [2, 0]).tolist()
    [30.0, 10.0]
    """
    x = as_tensor(x)
    if axis is None:
        return take(x.reshape((x.size,)), indices, 0)
    place = axis_of("take", x.shape, axis)
    index = indices_beside("take", indices, x)
    if index.dtype.kind != "int":
        raise DTypeError(f"take: indices must be int32 or int64, got {index.dtype}; cast them (x.astype)")
    found: Tensor = x.gather(checked("take", index, place, x.shape).reshape((index.size,)), place)
    return found.reshape(x.shape[:place] + index.shape + x.shape[place + 1 :])


# ---- pieces ------------------------------------------------------------------------------------------------


def _each(tensors: Sequence[Any], change: Any) -> Any:
    changed = [change(as_tensor(x)) for x in tensors]
    return changed[0] if len(changed) == 1 else changed


def _common(name: str, shapes: Sequence[Shape]) -> Shape:
    common: Shape = ()
    for shape in shapes:
        if min(shape, default=0) < 0:
            raise ShapeError(f"{name}: sizes must not be negative, got {shape}; give each axis at least 0")
        try:
            common = broadcast(common, shape)
        except ShapeError as error:
            raise ShapeError(f"{name}: {error}") from None
    return common


def _places(name: str, shape: Shape, axes: int | Sequence[int]) -> Axes:
    """Axes in the order given, each once."""
    several = axes if isinstance(axes, Sequence) else (axes,)
    places = tuple([axis_of(name, shape, axis) for axis in several])
    if len(set(places)) != len(places):
        raise AxisError(f"{name}: axes {tuple(several)} name an axis twice for shape {shape}; name each once")
    return places


def _integer(name: str, what: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name}: {what} must be an int, got {shown(value)}") from None


def _is_row_major(name: str, order: str) -> bool:
    if order not in ("C", "F"):
        raise ArgumentError(
            f"{name}: order must be 'C' or 'F', got {shown(order)}; tensors have no order of their own"
        )
    return order == "C"
