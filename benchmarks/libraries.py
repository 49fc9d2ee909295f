"""The libraries that are compared: what of each stands for numpy, derivatives, compilation, and a few functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

LIBRARIES: dict[str, Callable[[], Any]] = {}
"""By name what makes the library's adapter; importing it fails where it is not installed."""


def library(make: Callable[[], Any]) -> Callable[[], Any]:
    """Enter a library into the table."""
    LIBRARIES[make.__name__] = make
    return make


@library
def tensorken() -> Any:
    """Ours, on the backend that the environment chooses."""
    import tensorken as tk

    masks = {}

    def mask(n: int) -> Any:
        if n not in masks:
            masks[n] = tk.tensor(np.tril(np.ones((n, n), bool)))
        return masks[n]

    def convolve(x: Any, kernel: Any) -> Any:
        count, channels, height, width = x.shape
        filters, _, rows, columns = kernel.shape
        h, w = height - rows + 1, width - columns + 1
        patches = tk.stack([x[:, :, i : i + h, j : j + w] for i in range(rows) for j in range(columns)], 2)
        flat = patches.reshape((count, channels * rows * columns, h * w))
        return (kernel.reshape((filters, channels * rows * columns)) @ flat).reshape((count, filters, h, w))

    return SimpleNamespace(
        xp=tk,
        jit=lambda f, donates=(): tk.jit(f, donate_argnums=donates),
        grad=tk.grad,
        value_and_grad=tk.value_and_grad,
        jacfwd=tk.jacfwd,
        jacrev=tk.jacrev,
        hessian=tk.hessian,
        map=tk.tree.map,
        array=lambda tree: tk.tree.map(tk.tensor, tree),
        ready=lambda tree: [x.realize() for x in tk.tree.leaves(tree)],
        numbers=lambda tree: [
            np.asarray(x.numpy() if hasattr(x, "numpy") else x) for x in tk.tree.leaves(tree)
        ],
        log_sigmoid=lambda x: -tk.softplus(-x),
        log_softmax=lambda x: tk.log_softmax(x, -1),
        softmax=lambda x: tk.softmax(x, -1),
        relu=tk.relu,
        gelu=lambda x: 0.5 * x * (1.0 + tk.tanh(0.7978845608 * (x + 0.044715 * x * x * x))),
        picked=lambda x, labels: tk.take_along_axis(x, labels.reshape((-1, 1)), 1),
        mask=mask,
        convolve=convolve,
    )


@library
def jax() -> Any:
    """JAX, jitted."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def grad(f: Any, argnums: Any = 0) -> Any:
        return jax.grad(f, argnums)

    def convolve(x: Any, kernel: Any) -> Any:
        return lax.conv_general_dilated(x, kernel, (1, 1), "VALID")

    return SimpleNamespace(
        xp=jnp,
        jit=lambda f, donates=(): jax.jit(f, donate_argnums=donates),
        grad=grad,
        value_and_grad=jax.value_and_grad,
        jacfwd=jax.jacfwd,
        jacrev=jax.jacrev,
        hessian=jax.hessian,
        map=jax.tree_util.tree_map,
        array=lambda tree: jax.tree_util.tree_map(jnp.asarray, tree),
        ready=jax.block_until_ready,
        numbers=lambda tree: [np.asarray(x) for x in jax.tree_util.tree_leaves(tree)],
        log_sigmoid=jax.nn.log_sigmoid,
        log_softmax=lambda x: jax.nn.log_softmax(x, -1),
        softmax=lambda x: jax.nn.softmax(x, -1),
        relu=jax.nn.relu,
        gelu=jax.nn.gelu,
        picked=lambda x, labels: jnp.take_along_axis(x, labels.reshape((-1, 1)), 1),
        mask=lambda n: jnp.tril(jnp.ones((n, n), bool)),
        convolve=convolve,
    )


@library
def autograd() -> Any:
    """HIPS autograd, which has no compilation."""
    import autograd
    import autograd.numpy as anp

    def tree_map(f: Any, tree: Any, *rest: Any) -> Any:
        if isinstance(tree, dict):
            return {key: tree_map(f, tree[key], *[other[key] for other in rest]) for key in tree}
        return f(tree, *rest)

    def leaves(tree: Any) -> list[Any]:
        if isinstance(tree, dict):
            return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
        return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, Sequence) else [tree]

    def log_softmax(x: Any) -> Any:
        x = x - anp.max(x, axis=-1, keepdims=True)
        return x - anp.log(anp.sum(anp.exp(x), axis=-1, keepdims=True))

    def of_several(differentiate: Any) -> Any:
        def differentiated(f: Any, argnums: Any = 0) -> Any:
            return differentiate(f, argnums)

        return differentiated

    return SimpleNamespace(
        xp=anp,
        jit=lambda f, donates=(): f,
        grad=of_several(autograd.grad),
        value_and_grad=of_several(autograd.value_and_grad),
        jacfwd=autograd.jacobian,
        jacrev=autograd.jacobian,
        hessian=autograd.hessian,
        map=tree_map,
        array=lambda tree: tree,
        ready=lambda tree: tree,
        numbers=lambda tree: [np.asarray(x) for x in leaves(tree)],
        log_sigmoid=lambda x: -anp.logaddexp(0.0, -x),
        log_softmax=log_softmax,
        softmax=lambda x: anp.exp(log_softmax(x)),
        relu=lambda x: anp.maximum(x, 0.0),
        gelu=lambda x: 0.5 * x * (1.0 + anp.tanh(0.7978845608 * (x + 0.044715 * x * x * x))),
        picked=lambda x, labels: x[anp.arange(len(labels)), labels],
        mask=lambda n: np.tril(np.ones((n, n), bool)),
        convolve=None,
    )
