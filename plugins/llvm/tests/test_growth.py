"""The compilation of large programs takes time in proportion to their size; nothing recurses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorken as tk
from tensorken.programs.passes.pipeline import optimised
from tensorken_llvm.program import Source
from tensorken_numpy.backend import Numpy

NUMPY = Numpy()

Count = Callable[[Callable[[], object]], int]


def zeros(*shape: int) -> Any:
    return tk.zeros(shape, dtype=tk.float32, backend=NUMPY)


def test_a_search_takes_time_in_proportion_to_its_steps(calls: Count) -> None:
    def work(steps: int) -> int:
        program = tk.trace(lambda p, u: tk.searchsorted(p, u).sum())(zeros(2**steps), zeros(100))
        source = Source(optimised(program, NUMPY), NUMPY)
        return calls(lambda: source.text())

    assert work(24) < 4 * work(8)
