"""A backend on TensorFlow, whose eager ops run on the CPU.

The scripts in `bugs/` show why some ops are not TensorFlow's own functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tensorken_core.host.plugin import Capabilities
from tensorken_core.language.dtypes import DTYPES, DType, bfloat16, bool_, integer_bounds
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Axes, Pairs, Shape, multiplied
from tensorken_core.rewriting.fuse import Fuse

NAMES = """
    exp log sin cos sqrt floor add sub:subtract mul:multiply div:divide pow eq:equal where bitwise_and bitwise_or
    bitwise_xor
"""
"""The required ops that are functions of TensorFlow, with the function's name where it is another one."""

FLOAT_NAMES = """
    neg:negative abs sign maximum minimum round ceil square reciprocal expm1 log1p tan asin acos atan sinh cosh tanh
    asinh acosh atanh sigmoid softplus erf erfinv
"""
"""Further ops that are functions of TensorFlow for floats; for other dtypes the body of the op runs."""

A = Any


def vector(values: Any) -> A:
    """Integers as an operand, such as a shape."""
    return tf.constant(list(values), tf.int64)


class Tensorflow(RawTensor[A]):
    """Eager tensors; TensorFlow sets the processor to replace subnormal numbers by zeros."""

    capabilities = Capabilities(
        dtypes=tuple(DTYPES), flushes_subnormals=("bfloat16", "float32", "float64"), shares_memory=True
    )

    # ---- values ------------------------------------------------------------------------------------------------

    def new(self, shape: Shape, data: A, dtype: DType) -> A:
        given = np.array(data, "float32" if dtype is bfloat16 else dtype.name).reshape(shape)
        return tf.cast(tf.constant(given), dtype.name)

    def full(self, shape: Shape, value: Any, dtype: DType) -> A:
        return self.expand(self.new((1,) * len(shape), [value], dtype), shape)

    def shape(self, x: A) -> Shape:
        return tuple(x.shape)

    def dtype(self, x: A) -> DType:
        return DTYPES[x.dtype.name]

    def ravel(self, x: A) -> A:
        return np.array(tf.cast(x, tf.float32) if x.dtype == tf.bfloat16 else x).reshape(-1)

    # ---- elements ----------------------------------------------------------------------------------------------

    def lt(self, a: A, b: A) -> A:
        return ~a & b if a.dtype == tf.bool else tf.less(a, b)

    def cast(self, x: A, dtype: DType) -> A:
        if dtype is bool_:
            return x if x.dtype == tf.bool else tf.not_equal(x, tf.zeros((), x.dtype))
        if dtype.kind != "int" or not x.dtype.is_floating:
            return tf.cast(x, dtype.name)
        low, high = integer_bounds(dtype)
        wide = tf.cast(x, tf.float64)
        below, above = wide < float(low), wide >= float(high + 1)
        y = tf.cast(tf.where(below | above | (wide != wide), tf.zeros((), tf.float64), wide), dtype.name)
        return tf.where(below, tf.constant(low, y.dtype), tf.where(above, tf.constant(high, y.dtype), y))

    def remainder(self, a: A, b: A) -> A:
        if not a.dtype.is_floating:
            return self.interpret(OPS["remainder"], (a, b), ())
        y, zero = tf.math.floormod(a, b), tf.zeros((), a.dtype)
        return tf.where(tf.equal(y, zero), tf.where(b < zero, -zero, zero), y)

    def log2(self, x: A) -> A:
        flushed = x * tf.ones((), x.dtype)  # the body reads the bits, which are not flushed
        return self.interpret(OPS["log2"], (flushed,), ())

    def to_bits(self, x: A) -> A:
        bits = tf.bitcast(x, f"int{8 * x.dtype.size}")
        return tf.cast(bits, tf.int32) if x.dtype.size == 2 else bits

    def from_bits(self, x: A) -> A:
        return tf.bitcast(x, f"float{8 * x.dtype.size}")

    def floor_divide(self, a: A, b: A) -> A:
        zero = tf.equal(b, tf.zeros((), b.dtype))
        quotient = tf.math.floordiv(a, tf.where(zero, tf.ones((), b.dtype), b))
        return tf.where(zero, tf.zeros((), a.dtype), quotient)

    def _shift(self, shift: Callable[[A, A], A], a: A, b: A) -> A:
        """The shift of bits as an unsigned integer; 0 for a negative or too large number of places."""
        unsigned, bits = f"uint{8 * a.dtype.size}", 8 * a.dtype.size
        places = tf.bitcast(b, unsigned)
        outside = tf.greater(places, tf.constant(bits - 1, unsigned))
        y = shift(tf.bitcast(a, unsigned), tf.where(outside, tf.zeros((), unsigned), places))
        return tf.where(outside, tf.zeros((), a.dtype), tf.bitcast(y, a.dtype))

    def shift_left(self, a: A, b: A) -> A:
        return self._shift(tf.bitwise.left_shift, a, b)

    def shift_right(self, a: A, b: A) -> A:
        return self._shift(tf.bitwise.right_shift, a, b)

    # ---- movements ---------------------------------------------------------------------------------------------

    def reshape(self, x: A, shape: Shape) -> A:
        return tf.reshape(x, vector(shape))

    def permute(self, x: A, order: Shape) -> A:
        return tf.transpose(x, vector(order))

    def expand(self, x: A, shape: Shape) -> A:
        return tf.broadcast_to(x, vector(shape))

    def flip(self, x: A, axes: Axes) -> A:
        return tf.reverse(x, vector(axes))

    def crop(self, x: A, limits: Pairs) -> A:
        return tf.slice(x, vector([low for low, _ in limits]), vector([high - low for low, high in limits]))

    def pad(self, x: A, pads: Pairs) -> A:
        return tf.pad(x, tf.constant(pads, tf.int64)) if pads else x

    # ---- reductions and indexing -------------------------------------------------------------------------------

    def sum(self, x: A, axes: Axes) -> A:
        return tf.reduce_sum(x, vector(axes), keepdims=True)

    def max(self, x: A, axes: Axes) -> A:
        largest = tf.reduce_any if x.dtype == tf.bool else tf.reduce_max
        return largest(x, vector(axes), keepdims=True)

    def fused_multiply_add(self, a: A, b: A, axes: Axes) -> A:
        letters = "abcdefghijklmnopqrstuvwxyz"[: len(a.shape)]
        names = ["".join([c for c, n in zip(letters, x.shape, strict=True) if n != 1]) for x in (a, b)]
        kept = "".join([c for axis, c in enumerate(letters) if axis not in axes and c in "".join(names)])
        wide = a.dtype if a.dtype.is_floating else tf.int64
        factors = [tf.cast(tf.squeeze(x), wide) for x in (a, b)]
        y = tf.cast(tf.einsum(f"{','.join(names)}->{kept}", *factors), a.dtype)
        return self.reshape(y, multiplied(self.shape(a), self.shape(b), axes))

    def gather(self, x: A, indices: A, axis: int) -> A:
        return tf.gather(x, indices, axis=axis)

    def scatter_add(self, x: A, indices: A, axis: int, size: int) -> A:
        order = list(range(len(x.shape)))
        to_front, back = (
            [axis, *order[:axis], *order[axis + 1 :]],
            [*order[1 : axis + 1], 0, *order[axis + 1 :]],
        )
        y = tf.math.unsorted_segment_sum(self.permute(x, to_front), indices, size)
        return self.permute(y, back)

    def concatenate(self, *operands: Any) -> A:
        *pieces, axis = operands
        return tf.concat(pieces, axis)


def _function(name: str) -> Callable[..., A]:
    found: Callable[..., A] = next(
        getattr(module, name) for module in (tf, tf.math, tf.bitwise) if hasattr(module, name)
    )
    return found


def _method(op: str, name: str, of_floats: bool) -> Callable[..., A]:
    function = _function(name)

    def method(self: Tensorflow, *operands: A) -> A:
        if of_floats and not operands[0].dtype.is_floating:
            return self.interpret(OPS[op], operands, ())
        return function(*operands)

    return method


for _names, _of_floats in ((NAMES, False), (FLOAT_NAMES, True)):
    for _pair in _names.split():
        _op, _, _name = _pair.partition(":")
        setattr(Tensorflow, _op, _method(_op, _name or _op, _of_floats))


def load() -> RawTensor[Any]:
    """The backend for users: products are fused with the sums of them."""
    return Fuse(Tensorflow())
