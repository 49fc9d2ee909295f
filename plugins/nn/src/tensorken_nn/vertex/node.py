"""Vertices: values with their parents and gradients."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self, TypeAlias

from tensorken import Tensor
from tensorken_core.errors import ArgumentError, GradientError, ShapeError

Value: TypeAlias = float | Tensor
"""The value of a vertex: a float or a floating-point tensor."""

PullBack: TypeAlias = Callable[["Vertex"], Iterable[Value | None]]
"""A function from a vertex with a complete `grad` to its contribution to each parent's gradient, or None."""

OPERATORS: dict[str, Callable[..., Vertex]] = {}
"""The functions of the operators by name; `functions.py` registers them, since functions need vertices first."""


class Vertex:
    """A number or a tensor in a graph of computations.

    Operators and functions always make new vertices with their operands as parents. Comparisons and `bool` use the
    value, as for numbers; sets and dicts compare vertices by identity.

    Args:
        value: a number, which is converted to a float, or a floating-point tensor.
        parents: the vertices it was computed from; empty for a leaf.
        pull_back: a function from this vertex, once its `grad` is complete, to the contribution to each parent's
            gradient.

    Attributes:
        value: a float or a tensor; optimisers change it.
        grad: the derivative of the vertex on which `backward` was called with respect to this one; 0.0 before.

    Raises:
        ArgumentError: if the value is neither a number nor a tensor.
        GradientError: if it is a tensor of ints or bools.

    >>> from tensorken_nn.vertex import Vertex, exp
    >>> x, y = Vertex(0.0), Vertex(2.0)
    >>> z = exp(x) * y
    >>> z.backward()
    >>> z, x.grad, y.grad
    (Vertex(2.0), 2.0, 1.0)
    """

    __slots__ = ("__weakref__", "_parents", "_pull_back", "grad", "value")
    __array_ufunc__ = None  # so that numpy scalars defer to our operators
    __hash__ = object.__hash__

    def __init__(
        self, value: Any, parents: tuple[Vertex, ...] = (), pull_back: PullBack | None = None
    ) -> None:
        self.value: Any = value if type(value) is float else _checked(value)
        self.grad: Any = 0.0
        self._parents = parents
        self._pull_back = pull_back

    @property
    def parents(self) -> tuple[Vertex, ...]:
        """The vertices that this one was computed from, in the order of the function's arguments; () for a leaf.

        >>> x = Vertex(3.0)
        >>> (x + 1.0).parents
        (Vertex(3.0), Vertex(1.0))
        """
        return self._parents

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else repr(self)

    # ---- derivatives -----------------------------------------------------------------------------------------

    def topological_order(self) -> list[Vertex]:
        """This vertex and all its ancestors, each before its parents.

        It is the reverse of a depth-first postorder, computed without recursion, so that the depth is not limited.

        >>> x = Vertex(1.0)
        >>> y = x + 2.0
        >>> [v.value for v in (y * x).topological_order()]
        [3.0, 3.0, 2.0, 1.0]
        """
        postorder: list[Vertex] = []
        seen: set[Vertex] = {self}
        path: list[tuple[Vertex, Iterator[Vertex]]] = [(self, iter(self._parents))]
        while path:
            vertex, parents = path[-1]
            for parent in parents:
                if parent not in seen:
                    seen.add(parent)
                    if parent._parents:
                        path.append((parent, iter(parent._parents)))
                        break
                    postorder.append(parent)
            else:
                postorder.append(vertex)
                path.pop()
        postorder.reverse()
        return postorder

    def backward(self, grad: Value | None = None) -> None:
        """Add the derivatives of this vertex to the `grad` of its leaves.

        The `grad` of vertices in between is overwritten; that of leaves accumulates until `zero_grad`.

        Args:
            grad: a factor of the derivatives, of the value's shape; by default 1.

        Raises:
            GradientError: if grad is missing and the value is a tensor of more than one element.
            ShapeError: if the shapes of grad and the value differ.

        >>> x = Vertex(3.0)
        >>> y = x * x + x
        >>> y.backward()
        >>> y.backward()
        >>> x.grad
        14.0
        """
        cotangents: dict[Vertex, Any] = {self: self._initial_cotangent(grad)}
        leaves: list[Vertex] = []
        for vertex in self.topological_order():
            if vertex not in cotangents:  # no derivative reaches it
                continue
            if vertex._pull_back is None:
                leaves.append(vertex)
                continue
            vertex.grad = cotangents[vertex]
            for parent, contribution in zip(vertex._parents, vertex._pull_back(vertex), strict=True):
                if contribution is not None:
                    cotangents[parent] = (
                        cotangents[parent] + contribution if parent in cotangents else contribution
                    )
        for leaf in leaves:  # last, so that leaves are unchanged if a function fails
            leaf.grad = leaf.grad + cotangents[leaf]

    def _initial_cotangent(self, grad: Value | None) -> Value:
        """The initial cotangent, of the value's shape."""
        value = self.value
        if grad is None:
            if not isinstance(value, Tensor):
                return 1.0
            if value.size == 1:
                return value.ones_like()
            raise GradientError(
                f"backward: the value has shape {value.shape}, need one number; sum it, or call backward(grad) with a "
                f"tensor of that shape"
            )
        cotangent = Vertex(grad).value
        shape, needed = (x.shape if isinstance(x, Tensor) else () for x in (cotangent, value))
        if shape != needed:
            raise ShapeError(f"backward: grad has shape {shape}, need {needed}, the value's")
        return (
            cotangent if isinstance(value, Tensor) or not isinstance(cotangent, Tensor) else float(cotangent)
        )

    def zero_grad(self) -> None:
        """Set the `grad` of this vertex and of all its ancestors to 0.0.

        >>> x = Vertex(3.0)
        >>> y = x * x
        >>> y.backward()
        >>> y.zero_grad()
        >>> x.grad
        0.0
        """
        for vertex in self.topological_order():
            vertex.grad = 0.0

    # ---- operators -------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Vertex:
        return OPERATORS["add"](self, other) if is_operand(other) else NotImplemented

    def __radd__(self, other: Any) -> Vertex:
        return OPERATORS["add"](other, self) if is_operand(other) else NotImplemented

    def __sub__(self, other: Any) -> Vertex:
        return OPERATORS["subtract"](self, other) if is_operand(other) else NotImplemented

    def __rsub__(self, other: Any) -> Vertex:
        return OPERATORS["subtract"](other, self) if is_operand(other) else NotImplemented

    def __mul__(self, other: Any) -> Vertex:
        return OPERATORS["mult"](self, other) if is_operand(other) else NotImplemented

    def __rmul__(self, other: Any) -> Vertex:
        return OPERATORS["mult"](other, self) if is_operand(other) else NotImplemented

    def __truediv__(self, other: Any) -> Vertex:
        return OPERATORS["divide"](self, other) if is_operand(other) else NotImplemented

    def __rtruediv__(self, other: Any) -> Vertex:
        return OPERATORS["divide"](other, self) if is_operand(other) else NotImplemented

    def __mod__(self, other: Any) -> Vertex:
        return OPERATORS["remainder"](self, other) if is_operand(other) else NotImplemented

    def __rmod__(self, other: Any) -> Vertex:
        return OPERATORS["remainder"](other, self) if is_operand(other) else NotImplemented

    def __pow__(self, other: Any) -> Vertex:
        if type(other) is int and other == 2:
            return OPERATORS["square"](self)
        return OPERATORS["pow"](self, other) if is_operand(other) else NotImplemented

    def __rpow__(self, other: Any) -> Vertex:
        return OPERATORS["pow"](other, self) if is_operand(other) else NotImplemented

    def __matmul__(self, other: Any) -> Vertex:
        return OPERATORS["matmul"](self, other) if is_operand(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> Vertex:
        return OPERATORS["matmul"](other, self) if is_operand(other) else NotImplemented

    def __neg__(self) -> Vertex:
        return OPERATORS["negative"](self)

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Vertex:
        return OPERATORS["abs"](self)

    # ---- comparisons of values, without derivatives ----------------------------------------------------------

    def __eq__(self, other: object) -> Any:
        return self.value == _value_of(other) if is_operand(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return self.value != _value_of(other) if is_operand(other) else NotImplemented

    def __lt__(self, other: Any) -> Any:
        return self.value < _value_of(other) if is_operand(other) else NotImplemented

    def __le__(self, other: Any) -> Any:
        return self.value <= _value_of(other) if is_operand(other) else NotImplemented

    def __gt__(self, other: Any) -> Any:
        return self.value > _value_of(other) if is_operand(other) else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return self.value >= _value_of(other) if is_operand(other) else NotImplemented

    def __bool__(self) -> bool:
        return bool(self.value)


class Constant(Vertex):
    """A number in an expression; it is weakly typed, so with tensors it takes their dtype."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Vertex({self.value!r})"


def as_vertex(x: Any) -> Vertex:
    """Convert a number or a tensor to a vertex; a vertex is returned unchanged."""
    if isinstance(x, Vertex):
        return x
    return Vertex(x) if isinstance(x, Tensor) else Constant(x)


def _checked(value: Any) -> Value:
    """Check a value that is not a float; numbers become floats, floating-point tensors are returned unchanged."""
    if isinstance(value, Tensor):
        if value.dtype.kind != "float":
            raise GradientError(f"Vertex: {value.dtype} has no derivatives; cast it first (x.astype)")
        return value
    if type(value) is not bool and isinstance(value, numbers.Real):
        return float(value)
    raise ArgumentError(
        f"Vertex: need a number or a tensor, got {type(value).__name__}; convert an array by tk.tensor"
    )


def is_operand(x: object) -> bool:
    """Whether x can be an operand with a vertex: a vertex, a number or a tensor."""
    return isinstance(x, (float, int, Vertex, Tensor, numbers.Real)) and type(x) is not bool


def _value_of(x: Any) -> Any:
    return x.value if isinstance(x, Vertex) else x
