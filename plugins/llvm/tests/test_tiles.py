"""Kernels that read values across the order in which they write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from plugins.llvm.tests.test_programs import NUMPY, MachineProgram, compiled, traced
from tensorken_llvm.tiles import TILE

COPY = f"i32 {TILE * TILE}, align 64"
"""The memory of a tile, in LLVM's text form."""


def code_of(f: Callable[..., Any], *arrays: Any) -> MachineProgram:
    """The code of a function that equals numpy's executor."""
    program = traced(f, *arrays)
    code = compiled(program, NUMPY)
    assert isinstance(code, MachineProgram)
    with np.errstate(all="ignore"):
        for y, z in zip(code(arrays), program.replay(NUMPY, arrays), strict=True):
            np.testing.assert_array_equal(y, z)
    return code


def copies(code: MachineProgram) -> int:
    """The number of values that are copied within tiles."""
    return code.source().text().count(COPY)


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    return np.random.default_rng(0).integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(128, 128), (131, 257), (1000, 17)])
def test_every_dtype_is_transposed(shape: tuple[int, int], dtype: str) -> None:
    code = code_of(
        lambda x, y: tk.where(y == x.T, x.T, y), numbers(shape, dtype), numbers(shape[::-1], dtype)
    )
    assert copies(code) == 1


@pytest.mark.parametrize(
    "order", [(2, 0, 1), (2, 1, 0), (0, 2, 1, 3), (0, 3, 2, 1), (3, 2, 1, 0), (1, 0, 2, 3)]
)
def test_several_axes_are_permuted(order: tuple[int, ...]) -> None:
    x = numbers((24, 33, 28, 37)[: len(order)], "float32")
    is_across = order[-1] != len(order) - 1
    assert (copies(code_of(lambda x: x.transpose(*order) * 2.0, x)) == 1) is is_across


def test_values_in_both_orders_are_copied_or_read() -> None:
    x, y = numbers((150, 150), "float32"), numbers((150, 150), "float32")
    assert copies(code_of(lambda x, y: x + x.T + y.T, x, y)) == 2
    assert copies(code_of(lambda x, y: (x + x.T + y.T + (y * x).T + x[::-1].T, x - 1.0), x, y)) == 2


def test_elements_within_bounds_are_not_copied() -> None:
    """Outside the bounds there is no memory to copy."""
    x = numbers((150, 150), "float32")
    assert copies(code_of(lambda x: tk.pad(x, ((3, 4), (5, 6))).T * 2.0, x)) == 0


@pytest.mark.parametrize("f", [lambda x: x * 2.0, lambda x: x.T.sum(1), lambda x: x[:, 0] + x[0]])
def test_other_kernels_have_no_tiles(f: Callable[..., Any]) -> None:
    assert copies(code_of(f, numbers((160, 160), "int32"))) == 0
