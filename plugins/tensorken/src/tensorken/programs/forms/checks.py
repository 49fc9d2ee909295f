"""Checks: whether the operands and params of an equation that was read from a file fit its op."""

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


def _are_pairs_of_ints(value: Any) -> bool:
    return type(value) is tuple and all(
        [type(pair) is tuple and len(pair) == 2 and type(pair[0]) is type(pair[1]) is int for pair in value]
    )


PARAM_CHECKS: dict[str, Callable[[Any], bool]] = {
    "axis": _is_size,
    "axes": _are_axes,
    "order": _are_sizes,
    "shape": _are_sizes,
    "pads": _are_pairs,
    "limits": _are_pairs,
    "size": _is_size,
    "strides": _are_sizes,
    "dilation": _are_sizes,
    "padding": _are_pairs_of_ints,
    "groups": _is_size,
    "flag": lambda value: type(value) is bool,
    "dtype": lambda value: isinstance(value, DType),
    "placement": lambda value: value is None,
    "program": lambda value: isinstance(value, Program),
    "data": lambda value: not isinstance(value, Program),
}
"""For each kind of param a check of a value, in the normalised form that ops take."""


def check_equation(op: Op, operands: Sequence[Variable], params: Sequence[Any]) -> None:
    """Raise unless an op takes these operands and params.

    The op's shape and dtype rules may still raise.

    Raises:
        ProgramError: if their number is wrong, a param is invalid, or programs do not fit the operands.
    """
    if op.arity not in (None, len(operands)) or len(params) != len(op.params):
        arity = "any number" if op.arity is None else op.arity
        raise ProgramError(
            f"{op.name} has {len(operands)} operands and {len(params)} params, need {arity} and {len(op.params)}"
        )
    for kind, param in zip(op.params, params, strict=True):
        if kind in PARAM_CHECKS and not PARAM_CHECKS[kind](param):
            raise ProgramError(f"{op.name} has the param {param!r:.40}, need a valid {kind}")
    if op.higher_order is not None:
        op.higher_order.check(operands, tuple(params))
