"""Suites within Tensorken: grad of jit, backward passes, and the memory saved by checkpoints."""

from __future__ import annotations

import functools
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from harness import Row, compare
from libraries import OURS, installed
from tasks.arrays import chain
from tasks.case import normal, random_integers
from tasks.networks import perceptron, perceptron_parameters
from tasks.small import logistic_arguments, logistic_loss

import tensorken as tk

DEPTH = 32
Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Computation:
    """A function of Tensorken with its arguments; the first `compared` results are compared."""

    function: Function
    arguments: Sequence[Any]
    compared: int | None = None

    def __call__(self) -> Any:
        results = tk.tree.leaves(self.function(*self.arguments))
        for x in results:
            x.realize()
        return results

    def numbers(self) -> list[Any]:
        """The results as numpy arrays."""
        return [np.asarray(x).astype(np.float64) for x in self()[: self.compared]]


def calls(_: Sequence[str], select: str) -> Iterator[Row]:
    """The gradient of a compiled function against the compiled gradient."""
    lib = installed([OURS])[OURS]
    mlp = functools.partial(_perceptron_loss, lib)
    logistic = functools.partial(logistic_loss, lib)
    functions: dict[str, tuple[Function, Any, Any]] = {
        "chain_1e3": (chain(lib), (normal(1000),), 0),
        "chain_1e6": (chain(lib), (normal(1_000_000),), 0),
        "logistic_4x3": (logistic, logistic_arguments(4, 3), (0, 1)),
        "logistic_10000x100": (logistic, logistic_arguments(10000, 100), (0, 1)),
        "mlp_784_512_512_10": (mlp, _perceptron_arguments((784, 512, 512, 10), 128), 0),
    }
    for name, (f, arguments, argnums) in functions.items():
        if select in name:
            given = lib.array(arguments)
            inside = Computation(tk.grad(tk.jit(f), argnums), given)
            outside = Computation(tk.jit(tk.grad(f, argnums)), given)
            yield compare(name, inside, {"jit(grad(f))": outside}, 1e-4)


def backward(_: Sequence[str], select: str) -> Iterator[Row]:
    """The value and gradient of a network of three layers of width 1000, against its value; eager and compiled."""
    lib = installed([OURS])[OURS]
    loss = functools.partial(_perceptron_loss, lib)
    arguments = lib.array(_perceptron_arguments((1000, 1000, 1000, 1000), 128))
    for kind, compiled in _kinds("perceptron_1000", select):
        both = Computation(compiled(tk.value_and_grad(loss)), arguments, 1)
        yield compare(kind, both, {"forward": Computation(compiled(loss), arguments, 1)}, 1e-4)


def checkpoint(_: Sequence[str], select: str) -> Iterator[Row]:
    """The peak memory of the gradient of a chain of 32 layers with checkpoints, against the chain without."""
    lib = installed([OURS])[OURS]
    up, down, x = lib.array(
        (normal(128, 512, scale=0.1), normal(512, 128, seed=1, scale=0.05), normal(1024, 128))
    )

    def layer(x: Any) -> Any:
        return x + lib.gelu(x @ up) @ down

    for kind, compiled in _kinds(f"chain_of_{DEPTH}_layers", select):
        checkpointed, plain = (compiled(tk.grad(_repeated(f))) for f in (tk.checkpoint(layer), layer))
        np.testing.assert_allclose(np.asarray(checkpointed(x)), np.asarray(plain(x)), rtol=1e-3, atol=1e-6)
        peaks = [_peak(compiled(tk.grad(_repeated(f))), x) for f in (tk.checkpoint(layer), layer)]
        yield Row(kind, peaks[0], "B", {"plain": peaks[0] / peaks[1]})


def _kinds(name: str, select: str) -> Iterator[tuple[str, Callable[[Function], Function]]]:
    """The eager and the compiled variant: its name, and a function that transforms functions."""
    for kind, compiled in ((f"{name}_eager", lambda f: f), (f"{name}_jit", tk.jit)):
        if select in kind:
            yield kind, compiled


def _perceptron_loss(lib: Any, parameters: Any, x: Any, labels: Any) -> Any:
    return lib.cross_entropy(perceptron(lib, parameters, x, lib.relu), labels)


def _perceptron_arguments(sizes: tuple[int, ...], rows: int) -> tuple[Any, ...]:
    parameters = perceptron_parameters(*sizes, scale=0.05)
    return parameters, normal(rows, sizes[0], seed=9), random_integers(sizes[-1], rows, seed=5)


def _repeated(layer: Function) -> Function:
    def f(x: tk.Tensor) -> tk.Tensor:
        for _ in range(DEPTH):
            x = layer(x)
        return x.sum()

    return f


def _peak(f: Function, x: tk.Tensor) -> int:
    """The peak memory of a second call in bytes, including memory kept by the first."""
    tracemalloc.start()
    f(x).realize()
    tracemalloc.reset_peak()
    f(x).realize()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak
