"""Networks: a gradient of a small one, and training steps of a perceptron and of a transformer."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.case import BOTH, normal, random_integers, task

STEP = (0, 1, 2, 3)  # the donated arguments: parameters, means, squares and count


def perceptron(lib: Any, parameters: Any, x: Any, nonlinearity: Callable[[Any], Any]) -> Any:
    """Linear layers with a nonlinearity between them."""
    layers = len(parameters) // 2
    for i in range(layers):
        x = x @ parameters[f"w{i}"] + parameters[f"b{i}"]
        x = nonlinearity(x) if i + 1 < layers else x
    return x


def perceptron_parameters(*sizes: int, scale: float) -> dict[str, Any]:
    """Weights and biases between layers of these sizes."""
    pairs = list(enumerate(itertools.pairwise(sizes)))
    weights = {f"w{i}": normal(m, n, seed=i, scale=scale) for i, (m, n) in pairs}
    return weights | {f"b{i}": np.zeros(n, np.float32) for i, (_, n) in pairs}


@task("three_layer_mlp", suites=("eager",))
def three_layer_mlp(lib: Any) -> Any:
    """The gradient with respect to the weights of a 64-64-64-10 network on a batch of 32."""
    parameters = perceptron_parameters(64, 64, 64, 10, scale=0.1)
    names = sorted(parameters)

    def loss(*given: Any) -> Any:
        *weights, x, labels = given
        return lib.cross_entropy(
            perceptron(lib, dict(zip(names, weights, strict=True)), x, lib.xp.tanh), labels
        )

    data = normal(32, 64, seed=9), random_integers(10, 32, seed=5)
    return lib.grad(loss, tuple(range(len(names)))), (*(parameters[name] for name in names), *data)


def _training(lib: Any, loss: Callable[..., Any], parameters: Any, *data: Any) -> Any:
    zeros = {name: np.zeros_like(x) for name, x in parameters.items()}
    return lib.adam(loss, rate=1e-3), (parameters, zeros, dict(zeros), np.float32(0.0), *data)


@task("mlp_step", 1e-3, BOTH, STEP)
def mlp_step(lib: Any) -> Any:
    """A step of Adam on a 784-512-512-10 network, with a batch of 128."""

    def loss(parameters: Any, x: Any, labels: Any) -> Any:
        return lib.cross_entropy(perceptron(lib, parameters, x, lib.relu), labels)

    parameters = perceptron_parameters(784, 512, 512, 10, scale=0.05)
    return _training(lib, loss, parameters, normal(128, 784, seed=9), random_integers(10, 128, seed=5))


@task("digits_step", 1e-3, ("gpu",), STEP)
def digits_step(lib: Any) -> Any:
    """A step of Adam on a 64-128-64-10 network, with a batch of 32."""

    def loss(parameters: Any, x: Any, labels: Any) -> Any:
        return lib.cross_entropy(perceptron(lib, parameters, x, lib.relu), labels)

    parameters = perceptron_parameters(64, 128, 64, 10, scale=0.1)
    return _training(lib, loss, parameters, normal(32, 64, seed=9), random_integers(10, 32, seed=5))


@dataclass(frozen=True, slots=True)
class Size:
    """The sizes of a network as in nanoGPT, and its batch size."""

    vocabulary: int
    layers: int
    heads: int
    width: int
    context: int
    batch: int


SMALL, SMALLEST = Size(65, 4, 4, 128, 64, 12), Size(27, 2, 4, 32, 16, 8)


def gpt_loss(lib: Any, size: Size, p: Any, tokens: Any, labels: Any) -> Any:
    """nanoGPT's network without biases, with output weights tied to the embedding."""
    width, shape = size.width, (size.batch, size.context, size.width)

    def heads(x: Any) -> Any:
        return lib.transposed(x.reshape((*shape[:2], size.heads, width // size.heads)), (0, 2, 1, 3))

    x = p["tokens"][tokens] + p["places"]
    for i in range(size.layers):
        h = lib.layer_norm(x, p[f"norm_a{i}"]) @ p[f"qkv{i}"]
        q, k, v = (heads(h[:, :, j * width : (j + 1) * width]) for j in range(3))
        mixed = lib.transposed(lib.attention(q, k, v), (0, 2, 1, 3)).reshape(shape)
        x = x + mixed @ p[f"out{i}"]
        x = x + lib.gelu(lib.layer_norm(x, p[f"norm_b{i}"]) @ p[f"up{i}"]) @ p[f"down{i}"]
    logits = lib.layer_norm(x, p["norm"]) @ p["tokens"].T
    return lib.cross_entropy(logits.reshape((size.batch * size.context, size.vocabulary)), labels)


def _gpt_training(lib: Any, size: Size) -> Any:
    width = size.width
    shapes: dict[str, tuple[int, ...]] = {"tokens": (size.vocabulary, width), "places": (size.context, width)}
    for i in range(size.layers):
        shapes |= {f"qkv{i}": (width, 3 * width), f"out{i}": (width, width)}
        shapes |= {f"up{i}": (width, 4 * width), f"down{i}": (4 * width, width)}
    parameters = {name: normal(*shape, seed=i, scale=0.02) for i, (name, shape) in enumerate(shapes.items())}
    names = ["norm", *[f"norm_{kind}{i}" for kind in "ab" for i in range(size.layers)]]
    parameters |= {name: np.ones(width, np.float32) for name in names}
    text = random_integers(size.vocabulary, 2, size.batch, size.context, seed=7)
    loss = functools.partial(gpt_loss, lib, size)
    return _training(lib, loss, parameters, text[0], text[1].reshape(-1))


@task("gpt_step", 1e-3, BOTH, STEP)
def gpt_step(lib: Any) -> Any:
    """A step of Adam on nanoGPT's network with its small settings."""
    return _gpt_training(lib, SMALL)


@task("transformer_step", 1e-3, ("gpu",), STEP)
def transformer_step(lib: Any) -> Any:
    """A step of Adam on a network of two layers of width 32."""
    return _gpt_training(lib, SMALLEST)
