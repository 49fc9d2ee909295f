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
from tensorken_wgpu.kernels.blocks import Block, BlockKernel
from tensorken_wgpu.kernels.kernel import (
    Choice,
    Kernel,
    divide_parts,
    group_of_parts,
    kernels_of,
    row_kernel,
    with_vectors,
)
from tensorken_wgpu.kernels.tiles import MAX_LOOPED, Tile, TileKernel
from tensorken_wgpu.kernels.tilings import fits, tiling_of
from tensorken_wgpu.wgsl.dtypes import size_of
from tensorken_wgpu.wgsl.ops import sums
from tensorken_wgpu.wgsl.single_op import Value

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable
    from tensorken_wgpu.wgsl.target import Target
    from tensorken_wgpu.wgsl.vectors import Vector

MIN_WORK = 2**15
"""The fewest multiplications for which tiles are faster than rows."""


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
    tiling = tiling_of(product, target)
    first, *_ = tiling.tiles
    contraction_only = replace(group, values=(reduction,), written=(reduction,))
    partials: Any = None
    rest: list[Kernel] = []
    try:
        if tiling.parts > 1:
            partials = Value((tiling.parts * group.rows.count,), DTYPES[sums(reduction.dtype.name).dtype])
            rest = [_sum_of_parts(group, reduction, producers, kept, partials, tiling.parts, target)]
            group = contraction_only
        elif len(group.values) > 1 and first.rows * first.columns > MAX_LOOPED:
            return _contraction_and_rest(group, reduction, producers, kept, first, target)
        candidates = {
            str(tile): _tile_kernel(group, producers, kept, tile, target, partials, tiling.parts)
            for tile in tiling.tiles
        }
    except NotComputedHere:
        return None
    kernel = next(iter(candidates.values()))
    if len(candidates) > 1 and all([len(target.windows(size_of(v))) == 1 for v in _bound(kernel)]):
        kernel = replace(kernel, choice=Choice(_tuning_key(product, reduction, tiling.parts), candidates))
    return [kernel, *rest]


def _sum_of_parts(
    group: FusionGroup,
    reduction: Variable,
    producers: Mapping[Variable, Equation],
    kept: Collection[Variable],
    partials: Variable,
    parts: int,
    target: Target,
) -> Kernel:
    """The kernel that adds the parts of each sum, and computes the other values from the sums."""
    division = divide_parts(parts, group.rows.count, target)
    return row_kernel(group_of_parts(group, parts), producers, kept, division, target, {reduction: partials})


def _tuning_key(product: Product, reduction: Variable, parts: int) -> str:
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
    divided = [f"{parts} parts"] if parts > 1 else []
    return ", ".join([reduction.dtype.name, *sizes, *layout, *vectors, *divided])


def _bound(kernel: Kernel) -> tuple[Variable, ...]:
    return (*kernel.reads, *kernel.writes)


def work_of(product: Product) -> int:
    """The number of multiplications."""
    return prod([axis.size for axis in product.axes])


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
    if not fits(tile, product):
        raise ValueError(f"{tile} is larger than {product.size('rows')} rows of {product.size('columns')}")

    def make_writer(vectors: Mapping[Variable, Vector]) -> TileKernel:
        if isinstance(tile, Block):
            return BlockKernel(group, producers, kept, tile, target, partials, parts, vectors)
        return TileKernel(group, producers, kept, tile, target, partials, parts, vectors)

    return with_vectors(make_writer, [v for v in (*kept, *group.values, partials) if v is not None])
