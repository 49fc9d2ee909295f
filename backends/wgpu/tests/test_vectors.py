"""Vectors: elements that are read and written together equal elements accessed one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from backends.wgpu.tests.subnormal_numbers import without_subnormals
from tensorken.kernels.rows import Rows
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.language.dtypes import DTYPES
from tensorken_wgpu.execution.planning import plan
from tensorken_wgpu.kernels.kernel import MAX_ITERATIONS, MIN_VECTORISED, divide_rows
from tensorken_wgpu.wgsl.target import Target

SOFTWARE, HARDWARE = Target(32, 2**27, True), Target(32, 2**27, False)


def some(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    """Random bits; floats without infinities and NaN."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    numbers = rng.integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8).view(dtype)[..., 0]
    return np.where(np.isfinite(numbers), numbers, numbers.dtype.type(1))


def chosen(mask: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Some numbers of x and some of y, and whether they are equal."""
    return tk.where(mask, x, y), x == y


def texts(function: Any, raw: Any, target: Target, *shapes: tuple[int, ...]) -> list[str]:
    """The kernels of a function of float32 arrays, written for a target."""
    program = tk.trace(function)(*[tk.zeros(shape, backend=raw) for shape in shapes])
    return [step.kernel.template for step in plan(optimised(program, raw), target).steps]


@pytest.mark.parametrize("more", [0, 4, 1])
@pytest.mark.parametrize("dtype", list(DTYPES))
def test_elements_of_any_dtype_keep_their_bits(lazy: Any, raw: Any, dtype: str, more: int) -> None:
    """In vectors of eight, of four, and one by one."""
    if dtype not in raw.capabilities.dtypes:
        pytest.skip(f"{raw.device.name} has no {dtype}")
    x, y = [some(dtype, (MIN_VECTORISED + more,), seed) for seed in (0, 1)]
    y[::3] = x[::3]
    mask = some("bool", x.shape, 2)
    found = tk.jit(chosen)(*[tk.tensor(a, backend=lazy) for a in (mask, x, y)])
    picked = np.asarray(found[0])
    assert picked.tobytes() == np.where(mask, x, y).tobytes()
    a, b = (without_subnormals(numbers, raw) for numbers in (x, y))
    np.testing.assert_array_equal(np.asarray(found[1]), a == b)


def test_unaligned_operands_are_read_in_smaller_vectors(lazy: Any) -> None:
    """One kernel with a repeated row of twelve, a transposed array, one number per row, and a flipped array."""
    rng = np.random.default_rng(0)
    shapes = (2048, 12), (12,), (12, 2048), (2048, 1), (2048, 12)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]

    def function(xp: Any, x: Any, row: Any, turned: Any, column: Any, backwards: Any) -> Any:
        return (x + row) * turned.T - column + xp.flip(backwards, 0)

    found = tk.jit(lambda *xs: function(tk, *xs))(*[tk.tensor(x, backend=lazy) for x in arrays])
    np.testing.assert_allclose(np.asarray(found), function(np, *arrays), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("fast_64_bit", "type_name"), [(True, "vec4<u64>"), (False, "vec4<f32>")])
def test_the_vector_size_depends_on_the_device(raw: Any, fast_64_bit: bool, type_name: str) -> None:
    target = replace(raw.target, is_software=True, has_subgroups=False, fast_64_bit=fast_64_bit)
    (chain,) = texts(lambda x: tk.exp(x) + 1.0, raw, target, (MIN_VECTORISED,))
    assert [line.count(f"array<{type_name}>") for line in chain.splitlines() if "var<storage" in line] == [
        1,
        1,
    ]
    rows, *_ = texts(lambda x: x.sum(1), raw, target, (512, 512))
    assert rows.count(f"array<{type_name}>") == 1


def test_long_functions_are_computed_in_vectors_of_four(raw: Any) -> None:
    """A sine of eight elements takes a software driver half a second to compile, and is no faster."""
    (waves,) = texts(tk.sin, raw, replace(raw.target, fast_64_bit=True), (MIN_VECTORISED,))
    assert waves.count("array<vec4<f32>>") == 2


def test_in_software_each_invocation_reduces_its_own_part() -> None:
    rows = Rows((10**7,), (0,))
    assert divide_rows(rows, HARDWARE).invocations == 256
    in_software = divide_rows(rows, SOFTWARE)
    assert in_software.invocations == 1
    assert in_software.parts * MAX_ITERATIONS >= 10**7


@pytest.mark.parametrize("length", [2**20, 2**20 + 4, 10**6 + 3])
def test_a_long_sum_is_right(lazy: Any, length: int) -> None:
    x = np.arange(length, dtype=np.int32) * 7919
    found = tk.tensor(x, backend=lazy).sum()
    assert found.item() == x.sum(dtype=np.int32)
