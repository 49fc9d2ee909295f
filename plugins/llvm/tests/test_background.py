"""Compilation in the background: what runs meanwhile, the switch, and processes that fail."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from plugins.llvm.tests.test_programs import NUMPY, traced
from tensorken.programs.execution import compiled_function
from tensorken_llvm import background, cache, program as programs
from tensorken_llvm.program import BackgroundProgram, MachineProgram, compiled

X = np.linspace(-2, 2, 60, dtype="float32").reshape(15, 4)
ROUNDING = 2 * 15 * (4 * 16 + 15) * 2.0**-24
"""A bound of the difference of two sums of 15 functions, of slope 1 at most, of sums of 4 products of at most 4."""

LIMIT = 120  # seconds that another process may take on a busy machine


def f(x: Any) -> Any:
    return tk.tanh(x @ x.T).sum(0)


@pytest.fixture(autouse=True)
def _in_background(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv(background.BACKGROUND, "1")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    monkeypatch.setenv("TENSORKEN_COMPILERS", "llvm")
    cache.forget()
    yield
    cache.forget()


def started(f: Callable[..., Any], *arrays: Any) -> BackgroundProgram:
    found = compiled(traced(f, *arrays), NUMPY)
    assert isinstance(found, BackgroundProgram)
    return found


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_switched(program: BackgroundProgram) -> bool:
    return isinstance(program._run, MachineProgram)


def test_the_backend_runs_until_the_machine_code_is_there() -> None:
    program, expected = started(f, X), np.tanh(X @ X.T).sum(0)
    assert not is_switched(program)

    def call() -> bool:
        np.testing.assert_allclose(program([X])[0], expected, rtol=0, atol=ROUNDING)
        return is_switched(program)

    until(call)
    assert call()
    assert isinstance(compiled(traced(f, X), NUMPY), MachineProgram)  # from the cache


def test_a_jitted_function_with_donated_arguments_switches() -> None:
    def step(weights: Any, x: Any) -> Any:
        return weights - 0.1 * tk.grad(lambda w: (tk.tanh(x @ w) ** 2).sum())(weights)

    jitted = tk.jit(step, donate_argnums=0)
    x, weights = tk.tensor(X), tk.ones((4, 3))
    expected = step(step(step(weights, x), x), x)

    def train() -> None:
        found = tk.ones((4, 3))
        for _ in range(3):
            found = jitted(found, x)
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-5)

    train()
    lowered = jitted.lower(weights, x)
    program = compiled_function(lowered.program, lowered.backend)
    assert isinstance(program, BackgroundProgram)
    until(lambda: train() is None and is_switched(program))
    train()


def test_texts_and_kernels_do_not_wait() -> None:
    program = started(f, X)
    assert "define" in program.texts()["llvm"]()
    assert program.kernels()


@pytest.mark.parametrize("executable", ["", str(Path("no", "such", "python"))])
def test_without_another_process_this_one_compiles(monkeypatch: pytest.MonkeyPatch, executable: str) -> None:
    monkeypatch.setattr(background.sys, "executable", executable)
    program = started(f, X)
    np.testing.assert_allclose(program([X])[0], np.tanh(X @ X.T).sum(0), rtol=0, atol=ROUNDING)
    assert is_switched(program)


def test_this_process_compiles_when_the_other_is_killed() -> None:
    program = started(f, X)
    assert program._compilation is not None
    assert program._compilation._process is not None
    program._compilation._process.kill()
    until(lambda: program([X]) is not None and is_switched(program))


def test_an_error_of_llvm_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background.sys, "executable", "")
    found = background.Compilation("no module")
    with pytest.raises(RuntimeError, match="expected top-level entity"):
        found.code()


def test_no_more_processes_than_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    first, second = started(f, X), started(lambda x: tk.sin(x @ x.T).sum(0), X)
    assert second._compilation is not None
    assert second._compilation._process is None
    until(lambda: first([X]) is not None and is_switched(first))
    until(lambda: second([X]) is not None and is_switched(second))
    np.testing.assert_allclose(second([X])[0], np.sin(X @ X.T).sum(0), rtol=0, atol=ROUNDING)


def test_a_dropped_program_ends_its_process_and_removes_its_files() -> None:
    program = started(f, X)
    assert program._compilation is not None
    process, folder = program._compilation._process, program._compilation._folder
    assert process is not None
    assert folder is not None
    assert folder.exists()
    del program
    gc.collect()
    assert process.poll() is not None
    assert not folder.exists()


def test_quick_code_is_replaced_when_optimised_code_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(programs.QUICK)
    monkeypatch.setattr(programs, "QUICK_ELEMENTS", 10 * X.size)
    monkeypatch.setattr(programs, "BACKGROUND_CALLS", 5)
    program = compiled(traced(lambda x: tk.sin(x) * 17.0, X), NUMPY)
    assert isinstance(program, MachineProgram)
    method = program._methods[program.layout.names[0]]
    until(lambda: program([X]) is not None and len(method.owner) > 2)
    np.testing.assert_allclose(program([X])[0], np.sin(X) * 17, rtol=1e-6)
