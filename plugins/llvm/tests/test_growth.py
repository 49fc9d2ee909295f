"""The compilation of large programs takes time and memory in proportion to their size, without recursion."""

from __future__ import annotations

import inspect
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken.kernels.integer_bounds import MAX_STEPS, end_of
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.language.dtypes import int32
from tensorken_core.language.op import OPS
from tensorken_core.program.program import Equation, Program, Variable
from tensorken_llvm import program as machine_programs
from tensorken_llvm.keys import program_key
from tensorken_llvm.plans import MAX_CALLS
from tensorken_llvm.program import MachineProgram, Source, compiled
from tensorken_numpy.backend import Numpy

NUMPY = Numpy()

Count = Callable[[Callable[[], object]], int]


def zeros(*shape: int) -> Any:
    return tk.zeros(shape, dtype=tk.float32, backend=NUMPY)


def chain(n: int) -> Program:
    def f(x: Any) -> Any:
        for i in range(n):
            x = tk.sin(x) * 1.01 if i % 3 else x + tk.cos(x)
        return x.sum()

    return tk.trace(tk.grad(f))(zeros(10))


def tree(n: int) -> Program:
    def f(x: Any) -> Any:
        xs = [x * float(i) for i in range(n)]
        while len(xs) > 1:
            rest = xs[2 * (len(xs) // 2) :]
            pairs = zip(xs[::2], xs[1::2], strict=False)
            xs = [tk.sin(a * b) if i % 2 else a + tk.cos(b) for i, (a, b) in enumerate(pairs)] + rest
        return xs[0].sum()

    return tk.trace(tk.grad(f))(zeros(10))


def wide(n: int) -> Program:
    def f(xs: Sequence[Any]) -> Any:
        return [tk.exp(x) * 2.0 + y for x, y in zip(xs, [*xs[1:], xs[0]], strict=True)]

    return tk.trace(f)([zeros(8) for _ in range(n)])


def unrolled(n: int) -> Program:
    def f(w: Any, x: Any) -> Any:
        h = x
        for _ in range(n):
            h = tk.tanh(h @ w + x)
        return (h**2).sum()

    return tk.trace(tk.grad(f))(zeros(4, 4), zeros(2, 4))


def searches(n: int) -> Program:
    def f(p: Any, u: Any) -> Any:
        return sum([tk.searchsorted(p, u + float(i)).sum() for i in range(n)])

    return tk.trace(f)(zeros(1000), zeros(10))


def stencil(n: int) -> Program:
    def f(x: Any) -> Any:
        for _ in range(n):
            x = tk.roll(x, 1) + tk.roll(x, -1) - 2.0 * x
        return x

    return tk.trace(f)(zeros(50))


def updates(n: int) -> Program:
    def f(x: Any) -> Any:
        for i in range(n):
            x = x.at[[i % 7, i % 5]].add(1.5)
        return x

    return tk.trace(f)(zeros(50))


SHAPES: dict[str, tuple[Callable[[int], Program], int]] = {
    "chain": (chain, 150),
    "tree": (tree, 130),
    "wide": (wide, 200),
    "unrolled": (unrolled, 30),
    "searches": (searches, 6),
    "stencil": (stencil, 30),
    "updates": (updates, 30),
}
"""By the name of a shape: a function that makes a program, and a size."""


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_compilation_takes_time_and_memory_in_proportion_to_a_program(shape: str, calls: Count) -> None:
    make, size = SHAPES[shape]

    def work(program: Program) -> str:
        after = optimised(program, NUMPY)
        program_key(after, True)
        return Source(after, NUMPY).text()

    work(make(8))  # fills caches
    small, large = make(size), make(4 * size)
    assert calls(lambda: work(large)) < 6 * calls(lambda: work(small))
    peaks = [peak(lambda program=program: Source(program, NUMPY)) for program in (small, large)]
    assert peaks[1] < 6 * peaks[0]


def peak(work: Callable[[], object]) -> int:
    """The most bytes in use while some work is done."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_search_takes_time_in_proportion_to_its_steps(calls: Count) -> None:
    def work(steps: int) -> int:
        program = tk.trace(lambda p, u: tk.searchsorted(p, u).sum())(zeros(2**steps), zeros(100))
        source = Source(optimised(program, NUMPY), NUMPY)
        return calls(lambda: source.text())

    assert work(24) < 4 * work(8)


@contextmanager
def few_frames(count: int) -> Iterator[None]:
    """Within the block, Python runs at most this many functions within each other, beside those that run now."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + count)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


LONG: dict[str, tuple[Callable[[Any], Any], int]] = {
    "cheap ops": (lambda x: x * 0.5 + 0.25, 10_000),
    "moved elements": (lambda x: (x + x[::-1]) * 0.5, 1000),
    "padded elements": (lambda x: tk.pad(x[1:], ((0, 1),)) * 0.5 + 1.0, 500),
    "gathered elements": (lambda x: x[tk.astype(abs(x), tk.int32) % 5] + 1.0, 500),
    "called ops": (lambda x: tk.sort(x) * 0.5 + 1.0, 500),
}
"""By name: a step of a chain, and the number of steps."""


@pytest.mark.parametrize("name", LONG)
def test_long_chains_compile_without_recursion(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(machine_programs.QUICK)
    step, count = LONG[name]

    def f(x: Any) -> Any:
        for _ in range(count):
            x = step(x)
        return x

    given = np.linspace(-2.0, 3.0, 7, dtype="float32")
    with few_frames(150):
        program = tk.trace(f)(tk.tensor(given, backend=NUMPY))
        run = compiled(optimised(program, NUMPY), NUMPY)
        assert isinstance(run, MachineProgram)
        (found,) = run([given])
    np.testing.assert_allclose(found, np.asarray(f(tk.tensor(given, backend=NUMPY))), rtol=1e-5)


@pytest.mark.parametrize("loop", ["none", "scan", "cond"])
def test_programs_of_many_kernels_are_divided(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(machine_programs.QUICK)

    def many(x: Any) -> Any:
        for _ in range(2 * MAX_CALLS + 3):
            x = x @ x * 0.3 + 0.1
        return x

    def f(x: Any) -> Any:
        if loop == "scan":
            return tk.scan(lambda c, _: (many(c), c.sum()), x, None, length=3)
        return many(x) if loop == "none" else tk.cond(x.sum() > 0, many, lambda x: x, x)

    x = tk.full((6, 6), 0.1, dtype=tk.float32, backend=NUMPY)
    run = compiled(optimised(tk.trace(f)(x), NUMPY), NUMPY)
    assert isinstance(run, MachineProgram)
    assert "part" in run.source().text()
    for y, expected in zip(run([np.asarray(x)]), tk.tree.leaves(f(x)), strict=True):
        np.testing.assert_allclose(y, np.asarray(expected), rtol=1e-4)


def test_many_arguments_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(machine_programs.QUICK)
    count = 1000
    program = tk.trace(lambda *xs: sum(xs, start=0.0))(*[zeros(3) for _ in range(count)])
    run = compiled(optimised(program, NUMPY), NUMPY)
    assert isinstance(run, MachineProgram)
    arrays = [np.full(3, i, "float32") for i in range(count)]
    arrays[700] = np.arange(6, dtype="float32")[::2]  # not contiguous
    (found,) = run(arrays)
    np.testing.assert_array_equal(found, np.sum(arrays, axis=0))


def test_doubled_positions_take_time_in_proportion_to_the_doublings(calls: Count) -> None:
    def work(count: int) -> int:
        def f(x: Any, i: Any) -> Any:
            for _ in range(count):
                i = i + i
            return x[i]

        program = optimised(tk.trace(f)(zeros(100), tk.zeros(3, dtype=tk.int32, backend=NUMPY)), NUMPY)
        return calls(lambda: Source(program, NUMPY).text())

    assert work(60) < 4 * work(20)


def test_bounds_of_integers() -> None:
    def end(f: Callable[[Any], Any], casts: int = 0) -> int | None:
        program = optimised(tk.trace(f)(tk.zeros(4, dtype=tk.int32, backend=NUMPY)), NUMPY)
        producers = {v: e for e in program.equations for v in e.results}
        (v,) = program.outputs
        for _ in range(casts):
            x, v = v, Variable(v.shape, int32)
            producers[v] = Equation(OPS["cast"], (x,), (int32,), (v,))
        return end_of(v, producers)

    assert end(lambda x: tk.minimum(tk.maximum(x, 0), 9)) == 10
    assert end(lambda x: tk.minimum(x, 9)) is None
    assert end(lambda x: tk.minimum(tk.minimum(tk.maximum(x, 0), 5), 9)) == 6
    assert end(lambda x: tk.minimum(tk.maximum(x, 0), 9).astype(tk.int8)) == 10
    assert end(lambda x: tk.minimum(tk.maximum(x, 0), 900).astype(tk.int8)) is None
    assert end(lambda x: tk.minimum(tk.maximum(x, 0), 9), casts=MAX_STEPS - 1) == 10
    assert end(lambda x: tk.minimum(tk.maximum(x, 0), 9), casts=10_000) is None
