"""Functions of vertices with a hand-written derivative."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.vertex.node import Constant, Value, Vertex, as_vertex


class Function(ABC):
    """A function of vertices, with its derivative with respect to each argument.

    A subclass defines `forward` and `backward` as static methods; instances are callable. For tensors, both are
    elementwise, and shapes broadcast.

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
        """Apply the function to vertices, numbers or tensors; they become the parents of the result.

        Raises:
            ArgumentError: if there are no arguments, or `forward` does not return a vertex.
        """
        if not args:
            raise ArgumentError(f"{type(self).__name__}: need at least one argument, got none")
        parents = tuple([x if isinstance(x, Vertex) else as_vertex(x) for x in args])
        z = self.forward(*parents)
        if not isinstance(z, Vertex):
            raise ArgumentError(
                f"{type(self).__name__}.forward: need a Vertex, got {type(z).__name__}; return Vertex(value)"
            )
        # A new vertex, as z may be an argument or be used elsewhere.
        return Vertex(z.value, parents, self.pull_back)

    @staticmethod
    @abstractmethod
    def forward(*args: Any) -> Vertex:
        """Compute the result from the arguments, which are vertices."""

    @staticmethod
    @abstractmethod
    def backward(*args: Any) -> tuple[Value, ...]:
        """Compute the derivative with respect to each argument, from the arguments, which are vertices."""

    def pull_back(self, z: Vertex) -> Iterable[Value | None]:
        """The contributions of a result to the gradients of its parents, by the chain rule.

        Raises:
            ArgumentError: if `backward` does not return one derivative for each argument.
        """
        parents = z.parents
        slopes: Any = self.backward(*parents)
        if not isinstance(slopes, tuple) or len(slopes) != len(parents):
            got = len(slopes) if isinstance(slopes, tuple) else type(slopes).__name__
            raise ArgumentError(
                f"{type(self).__name__}.backward: need a tuple of {len(parents)} derivatives, one for each argument, "
                f"got {got}"
            )
        return [_unbroadcast(z.grad * slope, v) for slope, v in zip(slopes, parents, strict=True)]


def _unbroadcast(contribution: Any, vertex: Vertex) -> Value | None:
    """Sum and cast a contribution to the type, shape and dtype of the vertex's value, which was broadcast."""
    value = vertex.value
    if type(contribution) is type(value) is float:
        return contribution
    if not isinstance(value, Tensor):
        if not isinstance(contribution, Tensor):
            return float(contribution)
        return None if isinstance(vertex, Constant) else float(contribution.sum())
    if not isinstance(contribution, Tensor):
        full: Tensor = value.zeros_like() + contribution
        return full
    if contribution.shape == value.shape and contribution.dtype is value.dtype:
        return contribution
    _, pull_back = tk.vjp(lambda x: tk.broadcast_to(x.astype(contribution.dtype), contribution.shape), value)
    (reduced,) = pull_back(contribution)
    result: Tensor = reduced
    return result
