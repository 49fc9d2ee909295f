"""What a task may ask of a library, said once in the names of numpy; an adapter says what its library says better."""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class NotOffered(Exception):
    """The library has nothing for what a task needs."""


class Library:
    """A library of numpy's names; `xp` is the module that has them."""

    name: str
    xp: Any

    @property
    def version(self) -> str:
        """The version that is installed."""
        return importlib.metadata.version(self.name)

    # ---- transformations -----------------------------------------------------------------------------------

    def jit(self, f: Callable[..., Any], donates: Sequence[int] = ()) -> Callable[..., Any]:
        """The function compiled; a library without a compiler leaves it as it is."""
        return f

    def grad(self, f: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
        """The gradient by these arguments."""
        raise NotOffered("grad")

    def value_and_grad(self, f: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
        """The value and the gradient."""
        raise NotOffered("value_and_grad")

    def jacfwd(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The Jacobian, by forward mode where the library has one."""
        raise NotOffered("jacfwd")

    def jacrev(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The Jacobian, by reverse mode."""
        raise NotOffered("jacrev")

    def hessian(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The matrix of second derivatives."""
        raise NotOffered("hessian")

    # ---- values --------------------------------------------------------------------------------------------

    def array(self, tree: Any) -> Any:
        """The numpy arrays of a tree as the library's own."""
        return self.map(np.asarray, tree)

    def ready(self, tree: Any) -> None:
        """Return when everything in the tree has been computed."""

    def numpy(self, x: Any) -> Any:
        """An array of the library's as one of numpy's."""
        return np.asarray(x)

    def map(self, f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
        """The tree with a function applied to its leaves and those of others of its form."""
        if isinstance(tree, dict):
            return {key: self.map(f, tree[key], *[other[key] for other in rest]) for key in tree}
        if isinstance(tree, (tuple, list)):
            return type(tree)(self.map(f, *parts) for parts in zip(tree, *rest, strict=True))
        return f(tree, *rest)

    def leaves(self, tree: Any) -> list[Any]:
        """The arrays of a tree; a dictionary's in the order of its names."""
        if isinstance(tree, dict):
            return [leaf for key in sorted(tree) for leaf in self.leaves(tree[key])]
        return (
            [leaf for part in tree for leaf in self.leaves(part)]
            if isinstance(tree, (tuple, list))
            else [tree]
        )

    # ---- functions -----------------------------------------------------------------------------------------

    def transposed(self, x: Any, axes: tuple[int, ...]) -> Any:
        """The axes in another order."""
        return x.transpose(axes)

    def log_sigmoid(self, x: Any) -> Any:
        """The logarithm of the logistic function."""
        return -self.xp.logaddexp(0.0, -x)

    def relu(self, x: Any) -> Any:
        """What is above zero."""
        return self.xp.maximum(x, 0.0)

    def gelu(self, x: Any) -> Any:
        """The approximation by tanh (Hendrycks and Gimpel, 2016)."""
        return 0.5 * x * (1.0 + self.xp.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    def log_softmax(self, x: Any) -> Any:
        """By the last axis."""
        x = x - self.xp.max(x, axis=-1, keepdims=True)
        return x - self.xp.log(self.xp.sum(self.xp.exp(x), axis=-1, keepdims=True))

    def softmax(self, x: Any) -> Any:
        """By the last axis."""
        return self.xp.exp(self.log_softmax(x))

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        """The mean over rows of the cross-entropy with one label a row."""
        picked = self.xp.take_along_axis(self.log_softmax(logits), labels.reshape((-1, 1)), 1)
        return -picked.mean()

    def layer_norm(self, x: Any, weight: Any) -> Any:
        """Without a bias, by the last axis."""
        x = x - x.mean(-1, keepdims=True)
        return x / self.xp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight

    def mask(self, n: int) -> Any:
        """True where a place may see another: itself and those before it."""
        return np.tril(np.ones((n, n), bool))

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        """Causal attention; (batch, heads, places, width) each."""
        scores = (q @ self.transposed(k, (0, 1, 3, 2))) * (1.0 / math.sqrt(q.shape[-1]))
        return self.softmax(self.xp.where(self.mask(q.shape[2]), scores, -1e9)) @ v

    def convolve(self, x: Any, kernel: Any) -> Any:
        """A convolution without padding, as one product with the patches; (count, channels, height, width)."""
        count, channels, height, width = x.shape
        filters, _, rows, columns = kernel.shape
        h, w = height - rows + 1, width - columns + 1
        patches = [x[:, :, i : i + h, j : j + w] for i in range(rows) for j in range(columns)]
        flat = self.xp.stack(patches, 2).reshape((count, channels * rows * columns, h * w))
        kernel = kernel.reshape((filters, channels * rows * columns))
        return (kernel @ flat).reshape((count, filters, h, w))

    # ---- training ------------------------------------------------------------------------------------------

    def adam(self, loss: Callable[..., Any], rate: float) -> Callable[..., Any]:
        """A step of Adam (Kingma and Ba, 2015): (parameters, means, squares, count, *data) to the same and the loss."""
        differentiated = self.value_and_grad(loss)

        def step(parameters: Any, means: Any, squares: Any, count: Any, *data: Any) -> Any:
            value, gradients = differentiated(parameters, *data)
            count = count + 1.0
            means = self.map(lambda m, g: 0.9 * m + 0.1 * g, means, gradients)
            squares = self.map(lambda s, g: 0.999 * s + 0.001 * (g * g), squares, gradients)
            first, second = 1.0 - 0.9**count, 1.0 - 0.999**count
            parameters = self.map(
                lambda p, m, s: p - rate * (m / first) / (self.xp.sqrt(s / second) + 1e-8),
                parameters,
                means,
                squares,
            )
            return parameters, means, squares, count, value

        return step
