"""Donated inputs: results take their memory, if nothing else refers to it and each element is read in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from backends.numpy.tests.test_donations import adam, addresses, drawn, state_of
from plugins.llvm.tests.test_programs import check
from tensorken_llvm.program import MachineProgram

SHAPE = (300, 200)


@pytest.fixture(autouse=True)
def _by_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORKEN_COMPILERS", "llvm")


def donated_by(f: Callable[..., Any], *arguments: Any) -> list[int]:
    """How many results of each compiled program take the memory of the first, donated argument."""
    found: list[int] = []
    original = MachineProgram.__init__

    def init(self: MachineProgram, *given: Any) -> None:
        original(self, *given)
        found.append(len(self.layout.donated))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MachineProgram, "__init__", init)
        plain = tk.tree.leaves(tk.jit(f)(*arguments))
        given = [np.array(np.asarray(x)) for x in plain]
        results = tk.tree.leaves(tk.jit(f, donate_argnums=0)(*arguments))
    for y, z in zip(results, given, strict=True):
        check(np.asarray(y), z)
    return found[1:]


def test_a_loop_stays_where_it_is() -> None:
    step, plain = tk.jit(adam, donate_argnums=0), tk.jit(adam)
    state, right, slope = state_of(0), state_of(0), drawn(9, *SHAPE)
    state, right = step(state, slope), plain(right, slope)
    first = addresses(state)
    for _ in range(5):
        state, right = step(state, slope), plain(right, slope)
        assert sorted(addresses(state)) == sorted(first)
        for x, y in zip(state, right, strict=True):
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


@pytest.mark.parametrize("what", ["a view", "a buffer", "the same twice", "a constant", "a result"])
def test_what_others_refer_to_stays(what: str) -> None:
    state, slope = state_of(1), drawn(9, *SHAPE)
    before = np.array(np.asarray(state[1]))
    step = tk.jit(adam, donate_argnums=0)
    expected: Any = before
    kept: Any = tk.jit(lambda x: x)(state[1])
    if what == "a view":
        kept, expected = state[1].T[5:, ::-1], before.T[5:, ::-1]
    elif what == "a buffer":
        kept = memoryview(state[1].representation.value)
    elif what == "a constant":
        constant = tk.tensor(state[1])
        step = tk.jit(lambda s, g: adam(s, g + 0 * constant), donate_argnums=0)
    elif what == "the same twice":
        state = (state[0], state[1], state[1])
    right = [np.array(np.asarray(x)) for x in tk.jit(adam)(state, slope)]
    for x, y in zip(step(state, slope), right, strict=True):
        np.testing.assert_array_equal(np.asarray(x), y)
    np.testing.assert_array_equal(np.asarray(kept), expected)


@pytest.mark.parametrize(
    ("f", "count"),
    [
        (lambda x, y: x + y, 1),
        (lambda x, y: (x + y, x - y), 1),
        (lambda x, y: (y * 2.0, x + y), 1),  # of which one reads it
        (lambda x, y: tk.exp(x + y) * x + x.reshape((60_000,)).reshape(SHAPE), 1),
        (lambda x, y: (x + y).reshape((60_000,)), 1),
        (lambda x, y: (x @ y.T, y * 2.0), 1),  # read before
        (lambda x, y: x[::-1] + y, 0),
        (lambda x, y: x.reshape((200, 300)).T + y, 0),
        (lambda x, y: x[:, :1] + y, 0),
        (lambda x, y: tk.roll(x, 1, 0) + x, 1),  # which is concatenated before
        (lambda x, y: (x + y, x.sum(0)), None),  # read by another kernel, which may come first
        (lambda x, y: (x, x + y), None),  # a result itself, which refers to it
        (lambda x, y: (x + y)[:10], 0),  # smaller
        (lambda x, y: x < y, 0),  # of another dtype
        (lambda x, y: x @ y.T @ y, 0),  # by a routine
    ],
)
def test_results_take_memory_whose_elements_are_read_in_time(
    f: Callable[..., Any], count: int | None
) -> None:
    found = donated_by(f, drawn(1, *SHAPE), drawn(2, *SHAPE))
    assert count is None or found == [count]


def test_arrays_that_do_not_lie_in_order_are_copied() -> None:
    x, y = np.random.default_rng(0).random((200, 300), np.float32), drawn(2, *SHAPE)
    step = tk.jit(lambda x, y: x * 2.0 + y, donate_argnums=0)
    for _ in range(2):
        check(np.asarray(step(tk.tensor(x).T, y)), x.T * 2 + np.asarray(y))


def chosen(x: Any, y: Any) -> Any:
    """A branch that numpy's backend runs returns its operand."""
    return tk.cond(y.sum() > 0, lambda x: x, lambda x: tk.sort(x, 0), x), tk.exp(y)


def repeated(x: Any, y: Any) -> Any:
    """A loop without steps returns its operand."""
    kept = tk.while_loop(lambda x: x.sum() > 1e9, lambda x: tk.sort(x, 0), x)
    return kept[5:].T, kept, tk.exp(y)


@pytest.mark.parametrize("f", [chosen, repeated])
def test_results_of_called_ops_do_not_share_memory_that_others_take(f: Callable[..., Any]) -> None:
    assert sum(donated_by(f, drawn(1, *SHAPE), drawn(2, *SHAPE))) == 1
