"""Contractions: which kernels compute a product of matrices, and what is computed from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken_core.language.dtypes import DTYPES
from tensorken_wgpu.blocks import Block, BlockKernel
from tensorken_wgpu.dtypes import size_of
from tensorken_wgpu.folds import Rows
from tensorken_wgpu.kernels import (
    Choice,
    Cluster,
    Division,
    Kernel,
    kernels_of,
    of_parts,
    with_vectors,
    written,
)
from tensorken_wgpu.products import Product, product_of
from tensorken_wgpu.single import Value
from tensorken_wgpu.tiles import LOOPED, STEP, Tile, TileKernel
from tensorken_wgpu.wgsl import sums
from tensorken_wgpu.writer import FOLDS, NotHere

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable
    from tensorken_wgpu.target import Target
    from tensorken_wgpu.vectors import Vector

MOST = 2**14
"""How often an invocation goes through its loop at most: Mesa's driver in software ends loops after 65 535 turns."""

SMALLEST = 2**15
"""How many products there must be that tiles pay."""

SOFTWARE = ((2**27, 16), (2**20, 8), (0, 4))
"""From how many products on an invocation has how many rows and columns where a CPU plays the GPU.

Larger tiles read less, and reading is what takes long there; but the driver takes 0.1, 0.3 and 1.5 s to compile them.
"""

HARDWARE: tuple[Tile | Block, ...] = (
    Block(8, 8, 16, 16, 8),
    Block(8, 8, 8, 8, 8),
    Block(4, 4, 16, 16, 16),
    Tile(8, 8, 64),
    Tile(4, 4, 64),
)
"""What may be best on a GPU, from what suits the largest results to what suits the smallest."""


def kernels(
    cluster: Cluster, makers: Mapping[Variable, Equation], kept: Collection[Variable], target: Target
) -> list[Kernel] | None:
    """What computes a cluster of which one value is a contraction, if tiles are better than rows; else None."""
    folds = [v for v in cluster.values if makers[v].op.name in FOLDS]
    if len(folds) != 1 or not all(map(cluster.is_outer, cluster.values)):
        return None
    (fold,) = folds
    equation = makers[fold]
    if equation.op.name != "fused_multiply_add":
        return None
    product = product_of(equation)
    if min([product.size(role) for role in ("rows", "columns", "inner")]) < 4 or work_of(product) < SMALLEST:
        return None
    tiles = tiles_of(product, target)
    try:
        if (parts := parts_of(product, tiles[0], target)) > 1:
            between: Any = Value((parts * cluster.rows.count,), DTYPES[sums(fold.dtype.name).dtype])
            alone = replace(cluster, values=(fold,), written=(fold,))
            return [
                _written(alone, makers, kept, tiles[0], target, between, parts),
                written(of_parts(cluster, parts), makers, kept, Division(1, 1), target, {fold: between}),
            ]
        if len(cluster.values) > 1 and tiles[0].rows * tiles[0].columns > LOOPED:
            return _apart(cluster, fold, makers, kept, tiles[0], target)
        found = {str(tile): _written(cluster, makers, kept, tile, target) for tile in tiles}
    except NotHere:
        return None
    likeliest = next(iter(found.values()))
    if len(found) == 1 or any([len(target.windows(size_of(v))) > 1 for v in _bound(likeliest)]):
        return [likeliest]
    return [replace(likeliest, choice=Choice(_alike(product, fold), found))]


def _alike(product: Product, fold: Variable) -> str:
    """What products have in common for which the same tile is taken to be the fastest."""
    sizes = [
        f"{role} {1 << product.size(role).bit_length() - 1}" for role in ("batch", "rows", "inner", "columns")
    ]
    layout = [f"along {product.last(operand)}" for operand in (0, 1)]
    vectors = [f"fours of {role}" for role in ("rows", "inner", "columns") if product.size(role) % 4 == 0]
    return ", ".join([fold.dtype.name, *sizes, *layout, *vectors])


def _bound(kernel: Kernel) -> tuple[Variable, ...]:
    return (*kernel.reads, *kernel.writes)


def work_of(product: Product) -> int:
    """How many numbers are multiplied."""
    return prod([axis.size for axis in product.axes])


def tiles_of(product: Product, target: Target) -> list[Tile | Block]:
    """The tiles among which the best one is, the likeliest first."""
    rows, columns = product.size("rows"), product.size("columns")
    if target.in_software:
        most = next(size for least, size in SOFTWARE if work_of(product) >= least)
        return [Tile(_side(rows, most), _side(columns, most), 8)]
    possible = [tile for tile in HARDWARE if _fits(tile, product)]
    busy = [tile for tile in possible if invocations(product, tile) >= target.enough]
    return [*busy, *[tile for tile in reversed(possible) if tile not in busy]]


def _side(size: int, most: int) -> int:
    """The rows of a tile, or the columns: as many as there may be without computing much twice at the edge."""
    return next((n for n in (16, 8) if n <= min(most, size) and -(-size // n) * n * 4 <= size * 5), 4)


def _fits(tile: Tile | Block, product: Product) -> bool:
    """Whether one lies within the result, as it must: at the edge it is moved back."""
    rows, columns = _sides(tile)
    return rows <= product.size("rows") and columns <= product.size("columns")


def _sides(tile: Tile | Block) -> tuple[int, int]:
    """How many rows and columns one has that cannot be divided."""
    return (
        (tile.rows, tile.columns) if isinstance(tile, Tile) else (tile.sides["rows"], tile.sides["columns"])
    )


def invocations(product: Product, tile: Tile | Block) -> int:
    """How many invocations there are."""
    rows, columns = _sides(tile)
    count = product.size("batch") * -(-product.size("rows") // rows) * -(-product.size("columns") // columns)
    return count if isinstance(tile, Tile) else count * tile.together


def parts_of(product: Product, tile: Tile | Block, target: Target) -> int:
    """How many parts the sum is divided into: more than one if tiles are few, or loops would be too long."""
    turns = -(-product.size("inner") // STEP)
    busy = 64 if target.in_software else target.enough // 8  # a tile is far more work than a row
    few = min(busy // invocations(product, tile), turns // 64)
    return max(few if few >= 2 else 1, -(-turns // MOST))


def _apart(
    cluster: Cluster,
    fold: Variable,
    makers: Mapping[Variable, Equation],
    kept: Collection[Variable],
    tile: Tile | Block,
    target: Target,
) -> list[Kernel]:
    """Two kernels: the contraction, and what is computed from it."""
    others = tuple([v for v in cluster.values if v is not fold])
    alone = replace(cluster, values=(fold,), written=(fold,))
    rest = replace(
        cluster,
        rows=Rows((cluster.rows.count,), ()),
        values=others,
        written=tuple([v for v in cluster.written if v is not fold]),
    )
    return [_written(alone, makers, kept, tile, target), *kernels_of(rest, makers, kept, target)]


def _written(
    cluster: Cluster,
    makers: Mapping[Variable, Equation],
    kept: Collection[Variable],
    tile: Tile | Block,
    target: Target,
    between: Variable | None = None,
    parts: int = 1,
) -> Kernel:
    """The kernel, with all vectors of four that are possible.

    Raises:
        ValueError: if the tile is larger than the result.
    """
    (product,) = [product_of(makers[v]) for v in cluster.values if makers[v].op.name in FOLDS]
    if not _fits(tile, product):
        raise ValueError(f"{tile} is larger than {product.size('rows')} rows of {product.size('columns')}")

    def writing(vectors: Mapping[Variable, Vector]) -> TileKernel:
        if isinstance(tile, Block):
            return BlockKernel(cluster, makers, kept, tile, target, between, parts, vectors)
        return TileKernel(cluster, makers, kept, tile, target, between, parts, vectors)

    return with_vectors(writing, [v for v in (*kept, *cluster.values, between) if v is not None])
