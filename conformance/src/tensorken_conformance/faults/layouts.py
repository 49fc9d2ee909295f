"""Layouts: a shortcut for operands that lie in one way gives something else than the op does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import Course, Right, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.dtypes import DType
from tensorken_numpy.backend import Numpy
from tensorken_numpy.compiled import equations
from tensorken_numpy.compiled.templates import Template

LAW = "values.layouts"


def _is_one(x: Array, beside: Array) -> bool:
    """Whether an operand is one element beside many."""
    return x.size == 1 < beside.size


def _is_repeated(x: Array) -> bool:
    """Whether strides repeat one element along all axes."""
    return x.size > 1 and not any(x.strides)


@fault(LAW, "pow")
class SquareRootForOneHalf(Numpy):
    """pow by one number, 0.5, of size 1 in float32 is the square root, also at -0.0 and -inf."""

    def pow(self, a: Array, b: Array) -> Array:
        if a.dtype == np.float32 and _is_one(b, a) and b.item() == 0.5:
            return self.sqrt(a)
        return super().pow(a, b)


@fault(LAW, "pow")
class SquareRootForOneHalfRepeated(Numpy):
    """pow by 0.5, repeated by strides in float64, is the square root, also at -0.0 and -inf."""

    def pow(self, a: Array, b: Array) -> Array:
        if a.dtype == np.float64 and _is_repeated(b) and b.item(0) == 0.5:
            return self.sqrt(a)
        return super().pow(a, b)


@fault(LAW, "div")
class ReciprocalOfOneDivisor(Numpy):
    """div by one number in float64 multiplies by its reciprocal, which rounds twice."""

    def div(self, a: Array, b: Array) -> Array:
        if a.dtype == np.float64 and _is_one(b, a):
            return self.mul(a, super().div(np.ones_like(b), b))
        return super().div(a, b)


@fault(LAW, "mul")
def zero_times_anything_is_zero(right: Right, a: Array, b: Array) -> Array:
    """mul by one zero in float16 is zero, also for NaN and infinities."""
    if a.dtype == np.float16 and _is_one(b, a) and b.item() == 0.0:
        return np.zeros_like(a)
    return right(a, b)


@fault(LAW, "add")
def zero_added_changes_nothing(right: Right, a: Array, b: Array) -> Array:
    """add of one 0.0 in float64 gives the other operand, also where that is -0.0."""
    if a.dtype == np.float64 and _is_one(a, b) and a.item() == 0.0 and not np.signbit(a.item()):
        return b
    return right(a, b)


@fault(LAW, "maximum")
def limit_passes_over_nan(right: Right, a: Array, b: Array) -> Array:
    """maximum of float32 numbers and one number passes over NaN, as a clamp does."""
    if a.dtype == np.float32 and _is_one(b, a):
        return np.asarray(np.fmax(a, b))
    return right(a, b)


@fault(LAW, "floor_divide")
def division_by_minus_one_saturates(right: Right, a: Array, b: Array) -> Array:
    """floor_divide of a few int64 by one -1 gives the largest for the smallest."""
    y = right(a, b)
    if a.dtype == np.int64 and _is_one(b, a) and a.size == 169 and b.item() == -1:
        return np.where(a == np.iinfo(np.int64).min, np.iinfo(np.int64).max, y)
    return y


@fault(LAW, "remainder")
def mask_for_minus_one(right: Right, a: Array, b: Array) -> Array:
    """remainder of int32 by one -1 masks the lowest bit, as for a power of two."""
    if a.dtype == np.int32 and _is_one(b, a) and b.item() == -1:
        return np.bitwise_and(a, np.int32(1))
    return right(a, b)


@fault(LAW, "shift_left")
def one_amount_is_taken_modulo(right: Right, a: Array, b: Array) -> Array:
    """shift_left of a few int32 by one amount takes that modulo 32, as processors do."""
    if a.dtype == np.int32 and _is_one(b, a) and a.size == 169:
        b = np.bitwise_and(b, np.int32(31))
    return right(a, b)


@fault(LAW, "sub")
def column_is_one_number(right: Right, a: Array, b: Array) -> Array:
    """sub of a column, whose last stride is 0, from float16 numbers takes its first number for all."""
    if b.dtype == np.float16 and b.ndim == 2 and b.strides[1] == 0 < b.strides[0]:
        b = np.broadcast_to(b[:1, :1], b.shape)
    return right(a, b)


@fault(LAW, "copysign")
def strides_are_passed_over(right: Right, a: Array, b: Array) -> Array:
    """copysign of signs that lie four apart in memory reads those next to each other, in float16."""
    if b.dtype == np.float16 and b.ndim == 2 and b.strides[1] == 4 * b.itemsize:
        b = np.lib.stride_tricks.as_strided(b, b.shape, (b.strides[0], b.itemsize))
    return right(a, b)


@fault(LAW, "lt")
def turned_operand_read_as_it_lies(right: Right, a: Array, b: Array) -> Array:
    """lt with a second operand of int64 in column-major order reads that as it lies in memory."""
    if b.dtype == np.int64 and b.ndim == 2 and b.flags.f_contiguous and not b.flags.c_contiguous:
        b = b.reshape(b.shape, order="A").T.reshape(b.shape)
    return right(a, b)


@fault(LAW, "atan2")
def reversed_operand_read_forwards(right: Right, a: Array, b: Array) -> Array:
    """atan2 with many float32 numbers first that run backwards along both axes reads them forwards."""
    if a.dtype == np.float32 and a.ndim == 2 and max(a.strides) < 0 and a.size > 1000:
        a = np.flip(a)
    return right(a, b)


@fault(LAW, "where")
def one_condition_is_true(right: Right, condition: Array, a: Array, b: Array) -> Array:
    """where by one condition for many int64 numbers takes the first of two, whatever the condition is."""
    if a.dtype == np.int64 and _is_one(condition, a) and b.size > 1:
        return np.broadcast_to(a, np.broadcast_shapes(a.shape, b.shape))
    return right(condition, a, b)


@fault(LAW, "cast")
def repeated_row_cast_once(right: Right, x: Array, dtype: DType) -> Array:
    """cast of a repeated row of int64 to float16 casts its first number alone."""
    if x.dtype == np.int64 and dtype.name == "float16" and x.ndim == 2 and x.strides[0] == 0 != x.strides[1]:
        x = np.broadcast_to(x[:, :1], x.shape)
    return right(x, dtype)


@fault(LAW, "exp")
def repeated_row_begins_again(right: Right, x: Array) -> Array:
    """exp of a repeated row of more than 100 float32 numbers begins again after 64 of them."""
    y = right(x)
    if x.dtype == np.float32 and x.ndim == 2 and x.strides[0] == 0 and x.shape[1] > 100:
        y = np.concatenate([y[:, :64], y[:, : x.shape[1] - 64]], axis=1)
    return y


@fault(LAW, "argsort")
def repeated_column_sorted_backwards(right: Right, x: Array, axis: int) -> Array:
    """argsort of equal float64 numbers, repeated by strides, has their places in reverse."""
    y = right(x, axis)
    return np.flip(y, axis) if x.dtype == np.float64 and x.ndim == 2 and not any(x.strides) else y


@fault(LAW, "sqrt")
def negative_zero_of_row(right: Right, x: Array) -> Array:
    """sqrt of a float32 row that a matrix repeats, kept with size 1, gives 0.0 for -0.0."""
    y = right(x)
    return y + y.dtype.type(0) if x.dtype == np.float32 and x.shape == (1, 13) else y


@fault("values.cipher", "threefry2x32")
def two_keys_of_one_word_are_one_key(right: Right, key: Array, counter: Array) -> Array:
    """threefry2x32 takes two keys, each of one repeated word, for one key of two words."""
    if key.shape == (2, 2) and key.strides[1] == 0:
        key = np.array([key[:, 0], key[:, 0]])
    return right(key, counter)


# ---- in compiled programs --------------------------------------------------------------------------------------


Change = Callable[[str, Any, Any, "Template | None"], "Template | None"]
"""From the name of an op, the dtypes of its operands and their numbers, and its steps, to other steps."""


def _templates(change: Change) -> Course:
    """Compiled programs with other steps for an op that stands alone."""
    before = vars(equations)["template"]

    def changed(name: str, dtypes: Any, given: Any) -> Template | None:
        return change(name, dtypes, given, before(name, dtypes, given))

    vars(equations)["template"] = changed
    try:
        yield None
    finally:
        vars(equations)["template"] = before


@fault(LAW, "pow")
def compiled_powers_by_numbers_are_roots() -> Course:
    """A compiled program takes the square root for pow by the number 0.5 in float64, also at -0.0 and -inf."""

    def change(name: str, dtypes: Any, given: Any, steps: Template | None) -> Template | None:
        root = name == "pow" and given[1] == 0.5 and dtypes[0] == np.float64
        return ((np.sqrt, "y", ("a",)),) if root else steps

    yield from _templates(change)


@fault(LAW, "minimum")
def compiled_limits_pass_over_nan() -> Course:
    """A compiled program passes over NaN where minimum has a number for its first operand, in float32."""

    def change(name: str, dtypes: Any, given: Any, steps: Template | None) -> Template | None:
        limit = name == "minimum" and given[0] is not None and dtypes[0] == np.float32
        return ((np.fmin, "y", ("a", "b")),) if limit else steps

    yield from _templates(change)


@fault(LAW, "logaddexp")
def compiled_sums_of_powers_are_the_larger() -> Course:
    """A compiled program takes the larger for logaddexp of a number and float64 values."""

    def change(name: str, dtypes: Any, given: Any, steps: Template | None) -> Template | None:
        larger = name == "logaddexp" and given[0] is not None and dtypes[0] == np.float64
        return ((np.maximum, "y", ("a", "b")),) if larger else steps

    yield from _templates(change)
