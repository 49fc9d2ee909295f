"""Tensorken, on the backend chosen by the environment."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorken as tk
from libraries.library import Library


class Tensorken(Library):
    """Tensorken's functions."""

    name = "tensorken-core"
    xp = tk
    grad = staticmethod(tk.grad)
    value_and_grad = staticmethod(tk.value_and_grad)
    jacfwd = staticmethod(tk.jacfwd)
    jacrev = staticmethod(tk.jacrev)
    hessian = staticmethod(tk.hessian)
    map = staticmethod(tk.tree.map)
    sigmoid = staticmethod(tk.sigmoid)
    scan = staticmethod(tk.scan)
    relu = staticmethod(tk.relu)
    log_softmax = staticmethod(tk.log_softmax)
    softmax = staticmethod(tk.softmax)

    def jit(self, f: Callable[..., Any], donates: Sequence[int] = ()) -> Callable[..., Any]:
        return tk.jit(f, donate_argnums=tuple(donates))

    def array(self, tree: Any) -> Any:
        return tk.tree.map(tk.tensor, tree)

    def ready(self, tree: Any) -> None:
        if isinstance(tree, tk.Tensor):
            tree.realize()
        else:
            for x in tree.values() if isinstance(tree, dict) else tree:
                self.ready(x)

    def convolve(self, x: Any, kernel: Any) -> Any:
        return tk.convolution(x, kernel)

    def log_sigmoid(self, x: Any) -> Any:
        return -tk.softplus(-x)

    @functools.cache  # noqa: B019, the adapter is never freed
    def mask(self, n: int) -> Any:
        return tk.tensor(super().mask(n))


adapter = Tensorken
