"""Programs with opaque ops: the pieces between are machine code, and effects occur in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.effects import assert_same, draw, function_of, logged
from tensorken.programs.execution import observe_compilers


@pytest.fixture(autouse=True)
def _with_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORKEN_COMPILERS", "llvm")


@pytest.mark.parametrize("seed", range(12))
def test_effects_occur_in_order(seed: int) -> None:
    f = function_of(draw(seed, kinds=("debug", "io", "value", "pure", "number")))
    operands = [tk.tensor(x) for x in ([0.5, -1.0, 0.25], [1.0, 0.125, -0.5])]
    with tk.disable_jit():
        expected = logged(f, *operands)
    assert_same(logged(tk.jit(f), *operands), expected, "jit")


def test_the_pieces_between_are_compiled() -> None:
    offers: list[Any] = []

    @tk.jit
    def f(x: Any) -> Any:
        y = tk.exp(tk.sin(x))
        tk.debug.callback(seen.append, y)
        return tk.cos(y) + x

    seen: list[Any] = []
    x = tk.tensor([0.5, 1.0])
    with observe_compilers(
        lambda name, program, done: offers.append((done, [e.op.name for e in program.equations]))
    ):
        y = f(x)
    expected = np.exp(np.sin([0.5, 1.0]))
    assert np.allclose(seen[0], expected) and np.allclose(y.tolist(), np.cos(expected) + [0.5, 1.0])
    assert offers == [(True, ["sin", "exp"]), (True, ["cos", "add"])]
