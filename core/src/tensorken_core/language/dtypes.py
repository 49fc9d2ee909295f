"""DTypes, their promotion, and the ranges of their numbers."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tensorken_core.errors import DTypeError, ScalarRangeError

Kind = Literal["bool", "int", "float", "complex"]


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
    format: str  # of the struct module and the buffer protocol; bfloat16, which they lack, is exchanged as float32
    signed: bool = True  # False of the unsigned integers
    precision: int = 0  # of floats: the bits of a significand, with the hidden one

    @property
    def limit(self) -> int:
        """The exponent of the power of two that exceeds all finite floats of the dtype."""
        return 1 << (8 * self.itemsize - self.precision - 1)

    @property
    def least(self) -> int:
        """The exponent of the smallest positive float of the dtype, which is a power of two."""
        return 3 - self.limit - self.precision

    @property
    def wide(self) -> DType:
        """The dtype in which ops compute, which is float32 for narrower floats, else the dtype itself."""
        return float32 if 0 < self.precision < float32.precision else self

    if TYPE_CHECKING:  # a library of functions attaches it

        def __call__(self, x: Any) -> Any: ...

    @property
    def inexact(self) -> bool:
        """Whether the elements are floats or complex numbers, which have derivatives."""
        return self.kind in ("float", "complex")

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
int8 = DType("int8", "int", 1, "b")
int16 = DType("int16", "int", 2, "h")
int32 = DType("int32", "int", 4, "i")
int64 = DType("int64", "int", 8, "q")
uint8 = DType("uint8", "int", 1, "B", False)
uint16 = DType("uint16", "int", 2, "H", False)
uint32 = DType("uint32", "int", 4, "I", False)
uint64 = DType("uint64", "int", 8, "Q", False)
float16 = DType("float16", "float", 2, "e", precision=11)
bfloat16 = DType("bfloat16", "float", 2, "f", precision=8)
float32 = DType("float32", "float", 4, "f", precision=24)
float64 = DType("float64", "float", 8, "d", precision=53)
complex64 = DType("complex64", "complex", 8, "Zf")
complex128 = DType("complex128", "complex", 16, "Zd")

SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = (float16, bfloat16, float32, float64)

DTYPES: dict[str, DType] = {d.name: d for d in (bool_, *INTEGERS, *FLOATS)}
"""The dtypes of the language, which a backend may have."""

COMPLEX: dict[str, DType] = {d.name: d for d in (complex64, complex128)}
"""The dtypes of complex tensors, which are pairs of real tensors and no values of a backend."""

_KINDS: tuple[Kind, ...] = ("bool", "int", "float", "complex")
_OF_PYTHON: dict[Any, DType] = {bool: bool_, int: int32, float: float32, complex: complex64}
_ALL = DTYPES | COMPLEX
_SHORT = {f"{d.kind[0] if d.signed else 'u'}{d.itemsize}": d for d in _ALL.values() if d is not bfloat16}
_NAMES = {kind.__name__: dtype for kind, dtype in _OF_PYTHON.items()}
_NAMES |= _SHORT | {"half": float16, "single": float32, "double": float64} | _ALL


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
        result = _NAMES.get(name.removesuffix("_").lstrip("=<|")) if isinstance(name, str) else None
    if result is None:
        what = repr(name) if isinstance(name, str) else f"<{type(dtype).__name__}>"
        hint = "; the sizes of a shape go into one tuple" if isinstance(dtype, int) else ""
        hint = "; give numbers by name, as in maxval=1.0" if isinstance(dtype, float) else hint
        raise DTypeError(f"dtype: the dtype {what} is unknown; the dtypes are {', '.join(_ALL)}{hint}")
    return result


def of_scalar(value: bool | int | float | complex) -> DType:
    """The default dtype of a Python number: bool, int32, float32 or complex64."""
    if isinstance(value, complex):
        return complex64
    return bool_ if isinstance(value, bool) else int32 if isinstance(value, int) else float32


def complex_dtype(dtype: DType) -> DType:
    """The dtype of complex numbers with parts of a dtype: complex128 for float64, complex64 for narrower dtypes.

    >>> complex_dtype(float64), complex_dtype(int32), complex_dtype(complex128)
    (tensorken.complex128, tensorken.complex64, tensorken.complex128)
    """
    return complex128 if dtype in (float64, complex128) else complex64


def real_dtype(dtype: DType) -> DType:
    """The dtype of the parts of a complex dtype; any other dtype itself.

    >>> real_dtype(complex128), real_dtype(int32)
    (tensorken.float64, tensorken.int32)
    """
    return dtype if dtype.kind != "complex" else float64 if dtype is complex128 else float32


def promote(a: DType, b: DType) -> DType:
    """The dtype to which two operands are promoted.

    Two dtypes of one kind promote to the wider, float16 and bfloat16 to float32, int and float to the float, bool and
    another to the other; float64 and a complex dtype to complex128, all other dtypes and a complex dtype to it.  A
    signed and an unsigned integer promote to the smallest signed integer that has the numbers of both, as in the array
    API standard; uint64 and a signed integer to float64, as in numpy.

    >>> promote(int32, float32), promote(float32, float64), promote(uint8, int8), promote(uint64, int8)
    (tensorken.float32, tensorken.float64, tensorken.int16, tensorken.float64)
    """
    if a is b:
        return a
    if a.kind == b.kind:
        if a.signed is not b.signed:
            signed, unsigned = (a, b) if a.signed else (b, a)
            size = max(signed.itemsize, 2 * unsigned.itemsize)
            return next((dtype for dtype in SIGNED if dtype.itemsize == size), float64)
        return float32 if a.itemsize == b.itemsize else a if a.itemsize > b.itemsize else b
    wider, other = (a, b) if _KINDS.index(a.kind) > _KINDS.index(b.kind) else (b, a)
    return complex128 if wider is complex64 and other is float64 else wider


def with_scalar(dtype: DType, value: bool | int | float | complex) -> DType:
    """The dtype to which a tensor of `dtype` and a Python number are promoted: `dtype` if the number's kind allows.

    >>> with_scalar(int32, 2.5), with_scalar(float64, 2)
    (tensorken.float32, tensorken.float64)
    """
    return with_number(dtype, of_scalar(value))


def with_number(dtype: DType, number: DType) -> DType:
    """The dtype to which a tensor of `dtype` and a Python number that is carried in the dtype `number` are promoted.

    >>> with_number(int32, float64), with_number(float64, int32)
    (tensorken.float32, tensorken.float64)
    """
    if _KINDS.index(number.kind) <= _KINDS.index(dtype.kind):
        return dtype
    return complex_dtype(dtype) if number.kind == "complex" else float32 if number is float64 else number


def python_scalar(value: bool | int | float, dtype: DType) -> bool | int | float:
    """The number as the Python type for a dtype: bool, int or float."""
    return (bool if dtype.kind == "bool" else int if dtype.kind == "int" else float)(value)


_SUM_DTYPES = {bool_: int32, int8: int32, int16: int32, uint8: uint32, uint16: uint32}


def sum_dtype(dtype: DType) -> DType:
    """The dtype of sums and products of many elements: integers are widened to 32 bits, bools to int32.

    As in the array API standard, whose default integer is int32 here.

    >>> sum_dtype(bool_), sum_dtype(uint8), sum_dtype(int64)
    (tensorken.int32, tensorken.uint32, tensorken.int64)
    """
    return _SUM_DTYPES.get(dtype, dtype)


def index_dtype(dtype: DType) -> DType:
    """The dtype of indices that are given in an integer dtype: int32, or int64 if int32 has not all its numbers.

    >>> index_dtype(uint8), index_dtype(uint32)
    (tensorken.int32, tensorken.int64)
    """
    return int64 if dtype.itemsize + (not dtype.signed) > 4 else int32


def position_dtype(size: int) -> DType:
    """The dtype of positions along an axis of a size, and of counts of its elements: int32, or int64 for 2**31 or more.

    >>> position_dtype(2**31 - 1), position_dtype(2**31)
    (tensorken.int32, tensorken.int64)
    """
    return int32 if size < 2**31 else int64


def integer_bounds(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest number of an integer dtype.

    >>> integer_bounds(int8), integer_bounds(uint8)
    ((-128, 127), (0, 255))
    """
    bits = 8 * dtype.itemsize
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtype.signed else (0, (1 << bits) - 1)


def minus_one(dtype: DType) -> int:
    """The number that is -1 modulo 2**bits: -1, or the largest number of an unsigned dtype; all its bits are set."""
    return -1 if dtype.signed else integer_bounds(dtype)[1]


def check_scalar(value: bool | int | float, dtype: DType) -> None:
    """Raise ScalarRangeError if the Python number does not fit the dtype; the caller adds the op's name."""
    if dtype.kind == "int":
        low, high = integer_bounds(dtype)
        if not low <= value <= high:
            what = (
                value
                if isinstance(value, float) or abs(value) < 10**30
                else f"an int of {value.bit_length()} bits"
            )
            wider = "a float" if dtype in (int64, uint64) else "int64 or a float"
            bits = 8 * dtype.itemsize - dtype.signed
            limits = f"{f'-2**{bits}' if dtype.signed else 0} to 2**{bits} - 1"
            raise ScalarRangeError(f"{what} does not fit {dtype}: its range is {limits}; use {wider}")
    elif dtype.kind == "float" and isinstance(value, int):
        try:
            float(value)
        except OverflowError:
            raise ScalarRangeError(
                f"an int of {value.bit_length()} bits does not fit {dtype}; use math.inf or a smaller number"
            ) from None


def round_float(value: float, dtype: DType) -> float:
    """The float nearest to `value` in a floating-point dtype (infinity beyond its range)."""
    if dtype is float64 or not math.isfinite(value):
        return value
    unit = 2.0 ** max(math.frexp(value)[1] - dtype.precision, dtype.least)
    size = round(abs(value) / unit) * unit
    return math.copysign(size if size < 2.0**dtype.limit else math.inf, value)


def exact(value: bool | int | float) -> tuple[type, bool | int | bytes]:
    """A key for a number that distinguishes 1 and 1.0, 0.0 and -0.0, and NaNs with different bits.

    >>> exact(0.0) == exact(-0.0), exact(1) == exact(True), exact(float("nan")) == exact(float("nan"))
    (False, False, True)
    """
    return type(value), struct.pack("d", value) if isinstance(value, float) else value


def wrap_integer(value: int, dtype: DType) -> int:
    """`value` modulo 2**bits, in two's complement.

    >>> wrap_integer(2**31, int32), wrap_integer(-1, uint8)
    (-2147483648, 255)
    """
    low, _ = integer_bounds(dtype)
    return (value - low) % (1 << 8 * dtype.itemsize) + low
