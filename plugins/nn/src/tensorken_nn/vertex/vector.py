"""Vectors of vertices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self, overload

from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.vertex import functions
from tensorken_nn.vertex.arithmetic import Arithmetic, as_element
from tensorken_nn.vertex.node import Vertex, is_operand


class Vector(Arithmetic, Sequence[Vertex]):
    """A vector of vertices, made from floats and vertices, or from one sequence of them.

    Raises:
        ElementError: if an element is neither a float nor a vertex; it is a TypeError and a ValueError.
        ShapeError: if there are no elements; in operators, if sizes differ.

    >>> v = Vector(1.0, 2.0)
    >>> v + v, 2.0 * v, v[0], v.dot(v)
    (Vector(2.0, 4.0), Vector(2.0, 4.0), Vertex(1.0), Vertex(5.0))
    """

    __slots__ = ("_data",)

    def __init__(self, *elements: Any) -> None:
        if len(elements) == 1 and isinstance(elements[0], Iterable):
            elements = tuple(elements[0])
        if not elements:
            raise ShapeError("Vector: need at least one element, got none")
        self._data = tuple([as_element("Vector", i, x) for i, x in enumerate(elements)])

    @overload
    def __getitem__(self, key: int) -> Vertex: ...
    @overload
    def __getitem__(self, key: slice) -> Vector: ...
    def __getitem__(self, key: int | slice) -> Vertex | Vector:
        return Vector(self._data[key]) if isinstance(key, slice) else self._data[key]

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator[Vertex]:
        return iter(self._data)

    def __repr__(self) -> str:
        return f"Vector({', '.join([repr(v.value) for v in self._data])})"

    def map(self, function: Callable[[Vertex], Vertex]) -> Self:
        """Apply a function to each element.

        >>> Vector(-1.0, 2.0).map(functions.relu)
        Vector(0.0, 2.0)
        """
        return type(self)([function(v) for v in self._data])

    def dot(self, other: Vector) -> Vertex:
        """The dot product.

        Raises:
            ArgumentError: if the other is not a vector.
            ShapeError: if sizes differ.

        >>> Vector(1.0, 2.0).dot(Vector(3.0, 4.0))
        Vertex(11.0)
        """
        if not isinstance(other, Vector):
            raise ArgumentError(f"dot: need a Vector, got {type(other).__name__}")
        return functions.add(*(self * other))

    def __matmul__(self, other: Any) -> Vertex:
        return self.dot(other) if isinstance(other, Vector) else NotImplemented

    def _elementwise(self, function: Callable[[Any, Any], Vertex], other: Any) -> Self:
        if isinstance(other, Vector):
            if len(self) != len(other):
                raise ShapeError(f"Vector: sizes {len(self)} and {len(other)} differ; they must be equal")
            return type(self)(list(map(function, self._data, other._data)))
        return self.map(lambda v: function(v, other)) if is_operand(other) else NotImplemented
