"""Trainings: the time of a step of small networks, written once for this library and for torch."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tensorken as tk
from tensorken_wgpu.report.bench import Bench, Row, attempt

COUNTERS = ("kernels", "submissions", "copies", "waits")
RATE = 1e-2

OTHERS = ("jax", "torch")
"""The backends that run the same trainings where they have a GPU."""


@dataclass(frozen=True, slots=True)
class Network:
    """A network and its data.

    Attributes:
        shapes: of the parameters.
        data: the shape of the batch.
        classes: the number of classes of each prediction.
        predict: from a library, the parameters and the batch to the scores of the classes.
    """

    shapes: tuple[tuple[int, ...], ...]
    data: tuple[int, ...]
    classes: int
    predict: Callable[[Any, Sequence[Any], Any], Any]


def perceptron(batch: int, width: int, hidden: int) -> Network:
    """Two layers, as for images of digits."""

    def predict(library: Any, parameters: Sequence[Any], x: Any) -> Any:
        w1, b1, w2, b2 = parameters
        return library.relu(x @ w1 + b1) @ w2 + b2

    return Network(((width, hidden), (hidden,), (hidden, 10), (10,)), (batch, width), 10, predict)


def transformer(batch: int, length: int, width: int, heads: int, blocks: int) -> Network:
    """Blocks of attention and of two layers, each with a layer norm."""
    shapes: list[tuple[int, ...]] = []
    for _ in range(blocks):
        shapes += [(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)]

    def norm(library: Any, x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / library.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)

    def predict(library: Any, parameters: Sequence[Any], x: Any) -> Any:
        for i in range(blocks):
            inward, outward, up, down = parameters[4 * i : 4 * i + 4]
            joined = norm(library, x) @ inward
            q, k, v = [
                joined[..., j * width : (j + 1) * width]
                .reshape((batch, length, heads, width // heads))
                .swapaxes(1, 2)
                for j in range(3)
            ]
            attention = library.softmax(q @ k.swapaxes(-1, -2) * (width // heads) ** -0.5, -1)
            x = x + (attention @ v).swapaxes(1, 2).reshape((batch, length, width)) @ outward
            x = x + library.relu(norm(library, x) @ up) @ down
        return x

    return Network(tuple(shapes), (batch, length, width), width, predict)


def networks(bench: Bench) -> dict[str, Network]:
    """The networks, by name."""
    if bench.tiny:
        return {"perceptron": perceptron(4, 8, 8), "transformer": transformer(1, 4, 8, 2, 1)}
    small = {"perceptron, 784-128-10, batch 128": perceptron(128, 784, 128)}
    if bench.is_small:
        return small | {"transformer, 1 block of 32, 4x16 tokens": transformer(4, 16, 32, 4, 1)}
    found = small | {"transformer, 2 blocks of 64, 32x64 tokens": transformer(32, 64, 64, 4, 2)}
    if not bench.quick:
        found |= {
            "perceptron, 4096-4096-10, batch 1024": perceptron(1024, 4096, 4096),
            "transformer, 6 blocks of 384, 16x256 tokens": transformer(16, 256, 384, 6, 6),
        }
    return found


def trainings(bench: Bench) -> Iterator[Row]:
    """Steps of gradient descent, also by other backends that run on a GPU."""
    others = other_backends()
    for name, network in networks(bench).items():
        yield attempt(name, lambda: _training(bench, name, network))  # noqa: B023
        for other, device in others:
            title = f"{name}, by {other} on {device}"
            yield attempt(title, lambda: _elsewhere(bench, title, network, other, device))  # noqa: B023


def other_backends() -> list[tuple[str, str]]:
    """The installed backends, and for each a device that is no processor."""
    found = []
    for name in OTHERS:
        with contextlib.suppress(Exception):  # not installed, or broken
            found += [(name, device) for device in tk.devices(name) if not device.startswith("cpu")][:1]
    return found


def _elsewhere(bench: Bench, title: str, network: Network, backend: str, device: str) -> Row:
    """A training by another backend; each measurement ends when the loss is known."""
    with tk.use_backend(backend, device):
        call, state = _prepared(network)
        call()
        first = float(state[0].item())
        seconds = bench.seconds(call, lambda: state[0].item())
        return Row(title, seconds, facts={"loss at first": first, "loss at last": float(state[0].item())})


def _prepared(network: Network) -> tuple[Callable[[], None], list[Any]]:
    """A step of a training, and its state: the loss and the parameters."""
    key = tk.random.key(0)
    x = tk.random.normal(key, network.data)
    target = tk.softmax(5.0 * tk.random.normal(key, (*network.data[:-1], network.classes)), -1)
    keys = tk.random.split(key, len(network.shapes))
    parameters = [
        tk.random.normal(k, shape) * shape[0] ** -0.5 for k, shape in zip(keys, network.shapes, strict=True)
    ]

    def loss(parameters: Sequence[tk.Tensor], x: tk.Tensor, target: tk.Tensor) -> tk.Tensor:
        scores = network.predict(tk, parameters, x)
        return -(target * tk.log_softmax(scores, -1)).sum(-1).mean()

    @tk.jit
    def step(parameters: Sequence[tk.Tensor], x: tk.Tensor, target: tk.Tensor) -> Any:
        value, gradients = tk.value_and_grad(loss)(parameters, x, target)
        return value, [p - RATE * g for p, g in zip(parameters, gradients, strict=True)]

    state: list[Any] = [None, parameters]

    def call() -> None:
        state[:] = step(state[1], x, target)

    return call, state


def _training(bench: Bench, name: str, network: Network) -> Row:
    call, state = _prepared(network)
    start = time.perf_counter()
    call()
    first = float(state[0].item())
    opening = time.perf_counter() - start
    for _ in range(8):  # hot kernels are compiled again for their shapes
        call()
    counts = dict(bench.counted(call, COUNTERS, 4))
    host = bench.host_seconds(call, 4)
    seconds = bench.seconds(call)
    facts: dict[str, Any] = {
        **counts,
        "host in ms": 1e3 * host,
        "peak in MiB": bench.device.statistics["peak"] / 2**20,
        "first step": opening,
        "loss at first": first,
        "loss at last": float(state[0].item()),
    }
    return Row(name, seconds, torch=bench.torch_seconds(lambda torch: _of_torch(torch, network)), facts=facts)


def _of_torch(torch: Any, network: Network) -> Callable[[], Any]:
    parameters = [
        (torch.randn(shape, device="cuda") * shape[0] ** -0.5).requires_grad_() for shape in network.shapes
    ]
    x = torch.randn(network.data, device="cuda")
    target = torch.softmax(5.0 * torch.randn((*network.data[:-1], network.classes), device="cuda"), -1)

    def call() -> None:
        scores = network.predict(torch, parameters, x)
        loss = -(target * torch.log_softmax(scores, -1)).sum(-1).mean()
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter -= RATE * gradient

    return call
