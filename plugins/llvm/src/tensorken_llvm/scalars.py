"""Scalars: each elementwise op on elements in registers; LLVM's vectoriser makes vectors of them.

No flag allows LLVM to assume that there are no NaN, infinities or signed zeros.  float16 is computed in float32, which
has enough digits that the second rounding does no harm (S. A. Figueroa, "When is double rounding innocuous?", 1995).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from tensorken_core.language.dtypes import integer_bounds
from tensorken_llvm import elementary
from tensorken_llvm.builder import Builder, has_wide_vectors
from tensorken_llvm.dtypes import DOUBLE, FLOAT, INT32, INT64, TYPES, float_number
from tensorken_llvm.half_precision import from_half, to_half

if TYPE_CHECKING:
    from tensorken_core.language.dtypes import DType

Function = Callable[..., Any]


def is_supported(name: str, dtype: DType) -> bool:
    """Whether an op is computed for operands of which the last one has this dtype."""
    return name in _OPS[dtype.name]


def compute(b: Builder, name: str, operands: Sequence[Any], dtype: DType) -> Any:
    """An elementwise op; dtype is that of the last operand."""
    y = _OPS[dtype.name][name](b, *operands)
    return rounded_to_half(b, y) if dtype.name == "float16" and y.type is FLOAT else y


def rounded_to_half(b: Builder, x: Any) -> Any:
    """A float32 or float64 rounded to float16, as a float32."""
    return from_half(b, to_half(b, x))


# ---- ops -----------------------------------------------------------------------------------------------------


def _where(b: Builder, c: Any, x: Any, y: Any) -> Any:
    return b.select(c, x, y)


def _relu(b: Builder, x: Any) -> Any:
    zero = float_number(0.0, x.type)
    return b.select(b.fcmp_unordered(">", x, zero), x, zero)  # NaN stays


def _sign(b: Builder, x: Any) -> Any:
    one, zero = float_number(1.0, x.type), float_number(0.0, x.type)
    y = b.select(b.fcmp_unordered("!=", x, zero), b.intrinsic("copysign", one, x), zero)
    return b.select(b.fcmp_unordered("uno", x, x), x, y)


def _reciprocal(b: Builder, x: Any) -> Any:
    return b.fdiv(float_number(1.0, x.type), x)


def _div(b: Builder, x: Any, y: Any) -> Any:
    """The quotient; for one divisor in a whole loop a product with its reciprocal in float64, rounded to float32.

    That is as exact: no quotient of float32 numbers is nearer to the middle between two of them, relatively, than
    2**-49, and the product has an error of less than 2**-51.  Processors with the widest vectors take long to divide.
    """
    if x.type is not FLOAT or not has_wide_vectors() or not b.is_invariant(y):
        return b.fdiv(x, y)
    reciprocal = b.fdiv(float_number(1.0, DOUBLE), b.fpext(y, DOUBLE))
    return b.fptrunc(b.fmul(b.fpext(x, DOUBLE), reciprocal), FLOAT)


_FLOATS: dict[str, Function] = {
    "add": lambda b, x, y: b.fadd(x, y),
    "sub": lambda b, x, y: b.fsub(x, y),
    "mul": lambda b, x, y: b.fmul(x, y),
    "div": _div,
    "neg": lambda b, x: b.fneg(x),
    "square": lambda b, x: b.fmul(x, x),
    "abs": lambda b, x: b.intrinsic("fabs", x),
    "sqrt": lambda b, x: b.intrinsic("sqrt", x),
    "floor": lambda b, x: b.intrinsic("floor", x),
    "ceil": lambda b, x: b.intrinsic("ceil", x),
    "trunc": lambda b, x: b.intrinsic("trunc", x),
    "round": lambda b, x: b.intrinsic("roundeven", x),
    "copysign": lambda b, x, y: b.intrinsic("copysign", x, y),
    "maximum": lambda b, x, y: b.intrinsic("maximum", x, y),
    "minimum": lambda b, x, y: b.intrinsic("minimum", x, y),
    "eq": lambda b, x, y: b.fcmp_ordered("==", x, y),
    "lt": lambda b, x, y: b.fcmp_ordered("<", x, y),
    "where": _where,
    "relu": _relu,
    "sign": _sign,
    "reciprocal": _reciprocal,
}


def _shift(name: str) -> Function:
    """Bits moved; amounts outside of [0, bits) give 0."""

    def shifted(b: Builder, x: Any, count: Any) -> Any:
        bits, zero = ir.Constant(x.type, x.type.width), ir.Constant(x.type, 0)
        inside = b.icmp_unsigned("<", count, bits)
        y = getattr(b, name)(x, b.select(inside, count, zero))
        return b.select(inside, y, zero)

    return shifted


def _floor_divide(b: Builder, x: Any, y: Any) -> Any:
    """Rounded down; 0 where y is 0; the least number by -1 stays."""
    zero, one, minus_one = (ir.Constant(x.type, n) for n in (0, 1, -1))
    invalid = b.icmp_signed("==", y, zero)
    negated = b.icmp_signed("==", y, minus_one)
    divisor = b.select(b.or_(invalid, negated), one, y)
    quotient = b.sdiv(x, divisor)
    rest = b.sub(x, b.mul(quotient, divisor))
    below = b.and_(b.icmp_signed("!=", rest, zero), b.icmp_signed("<", b.xor(rest, divisor), zero))
    found = b.select(below, b.sub(quotient, one), quotient)
    return b.select(invalid, zero, b.select(negated, b.sub(zero, x), found))


def _integer_remainder(b: Builder, x: Any, y: Any) -> Any:
    """With the sign of y; 0 where y is 0."""
    rest = b.sub(x, b.mul(_floor_divide(b, x, y), y))
    return b.select(b.icmp_signed("==", y, ir.Constant(y.type, 0)), y, rest)


def _integer_abs(b: Builder, x: Any) -> Any:
    zero = ir.Constant(x.type, 0)
    return b.select(b.icmp_signed("<", x, zero), b.sub(zero, x), x)


def _integer_sign(b: Builder, x: Any) -> Any:
    zero = ir.Constant(x.type, 0)
    return b.sub(b.zext(b.icmp_signed(">", x, zero), x.type), b.zext(b.icmp_signed("<", x, zero), x.type))


_INTEGERS: dict[str, Function] = {
    "add": lambda b, x, y: b.add(x, y),
    "sub": lambda b, x, y: b.sub(x, y),
    "mul": lambda b, x, y: b.mul(x, y),
    "neg": lambda b, x: b.sub(ir.Constant(x.type, 0), x),
    "square": lambda b, x: b.mul(x, x),
    "abs": _integer_abs,
    "sign": _integer_sign,
    "eq": lambda b, x, y: b.icmp_signed("==", x, y),
    "lt": lambda b, x, y: b.icmp_signed("<", x, y),
    "maximum": lambda b, x, y: b.select(b.icmp_signed(">", x, y), x, y),
    "minimum": lambda b, x, y: b.select(b.icmp_signed("<", x, y), x, y),
    "where": _where,
    "bitwise_and": lambda b, x, y: b.and_(x, y),
    "bitwise_or": lambda b, x, y: b.or_(x, y),
    "bitwise_xor": lambda b, x, y: b.xor(x, y),
    "shift_left": _shift("shl"),
    "shift_right": _shift("lshr"),
    "floor_divide": _floor_divide,
    "remainder": _integer_remainder,
}


def _unsigned(name: str) -> Function:
    """An unsigned division; 0 where the divisor is 0."""

    def divided(b: Builder, x: Any, y: Any) -> Any:
        zero, one = ir.Constant(x.type, 0), ir.Constant(x.type, 1)
        invalid = b.icmp_unsigned("==", y, zero)
        return b.select(invalid, zero, getattr(b, name)(x, b.select(invalid, one, y)))

    return divided


_UNSIGNED: dict[str, Function] = {
    **_INTEGERS,
    "abs": lambda b, x: x,
    "sign": lambda b, x: b.zext(b.icmp_unsigned("!=", x, ir.Constant(x.type, 0)), x.type),
    "lt": lambda b, x, y: b.icmp_unsigned("<", x, y),
    "maximum": lambda b, x, y: b.select(b.icmp_unsigned(">", x, y), x, y),
    "minimum": lambda b, x, y: b.select(b.icmp_unsigned("<", x, y), x, y),
    "floor_divide": _unsigned("udiv"),
    "remainder": _unsigned("urem"),
}
_BOOLS: dict[str, Function] = {
    "eq": lambda b, x, y: b.not_(b.xor(x, y)),
    "lt": lambda b, x, y: b.and_(b.not_(x), y),
    "maximum": lambda b, x, y: b.or_(x, y),
    "minimum": lambda b, x, y: b.and_(x, y),
    "where": _where,
}
_OPS: Mapping[str, Mapping[str, Function]] = {
    "bool": _BOOLS,
    **dict.fromkeys(("int8", "int16"), _INTEGERS),
    **dict.fromkeys(("uint8", "uint16", "uint32", "uint64"), _UNSIGNED),
    "int32": {**_INTEGERS, **elementary.INTEGERS, "from_bits": lambda b, x: b.bitcast(x, FLOAT)},
    "int64": {**_INTEGERS, **elementary.INTEGERS, "from_bits": lambda b, x: b.bitcast(x, DOUBLE)},
    "float16": {**_FLOATS, **elementary.NARROW},
    "float32": {**_FLOATS, **elementary.FLOATS, "to_bits": lambda b, x: b.bitcast(x, INT32)},
    "float64": {**_FLOATS, **elementary.FLOATS, "to_bits": lambda b, x: b.bitcast(x, INT64)},
}


# ---- casts ---------------------------------------------------------------------------------------------------


def cast(b: Builder, x: Any, source: DType, dtype: DType) -> Any:
    """An element in another dtype: floats are truncated to integers, and clipped to their range; NaN gives 0."""
    wide, narrow = TYPES[source.name], TYPES[dtype.name]
    if source.kind == "float":
        if dtype.kind == "bool":
            return b.fcmp_unordered("!=", x, ir.Constant(wide, 0.0))
        if dtype.kind == "int":
            return b.saturated(x, narrow, dtype.signed)
        if dtype.name == "float16":  # from float64 by one rounding
            return rounded_to_half(b, x)
        return x if wide is narrow else b.fpext(x, narrow) if narrow is DOUBLE else b.fptrunc(x, narrow)
    if dtype.kind == "float":
        if source.kind == "bool":  # a mask of a constant, where a conversion makes integers of a mask first
            return b.select(x, ir.Constant(narrow, 1.0), ir.Constant(narrow, 0.0))
        y = b.sitofp(x, narrow) if source.signed else b.uitofp(x, narrow)
        return rounded_to_half(b, y) if dtype.name == "float16" else y
    if dtype.kind == "bool":
        return b.icmp_signed("!=", x, ir.Constant(wide, 0))
    if source.kind == "bool":
        return b.zext(x, narrow)
    if wide.width >= narrow.width:
        return x if wide is narrow else b.trunc(x, narrow)
    return b.sext(x, narrow) if source.signed else b.zext(x, narrow)


# ---- reductions ----------------------------------------------------------------------------------------------


def start_of(name: str, dtype: DType) -> Any:
    """The accumulator of a sum or maximum of no elements."""
    type_ = TYPES[dtype.name]
    if name != "max":
        return ir.Constant(type_, 0.0 if dtype.kind == "float" else 0)
    if dtype.kind == "float":
        return ir.Constant(type_, -math.inf)
    return ir.Constant(type_, 0 if dtype.kind == "bool" else integer_bounds(dtype)[0])


def combined(b: Builder, name: str, total: Any, y: Any, dtype: DType) -> Any:
    """An accumulator with another element; sums of floats may be added in any order."""
    if name == "max":
        return _OPS[dtype.name]["maximum"](b, total, y)
    return b.fadd(total, y, flags=("reassoc", "contract")) if dtype.kind == "float" else b.add(total, y)
