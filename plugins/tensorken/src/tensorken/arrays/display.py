"""Tensors as text: `str`, `format` and `repr`, as functions of a shape, elements and a dtype.

A row is printed in brackets, and a matrix with one row per line. With three or more axes, the matrices are printed
in a box: the first of three axes runs to the right, the first two of four form a grid, and further axes nest boxes
in boxes. Text that is too wide continues below, and of a tensor with very many elements only the edges are printed.
All output is ASCII.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any, TypeAlias

from tensorken_core.errors import ConcretizationError, EscapedTensorError
from tensorken_core.language.dtypes import DType, float64, round_float
from tensorken_core.tensor.level import lower

Elements: TypeAlias = "Sequence[Any] | Callable[[int], Any]"
"""The elements in row-major order, or a function from a position in that order to the element there."""

GAP = -1  # marks the omitted positions in a list of positions along an axis
DOTS = "..."
_PYTHON: dict[str, Callable[[Any], Any]] = {"bool": bool, "int": int, "float": float}


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits on the text of a tensor."""

    elements: int = 1000  # with more elements, only the edges are shown
    edge: int = 3  # positions shown at either end of an axis
    width: int = 88  # columns of text


LIMITS = Limits()


def text(x: Any, spec: str = "") -> str:
    """`str(x)` and `format(x, spec)` of a Tensor; the formula if the backend has no values."""
    try:
        elements = x.flat()
    except (ConcretizationError, EscapedTensorError):
        return _formula(x) or representation(x)
    return display_text(x.shape, elements, x.dtype, spec)


def representation(x: Any) -> str:
    """`repr(x)` of a Tensor; `<... inside grad>` if a transform is tracing it, so that it is not a constant."""
    level = x.interpreter
    try:
        shown = repr_text(x.shape, x.flat(), x.dtype)
    except (ConcretizationError, EscapedTensorError):
        shown = f"<tensor {_formula(x) or _unknown(level)}, shape={x.shape}, dtype={x.dtype}>"
    return f"<{shown} inside {level.transform}>" if level.below is not None and level.transform else shown


def _formula(x: Any) -> str | None:
    """The formula of a tensor without values, as printed by the backend under all wrappers.

    None if there is no formula, or if it differs between the examples of a batch.
    """
    try:
        base, value = lower(x.representation, x.interpreter)
    except (ConcretizationError, EscapedTensorError):
        return None
    while hasattr(base, "raw"):  # Fuse, ShapeTracker
        base, value = base.raw, base.value(value)
    return str(value)


def _unknown(level: Any) -> str:
    """The text for a tensor without a formula: the placeholder of a level, or `of each example`."""
    levels = (level, *reversed(level.levels_below))
    return next((x.placeholder for x in levels if getattr(x, "placeholder", None)), "of each example")


# str and format.


def display_text(
    shape: tuple[int, ...], elements: Elements, dtype: DType, spec: str = "", limits: Limits = LIMITS
) -> str:
    """The elements in brackets and boxes, each as short as its dtype allows, or by a format spec.

    Raises:
        ValueError: if the format spec is not valid for such numbers.

    >>> from tensorken_core.language.dtypes import float32, int32
    >>> print(display_text((2, 2), [1.0, 2.5, 10.0, math.inf], float32))
    [ 1 2.5]
    [10 inf]
    >>> print(display_text((2, 2), [1.0, 2.5, 10.0, math.inf], float32, ".2f"))
    [ 1.00 2.50]
    [10.00  inf]
    >>> print(display_text((2, 2, 2), range(8), int32))
    +------------------+
    |                  |
    |  [0 1]    [4 5]  |
    |  [2 3]    [6 7]  |
    |                  |
    +------------------+
    """
    at = _getter(elements)

    def cell(position: int) -> str:
        return format(_PYTHON[dtype.kind](at(position)), spec) if spec else number_text(at(position), dtype)

    if not shape:
        return cell(0)
    if 0 in shape:
        return "[]" if shape == (0,) else f"[] (shape {shape})"
    return "\n".join(_block(_Excerpt.of(shape, limits), 0, cell, limits.width))


def number_text(value: Any, dtype: DType) -> str:
    """The number with the fewest digits that identify it in the dtype; integers below 1e16 exactly.

    >>> from tensorken_core.language.dtypes import float32
    >>> number_text(math.e, float64), number_text(2.7182817459106445, float32), number_text(3.0, float32)
    ('2.718281828459045', '2.7182817', '3')
    """
    value = _PYTHON[dtype.kind](value)
    if dtype.kind != "float":
        return str(value)
    if value.is_integer() and abs(value) < 1e16:
        return f"{value:.0f}"
    if dtype is not float64:
        for digits in range(1, 10):
            shortest = f"{value:.{digits}g}"
            if round_float(float(shortest), dtype) == value:
                return shortest
    return repr(value)


def _getter(elements: Elements) -> Callable[[int], Any]:
    return elements if callable(elements) else elements.__getitem__


@dataclass(frozen=True, slots=True)
class _Excerpt:
    """Along each axis the positions to print, with GAP for omitted ones, and the stride from one to the next.

    The strides are the strides of row-major order.
    """

    positions: tuple[Sequence[int], ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, shape: tuple[int, ...], limits: Limits) -> _Excerpt:
        shown: list[Sequence[int]] = [range(size) for size in shape]
        if math.prod(shape) > limits.elements:
            for edge in range(limits.edge, 0, -1):
                shown = [_edges(size, edge) for size in shape]
                if _count(shown) <= limits.elements:
                    break
            # Short axes consist only of edges: only the first position of the outermost short axis is shown.
            for axis, size in enumerate(shape):
                if _count(shown) > limits.elements and size > 1:
                    shown[axis] = (0, GAP)
        return cls(tuple(shown), tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape))))

    @property
    def is_cut(self) -> bool:
        """Whether positions are omitted."""
        return any(GAP in positions for positions in self.positions)


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


# repr.


def repr_text(shape: tuple[int, ...], elements: Elements, dtype: DType, limits: Limits = LIMITS) -> str:
    """An expression that evaluates to the tensor, given the names tensor, nan, inf and the name of the dtype.

    A large tensor is cut to its edges; its text then includes the shape.

    >>> from tensorken_core.language.dtypes import float32, int32
    >>> repr_text((2, 2), [1.0, 2.5, math.nan, -math.inf], float32)
    'tensor([[1., 2.5], [nan, -inf]], dtype=float32)'
    >>> repr_text((2000,), range(2000), int32)
    'tensor([0, 1, 2, ..., 1997, 1998, 1999], shape=(2000,), dtype=int32)'
    """
    if 0 in shape:
        flat = f"tensor([], dtype={dtype})"
        return flat if shape == (0,) else f"{flat}.reshape({shape})"
    at = _getter(elements)

    def cell(position: int) -> str:
        shown = number_text(at(position), dtype)
        return f"{shown}." if dtype.kind == "float" and shown.lstrip("-").isdigit() else shown

    excerpt = _Excerpt.of(shape, limits)
    shown_shape = f"shape={shape}, " if excerpt.is_cut else ""
    items, keywords = _nested(excerpt, 0, cell), f"{shown_shape}dtype={dtype})"
    line = f"tensor({_on_one_line(items)}, {keywords}"
    if len(line) <= limits.width:
        return line
    widest = max(map(len, _leaves(items)))
    text = f"tensor({_multiline(items, len('tensor('), widest, limits.width)},"
    last = len(text) - text.rfind("\n")
    return f"{text} {keywords}" if last + len(keywords) <= limits.width else f"{text}\n       {keywords}"


Items: TypeAlias = "str | list[Items]"


def _nested(excerpt: _Excerpt, start: int, cell: Callable[[int], str]) -> Items:
    """The texts of the elements in nested lists."""
    if not excerpt.positions:
        return cell(start)
    inner = _Excerpt(excerpt.positions[1:], excerpt.strides[1:])
    return [
        DOTS if i == GAP else _nested(inner, start + i * excerpt.strides[0], cell)
        for i in excerpt.positions[0]
    ]


def _on_one_line(items: Items) -> str:
    """Nested lists on one line."""
    return items if isinstance(items, str) else f"[{', '.join(map(_on_one_line, items))}]"


def _leaves(items: Items) -> Iterator[str]:
    """The texts in nested lists."""
    return iter((items,)) if isinstance(items, str) else chain.from_iterable(map(_leaves, items))


def _multiline(items: Items, indent: int, widest: int, width: int) -> str:
    """Nested lists with a line for each innermost list, or several lines if the list is too wide."""
    if isinstance(items, str):
        return items
    margin = ",\n" + " " * (indent + 1)
    row = [item if item == DOTS else item.rjust(widest) for item in items if isinstance(item, str)]
    if len(row) < len(items):  # some items are lists
        return f"[{margin.join(_multiline(item, indent + 1, widest, width) for item in items)}]"
    depth = indent + 1 - len("tensor(")  # as many brackets may close at the end of a line
    count = max(1, (width - indent - 1 - depth) // (widest + 2))
    lines = (row[k : k + count] for k in range(0, len(row), count))
    return f"[{margin.join(map(', '.join, lines))}]"
