"""Layouts: a shortcut for operands with one memory layout computes something else than the op."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.changes import replaced
from tensorken_conformance.faults.fault import Original, fault, fault_in_function
from tensorken_conformance.subject import Array
from tensorken_core.language.dtypes import DType
from tensorken_numpy.compiled import equations
from tensorken_numpy.compiled.templates import Template

LAW = "values.layouts"


def _is_one(x: Array, beside: Array) -> bool:
    """Whether an operand has one element and the other has many."""
    return x.size == 1 < beside.size


def _root(a: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(a))


@fault(LAW, "pow", dtype="float32")
def square_root_for_one_half(original: Original, a: Array, b: Array) -> Array:
    """pow by one number, 0.5, of size 1 in float32 is the square root, also at -0.0 and -inf."""
    return _root(a) if _is_one(b, a) and b.item() == 0.5 else original(a, b)


@fault(LAW, "pow", dtype="float64")
def square_root_for_one_half_repeated(original: Original, a: Array, b: Array) -> Array:
    """pow by 0.5, repeated by strides in float64, is the square root, also at -0.0 and -inf."""
    return _root(a) if b.size > 1 and not any(b.strides) and b.item(0) == 0.5 else original(a, b)


@fault(LAW, "div", dtype="float64")
def reciprocal_of_one_divisor(original: Original, a: Array, b: Array) -> Array:
    """div by one number in float64 multiplies by its reciprocal, which rounds twice."""
    with np.errstate(all="ignore"):
        return np.asarray(a * original(np.ones_like(b), b)) if _is_one(b, a) else original(a, b)


@fault(LAW, "mul", dtype="float16")
def zero_times_anything_is_zero(original: Original, a: Array, b: Array) -> Array:
    """mul by one zero in float16 is zero, also for NaN and infinities."""
    return np.zeros_like(a) if _is_one(b, a) and b.item() == 0.0 else original(a, b)


@fault(LAW, "add", dtype="float64")
def zero_added_changes_nothing(original: Original, a: Array, b: Array) -> Array:
    """add of one 0.0 in float64 returns the other operand, also where that is -0.0."""
    return b if _is_one(a, b) and a.item() == 0.0 and not np.signbit(a.item()) else original(a, b)


@fault(LAW, "maximum", dtype="float32")
def limit_passes_over_nan(original: Original, a: Array, b: Array) -> Array:
    """maximum of float32 numbers and one number ignores NaN, as a clamp does."""
    return np.asarray(np.fmax(a, b)) if _is_one(b, a) else original(a, b)


@fault(LAW, "floor_divide", dtype="int64")
def division_by_minus_one_saturates(original: Original, a: Array, b: Array) -> Array:
    """floor_divide of a few int64 by one -1 returns the largest number for the smallest."""
    y, ends = original(a, b), np.iinfo(np.int64)
    return replaced(y, a == ends.min, ends.max) if _is_one(b, a) and a.size == 169 and b.item() == -1 else y


@fault(LAW, "remainder", dtype="int32")
def mask_for_minus_one(original: Original, a: Array, b: Array) -> Array:
    """remainder of int32 by one -1 masks the lowest bit, as for a power of two."""
    return np.bitwise_and(a, np.int32(1)) if _is_one(b, a) and b.item() == -1 else original(a, b)


@fault(LAW, "shift_left", dtype="int32")
def one_amount_is_taken_modulo(original: Original, a: Array, b: Array) -> Array:
    """shift_left of a few int32 by one amount reduces it modulo 32, as processors do."""
    return original(a, np.bitwise_and(b, np.int32(31)) if _is_one(b, a) and a.size == 169 else b)


@fault(LAW, "sub", dtype="float16", ndim=2)
def column_is_one_number(original: Original, a: Array, b: Array) -> Array:
    """sub of a column, whose last stride is 0, from float16 numbers uses its first number for all."""
    column = b.ndim == 2 and b.strides[1] == 0 < b.strides[0]
    return original(a, np.broadcast_to(b[:1, :1], b.shape) if column else b)


@fault(LAW, "copysign", dtype="float16", ndim=2)
def strides_are_passed_over(original: Original, a: Array, b: Array) -> Array:
    """copysign of signs that lie four apart in memory reads those next to each other, in float16."""
    if b.ndim == 2 and b.strides[1] == 4 * b.itemsize:
        b = np.lib.stride_tricks.as_strided(b, b.shape, (b.strides[0], b.itemsize))
    return original(a, b)


@fault(LAW, "lt", dtype="int64", ndim=2)
def turned_operand_read_as_it_lies(original: Original, a: Array, b: Array) -> Array:
    """lt with a second operand of int64 in column-major order reads it in the order of memory."""
    if b.ndim == 2 and b.flags.f_contiguous and not b.flags.c_contiguous:
        b = b.reshape(b.shape, order="A").T.reshape(b.shape)
    return original(a, b)


@fault(LAW, "atan2", dtype="float32", ndim=2)
def reversed_operand_read_forwards(original: Original, a: Array, b: Array) -> Array:
    """atan2 reads a first operand of many float32 numbers that is flipped along both axes forwards."""
    return original(np.flip(a) if a.ndim == 2 and max(a.strides) < 0 and a.size > 1000 else a, b)


@fault(LAW, "where", dtype="int64")
def one_condition_is_true(original: Original, condition: Array, a: Array, b: Array) -> Array:
    """where by one condition for many int64 numbers selects the first of two, whatever the condition is."""
    if _is_one(condition, a) and b.size > 1:
        return np.broadcast_to(a, np.broadcast_shapes(a.shape, b.shape))
    return original(condition, a, b)


@fault(LAW, "cast", dtype="int64", ndim=2)
def repeated_row_cast_once(original: Original, x: Array, dtype: DType) -> Array:
    """cast of a repeated row of int64 to float16 casts its first number alone."""
    row = dtype.name == "float16" and x.strides[0] == 0 != x.strides[1]
    return original(np.broadcast_to(x[:, :1], x.shape) if row else x, dtype)


@fault(LAW, "exp", dtype="float32", ndim=2)
def repeated_row_begins_again(original: Original, x: Array) -> Array:
    """exp of a repeated row of more than 100 float32 numbers begins again after 64 of them."""
    y, n = original(x), x.shape[1]
    return np.concatenate([y[:, :64], y[:, : n - 64]], axis=1) if x.strides[0] == 0 and n > 100 else y


@fault(LAW, "argsort", dtype="float64", ndim=2)
def repeated_column_sorted_backwards(original: Original, x: Array, axis: int) -> Array:
    """argsort of equal float64 numbers, repeated by strides, has their indices in reverse."""
    return original(x, axis) if any(x.strides) else np.flip(original(x, axis), axis)


@fault(LAW, "sqrt", dtype="float32", shape=(1, 13))
def negative_zero_of_row(original: Original, x: Array) -> Array:
    """sqrt of a float32 row that a matrix repeats, kept with size 1, is 0.0 for -0.0."""
    return original(x) + np.float32(0)


@fault("values.cipher", "threefry2x32", shape=(2, 2))
def two_keys_of_one_word_are_one_key(original: Original, key: Array, counter: Array) -> Array:
    """threefry2x32 reads two keys, each of one repeated word, as one key of two words."""
    if key.shape == (2, 2) and key.strides[1] == 0:
        key = np.array([key[:, 0], key[:, 0]])
    return original(key, counter)


# ---- in compiled programs --------------------------------------------------------------------------------------


@fault_in_function(LAW, equations, "template", "pow")
def compiled_powers_by_numbers_are_roots(original: Any, name: str, dtypes: Any, given: Any) -> Any:
    """A compiled program computes pow by the number 0.5 in float64 as a square root, also at -0.0 and -inf."""
    root = name == "pow" and given[1] == 0.5 and dtypes[0] == np.float64
    return ((np.sqrt, "y", ("a",)),) if root else original(name, dtypes, given)


@fault_in_function(LAW, equations, "template", "minimum")
def compiled_limits_pass_over_nan(original: Any, name: str, dtypes: Any, given: Any) -> Template | None:
    """A compiled program ignores NaN where the first operand of minimum is a number, in float32."""
    limit = name == "minimum" and given[0] is not None and dtypes[0] == np.float32
    return ((np.fmin, "y", ("a", "b")),) if limit else original(name, dtypes, given)


@fault_in_function(LAW, equations, "template", "logaddexp")
def compiled_sums_of_powers_are_the_larger(original: Any, name: str, dtypes: Any, given: Any) -> Any:
    """A compiled program computes logaddexp of a number and float64 values as their maximum."""
    larger = name == "logaddexp" and given[0] is not None and dtypes[0] == np.float64
    return ((np.maximum, "y", ("a", "b")),) if larger else original(name, dtypes, given)
