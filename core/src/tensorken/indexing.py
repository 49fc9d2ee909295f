"""Basic indexing, `x[...]` and `x.at[...]`: ints, slices with any step, None and `...` as steps of movement ops.

Each step has an inverse, so one plan serves to read a part of a tensor and to write it back into the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorken.errors import ArgumentError, IndexingError, ShapeError
from tensorken.spec.dtypes import bool_
from tensorken.spec.op import OPS
from tensorken.spec.shapes import Shape, broadcast, shown

if TYPE_CHECKING:
    from tensorken.tensor import Tensor

Step = tuple[str, Any]
"""The name of a movement op and its param."""


def get(x: Tensor, key: Any) -> Tensor:
    """The part of x that a key names.

    Raises:
        IndexingError: if an int is out of range, there are too many indices, or a kind that is not supported.
    """
    return _taken(x, _plan(x.shape, key))


def _taken(x: Tensor, steps: list[Step]) -> Tensor:
    for name, param in steps:
        x = x.apply(OPS[name], param)
    return x


class At:
    """What `x.at` gives; index it, then say what to do there."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __getitem__(self, key: Any) -> Part:
        return Part(self._tensor, key)


class Part:
    """A part of a tensor, with the ways to make a new tensor that differs there."""

    __slots__ = ("_steps", "_tensor")

    def __init__(self, tensor: Tensor, key: Any) -> None:
        self._tensor = tensor
        self._steps = _plan(tensor.shape, key)

    def get(self) -> Tensor:
        """The part itself."""
        return _taken(self._tensor, self._steps)

    def set(self, value: Any) -> Tensor:
        """The tensor with `value` in place of the part.

        >>> import tensorken as tk
        >>> tk.zeros(3).at[1].set(5.0).tolist()
        [0.0, 5.0, 0.0]
        """
        return self._replace(value, lambda old, new: new)

    def add(self, value: Any) -> Tensor:
        """The tensor with `value` added to the part."""
        return self._replace(value, lambda old, new: old + new)

    def multiply(self, value: Any) -> Tensor:
        """The tensor with the part multiplied by `value`."""
        return self._replace(value, lambda old, new: old * new)

    def _replace(self, value: Any, change: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        from tensorken.creation import as_operand

        x, old = self._tensor, self.get()
        new = change(old, as_operand("at", value, x))
        if new.dtype is not x.dtype:
            new = new.astype(x.dtype)
        if broadcast(new.shape, old.shape) != old.shape:
            raise ShapeError(
                f"at: a value of shape {new.shape} does not fit the part of shape {old.shape}; reshape it"
            )
        whole = self._whole(new.broadcast_to(old.shape))
        place = self._whole(x.constant([True], bool_, (1,)).reshape(()).broadcast_to(old.shape))
        return place.where(whole, x)

    def _whole(self, part: Tensor) -> Tensor:
        """The part in its place in a whole of zeros: the inverse steps, last first."""
        shapes = [self._tensor.shape]
        for name, param in self._steps:
            shapes.append(OPS[name].shape(shapes[-1], param))
        for (name, param), shape in zip(reversed(self._steps), reversed(shapes[:-1]), strict=True):
            part = part.apply(OPS[_INVERSE[name][0]], _INVERSE[name][1](shape, param))
        return part


_INVERSE: dict[str, tuple[str, Callable[[Shape, Any], Any]]] = {
    "flip": ("flip", lambda shape, axes: axes),
    "reshape": ("reshape", lambda shape, new: shape),
    "crop": (
        "pad",
        lambda shape, limits: tuple([(s, n - e) for n, (s, e) in zip(shape, limits, strict=True)]),
    ),
    "pad": ("crop", lambda shape, pads: tuple([(p, p + n) for n, (p, _) in zip(shape, pads, strict=True)])),
}


def _plan(shape: Shape, key: Any) -> list[Step]:
    """The movement ops that take the part a key names out of a tensor of this shape."""
    if type(key) is int and shape:
        # The commonest key by far: one row.
        index = _in_range(key, 0, shape)
        limits = ((index, index + 1), *[(0, n) for n in shape[1:]])
        return [("crop", limits), ("reshape", shape[1:])]
    entries = _filled(shape, key if isinstance(key, tuple) else (key,))
    flips: list[int] = []
    limits_list: list[tuple[int, int]] = []
    strides: list[int] = []
    result: list[int] = []
    axis = 0
    for entry in entries:
        if entry is None:
            result.append(1)
            continue
        size = shape[axis]
        if isinstance(entry, slice):
            start, stop, step = _slice_limits(entry, size)
            count = len(range(start, stop, step))
            if step < 0 and count:
                flips.append(axis)
                start = size - 1 - start
            low, stride = (start, abs(step)) if count else (0, 1)
            limits_list.append((low, low + (count - 1) * stride + 1 if count else low))
            strides.append(stride if count > 1 else 1)
            result.append(count)
        else:
            index = _in_range(entry, axis, shape)
            limits_list.append((index, index + 1))
            strides.append(1)
        axis += 1
    steps: list[Step] = []
    if flips:
        steps.append(("flip", tuple(flips)))
    current = shape
    if tuple(limits_list) != tuple([(0, n) for n in shape]):
        steps.append(("crop", tuple(limits_list)))
        current = tuple([e - s for s, e in limits_list])
    if any(stride > 1 for stride in strides):
        current = _add_strided(steps, current, strides)
    if tuple(result) != current:
        steps.append(("reshape", tuple(result)))
    return steps


def _add_strided(steps: list[Step], shape: Shape, strides: list[int]) -> Shape:
    """Every stride-th element: pad each axis to whole strides, split it in two, keep the first of each stride."""
    counts = [-(-n // stride) for n, stride in zip(shape, strides, strict=True)]
    pads = tuple([(0, c * s - n) for n, s, c in zip(shape, strides, counts, strict=True)])
    split = tuple([size for pair in zip(counts, strides, strict=True) for size in pair])
    steps.append(("pad", pads))
    steps.append(("reshape", split))
    steps.append(("crop", tuple([limit for c in counts for limit in ((0, c), (0, 1))])))
    steps.append(("reshape", tuple(counts)))
    return tuple(counts)


def _filled(shape: Shape, key: tuple[Any, ...]) -> list[Any]:
    """The key with `...` written out, and all axes named."""
    if sum(1 for entry in key if entry is Ellipsis) > 1:
        raise IndexingError(f"index: only one ... may stand in an index, got {shown(key)}; name the axes")
    named = [_checked(entry, shape) for entry in key if entry is not None and entry is not Ellipsis]
    missing = len(shape) - len(named)
    if missing < 0:
        raise IndexingError(
            f"index: {len(named)} indices for shape {shape}, which has {len(shape)} axes; name fewer"
        )
    rest: list[Any] = [slice(None)] * missing
    entries: list[Any] = []
    found = iter(named)
    for entry in key:
        if entry is Ellipsis:
            entries.extend(rest)
            rest = []
        else:
            entries.append(None if entry is None else next(found))
    return entries + rest


def _checked(entry: Any, shape: Shape) -> Any:
    if isinstance(entry, slice):
        return entry
    if isinstance(entry, bool) or not hasattr(entry, "__index__"):
        raise IndexingError(
            f"index: {type(entry).__name__} is not supported for shape {shape}; use ints, slices, None, ... or tk.take"
        )
    try:
        return entry.__index__()
    except (ArgumentError, TypeError):
        raise IndexingError(
            f"index: only an integer of shape () can stand for an int, got {_kind_of(entry)}; use tk.take for several"
        ) from None


def _kind_of(entry: Any) -> str:
    known = hasattr(entry, "shape") and hasattr(entry, "dtype")
    return f"{entry.dtype} of shape {entry.shape}" if known else shown(entry)


def _slice_limits(entry: slice, size: int) -> tuple[int, int, int]:
    try:
        return entry.indices(size)
    except (TypeError, ValueError) as error:
        raise IndexingError(f"index: {shown(entry)} cannot cut an axis of size {size}: {error}") from None


def _in_range(index: int, axis: int, shape: Shape) -> int:
    size = shape[axis]
    if not -size <= index < size:
        raise IndexingError(
            f"index: {index} is out of range for axis {axis} of shape {shape}; it has {size} elements"
        )
    return index % size
