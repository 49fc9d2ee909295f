"""Function: a computation with a derivative, both written by hand, as something that makes vertices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.vertex.node import Constant, Value, Vertex, as_vertex


class Function(ABC):
    """A function of vertices: what it computes, and its derivatives by each argument.

    A subclass has both as static methods; an instance is called.  If values are tensors, both work element by element,
    and shapes broadcast.

    >>> class Cube(Function):
    ...     @staticmethod
    ...     def forward(x):
    ...         return Vertex(x.value**3)
    ...
    ...     @staticmethod
    ...     def backward(x):
    ...         return (3.0 * x.value**2,)
    >>> cube, x = Cube(), Vertex(2.0)
    >>> y = cube(x)
    >>> y.backward()
    >>> y, x.grad
    (Vertex(8.0), 12.0)
    """

    def __call__(self, *args: Any) -> Vertex:
        """The result for vertices, or numbers and tensors, as a vertex with these as its parents.

        Raises:
            ArgumentError: if there are no arguments, or `forward` returns something else than a vertex.
        """
        if not args:
            raise ArgumentError(f"{type(self).__name__}: need at least one argument, got none")
        parents = tuple([x if isinstance(x, Vertex) else as_vertex(x) for x in args])
        z = self.forward(*parents)
        if not isinstance(z, Vertex):
            raise ArgumentError(
                f"{type(self).__name__}.forward: need a Vertex, got {type(z).__name__}; return Vertex(value)"
            )
        # A new one, since z may be an argument, or be used elsewhere.
        return Vertex(z.value, parents, self.pull_back)

    @staticmethod
    @abstractmethod
    def forward(*args: Any) -> Vertex:
        """The result, from the arguments as vertices."""

    @staticmethod
    @abstractmethod
    def backward(*args: Any) -> tuple[Value, ...]:
        """The derivative of the result by each argument, from the arguments as vertices."""

    def pull_back(self, z: Vertex) -> Iterable[Value | None]:
        """What a result adds to the derivatives of its parents: the chain rule.

        Raises:
            ArgumentError: if `backward` does not give one derivative for each argument.
        """
        parents = z.parents
        slopes: Any = self.backward(*parents)
        if not isinstance(slopes, tuple) or len(slopes) != len(parents):
            got = len(slopes) if isinstance(slopes, tuple) else type(slopes).__name__
            raise ArgumentError(
                f"{type(self).__name__}.backward: need a tuple of {len(parents)} derivatives, one for each argument, "
                f"got {got}"
            )
        return [_fitted(z.grad * slope, v) for slope, v in zip(slopes, parents, strict=True)]


def _fitted(share: Any, vertex: Vertex) -> Value | None:
    """A contribution in the kind, shape and dtype of the value that was broadcast to its shape."""
    value = vertex.value
    if type(share) is type(value) is float:
        return share
    if not isinstance(value, Tensor):
        if not isinstance(share, Tensor):
            return float(share)
        return None if isinstance(vertex, Constant) else float(share.sum())
    if not isinstance(share, Tensor):
        full: Tensor = value.zeros_like() + share
        return full
    if share.shape == value.shape and share.dtype is value.dtype:
        return share
    _, pull_back = tk.vjp(lambda x: tk.broadcast_to(x.astype(share.dtype), share.shape), value)
    (fitted,) = pull_back(share)
    result: Tensor = fitted
    return result
