"""Preparing a program twice as long takes twice as many steps at each stage: counted, as times depend on machines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken.programs.passes.pipeline import steps
from tensorken_numpy.backend import Numpy
from tensorken_numpy.compiled.emitter import Emitter
from tensorken_numpy.compiled.function import write_function
from tensorken_numpy.compiled.program import planned

RAW = Numpy()


def counted(call: Callable[[], Any]) -> tuple[int, Any]:
    """How many instructions of Python's interpreter the call takes, loops within comprehensions too; its result."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # else Python 3.12 counts nothing in the first call
    sys.settrace(trace)
    try:
        result = call()
    finally:
        sys.settrace(before)
    return count, result


def small(count: int) -> tuple[Callable[..., Any], Any]:
    """A chain whose ops are calls of their own, each value needed by the derivative."""

    def function(x: Any) -> Any:
        for i in range(count):
            x = tk.sin(x) * 1.01 if i % 3 else x + tk.cos(x)
        return x.sum()

    return tk.grad(function), array(8)


def blocks(count: int) -> tuple[Callable[..., Any], Any]:
    """The same of arrays so large that ops are done in blocks."""
    return small(count)[0], array(40, 1000)


def weights(count: int) -> tuple[Callable[..., Any], Any]:
    """One operand and one result for each step, in blocks."""

    def function(xs: Sequence[Any]) -> Any:
        y = xs[0]
        for x in xs[1:]:
            y = tk.sin(y * x)
        return y.sum()

    return tk.grad(function), [array(40, 1000) for _ in range(count)]


def products(count: int) -> tuple[Callable[..., Any], Any]:
    """Matrix products."""

    def function(x: Any) -> Any:
        y = x
        for _ in range(count):
            y = tk.tanh(y @ x)
        return y.sum()

    return tk.grad(function), array(4, 4)


def array(*shape: int) -> Any:
    return tk.tensor(np.full(shape, 0.1, np.float32), backend=RAW)


def stages(function: Callable[..., Any], operands: Any) -> Iterator[tuple[str, int]]:
    """The steps that each stage takes."""
    count, program = counted(lambda: tk.trace(function)(operands))
    yield "trace", count
    passes = steps(program, RAW)
    while True:
        count, found = counted(lambda: next(passes, None))
        if found is None:
            break
        name, program = found
        yield name, count
    arrays = [x.representation for x in tk.tree.leaves(operands)]
    count, (shapes, units) = counted(lambda: planned(program, RAW, arrays))
    yield "schedule", count
    count, emitter = counted(lambda: Emitter(RAW, program, units, shapes))
    yield "lifetimes", count
    count, _ = counted(lambda: write_function(emitter, arrays))
    yield "emitter", count
    count, _ = counted(emitter.source.text)
    yield "text", count


@pytest.mark.slow
@pytest.mark.parametrize(("chain", "length"), [(small, 90), (blocks, 90), (weights, 50), (products, 24)])
def test_twice_the_equations_take_twice_the_steps(chain: Any, length: int) -> None:
    """A stage that went through all values for each equation took 2.6 times as many, and more the longer it was."""
    # Python 3.13 does not count a function's steps in the first call that is traced: the first stages are for that.
    _, first, second = (list(stages(*chain(n))) for n in (3, length, 2 * length))
    assert [name for name, _ in first] == [name for name, _ in second]
    for (name, before), (_, after) in zip(first, second, strict=True):
        assert after <= 2.15 * before + 100, f"{name}: {before} steps, then {after}"
