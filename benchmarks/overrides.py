"""What each override of a backend buys: a training step with the required methods alone, and with more of them.

    python -m benchmarks.overrides jax

The argument is a backend's name, or `module:attribute`.  Rows are groups of ops that the backend overrides.  Columns
are steps of two models, eager and under `tk.jit`: the time with the required methods alone; how many times as fast
`fused_multiply_add` makes them; and how many times as fast as with both each other group does.
"""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import tensorken as tk
import tensorken_nn as nn
from benchmarks.harness import pin
from tensorken_core.host.registry import resolve
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.rewriting.fuse import Fuse

CONTRACTION = "fused_multiply_add"

GROUPS = {
    CONTRACTION: (CONTRACTION,),
    "matmul": ("matmul",),
    "neg, abs, maximum, relu, ...": (
        "neg",
        "abs",
        "sign",
        "maximum",
        "minimum",
        "relu",
        "square",
        "reciprocal",
    ),
    "tanh, sigmoid, erf, log1p, ...": (
        "tanh",
        "sigmoid",
        "softplus",
        "erf",
        "expm1",
        "log1p",
        "exp2",
        "log2",
    ),
    "softmax, log_softmax, logsumexp": ("softmax", "log_softmax", "logsumexp"),
    "min, argmax, cumsum, ...": ("min", "argmax", "argmin", "cumsum", "norm"),
    "concatenate": ("concatenate",),
    "sort, argsort": ("sort", "argsort"),
    "compile(program)": ("compile",),
}
"""The rows: the methods that are added to the required ones."""

ROUNDS = 11

Step = Callable[[], Any]


def with_only(backend: RawTensor[Any], names: Iterable[str]) -> Fuse[Any]:
    """The backend with the required methods and these, as users get it."""
    bodies = [op.name for op in OPS.values() if op.method and op.body is not None and backend.has(op)]
    removed = {name: getattr(RawTensor, name) for name in (*bodies, "compile") if name not in names}
    reduced = copy.copy(backend)
    reduced.__class__ = type(type(backend).__name__, (type(backend),), removed)
    return Fuse(reduced)


def perceptron(backend: Any, is_compiled: bool) -> Step:
    """A step of gradient descent: 64 examples, 784 inputs, 256 hidden units, 10 classes."""
    rng = np.random.default_rng(0)
    with tk.use_backend(backend):
        one, two = [nn.Linear(n, m, key=tk.random.key(n)) for n, m in ((784, 256), (256, 10))]
        x, labels = (
            tk.asarray(rng.normal(size=(64, 784)).astype("float32")),
            tk.asarray(rng.integers(0, 10, 64)),
        )

    def loss(model: Any) -> Any:
        return nn.cross_entropy(model[1](tk.relu(model[0](x))), labels)

    return _trained((one, two), loss, is_compiled)


def transformer(backend: Any, is_compiled: bool) -> Step:
    """A step of gradient descent: a GPT of two blocks, 64 wide, with two heads, on two texts of 64 tokens of 65."""
    rng = np.random.default_rng(0)
    with tk.use_backend(backend):
        model = nn.GPT(65, context=64, layers=2, heads=2, width=64, key=tk.random.key(0))
        tokens, labels = [tk.asarray(rng.integers(0, 65, (2, 64)).astype("int32")) for _ in range(2)]

    def loss(model: Any) -> Any:
        return nn.cross_entropy(model(tokens), labels)

    return _trained(model, loss, is_compiled)


def _trained(model: Any, loss: Callable[[Any], Any], is_compiled: bool) -> Step:
    def update(model: Any) -> Any:
        value, gradient = tk.value_and_grad(loss)(model)
        return value, tk.tree.map(lambda w, g: w - 0.01 * g, model, gradient)

    step, state = tk.jit(update) if is_compiled else update, [model]

    def run() -> float:
        value, state[0] = step(state[0])
        for leaf in tk.tree.leaves(state[0]):
            leaf.realize()
        return float(value)

    return run


MODELS = {"perceptron": perceptron, "GPT": transformer}


def seconds(steps: Sequence[Step]) -> np.ndarray[Any, Any]:
    """The CPU time of each step, after two to warm up, in turns: a row for each turn.

    Raises:
        ValueError: if the steps do not compute the same.
    """
    results = [[step(), step()][1] for step in steps]
    if not np.allclose(results, results[0], 1e-3):
        raise ValueError(f"the losses are {results}")
    times = np.zeros((ROUNDS, len(steps)))
    for row in times:
        for i, step in enumerate(steps):
            step()  # so that caches have its values
            begin = time.process_time()
            step()
            row[i] = time.process_time() - begin
    return times


def rows(name: str) -> Iterable[str]:
    """The table in Markdown."""
    selected: Any = resolve(name)
    backend: RawTensor[Any] = getattr(selected, "raw", selected)
    compiles = type(backend).compile is not RawTensor.compile
    offered = {
        row: names
        for row, names in GROUPS.items()
        if any([compiles if name == "compile" else backend.has(OPS[name]) for name in names])
    }
    every = [name for names in offered.values() for name in names]
    sets = {"required methods alone": (), **offered, "all of these": every}
    columns: list[list[str]] = []
    for make in MODELS.values():
        for is_compiled in (False, True):
            kept = [(*names, CONTRACTION) if i else () for i, names in enumerate(sets.values())]
            times = seconds([make(with_only(backend, names), is_compiled) for names in kept])
            compared_with = times[:, [0, *[1] * (len(sets) - 2)]]
            factors = np.median(compared_with / times[:, 1:], 0)
            columns.append([f"{np.median(times[:, 0]) * 1e3:.0f} ms", *[f"{f:.2f}" for f in factors]])
    yield (
        "| overrides | " + " | ".join([f"{model}{mode}" for model in MODELS for mode in ("", ", jit")]) + " |"
    )
    yield "|---|" + "---:|" * len(columns)
    for i, row in enumerate(sets):
        yield f"| {row} | " + " | ".join([column[i] for column in columns]) + " |"


if __name__ == "__main__":
    pin()
    for line in rows(sys.argv[1]):
        print(line)
