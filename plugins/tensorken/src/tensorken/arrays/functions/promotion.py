"""DTypes: conversion, promotion, kinds, and the limits of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken_core.errors import ArgumentError, DTypeError
from tensorken_core.language.dtypes import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    SIGNED,
    UNSIGNED,
    DType,
    as_dtype,
    bool_,
    integer_bounds,
    of_scalar,
    promote,
    real_dtype,
    with_scalar,
)
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "astype",
    "can_cast",
    "finfo",
    "iinfo",
    "isdtype",
    "promote_types",
    "result_type",
]


def astype(x: ArrayLike, dtype: Any, *, copy: bool = True, device: str | None = None) -> Tensor:
    """x cast to another dtype: floats are truncated to ints, and every nonzero number is True.

    Args:
        x: the tensor.
        dtype: the dtype of the result.
        copy: has no effect, as tensors are immutable.
        device: the device of the result, one of the backend's devices; by default the device of x.

    Raises:
        DTypeError: if the dtype is unknown.

    >>> import tensorken as tk
    >>> tk.astype([1.5, -1.5], "int32").tolist()
    [1, -1]
    """
    result = as_tensor(x).astype(dtype)
    return result if device is None else result.to(result.backend, device)


# ---- limits ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FloatInfo:
    """The limits of a floating-point dtype, as Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType

    @property
    def tiny(self) -> float:
        """numpy's name for the smallest normal number."""
        return self.smallest_normal


@dataclass(frozen=True, slots=True)
class IntegerInfo:
    """The limits of an integer dtype, as Python numbers."""

    bits: int
    max: int
    min: int
    dtype: DType


def _float_info(dtype: DType) -> FloatInfo:
    eps = 2.0 ** (1 - dtype.precision)
    top = (2.0 - eps) * 2.0 ** (dtype.limit - 1)
    return FloatInfo(8 * dtype.itemsize, eps, top, -top, 2.0 ** (2 - dtype.limit), dtype)


_FLOATS = {dtype: _float_info(dtype) for dtype in FLOATS}


def finfo(type: Any) -> FloatInfo:
    """The limits of a floating-point dtype, of the parts of a complex one, or of the dtype of a tensor.

    Returns:
        An object with `bits`, `eps` (from 1 to the next number), `max`, `min`, `smallest_normal` and `dtype`.

    Raises:
        DTypeError: if the dtype is not floating-point.

    >>> import tensorken as tk
    >>> tk.finfo(tk.float32).eps == 2.0**-23
    True
    """
    dtype = type.dtype if isinstance(type, Tensor) else as_dtype(type)
    if not dtype.inexact:
        raise DTypeError(f"finfo: {dtype} is not floating-point; use iinfo for integers")
    return _FLOATS[real_dtype(dtype)]


def iinfo(type: Any) -> IntegerInfo:
    """The limits of an integer dtype, or of the dtype of a tensor.

    Returns:
        An object with `bits`, `max`, `min` and `dtype`.

    Raises:
        DTypeError: if the dtype is not an integer dtype.

    >>> import tensorken as tk
    >>> tk.iinfo(tk.int32).max
    2147483647
    """
    dtype = type.dtype if isinstance(type, Tensor) else as_dtype(type)
    if dtype.kind != "int":
        raise DTypeError(f"iinfo: {dtype} is not an integer dtype; use finfo for floats")
    low, high = integer_bounds(dtype)
    return IntegerInfo(8 * dtype.itemsize, high, low, dtype)


# ---- kinds and promotion -----------------------------------------------------------------------------------

KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (bool_,),
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": INTEGERS,
    "real floating": FLOATS,
    "complex floating": tuple(COMPLEX.values()),
    "numeric": (*INTEGERS, *FLOATS, *COMPLEX.values()),
}
"""The standard's kinds of dtypes."""


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind.

    Args:
        kind: a dtype; one of the names `bool`, `signed integer`, `unsigned integer`, `integral`, `real floating`,
            `complex floating` and `numeric`; or a tuple of these, as alternatives.

    Raises:
        ArgumentError: if the kind is none of these.

    >>> import tensorken as tk
    >>> tk.isdtype(tk.float32, "real floating"), tk.isdtype(tk.int32, ("bool", tk.int64))
    (True, False)
    """
    dtype_ = as_dtype(dtype)
    if isinstance(kind, tuple):
        return any([isdtype(dtype_, k) for k in kind])
    if isinstance(kind, DType):
        return dtype_ is kind
    if not isinstance(kind, str) or kind not in KINDS:
        raise ArgumentError(
            f"isdtype: the kind must be a dtype, one of {', '.join(KINDS)}, or a tuple of these, "
            f"got {short_repr(kind)}"
        )
    return dtype_ in KINDS[kind]


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype to which tensors, dtypes and Python numbers promote.

    Two dtypes of one kind promote to the wider one, int and float to the float, bool and another dtype to the other.  A
    Python number takes the dtype of the other operands if its kind allows.

    Raises:
        ArgumentError: if no argument is given.

    >>> import tensorken as tk
    >>> tk.result_type(tk.int32, tk.tensor([1.0]), 2)
    tensorken.float32
    """
    if not arrays_and_dtypes:
        raise ArgumentError("result_type: need at least one tensor, dtype or number, got no arguments")
    numbers = [
        x for x in arrays_and_dtypes if isinstance(x, complex | float | int) and not hasattr(x, "dtype")
    ]
    others = [x for x in arrays_and_dtypes if not isinstance(x, complex | float | int) or hasattr(x, "dtype")]
    result: DType | None = None
    for x in others:
        dtype = x.dtype if isinstance(x, Tensor) else as_dtype(x)
        result = dtype if result is None else promote(result, dtype)
    for number in numbers:
        result = of_scalar(number) if result is None else with_scalar(result, number)
    assert result is not None
    return result


def promote_types(type1: Any, type2: Any) -> DType:
    """The dtype to which two dtypes promote: `tk.result_type` of dtypes alone.

    Raises:
        DTypeError: if a dtype is unknown.

    >>> import tensorken as tk
    >>> tk.promote_types("int8", "uint8")
    tensorken.int16
    """
    return promote(as_dtype(type1), as_dtype(type2))


def can_cast(from_: Any, to: Any) -> bool:
    """Whether a dtype, or the dtype of a tensor, promotes to another dtype.

    Raises:
        DTypeError: if a dtype is unknown.

    >>> import tensorken as tk
    >>> tk.can_cast(tk.int32, tk.float32), tk.can_cast(tk.float64, tk.float32)
    (True, False)
    """
    start = from_.dtype if isinstance(from_, Tensor) else as_dtype(from_)
    return promote(start, as_dtype(to)) is as_dtype(to)
