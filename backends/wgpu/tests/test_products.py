"""Matrix products as a GPU computes them: every kind of shape and layout, against numpy in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from tensorken.programs.passes.pipeline import optimised
from tensorken_wgpu.backend import Wgpu
from tensorken_wgpu.execution import tuning
from tensorken_wgpu.execution.planning import plan


@dataclass(frozen=True)
class Case:
    """A function with a product of two matrices, or of batches of them.

    Attributes:
        shapes: of its arguments.
        kernels: their number: two if the sum is divided into parts.
        has_blocks: whether workgroups share the operands.
        function: of the arguments, as numpy computes it too.
    """

    shapes: tuple[tuple[int, ...], ...]
    kernels: int = 1
    has_blocks: bool = True
    function: Callable[..., Any] = lambda a, b: a @ b


def transposed(x: Any) -> Any:
    return x.swapaxes(-1, -2)


CASES = {
    "one number": Case(((1, 300), (300, 1)), has_blocks=False),
    "a vector": Case(((300,), (300, 40)), has_blocks=False),
    "few rows of long sums": Case(((5, 4100), (4100, 9)), 2, has_blocks=False),
    "ops after it": Case(((33, 70), (70, 37), (37,)), function=lambda a, b, c: abs(a @ b + c) * 0.5),
    "ops before it": Case(((36, 72), (40, 72)), function=lambda a, b: (a * 2.0) @ transposed(b + 1.0)),
    "a batch": Case(((3, 20, 36), (3, 33, 20)), function=lambda a, b: transposed(a) @ transposed(b)),
    "batches of different axes": Case(((2, 1, 33, 20), (3, 20, 34))),
    "long sums": Case(
        ((36, 4100), (4100, 40), (40,)), 2, function=lambda a, b, c: abs((a * 2.0) @ b + c) - 1.0
    ),
    "long sums of a batch": Case(((2, 33, 2050), (2, 2050, 35)), 2),
    "the gradient of a weight": Case(((5000, 36), (5000, 40)), 2, function=lambda a, b: transposed(a) @ b),
}
"""Sizes of one and of a few elements, and at edges of blocks; numbers of elements that are multiples of 4, and not."""


@each_of("name", CASES)
def test_products_of_a_gpu(name: str, raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    monkeypatch.setenv(tuning.VARIABLE, "off")
    backend = Wgpu(raw.device)
    backend.target = replace(raw.target, is_software=False)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in case.shapes]
    expected = case.function(*[x.astype(np.float64) for x in arrays])
    sizes = case.function(*[abs(x.astype(np.float64)) for x in arrays])
    lazy = tk.Lazy(backend)
    given = [tk.tensor(x, backend=lazy) for x in arrays]
    found = np.asarray(tk.jit(case.function)(*given))
    assert found.shape == expected.shape
    assert (abs(found - expected) <= 4e-6 * abs(sizes) + 1e-6).all()
    steps = plan(optimised(tk.trace(case.function)(*given), backend), backend.target).steps
    assert len(steps) == case.kernels
    assert ("shared_rows" in steps[0].kernel.template) == case.has_blocks
