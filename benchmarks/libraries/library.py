"""The functions that tasks use, defined with numpy's names; adapters override those that their library does better."""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class NotSupported(Exception):
    """The library does not support a function of a task."""


class Library:
    """A library with numpy's names, which are in the module `xp`."""

    name: str
    xp: Any

    @property
    def version(self) -> str:
        """The installed version."""
        return importlib.metadata.version(self.name)

    # ---- transformations -----------------------------------------------------------------------------------

    def jit(self, f: Callable[..., Any], donates: Sequence[int] = ()) -> Callable[..., Any]:
        """The compiled function; without a compiler, the function itself."""
        return f

    def grad(self, f: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
        """The gradient with respect to these arguments."""
        raise NotSupported("grad")

    def value_and_grad(self, f: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
        """The value and the gradient."""
        raise NotSupported("value_and_grad")

    def jacfwd(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The Jacobian, by forward mode if the library has it."""
        raise NotSupported("jacfwd")

    def jacrev(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The Jacobian, by reverse mode."""
        raise NotSupported("jacrev")

    def hessian(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The matrix of second derivatives."""
        raise NotSupported("hessian")

    # ---- values --------------------------------------------------------------------------------------------

    def array(self, tree: Any) -> Any:
        """Convert the numpy arrays of a tree to arrays of the library."""
        return self.map(np.asarray, tree)

    def ready(self, tree: Any) -> None:
        """Wait until everything in the tree is computed."""

    def numpy(self, x: Any) -> Any:
        """Convert an array of the library to numpy."""
        return np.asarray(x)

    def map(self, f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
        """Map a function over the leaves of trees of the same structure."""
        if isinstance(tree, dict):
            return {key: self.map(f, tree[key], *[other[key] for other in rest]) for key in tree}
        if isinstance(tree, (tuple, list)):
            return type(tree)(self.map(f, *parts) for parts in zip(tree, *rest, strict=True))
        return f(tree, *rest)

    def leaves(self, tree: Any) -> list[Any]:
        """The arrays of a tree; those of a dict in the order of its keys."""
        if isinstance(tree, dict):
            return [leaf for key in sorted(tree) for leaf in self.leaves(tree[key])]
        return (
            [leaf for part in tree for leaf in self.leaves(part)]
            if isinstance(tree, (tuple, list))
            else [tree]
        )

    # ---- functions -----------------------------------------------------------------------------------------

    def transposed(self, x: Any, axes: tuple[int, ...]) -> Any:
        """Permute the axes."""
        return x.transpose(axes)

    def log_sigmoid(self, x: Any) -> Any:
        """The logarithm of the logistic function."""
        return -self.xp.logaddexp(0.0, -x)

    def sigmoid(self, x: Any) -> Any:
        """The logistic function."""
        return 0.5 * self.xp.tanh(0.5 * x) + 0.5

    def relu(self, x: Any) -> Any:
        """max(x, 0)."""
        return self.xp.maximum(x, 0.0)

    def gelu(self, x: Any) -> Any:
        """The approximation by tanh (Hendrycks and Gimpel, 2016)."""
        return 0.5 * x * (1.0 + self.xp.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    def log_softmax(self, x: Any) -> Any:
        """Along the last axis."""
        x = x - self.xp.max(x, axis=-1, keepdims=True)
        return x - self.xp.log(self.xp.sum(self.xp.exp(x), axis=-1, keepdims=True))

    def softmax(self, x: Any) -> Any:
        """Along the last axis."""
        return self.xp.exp(self.log_softmax(x))

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        """The mean cross-entropy over rows, with one label for each."""
        picked = self.xp.take_along_axis(self.log_softmax(logits), labels.reshape((-1, 1)), 1)
        return -picked.mean()

    def layer_norm(self, x: Any, weight: Any) -> Any:
        """Layer normalisation along the last axis, without a bias."""
        x = x - x.mean(-1, keepdims=True)
        return x / self.xp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight

    def mask(self, n: int) -> Any:
        """The causal mask: True where a position may attend to another."""
        return np.tril(np.ones((n, n), bool))

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        """Causal attention; all operands have shape (batch, heads, positions, width)."""
        scores = (q @ self.transposed(k, (0, 1, 3, 2))) * (1.0 / math.sqrt(q.shape[-1]))
        return self.softmax(self.xp.where(self.mask(q.shape[2]), scores, -1e9)) @ v

    def convolve(self, x: Any, kernel: Any) -> Any:
        """A convolution without padding, as one product with the patches; x has shape (count, channels, height,
        width).
        """
        count, channels, height, width = x.shape
        filters, _, rows, columns = kernel.shape
        h, w = height - rows + 1, width - columns + 1
        patches = [x[:, :, i : i + h, j : j + w] for i in range(rows) for j in range(columns)]
        flat = self.xp.stack(patches, 2).reshape((count, channels * rows * columns, h * w))
        kernel = kernel.reshape((filters, channels * rows * columns))
        return (kernel @ flat).reshape((count, filters, h, w))

    # ---- loops ---------------------------------------------------------------------------------------------

    def scan(self, f: Callable[..., Any], init: Any, xs: Any, length: int) -> Any:
        """The last carry and the stacked results of f(carry, x) -> (carry, y), where x is None if xs is."""
        carry, ys = init, []
        for i in range(length):
            carry, y = f(carry, None if xs is None else self.map(lambda x, i=i: x[i], xs))
            ys.append(y)
        return carry, None if ys[0] is None else self.xp.stack(ys)

    def lstm(self, inputs: Any, recurrent: Any, bias: Any, x: Any) -> Any:
        """The hidden states of an LSTM; x has shape (steps, batch, features).

        The products with x do not depend on the steps before.
        """
        xp, (steps, batch, _), width = self.xp, x.shape, recurrent.shape[1]

        def step(carry: Any, projected: Any) -> Any:
            hidden, cell = carry
            gates = projected + hidden @ recurrent.T
            i, f, g, o = (gates[:, k * width : (k + 1) * width] for k in range(4))
            cell = self.sigmoid(f) * cell + self.sigmoid(i) * xp.tanh(g)
            hidden = self.sigmoid(o) * xp.tanh(cell)
            return (hidden, cell), hidden

        zeros = xp.zeros((batch, width), dtype=x.dtype)
        return self.scan(step, (zeros, zeros), x @ inputs.T + bias, steps)[1]

    # ---- training ------------------------------------------------------------------------------------------

    def adam(self, loss: Callable[..., Any], rate: float) -> Callable[..., Any]:
        """A step of Adam (Kingma and Ba, 2015), from (parameters, means, squares, count, *data) to the new ones
        and the loss.
        """
        value_and_grad = self.value_and_grad(loss)

        def step(parameters: Any, means: Any, squares: Any, count: Any, *data: Any) -> Any:
            value, gradients = value_and_grad(parameters, *data)
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
