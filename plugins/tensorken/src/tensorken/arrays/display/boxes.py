"""Tensors in ASCII boxes, the style `boxes` of `printoptions`.

A row is printed in brackets, and a matrix with one row per line. With three or more axes, the matrices are printed
in a box: the first of three axes runs to the right, the first two of four form a grid, and further axes nest boxes
in boxes. Text that is too wide continues below, and of a tensor with very many elements only the edges are printed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

from tensorken.arrays.display.brackets import PYTHON_TYPES, Elements
from tensorken.arrays.display.numbers import float_text, scalar_text
from tensorken.arrays.display.options import PrintOptions
from tensorken_core.language.dtypes import DType

GAP = -1  # marks the omitted positions in a list of positions along an axis
DOTS = "..."


def boxed(
    shape: tuple[int, ...], elements: Elements, dtype: DType, options: PrintOptions, spec: str = ""
) -> str:
    """The elements in brackets and boxes, each as short as its dtype allows, or by a format spec.

    Raises:
        ValueError: if the format spec is not valid for such numbers.

    >>> from tensorken_core.language.dtypes import float32, int32
    >>> print(boxed((2, 2), [1.0, 2.5, 10.0, math.inf], float32, PrintOptions()))
    [ 1 2.5]
    [10 inf]
    >>> print(boxed((2, 2, 2), range(8), int32, PrintOptions()))
    +------------------+
    |                  |
    |  [0 1]    [4 5]  |
    |  [2 3]    [6 7]  |
    |                  |
    +------------------+
    """
    at = elements if callable(elements) else elements.__getitem__

    def cell(position: int) -> str:
        value = at(position)
        return format(PYTHON_TYPES.get(dtype.kind, int)(value), spec) if spec else number_text(value, dtype)

    if not shape:
        return cell(0)
    if 0 in shape:
        return "[]" if shape == (0,) else f"[] (shape {shape})"
    return "\n".join(_block(_Excerpt.of(shape, options), 0, cell, options.linewidth))


def number_text(value: Any, dtype: DType) -> str:
    """The number with the fewest digits that identify it in the dtype; integers below 1e16 exactly.

    >>> from tensorken_core.language.dtypes import float32, float64
    >>> number_text(math.e, float64), number_text(2.7182817459106445, float32), number_text(3.0, float32)
    ('2.718281828459045', '2.7182817', '3')
    """
    value = PYTHON_TYPES.get(dtype.kind, int)(value)
    if dtype.kind != "float":
        return scalar_text(value, dtype)
    if value.is_integer() and abs(value) < 1e16:
        return f"{value:.0f}"
    return float_text(value, dtype, point="", limit=1e16)


@dataclass(frozen=True, slots=True)
class _Excerpt:
    """Along each axis the positions to print, with GAP for omitted ones, and the stride from one to the next.

    The strides are the strides of row-major order.
    """

    positions: tuple[Sequence[int], ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, shape: tuple[int, ...], options: PrintOptions) -> _Excerpt:
        shown: list[Sequence[int]] = [range(size) for size in shape]
        if math.prod(shape) > options.threshold:
            for edge in range(options.edgeitems, 0, -1):
                shown = [_edges(size, edge) for size in shape]
                if _count(shown) <= options.threshold:
                    break
            # Short axes consist only of edges: only the first position of the outermost short axis is shown.
            for axis, size in enumerate(shape):
                if _count(shown) > options.threshold and size > 1:
                    shown[axis] = (0, GAP)
        return cls(tuple(shown), tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape))))


def _count(shown: Sequence[Sequence[int]]) -> int:
    return math.prod(len(positions) - (GAP in positions) for positions in shown)


def _edges(size: int, edge: int) -> Sequence[int]:
    if size <= 2 * edge + 1:  # replacing a single position by a gap would not make the text shorter
        return range(size)
    return (*range(edge), GAP, *range(size - edge, size))


def _block(excerpt: _Excerpt, start: int, cell: Callable[[int], str], width: int) -> list[str]:
    """The lines of text for a tensor of one axis or more whose first element is at position `start`."""
    if len(excerpt.positions) % 2:  # print a row as a matrix of one row, a row of matrices as a grid
        excerpt = _Excerpt(((0,), *excerpt.positions), (0, *excerpt.strides))
    rows, columns, *inner_positions = excerpt.positions
    row_stride, column_stride, *inner_strides = excerpt.strides
    positions = [
        [GAP if GAP in (i, j) else start + i * row_stride + j * column_stride for j in columns] for i in rows
    ]
    if not inner_positions:
        return _matrix(
            [[DOTS if position == GAP else cell(position) for position in row] for row in positions], width
        )
    inner = _Excerpt(tuple(inner_positions), tuple(inner_strides))
    # Wider matrices get a wider gutter, so that the rows of neighbours do not look like one row.
    of_matrices = len(inner_positions) == 2
    gutter = 2 + min(len(inner_positions[1]), 4) if of_matrices else 2
    blocks = [
        [[DOTS] if position == GAP else _block(inner, position, cell, width - 2 - gutter) for position in row]
        for row in positions
    ]
    return _box(blocks, gutter, [""] if of_matrices else [], width)


def _matrix(table: list[list[str]], width: int) -> list[str]:
    """Rows in brackets, columns aligned at the right; a row that is too wide continues on the next line, indented."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    bands = _bands([size + 1 for size in widths], width - 1)
    lines = []
    for row in table:
        parts = [" ".join(row[k].rjust(widths[k]) for k in band) for band in bands]
        lines += [f"[{parts[0]}", *(f" {part}" for part in parts[1:])]
        lines[-1] += "]"
    return lines


def _box(grid: list[list[list[str]]], gutter: int, margin: list[str], width: int) -> list[str]:
    """A grid of blocks of text in a box; a grid that is too wide continues below a horizontal line."""
    left, right = " " * (gutter - gutter // 2), " " * (gutter // 2)
    widths = [max(len(line) for block in column for line in block) for column in zip(*grid, strict=True)]
    bands: list[list[str]] = []
    for band in _bands([size + gutter for size in widths], width - 2):
        lines = [*margin]
        for row in grid:
            for parts in zip_longest(*(row[k] for k in band), fillvalue=""):
                lines.append(
                    "".join(
                        f"{left}{part.ljust(widths[k])}{right}" for k, part in zip(band, parts, strict=True)
                    )
                )
            lines += margin
        bands.append(lines)
    inside = max(len(line) for lines in bands for line in lines)
    rule = f"+{'-' * inside}+"
    return [
        rule,
        *chain.from_iterable([*(f"|{line.ljust(inside)}|" for line in lines), rule] for lines in bands),
    ]


def _bands(widths: Sequence[int], width: int) -> list[range]:
    """Consecutive columns in as few bands as fit the width, with at least one column in each."""
    bands: list[range] = []
    first, used = 0, 0
    for k, size in enumerate(widths):
        if k > first and used + size > width:
            bands.append(range(first, k))
            first, used = k, 0
        used += size
    return [*bands, range(first, len(widths))]
