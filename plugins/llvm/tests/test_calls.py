"""Calls of jitted functions that run machine code: the statements that are written for them, and their arguments."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.threads import together
from tensorken.programs.execution import compiled_function
from tensorken_llvm import cache, program as programs
from tensorken_llvm.program import MachineProgram

X = np.linspace(-2, 2, 12, dtype="float32").reshape(3, 4)


@pytest.fixture(autouse=True)
def _compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORKEN_COMPILERS", "llvm")


@pytest.fixture
def general(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls that are not written: of the whole program, or for arguments that the machine code does not take."""
    found: list[str] = []

    def noted(name: str) -> None:
        original: Callable[[MachineProgram, Sequence[Any]], Any] = getattr(MachineProgram, name)

        def method(self: MachineProgram, inputs: Sequence[Any]) -> Any:
            found.append(name)
            return original(self, inputs)

        monkeypatch.setattr(MachineProgram, name, method)

    noted("__call__")
    noted("_run_segments")
    return found


def warm(f: Callable[..., Any], *arguments: Any) -> Any:
    """A jitted function that was called twice: the second call generates the function for later ones."""
    jitted = tk.jit(f)
    jitted(*arguments)
    jitted(*arguments)
    return jitted


def test_later_calls_are_written(general: list[str]) -> None:
    f = warm(lambda x, n: {"a": tk.tanh(x) * n, "b": [x.sum(0)]}, tk.tensor(X), 2.0)
    general.clear()
    found = f(tk.tensor(X), 3.0)
    assert general == []
    np.testing.assert_allclose(np.asarray(found["a"]), np.tanh(X) * 3, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(found["b"][0]), X.sum(0), atol=1e-6)
    assert (found["a"].shape, found["b"][0].shape, found["a"].dtype) == ((3, 4), (4,), tk.float32)


STRIDED = {
    "transposed": lambda: tk.tensor(np.ascontiguousarray(X.T)).T,
    "repeated": lambda: tk.tensor(X[:1]).broadcast_to((3, 4)),
    "number": lambda: tk.full((3, 4), 0.5),
    "zeros": lambda: tk.zeros((3, 4)),
    "row": lambda: tk.tensor(X[0]).broadcast_to((3, 4)),
    "column": lambda: tk.tensor(X[:, :1]).broadcast_to((3, 4)),
    "flipped": lambda: tk.flip(tk.tensor(X), 0),
    "cropped": lambda: tk.tensor(np.concatenate([X, X], 1))[:, 2:6],
    "deferred": lambda: tk.tensor(X[:, :1]) * tk.tensor(X[:1]),
    "read-only": lambda: tk.tensor(np.broadcast_to(np.float32(1.5), (3, 4))),
    "square": lambda: tk.tensor(X[:, :3].copy()).T.sum(0, keepdims=True).broadcast_to((4, 3)).T,
}


@pytest.mark.parametrize("name", STRIDED)
def test_arguments_that_are_no_contiguous_arrays(name: str) -> None:
    f = warm(lambda x, y: (x * 2.0 - y, (x + y).sum(1)), tk.tensor(X), tk.tensor(X))
    for x, y in ((STRIDED[name](), tk.tensor(X)), (tk.tensor(X), STRIDED[name]()), (STRIDED[name](),) * 2):
        a, b = np.asarray(x), np.asarray(y)
        for found, expected in zip(f(x, y), (a * 2 - b, (a + b).sum(1)), strict=True):
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6, atol=1e-6)


def test_one_tensor_as_two_arguments() -> None:
    f = warm(lambda x, y: (x - y, x * y), tk.tensor(X), tk.tensor(X + 1))
    x = tk.tensor(X)
    difference, product = f(x, x)
    np.testing.assert_array_equal(np.asarray(difference), 0.0)
    np.testing.assert_array_equal(np.asarray(product), X * X)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (2, 0, 4)])
def test_scalars_and_empty_arguments(shape: tuple[int, ...]) -> None:
    x = np.ones(shape, "float32")
    f = warm(lambda x: (x + 1.0, x.sum()), tk.tensor(x))
    y, total = f(tk.tensor(x))
    np.testing.assert_array_equal(np.asarray(y), x + 1)
    assert total.item() == x.size


def test_outputs_that_are_arguments_or_constants(general: list[str]) -> None:
    constant = tk.tensor(X * 3)
    f = warm(lambda x: (x, x.reshape(12), x + 1.0, constant, constant.reshape(4, 3)), tk.tensor(X))
    x = tk.tensor(X[0]).broadcast_to((3, 4))
    found = [np.asarray(y) for y in f(x)]
    first = np.asarray(x)
    expected = [first, first.reshape(12), first + 1, X * 3, (X * 3).reshape(4, 3)]
    for y, z in zip(found, expected, strict=True):
        np.testing.assert_array_equal(y, z)


@pytest.mark.parametrize("size", [3, 1000, 2**15, 2**16 + 1])
def test_results_do_not_share_memory(size: int) -> None:
    x = tk.tensor(np.arange(size, dtype="float32"))
    f = warm(lambda x: (x + 1.0, x * 2.0), x)
    found = [f(x * float(i)) for i in range(4)]
    for i, (a, b) in enumerate(found):
        np.testing.assert_array_equal(np.asarray(a), np.arange(size, dtype="float32") * i + 1)
        np.testing.assert_array_equal(np.asarray(b), np.arange(size, dtype="float32") * i * 2)


def test_a_donated_argument_is_given_up() -> None:
    f = tk.jit(lambda x: x * 2.0 + 1.0, donate_argnums=0)
    for _ in range(4):
        x = tk.tensor(X)
        np.testing.assert_array_equal(np.asarray(f(x)), X * 2 + 1)
        with pytest.raises(tk.errors.TensorkenError, match="donated"):
            _ = x + 1.0


def test_a_result_in_donated_memory_is_an_array_of_its_own_beside_a_strided_argument() -> None:
    x = np.arange(2**15, dtype="float32")
    f = tk.jit(lambda x, y: x * 2.0 + y, donate_argnums=0)
    code = _program_of(f, tk.tensor(x), tk.tensor(x))
    assert code.layout.donated
    for y in (x, x[::-1]):
        (found,) = code([x.copy(), y])
        np.testing.assert_array_equal(found, x * 2 + y)
        assert found.flags.owndata
        assert found.flags.writeable


@pytest.mark.filterwarnings("ignore::tensorken_core.errors.RetraceWarning")
def test_many_signatures_in_turn() -> None:
    f = tk.jit(lambda x, n: tk.sin(x) * n)
    for _ in range(3):
        for size in range(40):
            x = np.linspace(0, 1, size, dtype="float32")
            np.testing.assert_allclose(np.asarray(f(tk.tensor(x), 2.0)), np.sin(x) * 2, rtol=1e-6)


@pytest.mark.parametrize("size", [100, 2**16])
def test_threads_call_one_function(size: int, general: list[str]) -> None:
    """Each call has an arena of its own while others run."""
    x = np.linspace(-1, 1, size * 4, dtype="float32").reshape(size, 4)

    def weighted(x: Any) -> Any:
        return (tk.exp(tk.tanh(x)).sum(1, keepdims=True) * tk.sin(x)).max(0)

    f = warm(weighted, tk.tensor(x))
    code = _program_of(f, tk.tensor(x))
    assert code.layout.arena_size > 0
    assert code.layout.may_overlap == (size > 100)
    wrong: list[int] = []
    general.clear()

    def work(k: int) -> None:
        argument = tk.tensor(x * (k + 1))
        expected = np.asarray(f(argument))
        for _ in range(3000 // size + 20):
            if not np.array_equal(np.asarray(f(argument)), expected):
                wrong.append(k)

    together(4, work)
    assert not wrong
    assert not general


def test_written_calls_run_optimised_code_when_quick_code_has_run_often(
    general: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.delenv(programs.QUICK)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    monkeypatch.setattr(programs, "QUICK_ELEMENTS", 10 * X.size)
    made: list[bool] = []
    original = programs.object_code
    monkeypatch.setattr(
        programs, "object_code", lambda text, is_quick: (made.append(is_quick), original(text, is_quick))[1]
    )

    def f(x: Any) -> Any:
        return tk.sin(x) * 7.0 + 0.25

    first, second = warm(f, tk.tensor(X)), warm(f, tk.tensor(X))  # four calls of one quick code
    assert made == [True]
    general.clear()
    expected = np.asarray(first(tk.tensor(X)))
    for _ in range(20):
        np.testing.assert_array_equal(np.asarray(first(tk.tensor(X))), expected)
        np.testing.assert_array_equal(np.asarray(second(tk.tensor(X))), expected)
    assert made == [True, False]
    assert general == ["_run_segments"] * 2  # each function finds once that the calls are used up


def test_an_error_of_the_optimiser_is_raised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(programs.QUICK)
    monkeypatch.setattr(programs, "QUICK_ELEMENTS", 4 * X.size)
    f = warm(lambda x: tk.cos(x) * 11.0, tk.tensor(X))
    f(tk.tensor(X))
    f(tk.tensor(X))

    def fail(text: str, is_quick: bool) -> bytes:
        raise RuntimeError("no memory")

    monkeypatch.setattr(programs, "object_code", fail)
    with pytest.raises(RuntimeError, match="no memory"):
        f(tk.tensor(X))
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(f(tk.tensor(X))), np.cos(X) * 11, rtol=1e-6)


def test_a_jitted_function_frees_its_program() -> None:
    f = warm(lambda x: tk.sin(x) * 13.0, tk.tensor(X))
    code = weakref.ref(_program_of(f, tk.tensor(X)))
    del f
    gc.collect()
    assert code() is None


def _program_of(f: Any, *arguments: Any) -> MachineProgram:
    lowered = f.lower(*arguments)
    found = compiled_function(lowered.program, lowered.backend)
    assert isinstance(found, MachineProgram)
    return found
