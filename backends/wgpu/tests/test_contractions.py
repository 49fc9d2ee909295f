"""Matrix products by tiles and blocks: right for all sizes, layouts, dtypes and fused values."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from tensorken.kernels.nests import FusionGroup
from tensorken.kernels.products import product_of
from tensorken.kernels.rows import rows_of
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_wgpu.execution.planning import Plan, Step
from tensorken_wgpu.execution.programs import LoadedProgram
from tensorken_wgpu.kernels import contractions, tilings
from tensorken_wgpu.kernels.blocks import Block
from tensorken_wgpu.kernels.contractions import kernels
from tensorken_wgpu.kernels.kernel import Kernel
from tensorken_wgpu.kernels.tiles import Tile
from tensorken_wgpu.kernels.tilings import Tiling, tiling_of
from tensorken_wgpu.wgsl.single_op import Value, single
from tensorken_wgpu.wgsl.target import Target

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


def fusion_group(program: Any) -> tuple[FusionGroup, dict[Any, Any], set[Any]]:
    """The fusion group of a program of one op, the producer of its value, and the values in memory."""
    (equation,), outputs = program.equations, program.outputs
    group = FusionGroup(rows_of(equation), outputs, outputs, {outputs[0]: frozenset(program.inputs)})
    return group, {outputs[0]: equation}, {*program.inputs, *outputs}


def tile_kernel(program: Any, tile: Tile | Block, target: Target = SOFTWARE) -> Kernel:
    return contractions._tile_kernel(*fusion_group(program), tile, target)


def run(raw: Any, program: Any, found: list[Kernel], a: Any, b: Any) -> Any:
    dtype = program.inputs[0].dtype
    steps = tuple([Step(kernel, ()) for kernel in found])
    loaded = LoadedProgram(
        program.inputs, {}, program.outputs, Plan(steps, program.outputs), raw.device, raw.target
    )
    (y,) = loaded([raw.new(x.shape, x.ravel(), dtype) for x in (a, b)])
    return np.asarray(raw.ravel(y)).reshape(y.shape)


def close(x: Any, y: Any, terms: int = 64) -> None:
    np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6 * terms**0.5 * 4)


TILES = [Tile(4, 4, 8), Tile(8, 4, 8), Block(4, 4, 2, 2, 4)]
SIZES = [(16, 16, 16), (17, 19, 23), (36, 6, 18)]
"""Rows, elements of the sum, columns."""
ORDERS = [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1)]
"""The order of the axes: rows, sum, columns."""


def check(raw: Any, tile: Tile | Block, sizes: tuple[int, ...], order: tuple[int, ...]) -> None:
    m, k, n = sizes
    a, b = drawn(m, k, 1).transpose(order), drawn(1, k, n, seed=1).transpose(order)
    axes = (order.index(1),)
    program = contraction(a.shape, b.shape, axes)
    found = run(raw, program, [tile_kernel(program, tile)], a, b)
    close(found, (a.astype("float64") * b).sum(axes).reshape(found.shape), k)


@pytest.mark.parametrize("tile", TILES, ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_tile_at_every_edge(raw: Any, tile: Tile | Block, sizes: tuple[int, ...]) -> None:
    check(raw, tile, sizes, (0, 1, 2))


@pytest.mark.parametrize("tile", TILES[1:], ids=str)
@pytest.mark.parametrize("order", ORDERS[1:], ids=str)
def test_every_tile_in_every_layout(raw: Any, tile: Tile | Block, order: tuple[int, ...]) -> None:
    check(raw, tile, (16, 16, 16), order)


@pytest.mark.parametrize("tile", tilings.GPU_TILES, ids=str)
def test_the_tiles_of_gpus(raw: Any, tile: Tile | Block) -> None:
    """At the edges of rows, columns and the sum; with both operands, and with none, along the sum in memory."""
    sides = {"rows": tile.rows, "columns": tile.columns} if isinstance(tile, Tile) else tile.sides
    orders = ORDERS[:1] if isinstance(tile, Tile) else ORDERS[2:]
    for order in orders + ORDERS[:1] * (tile is tilings.GPU_TILES[0]):
        check(raw, tile, (sides["rows"] + 8, 20, sides["columns"] + 12), order)


def test_functions_of_products_at_an_edge_are_rounded(lazy: Any, raw: Any) -> None:
    """Mesa compiles a kernel for the numbers of a uniform that decide its branches, as at the edge of a tile.

    If the number that hides roundings from the compiler is among them, the result has an error of 0.06.
    """
    if "float64" not in raw.capabilities.dtypes:
        pytest.skip(f"{raw.device.name} has no float64")
    x, y = drawn(35, 30), drawn(38, 30, seed=1)
    function = tk.jit(lambda x, y: tk.tanh((x @ y.mT).astype("float64") * 0.2))
    found = np.asarray(function(tk.tensor(x, backend=lazy), tk.tensor(y, backend=lazy)))
    np.testing.assert_allclose(found, np.tanh(x.astype("float64") @ y.T * 0.2), atol=2e-6)


@pytest.mark.parametrize("side", [5, 7, 9, 13, 15])
def test_tiles_at_an_edge_write_nothing_beyond_it(
    raw: Any, side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tile that overlapped the edge would write into the next batch or part."""
    monkeypatch.setattr(tilings, "SOFTWARE_SIDES", ((0, 8),))
    for sizes in ((3, side, 40, 60), (3, 60, 40, side), (1, side, 1030, 36), (1, 36, 1030, side)):
        batch, m, k, n = sizes
        a, b = drawn(batch, m, k, 1), drawn(batch, 1, k, n, seed=1)
        program = contraction(a.shape, b.shape, (2,))
        found = kernels(*fusion_group(program), SOFTWARE)
        assert found is not None
        assert len(found) == (1 if batch > 1 else 2)
        close(run(raw, program, found, a, b).reshape(batch, m, n), a[..., 0].astype("float64") @ b[:, 0], k)


def test_a_tile_larger_than_the_result_is_an_error() -> None:
    program = contraction((7, 64, 1), (1, 64, 20), (1,))
    for tile in (Tile(8, 4, 8), Tile(4, 32, 8), Block(4, 4, 2, 2, 4)):
        with pytest.raises(ValueError, match="larger than 7 rows of 20"):
            tile_kernel(program, tile)


# ---- dtypes and special values -------------------------------------------------------------------------------


@pytest.mark.parametrize("tile", TILES[1:], ids=str)
@pytest.mark.parametrize("dtype", ["int32", "int64", "float16", "float64"])
def test_every_dtype(raw: Any, tile: Tile | Block, dtype: str) -> None:
    if dtype not in raw.capabilities.dtypes:
        pytest.skip(f"the device has no {dtype}")
    a, b = drawn(17, 22, 1, dtype=dtype), drawn(1, 22, 20, seed=1, dtype=dtype)
    program = contraction(a.shape, b.shape, (1,), dtype)
    found = run(raw, program, [tile_kernel(program, tile)], a, b)
    exact = a[:, :, 0].astype("float64") @ b[0].astype("float64")
    tolerance = {"float16": 2e-3, "float64": 1e-14}.get(dtype, 0.0)
    np.testing.assert_allclose(found.reshape(17, 20), exact, rtol=tolerance, atol=10 * tolerance)


@pytest.mark.parametrize("tile", TILES[1:], ids=str)
@pytest.mark.parametrize("special", [math.inf, -math.inf, math.nan])
def test_infinities_and_nan_affect_only_their_row_and_column(
    raw: Any, tile: Tile | Block, special: float
) -> None:
    """Elements read twice at an edge, or after the end of the sum, do not contribute."""
    a, b = drawn(18, 21, 1), drawn(1, 21, 17, seed=1)
    a[17, 20], b[0, 20, 16] = special, 0.0
    a[3], b[0, 2, 5] = 0.0, special
    program = contraction(a.shape, b.shape, (1,))
    found = run(raw, program, [tile_kernel(program, tile)], a, b).reshape(18, 17)
    with np.errstate(invalid="ignore"):
        expected = a[:, :, 0] @ b[0]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))
    assert np.isfinite(np.delete(np.delete(found, [17], 0), [5], 1)).all()


def test_sums_start_from_positive_zero(raw: Any) -> None:
    a, b = np.full((16, 16, 1), -0.0, np.float32), np.ones((1, 16, 16), np.float32)
    program = contraction(a.shape, b.shape, (1,))
    for tile in TILES:
        assert not np.signbit(run(raw, program, [tile_kernel(program, tile)], a, b)).any()


def test_long_sums_run_to_the_end(raw: Any) -> None:
    length = 4 * tilings.MAX_ITERATIONS
    a, b = np.ones((4, length, 1), np.int32), np.ones((1, length, 4), np.int32)
    program = contraction(a.shape, b.shape, (1,), "int32")
    assert (run(raw, program, [tile_kernel(program, Tile(4, 4, 8))], a, b) == length).all()


# ---- axes ----------------------------------------------------------------------------------------------------

AXES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "a batch": ((3, 16, 20, 1), (3, 1, 20, 16), (2,)),
    "a batch inside": ((16, 20, 3, 1), (1, 20, 3, 16), (1,)),
    "two batches apart": ((2, 16, 20, 3, 1), (2, 1, 20, 3, 16), (2,)),
    "rows of two axes": ((2, 3, 8, 20, 1), (2, 1, 1, 20, 16), (3,)),
    "rows of two axes apart": ((6, 20, 4, 1), (1, 20, 1, 16), (1,)),
    "columns first": ((1, 20, 16), (24, 20, 1), (1,)),
    "columns of two axes apart": ((1, 16, 1, 20), (6, 1, 4, 20), (3,)),
    "sums along two axes": ((16, 5, 1, 4), (1, 5, 20, 4), (1, 3)),
    "sums along an axis that one operand has": ((16, 5, 1, 4), (1, 1, 20, 4), (1, 3)),
    "axes of one element": ((1, 16, 1, 20, 1), (1, 1, 20, 20, 1), (3,)),
}


@pytest.mark.parametrize("tile", [Tile(4, 4, 8), Block(4, 4, 2, 2, 4)], ids=str)
@pytest.mark.parametrize("name", AXES)
def test_axes_of_every_dimension_in_any_order(raw: Any, tile: Tile | Block, name: str) -> None:
    first, second, axes = AXES[name]
    a, b = drawn(*first), drawn(*second, seed=1)
    program = contraction(first, second, axes)
    found = run(raw, program, [tile_kernel(program, tile)], a, b)
    close(found, (a.astype("float64") * b).sum(axes).reshape(found.shape))


def test_adjacent_axes_are_merged() -> None:
    (equation,) = contraction((2, 3, 8, 20, 1), (2, 1, 1, 20, 16), (3,)).equations
    product = product_of(equation)
    assert [(axis.dimension, axis.size) for axis in product.axes] == [
        ("batch", 2),
        ("rows", 24),
        ("inner", 20),
        ("columns", 16),
    ]
    (equation,) = contraction((1, 20, 16), (24, 20, 1), (1,)).equations
    assert [axis.dimension for axis in product_of(equation).axes] == ["rows", "inner", "columns"]
    assert product_of(equation).operands == equation.operands[::-1]


# ---- which tiles there are -----------------------------------------------------------------------------------


def tiling(*sizes: int, target: Target = SOFTWARE) -> Tiling:
    """Of rows, elements of the sum and columns, after a batch if there is one."""
    *batch, m, k, n = sizes
    (equation,) = contraction((*batch, m, k, 1), (*batch, 1, k, n), (len(batch) + 1,)).equations
    return tiling_of(product_of(equation), target)


def tiles(*sizes: int, target: Target = SOFTWARE) -> list[Tile | Block]:
    return [*tiling(*sizes, target=target).tiles]


def test_larger_products_have_larger_tiles_in_software() -> None:
    assert tiles(64, 64, 64) == [Tile(4, 4, 8)]
    assert tiles(256, 256, 256) == [Tile(8, 8, 8)]
    assert tiles(512, 512, 512) == [Tile(16, 16, 8)]
    assert tiles(9, 4096, 256) == [Tile(4, 8, 8)]


@pytest.mark.parametrize("inner", [64, 2**16, 2**24])
def test_no_tile_is_larger_than_the_result(inner: int) -> None:
    for rows in range(4, 40):
        for columns in range(4, 40):
            (tile,) = tiles(rows, inner, columns)
            assert isinstance(tile, Tile)
            assert tile.rows <= rows
            assert tile.columns <= columns


@pytest.mark.parametrize("sizes", [(4, 4096, 4096), (64, 64, 64), (512, 512, 512), (4096, 64, 130)], ids=str)
def test_candidate_tiles_of_a_gpu_are_few_and_fit(sizes: tuple[int, ...]) -> None:
    found = tiles(*sizes, target=HARDWARE)
    assert 1 <= len(found) <= 6
    assert len(set(map(str, found))) == len(found)
    for tile in found:
        sides = {"rows": tile.rows, "columns": tile.columns} if isinstance(tile, Tile) else tile.sides
        assert sides["rows"] <= sizes[0]
        assert sides["columns"] <= sizes[2]


@pytest.mark.parametrize("block", [tile for tile in tilings.GPU_TILES if isinstance(tile, Block)], ids=str)
def test_blocks_are_divided_evenly_and_within_webgpus_limits(block: Block) -> None:
    """Units of an operand, vectors or squares, and invocations: one number is a multiple of the other."""
    for side in block.sides.values():
        for units in (side * block.depth // 4, side * block.depth // 16):
            assert units % block.workgroup_size == 0 or block.workgroup_size % units == 0
    assert block.workgroup_size <= 256
    assert block.depth % 4 == 0 and block.columns % 4 == 0 and block.rows in (4, 8)
    for lines in (block.down * block.rows // 4, block.across):  # an exclusive or moves vectors within them
        assert lines & (lines - 1) == 0 and lines > 2 * (block.depth // 4 - 1)
    assert block.shared_bytes(4) <= 2**15


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("block", [tile for tile in tilings.GPU_TILES if isinstance(tile, Block)], ids=str)
def test_blocks_access_workgroup_memory_in_whole_vectors(block: Block, order: tuple[int, ...]) -> None:
    """For each element of the sum, an invocation reads a vector for every four of its rows and of its columns, and
    there is one barrier for each slice.
    """
    sizes = [(256, 256, 1), (1, 256, 256)]
    a, b = [tuple([shape[i] for i in order]) for shape in sizes]
    text = tile_kernel(contraction(a, b, (order.index(1),)), block, HARDWARE).template
    loop = text[text.index("for (var") :]
    reads = re.findall(r"let \w+ = shared_\w+\[[^\]]*\];", loop)
    stores = re.findall(r"^ *shared_\w+\[[^\]]*\] = ", loop, re.MULTILINE)
    assert len(reads) == block.depth * (block.rows + block.columns) // 4
    assert len(reads) + len(stores) == loop.count("shared_")
    assert loop.count("workgroupBarrier") == 1
    assert loop.count("fma(") == block.depth * block.rows * block.columns // 4


def test_blocks_that_need_more_workgroup_memory_than_there_is_are_no_candidates() -> None:
    for memory in (2**14, 2**15, 2**16):
        target = Target(32, 2**27, False, workgroup_memory=memory)
        blocks = [tile for tile in tiles(4096, 4096, 4096, target=target) if isinstance(tile, Block)]
        assert max([block.shared_bytes(4) for block in blocks]) == min(memory, 2**15)


def test_sums_are_divided_into_parts_if_tiles_are_few() -> None:
    assert tiling(512, 512, 512).parts == 1
    assert tiling(8, 8192, 8).parts > 1
    assert tiling(256, 4 * tilings.MAX_ITERATIONS + 4, 256).parts == 2


def test_sums_have_the_same_bits_whichever_tile_adds_them(raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also sums in parts, the last of which is short, and one of which is empty."""
    m, k, n = 33, 1030, 34
    a, b = drawn(m, k, 1), drawn(1, k, n, seed=1)
    program = contraction(a.shape, b.shape, (1,))
    expected = a[:, :, 0].astype("float64") @ b[0]
    for parts in (1, 4, 30):
        results = set()
        for tile in (Tile(4, 4, 8), Block(4, 4, 2, 2, 4), Block(4, 4, 4, 4, 8), Block(4, 4, 8, 8, 16)):
            monkeypatch.setattr(contractions, "tiling_of", lambda *_, t=tile, n=parts: Tiling((t,), n))
            found = kernels(*fusion_group(program), HARDWARE)
            assert found is not None
            assert len(found) == 1 + (parts > 1)
            result = run(raw, program, found, a, b).reshape(m, n)
            close(result, expected, k)
            results.add(result.tobytes())
        assert len(results) == 1


WORKGROUPS = [  # sizes, whether a GPU divides the sum, the fewest workgroups, those of 256 invocations counting as one
    ((64, 2**16, 64), True, 100),
    ((784, 65536, 128), True, 100),
    ((8, 4096, 4096), True, 100),
    ((512, 4096, 512), True, 100),
    ((512, 512, 512), False, 50),
    ((4096, 4096, 4096), False, 1000),
    ((4096, 64, 4096), False, 1000),
    ((96, 256, 64, 256), False, 300),
    ((4, 128, 8192, 64), True, 100),
    ((64, 128, 64), False, 1),
]


@each_of(("sizes", "is_divided", "least"), WORKGROUPS)
def test_a_gpu_has_enough_workgroups(sizes: tuple[int, ...], is_divided: bool, least: int) -> None:
    """Sums are divided where they are long and tiles are few, and nowhere else; partial sums stay small."""
    target = replace(HARDWARE, workgroup_memory=2**15)
    found = tiling(*sizes, target=target)
    assert (found.parts > 1) == is_divided
    *batch, m, k, n = sizes
    (equation,) = contraction((*batch, m, k, 1), (*batch, 1, k, n), (len(batch) + 1,)).equations
    first = found.tiles[0]
    assert tilings.invocations(product_of(equation), first) * found.parts >= 256 * least
    assert 4 * found.parts * math.prod([*batch, m, n]) <= tilings.MAX_PARTIAL_BYTES
    assert found.parts * tilings.MIN_PART <= k or found.parts == 1
    if min(m, n) >= 16 and max(m, n) >= 64:
        assert isinstance(first, Block)


# ---- in programs ---------------------------------------------------------------------------------------------


def adam(w: Any, m: Any, v: Any, x: Any, y: Any) -> Any:
    g = x.T @ y
    m = 0.9 * m + 0.1 * g
    v = 0.99 * v + 0.01 * g * g
    return w - 0.1 * m / (tk.sqrt(v) + 1e-6), m, v


PROGRAMS: dict[str, tuple[Any, list[tuple[int, ...]], int]] = {
    "a layer": (lambda x, w, b: tk.maximum(x @ w + b, 0.0), [(40, 33), (33, 44), (44,)], 1),
    "a layer with fused operands": (lambda x, w, y: tk.tanh(x @ w) + y, [(40, 33), (33, 44), (40, 44)], 1),
    "a layer with two results": (lambda x, w: (x @ w, tk.exp(x @ w)), [(40, 36), (36, 48)], 1),
    "an update": (adam, [(36, 40), (36, 40), (36, 40), (64, 36), (64, 40)], 1),
    "a product of moved operands": (lambda x, w: x[::-1, 1:] @ w.T[1:, 3:], [(40, 34), (51, 34)], 1),
    "attention": (
        lambda q, k: q.transpose((1, 0, 2)) @ k.transpose((1, 2, 0)),
        [(24, 4, 20), (28, 4, 20)],
        1,
    ),
    "a result in another order": (lambda x, w: (x @ w).T * 2.0, [(40, 36), (36, 48)], 1),
    "few results of long sums": (lambda x, w: tk.tanh(x @ w / 50.0), [(8, 3001), (3001, 12)], 2),
    "a large product with fused results": (
        lambda x, w, b: tk.tanh(x @ w / 90.0) + b,
        [(512, 520), (520, 512), (512,)],
        2,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_computed_from_a_product_are_fused(lazy: Any, device: Any, name: str) -> None:
    function, shapes, count = PROGRAMS[name]
    arrays = [abs(drawn(*shape, seed=i)) for i, shape in enumerate(shapes)]
    xs = [tk.tensor(x, backend=lazy) for x in arrays]
    compiled = tk.jit(function)
    results = compiled(*xs)
    results = results if isinstance(results, tuple) else (results,)
    for result in results:
        result.realize()
    before = device.statistics["kernels"]
    again = compiled(*xs)
    again = again if isinstance(again, tuple) else (again,)
    found = [np.asarray(result) for result in again]
    if device.is_software:
        assert device.statistics["kernels"] - before == count
    expected = function(*[tk.tensor(x, backend="numpy") for x in arrays])
    for result, other in zip(found, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(result, np.asarray(other), rtol=2e-5, atol=1e-5)


def test_plans_for_a_gpu_are_right_in_software(raw: Any) -> None:
    """Parts of the sum, and then their sum."""
    a, b = drawn(20, 1030, 1), drawn(1, 1030, 18, seed=1)
    program = contraction(a.shape, b.shape, (1,))
    found = kernels(*fusion_group(program), HARDWARE)
    assert found is not None
    assert len(found) == 2
    close(run(raw, program, found, a, b).reshape(20, 18), a[:, :, 0].astype("float64") @ b[0], 1030)


@pytest.mark.parametrize(
    ("first", "second"), [((1, 4096, 1), (1, 4096, 64)), ((16, 16, 1), (1, 16, 16)), ((64, 0, 1), (1, 0, 64))]
)
def test_small_products_and_vectors_use_rows(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    program = contraction(first, second, (1,))
    for target in (SOFTWARE, HARDWARE):
        assert kernels(*fusion_group(program), target) is None
