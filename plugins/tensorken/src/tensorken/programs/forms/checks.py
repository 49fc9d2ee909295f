"""Checks: whether the params of an equation that was read from a file are of the kinds that its op takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorken_core.errors import ProgramError
from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import Op
from tensorken_core.program.program import Program, Variable


def _is_size(value: Any) -> bool:
    return type(value) is int and value >= 0


def _are_sizes(value: Any) -> bool:
    return type(value) is tuple and all([_is_size(size) for size in value])


def _are_axes(value: Any) -> bool:
    return _are_sizes(value) and list(value) == sorted(set(value))


def _are_pairs(value: Any) -> bool:
    return type(value) is tuple and all([_are_sizes(pair) and len(pair) == 2 for pair in value])


KINDS: dict[str, Callable[[Any], bool]] = {
    "axis": _is_size,
    "axes": _are_axes,
    "order": _are_sizes,
    "shape": _are_sizes,
    "pads": _are_pairs,
    "limits": _are_pairs,
    "size": _is_size,
    "flag": lambda value: type(value) is bool,
    "dtype": lambda value: isinstance(value, DType),
    "program": lambda value: isinstance(value, Program),
    "data": lambda value: not isinstance(value, Program),
}
"""By the kind of a param: whether a value is one in the form that the language takes."""


def check_equation(op: Op, operands: Sequence[Variable], params: Sequence[Any]) -> None:
    """Raise unless an op takes these operands and params.

    The shape and dtype rules of the op may still refuse them.

    Raises:
        ProgramError: if their number is wrong, a param is of another kind, or programs do not fit the operands.
    """
    if op.arity not in (None, len(operands)) or len(params) != len(op.params):
        raise ProgramError(
            f"{op.name} has {len(operands)} operands and {len(params)} params, which are too many or too few"
        )
    for kind, param in zip(op.params, params, strict=True):
        if kind in KINDS and not KINDS[kind](param):
            raise ProgramError(f"{op.name} has the param {param!r:.40}, need one of the kind {kind}")
    if op.higher_order is not None:
        op.higher_order.check(operands, tuple(params))
