"""DTypes: the LLVM types of elements, in registers and in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from tensorken_core.language.dtypes import DType

BIT, BYTE, INT16, INT32, INT64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
HALF, FLOAT, DOUBLE = ir.HalfType(), ir.FloatType(), ir.DoubleType()
POINTER = ir.PointerType()

TYPES = {
    "bool": BIT,
    **dict.fromkeys(("int8", "uint8"), BYTE),
    **dict.fromkeys(("int16", "uint16"), INT16),
    **dict.fromkeys(("int32", "uint32"), INT32),
    **dict.fromkeys(("int64", "uint64"), INT64),
    "float16": FLOAT,
    "float32": FLOAT,
    "float64": DOUBLE,
}
"""The types of elements in registers; float16 is computed in float32 and rounded after each op."""

STORED = {**TYPES, "bool": BYTE, "float16": HALF}
"""The types of elements in memory."""

NUMPY = {name: np.dtype(name) for name in TYPES}


@np.errstate(over="ignore")
def number(value: bool | int | float, dtype: DType) -> ir.Constant:
    """A number of a dtype."""
    type_ = TYPES[dtype.name]
    if type_ in (FLOAT, DOUBLE):
        return float_number(float(np.array(value, dtype.name)), type_)
    return ir.Constant(type_, int(value))


@np.errstate(over="ignore")
def float_number(value: float, type_: Any) -> ir.Constant:
    """A floating-point number, rounded to its type."""
    if type_ is FLOAT:
        value = float(np.float32(value))
    return ir.Constant(type_, value)


def index_number(value: int) -> ir.Constant:
    """An index."""
    return ir.Constant(INT64, value)
