"""Templates: elementwise ops as ufuncs with an output array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

Step: TypeAlias = "tuple[Any, str, tuple[str | float, ...]]"
"""A ufunc, its target (y or t), and its operands: a, b, the result y, a scratch array t, or numbers."""

Template: TypeAlias = Sequence[Step]

UNARY: dict[str, Any] = {
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "exp2": np.exp2,
    "log2": np.log2,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "round": np.rint,
    "trunc": np.trunc,
    "ceil": np.ceil,
    "floor": np.floor,
    "neg": np.negative,
    "abs": np.absolute,
    "sign": np.sign,
    "signbit": np.signbit,
    "square": np.square,
}
BINARY: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "eq": np.equal,
    "lt": np.less,
    "logaddexp": np.logaddexp,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "remainder": np.remainder,
    "copysign": np.copysign,
    "floor_divide": np.floor_divide,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}
ANY_DTYPE: dict[str, Template] = {
    **{name: ((ufunc, "y", ("a",)),) for name, ufunc in UNARY.items()},
    **{name: ((ufunc, "y", ("a", "b")),) for name, ufunc in BINARY.items()},
    "relu": ((np.maximum, "y", ("a", 0)),),
}
FLOAT32_AND_FLOAT64: dict[str, Template] = {
    "sigmoid": (
        (np.minimum, "y", ("a", 40.0)),
        (np.exp, "y", ("y",)),
        (np.add, "t", ("y", 1.0)),
        (np.divide, "y", ("y", "t")),
    ),
    "sech_squared": (
        (np.absolute, "y", ("a",)),
        (np.multiply, "y", ("y", -2.0)),
        (np.exp, "y", ("y",)),
        (np.add, "t", ("y", 2.0)),
        (np.multiply, "t", ("t", "y")),
        (np.add, "t", ("t", 1.0)),
        (np.multiply, "y", ("y", 4.0)),
        (np.divide, "y", ("y", "t")),
    ),
    "softplus": (
        (np.absolute, "t", ("a",)),
        (np.negative, "t", ("t",)),
        (np.exp, "t", ("t",)),
        (np.log1p, "t", ("t",)),
        (np.maximum, "y", ("a", 0.0)),
        (np.add, "y", ("t", "y")),
    ),
}
"""For float32 and float64: the steps of special.py, in the same order, so that the bits are the same."""


def template(name: str, dtypes: Sequence[np.dtype[Any]], numbers: Sequence[Any]) -> Template | None:
    """The steps of an op; None if it has no template: then the backend's method is called, which allocates its result.

    Args:
        name: of the op.
        dtypes: of its operands.
        numbers: the values of operands that are literals, else None.
    """
    if name == "pow" and (numbers[1] is None or numbers[1] == 0.5):
        return None  # numpy takes the square root, which the backend's method corrects
    if name in ANY_DTYPE:
        return ANY_DTYPE[name]
    if name in FLOAT32_AND_FLOAT64 and dtypes[0] in (np.float32, np.float64):
        return FLOAT32_AND_FLOAT64[name]
    return None


def safe_in_place(steps: Template, operand: str) -> bool:
    """Whether the result may overwrite an operand: no step reads the operand after one that writes the result."""
    written = False
    for _, target, sources in steps:
        if written and operand in sources:
            return False
        written = written or target == "y"
    return True
