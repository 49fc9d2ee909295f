"""How the preparation time of a compiled program on numpy grows with its length, by stage.

`python benchmarks/growth.py [--sizes 1000,10000,100000] [--select NAME]` prints, for derivatives of chains of ops
with about these numbers of equations, the CPU time of each stage, and between sizes the exponent of its growth: 1
is linear, 2 quadratic. Python's garbage collector is disabled meanwhile, as it would run at moments unrelated to
the stages.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import environment

environment.configure()  # before numpy is imported

import numpy as np  # noqa: E402, the environment comes first
from harness import pin  # noqa: E402

import tensorken as tk  # noqa: E402
from tensorken.programs.passes.pipeline import steps  # noqa: E402
from tensorken_core.rewriting.fuse import Fuse  # noqa: E402
from tensorken_numpy.backend import Numpy  # noqa: E402
from tensorken_numpy.compiled.emitter import Emitter  # noqa: E402
from tensorken_numpy.compiled.function import write_function  # noqa: E402
from tensorken_numpy.compiled.memory import aligned_memory  # noqa: E402
from tensorken_numpy.compiled.program import planned  # noqa: E402

SIZES = (1_000, 10_000, 100_000)
SHORTEST = 1e-3
"""The shortest time in seconds for which growth is reported."""

BACKEND = Fuse(Numpy())
"""The numpy backend with the host's wrapper."""

Function = Callable[..., Any]


def elementwise(count: int) -> Function:
    """Elementwise ops on small arrays, each a separate call."""

    def function(x: Any) -> Any:
        for i in range(count):
            x = tk.sin(x) * 1.01 if i % 3 else x + tk.cos(x)
        return x.sum()

    return function


def products(count: int) -> Function:
    """Products of small matrices."""

    def function(x: Any) -> Any:
        y = x
        for _ in range(count):
            y = tk.tanh(y @ x)
        return y.sum()

    return function


def weights(count: int) -> Function:
    """A parameter for each step, with a derivative for each."""

    def function(xs: Sequence[Any]) -> Any:
        y = xs[0]
        for x in xs[1:]:
            y = tk.sin(y * x)
        return y.sum()

    return function


def _array(*shape: int) -> Any:
    return tk.tensor(np.full(shape, 0.5 / max(shape, default=1), np.float32), backend=BACKEND)


CHAINS: dict[str, tuple[Callable[[int], Function], Callable[[int], Any], float]] = {
    "elementwise": (elementwise, lambda n: _array(8), 5.3),
    "elementwise, in blocks": (elementwise, lambda n: _array(40, 1000), 5.3),
    "elementwise, scalars": (elementwise, lambda n: _array(), 5.3),
    "products": (products, lambda n: _array(4, 4), 21.0),
    "weights": (weights, lambda n: [_array(8) for _ in range(n)], 6.0),
}
"""By name: a function that makes a chain, one that makes its operands, and the equations per step of its derivative."""


def stages(function: Function, operands: Any) -> Iterator[tuple[str, float, int]]:
    """Each stage: its name, CPU time in seconds, and the number of equations after it."""
    start = time.process_time()
    program = tk.trace(tk.grad(function))(operands)
    yield "trace", time.process_time() - start, len(program.equations)
    passes = steps(program, BACKEND.raw)
    for number in range(1000):
        start = time.process_time()
        found = next(passes, None)
        if found is None:
            break
        name, program = found
        yield f"pass {number + 1:2}: {name}", time.process_time() - start, len(program.equations)
    arrays = [BACKEND.value(x.representation) for x in tk.tree.leaves(operands)]
    count = len(program.equations)
    start = time.process_time()
    small, units = planned(program, BACKEND.raw, arrays)
    yield "schedule", time.process_time() - start, count
    start = time.process_time()
    emitter = Emitter(BACKEND.raw, program, units, small)
    yield "lifetimes", time.process_time() - start, count
    start = time.process_time()
    write_function(emitter, arrays)
    yield "emission and memory", time.process_time() - start, count
    start = time.process_time()
    code = emitter.source.code()
    yield "Python's compiler", time.process_time() - start, count
    start = time.process_time()
    emitter.source.instance(code, aligned_memory(emitter.planner.size))
    yield "binding", time.process_time() - start, count


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def exponent(before: float, after: float, growth: float) -> str:
    """The exponent by which a time has grown; a dash if it was too short."""
    return f"{math.log(after / before) / math.log(growth):.2f}" if before >= SHORTEST else "-"


def measured(name: str, size: int) -> dict[str, float]:
    """The seconds of each stage for a chain of about this many equations, and their number as `equations`."""
    make, operands, each = CHAINS[name]
    count = max(2, round(size / each))
    with _without_collection():
        found = list(stages(make(count), operands(count)))
    return {"equations": float(found[0][2]), **{stage: seconds for stage, seconds, _ in found}}


def main(arguments: Sequence[str]) -> int:
    """Print a table for each chain."""
    parser = argparse.ArgumentParser(prog="growth", description=__doc__)
    parser.add_argument(
        "--sizes", default=",".join(map(str, SIZES)), help="numbers of equations, separated by commas"
    )
    parser.add_argument("--select", default="", help="only chains whose names contain this")
    options = parser.parse_args(arguments)
    sizes = [int(size) for size in options.sizes.split(",")]
    pin()
    for name in CHAINS:
        if options.select not in name:
            continue
        tables = [measured(name, size) for size in sizes]
        counts = [table["equations"] for table in tables]
        print(f"\n{name}: {', '.join(f'{count:,.0f}' for count in counts)} equations")
        for stage in tables[0]:
            if stage == "equations":
                continue
            times = [table.get(stage, 0.0) for table in tables]
            grown = [
                exponent(before, after, counts[i + 1] / counts[i])
                for i, (before, after) in enumerate(itertools.pairwise(times))
            ]
            row = "".join([f"{1e3 * seconds:11.1f} ms" for seconds in times])
            print(f"  {stage:32}{row}   {' '.join([f'{e:>5}' for e in grown])}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
