"""Tensors in nested brackets, as numpy prints arrays: rows in lines, and empty lines between matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from tensorken.arrays.display.numbers import element_format
from tensorken.arrays.display.options import PrintOptions
from tensorken_core.language.dtypes import DType

Elements: TypeAlias = "Sequence[Any] | Callable[[int], Any]"
"""The elements in row-major order, or a function from a position in that order to the element there."""

PYTHON_TYPES: dict[str, Callable[[Any], Any]] = {"bool": bool, "float": float, "complex": complex}
"""The Python types of the elements of each kind of dtype; int for the others."""

_DOTS = "..."
_Positions: TypeAlias = "int | list[_Positions] | None"
"""Positions in row-major order in nested lists, None for omitted ones."""


def bracketed(
    shape: tuple[int, ...],
    elements: Elements,
    dtype: DType,
    options: PrintOptions,
    *,
    spec: str = "",
    separator: str = " ",
    indent: int = 0,
) -> str:
    """The elements in nested brackets, aligned, or each by a format spec.

    Args:
        shape: the shape of the tensor.
        elements: the elements in row-major order, or a function from positions to elements.
        dtype: the dtype of the elements.
        options: the limits and the format of numbers.
        spec: a format spec for the elements.
        separator: the text between two elements of a row.
        indent: the number of characters before the text on its first line.

    >>> from tensorken_core.language.dtypes import float32
    >>> print(bracketed((2, 2), [1.0, 2.5, 10.0, math.inf], float32, PrintOptions()))
    [[ 1.   2.5]
     [10.   inf]]
    """
    if 0 in shape:
        return "[]"
    at = elements if callable(elements) else elements.__getitem__
    python = PYTHON_TYPES.get(dtype.kind, int)
    positions = _shown_positions(shape, options)
    values = {position: python(at(position)) for position in _leaves(positions) if position is not None}
    if spec:
        texts = {position: format(value, spec) for position, value in values.items()}
        width = max(map(len, texts.values()))
        texts = {position: text.rjust(width) for position, text in texts.items()}
    else:
        is_without_edges = options.edgeitems == 0 and len(values) < math.prod(shape)
        aligned = map(python, map(at, range(math.prod(shape)))) if is_without_edges else values.values()
        form = element_format(list(aligned), dtype, options, is_scalar=not shape)
        texts = {position: form(value) for position, value in values.items()}
    return _text(positions, texts, separator, " " * (indent + 1), options.linewidth - 1)


def _shown_positions(shape: tuple[int, ...], options: PrintOptions) -> _Positions:
    """The positions to print: all, or the edges of each axis if there are too many.

    Without edges numpy prints the last position of each axis, and aligns it as if all were printed.
    """
    is_cut = math.prod(shape) > options.threshold

    def along(axis: int, start: int) -> _Positions:
        if axis == len(shape):
            return start
        size, edge, stride = shape[axis], options.edgeitems, math.prod(shape[axis + 1 :])
        indices: Iterable[int | None] = range(size)
        if is_cut and size > 2 * edge:
            indices = (*range(edge), None, *range(size - max(edge, 1), size))
        return [None if i is None else along(axis + 1, start + i * stride) for i in indices]

    return along(0, 0)


def _leaves(positions: _Positions) -> list[int | None]:
    """The positions in nested lists."""
    if isinstance(positions, list):
        return [leaf for part in positions for leaf in _leaves(part)]
    return [positions]


def _depth(positions: _Positions) -> int:
    """How deeply lists are nested."""
    return 1 + max(map(_depth, positions)) if isinstance(positions, list) else 0


def _text(positions: _Positions, texts: dict[int, str], separator: str, margin: str, width: int) -> str:
    """The text of nested lists; lines after the first begin with the margin, and end before the width."""
    if not isinstance(positions, list):
        return _DOTS if positions is None else texts[positions]
    depth = _depth(positions)
    parts = [_text(part, texts, separator, margin + " ", width - 1) for part in positions]
    if depth > 1:
        between = separator.rstrip() + "\n" * (depth - 1) + margin
        return f"[{between.join(parts)}]"
    lines, line = [], margin
    for k, part in enumerate(parts):
        if len(line) + len(part) > width and len(line) > len(margin):
            lines.append(line.rstrip())
            line = margin
        line += part + (separator if k < len(parts) - 1 else "")
    row = "\n".join([*lines, line])
    return f"[{row[len(margin) :]}]"
