"""What a call of a compiled function costs besides its computation, on numpy and in JAX.

`python benchmarks/front_end.py [--select NAME] [--slices COUNT]` prints, for functions of small arrays, the CPU time of
a whole call, of the backend's compiled program alone, and the difference, which is our front end: checking the
arguments, and making the results.  A figure is the least of many slices, as other load only adds to it.
"""

from __future__ import annotations

import argparse
import functools
import gc
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import environment

environment.configure()  # before numpy is imported

import numpy as np  # noqa: E402, the environment comes first
from harness import pin  # noqa: E402
from tasks.case import normal  # noqa: E402

import tensorken as tk  # noqa: E402
import tensorken_nn as nn  # noqa: E402
from tensorken_core.rewriting.fuse import Fuse  # noqa: E402

SLICE_SECONDS = 0.002
SLICES = 100
RATE = 0.01
LAYERS = 10

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Workload:
    """A function and its arguments, and the same for JAX, where a module is a list of pairs."""

    function: Function
    arguments: Any
    jax_function: Function
    jax_arguments: Any


def one(x: Any) -> Any:
    """A function of one array."""
    return x * 2 + 1


def three(x: Any, y: Any, z: Any) -> Any:
    """A function of three arrays."""
    return x * y + z


def parameters(tree: Any, batch: Any) -> Any:
    """A function of a dict of ten arrays, and a batch."""
    return functools.reduce(lambda total, name: total + batch * tree[name], tree, batch)


def numbers(x: Any, rate: float, count: int) -> Any:
    """A function of an array and two Python numbers."""
    return x * rate + count


def training() -> Workload:
    """A step of SGD with momentum on a module with 20 leaves."""
    layers = [nn.Linear(4, 4, key=key) for key in tk.random.split(tk.random.key(0), LAYERS)]
    model, optimizer = nn.Sequential(*layers), nn.SGD(RATE, momentum=0.9)
    batch = normal(2, 4)

    def step(model: Any, state: Any, batch: Any) -> Any:
        value, gradient = tk.value_and_grad(lambda model: (model(batch) ** 2).mean())(model)
        return (*optimizer.update(model, gradient, state), value)

    def jax_step(layers: Any, state: Any, batch: Any) -> Any:
        import jax

        def loss(layers: Any) -> Any:
            x = batch
            for weight, bias in layers:
                x = x @ weight.T + bias
            return (x**2).mean()

        step, velocity = state
        value, gradient = jax.value_and_grad(loss)(layers)
        velocity = jax.tree_util.tree_map(lambda v, g: 0.9 * v + g, velocity, gradient)
        layers = jax.tree_util.tree_map(lambda x, v: x - RATE * v, layers, velocity)
        return layers, (step + 1, velocity), value

    # the state after a step, when no array is a repeated zero
    model, state, _ = tk.jit(step)(model, optimizer.init(model)._replace(step=tk.tensor(0)), tk.tensor(batch))
    jax_arguments = _pairs(model), (np.asarray(state.step), _pairs(state.velocity)), batch
    return Workload(step, (model, state, tk.tensor(batch)), jax_step, jax_arguments)


def _pairs(model: Any) -> list[Any]:
    return [(np.asarray(layer.weight), np.asarray(layer.bias)) for layer in model.layers]


def arrays(function: Function, *arguments: Any) -> Workload:
    """A workload whose function is the same for JAX."""
    return Workload(function, tk.tree.map(_tensor, arguments), function, arguments)


def _tensor(x: Any) -> Any:
    return tk.tensor(x) if isinstance(x, np.ndarray) else x


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "one": lambda: arrays(one, normal(3)),
    "three": lambda: arrays(three, normal(3), normal(3, seed=1), normal(3, seed=2)),
    "dict_of_10": lambda: arrays(parameters, {f"x{i}": normal(3, seed=i) for i in range(10)}, normal(3)),
    "numbers": lambda: arrays(numbers, normal(3), 0.1, 2),
    "module_of_20": training,
}


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="front_end", description=__doc__)
    parser.add_argument("--select", default="", help="only workloads whose names contain this")
    parser.add_argument("--slices", type=int, default=SLICES, help="time slices of each figure")
    options = parser.parse_args(arguments)
    pin()
    print(
        f"{'workload':<14}{'whole':>10}{'program':>10}{'front end':>11}{'JAX':>10}{'ours / JAX':>12}   (CPU ns)"
    )
    for name, make in WORKLOADS.items():
        if options.select in name:
            whole, program, theirs = measured(make(), options.slices)
            ratio = f"{whole / theirs:>12.2f}" if theirs else f"{'—':>12}"
            print(
                f"{name:<14}{whole:>10.0f}{program:>10.0f}{whole - program:>11.0f}{theirs:>10.0f}{ratio}",
                flush=True,
            )


def measured(workload: Workload, slices: int) -> tuple[float, float, float]:
    """The nanoseconds of a call, of the compiled program alone, and of JAX's call, or 0 if it is not installed."""
    function, given = tk.jit(workload.function), workload.arguments
    program, inputs = recorded(lambda: tk.jit(workload.function)(*given))
    calls: list[Callable[[], Any]] = [lambda: function(*given), lambda: program(inputs)]
    try:
        import jax
    except ImportError:
        print("JAX is not installed")
    else:
        jax_function = jax.jit(workload.jax_function)
        jax_given = jax.tree_util.tree_map(
            lambda x: jax.numpy.asarray(x) if isinstance(x, np.ndarray) else x, workload.jax_arguments
        )
        expected = [np.asarray(x) for x in jax.tree_util.tree_leaves(jax_function(*jax_given))]
        found = [np.asarray(x) for x in tk.tree.leaves(function(*given))]
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)
        calls.append(lambda: jax.block_until_ready(jax_function(*jax_given)))
    return (*least(calls, slices), 0.0)[:3]  # type: ignore[return-value]


def recorded(call: Callable[[], Any]) -> tuple[Function, list[Any]]:
    """The compiled program that the first call of a function runs, and its inputs, below the wrapper `Fuse`."""
    found: list[tuple[Function, list[Any]]] = []
    original = Fuse.wrap_program

    def wrap_program(self: Any, run: Function, *rest: Any) -> Any:
        def run_and_record(values: Any) -> Any:
            found.append((run, [*values]))
            return run(values)

        return original(self, run_and_record, *rest)

    Fuse.wrap_program = wrap_program  # type: ignore[method-assign]
    try:
        call()
    finally:
        Fuse.wrap_program = original  # type: ignore[method-assign]
    return found[0]


def least(calls: Sequence[Callable[[], Any]], slices: int) -> list[float]:
    """For each function the nanoseconds of a call, in the fastest slice; slices of all functions alternate."""
    counts = []
    for call in calls:
        for _ in range(50):
            call()
        counts.append(max(1, round(SLICE_SECONDS * 1e9 / _nanoseconds(call, 20, time.perf_counter_ns))))
    gc.collect()
    gc.freeze()
    found = [float("inf")] * len(calls)
    for _ in range(slices):
        for i, call in enumerate(calls):
            found[i] = min(found[i], _nanoseconds(call, counts[i]))
    empty = min(_nanoseconds(lambda: None, 10_000) for _ in range(slices))
    return [ns - empty for ns in found]


def _nanoseconds(
    call: Callable[[], Any], count: int, clock: Callable[[], int] = time.process_time_ns
) -> float:
    start = clock()
    for _ in range(count):
        call()
    return (clock() - start) / count


if __name__ == "__main__":
    main(sys.argv[1:])
