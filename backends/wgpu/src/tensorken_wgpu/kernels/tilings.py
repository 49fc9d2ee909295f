"""Tilings: the tiles that may compute a matrix product, and into how many parts its sum is divided.

A GPU is busy only with many invocations.  Where a result has few tiles but its sums are long, the sum is divided into
parts, each for other invocations, and a second kernel adds the partial sums, in their order.  The rule for it counts
what an invocation does; the weights of `_cost` are what the instructions take relative to a multiplication.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tensorken_wgpu.kernels.blocks import Block
from tensorken_wgpu.kernels.tiles import STEP, Tile
from tensorken_wgpu.wgsl.dtypes import SIZES
from tensorken_wgpu.wgsl.ops import sums

if TYPE_CHECKING:
    from tensorken.kernels.products import Product
    from tensorken_wgpu.wgsl.target import Target

MAX_ITERATIONS = 2**14
"""The most iterations of an invocation: Mesa's software driver ends loops after 65 535 iterations."""

SOFTWARE_SIDES = ((2**27, 16), (2**20, 8), (0, 4))
"""In software: the fewest multiplications for which an invocation computes this many rows and columns.

Larger tiles read less, and reads dominate there; but the driver takes 0.1, 0.3 and 1.5 s to compile them.
"""

GPU_TILES: tuple[Tile | Block, ...] = (
    Block(8, 8, 16, 16, 16),
    Block(8, 8, 16, 16, 8),
    Block(8, 8, 8, 8, 16),
    Block(4, 4, 16, 16, 16),
    Block(4, 4, 8, 8, 16),
    Block(4, 4, 4, 16, 8),
    Tile(8, 8, 64),
    Tile(4, 4, 64),
)
"""The tiles on a GPU."""

MAX_CANDIDATES = 6
"""The most tiles that are measured for a product."""

MIN_PART = 64
"""The fewest elements of a part of a sum on a GPU."""

MAX_PARTS = 512
"""The most parts of a sum on a GPU."""

MAX_PARTIAL_BYTES = 2**26
"""The most bytes of partial sums on a GPU."""

MIN_GAIN = 1.25
"""A sum is divided into parts if the cost is this many times smaller."""

_SHARED, _LOADED, _BARRIER = 4, 16, 16
"""The cost of a vector from workgroup memory, of one from memory, and of a barrier."""

_ELEMENT = 40
"""The cost of an element that all invocations read or write in turn: the memory's rate."""

_READ = 60
"""The cost of a partial sum that an invocation reads and waits for."""

_KERNEL = 5000
"""The cost of another kernel."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """How a product is computed.

    Attributes:
        tiles: the candidates, the likely fastest first.
        parts: the number of parts of the sum.
    """

    tiles: tuple[Tile | Block, ...]
    parts: int


def tiling_of(product: Product, target: Target) -> Tiling:
    """The tiles of a product, and the parts of its sum."""
    if target.is_software:
        return _software_tiling(product)
    size = SIZES[sums(product.operands[0].dtype.name).dtype]
    possible = [
        tile
        for tile in GPU_TILES
        if fits(tile, product)
        and (isinstance(tile, Tile) or tile.shared_bytes(size) <= target.workgroup_memory)
    ]
    by_parts = {
        parts: min([_cost(product, tile, parts, target) for tile in possible])
        for parts in _possible_parts(product, size, target)
    }
    least = min(by_parts)
    parts = min(by_parts, key=by_parts.__getitem__)
    if by_parts[parts] * MIN_GAIN > by_parts[least]:
        parts = least
    tiles = sorted(possible, key=lambda tile: _cost(product, tile, parts, target))
    return Tiling(tuple(tiles[:MAX_CANDIDATES]), parts)


def _possible_parts(product: Product, size: int, target: Target) -> list[int]:
    """The numbers of parts, in order; the first one is 1, or the fewest for which no loop is too long."""
    inner, count = product.size("inner"), result_size(product)
    least = -(-inner // (STEP * MAX_ITERATIONS))
    most = min(target.binding_size, MAX_PARTIAL_BYTES) // (size * count)
    found = [2**i for i in range(MAX_PARTS.bit_length()) if 2**i > least]
    return [least, *[parts for parts in found if parts <= min(most, MAX_PARTS, inner // MIN_PART)]]


def _cost(product: Product, tile: Tile | Block, parts: int, target: Target) -> float:
    """About how long a product takes, in multiplications of an invocation on a busy device.

    Args:
        product: to compute.
        tile: of an invocation or a workgroup.
        parts: of the sum.
        target: the device.
    """
    busy = target.busy_invocations // 2  # each one of a product has many independent additions
    rounds = max(1.0, invocations(product, tile) * parts / busy)
    result = result_size(product)
    adding = 0.0
    if parts > 1:
        adding = 2 * parts * result * _ELEMENT / busy + parts * _READ * max(1.0, result / busy) + _KERNEL
    return _cost_of_step(tile) * -(-product.size("inner") // parts) * rounds + adding


def _cost_of_step(tile: Tile | Block) -> float:
    """The cost of one element of the sum for an invocation."""
    multiplied, vectors = tile.rows * tile.columns, (tile.rows + tile.columns) / 4
    if isinstance(tile, Tile):
        return multiplied + _LOADED * vectors
    loaded = sum(tile.sides.values()) / 4 / tile.workgroup_size
    return multiplied + _SHARED * vectors + _LOADED * loaded + _BARRIER / tile.depth


def result_size(product: Product) -> int:
    """The number of elements of the result."""
    return prod([product.size(dimension) for dimension in ("batch", "rows", "columns")])


def fits(tile: Tile | Block, product: Product) -> bool:
    """Whether a tile fits in the result: tiles at the edge are moved back, so each must fit."""
    rows, columns = _sides(tile)
    return rows <= product.size("rows") and columns <= product.size("columns")


def _sides(tile: Tile | Block) -> tuple[int, int]:
    """The rows and columns of a tile or a block."""
    return (
        (tile.rows, tile.columns) if isinstance(tile, Tile) else (tile.sides["rows"], tile.sides["columns"])
    )


def invocations(product: Product, tile: Tile | Block) -> int:
    """The number of invocations, for one part of the sum."""
    rows, columns = _sides(tile)
    count = product.size("batch") * -(-product.size("rows") // rows) * -(-product.size("columns") // columns)
    return count if isinstance(tile, Tile) else count * tile.workgroup_size


# ---- software ------------------------------------------------------------------------------------------------


def _software_tiling(product: Product) -> Tiling:
    work = prod([axis.size for axis in product.axes])
    most = next(size for least, size in SOFTWARE_SIDES if work >= least)
    tile = Tile(_side(product.size("rows"), most), _side(product.size("columns"), most), 8)
    iterations = -(-product.size("inner") // STEP)
    parts = min(64 // invocations(product, tile), iterations // 64)  # more than one if there are few tiles
    return Tiling((tile,), max(parts if parts >= 2 else 1, -(-iterations // MAX_ITERATIONS)))


def _side(size: int, most: int) -> int:
    """The rows or columns of a tile: the most for which few elements at the edge are computed twice."""
    return next((n for n in (16, 8) if n <= min(most, size) and -(-size // n) * n * 4 <= size * 5), 4)
