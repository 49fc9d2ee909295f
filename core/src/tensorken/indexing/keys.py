"""Keys: each entry checked, and made a plain int, a slice, None, or a tensor of indices with the axes that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorken.errors import ArgumentError, DTypeError, IndexingError, ScalarRangeError, ShapeError
from tensorken.spec.dtypes import bool_, int32, int64
from tensorken.spec.shapes import Shape, shown

if TYPE_CHECKING:
    from tensorken.tensor import Tensor


class Keys:
    """Gives back what it is indexed with."""

    def __getitem__(self, key: Any) -> Any:
        return key

    def __repr__(self) -> str:
        return "tensorken.s_"


s_ = Keys()
"""Indexed with anything that tensors can be indexed with, the key itself: one key for several tensors.

>>> import tensorken as tk
>>> every_other = tk.s_[..., ::2]
>>> tk.tensor([1, 2, 3])[every_other].tolist(), tk.tensor([[4, 5, 6]])[every_other].tolist()
([1, 3], [[4, 6]])
"""


@dataclass(slots=True)
class Indices:
    """An entry of integers, which takes one axis of the tensor, or a mask, which takes as many as it has itself."""

    values: Tensor
    span: int  # how many axes it takes
    axis: int = 0  # the first of them

    @property
    def is_mask(self) -> bool:
        """Whether this is a mask."""
        return self.values.dtype is bool_


_BASIC = (int, slice, type(None), type(...))


def parsed(x: Tensor, key: Any) -> list[Any]:
    """The entries of a key, which together take all axes of x, in their order.

    Each is an int in [0, size), a range of such ints, Indices, None, or `...` before the ranges that it stands for.

    Raises:
        IndexingError: if the key does not fit the shape of x, or has an entry of another kind.
    """
    given = key if type(key) is tuple else (key,)
    entries = [entry if type(entry) in _BASIC else _entry(x, entry) for entry in given]
    gaps = sum([entry is ... for entry in entries])
    if gaps > 1:
        raise IndexingError(f"index: only one ... may stand in an index, got {shown(key)}; name the axes")
    taken = sum([_span(entry) for entry in entries])
    missing = len(x.shape) - taken
    if missing < 0:
        raise IndexingError(
            f"index: {taken} indices for shape {x.shape}, which has {len(x.shape)} axes; name fewer"
        )
    if missing:
        place = entries.index(...) + 1 if gaps else len(entries)
        entries[place:place] = [slice(None)] * missing
    axis = 0
    for i, entry in enumerate(entries):
        entries[i] = _placed(entry, axis, x.shape)
        axis += _span(entry)
    return entries


def _span(entry: Any) -> int:
    """How many axes an entry takes."""
    return entry.span if type(entry) is Indices else 0 if entry is None or entry is ... else 1


def _placed(entry: Any, axis: int, shape: Shape) -> Any:
    """An entry as it counts from the front of its axis."""
    if type(entry) is int:
        return in_range(entry, axis, shape)
    if type(entry) is slice:
        try:
            return range(*entry.indices(shape[axis]))
        except (TypeError, ValueError) as error:
            raise IndexingError(
                f"index: {shown(entry)} cannot cut an axis of size {shape[axis]}: {error}"
            ) from None
    if type(entry) is Indices:
        entry.axis = axis
        covered = shape[axis : axis + entry.span]
        if entry.is_mask and entry.values.shape != covered:
            raise IndexingError(
                f"index: a mask of shape {entry.values.shape} stands where shape {shape} has sizes {covered}; "
                f"a mask needs the sizes of the axes that it takes"
            )
    return entry


def in_range(index: int, axis: int, shape: Shape) -> int:
    """The index counted from the front."""
    size = shape[axis]
    if not -size <= index < size:
        raise IndexingError(
            f"index: {index} is out of range for axis {axis} of shape {shape}; it has {size} elements"
        )
    return index % size


def _entry(x: Tensor, entry: Any) -> Any:
    """An entry that is none of Python's own ints, slices, None and `...`."""
    if isinstance(entry, bool):
        return Indices(x.constant([entry], bool_, ()), 0)
    values = as_indices("index", entry, x)
    if type(values) is int:
        return values
    if values.dtype is bool_:
        return Indices(values, values.ndim)
    if values.dtype.kind != "int":
        raise IndexingError(
            f"index: need integers or bools, got {values.dtype} of shape {values.shape}; cast them (x.astype)"
        )
    if not values.shape:
        try:
            return values.__index__()
        except TypeError:  # it differs between the examples of a batch, or is known by name alone
            pass
    return Indices(values, 1)


def indices_beside(name: str, data: Any, x: Tensor) -> Tensor:
    """Indices as a tensor on the backend of another; what is no number at all is an IndexingError."""
    from tensorken.creation import tensor

    indices = as_indices(name, data, x)
    return tensor(indices, int64, backend=x.interpreter.base) if type(indices) is int else indices


def as_indices(name: str, data: Any, x: Tensor) -> Any:
    """What indexes x, as an int if it is one of Python or another library, else as a tensor beside x.

    Raises:
        IndexingError: if it is neither, nor a sequence or a buffer of numbers.
    """
    if isinstance(data, type(x)):
        return data
    if hasattr(data, "__index__"):
        try:
            return data.__index__()
        except TypeError:  # an array that is no whole number
            pass
    from tensorken.creation import tensor

    base = x.interpreter.base
    try:
        if isinstance(data, int | float | str | bytes):
            raise ArgumentError
        try:
            indices = tensor(data, backend=base)
        except (
            ScalarRangeError,
            DTypeError,
        ):  # beyond int32, or of a dtype that no tensor has, such as uint8
            indices = tensor(data, int64, backend=base)
    except ArgumentError:
        raise IndexingError(
            f"{name}: {type(data).__name__} is not supported for shape {x.shape}; "
            f"use ints, slices, None, ..., and integers or bools in lists or tensors"
        ) from None
    except (ScalarRangeError, DTypeError, ShapeError) as error:
        raise IndexingError(f"{name}: {shown(data)} is no index: {error}") from None
    if indices.size == 0 and isinstance(data, Sequence):  # [] has no dtype of its own
        return indices.astype(int32)
    return indices
