"""Contractions: the kernels of a matrix product and of the values computed from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken.kernels.elements import NotComputedHere
from tensorken.kernels.nests import FusionGroup
from tensorken.kernels.products import Product, product_of
from tensorken.kernels.rows import REDUCTIONS, Rows
from tensorken_core.language.dtypes import DTYPES
from tensorken_wgpu.blocks import Block, BlockKernel
from tensorken_wgpu.dtypes import SIZES, size_of
from tensorken_wgpu.kernels import (
    Choice,
    Division,
    Kernel,
    group_of_parts,
    kernels_of,
    row_kernel,
    with_vectors,
)
from tensorken_wgpu.single_op import Value
from tensorken_wgpu.tiles import MAX_LOOPED, STEP, Tile, TileKernel
from tensorken_wgpu.wgsl import sums

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable
    from tensorken_wgpu.target import Target
    from tensorken_wgpu.vectors import Vector

MAX_ITERATIONS = 2**14
"""The most iterations of an invocation: Mesa's software driver ends loops after 65 535 iterations."""

MIN_WORK = 2**15
"""The fewest multiplications for which tiles are faster than rows."""

SOFTWARE_SIDES = ((2**27, 16), (2**20, 8), (0, 4))
"""In software: the fewest multiplications for which an invocation computes this many rows and columns.

Larger tiles read less, and reads dominate there; but the driver takes 0.1, 0.3 and 1.5 s to compile them.
"""

GPU_TILES: tuple[Tile | Block, ...] = (
    Block(8, 8, 16, 16, 16),
    Block(8, 8, 16, 16, 8),
    Block(8, 8, 8, 8, 16),
    Block(4, 4, 16, 16, 16),
    Tile(8, 8, 64),
    Tile(4, 4, 64),
)
"""The candidates on a GPU, those for the largest results first."""


def kernels(
    group: FusionGroup, producers: Mapping[Variable, Equation], kept: Collection[Variable], target: Target
) -> list[Kernel] | None:
    """The kernels of a fusion group with one contraction, if tiles are better than rows; else None."""
    reductions = [v for v in group.values if producers[v].op.name in REDUCTIONS]
    if len(reductions) != 1 or not all(map(group.is_outer, group.values)):
        return None
    (reduction,) = reductions
    equation = producers[reduction]
    if equation.op.name != "fused_multiply_add":
        return None
    product = product_of(equation)
    if (
        min([product.size(dimension) for dimension in ("rows", "columns", "inner")]) < 4
        or work_of(product) < MIN_WORK
    ):
        return None
    tiles = tiles_of(product, target)
    try:
        if (parts := parts_of(product, tiles[0], target)) > 1:
            partials: Any = Value((parts * group.rows.count,), DTYPES[sums(reduction.dtype.name).dtype])
            contraction_only = replace(group, values=(reduction,), written=(reduction,))
            return [
                _tile_kernel(contraction_only, producers, kept, tiles[0], target, partials, parts),
                row_kernel(
                    group_of_parts(group, parts),
                    producers,
                    kept,
                    Division(1, 1),
                    target,
                    {reduction: partials},
                ),
            ]
        if len(group.values) > 1 and tiles[0].rows * tiles[0].columns > MAX_LOOPED:
            return _contraction_and_rest(group, reduction, producers, kept, tiles[0], target)
        candidates = {str(tile): _tile_kernel(group, producers, kept, tile, target) for tile in tiles}
    except NotComputedHere:
        return None
    first = next(iter(candidates.values()))
    if len(candidates) == 1 or any([len(target.windows(size_of(v))) > 1 for v in _bound(first)]):
        return [first]
    return [replace(first, choice=Choice(_tuning_key(product, reduction), candidates))]


def _tuning_key(product: Product, reduction: Variable) -> str:
    """The key of products for which the same tile is assumed to be the fastest."""
    sizes = [
        f"{dimension} {1 << product.size(dimension).bit_length() - 1}"
        for dimension in ("batch", "rows", "inner", "columns")
    ]
    layout = [f"along {product.last(operand)}" for operand in (0, 1)]
    vectors = [
        f"fours of {dimension}"
        for dimension in ("rows", "inner", "columns")
        if product.size(dimension) % 4 == 0
    ]
    return ", ".join([reduction.dtype.name, *sizes, *layout, *vectors])


def _bound(kernel: Kernel) -> tuple[Variable, ...]:
    return (*kernel.reads, *kernel.writes)


def work_of(product: Product) -> int:
    """The number of multiplications."""
    return prod([axis.size for axis in product.axes])


def tiles_of(product: Product, target: Target) -> list[Tile | Block]:
    """The candidate tiles, the likely fastest first."""
    rows, columns = product.size("rows"), product.size("columns")
    if target.is_software:
        most = next(size for least, size in SOFTWARE_SIDES if work_of(product) >= least)
        return [Tile(_side(rows, most), _side(columns, most), 8)]
    size = SIZES[sums(product.operands[0].dtype.name).dtype]
    possible = [
        tile
        for tile in GPU_TILES
        if _fits(tile, product)
        and (isinstance(tile, Tile) or tile.shared_bytes(size) <= target.workgroup_memory)
    ]
    busy_tiles = [tile for tile in possible if invocations(product, tile) >= target.busy_invocations]
    return [*busy_tiles, *[tile for tile in reversed(possible) if tile not in busy_tiles]]


def _side(size: int, most: int) -> int:
    """The rows or columns of a tile: the most for which few elements at the edge are computed twice."""
    return next((n for n in (16, 8) if n <= min(most, size) and -(-size // n) * n * 4 <= size * 5), 4)


def _fits(tile: Tile | Block, product: Product) -> bool:
    """Whether a tile fits in the result: tiles at the edge are moved back, so each must fit."""
    rows, columns = _sides(tile)
    return rows <= product.size("rows") and columns <= product.size("columns")


def _sides(tile: Tile | Block) -> tuple[int, int]:
    """The rows and columns of a tile or a block."""
    return (
        (tile.rows, tile.columns) if isinstance(tile, Tile) else (tile.sides["rows"], tile.sides["columns"])
    )


def invocations(product: Product, tile: Tile | Block) -> int:
    """The number of invocations."""
    rows, columns = _sides(tile)
    count = product.size("batch") * -(-product.size("rows") // rows) * -(-product.size("columns") // columns)
    return count if isinstance(tile, Tile) else count * tile.workgroup_size


def parts_of(product: Product, tile: Tile | Block, target: Target) -> int:
    """The number of parts of the sum: more than one if there are few tiles, or loops would be too long."""
    iterations = -(-product.size("inner") // STEP)
    busy_tiles = (
        64 if target.is_software else target.busy_invocations // 8
    )  # a tile is much more work than a row
    parts = min(busy_tiles // invocations(product, tile), iterations // 64)
    return max(parts if parts >= 2 else 1, -(-iterations // MAX_ITERATIONS))


def _contraction_and_rest(
    group: FusionGroup,
    reduction: Variable,
    producers: Mapping[Variable, Equation],
    kept: Collection[Variable],
    tile: Tile | Block,
    target: Target,
) -> list[Kernel]:
    """Two kernels: the contraction, and the values computed from it."""
    others = tuple([v for v in group.values if v is not reduction])
    contraction_only = replace(group, values=(reduction,), written=(reduction,))
    rest = replace(
        group,
        rows=Rows((group.rows.count,), ()),
        values=others,
        written=tuple([v for v in group.written if v is not reduction]),
    )
    return [
        _tile_kernel(contraction_only, producers, kept, tile, target),
        *kernels_of(rest, producers, kept, target),
    ]


def _tile_kernel(
    group: FusionGroup,
    producers: Mapping[Variable, Equation],
    kept: Collection[Variable],
    tile: Tile | Block,
    target: Target,
    partials: Variable | None = None,
    parts: int = 1,
) -> Kernel:
    """The kernel, which accesses values in vectors of four where possible.

    Raises:
        ValueError: if the tile is larger than the result.
    """
    (product,) = [product_of(producers[v]) for v in group.values if producers[v].op.name in REDUCTIONS]
    if not _fits(tile, product):
        raise ValueError(f"{tile} is larger than {product.size('rows')} rows of {product.size('columns')}")

    def make_writer(vectors: Mapping[Variable, Vector]) -> TileKernel:
        if isinstance(tile, Block):
            return BlockKernel(group, producers, kept, tile, target, partials, parts, vectors)
        return TileKernel(group, producers, kept, tile, target, partials, parts, vectors)

    return with_vectors(make_writer, [v for v in (*kept, *group.values, partials) if v is not None])
