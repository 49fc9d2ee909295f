"""What matrices of derivatives cost against autograd, which pulls back one row at a time: one batched pass of ours."""

from __future__ import annotations

from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np
from harness import Workload

import tensorken as tk


def workloads() -> list[Workload]:
    """All workloads of this file."""
    return [jacobian_of_net("jacrev"), jacobian_of_net("jacfwd"), hessian_of_100()]


def jacobian_of_net(name: str) -> Workload:
    """The Jacobian of a two-layer network from 64 inputs to 64 outputs, at one input; autograd has one way."""
    rng = np.random.default_rng(0)
    first, second = (rng.normal(size=(64, 64)).astype(np.float32) * 0.1 for _ in range(2))
    x = rng.normal(size=64).astype(np.float32)

    def their_net(x: Any) -> Any:
        return anp.tanh(anp.dot(anp.tanh(anp.dot(x, first)), second))

    own_first, own_second, own_x = tk.tensor(first), tk.tensor(second), tk.tensor(x)
    ours = getattr(tk, name)(lambda x: tk.tanh(tk.tanh(x @ own_first) @ own_second))
    theirs = autograd.jacobian(their_net)
    return Workload(f"{name}_64_64", "autograd", lambda: ours(own_x).realize(), lambda: theirs(x), _numbers)


def hessian_of_100() -> Workload:
    """The Hessian of a function of 100 inputs: the sum of a hidden layer's squares, and a coupling of neighbours."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(100, 100)).astype(np.float32) * 0.1
    x = rng.normal(size=100).astype(np.float32)

    def their_function(x: Any) -> Any:
        return anp.sum(anp.tanh(anp.dot(x, weights)) ** 2) + anp.sum(anp.sin(x[1:]) * x[:-1])

    own_weights, own_x = tk.tensor(weights), tk.tensor(x)
    ours = tk.hessian(lambda x: (tk.tanh(x @ own_weights) ** 2).sum() + (tk.sin(x[1:]) * x[:-1]).sum())
    theirs = autograd.hessian(their_function)
    return Workload(
        "hessian_of_100", "autograd", lambda: ours(own_x).realize(), lambda: theirs(x), _numbers, 1e-3
    )


def _numbers(result: Any) -> list[float]:
    return [float(v) for v in np.asarray(result).ravel()]
