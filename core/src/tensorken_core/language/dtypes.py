"""DTypes, their promotion, and the ranges of their numbers."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tensorken_core.errors import DTypeError, ScalarRangeError

Kind = Literal["bool", "int", "float"]


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """The type of a tensor's elements.

    There is one object for each dtype; a name (`"float32"`), a Python type (`float`) or numpy's dtype is accepted
    wherever a dtype is, and equal to it.

    >>> from tensorken import float32
    >>> float32.kind, float32.itemsize, float32 == "float32"
    ('float', 4, True)
    """

    name: str
    kind: Kind
    itemsize: int  # bytes
    format: str  # of the struct module and the buffer protocol

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self is other
        try:
            return as_dtype(other) is self
        except DTypeError:
            return False

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"tensorken.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[..., DType], tuple[str]]:
        return as_dtype, (self.name,)


bool_ = DType("bool", "bool", 1, "?")
int32 = DType("int32", "int", 4, "i")
int64 = DType("int64", "int", 8, "q")
float16 = DType("float16", "float", 2, "e")
float32 = DType("float32", "float", 4, "f")
float64 = DType("float64", "float", 8, "d")

DTYPES: dict[str, DType] = {d.name: d for d in (bool_, int32, int64, float16, float32, float64)}
FLOATS = (float16, float32, float64)
INTEGERS = (int32, int64)

_KINDS: tuple[Kind, ...] = ("bool", "int", "float")
_OF_PYTHON: dict[Any, DType] = {bool: bool_, int: int32, float: float32}


def as_dtype(dtype: Any) -> DType:
    """The DType for a DType, a name, a Python type or another library's dtype.

    Raises:
        DTypeError: if there is no such dtype.

    >>> as_dtype("float32"), as_dtype(int)
    (tensorken.float32, tensorken.int32)
    """
    if isinstance(dtype, DType):
        return dtype
    result, name = _OF_PYTHON.get(dtype) if isinstance(dtype, type) else None, None
    if result is None:
        name = (
            dtype
            if isinstance(dtype, str)
            else getattr(dtype, "__name__" if isinstance(dtype, type) else "name", None)
        )
        result = DTYPES.get(name.removesuffix("_")) if isinstance(name, str) else None
    if result is None:
        what = repr(name) if isinstance(name, str) else f"<{type(dtype).__name__}>"
        hint = "; the sizes of a shape go into one tuple" if isinstance(dtype, int) else ""
        raise DTypeError(f"dtype: {what} is unknown; the dtypes are {', '.join(DTYPES)}{hint}")
    return result


def of_scalar(value: bool | int | float) -> DType:
    """The default dtype of a Python number: bool, int32 or float32."""
    return bool_ if isinstance(value, bool) else int32 if isinstance(value, int) else float32


def promote(a: DType, b: DType) -> DType:
    """The dtype to which two operands are promoted.

    Two dtypes of one kind promote to the wider, int and float to the float, bool and another to the other.

    >>> promote(int32, float32), promote(float32, float64)
    (tensorken.float32, tensorken.float64)
    """
    if a is b:
        return a
    if a.kind == b.kind:
        return a if a.itemsize >= b.itemsize else b
    return a if _KINDS.index(a.kind) > _KINDS.index(b.kind) else b


def with_scalar(dtype: DType, value: bool | int | float) -> DType:
    """The dtype to which a tensor of `dtype` and a Python number are promoted: `dtype` if the number's kind allows.

    >>> with_scalar(int32, 2.5), with_scalar(float64, 2)
    (tensorken.float32, tensorken.float64)
    """
    kind = of_scalar(value)
    return dtype if _KINDS.index(kind.kind) <= _KINDS.index(dtype.kind) else kind


def python_scalar(value: bool | int | float, dtype: DType) -> bool | int | float:
    """The number as the Python type for a dtype: bool, int or float."""
    return (bool if dtype.kind == "bool" else int if dtype.kind == "int" else float)(value)


def check_scalar(value: bool | int | float, dtype: DType) -> None:
    """Raise ScalarRangeError if the Python number does not fit the dtype; the caller adds the op's name."""
    if dtype.kind == "int":
        bits = 8 * dtype.itemsize - 1
        if not -(1 << bits) <= value < (1 << bits):
            what = (
                value
                if isinstance(value, float) or abs(value) < 10**30
                else f"an int of {value.bit_length()} bits"
            )
            wider = "int64 or a float" if dtype is int32 else "a float"
            raise ScalarRangeError(
                f"{what} does not fit {dtype}: its range is -2**{bits} to 2**{bits} - 1; use {wider}"
            )
    elif dtype.kind == "float" and isinstance(value, int):
        try:
            float(value)
        except OverflowError:
            raise ScalarRangeError(
                f"an int of {value.bit_length()} bits does not fit {dtype}; use math.inf or a smaller number"
            ) from None


def round_float(value: float, dtype: DType) -> float:
    """The float nearest to `value` in a floating-point dtype (infinity beyond its range)."""
    if dtype is float64:
        return value
    try:
        return float(struct.unpack(dtype.format, struct.pack(dtype.format, value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def exact(value: bool | int | float) -> tuple[type, bool | int | bytes]:
    """A key for a number that distinguishes 1 and 1.0, 0.0 and -0.0, and NaNs with different bits.

    >>> exact(0.0) == exact(-0.0), exact(1) == exact(True), exact(float("nan")) == exact(float("nan"))
    (False, False, True)
    """
    return type(value), struct.pack("d", value) if isinstance(value, float) else value


def wrap_integer(value: int, dtype: DType) -> int:
    """`value` modulo 2**bits, in two's complement.

    >>> wrap_integer(2**31, int32)
    -2147483648
    """
    half = 1 << (8 * dtype.itemsize - 1)
    return (value + half) % (2 * half) - half
