"""WGSL: what each elementwise op is, for each dtype, and how its numbers are written, kept, summed and converted.

WGSL lets a driver assume that there are no NaNs and infinities, and drivers use that: what they would get wrong is
written so that they cannot.  Numbers such as 0 and infinity come from a uniform that the compiler does not know.
float16 is computed with in float32, which has digits enough that rounding once more does no harm.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tensorken_core.language.dtypes import DType, round_float
from tensorken_wgpu.functions.floats import FLOAT32, FLOAT64, Float

TYPES = {
    "bool": "bool",
    "int32": "i32",
    "int64": "i64",
    "float16": "f32",
    "float32": "f32",
    "float64": "f64",
}
"""The types of values in a kernel."""

STORED = {**TYPES, "bool": "u32", "float16": "f16"}
"""The types of elements in memory: WGSL has no bool there."""

OPAQUE = (0x00000000, 0x7F800000, 0x7FC00000, 0x80000000)
"""The first words of the uniform that kernels know as `opaque`: 0, which is all that the functions read of it."""

Text = Callable[..., str]


def loaded(dtype: str, text: str) -> str:
    """The value of an element in memory."""
    return _LOADED.get(dtype, str)(text)


def stored(dtype: str, text: str) -> str:
    """An element in memory of a value."""
    return _STORED.get(dtype, str)(text)


_LOADED: dict[str, Text] = {"bool": lambda x: f"{x} != 0u", "float16": lambda x: f"f32({x})"}
_STORED: dict[str, Text] = {"bool": lambda x: f"select(0u, 1u, {x})", "float16": lambda x: f"f16({x})"}


def as_place(dtype: str, text: str) -> str:
    """An index of a dtype as the number of a place: what lies outside of all arrays, as below 0, stays outside.

    >>> as_place("int32", "i"), as_place("int64", "i")
    ('u32(i)', 'u32(min(u64(i), 0xfffffffflu))')
    """
    return f"u32(min(u64({text}), 0xfffffffflu))" if dtype == "int64" else f"u32({text})"


# ---- ops -----------------------------------------------------------------------------------------------------

_ALL: dict[str, Text] = {
    "eq": lambda a, b: f"{a} == {b}",
    "where": lambda c, a, b: f"select({b}, {a}, {c})",
}
_NUMBERS: dict[str, Text] = {
    **_ALL,
    "neg": lambda x: f"-({x})",
    "abs": lambda x: f"abs({x})",
    "lt": lambda a, b: f"{a} < {b}",
}
_BOOL: dict[str, Text] = {
    **_ALL,
    "lt": lambda a, b: f"!{a} & {b}",
    "maximum": lambda a, b: f"{a} | {b}",
}


def _floats(of: Float, integer: str) -> dict[str, Text]:
    s = of.suffix
    return {
        **_NUMBERS,
        "exp": lambda x: f"exponential{s}({x})",
        "exp2": lambda x: f"power_of_two{s}({x})",
        "log": lambda x: f"logarithm{s}({x})",
        "sin": lambda x: f"sine{s}({x})",
        "cos": lambda x: f"cosine{s}({x})",
        "sqrt": lambda x: f"exact{s}(sqrt({x}))",
        "floor": lambda x: f"floor({x})",
        "add": lambda a, b: f"exact{s}({a} + {b})",
        "sub": lambda a, b: f"minus_itself{s}({a})" if a == b else f"exact{s}({a} - {b})",
        "mul": lambda a, b: f"exact{s}({a} * {b})",
        "div": lambda a, b: f"over_itself{s}({a})" if a == b else f"exact{s}({a} / {b})",
        "pow": lambda a, b: f"power{s}({a}, {b})",
        "maximum": lambda a, b: f"larger{s}({a}, {b})",
        "to_bits": lambda x: f"bitcast<{integer}>({x})",
    }


def _integers(suffix: str, float_type: str) -> dict[str, Text]:
    s = suffix
    return {
        **_NUMBERS,
        "add": lambda a, b: f"{a} + {b}",
        "sub": lambda a, b: f"{a} - {b}",
        "mul": lambda a, b: f"{a} * {b}",
        "maximum": lambda a, b: f"max({a}, {b})",
        "from_bits": lambda x: f"bitcast<{float_type}>({x})",
        "floor_divide": lambda a, b: f"floor_divide{s}({a}, {b})",
        "bitwise_and": lambda a, b: f"{a} & {b}",
        "bitwise_or": lambda a, b: f"{a} | {b}",
        "bitwise_xor": lambda a, b: f"{a} ^ {b}",
        "shift_left": lambda a, b: f"shift_left{s}({a}, {b})",
        "shift_right": lambda a, b: f"shift_right{s}({a}, {b})",
    }


def _rounded(text: Text) -> Text:
    return lambda *operands: f"to_f16({text(*operands)})"


_FLOAT32 = _floats(FLOAT32, "i32")
_ROUNDED = ("exp", "exp2", "log", "sin", "cos", "add", "sub", "mul", "pow")
_FLOAT16: dict[str, Text] = {
    **_FLOAT32,
    **{name: _rounded(_FLOAT32[name]) for name in _ROUNDED},
    "sqrt": lambda x: f"half_root({x})",
    "div": lambda a, b: f"half_quotient({a}, {b})",
    "to_bits": lambda x: f"half_bits({x})",
}
_TEXTS: dict[str, dict[str, Text]] = {
    "bool": _BOOL,
    "int32": _integers("", "f32"),
    "int64": _integers("_i64", "f64"),
    "float16": _FLOAT16,
    "float32": _FLOAT32,
    "float64": _floats(FLOAT64, "i64"),
}
OPS = frozenset().union(*_TEXTS.values())
"""The ops that are written for one dtype at least."""


def texts(dtype: str) -> Mapping[str, Text]:
    """What each op is whose last operand is of a dtype.

    >>> texts("float64")["exp"]("x")
    'exponential_f64(x)'
    """
    return _TEXTS[dtype]


# ---- casts ---------------------------------------------------------------------------------------------------

CASTS: dict[tuple[str, str], Text] = {
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
    ("float16", "bool"): lambda x: f"!({x} == 0.0f)",
    ("float16", "int32"): lambda x: f"to_i32({x})",
    ("float16", "int64"): lambda x: f"to_i64({x})",
    ("float16", "float32"): str,
    ("float16", "float64"): lambda x: f"f64({x})",
    ("float32", "bool"): lambda x: f"!({x} == 0.0f)",
    ("float32", "int32"): lambda x: f"to_i32({x})",
    ("float32", "int64"): lambda x: f"to_i64({x})",
    ("float32", "float16"): lambda x: f"to_f16({x})",
    ("float32", "float64"): lambda x: f"f64({x})",
    ("float64", "bool"): lambda x: f"!({x} == 0.0lf)",
    ("float64", "int32"): lambda x: f"to_i32_f64({x})",
    ("float64", "int64"): lambda x: f"to_i64_f64({x})",
    ("float64", "float16"): lambda x: f"to_f16_f64({x})",
    ("float64", "float32"): lambda x: f"f32({x})",
}
"""From one dtype to another.  Integers that float16 has are exact in float32, so these too are rounded once."""

# ---- folds ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Accumulator:
    """How many values become one.

    Attributes:
        dtype: the name of that in which it is kept meanwhile.
        start: what no values are.
        how: from what there is so far, and a value, to what there is then; of two such as well.
        finish: from what there is in the end to a value of the dtype of the result.
    """

    dtype: str
    start: str
    how: Text
    finish: Text = str

    @property
    def type(self) -> str:
        """The type of the dtype."""
        return TYPES[self.dtype]


def _add(a: str, b: str) -> str:
    return f"{a} + {b}"


_SUMS = {
    "int32": Accumulator("int32", "0i", _add),
    "int64": Accumulator("int64", "0li", _add),
    "float16": Accumulator("float32", "zero()", _add, lambda x: f"to_f16({x})"),
    "float32": Accumulator("float32", "zero()", _add),
    "float64": Accumulator("float64", "zero_f64()", _add),
}
_LEAST = {
    "bool": "false",
    "int32": "bitcast<i32>(0x80000000u)",
    "int64": "bitcast<i64>(0x8000000000000000lu)",
    "float16": "-infinity()",
    "float32": "-infinity()",
    "float64": "-infinity_f64()",
}
_MAXIMA = {name: Accumulator(name, least, _TEXTS[name]["maximum"]) for name, least in _LEAST.items()}


def sums(dtype: str) -> Accumulator:
    """How values of a dtype are added up; those of float16 in float32, with one rounding in the end."""
    return _SUMS[dtype]


def maxima(dtype: str) -> Accumulator:
    """How the largest of the values of a dtype is found."""
    return _MAXIMA[dtype]


# ---- numbers -------------------------------------------------------------------------------------------------

_FLOATS = {of.type: of for of in (FLOAT32, FLOAT64)}
_ORDINARY = 60
"""Up to which power of 2 numbers are literals.

A compiler that reckons with two of them finds no infinity, which WGSL does not allow there, and no subnormal number.
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


def of_bits(bits: int, type: str) -> str:
    """The number of a type that bits are, such that a compiler cannot reckon with it where it should not.

    >>> of_bits(0xC020000000000000, "f64"), of_bits(0x7F800000, "f32"), of_bits(7, "i64")
    ('(-8.0lf)', 'infinity()', '7li')
    """
    if type in _FLOATS:
        return _float(bits, _FLOATS[type])
    size, suffix = (32, "") if type == "i32" else (64, "l")
    return f"{bits}{suffix}i" if bits >> size - 1 == 0 else f"bitcast<{type}>({bits:#x}{suffix}u)"


def _float(bits: int, of: Float) -> str:
    places, bias, sign = of.digits - 1, of.bias, 1 << of.bits - 1
    infinity = 2 * bias + 1 << places
    special = {0: "zero", sign: "minus_zero", infinity: "infinity", infinity | 1 << places - 1: "nan"}
    if bits in special:
        return f"{special[bits]}{of.suffix}()"
    if abs(((bits & ~sign) >> places) - bias) < _ORDINARY:
        (value,) = struct.unpack(f"<{of.format}", bits.to_bytes(of.bits // 8, "little"))
        return of.literal(value)
    return f"bitcast<{of.type}>({of.word}(opaque.x) | {of.word_of(bits)})"
