"""Caches that several threads fill and empty: none fails since another thread has just emptied it."""

from __future__ import annotations

from typing import Any

import pytest

import tensorken as tk
from core.tests.threads import together
from tensorken.compilation import jit as compilation
from tensorken.programs.passes import constants
from tensorken.programs.passes.constants import with_constants_folded
from tensorken_numpy.backend import Numpy


class EmptiedOnceAsked(dict[Any, Any]):
    """A cache that another thread clears right after this thread has found an entry."""

    def __contains__(self, key: object) -> bool:
        found = super().__contains__(key)
        self.clear()
        return found


def test_a_number_is_folded_if_the_cache_is_cleared_concurrently() -> None:
    backend = Numpy()
    program = tk.trace(lambda x: x + tk.sin(x.scalar(2.0)))(tk.ones(3))
    first = with_constants_folded(program, backend)
    constants._numbers[backend] = EmptiedOnceAsked(constants._numbers[backend])
    assert str(with_constants_folded(program, backend)) == str(first)


def test_threads_trace_one_function_for_more_keys_than_its_cache_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The programs that a function keeps stay few, and each call gets its own, while several threads trace it."""
    monkeypatch.setattr(compilation, "MAX_PROGRAMS", 4)
    double = tk.jit(lambda x: (x * 2.0).sum())
    kept: dict[Any, Any] = {}

    def run(number: int) -> None:
        for k in range(12):
            size = 1 + (k * 7 + number) % 11
            assert double(tk.ones(size)).item() == 2.0 * size
        for k in range(2000):
            compilation._store(kept, (number, k), k)  # type: ignore[arg-type]

    with pytest.warns(tk.errors.RetraceWarning):
        together(4, run)
    assert len(kept) <= 8
