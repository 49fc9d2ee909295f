"""Compiler plugins that fail, print, or are handed other values than they compiled for; and functions nested deeply."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken.programs.compiler_choice import VARIABLE
from tensorken.programs.compiler_output import printing_to_stderr
from tensorken.programs.execution import compiler_plugins, failing_compilers, prepared, with_compiler
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.errors import BackendError, NestingError, ProgramError
from tensorken_core.program.program import Program
from tensorken_numpy.backend import Numpy

NUMPY = Numpy()


@pytest.fixture
def _all_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call every compiler that is registered."""
    monkeypatch.delenv(VARIABLE)


def broken(program: Any, backend: Any) -> None:
    raise MemoryError("no memory for 3 kernels")


@pytest.mark.usefixtures("_all_compilers")
def test_the_next_one_runs_a_program_whose_compiler_raises() -> None:
    def f(x: Any) -> Any:
        return x * 2.0 + 1.0

    with with_compiler(broken, "plugins:broken@my-broken"):
        with pytest.warns(RuntimeWarning, match=r"plugins:broken@my-broken failed .*'f'.*no memory") as found:
            assert tk.jit(f)(tk.ones(3)).tolist() == [3.0, 3.0, 3.0]
        assert len(found) == 1
        with failing_compilers(), pytest.raises(BackendError, match="my-broken"):
            tk.jit(lambda x: x * 3.0)(tk.ones(3))


@pytest.mark.usefixtures("_all_compilers")
@pytest.mark.parametrize("name", ["scan", "cond", "while_loop", "vmap", "grad"])
def test_programs_within_others_run_without_a_compiler_that_raises(name: str) -> None:
    def f(x: Any) -> Any:
        if name == "scan":
            return tk.scan(lambda c, _: (c * 2.0, None), x, None, length=3)[0]
        if name == "cond":
            return tk.cond(x.sum() > 0, lambda x: x * 8.0, lambda x: x, x)
        if name == "while_loop":
            return tk.while_loop(lambda x: x.sum() < 20.0, lambda x: x * 2.0, x)
        if name == "vmap":
            return tk.vmap(tk.jit(lambda x: x * 8.0))(x)
        return tk.grad(tk.jit(lambda x: (4.0 * x**2).sum()))(x)

    with with_compiler(broken, "broken"), pytest.warns(RuntimeWarning, match="compiler broken failed"):
        assert f(tk.ones(3)).tolist() == [8.0, 8.0, 8.0]


@pytest.mark.usefixtures("_all_compilers")
def test_a_compiler_that_prints_prints_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    def loud(program: Any, backend: Any) -> None:
        print("compiling")
        thread = threading.Thread(target=lambda: print("the user's"))
        thread.start()
        thread.join()

    before = sys.stdout
    with with_compiler(loud, "loud"):
        tk.jit(lambda x: x * 2.0)(tk.ones(3))
    assert sys.stdout is before
    captured = capsys.readouterr()
    assert set(captured.out.split("\n")) == {"the user's", ""}
    assert "compiling" in captured.err


def test_blocks_that_print_to_standard_error_may_overlap(capsys: pytest.CaptureFixture[str]) -> None:
    before, first, second = sys.stdout, printing_to_stderr(), threading.Event()
    entered = threading.Event()

    def other() -> None:
        with printing_to_stderr():
            entered.set()
            second.wait()

    thread = threading.Thread(target=other)
    first.__enter__()
    thread.start()
    entered.wait()
    first.__exit__(None, None, None)
    print("again")
    second.set()
    thread.join()
    assert sys.stdout is before
    assert capsys.readouterr().out == "again\n"


# ---- values of another type --------------------------------------------------------------------------------


def _entries(program: Program) -> dict[str, Callable[[list[Any]], Any]]:
    """By name: functions that run a program on numpy arrays."""
    found: dict[str, Callable[[list[Any]], Any]] = {
        "prepared": prepared(program, NUMPY),
        "numpy": NUMPY.compile(program) or (lambda xs: None),
    }
    for name, compiler in compiler_plugins():
        run = compiler(program, NUMPY)
        if run is not None:
            found[name] = run
    return found


FLOATS = np.linspace(0.0, 1.0, 4, dtype="float32")

OTHERS: dict[str, Any] = {
    "float64": FLOATS.astype("float64"),
    "int32": FLOATS.astype("int32"),
    "swapped bytes": FLOATS.astype(FLOATS.dtype.newbyteorder()),
    "float16": FLOATS.astype("float16"),
    "complex": FLOATS.astype("complex64"),
    "too long": np.ones(5, "float32"),
    "two axes": np.ones((4, 1), "float32"),
}


def test_compiled_programs_refuse_values_of_other_dtypes_and_shapes() -> None:
    functions: dict[str, Callable[..., Any]] = {
        "read": lambda x, y: (x * 2.0 + y).sum(),
        "returned": lambda x, y: (x, tk.sin(y)),
        "called": lambda x, y: tk.sort(x) + y,
        "looped": lambda x, y: tk.scan(lambda c, x: (c + x, c * x), y, x),
    }
    for kind, f in functions.items():
        x, y = tk.tensor(FLOATS, backend=NUMPY), tk.tensor(2.0, backend=NUMPY)
        program = optimised(tk.trace(f)(x, y), NUMPY)
        expected = [np.asarray(z) for z in tk.tree.leaves(f(x, y))]
        for entry, run in _entries(program).items():
            for given in (FLOATS, np.repeat(FLOATS, 2)[::2], FLOATS[::-1].copy()[::-1]):
                found = run([given, np.float32(2.0)])
                for z, right in zip(found, expected, strict=True):
                    np.testing.assert_allclose(z, right, rtol=1e-6, err_msg=f"{kind} {entry}")
            for other, wrong in OTHERS.items():
                with pytest.raises(ProgramError) as caught:
                    run([wrong, np.float32(2.0)])
                text = str(caught.value)
                assert "input 0 is" in text, (kind, entry, other)
                assert "float32[4]" in text and "\n" not in text, (kind, entry, other)


def test_integers_of_either_name_of_64_bits_are_taken() -> None:
    program = optimised(tk.trace(lambda x: x + 1)(tk.zeros(3, dtype=tk.int64, backend=NUMPY)), NUMPY)
    for entry, run in _entries(program).items():
        for name in ("q", "l"):
            given = np.arange(3).astype(name)
            if given.itemsize == 8:
                np.testing.assert_array_equal(run([given])[0], [1, 2, 3], err_msg=entry)


# ---- functions within each other ---------------------------------------------------------------------------


@pytest.mark.parametrize("transform", ["call", "grad", "vmap", "trace"])
def test_jit_of_a_jitted_function_may_be_repeated(transform: str) -> None:
    f: Any = lambda x: x * 2.0  # noqa: E731, which jit wraps below
    for _ in range(300):
        f = tk.jit(f)
    x = tk.ones(3)
    if transform == "trace":
        assert len(tk.trace(f)(x).equations) == 1
        return
    results = {
        "call": lambda: f(x),
        "grad": lambda: tk.grad(lambda x: f(x).sum())(x),
        "vmap": lambda: tk.vmap(f)(x),
    }
    assert results[transform]().tolist() == [2.0, 2.0, 2.0]


def test_traced_functions_within_each_other_are_counted_in_an_error() -> None:
    def f(x: Any, depth: int = 0) -> Any:
        return tk.jit(lambda x: f(x, depth + 1))(x)

    with pytest.raises(NestingError, match=r"recursion limit of \d+ is too low for \d+ traced functions"):
        f(tk.ones(3))

    def endless(x: Any) -> Any:
        return endless(x)

    with pytest.raises(RecursionError) as caught:
        tk.jit(endless)(tk.ones(3))
    assert not isinstance(caught.value, NestingError)
