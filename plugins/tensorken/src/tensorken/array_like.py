"""ArrayLike: the type of the operands of functions."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from tensorken_core.tensor.tensor import Tensor

__all__ = ["ArrayLike"]


class Nested(Protocol):
    """A sequence of array-likes, such as a list of lists of numbers.  A str is none: it cannot contain any object."""

    def __len__(self) -> int: ...
    def __contains__(self, value: object, /) -> bool: ...
    def __getitem__(self, index: int, /) -> ArrayLike: ...


class SupportsArray(Protocol):
    """An array of a library, or a number of numpy."""

    def __array__(self) -> Any: ...


class SupportsDLPack(Protocol):
    """An array that exports its memory by DLPack."""

    def __dlpack__(self) -> Any: ...


class SupportsBuffer(Protocol):
    """An object that exports its memory, such as an `array.array` or a `memoryview`."""

    def __buffer__(self, flags: int, /) -> memoryview: ...


ArrayLike: TypeAlias = Tensor | complex | SupportsArray | SupportsDLPack | SupportsBuffer | Nested
"""Data that functions take in place of a tensor: a number, nested sequences of numbers, an array of another library.

To type checkers int, float and bool are complex, and any list or tuple of array-likes is one.
"""
