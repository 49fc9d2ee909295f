"""Eager PyTorch on the CPU: torch.func for derivatives, its own functions and fused Adam for networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from libraries.library import Library

torch.set_num_threads(1)


class Torch(Library):
    """PyTorch, with its fastest functions."""

    name = "torch"
    xp = torch
    grad = staticmethod(torch.func.grad)
    jacfwd = staticmethod(torch.func.jacfwd)
    jacrev = staticmethod(torch.func.jacrev)
    hessian = staticmethod(torch.func.hessian)
    log_sigmoid = staticmethod(functional.logsigmoid)
    sigmoid = staticmethod(torch.sigmoid)
    relu = staticmethod(functional.relu)
    cross_entropy = staticmethod(functional.cross_entropy)

    def value_and_grad(self, f: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
        both = torch.func.grad_and_value(f, argnums)

        def value_first(*arguments: Any) -> Any:
            gradient, value = both(*arguments)
            return value, gradient

        return value_first

    def array(self, tree: Any) -> Any:
        def own(x: Any) -> Any:
            x = torch.tensor(x)  # a copy, as in the other libraries
            return x if x.is_floating_point() else x.long()  # its losses require int64

        return self.map(own, tree)

    def numpy(self, x: Any) -> Any:
        return np.asarray(x.detach())

    def transposed(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.permute(axes)

    def gelu(self, x: Any) -> Any:
        return functional.gelu(x, approximate="tanh")

    def log_softmax(self, x: Any) -> Any:
        return functional.log_softmax(x, -1)

    def layer_norm(self, x: Any, weight: Any) -> Any:
        return functional.layer_norm(x, weight.shape, weight, None, 1e-5)

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    def convolve(self, x: Any, kernel: Any) -> Any:
        return functional.conv2d(x, kernel)

    def lstm(self, inputs: Any, recurrent: Any, bias: Any, x: Any) -> Any:
        """PyTorch's fused LSTM, with a second bias of zeros."""
        zeros = x.new_zeros(1, x.shape[1], recurrent.shape[1])
        weights = [inputs, recurrent, bias, torch.zeros_like(bias)]
        return torch.lstm(x, (zeros, zeros), weights, True, 1, 0.0, False, False, False)[0]

    def adam(self, loss: Callable[..., Any], rate: float) -> Callable[..., Any]:
        """The optimiser updates the parameters in place."""
        optimizer: Any = None

        def step(parameters: Any, means: Any, squares: Any, count: Any, *data: Any) -> Any:
            nonlocal optimizer
            if optimizer is None:
                weights = [x.requires_grad_() for x in parameters.values()]
                optimizer = torch.optim.Adam(weights, lr=rate, fused=True)
            optimizer.zero_grad()
            value = loss(parameters, *data)
            value.backward()
            optimizer.step()
            return parameters, means, squares, count, value.detach()

        return step


adapter = Torch
