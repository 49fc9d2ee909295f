"""Donations: results take the memory of what was given away, and of nothing that anyone else can see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorken as tk
from backends.numpy.tests.random_programs import program_on_arrays
from tensorken_core.errors import EscapedTensorError
from tensorken_core.program.program import Program
from tensorken_numpy.backend import Numpy
from tensorken_numpy.compiled import emitter, schedule
from tensorken_numpy.compiled.program import compiled

RAW = Numpy()


def adam(state: Any, slope: Any) -> Any:
    """One step; each of the three results has the shape of each of the three that are given away."""
    x, mean, square = state
    mean = 0.9 * mean + 0.1 * slope
    square = 0.99 * square + 0.01 * slope * slope
    return x - 0.1 * mean / (tk.sqrt(square) + 1e-8), mean, square


def drawn(seed: int, *shape: int) -> Any:
    return tk.tensor(np.random.default_rng(seed).random(shape, np.float32))


def state_of(seed: int) -> tuple[Any, ...]:
    return tuple([drawn(3 * seed + i, 300, 200) for i in range(3)])


def addresses(tensors: Any) -> list[int]:
    return [x.representation.value.__array_interface__["data"][0] for x in tensors]


@pytest.fixture
def tiny_arrays_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emitter, "SMALLEST", 1)


def test_a_loop_stays_where_it_is() -> None:
    step, plain = tk.jit(adam, donate_argnums=0), tk.jit(adam)
    state, right, slope = state_of(0), state_of(0), drawn(9, 300, 200)
    state, right = step(state, slope), plain(right, slope)
    first = addresses(state)
    for _ in range(5):
        state, right = step(state, slope), plain(right, slope)
        assert sorted(addresses(state)) == sorted(first)
        for x, y in zip(state, right, strict=True):
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


@pytest.mark.parametrize("what", ["a view", "a buffer", "the same twice", "a constant", "a result"])
def test_what_others_see_stays_as_it_is(what: str) -> None:
    state, slope = state_of(1), drawn(9, 300, 200)
    before = np.array(state[1])
    step = tk.jit(adam, donate_argnums=0)
    expected = before
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
    right = tk.jit(adam)(state, slope)
    for x, y in zip(step(state, slope), right, strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    np.testing.assert_array_equal(np.asarray(kept), expected)


def test_a_call_that_fails_has_taken_its_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    step = tk.jit(adam, donate_argnums=0)
    state, slope = state_of(2), drawn(9, 300, 200)
    state = step(state, slope)

    def interrupted(*operands: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        changed.setattr("tensorken_numpy.compiled.program.Compiled.__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            step(state, slope)
    with pytest.raises(EscapedTensorError, match="donated to a call of adam"):
        state[0].tolist()
    again = step(state_of(2), slope)
    assert np.isfinite(np.asarray(again[0])).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.usefixtures("tiny_arrays_too")
@pytest.mark.parametrize("seeds", range(1000, 1060, 20))
def test_random_programs_on_what_is_given_away(seeds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit as without donation; arrays that the caller keeps do not change."""
    taken = 0
    for seed in range(seeds, seeds + 20):
        program, arrays = program_on_arrays(seed)
        for block in (1, 4, 32768):
            monkeypatch.setattr(schedule, "BLOCK_SIZE", block)
            monkeypatch.setattr("tensorken_numpy.compiled.blocks.BLOCK_SIZE", block)
            taken += check_given_away(program, arrays)
    assert taken > 0


def check_given_away(program: Program, arrays: list[Any]) -> bool:
    """Fail unless results are those without donation; whether one took the memory of an input."""
    own = compiled(program, RAW)
    run = compiled(program.changed(donated=frozenset(range(len(arrays)))), RAW)
    assert own is not None and run is not None
    before = [np.array(x) for x in arrays]
    taken = False
    for given in (arrays, [np.array(x) for x in arrays]):
        places = {x.__array_interface__["data"][0] for x in given if x.size}
        right = [np.array(y) for y in own(given)]
        if given is arrays:
            found = run(list(given))  # someone else has them, too
        else:
            found = run(given)
            taken = any([y.__array_interface__["data"][0] in places for y in found if y.size])
        for y, expected in zip(found, right, strict=True):
            assert (y.shape, y.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_array_equal(y, expected)
    for x, expected in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(x, expected)
    return taken
