"""WGSL: what each elementwise op is, for each kind of dtype, and the functions that these call.

WGSL lets a driver assume that there are no NaNs and infinities, and drivers use that: what they would get wrong is
written so that they cannot.  Numbers such as 0 and infinity come from a uniform that the compiler does not know.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from tensorken_wgpu.functions import literal

TYPES = {"float32": "f32", "int32": "i32", "bool": "bool"}
"""The types of values in a kernel."""

STORED = {"float32": "f32", "int32": "i32", "bool": "u32"}
"""The types of elements in memory: WGSL has no bool there."""

OPAQUE = (0x00000000, 0x7F800000, 0x7FC00000, 0x80000000)
"""The bits of 0, infinity, NaN and -0, which kernels read as `opaque`."""

Text = Callable[..., str]

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
FLOAT: dict[str, Text] = {
    **_NUMBERS,
    "exp": lambda x: f"exponential({x})",
    "exp2": lambda x: f"power_of_two({x})",
    "log": lambda x: f"logarithm({x})",
    "sin": lambda x: f"sine({x})",
    "cos": lambda x: f"cosine({x})",
    "sqrt": lambda x: f"sqrt({x})",
    "floor": lambda x: f"floor({x})",
    "add": lambda a, b: f"exact({a} + {b})",
    "sub": lambda a, b: f"minus_itself({a})" if a == b else f"exact({a} - {b})",
    "mul": lambda a, b: f"exact({a} * {b})",
    "div": lambda a, b: f"over_itself({a})" if a == b else f"{a} / {b}",
    "pow": lambda a, b: f"power({a}, {b})",
    "maximum": lambda a, b: f"larger({a}, {b})",
    "to_bits": lambda x: f"bitcast<i32>({x})",
}
INTEGER: dict[str, Text] = {
    **_NUMBERS,
    "add": lambda a, b: f"{a} + {b}",
    "sub": lambda a, b: f"{a} - {b}",
    "mul": lambda a, b: f"{a} * {b}",
    "maximum": lambda a, b: f"max({a}, {b})",
    "from_bits": lambda x: f"bitcast<f32>({x})",
    "floor_divide": lambda a, b: f"floor_divide({a}, {b})",
    "bitwise_and": lambda a, b: f"{a} & {b}",
    "bitwise_or": lambda a, b: f"{a} | {b}",
    "bitwise_xor": lambda a, b: f"{a} ^ {b}",
    "shift_left": lambda a, b: f"shift_left({a}, {b})",
    "shift_right": lambda a, b: f"shift_right({a}, {b})",
}
BOOL: dict[str, Text] = {
    **_ALL,
    "lt": lambda a, b: f"!{a} & {b}",
    "maximum": lambda a, b: f"{a} | {b}",
}
OF_KIND = {"float": FLOAT, "int": INTEGER, "bool": BOOL}

CASTS: dict[tuple[str, str], Text] = {
    ("float32", "int32"): lambda x: f"to_integer({x})",
    ("float32", "bool"): lambda x: f"!({x} == 0.0)",
    ("int32", "float32"): lambda x: f"f32({x})",
    ("int32", "bool"): lambda x: f"{x} != 0",
    ("bool", "float32"): lambda x: f"select(0.0, 1.0, {x})",
    ("bool", "int32"): lambda x: f"select(0, 1, {x})",
}

SUM: dict[str, tuple[str, Text]] = {
    "float": ("zero()", lambda a, b: f"{a} + {b}"),
    "int": ("0", lambda a, b: f"{a} + {b}"),
}
MAX: dict[str, tuple[str, Text]] = {
    "float": ("-infinity()", FLOAT["maximum"]),
    "int": ("bitcast<i32>(0x80000000u)", INTEGER["maximum"]),
    "bool": ("false", BOOL["maximum"]),
}


def number(value: Any, dtype: Any) -> str:
    """A number of a dtype, such that the compiler cannot reckon with it where it should not."""
    if dtype.kind == "bool":
        return "true" if value else "false"
    if dtype.kind == "int":
        value = int(value)
        return str(value) if value >= 0 else f"bitcast<i32>({value & 0xFFFFFFFF:#010x}u)"
    (bits,) = struct.unpack("<I", _packed(float(value)))
    special = dict(zip(OPAQUE, ("zero()", "infinity()", "nan()", "minus_zero()"), strict=True))
    if bits in special:
        return special[bits]
    if math.isfinite(value) and abs(value) >= 2.0**-126:
        return literal(value)
    return f"bitcast<f32>(opaque.x | {bits:#010x}u)"


def _packed(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", math.copysign(math.inf, value))
