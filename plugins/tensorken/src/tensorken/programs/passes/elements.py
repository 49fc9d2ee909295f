"""Elements: evaluate ops on small constants of ints and bools in Python, because a read from a device waits for
it.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence

from tensorken_core.language.dtypes import DType, python_scalar, wrap_integer
from tensorken_core.language.op import OPS
from tensorken_core.program.program import Equation, Literal, Variable
from tensorken_core.rewriting.view import View
from tensorken_core.tensor.tensor import Tensor

Elements = Sequence[bool | int | float]
"""Elements in row-major order; floats only if they are small integers, so that every dtype can represent them."""

MAX_EXACT_INT = 2**11
"""Every float dtype represents all ints up to this one."""

CAST, PAD = OPS["cast"], OPS["pad"]
MOVEMENT_OPS = frozenset(op for op in OPS.values() if op.method and op.arity == 1 and hasattr(View, op.name))
"""Ops that only move, repeat or drop elements of one operand: the ops that a `View` performs without a copy."""

EXACT_OPS = frozenset(
    OPS[name]
    for name in (
        *("add", "sub", "mul", "eq", "lt", "maximum", "minimum", "where"),
        *("bitwise_and", "bitwise_or", "bitwise_xor"),
    )
)
"""Elementwise ops whose `scalar` on Python ints and bools agrees with the op on tensors, except that
ints wrap.  This cannot be derived: `scalar` is the op in real arithmetic."""

_known: dict[int, tuple[weakref.ref[Tensor], Elements]] = {}
"""The known elements of constants, by identity."""


def remember_elements(x: Tensor, elements: Elements) -> None:
    """Remember the elements of a constant as long as it exists."""
    key = id(x)
    _known[key] = (weakref.ref(x, lambda _: _known.pop(key, None)), elements)


def elements_of(x: Tensor) -> Elements | None:
    """The elements of a constant, if they are known."""
    entry = _known.get(id(x))
    return entry[1] if entry is not None and entry[0]() is x else None


def elements_of_number(v: Literal) -> Elements | None:
    """The elements of a literal, unless its dtype is a float."""
    return None if v.dtype.kind == "float" else [v.value] * math.prod(v.shape)


def computed_elements(equation: Equation, operands: Sequence[Elements]) -> Elements | None:
    """The elements of the result of an equation; None if the backend must compute them.

    Bit for bit the same on every backend.
    """
    op, result, x = equation.op, equation.results[0], equation.operands[0]
    if op in EXACT_OPS:
        if any([v.dtype.kind == "float" for v in equation.operands]) or op.scalar is None:
            return None
        ys = map(op.scalar, *operands)
        return [wrap_integer(y, result.dtype) for y in ys] if result.dtype.kind == "int" else [*map(bool, ys)]
    if op in MOVEMENT_OPS:
        view: View = getattr(View.contiguous(x.shape), op.name)(*equation.params)
        return [operands[0][i] for i in view.indices()]
    if op is PAD:
        return _padded(x, result, equation.params[0], operands[0])
    return _cast(operands[0], x.dtype, result.dtype) if op is CAST else None


def _padded(x: Variable, result: Variable, pads: Sequence[tuple[int, int]], elements: Elements) -> Elements:
    zero = python_scalar(0, x.dtype)
    ys = [zero] * math.prod(result.shape)
    limits = [(before, before + n) for n, (before, _) in zip(x.shape, pads, strict=True)]
    for index, element in zip(View.contiguous(result.shape).crop(limits).indices(), elements, strict=True):
        ys[index] = element
    return ys


def _cast(elements: Elements, old: DType, new: DType) -> Elements | None:
    """The elements in another dtype; None if they are floats, or the dtype cannot represent them."""
    if old.kind == "float":
        return None
    if new.kind == "bool":
        return [x != 0 for x in elements]
    if new.kind == "int":
        return [wrap_integer(int(x), new) for x in elements]
    return (
        [float(x) for x in elements]
        if all([-MAX_EXACT_INT <= x <= MAX_EXACT_INT for x in elements])
        else None
    )
