"""Memory: the memory of values that users can access, how to change it, and which tensors visibly share it."""

from __future__ import annotations

import array
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.limits import NARROW
from tensorken_conformance.numbers.host_arrays import flat_buffer
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES, DType, bfloat16
from tensorken_core.tensor.tensor import Tensor

CODES = {name: dtype.format for name, dtype in DTYPES.items() if dtype.format not in "?e"}
"""The type codes of arrays of the standard library."""

HELD_BY_NUMPY = NARROW
"""The dtypes that memoryview has not in all versions of Python."""


def bytes_of(values: Array) -> Any:
    """A bytearray as a memoryview of the dtype."""
    buffer = flat_buffer(values)
    return memoryview(bytearray(buffer.tobytes())).cast(buffer.format)


def standard(values: Array) -> Any:
    """An array of the standard library."""
    return array.array(CODES[values.dtype.name], values.reshape(-1).tolist())


def _new(memory: Callable[[Array], Any]) -> Callable[[Subject, Array, DType], tuple[Any, Tensor]]:
    def make(subject: Subject, values: Array, dtype: DType) -> tuple[Any, Tensor]:
        data = memory(values)
        given = data if isinstance(data, list) else memoryview(data)
        result = subject.call_counter.new(values.shape, given, dtype)
        return data, subject.wrap(result, values.shape, dtype)

    return make


def _user(name: str) -> Callable[[Subject, Array, DType], tuple[Any, Tensor]]:
    def make(subject: Subject, values: Array, dtype: DType) -> tuple[Any, Tensor]:
        data = np.array(values)
        return data, getattr(tk, name)(data, backend=subject.stack)

    return make


WAYS_IN: dict[str, Callable[[Subject, Array, DType], tuple[Any, Tensor]]] = {
    "new-numpy": _new(lambda values: np.array(flat_buffer(values))),
    "new-bytearray": _new(bytes_of),
    "new-array": _new(standard),
    "new-list": _new(lambda values: values.reshape(-1).tolist()),
    "tensor": _user("tensor"),
    "asarray": _user("asarray"),
    "from_dlpack": _user("from_dlpack"),
}
"""The ways to make a tensor from memory that the caller keeps; each returns that memory, and the tensor."""


def takes(way: str, dtype: DType) -> bool:
    """Whether this way exists for a dtype."""
    if way == "new-array":
        return dtype.name in CODES
    if way == "from_dlpack" and dtype is bfloat16:  # numpy does not export it
        return False
    return way != "new-bytearray" or dtype.name not in HELD_BY_NUMPY


WAYS_OUT: dict[str, Callable[[Tensor], Any]] = {
    "ravel": lambda x: x.flat(),
    "numpy": np.asarray,
    "dlpack": lambda x: np.from_dlpack(x, device="cpu"),
    "to_mutable": lambda x: x.to_mutable(),
    "tolist": lambda x: x.tolist(),
}
"""The ways to read values."""


def gives(way: str, x: Tensor) -> bool:
    """Whether a tensor can be read this way: not every dtype has mutable elements in Python."""
    if way == "dlpack":
        return x.dtype is not bfloat16  # numpy does not import it
    return way != "to_mutable" or (x.dtype.name not in HELD_BY_NUMPY and x.size > 0)


def numbers(memory: Any, dtype: Any = None) -> Array:
    """The present values of memory, copied; large integers of a list need the dtype, else numpy takes float64."""
    return np.array(memory, dtype)


def overwrite(memory: Any) -> bool:
    """Change every element in memory; returns whether that is possible."""
    if isinstance(memory, list):
        for i, value in enumerate(memory):
            if isinstance(value, list):
                overwrite(value)
            else:
                memory[i] = not value if isinstance(value, bool) else value + 1 if value < 1 else value - 1
        return True
    try:
        values = np.asarray(memory)
    except TypeError:  # an array of another library, whose bfloat16 numpy does not take
        return False
    if not values.flags.writeable:
        return False
    values.reshape(-1).view(f"u{values.itemsize}")[...] ^= 1
    return True


def seen(representation: Any) -> list[Array]:
    """The visible memory of a representation: its own buffer, or those of its attributes and elements.

    Immutable memory is left out, since sharing it has no effect; memory on a device or in opaque objects is invisible.
    """
    found = []
    for part in (representation, *_held(representation)):
        if not isinstance(part, bytes | str | np.generic):  # which never change
            try:
                found.append(part if isinstance(part, np.ndarray) else np.asarray(memoryview(part)))
            except (TypeError, ValueError, BufferError):
                continue
    return found


SPECIAL_SLOTS = ("__weakref__", "__dict__")
"""Slots without a value of their own; reading the first raises TypeError for classes of some extensions, as jax's."""


def _held(representation: Any) -> Iterable[Any]:
    if isinstance(representation, tuple | list):
        return representation[:16]
    declared = [getattr(kind, "__slots__", ()) for kind in type(representation).__mro__]
    names = [name for slots in declared for name in ((slots,) if isinstance(slots, str) else slots)]
    held = [getattr(representation, name, None) for name in names if name not in SPECIAL_SLOTS]
    return [*held, *getattr(representation, "__dict__", {}).values()]


def overlap(a: Any, b: Any) -> bool:
    """Whether two representations visibly share memory."""
    return any(np.shares_memory(p, q) for p in seen(a) for q in seen(b) if p.size and q.size)
