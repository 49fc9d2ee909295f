"""Vectors: neighbours that are read and written at once are what they are one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.language.dtypes import DTYPES
from tensorken_wgpu.folds import Rows
from tensorken_wgpu.kernels import MANY, TURNS, division
from tensorken_wgpu.planning import plan
from tensorken_wgpu.target import Target

SOFTWARE, HARDWARE = Target(32, 2**27, True), Target(32, 2**27, False)


def some(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    """Numbers whose bits are drawn, of floats those that are numbers."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    numbers = rng.integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8).view(dtype)[..., 0]
    return np.where(np.isfinite(numbers), numbers, numbers.dtype.type(1))


def chosen(mask: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Some numbers of x and some of y, and whether they are the same."""
    return tk.where(mask, x, y), x == y


def texts(function: Any, raw: Any, target: Target, *shapes: tuple[int, ...]) -> list[str]:
    """The kernels of a function of arrays of float32, as they would be written for a target."""
    program = tk.trace(function)(*[tk.zeros(shape, backend=raw) for shape in shapes])
    return [step.kernel.template for step in plan(optimised(program, raw), target).steps]


@pytest.mark.parametrize("more", [0, 4, 1])
@pytest.mark.parametrize("dtype", list(DTYPES))
def test_elements_of_any_dtype_keep_their_bits(lazy: Any, raw: Any, dtype: str, more: int) -> None:
    """Eight at once, four, and one."""
    if dtype not in raw.capabilities.dtypes:
        pytest.skip(f"{raw.device.name} has no {dtype}")
    x, y = [some(dtype, (MANY + more,), seed) for seed in (0, 1)]
    y[::3] = x[::3]
    mask = some("bool", x.shape, 2)
    found = tk.jit(chosen)(*[tk.tensor(a, backend=lazy) for a in (mask, x, y)])
    picked = np.asarray(found[0])
    assert picked.tobytes() == np.where(mask, x, y).tobytes()
    np.testing.assert_array_equal(np.asarray(found[1]), x == y)


def test_what_lies_otherwise_is_read_in_smaller_vectors(lazy: Any) -> None:
    """One kernel with rows of twelve again and again, a transposed array, one number a row, and one turned around."""
    rng = np.random.default_rng(0)
    shapes = (2048, 12), (12,), (12, 2048), (2048, 1), (2048, 12)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]

    def function(xp: Any, x: Any, row: Any, turned: Any, column: Any, backwards: Any) -> Any:
        return (x + row) * turned.T - column + xp.flip(backwards, 0)

    found = tk.jit(lambda *xs: function(tk, *xs))(*[tk.tensor(x, backend=lazy) for x in arrays])
    np.testing.assert_allclose(np.asarray(found), function(np, *arrays), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("in_pairs", "kind"), [(True, "vec4<u64>"), (False, "vec4<f32>")])
def test_neighbours_are_read_and_written_as_is_best_for_the_device(
    raw: Any, in_pairs: bool, kind: str
) -> None:
    target = replace(raw.target, in_pairs=in_pairs)
    (chain,) = texts(lambda x: tk.exp(x) + 1.0, raw, target, (MANY,))
    assert [line.count(f"array<{kind}>") for line in chain.splitlines() if "var<storage" in line] == [1, 1]
    rows, *_ = texts(lambda x: x.sum(1), raw, target, (512, 512))
    assert rows.count(f"array<{kind}>") == 1


def test_what_calls_long_functions_is_written_for_four(raw: Any) -> None:
    """A sine of eight elements takes a driver in software half a second, and is no quicker then."""
    (waves,) = texts(tk.sin, raw, replace(raw.target, in_pairs=True), (MANY,))
    assert waves.count("array<vec4<f32>>") == 2


def test_long_sums_in_software_are_folded_by_invocations_of_their_own() -> None:
    rows = Rows((10**7,), (0,))
    assert division(rows, HARDWARE).together == 256
    alone = division(rows, SOFTWARE)
    assert alone.together == 1
    assert alone.parts * TURNS >= 10**7


@pytest.mark.parametrize("length", [2**20, 2**20 + 4, 10**6 + 3])
def test_a_long_sum_is_right(lazy: Any, length: int) -> None:
    x = np.arange(length, dtype=np.int32) * 7919
    found = tk.tensor(x, backend=lazy).sum()
    assert found.item() == x.sum(dtype=np.int32)
