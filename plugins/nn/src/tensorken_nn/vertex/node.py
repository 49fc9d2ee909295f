"""Vertex: a value, where it came from, and the derivative of a result by it."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self, TypeAlias

from tensorken import Tensor
from tensorken_core.errors import ArgumentError, GradientError, ShapeError

Value: TypeAlias = float | Tensor
"""What a vertex holds; a tensor is floating-point."""

PullBack: TypeAlias = Callable[["Vertex"], Iterable[Value | None]]
"""From a vertex whose `grad` is complete to what it adds to that of each parent, None for nothing."""


class Vertex:
    """A number, or a tensor, in a graph of computations.

    Operators and functions make new vertices, which know their parents; nothing has to be switched on for that.
    Comparisons and `bool` look at the value, as those of numbers do; sets and dicts tell vertices apart by identity.

    Args:
        value: a number, which becomes a float, or a floating-point tensor.
        parents: what it was computed from; functions give them, and a leaf has none.
        pull_back: from this vertex, once its `grad` is complete, to what that adds to the gradient of each parent.

    Attributes:
        value: a float or a tensor; optimisers change it.
        grad: the derivative of what `backward` was called on by this vertex; 0.0 until then.

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
    __array_ufunc__ = None  # numpy's numbers leave mixed operators to us
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
        """What the vertex was computed from, in the order of the function's arguments; () for a leaf.

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
        """The vertices that this one was computed from, and itself first: each before its parents.

        The reverse of a depth-first postorder, without recursion, so that a graph may be of any depth.

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
        """Add the derivatives of this vertex to `grad` of the leaves it was computed from.

        Vertices in between have their own `grad` made anew each time; leaves keep what they have until `zero_grad`.

        Args:
            grad: what the derivatives are multiplied by, of the value's shape; 1 if it is left out.

        Raises:
            GradientError: if grad is left out and the value is a tensor of more than one element.
            ShapeError: if grad has another shape than the value.

        >>> x = Vertex(3.0)
        >>> y = x * x + x
        >>> y.backward()
        >>> y.backward()
        >>> x.grad
        14.0
        """
        found: dict[Vertex, Any] = {self: self._start(grad)}
        leaves: list[Vertex] = []
        for vertex in self.topological_order():
            if vertex not in found:  # no derivative leads to it
                continue
            if vertex._pull_back is None:
                leaves.append(vertex)
                continue
            vertex.grad = found[vertex]
            for parent, share in zip(vertex._parents, vertex._pull_back(vertex), strict=True):
                if share is not None:
                    found[parent] = found[parent] + share if parent in found else share
        for leaf in leaves:  # last, so that nothing is added if a function fails
            leaf.grad = leaf.grad + found[leaf]

    def _start(self, grad: Value | None) -> Value:
        """The derivative that this vertex begins with, of the value's shape."""
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
        given = Vertex(grad).value
        shape, needed = (x.shape if isinstance(x, Tensor) else () for x in (given, value))
        if shape != needed:
            raise ShapeError(f"backward: grad has shape {shape}, need {needed}, the value's")
        return given if isinstance(value, Tensor) or not isinstance(given, Tensor) else float(given)

    def zero_grad(self) -> None:
        """Set `grad` of this vertex, and of all that it was computed from, to 0.0.

        >>> x = Vertex(3.0)
        >>> y = x * x
        >>> y.backward()
        >>> y.zero_grad()
        >>> x.grad
        0.0
        """
        for vertex in self.topological_order():
            vertex.grad = 0.0

    # ---- operators: each is a function, whose derivative is said where the function is ---------------------------

    def __add__(self, other: Any) -> Vertex:
        return functions.add(self, other) if is_operand(other) else NotImplemented

    def __radd__(self, other: Any) -> Vertex:
        return functions.add(other, self) if is_operand(other) else NotImplemented

    def __sub__(self, other: Any) -> Vertex:
        return functions.subtract(self, other) if is_operand(other) else NotImplemented

    def __rsub__(self, other: Any) -> Vertex:
        return functions.subtract(other, self) if is_operand(other) else NotImplemented

    def __mul__(self, other: Any) -> Vertex:
        return functions.mult(self, other) if is_operand(other) else NotImplemented

    def __rmul__(self, other: Any) -> Vertex:
        return functions.mult(other, self) if is_operand(other) else NotImplemented

    def __truediv__(self, other: Any) -> Vertex:
        return functions.divide(self, other) if is_operand(other) else NotImplemented

    def __rtruediv__(self, other: Any) -> Vertex:
        return functions.divide(other, self) if is_operand(other) else NotImplemented

    def __mod__(self, other: Any) -> Vertex:
        return functions.remainder(self, other) if is_operand(other) else NotImplemented

    def __rmod__(self, other: Any) -> Vertex:
        return functions.remainder(other, self) if is_operand(other) else NotImplemented

    def __pow__(self, other: Any) -> Vertex:
        if type(other) is int and other == 2:
            return functions.square(self)
        return functions.pow(self, other) if is_operand(other) else NotImplemented

    def __rpow__(self, other: Any) -> Vertex:
        return functions.pow(other, self) if is_operand(other) else NotImplemented

    def __matmul__(self, other: Any) -> Vertex:
        return functions.matmul(self, other) if is_operand(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> Vertex:
        return functions.matmul(other, self) if is_operand(other) else NotImplemented

    def __neg__(self) -> Vertex:
        return functions.negative(self)

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Vertex:
        return functions.abs(self)

    # ---- comparisons: of values, with no derivative ----------------------------------------------------------

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
    """A number that was written into an expression: beside tensors it takes their dtype, as a number does."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Vertex({self.value!r})"


def as_vertex(x: Any) -> Vertex:
    """A vertex as it is; a number or a tensor in a new one."""
    if isinstance(x, Vertex):
        return x
    return Vertex(x) if isinstance(x, Tensor) else Constant(x)


def _checked(value: Any) -> Value:
    """A value that is not a float: an int as one, a floating-point tensor as it is."""
    if isinstance(value, Tensor):
        if value.dtype.kind != "float":
            raise GradientError(f"Vertex: {value.dtype} has no derivatives; cast it first (x.astype)")
        return value
    if type(value) is not bool and isinstance(value, numbers.Real):
        return float(value)
    raise ArgumentError(
        f"Vertex: need a number or a tensor, got {type(value).__name__}; an array becomes one by tk.tensor"
    )


def is_operand(x: object) -> bool:
    """Whether it can stand beside a vertex: a vertex, a number, a tensor."""
    return isinstance(x, (float, int, Vertex, Tensor, numbers.Real)) and type(x) is not bool


def _value_of(x: Any) -> Any:
    return x.value if isinstance(x, Vertex) else x


from tensorken_nn.vertex import functions  # noqa: E402 - operators are functions, and functions make vertices
