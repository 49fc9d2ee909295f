"""Elementwise operators of vectors and matrices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

from tensorken_core.errors import ArgumentError
from tensorken_nn.vertex import functions
from tensorken_nn.vertex.node import Vertex


class ElementError(ArgumentError, ValueError):
    """An element is neither a float nor a vertex."""


class Arithmetic(ABC):
    """The base class of vectors and matrices, with elementwise operators; numbers and vertices broadcast."""

    __slots__ = ()
    __array_ufunc__ = None  # so that numpy scalars defer to our operators

    @abstractmethod
    def map(self, function: Callable[[Vertex], Vertex]) -> Self:
        """Apply a function to each element."""

    @abstractmethod
    def _elementwise(self, function: Callable[[Any, Any], Vertex], other: Any) -> Self:
        """Apply a function to pairs of elements; NotImplemented if the other operand has another type."""

    def __neg__(self) -> Self:
        return self.map(functions.negative)

    def __add__(self, other: Any) -> Self:
        return self._elementwise(functions.add, other)

    def __sub__(self, other: Any) -> Self:
        return self._elementwise(functions.subtract, other)

    def __mul__(self, other: Any) -> Self:
        return self._elementwise(functions.mult, other)

    def __truediv__(self, other: Any) -> Self:
        return self._elementwise(functions.divide, other)

    def __pow__(self, other: Any) -> Self:
        return self._elementwise(functions.pow, other)

    def __radd__(self, other: Any) -> Self:
        return self._elementwise(_swapped(functions.add), other)

    def __rsub__(self, other: Any) -> Self:
        return self._elementwise(_swapped(functions.subtract), other)

    def __rmul__(self, other: Any) -> Self:
        return self._elementwise(_swapped(functions.mult), other)

    def __rtruediv__(self, other: Any) -> Self:
        return self._elementwise(_swapped(functions.divide), other)

    def __rpow__(self, other: Any) -> Self:
        return self._elementwise(_swapped(functions.pow), other)


def as_element(of: str, index: object, x: Any) -> Vertex:
    """Convert a float to a vertex; a vertex is returned unchanged.

    Raises:
        ElementError: if it is neither.
    """
    if isinstance(x, Vertex):
        return x
    if isinstance(x, float):
        return Vertex(x)
    hint = f"; write {x!r}.0" if type(x) is int else ""
    raise ElementError(f"{of}: element {index} is of type {type(x).__name__}, need a float or a Vertex{hint}")


def _swapped(function: Callable[[Any, Any], Vertex]) -> Callable[[Any, Any], Vertex]:
    return lambda a, b: function(b, a)
