"""WGSL: each elementwise op for each dtype, and how numbers are written, stored, reduced and converted.

WGSL lets a driver assume that there are no NaNs and infinities, and drivers do: expressions are written so that
this has no effect.  Numbers such as 0 and infinity come from a uniform that the compiler does not know.  float16 is
computed in float32, which has enough digits that the second rounding does no harm.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tensorken_core.language.dtypes import DType, round_float
from tensorken_wgpu.wgsl.functions.floats import FLOAT32, FLOAT64, Float

TYPES = {
    "bool": "bool",
    "int32": "i32",
    "int64": "i64",
    "uint32": "u32",
    "float16": "f32",
    "float32": "f32",
    "float64": "f64",
}
"""The types of values in a kernel."""

STORED = {**TYPES, "bool": "u32", "float16": "f16"}
"""The types of elements in memory, where WGSL has no bool."""

OPAQUE = (0, 0, 0, 0)
"""The first words of the uniform; functions read one of them, as `opaque`."""

Expression = Callable[..., str]


def loaded(dtype: str, text: str) -> str:
    """The value of an element in memory."""
    return _LOADED.get(dtype, str)(text)


def stored(dtype: str, text: str) -> str:
    """The element in memory of a value."""
    return _STORED.get(dtype, str)(text)


_LOADED: dict[str, Expression] = {"bool": lambda x: f"{x} != 0u", "float16": lambda x: f"f32({x})"}
_STORED: dict[str, Expression] = {"bool": lambda x: f"select(0u, 1u, {x})", "float16": lambda x: f"f16({x})"}


def as_index(dtype: str, text: str) -> str:
    """An index of this dtype as u32; indices out of range, negative ones included, stay out of range.

    >>> as_index("int32", "i"), as_index("int64", "i")
    ('u32(i)', 'u32(min(u64(i), 0xfffffffflu))')
    """
    return f"u32(min(u64({text}), 0xfffffffflu))" if dtype == "int64" else f"u32({text})"


# ---- ops -----------------------------------------------------------------------------------------------------

_ALL: dict[str, Expression] = {
    "eq": lambda a, b: f"{a} == {b}",
    "where": lambda c, a, b: f"select({b}, {a}, {c})",
    "step_stack": lambda x: x,
}
_NUMBERS: dict[str, Expression] = {
    **_ALL,
    "neg": lambda x: f"-({x})",
    "abs": lambda x: f"abs({x})",
    "lt": lambda a, b: f"{a} < {b}",
}
_BOOL: dict[str, Expression] = {
    **_ALL,
    "lt": lambda a, b: f"!{a} & {b}",
    "maximum": lambda a, b: f"{a} | {b}",
}


def _floats(float_type: Float, integer: str) -> dict[str, Expression]:
    s = float_type.suffix
    return {
        **_NUMBERS,
        "exp": lambda x: f"exponential{s}({x})",
        "exp2": lambda x: f"power_of_two{s}({x})",
        "log": lambda x: f"logarithm{s}({x})",
        "sin": lambda x: f"sine{s}({x})",
        "cos": lambda x: f"cosine{s}({x})",
        "sqrt": lambda x: f"exact{s}(sqrt({x}))",
        "floor": lambda x: f"floor({x})",
        # drivers take a == a for true, and select(a, b, b < a) for min(a, b), which drops a NaN
        "eq": lambda a, b: f"!is_nan{s}({a})" if a == b else f"{a} == {b}",
        "lt": lambda a, b: f"exact{s}({a}) < {b}",
        "add": lambda a, b: f"exact{s}({a} + {b})",
        "sub": lambda a, b: f"minus_itself{s}({a})" if a == b else f"exact{s}({a} - {b})",
        "mul": lambda a, b: f"exact{s}({a} * {b})",
        "div": lambda a, b: f"over_itself{s}({a})" if a == b else f"quotient{s}({a}, {b})",
        "pow": lambda a, b: f"power{s}({a}, {b})",
        "maximum": lambda a, b: f"larger{s}({a}, {b})",
        "to_bits": lambda x: f"bitcast<{integer}>({x})",
    }


def _integers(suffix: str) -> dict[str, Expression]:
    s = suffix
    return {
        **_NUMBERS,
        "add": lambda a, b: f"{a} + {b}",
        "sub": lambda a, b: f"{a} - {b}",
        "mul": lambda a, b: f"{a} * {b}",
        "maximum": lambda a, b: f"max({a}, {b})",
        "floor_divide": lambda a, b: f"floor_divide{s}({a}, {b})",
        "bitwise_and": lambda a, b: f"{a} & {b}",
        "bitwise_or": lambda a, b: f"{a} | {b}",
        "bitwise_xor": lambda a, b: f"{a} ^ {b}",
        "shift_left": lambda a, b: f"shift_left{s}({a}, {b})",
        "shift_right": lambda a, b: f"shift_right{s}({a}, {b})",
    }


def _rounded(text: Expression) -> Expression:
    return lambda *operands: f"to_f16({text(*operands)})"


_FLOAT32 = _floats(FLOAT32, "i32")
_ROUNDED = ("exp", "exp2", "log", "sin", "cos", "add", "sub", "mul", "pow")
_FLOAT16: dict[str, Expression] = {
    **_FLOAT32,
    **{name: _rounded(_FLOAT32[name]) for name in _ROUNDED},
    "sqrt": lambda x: f"half_root({x})",
    "div": lambda a, b: f"over_itself({a})" if a == b else f"half_quotient({a}, {b})",
    "to_bits": lambda x: f"half_bits({x})",
}
_EXPRESSIONS: dict[str, dict[str, Expression]] = {
    "bool": _BOOL,
    "int32": {**_integers(""), "from_bits": lambda x: f"bitcast<f32>({x})"},
    "int64": {**_integers("_i64"), "from_bits": lambda x: f"bitcast<f64>({x})"},
    "uint32": {**_integers("_u32"), "neg": lambda x: f"0u - {x}", "abs": str},
    "float16": _FLOAT16,
    "float32": _FLOAT32,
    "float64": _floats(FLOAT64, "i64"),
}
OPS = frozenset().union(*_EXPRESSIONS.values())
"""The ops that are written for at least one dtype."""


def expressions(dtype: str) -> Mapping[str, Expression]:
    """The expression of each op whose last operand has this dtype.

    >>> expressions("float64")["exp"]("x")
    'exponential_f64(x)'
    """
    return _EXPRESSIONS[dtype]


# ---- casts ---------------------------------------------------------------------------------------------------

CASTS: dict[tuple[str, str], Expression] = {
    ("bool", "int32"): lambda x: f"select(0i, 1i, {x})",
    ("bool", "int64"): lambda x: f"select(0li, 1li, {x})",
    ("bool", "float16"): lambda x: f"select(0.0f, 1.0f, {x})",
    ("bool", "float32"): lambda x: f"select(0.0f, 1.0f, {x})",
    ("bool", "float64"): lambda x: f"select(0.0lf, 1.0lf, {x})",
    ("int32", "bool"): lambda x: f"{x} != 0i",
    ("int32", "int64"): lambda x: f"widened({x})",
    ("int32", "float16"): lambda x: f"to_f16(f32({x}))",
    ("int32", "float32"): lambda x: f"f32({x})",
    ("int32", "float64"): lambda x: f"f64({x})",
    ("int64", "bool"): lambda x: f"{x} != 0li",
    ("int64", "int32"): lambda x: f"i32({x})",
    ("int64", "float16"): lambda x: f"to_f16(f32({x}))",
    ("int64", "float32"): lambda x: f"f32({x})",
    ("int64", "float64"): lambda x: f"f64({x})",
    ("bool", "uint32"): lambda x: f"select(0u, 1u, {x})",
    ("int32", "uint32"): lambda x: f"u32({x})",
    ("int64", "uint32"): lambda x: f"u32({x})",
    ("uint32", "bool"): lambda x: f"{x} != 0u",
    ("uint32", "int32"): lambda x: f"i32({x})",
    ("uint32", "int64"): lambda x: f"widened_u32({x})",
    ("uint32", "float16"): lambda x: f"to_f16(f32({x}))",
    ("uint32", "float32"): lambda x: f"f32({x})",
    ("uint32", "float64"): lambda x: f"f64({x})",
    ("float16", "uint32"): lambda x: f"to_u32({x})",
    ("float32", "uint32"): lambda x: f"to_u32({x})",
    ("float64", "uint32"): lambda x: f"to_u32_f64({x})",
    ("float16", "bool"): lambda x: f"nonzero({x})",
    ("float16", "int32"): lambda x: f"to_i32({x})",
    ("float16", "int64"): lambda x: f"to_i64({x})",
    ("float16", "float32"): str,
    ("float16", "float64"): lambda x: f"f64({x})",
    ("float32", "bool"): lambda x: f"nonzero({x})",
    ("float32", "int32"): lambda x: f"to_i32({x})",
    ("float32", "int64"): lambda x: f"to_i64({x})",
    ("float32", "float16"): lambda x: f"to_f16({x})",
    ("float32", "float64"): lambda x: f"f64({x})",
    ("float64", "bool"): lambda x: f"nonzero_f64({x})",
    ("float64", "int32"): lambda x: f"to_i32_f64({x})",
    ("float64", "int64"): lambda x: f"to_i64_f64({x})",
    ("float64", "float16"): lambda x: f"to_f16_f64({x})",
    ("float64", "float32"): lambda x: f"f32({x})",
}
"""The expression for each pair of dtypes.  Integers in float16's range are exact in float32, so they too are rounded
once."""

# ---- reductions ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Accumulator:
    """How a reduction combines values.

    Attributes:
        dtype: the name of the dtype of the accumulator.
        start: its value for no values.
        combine: combines two accumulators.
        begin: from a value to the accumulator of it.
        finish: from the accumulator to a value of the result's dtype.
    """

    dtype: str
    start: str
    combine: Expression
    begin: Expression = str
    finish: Expression = str

    @property
    def type(self) -> str:
        """The WGSL type of the dtype."""
        return TYPES[self.dtype]


def _add(a: str, b: str) -> str:
    return f"{a} + {b}"


_SUMS = {
    "int32": Accumulator("int32", "0i", _add),
    "int64": Accumulator("int64", "0li", _add),
    "uint32": Accumulator("uint32", "0u", _add),
    "float16": Accumulator("float32", "zero()", _add, finish=lambda x: f"to_f16({x})"),
    "float32": Accumulator("float32", "zero()", _add),
    "float64": Accumulator("float64", "zero_f64()", _add),
}
_LEAST = {
    "int32": "bitcast<i32>(0x80000000u)",
    "int64": "bitcast<i64>(0x8000000000000000lu)",
    "uint32": "0u",
    "float16": "-infinity()",
    "float32": "-infinity()",
    "float64": "-infinity_f64()",
}
_MAXIMA = {name: Accumulator(name, least, _EXPRESSIONS[name]["maximum"]) for name, least in _LEAST.items()}
# On an H100 the maxima of rows of bools were all False; numbers pass through loops and workgroup memory unharmed.
_MAXIMA["bool"] = Accumulator(
    "uint32", "0u", lambda a, b: f"{a} | {b}", CASTS["bool", "uint32"], CASTS["uint32", "bool"]
)


def sums(dtype: str) -> Accumulator:
    """The accumulator of sums of a dtype; float16 is added in float32 and rounded once."""
    return _SUMS[dtype]


def maxima(dtype: str) -> Accumulator:
    """The accumulator of maxima of a dtype; bools are numbers on their way."""
    return _MAXIMA[dtype]


# ---- numbers -------------------------------------------------------------------------------------------------

_FLOATS = {float_type.type: float_type for float_type in (FLOAT32, FLOAT64)}
_MAX_LITERAL_EXPONENT = 60
"""Numbers up to this power of 2 are literals.

Constant folding of two of them yields no infinity, which WGSL forbids, and no subnormal number.
"""


def bits_of(value: Any, dtype: DType) -> int:
    """The bits of a number of a dtype, in the type that kernels compute with.

    >>> from tensorken_core.language.dtypes import DTYPES
    >>> hex(bits_of(-2, DTYPES["int32"])), hex(bits_of(1e9, DTYPES["float16"]))  # the latter is infinity
    ('0xfffffffe', '0x7f800000')
    """
    if dtype.kind == "int":
        return int(value) % (1 << 8 * dtype.itemsize)
    near = round_float(float(value), dtype)
    return int.from_bytes(struct.pack(f"<{_FLOATS[TYPES[dtype.name]].format}", near), "little")


def literal_of_bits(bits: int, type: str) -> str:
    """The number of a type with these bits, hidden from constant folding where that would be wrong.

    >>> (
    ...     literal_of_bits(0xC020000000000000, "f64"),
    ...     literal_of_bits(0x7F800000, "f32"),
    ...     literal_of_bits(7, "i64"),
    ... )
    ('(-8.0lf)', 'infinity()', '7li')
    """
    if type in _FLOATS:
        return _float(bits, _FLOATS[type])
    if type == "u32":
        return f"{bits}u"
    size, suffix = (32, "") if type == "i32" else (64, "l")
    return f"{bits}{suffix}i" if bits >> size - 1 == 0 else f"bitcast<{type}>({bits:#x}{suffix}u)"


def _float(bits: int, float_type: Float) -> str:
    fraction_bits, bias, sign = float_type.digits - 1, float_type.bias, 1 << float_type.bits - 1
    infinity = 2 * bias + 1 << fraction_bits
    special = {0: "zero", sign: "minus_zero", infinity: "infinity", infinity | 1 << fraction_bits - 1: "nan"}
    if bits in special:
        return f"{special[bits]}{float_type.suffix}()"
    if abs(((bits & ~sign) >> fraction_bits) - bias) < _MAX_LITERAL_EXPONENT:
        (value,) = struct.unpack(f"<{float_type.format}", bits.to_bytes(float_type.bits // 8, "little"))
        return float_type.literal(value)
    return f"bitcast<{float_type.type}>({float_type.word}(opaque) | {float_type.word_of(bits)})"
