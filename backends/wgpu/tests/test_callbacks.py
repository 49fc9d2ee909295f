"""Opaque ops on a GPU: programs are cut there, and the pieces between are kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.effects import assert_same, draw, function_of, logged
from tensorken_wgpu.backend import Wgpu


@pytest.mark.parametrize("seed", range(8))
def test_effects_occur_in_order(lazy: Any, seed: int) -> None:
    f = function_of(draw(seed, kinds=("debug", "io", "value", "pure", "number")))
    operands = [0.5, -1.0, 0.25], [1.0, 0.125, -0.5]
    with tk.use_backend("numpy"), tk.disable_jit():
        expected = logged(f, *map(tk.tensor, operands))
    for name, run in {"eager": f, "jit": tk.jit(f)}.items():
        assert_same(logged(run, *[tk.tensor(x, backend=lazy) for x in operands]), expected, name)


def test_the_pieces_between_are_compiled(lazy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[list[str]] = []
    compile_ = Wgpu.compile

    def noted(self: Any, program: Any) -> Any:
        run = compile_(self, program)
        if run is not None:
            pieces.append([e.op.name for e in program.equations])
        return run

    monkeypatch.setattr(Wgpu, "compile", noted)

    @tk.jit
    def f(x: Any) -> Any:
        y = tk.exp(tk.sin(x))
        tk.debug.callback(seen.append, y)
        return tk.cos(y) + x

    seen: list[Any] = []
    x = tk.tensor([0.5, 1.0], backend=lazy)
    expected = np.exp(np.sin([0.5, 1.0]))
    assert np.allclose(f(x).tolist(), np.cos(expected) + [0.5, 1.0], rtol=1e-5)
    assert np.allclose(seen[0], expected, rtol=1e-5)
    assert pieces == [["sin", "exp"], ["cos", "add"]]
