"""Writing: the lines of a template, on arrays that are there or on scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tensorken_numpy.compiled.source import Source
from tensorken_numpy.compiled.templates import Template

_SYMBOLS: dict[Any, str] = {np.add: "+", np.subtract: "-", np.multiply: "*", np.divide: "/"}
_BY_NAME_ONLY = (np.maximum, np.minimum)
"""Ufuncs that want to be told by name where to put their result."""


class Writer(Protocol):
    """What has a source and knows the names of numbers."""

    source: Source

    def number(self, number: Any, dtype: np.dtype[Any]) -> str:
        """The name of an array of one number."""

    def one(self, number: Any, dtype: np.dtype[Any]) -> str:
        """The name of a scalar."""


def write_steps(
    writer: Writer, steps: Template, operands: Sequence[str], y: str, t: str, dtype: np.dtype[Any]
) -> None:
    """A call for each step, which writes into y or t."""
    names = {**dict(zip("ab", operands, strict=False)), "y": y, "t": t}
    for ufunc, to, taken in steps:
        arguments = [names[x] if isinstance(x, str) else writer.number(x, dtype) for x in taken]
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
