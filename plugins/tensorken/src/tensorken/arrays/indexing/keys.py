"""Parsing of keys: each entry becomes an int, a range, None, or a tensor of indices with the axes that it indexes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tensorken_core.errors import ArgumentError, DTypeError, IndexingError, ScalarRangeError, ShapeError
from tensorken_core.language.dtypes import DType, bool_, int32, int64
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.language.shapes import Shape, short_repr
from tensorken_core.tensor.tensor import Tensor


class Keys:
    """An object that returns its key when indexed."""

    def __getitem__(self, key: Any) -> Any:
        return key

    def __repr__(self) -> str:
        return "tensorken.s_"


s_ = Keys()
"""`s_[key]` is the key itself, for use with several tensors.

>>> import tensorken as tk
>>> every_other = tk.s_[..., ::2]
>>> tk.tensor([1, 2, 3])[every_other].tolist(), tk.tensor([[4, 5, 6]])[every_other].tolist()
([1, 3], [[4, 6]])
"""


@dataclass(slots=True)
class Indices:
    """An index array, which indexes one axis of the tensor, or a mask, which indexes one axis for each of its axes."""

    values: Tensor
    span: int  # the number of indexed axes
    axis: int = 0  # the first indexed axis

    @property
    def is_mask(self) -> bool:
        """Whether this is a mask."""
        return self.values.dtype is bool_


_BASIC = (int, slice, type(None), type(...))


def parsed(x: Tensor, key: Any) -> tuple[list[Any], bool]:
    """The entries of a key, covering all axes of x in order, and whether they include Indices.

    An entry is an int in [0, size), a range of such ints, Indices, None, or `...` before the ranges that replace it.

    Raises:
        IndexingError: if the key does not fit the shape of x, or has an entry of another kind.
    """
    shape = x.shape
    entries: list[Any] = []
    taken, gap, advanced = 0, -1, False
    for entry in key if type(key) is tuple else (key,):
        if type(entry) not in _BASIC:
            entry = _entry(x, entry)
        if type(entry) is Indices:
            advanced = True
            taken += entry.span
        elif entry is ...:
            if gap >= 0:
                raise IndexingError(
                    f"index: an index may contain only one ..., got {short_repr(key)}; write : for the other axes"
                )
            gap = len(entries)
        elif entry is not None:
            taken += 1
        entries.append(entry)
    missing = len(shape) - taken
    if missing < 0:
        raise IndexingError(
            f"index: {taken} indices for shape {shape}, which has {len(shape)} axes; give fewer indices"
        )
    if missing:
        start = gap + 1 if gap >= 0 else len(entries)
        entries[start:start] = [_WHOLE] * missing
    axis = 0
    for i, entry in enumerate(entries):
        if type(entry) is slice:
            entries[i] = range(shape[axis]) if entry is _WHOLE else _sliced(entry, shape[axis])
            axis += 1
        elif type(entry) is int:
            entries[i] = in_range(entry, axis, shape)
            axis += 1
        elif type(entry) is Indices:
            _set_axis(entry, axis, shape)
            axis += entry.span
    return entries, advanced


_WHOLE = slice(None)


def _sliced(entry: slice, size: int) -> range:
    """The ints that a slice selects."""
    try:
        return range(*entry.indices(size))
    except (TypeError, ValueError) as error:
        raise IndexingError(
            f"index: {short_repr(entry)} cannot slice an axis of size {size}: {error}"
        ) from None


def _set_axis(indices: Indices, axis: int, shape: Shape) -> None:
    """Set the first axis of indices; check that a mask has the sizes of its axes, or is empty."""
    indices.axis = axis
    mask, sizes = indices.values, shape[axis : axis + indices.span]
    if not indices.is_mask or mask.shape == sizes:
        return
    if any(of_mask not in (0, size) for of_mask, size in zip(mask.shape, sizes, strict=True)):
        raise IndexingError(
            f"index: a mask of shape {mask.shape} indexes axes of sizes {sizes} of shape {shape}; "
            f"give a mask of shape {sizes}"
        )
    indices.values = mask.constant([False], bool_, (1,) * len(sizes)).expand(sizes)


def in_range(index: int, axis: int, shape: Shape) -> int:
    """The index counted from the front."""
    size = shape[axis]
    if not -size <= index < size:
        raise IndexingError(
            f"index: {index} is out of range for axis {axis} of shape {shape}; it has {size} elements"
        )
    return index % size


def _entry(x: Tensor, entry: Any) -> Any:
    """Convert an entry that is not a Python int, a slice, None or `...`."""
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
        except TypeError:  # the value differs between the examples of a batch, or is symbolic
            pass
    return Indices(values, 1)


def indices_like(name: str, data: Any, x: Tensor) -> Tensor:
    """Indices as a tensor on the backend of x; raises IndexingError if data are not numbers."""
    indices = as_indices(name, data, x)
    return _as_tensor(indices, x, int64) if type(indices) is int else indices


def as_indices(name: str, data: Any, x: Tensor) -> Any:
    """An index of x: an int if data are an int of Python or another library, else a tensor on the backend of x.

    Raises:
        IndexingError: if data are not an int, a tensor, or a sequence or buffer of numbers.
    """
    if isinstance(data, Tensor):  # x may be complex, and its indices are not
        return data.in_index_dtype()
    if hasattr(data, "__index__") and getattr(data, "shape", ()) == ():
        try:
            return data.__index__()
        except TypeError:  # an array that does not convert to an int
            pass
    try:
        if isinstance(data, int | float | str | bytes):
            raise ArgumentError
        try:
            indices = _as_tensor(data, x)
        except (ScalarRangeError, DTypeError):
            # Values beyond int32, or a dtype that the backend does not have.
            indices = _as_tensor(data, x, int64)
    except ArgumentError:
        raise IndexingError(
            f"{name}: {type(data).__name__} is not a valid index for shape {x.shape}; "
            f"use ints, slices, None, ..., and integers or bools in lists or tensors"
        ) from None
    except (ScalarRangeError, DTypeError, ShapeError) as error:
        raise IndexingError(f"{name}: {short_repr(data)} is not a valid index: {error}") from None
    if indices.size == 0 and isinstance(data, Sequence):  # [] determines no dtype
        return indices.astype(int32)
    return indices.in_index_dtype()


def _as_tensor(data: Any, x: Tensor, dtype: DType | None = None) -> Tensor:
    """Data as a tensor on the backend of x."""
    result: Tensor = Interpreter.coerce(data, dtype, x.interpreter.base)
    return result
