"""What vectors and matrices share: operators element by element, and what an element may be."""

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
    """Operators that act element by element; a number or a vertex stands for one in each place."""

    __slots__ = ()
    __array_ufunc__ = None  # numpy's numbers leave mixed operators to us

    @abstractmethod
    def map(self, function: Callable[[Vertex], Vertex]) -> Self:
        """The function of each element."""

    @abstractmethod
    def _combined(self, function: Callable[[Any, Any], Vertex], other: Any) -> Self:
        """The function of each element and the other's; NotImplemented if the other is of another kind."""

    def __neg__(self) -> Self:
        return self.map(functions.negative)

    def __add__(self, other: Any) -> Self:
        return self._combined(functions.add, other)

    def __sub__(self, other: Any) -> Self:
        return self._combined(functions.subtract, other)

    def __mul__(self, other: Any) -> Self:
        return self._combined(functions.mult, other)

    def __truediv__(self, other: Any) -> Self:
        return self._combined(functions.divide, other)

    def __pow__(self, other: Any) -> Self:
        return self._combined(functions.pow, other)

    def __radd__(self, other: Any) -> Self:
        return self._combined(_swapped(functions.add), other)

    def __rsub__(self, other: Any) -> Self:
        return self._combined(_swapped(functions.subtract), other)

    def __rmul__(self, other: Any) -> Self:
        return self._combined(_swapped(functions.mult), other)

    def __rtruediv__(self, other: Any) -> Self:
        return self._combined(_swapped(functions.divide), other)

    def __rpow__(self, other: Any) -> Self:
        return self._combined(_swapped(functions.pow), other)


def element(of: str, place: object, x: Any) -> Vertex:
    """A vertex as it is, a float in a new one.

    Raises:
        ElementError: if it is neither.
    """
    if isinstance(x, Vertex):
        return x
    if isinstance(x, float):
        return Vertex(x)
    hint = f"; write {x!r}.0" if type(x) is int else ""
    raise ElementError(f"{of}: element {place} is of type {type(x).__name__}, need a float or a Vertex{hint}")


def _swapped(function: Callable[[Any, Any], Vertex]) -> Callable[[Any, Any], Vertex]:
    return lambda a, b: function(b, a)
