"""The compiler: compiled programs give the bits of the ops, and do not change the operands."""

from __future__ import annotations

import numpy as np
import pytest
import tensorken as tk
from tensorken import Tensor

from tensorken_mycompiler import sources


@pytest.fixture(autouse=True)
def only_this_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use no other installed compiler, and forget the programs of the other tests."""
    monkeypatch.setenv("TENSORKEN_COMPILERS", "mycompiler")
    sources.clear()


def curve(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Elementwise ops alone, with values that several of them need."""
    hidden = tk.tanh(x * 2.0 + y)
    return tk.maximum(tk.sin(hidden) - abs(y), x * y) / (tk.sqrt(abs(y)) + 0.1), -x, hidden, hidden < x


@pytest.mark.parametrize("n", [1000, 1, 0])
def test_compiled_programs_give_the_bits_of_the_ops(n: int) -> None:
    x, y = tk.linspace(-3, 3, n), tk.linspace(2, -1e30, n)
    before = x.tolist(), y.tolist()
    for compiled, computed in zip(tk.jit(curve)(x, y), curve(x, y), strict=True):
        assert np.asarray(compiled).tobytes() == np.asarray(computed).tobytes()
    assert (x.tolist(), y.tolist()) == before
    assert ", out=" in sources["curve"]


def test_programs_with_other_ops_are_left() -> None:
    x, y = tk.arange(3.0), tk.ones(3)
    assert tk.jit(lambda x, y: tk.where(x < y, x, y))(x, y).tolist() == [0.0, 1.0, 1.0]
    assert tk.jit(lambda x, y: (x * y).sum())(x, y).item() == 3.0
    assert not sources


def test_derivatives_are_compiled() -> None:
    slope = tk.grad(tk.jit(lambda x: tk.exp(x * x)))
    assert slope(tk.tensor(0.5)).item() == pytest.approx(np.exp(0.25), rel=1e-6)
    assert sources
