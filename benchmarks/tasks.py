"""The work that is measured, written once for all libraries that have numpy's names; the rest is in libraries.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Task = Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]
"""From a library to a function to be compiled, and its arguments as numpy arrays."""

TASKS: dict[str, Case] = {}


@dataclass(frozen=True, slots=True)
class Case:
    """A task and how near two libraries' results must be; a step gives back what it takes, and is repeated on that."""

    name: str
    make: Task
    tolerance: float = 1e-4
    donates: tuple[int, ...] = ()


def task(name: str, tolerance: float = 1e-4, donates: tuple[int, ...] = ()) -> Callable[[Task], Task]:
    """Enter a task into the table."""

    def enter(make: Task) -> Task:
        TASKS[name] = Case(name, make, tolerance, donates)
        return make

    return enter


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> Any:
    """Numbers in float32."""
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(np.float32)


# ---- small: what a call costs --------------------------------------------------------------------------------


def _nested(order: int) -> Task:
    def make(lib: Any) -> Any:
        f = lib.xp.tanh
        for _ in range(order):
            f = lib.grad(f)
        return f, (np.float32(0.5),)

    return make


for _order in (1, 2, 3):
    task(f"tanh_gradient_{_order}")(_nested(_order))


def _logistic(rows: int, columns: int) -> Task:
    def make(lib: Any) -> Any:
        x = normal(rows, columns)
        targets = (normal(rows, seed=1) > 0).astype(np.float32)

        def loss(weights: Any, bias: Any, x: Any, targets: Any) -> Any:
            z = x @ weights + bias
            return -(targets * lib.log_sigmoid(z) + (1.0 - targets) * lib.log_sigmoid(-z)).sum() / rows

        return lib.value_and_grad(loss, (0, 1)), (
            normal(columns, seed=2, scale=0.1),
            np.float32(0.1),
            x,
            targets,
        )

    return make


task("logistic_4x3")(_logistic(4, 3))
task("logistic_10000x100")(_logistic(10000, 100))


# ---- products and sums -----------------------------------------------------------------------------------------


def _matmul(n: int) -> Task:
    return lambda lib: (lambda a, b: a @ b, (normal(n, n), normal(n, n, seed=1)))


for _n in (64, 256, 1024, 2048):
    task(f"matmul_{_n}", 2e-3)(_matmul(_n))


@task("gradient_of_sum_of_matmul_1024", 1e-2)
def gradient_of_sum_of_matmul(lib: Any) -> Any:
    """No product is needed: the sums of rows and columns are."""
    return lib.grad(lambda a, b: (a @ b).sum(), (0, 1)), (normal(1024, 1024), normal(1024, 1024, seed=1))


for _name, _axis, _shape in (
    ("sum_1e7", None, (10_000_000,)),
    ("sum_of_columns", 0, (4096, 2048)),
    ("sum_of_rows", 1, (4096, 2048)),
):
    task(_name, 1e-2)(lambda lib, axis=_axis, shape=_shape: (lambda x: x.sum(axis), (normal(*shape),)))  # type: ignore[misc]


@task("transpose_add_4096")
def transpose_add(lib: Any) -> Any:
    """A matrix and its transpose."""
    return lambda x: x + x.T, (normal(4096, 4096),)


# ---- elementwise -------------------------------------------------------------------------------------------------


def _chain(n: int, gradient: bool) -> Task:
    def make(lib: Any) -> Any:
        xp = lib.xp

        def f(x: Any) -> Any:
            return xp.tanh(xp.exp(-x * x) / 2.0 + x) / (1.0 + x * x)

        return (lib.grad(lambda x: f(x).sum()) if gradient else lambda x: f(x).sum()), (normal(n),)

    return make


for _exponent in (3, 6, 7):
    task(f"chain_1e{_exponent}", 1e-3)(_chain(10**_exponent, False))
    task(f"chain_gradient_1e{_exponent}")(_chain(10**_exponent, True))


@task("cross_entropy_gradient_4096x1000")
def cross_entropy_gradient(lib: Any) -> Any:
    """The gradient, by the logits, of the mean cross-entropy of a softmax."""
    labels = np.random.default_rng(3).integers(0, 1000, 4096).astype(np.int32)

    def loss(logits: Any, labels: Any) -> Any:
        return -lib.picked(lib.log_softmax(logits), labels).mean()

    return lib.grad(loss), (normal(4096, 1000), labels)


# ---- training steps ------------------------------------------------------------------------------------------------


def adam(lib: Any, loss: Callable[..., Any], rate: float = 1e-3) -> Callable[..., Any]:
    """One step of Adam (Kingma and Ba, 2015): (parameters, means, squares, step, *data) to the same and the loss."""

    def step(parameters: Any, means: Any, squares: Any, count: Any, *data: Any) -> Any:
        value, gradients = lib.value_and_grad(loss)(parameters, *data)
        count = count + 1.0
        means = lib.map(lambda m, g: 0.9 * m + 0.1 * g, means, gradients)
        squares = lib.map(lambda s, g: 0.999 * s + 0.001 * (g * g), squares, gradients)
        first, second = 1.0 - 0.9**count, 1.0 - 0.999**count
        parameters = lib.map(
            lambda p, m, s: p - rate * (m / first) / (lib.xp.sqrt(s / second) + 1e-8),
            parameters,
            means,
            squares,
        )
        return parameters, means, squares, count, value

    return step


def _training(loss: Callable[..., Any], parameters: Any, *data: Any) -> Callable[[Any], Any]:
    zeros = {name: np.zeros_like(x) for name, x in parameters.items()}
    state = (parameters, zeros, dict(zeros), np.float32(0.0), *data)
    return lambda lib: (adam(lib, lambda p, *d: loss(lib, p, *d)), state)


def mlp_loss(lib: Any, parameters: Any, x: Any, labels: Any) -> Any:
    """Cross-entropy of a network of three layers."""
    for i in range(3):
        x = x @ parameters[f"w{i}"] + parameters[f"b{i}"]
        if i < 2:
            x = lib.relu(x)
    return -lib.picked(lib.log_softmax(x), labels).mean()


def _mlp(lib: Any) -> Any:
    sizes = (784, 512, 512, 10)
    parameters = {f"w{i}": normal(sizes[i], sizes[i + 1], seed=i, scale=0.05) for i in range(3)}
    parameters |= {f"b{i}": np.zeros(sizes[i + 1], np.float32) for i in range(3)}
    labels = np.random.default_rng(5).integers(0, 10, 128).astype(np.int32)
    return _training(mlp_loss, parameters, normal(128, 784, seed=9), labels)(lib)


task("mlp_step", 1e-3, (0, 1, 2, 3))(_mlp)

VOCABULARY, LAYERS, HEADS, WIDTH, CONTEXT, BATCH = 65, 4, 4, 128, 64, 12


def gpt_loss(lib: Any, p: Any, tokens: Any, labels: Any) -> Any:
    """nanoGPT's network in its small setting, without biases, the head tied to the embedding."""
    xp, head = lib.xp, WIDTH // HEADS

    def layer_norm(x: Any, weight: Any) -> Any:
        x = x - x.mean(-1, keepdims=True)
        return x / xp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight

    def heads(x: Any) -> Any:
        return x.reshape((BATCH, CONTEXT, HEADS, head)).transpose((0, 2, 1, 3))

    x = p["tokens"][tokens] + p["places"]
    for i in range(LAYERS):
        h = layer_norm(x, p[f"norm_a{i}"]) @ p[f"qkv{i}"]
        q, k, v = (heads(h[:, :, j * WIDTH : (j + 1) * WIDTH]) for j in range(3))
        scores = (q @ k.transpose((0, 1, 3, 2))) * (1.0 / math.sqrt(head))
        weights = lib.softmax(xp.where(lib.mask(CONTEXT), scores, -1e9))
        mixed = (weights @ v).transpose((0, 2, 1, 3)).reshape((BATCH, CONTEXT, WIDTH))
        x = x + mixed @ p[f"out{i}"]
        x = x + lib.gelu(layer_norm(x, p[f"norm_b{i}"]) @ p[f"up{i}"]) @ p[f"down{i}"]
    logits = layer_norm(x, p["norm"]) @ p["tokens"].T
    return -lib.picked(lib.log_softmax(logits.reshape((BATCH * CONTEXT, VOCABULARY))), labels).mean()


def _gpt(lib: Any) -> Any:
    shapes: dict[str, tuple[int, ...]] = {"tokens": (VOCABULARY, WIDTH), "places": (CONTEXT, WIDTH)}
    for i in range(LAYERS):
        shapes |= {f"qkv{i}": (WIDTH, 3 * WIDTH), f"out{i}": (WIDTH, WIDTH)}
        shapes |= {f"up{i}": (WIDTH, 4 * WIDTH), f"down{i}": (4 * WIDTH, WIDTH)}
    parameters = {name: normal(*shape, seed=i, scale=0.02) for i, (name, shape) in enumerate(shapes.items())}
    names = ["norm", *[f"norm_{kind}{i}" for kind in "ab" for i in range(LAYERS)]]
    parameters |= {name: np.ones(WIDTH, np.float32) for name in names}
    drawn = np.random.default_rng(7).integers(0, VOCABULARY, (2, BATCH, CONTEXT)).astype(np.int32)
    return _training(gpt_loss, parameters, drawn[0], drawn[1].reshape(-1))(lib)


task("gpt_step", 5e-3, (0, 1, 2, 3))(_gpt)


# ---- matrices of derivatives ----------------------------------------------------------------------------------------


def _jacobian(which: str) -> Task:
    def make(lib: Any) -> Any:
        first, second = normal(64, 64, scale=0.1), normal(64, 64, seed=1, scale=0.1)
        xp = lib.xp

        def net(x: Any, first: Any, second: Any) -> Any:
            return xp.tanh(xp.tanh(x @ first) @ second)

        return getattr(lib, which)(net), (normal(64, seed=2), first, second)

    return make


task("jacfwd_64")(_jacobian("jacfwd"))
task("jacrev_64")(_jacobian("jacrev"))


@task("hessian_100", 1e-3)
def hessian(lib: Any) -> Any:
    """The Hessian of a function of 100 inputs."""
    xp = lib.xp

    def f(x: Any, weights: Any) -> Any:
        return (xp.tanh(x @ weights) ** 2).sum() + (xp.sin(x[1:]) * x[:-1]).sum()

    return lib.hessian(f), (normal(100), normal(100, 100, seed=1, scale=0.1))


# ---- convolution ---------------------------------------------------------------------------------------------


def _convolution(gradient: bool) -> Task:
    def make(lib: Any) -> Any:
        def loss(x: Any, kernel: Any) -> Any:
            return (lib.convolve(x, kernel) ** 2).sum() * 0.5

        arguments = (normal(32, 3, 32, 32), normal(32, 3, 3, 3, seed=1, scale=0.2))
        return (lib.grad(loss, (0, 1)) if gradient else lib.convolve), arguments

    return make


task("convolution", 1e-3)(_convolution(False))
task("convolution_gradient", 5e-2)(_convolution(True))
