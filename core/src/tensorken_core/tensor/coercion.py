"""Coercion: conversion of data to operands on a tensor's backend and in its dtype."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from tensorken_core.errors import ArgumentError, DTypeError, ScalarRangeError
from tensorken_core.language.dtypes import (
    DType,
    bool_,
    check_scalar,
    promote,
    real_dtype,
    with_number,
    with_scalar,
)
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.value import V, Value

NUMBERS = frozenset({bool, int, float, complex})
"""The types of Python numbers that take the dtype of the tensor that they are combined with, if they can."""


def operand_of(op_name: str, data: Any, like: V) -> V:
    """Convert data to a tensor on the backend of another operand.

    Raises:
        ArgumentError: if the data cannot be converted.
    """
    try:
        operand: V = Interpreter.coerce(data, None, like.interpreter.base)
    except (ArgumentError, DTypeError) as error:
        raise ArgumentError(
            f"{op_name}: cannot combine a tensor with {type(data).__name__}: {error}"
        ) from None
    return operand


def as_operand(op_name: str, data: Any, like: V) -> V:
    """Convert data to a tensor on the backend of `like`; a Python number takes the dtype of `like` if it can."""
    if isinstance(data, Value):
        is_cast = data.is_number and data.dtype is not bool_  # a bool may be a condition
        return data.astype(promoted_dtype(data, like)) if is_cast else data  # type: ignore[return-value]
    if type(data) not in NUMBERS:
        return operand_of(op_name, data, like)
    dtype = with_scalar(like.dtype, data)
    if dtype.kind == "complex":
        check_supported(op_name, like.interpreter.base, dtype)
        number: V = Interpreter.coerce(data, dtype, like.interpreter.base)
        return number
    base = like.interpreter.base
    try:
        check_scalar(data, dtype)
    except ScalarRangeError as error:
        raise ScalarRangeError(f"{op_name}: {error}") from None
    check_supported(op_name, base, dtype)
    return type(like)(base, base.full((), data, dtype), (), dtype)  # type: ignore[attr-defined]


def promoted_dtype(a: Value, b: Value) -> DType:
    """The dtype to which two operands are promoted; a Python number takes that of the other operand if it can."""
    if a.is_number is b.is_number:
        return promote(a.dtype, b.dtype)
    x, number = (b, a) if a.is_number else (a, b)
    return with_number(x.dtype, number.dtype)


def common_dtype(xs: Sequence[Value]) -> DType:
    """The dtype to which several operands are promoted; Python numbers take that of the others if they can."""
    dtype = functools.reduce(promote, [x.dtype for x in xs if not x.is_number] or [x.dtype for x in xs])
    for x in xs:
        dtype = with_number(dtype, x.dtype) if x.is_number else dtype
    return dtype


def pair_of_operands(op_name: str, a: Any, b: Any, like: V) -> tuple[V, V]:
    """Two operands of one dtype; a number takes the other's dtype, two numbers the default dtypes of their kinds."""
    if isinstance(a, Value):
        b = as_operand(op_name, b, a)
    elif isinstance(b, Value):
        a = as_operand(op_name, a, b)
    else:
        a, b = as_operand(op_name, a, like), as_operand(op_name, b, like)
    dtype = promoted_dtype(a, b)
    return a.astype(dtype), b.astype(dtype)


def is_supported(interpreter: Any, dtype: DType) -> bool:
    """Whether an interpreter has a dtype: it has no values, declares the dtype, or declares none."""
    declared = interpreter.capabilities.dtypes if isinstance(interpreter, RawTensor) else ()
    return not declared or real_dtype(dtype).name in declared


def check_supported(op_name: str, interpreter: Any, dtype: DType) -> None:
    """Raise DTypeError if a backend declares its dtypes and this dtype is not among them."""
    if not is_supported(interpreter, dtype):
        name, capabilities = Interpreter.name_of(interpreter), interpreter.capabilities
        remedy = capabilities.unsupported.get(f"*.{dtype}", f"use one of {', '.join(capabilities.dtypes)}")
        raise DTypeError(f"{op_name}: the backend {name} has no {dtype}; {remedy}")
