"""tinygrad on the CPU: clang compiles each kernel, and TinyJit replays the kernels of a function."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from libraries.library import Library

os.environ |= {"DEV": "CPU", "NUM_CPU_THREADS": "1", "TRAINING": "1"}  # read at import

import tinygrad

if shutil.which(os.environ.get("CC", "clang")) is None:
    raise ImportError("needs clang, which is not installed")


def _wait(_: Any, signal: Any, value: int, timeout: int | None = None) -> None:
    """Wait by sleeping; tinygrad's own busy loop delays the work on a single processor."""
    while signal[0] < value:
        time.sleep(1e-5)


type(tinygrad.Device["CPU"])._wait_signal = _wait


class Tinygrad(Library):
    """tinygrad; it has no Jacobians."""

    name = "tinygrad"
    xp = SimpleNamespace(
        **{name: getattr(tinygrad.Tensor, name) for name in ("exp", "relu", "sin", "sqrt", "stack", "tanh")},
        where=lambda condition, x, y: condition.where(x, y),
    )
    log_sigmoid = staticmethod(tinygrad.Tensor.logsigmoid)
    relu = staticmethod(tinygrad.Tensor.relu)
    gelu = staticmethod(tinygrad.Tensor.gelu)
    log_softmax = staticmethod(tinygrad.Tensor.log_softmax)
    cross_entropy = staticmethod(tinygrad.Tensor.sparse_categorical_crossentropy)

    def jit(self, f: Callable[..., Any], donates: Sequence[int] = ()) -> Callable[..., Any]:
        """The first two calls run and are captured; from the third on, kernels are replayed."""
        return f if donates else tinygrad.TinyJit(lambda *arguments: self._realized(f(*arguments)))

    def grad(self, f: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
        both = self.value_and_grad(f, argnums)
        return lambda *arguments: both(*arguments)[1]

    def value_and_grad(self, f: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
        def differentiated(*arguments: Any) -> Any:
            value = f(*arguments)
            chosen = [arguments[i] for i in ((argnums,) if isinstance(argnums, int) else argnums)]
            gradients = value.gradient(*chosen)
            return value, gradients[0] if isinstance(argnums, int) else tuple(gradients)

        return differentiated

    def array(self, tree: Any) -> Any:
        return self.map(lambda x: tinygrad.Tensor(np.asarray(x)).clone().realize(), tree)

    def ready(self, tree: Any) -> None:
        self._realized(tree)
        tinygrad.Device["CPU"].synchronize()

    def numpy(self, x: Any) -> Any:
        return x.numpy()

    def transposed(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.permute(axes)

    def layer_norm(self, x: Any, weight: Any) -> Any:
        return x.layernorm(eps=1e-5) * weight

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        return q.scaled_dot_product_attention(k, v, is_causal=True)

    def convolve(self, x: Any, kernel: Any) -> Any:
        return x.conv2d(kernel)

    def adam(self, loss: Callable[..., Any], rate: float) -> Callable[..., Any]:
        """The optimiser updates the parameters in place."""
        run: Any = None

        def step(parameters: Any, means: Any, squares: Any, count: Any, *data: Any) -> Any:
            nonlocal run
            if run is None:
                optimizer = tinygrad.nn.optim.Adam(list(parameters.values()), lr=rate)

                @tinygrad.TinyJit
                def run(*data: Any) -> Any:
                    optimizer.zero_grad()
                    value = loss(parameters, *data)
                    value.backward()
                    return value.realize(*optimizer.schedule_step())

            return parameters, means, squares, count, run(*data)

        return step

    def _realized(self, tree: Any) -> Any:
        leaves = self.leaves(tree)
        leaves[0].realize(*leaves[1:])
        return tree


adapter = Tinygrad
