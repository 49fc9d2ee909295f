"""Products of matrices, by tiles and by blocks: right whatever the sizes, the layouts and the dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorken.spec.dtypes import DTYPES
from tensorken.spec.op import OPS
from tensorken_wgpu import contractions
from tensorken_wgpu.blocks import Block
from tensorken_wgpu.folds import rows_of
from tensorken_wgpu.kernels import Cluster, Kernel
from tensorken_wgpu.planning import Plan, Step
from tensorken_wgpu.programs import Ready
from tensorken_wgpu.single import Value, single
from tensorken_wgpu.target import Target
from tensorken_wgpu.tiles import Tile

SOFTWARE, HARDWARE = Target(32, 2**27, True), Target(32, 2**27, False)


def drawn(*shape: int, seed: int = 0, dtype: str = "float32") -> Any:
    rng = np.random.default_rng(seed)
    return (
        rng.integers(-9, 9, shape).astype(dtype)
        if dtype.startswith("int")
        else rng.normal(size=shape).astype(dtype)
    )


def contraction(a: tuple[int, ...], b: tuple[int, ...], axes: tuple[int, ...], dtype: str = "float32") -> Any:
    values = [Value(shape, DTYPES[dtype]) for shape in (a, b)]
    return single(OPS["fused_multiply_add"], values, (axes,))


def written(program: Any, tile: Tile | Block, target: Target = SOFTWARE) -> Kernel:
    (equation,) = program.equations
    outputs = program.outputs
    cluster = Cluster(rows_of(equation), outputs, outputs, {outputs[0]: frozenset(program.inputs)})
    kept = {*program.inputs, *program.outputs}
    return contractions._written(cluster, {program.outputs[0]: equation}, kept, tile, target)


def run(raw: Any, program: Any, found: list[Kernel], a: Any, b: Any) -> Any:
    dtype = program.inputs[0].dtype
    steps = tuple([Step(kernel, ()) for kernel in found])
    ready = Ready(program.inputs, {}, program.outputs, Plan(steps, program.outputs), raw.device, raw.target)
    (y,) = ready([raw.new(x.shape, x.ravel(), dtype) for x in (a, b)])
    return np.asarray(raw.ravel(y)).reshape(y.shape)


def close(x: Any, y: Any, terms: int = 64) -> None:
    np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6 * terms**0.5 * 4)


TILES = [Tile(4, 4, 8), Tile(8, 4, 8), Block(4, 4, 2, 2, 4)]
SIZES = [(16, 16, 16), (17, 19, 23), (36, 6, 18)]
"""Rows, elements of the sum, columns."""
ORDERS = [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1)]
"""In which the axes of rows, of the sum, and of columns stand."""


def check(raw: Any, tile: Tile | Block, sizes: tuple[int, ...], order: tuple[int, ...]) -> None:
    m, k, n = sizes
    a, b = drawn(m, k, 1).transpose(order), drawn(1, k, n, seed=1).transpose(order)
    axes = (order.index(1),)
    program = contraction(a.shape, b.shape, axes)
    found = run(raw, program, [written(program, tile)], a, b)
    close(found, (a.astype("float64") * b).sum(axes).reshape(found.shape), k)


@pytest.mark.parametrize("tile", TILES, ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_tile_is_right_at_every_edge(raw: Any, tile: Tile | Block, sizes: tuple[int, ...]) -> None:
    check(raw, tile, sizes, (0, 1, 2))


@pytest.mark.parametrize("tile", TILES[1:], ids=str)
@pytest.mark.parametrize("order", ORDERS[1:], ids=str)
def test_every_tile_is_right_in_every_layout(raw: Any, tile: Tile | Block, order: tuple[int, ...]) -> None:
    check(raw, tile, (16, 16, 16), order)
