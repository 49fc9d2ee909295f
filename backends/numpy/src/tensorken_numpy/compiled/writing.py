"""Write the lines of a template, a sum or a `where`, for arrays or for scalars."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tensorken_numpy.arrays import Array
from tensorken_numpy.clamping import slow_with_scalar
from tensorken_numpy.compiled.predicates import is_literal
from tensorken_numpy.compiled.source import Source
from tensorken_numpy.compiled.templates import Template
from tensorken_numpy.compiled.values import Value
from tensorken_numpy.sums import dtype_of_sums, sum_axes, uses_blas

if TYPE_CHECKING:
    from tensorken_core.program.program import Variable

MIN_MASKED_SIZE = 1024
"""From this many elements on a `where` is computed by masking bits."""

_MASKS: dict[int, np.dtype[Any]] = {4: np.dtype("int32"), 8: np.dtype("int64")}
_SYMBOLS: dict[Any, str] = {np.add: "+", np.subtract: "-", np.multiply: "*", np.divide: "/"}
_KEYWORD_OUT = (np.maximum, np.minimum)
"""Ufuncs that take their result array by keyword."""

Number = Callable[[Any, "np.dtype[Any]"], str]


class Writer(Protocol):
    """Has a source, and gives names to numbers."""

    source: Source

    def number(self, number: Any, dtype: np.dtype[Any]) -> str:
        """The name of an array of one number without axes."""

    def scalar_number(self, number: Any, dtype: np.dtype[Any]) -> str:
        """The name of a numpy scalar."""


def write_steps(
    writer: Writer,
    steps: Template,
    operands: Sequence[str],
    y: str,
    t: str,
    dtype: np.dtype[Any],
    filled: Number | None = None,
) -> None:
    """Write one call per step; the result goes to y.

    Args:
        writer: has the source.
        steps: of the template.
        operands: the names of a and b.
        y: the name of the result array.
        t: the name of a scratch array, if one is needed.
        dtype: of the numbers.
        filled: names an array filled with a number, for ufuncs that take five times as long with a single one.
    """
    names = {**dict(zip("ab", operands, strict=False)), "y": y, "t": t}
    for ufunc, to, sources in steps:
        number = filled if filled is not None and slow_with_scalar(ufunc, dtype) else writer.number
        arguments = [names[x] if isinstance(x, str) else number(x, dtype) for x in sources]
        arguments.append(f"out={names[to]}" if ufunc in _KEYWORD_OUT else names[to])
        writer.source.line(f"{writer.source.bound(ufunc)}({', '.join(arguments)})")


def write_scalars(writer: Writer, steps: Template, operands: Sequence[str], dtype: np.dtype[Any]) -> str:
    """Write one assignment per step on numpy scalars, which are faster than arrays without axes.

    Returns the name of the result.
    """
    source = writer.source
    names = dict(zip("ab", operands, strict=False))
    symbols: dict[Any, str] = _SYMBOLS if dtype in (np.float32, np.float64) else {}
    for ufunc, to, sources in steps:
        arguments = [names[x] if isinstance(x, str) else writer.scalar_number(x, dtype) for x in sources]
        symbol = symbols.get(ufunc)
        if symbol is not None:
            names[to] = source.assign(f" {symbol} ".join(arguments))
        else:
            names[to] = source.assign(f"{source.bound(ufunc)}({', '.join(arguments)})")
    return names["y"]


def write_sum(writer: Writer, x: str, axes: Sequence[int], y: str, dtype: np.dtype[Any], fast: bool) -> None:
    """Write y = sum(x, axes) with the call that the backend's method makes: BLAS if the layout allows."""
    source = writer.source
    if fast:
        source.line(f"{source.bound(sum_axes)}({x}, {tuple(axes)}, {y})")
    else:
        to = source.bound(dtype_of_sums(dtype))
        source.line(f"{source.bound(np.add.reduce)}({x}, {tuple(axes)}, {to}, {y}, True)")


def write_sum_of(writer: Writer, x: Value, axes: Sequence[int], y: str) -> None:
    """Write y = sum(x, axes) for a value, whose layout may be unknown until the function runs."""
    write_sum(writer, x.name, axes, y, x.dtype, not x.known or uses_blas(x.layout, tuple(axes)))


def with_filled_numbers(
    names: Sequence[str],
    operands: Sequence[Variable],
    steps: Template | None,
    dtype: np.dtype[Any],
    filled: Number | None,
) -> list[str]:
    """The names of operands; literals are replaced by filled arrays if the op is slow on single numbers."""
    if filled is None or steps is None or not slow_with_scalar(steps[0][0], dtype):
        return [*names]
    return [
        filled(x.value, dtype) if is_literal(x) else name for x, name in zip(operands, names, strict=True)
    ]


def uses_masks(shape: Sequence[int], dtype: np.dtype[Any]) -> bool:
    """Whether a `where` of this size is computed by masking bits."""
    return dtype.itemsize in _MASKS and math.prod(shape) >= MIN_MASKED_SIZE


def mask_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The integer dtype of the same size."""
    return _MASKS[dtype.itemsize]


def write_where(
    writer: Writer,
    operands: Sequence[Variable],
    names: Sequence[str],
    y: str,
    mask: str,
    dtype: np.dtype[Any],
) -> None:
    """Write y = b ^ ((a ^ b) & mask): numpy's own `where` branches for each element, which is slow."""
    source, integer = writer.source, mask_dtype(dtype)
    integers = source.bound(integer)
    bits = []
    zeros = []
    for v, name in zip(operands[1:], names[1:], strict=True):
        if is_literal(v):
            number = np.full((), v.value, dtype).view(integer)
            zeros.append(not number.any())
            bits.append(
                source.cached(("array", integer, repr(number.item())), functools.partial(np.array, number))
            )
        else:
            zeros.append(False)
            bits.append(f"{name}.view({integers})")
    copyto, negative, bitwise_and, bitwise_xor = [
        source.bound(f) for f in (np.copyto, np.negative, np.bitwise_and, np.bitwise_xor)
    ]
    source.line(f"{copyto}({mask}, {names[0]})")
    result = source.assign(f"{y}.view({integers})")
    if zeros[1]:
        source.line(f"{negative}({mask}, {mask})")
        source.line(f"{bitwise_and}({bits[0]}, {mask}, {result})")
    elif zeros[0]:  # the mask of `not condition`: 1 - 1 has no bits set, 0 - 1 all
        source.line(f"{source.bound(np.subtract)}({mask}, {writer.number(1, integer)}, {mask})")
        source.line(f"{bitwise_and}({bits[1]}, {mask}, {result})")
    else:
        source.line(f"{negative}({mask}, {mask})")
        source.line(f"{bitwise_xor}({bits[0]}, {bits[1]}, {result})")
        source.line(f"{bitwise_and}({result}, {mask}, {result})")
        source.line(f"{bitwise_xor}({result}, {bits[1]}, {result})")


def write_where_constant(
    writer: Writer,
    operands: Sequence[Variable],
    names: Sequence[str],
    y: str,
    condition: Array,
    constant: Callable[[Array], str],
    dtype: np.dtype[Any],
) -> None:
    """Write a `where` with a constant condition: one or two steps with masks that are computed once.

    Args:
        writer: has the source.
        operands: of the `where`.
        names: of the operands.
        y: the name of the result array.
        condition: the constant, compact.
        constant: names an array of the condition's shape.
        dtype: of the numbers.
    """
    source, integer = writer.source, mask_dtype(dtype)
    integers, bitwise_and = source.bound(integer), source.bound(np.bitwise_and)
    result = source.assign(f"{y}.view({integers})")
    mask = np.negative(condition.astype(integer))
    literals = [_bits_of(v.value, dtype) if is_literal(v) else None for v in operands[1:]]
    for i, kept in ((1, mask), (0, ~mask)):
        bits, other = literals[i], literals[1 - i]
        if bits is not None and other is None:  # mask the array, then set the literal's bits elsewhere
            source.line(f"{bitwise_and}({names[2 - i]}.view({integers}), {constant(kept)}, {result})")
            if bits:
                source.line(f"{source.bound(np.bitwise_or)}({result}, {constant(~kept & bits)}, {result})")
            return
    bitwise_xor = source.bound(np.bitwise_xor)
    first, second = [
        f"{name}.view({integers})" if bits is None else writer.number(bits, integer)
        for name, bits in zip(names[1:], literals, strict=True)
    ]
    source.line(f"{bitwise_xor}({first}, {second}, {result})")
    source.line(f"{bitwise_and}({result}, {constant(mask)}, {result})")
    source.line(f"{bitwise_xor}({result}, {second}, {result})")


def _bits_of(number: Any, dtype: np.dtype[Any]) -> int:
    bits: int = np.full((), number, dtype).view(mask_dtype(dtype)).item()
    return bits
