"""Matrices of vertices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self, overload

from tensorken_core.errors import ArgumentError, IndexingError, ShapeError
from tensorken_nn.vertex.arithmetic import Arithmetic, ElementError, as_element
from tensorken_nn.vertex.node import Vertex, is_operand
from tensorken_nn.vertex.vector import Vector


class Matrix(Arithmetic, Sequence[Vector]):
    """A matrix of vertices, made from a sequence of rows of floats and vertices.

    Attributes:
        rows: the rows, as vectors.
        cols: the columns, as vectors of the same vertices.

    Raises:
        ElementError: if an element is neither a float nor a vertex; it is a TypeError and a ValueError.
        ShapeError: if there are no rows, or rows of different sizes; in operators, if shapes do not fit.

    >>> m = Matrix([[1.0, 2.0], [3.0, 4.0]])
    >>> m.shape, m[1], m[1, 0], m.cols[0]
    ((2, 2), Vector(3.0, 4.0), Vertex(3.0), Vector(1.0, 3.0))
    >>> m @ Vector(1.0, 1.0)
    Vector(3.0, 7.0)
    """

    __slots__ = ("cols", "rows")

    def __init__(self, data: Iterable[Iterable[Any]]) -> None:
        rows = [_row(r, row) for r, row in enumerate(data)]
        sizes = sorted({len(row) for row in rows})
        if len(sizes) != 1 or sizes == [0]:
            got = f"rows of sizes {', '.join(map(str, sizes))}" if sizes not in ([], [0]) else "no elements"
            raise ShapeError(f"Matrix: need rows of one size, at least one element in each, got {got}")
        self.rows = tuple([Vector(row) for row in rows])
        self.cols = tuple([Vector(col) for col in zip(*rows, strict=True)])

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and the number of columns."""
        return len(self.rows), len(self.cols)

    @property
    def T(self) -> Self:
        """The transpose, with the same vertices.

        >>> Matrix([[1.0, 2.0]]).T.shape
        (2, 1)
        """
        return type(self)(self.cols)

    @overload
    def __getitem__(self, key: int) -> Vector: ...
    @overload
    def __getitem__(self, key: tuple[int, int]) -> Vertex: ...
    @overload
    def __getitem__(self, key: slice) -> Self: ...
    def __getitem__(self, key: int | tuple[int, int] | slice) -> Vector | Vertex | Self:
        """`m[r]` is row r, `m[r, c]` the element in row r and column c, `m[r:s]` the rows r to s.

        Raises:
            IndexError: if there is no such row or column, or the key has another type.
        """
        match key:
            case int():
                return self.rows[key]
            case (int(r), int(c)):
                return self.rows[r][c]
            case slice():
                return type(self)(self.rows[key])
        raise IndexingError(f"Matrix: need a row r, or a row and a column r, c, got {key!r}")

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Vector]:
        return iter(self.rows)

    def __repr__(self) -> str:
        return f"Matrix({[[v.value for v in row] for row in self.rows]})"

    def map(self, function: Callable[[Vertex], Vertex]) -> Self:
        """Apply a function to each element.

        >>> Matrix([[1.0], [2.0]]).map(abs)[1, 0]
        Vertex(2.0)
        """
        return type(self)([row.map(function) for row in self.rows])

    @overload
    def dot(self, other: Vector) -> Vector: ...
    @overload
    def dot(self, other: Matrix) -> Matrix: ...
    def dot(self, other: Vector | Matrix) -> Vector | Matrix:
        """The matrix product, also written `@`.

        Raises:
            ArgumentError: if the other is neither a vector nor a matrix.
            ShapeError: if the number of columns differs from the other's number of rows.

        >>> Matrix([[1.0, 2.0]]).dot(Matrix([[3.0], [4.0]]))
        Matrix([[11.0]])
        """
        if not isinstance(other, (Vector, Matrix)):
            raise ArgumentError(f"dot: need a Vector or a Matrix, got {type(other).__name__}")
        if len(self.cols) != len(other):
            raise ShapeError(
                f"matmul: {self.shape} @ {getattr(other, 'shape', (len(other),))}: {len(self.cols)} columns and "
                f"{len(other)} rows; the numbers must be equal"
            )
        if isinstance(other, Vector):
            return Vector([row.dot(other) for row in self.rows])
        return type(self)([[row.dot(col) for col in other.cols] for row in self.rows])

    @overload
    def __matmul__(self, other: Vector) -> Vector: ...
    @overload
    def __matmul__(self, other: Matrix) -> Matrix: ...
    def __matmul__(self, other: Any) -> Any:
        return self.dot(other) if isinstance(other, (Vector, Matrix)) else NotImplemented

    def __rmatmul__(self, other: Any) -> Vector:
        return self.T.dot(other) if isinstance(other, Vector) else NotImplemented

    def _elementwise(self, function: Callable[[Any, Any], Vertex], other: Any) -> Self:
        if isinstance(other, Matrix):
            if self.shape != other.shape:
                raise ShapeError(f"Matrix: shapes {self.shape} and {other.shape} differ; they must be equal")
            pairs = zip(self.rows, other.rows, strict=True)
            return type(self)([map(function, row, other_row) for row, other_row in pairs])
        return self.map(lambda v: function(v, other)) if is_operand(other) else NotImplemented


def _row(r: int, row: Any) -> list[Vertex]:
    if not isinstance(row, Iterable):
        raise ElementError(
            f"Matrix: row {r} is of type {type(row).__name__}, need a sequence of floats or vertices"
        )
    return [as_element("Matrix", (r, c), x) for c, x in enumerate(row)]
