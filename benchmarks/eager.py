"""What one eager call costs, against autograd and numpy: small gradients, where the library itself dominates."""

from __future__ import annotations

import itertools
from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np
from harness import Workload

import tensorken as tk


def workloads() -> list[Workload]:
    """All workloads of this file."""
    return [gradient_of_three(), logistic_regression(), three_layer_mlp(), matmul_256()]


def gradient_of_three() -> Workload:
    """The gradient of sum(sin(x) * x) on three elements."""
    x = np.array([0.1, 0.2, 0.3], np.float32)
    ours = tk.grad(lambda x: (tk.sin(x) * x).sum())
    theirs = autograd.grad(lambda x: anp.sum(anp.sin(x) * x))
    own = tk.tensor(x)
    return Workload("gradient_of_three", "autograd", lambda: ours(own).realize(), lambda: theirs(x), _numbers)


def logistic_regression() -> Workload:
    """Loss gradients of a logistic regression of four examples with three features."""
    inputs = np.array(
        [[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.3], [0.74, -2.49, 1.39]], np.float32
    )
    targets = np.array([1.0, 1.0, 0.0, 1.0], np.float32)
    weights, bias = np.array([0.712813, 0.85833144, -2.4362438], np.float32), np.float32(0.16334426)

    def their_loss(weights: Any, bias: Any) -> Any:
        prediction = 0.5 * (anp.tanh((anp.dot(inputs, weights) + bias) / 2.0) + 1.0)
        return -anp.sum(anp.log(prediction * targets + (1.0 - prediction) * (1.0 - targets)))

    own_inputs, own_targets = tk.tensor(inputs), tk.tensor(targets)

    def our_loss(weights: tk.Tensor, bias: tk.Tensor) -> tk.Tensor:
        prediction = tk.sigmoid(own_inputs @ weights + bias)
        return -tk.log(prediction * own_targets + (1.0 - prediction) * (1.0 - own_targets)).sum()

    ours, theirs = tk.grad(our_loss, (0, 1)), autograd.grad(their_loss, (0, 1))
    own = tk.tensor(weights), tk.tensor(bias)
    return Workload(
        "logistic_regression",
        "autograd",
        lambda: _realized(ours(*own)),
        lambda: theirs(weights, bias),
        _numbers,
    )


def three_layer_mlp() -> Workload:
    """Parameter gradients of a cross-entropy of a 64-64-64-10 network on a batch of 32."""
    rng = np.random.default_rng(0)
    sizes = [64, 64, 64, 10]
    layers = [
        (rng.normal(size=(m, n)).astype(np.float32) * 0.1, np.zeros(n, np.float32))
        for m, n in itertools.pairwise(sizes)
    ]
    inputs = rng.normal(size=(32, 64)).astype(np.float32)
    targets = np.eye(10, dtype=np.float32)[rng.integers(0, 10, 32)]

    def their_loss(layers: Any) -> Any:
        x = inputs
        for i, (weights, bias) in enumerate(layers):
            x = anp.dot(x, weights) + bias
            x = anp.tanh(x) if i < 2 else x
        top = anp.max(x, axis=1, keepdims=True)
        return (
            -anp.sum((x - top - anp.log(anp.sum(anp.exp(x - top), axis=1, keepdims=True))) * targets) / 32.0
        )

    own_inputs, own_targets = tk.tensor(inputs), tk.tensor(targets)

    def our_loss(layers: Any) -> tk.Tensor:
        x = own_inputs
        for i, (weights, bias) in enumerate(layers):
            x = x @ weights + bias
            x = tk.tanh(x) if i < 2 else x
        return -(tk.log_softmax(x) * own_targets).sum() / 32.0

    ours, theirs = tk.grad(our_loss), autograd.grad(their_loss)
    own = [(tk.tensor(weights), tk.tensor(bias)) for weights, bias in layers]
    return Workload(
        "three_layer_mlp", "autograd", lambda: _realized(ours(own)), lambda: theirs(layers), _numbers
    )


def matmul_256() -> Workload:
    """One product of two 256 x 256 matrices."""
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(256, 256)).astype(np.float32) for _ in range(2))
    own_a, own_b = tk.tensor(a), tk.tensor(b)
    return Workload("matmul_256", "numpy", lambda: (own_a @ own_b).realize(), lambda: a @ b, _numbers, 1e-3)


def _realized(results: Any) -> Any:
    """Results with nothing held back: a peer has computed everything when it returns."""
    for x in tk.tree.leaves(results):
        x.realize()
    return results


def _numbers(results: Any) -> list[float]:
    return [float(v) for x in tk.tree.leaves(results) for v in np.asarray(x).ravel()]
