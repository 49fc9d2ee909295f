"""The lowering of loops and branches in docs/writing-a-compiler.md runs, and gives the results of numpy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import tensorken as tk
from tools.workspace import ROOT

PAGE = (ROOT / "docs" / "writing-a-compiler.md").read_text(encoding="utf-8")
X = np.linspace(-1.0, 1.0, 12, dtype="float32").reshape(3, 4)


def loops(x: Any) -> Any:
    """A scan along the last axis within a while_loop, with a captured tensor, and a cond."""

    def step(state: Any) -> Any:
        i, y = state
        carry, ys = tk.scan(lambda c, row: (c * 0.5 + row - x.sum(), (c * row).sum()), y, x, reverse=True)
        return i + 1, tk.cond(ys.sum() > 0.0, lambda c: c + ys.mean(), lambda c: c - 1.0, carry)

    return tk.while_loop(lambda state: state[0] < 3, step, (0, x[0]))[1]


def test_the_lowering_of_the_page_runs() -> None:
    scope: dict[str, Any] = {}
    called: set[str] = set()
    for piece in re.findall(r"```python elsewhere\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(piece, "writing-a-compiler.md", "exec"), scope)
    for name in ("run_scan", "run_while", "run_branch"):

        def noted(*args: Any, name: str = name, run: Any = scope[name]) -> Any:
            called.add(name)
            return run(*args)

        scope[name] = noted
    backend = scope["OfThePage"]()
    gradient = tk.grad(lambda x: (tk.fori_loop(0, 4, lambda i, y: tk.sin(y) + x * i, x)).sum())
    for f in (loops, gradient):
        expected = np.asarray(f(tk.tensor(X, backend="numpy")))
        np.testing.assert_allclose(tk.jit(f)(tk.tensor(X, backend=backend)), expected, rtol=1e-5)
    assert called == {"run_scan", "run_while", "run_branch"}
