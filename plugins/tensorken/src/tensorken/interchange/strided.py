"""Memory of other libraries, given by its address: it is read once, never written, and not referenced afterwards."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from tensorken_core.errors import ExchangeError
from tensorken_core.language.shapes import MOST_ELEMENTS, Shape
from tensorken_core.text import printable

MOST_AXES = 64
"""The most axes of an array of another library, as in numpy."""

MOST_BYTES = 2**63
"""An address, a size and a stride are less."""

BFLOAT16 = "bfloat16"
"""The format of bfloat16 numbers, the upper halves of float32, for which the struct module has no name."""


@dataclass(frozen=True, slots=True)
class Strided:
    """Elements at an address, with the reading interface of a memoryview; their owner must be kept alive meanwhile.

    Attributes:
        address: the address of the element whose indices are all 0.
        shape: the size along each axis.
        strides: the bytes from one element to the next along each axis; None if they are in row-major order.
        format: the format of an element in the struct module, or BFLOAT16.
        itemsize: the bytes of an element.
    """

    address: int
    shape: Shape
    strides: tuple[int, ...] | None
    format: str
    itemsize: int

    @property
    def nbytes(self) -> int:
        """The number of bytes of all elements."""
        return math.prod(self.shape) * self.itemsize

    def tobytes(self) -> bytes:
        """A copy of the elements in row-major order."""
        if not self.nbytes:
            return b""
        if self.strides is None:
            return ctypes.string_at(self.address, self.nbytes)
        sizes, steps = _merged(self.shape, self.strides)
        rows = [
            self.address + sum([i * step for i, step in zip(index, steps[:-1], strict=True)])
            for index in product(*map(range, sizes[:-1]))
        ]
        return b"".join([self._row(row, sizes[-1], steps[-1]) for row in rows])

    def _row(self, address: int, count: int, step: int) -> bytes:
        """`count` elements, `step` bytes apart."""
        size = self.itemsize
        if step == size:
            return ctypes.string_at(address, count * size)
        if step == 0:
            return ctypes.string_at(address, size) * count
        if step < 0:  # start at the lowest address; the loop reverses the elements
            address += (count - 1) * step
        span = ctypes.string_at(address, (count - 1) * abs(step) + size)
        elements = bytearray(count * size)
        for byte in range(size):
            column = span[byte :: abs(step)]
            elements[byte::size] = column if step > 0 else column[::-1]
        return bytes(elements)


def check_sizes(name: str, ndim: int, shape: Any = (), strides: Any = None) -> None:
    """Raise if the description of an array contradicts itself, or no memory has its size.

    Args:
        name: of the protocol, for errors.
        ndim: the number of axes.
        shape: the size along each axis.
        strides: the bytes from one element to the next along each axis; None for row-major order.

    Raises:
        ExchangeError: see above.
    """
    if not 0 <= ndim <= MOST_AXES:
        raise ExchangeError(f"{name}: the array says that it has {ndim} axes; need 0 to {MOST_AXES}")
    if not all([type(size) is int and 0 <= size < MOST_BYTES for size in shape]):
        raise ExchangeError(
            f"{name}: the array says that its shape is {shape!s:.80}; need sizes of at least 0"
        )
    if math.prod([size or 1 for size in shape]) >= MOST_ELEMENTS:
        raise ExchangeError(
            f"{name}: the array says that its shape is {shape!s:.80}; no memory has this size"
        )
    if strides is not None and not (
        len(strides) == len(shape) and all([type(step) is int and abs(step) < MOST_BYTES for step in strides])
    ):
        raise ExchangeError(
            f"{name}: the array says that its strides are {strides!s:.80}; need an int for each axis of {shape}"
        )


def check_memory(name: str, found: Strided, low: int = 1, high: int = MOST_BYTES) -> None:
    """Raise if elements are outside of the memory from the address `low` up to `high`.

    Raises:
        ExchangeError: see above.
    """
    if not found.nbytes:
        return
    steps = found.strides or [
        math.prod(found.shape[i + 1 :]) * found.itemsize for i in range(len(found.shape))
    ]
    spans = [(size - 1) * step for size, step in zip(found.shape, steps, strict=True)]
    first = found.address + sum([span for span in spans if span < 0])
    end = found.address + sum([span for span in spans if span > 0]) + found.itemsize
    if first < low or end > high:
        raise ExchangeError(
            f"{name}: shape {found.shape!s:.80} and strides {tuple(steps)!s:.80} reach outside of the array's memory"
        )


def _merged(shape: Shape, strides: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Sizes and strides of the same elements in the same order, along as few axes as possible, at least one."""
    sizes, steps = [1], [0]
    for size, step in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if sizes[-1] == 1 or steps[-1] == size * step:  # contiguous with the axis before, so merge them
            sizes[-1] *= size
            steps[-1] = step
        else:
            sizes.append(size)
            steps.append(step)
    return sizes, steps


_FORMATS = {
    **{f"i{size}": code for size, code in ((1, "b"), (2, "h"), (4, "i"), (8, "q"))},
    **{f"u{size}": code for size, code in ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))},
    **{f"f{size}": code for size, code in ((2, "e"), (4, "f"), (8, "d"))},
    **{f"c{size}": code for size, code in ((8, "Zf"), (16, "Zd"))},
    "b1": "?",
}
"""Formats of the buffer protocol, by kind and size of `__array_interface__`."""


def of_interface(interface: Mapping[str, Any], keep: list[Any], dtype: str = "") -> Strided | None:
    """The memory that an `__array_interface__` describes, or None if its elements have no supported format.

    The protocol is version 3 of https://numpy.org/doc/stable/reference/arrays.interface.html.

    Args:
        interface: the value of the attribute; the owner of the memory must be kept alive.
        keep: a list to which further objects are added that must stay alive until the memory has been read.
        dtype: the name of the array's dtype, as the protocol has no kind for bfloat16.

    Raises:
        ExchangeError: if the description lacks a part or contradicts itself.
    """
    name, typestr, shape = "__array_interface__", interface.get("typestr"), interface.get("shape")
    strides = interface.get("strides")
    if not isinstance(typestr, str) or not typestr or not isinstance(shape, tuple):
        raise ExchangeError(
            f"{name}: need a typestr and a tuple shape, got {printable(repr(typestr), 60)} and {shape!s:.80}"
        )
    check_sizes(name, len(shape), shape, strides)
    order, kind = typestr[0], typestr[1:]
    code, data = BFLOAT16 if dtype == BFLOAT16 else _FORMATS.get(kind), interface.get("data")
    if code is None or data is None or interface.get("mask") is not None:
        return None
    itemsize = 2 if code == BFLOAT16 else int(kind[1:])
    if isinstance(data, tuple):
        address, low, high = data[0] if data else None, 1, MOST_BYTES
    else:
        try:
            with memoryview(data) as view:
                memory = (ctypes.c_char * view.nbytes).from_buffer_copy(view.tobytes())
        except TypeError:
            raise ExchangeError(
                f"{name}: data is a {type(data).__name__}; need an address or a buffer"
            ) from None
        keep.append(memory)
        low = ctypes.addressof(memory)
        offset = interface.get("offset", 0)
        address, high = low + offset if isinstance(offset, int) else None, low + len(memory)
    if not isinstance(address, int) or order not in ("<", ">", "|", "="):
        raise ExchangeError(
            f"{name}: need a byte order, an integer address and an integer offset; got another type"
        )
    found = Strided(
        address,
        shape,
        None if strides is None else tuple(strides),
        code if order == "|" else order + code,
        itemsize,
    )
    check_memory(name, found, low, high)
    return found
