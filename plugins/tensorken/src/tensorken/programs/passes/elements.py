"""Elements: what small constants of ints and truth values hold, computed here: to ask a device means to wait for it."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence

from tensorken_core.language.dtypes import DType, wrap_integer
from tensorken_core.language.op import OPS
from tensorken_core.program.program import Equation, Literal, Variable
from tensorken_core.rewriting.view import View
from tensorken_core.tensor.tensor import Tensor

Elements = Sequence[bool | int | float]
"""In row-major order; floats only if they are whole and small, so that every dtype has them."""

WHOLE = 2**11
"""Up to here all ints are floats of each dtype."""

CAST, PAD, RESHAPE = OPS["cast"], OPS["pad"], OPS["reshape"]
MOVES = frozenset(OPS[name] for name in ("permute", "expand", "flip", "crop"))
EXACT = frozenset(
    OPS[name]
    for name in (
        *("add", "sub", "mul", "eq", "lt", "maximum", "minimum", "where"),
        *("bitwise_and", "bitwise_or", "bitwise_xor"),
    )
)
"""Elementwise ops that are of Python's ints and truth values what they are of a tensor's, but for wrapping."""

_known: dict[int, tuple[weakref.ref[Tensor], Elements]] = {}
"""By identity of the constants."""


def remember_elements(x: Tensor, elements: Elements) -> None:
    """Remember the elements of a constant as long as it is there."""
    key = id(x)
    _known[key] = (weakref.ref(x, lambda _: _known.pop(key, None)), elements)


def elements_of(x: Tensor) -> Elements | None:
    """The elements of a constant, if they are known."""
    found = _known.get(id(x))
    return found[1] if found is not None and found[0]() is x else None


def elements_of_number(v: Literal) -> Elements | None:
    """The elements of a literal, unless it is of floats."""
    return None if v.dtype.kind == "float" else [v.value] * math.prod(v.shape)


def computed(equation: Equation, operands: Sequence[Elements]) -> Elements | None:
    """The elements of the result of an equation, None if that is for the backend to say.

    Bit for bit what any backend gives.
    """
    op, result, x = equation.op, equation.results[0], equation.operands[0]
    if op in EXACT:
        if any([v.dtype.kind == "float" for v in equation.operands]) or op.scalar is None:
            return None
        ys = map(op.scalar, *operands)
        return [wrap_integer(y, result.dtype) for y in ys] if result.dtype.kind == "int" else [*map(bool, ys)]
    if op is RESHAPE:
        return operands[0]
    if op in MOVES:
        view: View = getattr(View.contiguous(x.shape), op.name)(*equation.params)
        return [operands[0][i] for i in view.indices()]
    if op is PAD:
        return _padded(x, result, equation.params[0], operands[0])
    return _cast(operands[0], x.dtype, result.dtype) if op is CAST else None


def _padded(x: Variable, result: Variable, pads: Sequence[tuple[int, int]], elements: Elements) -> Elements:
    zero = {"bool": False, "int": 0, "float": 0.0}[x.dtype.kind]
    ys = [zero] * math.prod(result.shape)
    limits = [(before, before + n) for n, (before, _) in zip(x.shape, pads, strict=True)]
    for place, element in zip(View.contiguous(result.shape).crop(limits).indices(), elements, strict=True):
        ys[place] = element
    return ys


def _cast(elements: Elements, old: DType, new: DType) -> Elements | None:
    """The elements in another dtype, if that has them all; None of floats."""
    if old.kind == "float":
        return None
    if new.kind == "bool":
        return [x != 0 for x in elements]
    if new.kind == "int":
        return [int(x) for x in elements] if old.itemsize <= new.itemsize else None
    return [float(x) for x in elements] if all([-WHOLE <= x <= WHOLE for x in elements]) else None
