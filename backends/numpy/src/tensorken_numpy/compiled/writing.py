"""Writing: the lines of a template, on arrays that are there or on scalars."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tensorken_numpy.compiled.smallness import is_literal
from tensorken_numpy.compiled.source import Source
from tensorken_numpy.compiled.templates import Template
from tensorken_numpy.contraction import Array
from tensorken_numpy.limits import slow_on_numbers
from tensorken_numpy.sums import add_up, by_blas

if TYPE_CHECKING:
    from tensorken_core.program.program import Variable
    from tensorken_numpy.compiled.values import Value

LARGE = 1024
"""From how many elements on a `where` is done on bits."""

_MASKS: dict[int, np.dtype[Any]] = {4: np.dtype("int32"), 8: np.dtype("int64")}
_SYMBOLS: dict[Any, str] = {np.add: "+", np.subtract: "-", np.multiply: "*", np.divide: "/"}
_BY_NAME_ONLY = (np.maximum, np.minimum)
"""Ufuncs that want to be told by name where to put their result."""

Number = Callable[[Any, "np.dtype[Any]"], str]


class Writer(Protocol):
    """What has a source and knows the names of numbers."""

    source: Source

    def number(self, number: Any, dtype: np.dtype[Any]) -> str:
        """The name of an array of one number."""

    def one(self, number: Any, dtype: np.dtype[Any]) -> str:
        """The name of a scalar."""


def write_steps(
    writer: Writer,
    steps: Template,
    operands: Sequence[str],
    y: str,
    t: str,
    dtype: np.dtype[Any],
    filled: Number | None = None,
) -> None:
    """A call for each step, which writes into y or t.

    Args:
        writer: knows the names of numbers.
        steps: what to do.
        operands: the names of a and b.
        y: the name of the result.
        t: the name of a scratch array, if one is needed.
        dtype: of the numbers.
        filled: gives the name of an array of a number, for ufuncs that take five times as long with a single one.
    """
    names = {**dict(zip("ab", operands, strict=False)), "y": y, "t": t}
    for ufunc, to, taken in steps:
        number = filled if filled is not None and slow_on_numbers(ufunc, dtype) else writer.number
        arguments = [names[x] if isinstance(x, str) else number(x, dtype) for x in taken]
        arguments.append(f"out={names[to]}" if ufunc in _BY_NAME_ONLY else names[to])
        writer.source.line(f"{writer.source.bound(ufunc)}({', '.join(arguments)})")


def write_scalars(writer: Writer, steps: Template, operands: Sequence[str], dtype: np.dtype[Any]) -> str:
    """An assignment for each step: numpy's scalars are quicker than its arrays without axes; the name of the result."""
    source = writer.source
    names = dict(zip("ab", operands, strict=False))
    symbols: dict[Any, str] = _SYMBOLS if dtype in (np.float32, np.float64) else {}
    for ufunc, to, taken in steps:
        arguments = [names[x] if isinstance(x, str) else writer.one(x, dtype) for x in taken]
        symbol = symbols.get(ufunc)
        if symbol is not None:
            names[to] = source.assign(f" {symbol} ".join(arguments))
        else:
            names[to] = source.assign(f"{source.bound(ufunc)}({', '.join(arguments)})")
    return names["y"]


def write_sum(writer: Writer, x: str, axes: Sequence[int], y: str, dtype: np.dtype[Any], fast: bool) -> None:
    """y = sum(x, axes), as the backend's method adds: by BLAS if many floats lie as that needs them."""
    source = writer.source
    if fast:
        source.line(f"{source.bound(add_up)}({x}, {tuple(axes)}, {y})")
    else:
        source.line(f"{source.bound(np.add.reduce)}({x}, {tuple(axes)}, {source.bound(dtype)}, {y}, True)")


def write_sum_of(writer: Writer, x: Value, axes: Sequence[int], y: str) -> None:
    """The same of a value, of which it may only be known in the end how it lies."""
    write_sum(writer, x.name, axes, y, x.dtype, not x.known or by_blas(x.layout, tuple(axes)))


def with_filled(
    names: Sequence[str],
    operands: Sequence[Variable],
    steps: Template | None,
    dtype: np.dtype[Any],
    filled: Number | None,
) -> list[str]:
    """The names of operands, numbers among them as arrays if the op is slow on single ones."""
    if filled is None or steps is None or not slow_on_numbers(steps[0][0], dtype):
        return [*names]
    return [
        filled(x.value, dtype) if is_literal(x) else name for x, name in zip(operands, names, strict=True)
    ]


def by_bits(shape: Sequence[int], dtype: np.dtype[Any]) -> bool:
    """Whether a `where` is worth being done on bits."""
    return dtype.itemsize in _MASKS and math.prod(shape) >= LARGE


def mask_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The integers as large as the elements."""
    return _MASKS[dtype.itemsize]


def write_where(
    writer: Writer,
    operands: Sequence[Variable],
    names: Sequence[str],
    y: str,
    mask: str,
    dtype: np.dtype[Any],
) -> None:
    """y = where(condition, a, b), as b ^ ((a ^ b) & mask): numpy's own tests element by element, which is slow."""
    source, integer = writer.source, mask_of(dtype)
    kind = source.bound(integer)
    bits = []
    zeros = []
    for v, name in zip(operands[1:], names[1:], strict=True):
        if is_literal(v):
            number = np.full((), v.value, dtype).view(integer)
            zeros.append(not number.any())
            bits.append(
                source.once(("array", integer, repr(number.item())), functools.partial(np.array, number))
            )
        else:
            zeros.append(False)
            bits.append(f"{name}.view({kind})")
    copy, negative, both, either = [
        source.bound(f) for f in (np.copyto, np.negative, np.bitwise_and, np.bitwise_xor)
    ]
    source.line(f"{copy}({mask}, {names[0]})")
    result = source.assign(f"{y}.view({kind})")
    if zeros[1]:
        source.line(f"{negative}({mask}, {mask})")
        source.line(f"{both}({bits[0]}, {mask}, {result})")
    elif zeros[0]:  # 1 - 1 keeps no bit, 0 - 1 all
        source.line(f"{source.bound(np.subtract)}({mask}, {writer.number(1, integer)}, {mask})")
        source.line(f"{both}({bits[1]}, {mask}, {result})")
    else:
        source.line(f"{negative}({mask}, {mask})")
        source.line(f"{either}({bits[0]}, {bits[1]}, {result})")
        source.line(f"{both}({result}, {mask}, {result})")
        source.line(f"{either}({result}, {bits[1]}, {result})")


def write_chosen(
    writer: Writer,
    operands: Sequence[Variable],
    names: Sequence[str],
    y: str,
    condition: Array,
    constant: Callable[[Array], str],
    dtype: np.dtype[Any],
) -> None:
    """The same where the condition is the same in every call: one step or two on masks that are made once.

    Args:
        writer: has the source.
        operands: the three of the `where`.
        names: of these.
        y: the name of the result.
        condition: as it is kept.
        constant: gives the name of an array of the condition's shape.
        dtype: of the numbers.
    """
    source, integer = writer.source, mask_of(dtype)
    kind, both = source.bound(integer), source.bound(np.bitwise_and)
    result = source.assign(f"{y}.view({kind})")
    mask = np.negative(condition.astype(integer))
    literals = [_bits_of(v.value, dtype) if is_literal(v) else None for v in operands[1:]]
    for i, kept in ((1, mask), (0, ~mask)):
        bits, other = literals[i], literals[1 - i]
        if (
            bits is not None and other is None
        ):  # of what is no number some is kept, beside which the number stands
            source.line(f"{both}({names[2 - i]}.view({kind}), {constant(kept)}, {result})")
            if bits:
                source.line(f"{source.bound(np.bitwise_or)}({result}, {constant(~kept & bits)}, {result})")
            return
    either = source.bound(np.bitwise_xor)
    first, second = [
        f"{name}.view({kind})" if bits is None else writer.number(bits, integer)
        for name, bits in zip(names[1:], literals, strict=True)
    ]
    source.line(f"{either}({first}, {second}, {result})")
    source.line(f"{both}({result}, {constant(mask)}, {result})")
    source.line(f"{either}({result}, {second}, {result})")


def _bits_of(number: Any, dtype: np.dtype[Any]) -> int:
    bits: int = np.full((), number, dtype).view(mask_of(dtype)).item()
    return bits
