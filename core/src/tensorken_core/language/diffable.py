# mypy: disable-error-code="empty-body"
"""Diffable: the table of the ops that have derivatives, each with its rules.

The primitives are here; ops that also have a body in terms of others are in the folder derived.
"""

from __future__ import annotations

import operator
from typing import Any

from tensorken_core.language import scalar
from tensorken_core.language.declare import elementwise, linear, primitive
from tensorken_core.language.derived import Derived
from tensorken_core.language.derived.arrangement import EXTREME
from tensorken_core.language.dtype_rules import (
    bits_of,
    cast_to,
    difference,
    float_of_bits,
    floating,
    indexed,
    indexed_sum,
    integer,
    numeric,
    numeric_with,
    predicate,
    selected,
)
from tensorken_core.language.dtypes import DType, float64
from tensorken_core.language.interpreter import R
from tensorken_core.language.shapes import (
    Axes,
    Pairs,
    Shape,
    cropped,
    expanded,
    flipped,
    gathered,
    padded,
    permuted,
    reduced,
    reshaped,
    scattered,
)


def _widened(x: Shape, new: Shape) -> Axes:
    return tuple([i for i, (a, b) in enumerate(zip(x, new, strict=True)) if a != b])


def _inverse(order: Axes) -> Axes:
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def _pow_base(t: Any, y: Any, a: Any, b: Any) -> Any:
    """b * a**(b - 1), and 0 where b is 0 and a is 0 or subnormal, so that a**-1 may be infinite."""
    flat = (a.abs() < 2.0 ** (2 - a.dtype.limit)) & b.eq(0.0)
    return t * (b * a ** flat.where(1.0, b - 1.0))


def _pow_exponent(t: Any, y: Any, a: Any, b: Any) -> Any:
    """log(a) * a**b, and 0 where a is 0 and b is not negative (there log(a) is infinite)."""
    flat = a.eq(0.0) & (b >= 0.0)
    return t * flat.where(0.0, flat.where(1.0, a).log() * y)


class Diffable(Derived[R]):
    """The differentiable part of the language."""

    # ---- elementwise -----------------------------------------------------------------------------------------

    @elementwise(scalar.exp, lambda t, y, x: t * y, dtype=floating)
    def exp(self, x: R) -> R:
        """e**x."""

    @elementwise(scalar.log, lambda t, y, x: t / x, dtype=floating, domain=(0.5, 2.0))
    def log(self, x: R) -> R:
        """The natural logarithm of x."""

    @elementwise(scalar.sin, lambda t, y, x: t * x.cos(), dtype=floating)
    def sin(self, x: R) -> R:
        """The sine of x, in radians."""

    @elementwise(scalar.cos, lambda t, y, x: -(t * x.sin()), dtype=floating)
    def cos(self, x: R) -> R:
        """The cosine of x, in radians."""

    @elementwise(scalar.sqrt, lambda t, y, x: t / (y + y), dtype=floating, domain=(0.5, 2.0))
    def sqrt(self, x: R) -> R:
        """The square root of x."""

    @elementwise(scalar.floor, None, dtype=floating)
    def floor(self, x: R) -> R:
        """The largest integer that is not above x; a zero has the sign of x; the derivative is 0."""

    @elementwise(
        operator.add,
        lambda t, y, a, b: t,
        lambda t, y, a, b: t,
        dtype=numeric,
        bool_version=lambda a, b: a | b,
    )
    def add(self, a: R, b: R) -> R:
        """a + b; `+` of two bools is or, as in numpy."""

    @elementwise(operator.sub, lambda t, y, a, b: t, lambda t, y, a, b: -t, dtype=difference)
    def sub(self, a: R, b: R) -> R:
        """a - b."""

    @elementwise(
        operator.mul,
        lambda t, y, a, b: t * b,
        lambda t, y, a, b: t * a,
        dtype=numeric,
        bool_version=lambda a, b: a & b,
    )
    def mul(self, a: R, b: R) -> R:
        """a * b; `*` of two bools is and, as in numpy."""

    @elementwise(
        scalar.div,
        lambda t, y, a, b: t / b,
        lambda t, y, a, b: -(t * y / b),
        dtype=floating,
        domain=(0.5, 2.0),
    )
    def div(self, a: R, b: R) -> R:
        """a / b."""

    @elementwise(scalar.pow, _pow_base, _pow_exponent, dtype=floating, domain=(0.5, 2.0))
    def pow(self, a: R, b: R) -> R:
        """a**b."""

    @elementwise(operator.eq, None, None, dtype=predicate)
    def eq(self, a: R, b: R) -> R:
        """Whether a equals b, as bool."""

    @elementwise(operator.lt, None, None, dtype=predicate)
    def lt(self, a: R, b: R) -> R:
        """Whether a is less than b, as bool."""

    @elementwise(
        lambda c, a, b: a if c else b,
        None,
        lambda t, y, c, a, b: c.where(t, 0.0),
        lambda t, y, c, a, b: c.where(0.0, t),
        dtype=selected,
        operand_kinds=("condition", "data", "data"),
    )
    def where(self, condition: R, a: R, b: R) -> R:
        """a where the condition is True, else b; the other operand contributes nothing, not even a NaN."""

    @primitive(
        shape=lambda x, dtype: x,
        dtype=cast_to,
        samples=((((2, 3),), (float64,)),),
        jvp=(lambda t, y, x, dtype: t.astype(dtype) if dtype.kind == "float" == x.dtype.kind else None,),
        vjp=(lambda t, y, x, dtype: t.astype(x.dtype) if dtype.kind == "float" == x.dtype.kind else None,),
    )
    def cast(self, x: R, dtype: DType) -> R:
        """x in another dtype: truncated to int, x != 0 to bool; linear from float to float, else constant."""

    # ---- integers --------------------------------------------------------------------------------------------

    @elementwise(scalar.to_bits, None, dtype=bits_of)
    def to_bits(self, x: R) -> R:
        """The bits of a float as an int of its size; of a narrower one as an int32, the sign repeated in front."""

    @elementwise(scalar.from_bits, dtype=float_of_bits)
    def from_bits(self, x: R) -> R:
        """The float32 with the bits of an int32, or the float64 with the bits of an int64."""

    @elementwise(operator.floordiv, dtype=integer)
    def floor_divide(self, a: R, b: R) -> R:
        """The largest integer not above a / b; 0 where b is 0."""

    @elementwise(operator.and_, dtype=integer)
    def bitwise_and(self, a: R, b: R) -> R:
        """The bits that are set in a and b, in two's complement."""

    @elementwise(operator.or_, dtype=integer)
    def bitwise_or(self, a: R, b: R) -> R:
        """The bits that are set in a or b."""

    @elementwise(operator.xor, dtype=integer)
    def bitwise_xor(self, a: R, b: R) -> R:
        """The bits in which a and b differ."""

    @elementwise(operator.lshift, dtype=integer)
    def shift_left(self, a: R, b: R) -> R:
        """a * 2**b, wrapping; 0 where b is not in [0, bits)."""

    @elementwise(operator.rshift, dtype=integer)
    def shift_right(self, a: R, b: R) -> R:
        """The bits of a shifted down by b, with zeros coming in (a logical shift); 0 where b is not in [0, bits)."""

    # ---- reductions ------------------------------------------------------------------------------------------

    @linear(
        reduced,
        lambda t, y, x, axes: t.expand(x.shape),
        (((2, 3),), ((0,),)),
        (((2, 3),), ((0, 1),)),
        (((2, 3),), ((),)),
        dtype=numeric_with(1),
    )
    def sum(self, x: R, axes: Axes) -> R:
        """The sum over axes, which are kept with size 1; a zero sum is 0.0, of either sign if all elements are -0.0."""

    @primitive(**EXTREME)
    def max(self, x: R, axes: Axes) -> R:
        """The maximum over axes, which are kept with size 1; NaN propagates; of 0.0 and -0.0 either.

        Ties share the derivative equally.
        """

    # ---- movement --------------------------------------------------------------------------------------------

    @linear(
        reshaped, lambda t, y, x, shape: t.reshape(x.shape), (((2, 3),), ((3, 2),)), (((2, 3),), ((1, 6, 1),))
    )
    def reshape(self, x: R, shape: Shape) -> R:
        """The same elements, in row-major order, in another shape."""

    @linear(permuted, lambda t, y, x, order: t.permute(_inverse(order)), (((2, 3, 4),), ((2, 0, 1),)))
    def permute(self, x: R, order: Axes) -> R:
        """The axes in another order: axis i of the result is axis order[i] of x."""

    @linear(
        expanded,
        lambda t, y, x, shape: t.sum(_widened(x.shape, shape), keepdims=True),
        (((2, 1),), ((2, 3),)),
        (((1, 1),), ((2, 3),)),
    )
    def expand(self, x: R, shape: Shape) -> R:
        """Axes of size 1 repeated to the sizes of shape; no axis is added."""

    @linear(flipped, lambda t, y, x, axes: t.flip(axes), (((2, 3),), ((1,),)), (((2, 3),), ((0, 1),)))
    def flip(self, x: R, axes: Axes) -> R:
        """The elements in reverse order along axes."""

    @linear(
        padded,
        lambda t, y, x, pads: t.crop(tuple([(p, p + n) for n, (p, _) in zip(x.shape, pads, strict=True)])),
        (((2, 3),), (((1, 2), (0, 1)),)),
    )
    def pad(self, x: R, pads: Pairs) -> R:
        """x with zeros (False) before and after along each axis."""

    @linear(
        cropped,
        lambda t, y, x, limits: t.pad(tuple([(s, n - e) for n, (s, e) in zip(x.shape, limits, strict=True)])),
        (((4, 3),), (((1, 3), (0, 2)),)),
    )
    def crop(self, x: R, limits: Pairs) -> R:
        """The elements from start to end (exclusive) along each axis."""

    # ---- indexing --------------------------------------------------------------------------------------------

    @primitive(
        shape=gathered,
        dtype=indexed,
        operand_kinds=("data", "indices"),
        jvp=(lambda t, y, x, indices, axis: t.gather(indices, axis), None),
        vjp=(lambda t, y, x, indices, axis: t.scatter_add(indices, axis, x.shape[axis]), None),
        samples=((((3, 4), (5,)), (0,)), (((3, 4), (2,)), (1,))),
    )
    def gather(self, x: R, indices: R, axis: int) -> R:
        """The slices of x at the indices, each in [0, size), along the axis."""

    @primitive(
        shape=scattered,
        dtype=indexed_sum,
        operand_kinds=("data", "indices"),
        jvp=(lambda t, y, x, indices, axis, size: t.scatter_add(indices, axis, size), None),
        vjp=(lambda t, y, x, indices, axis, size: t.gather(indices, axis), None),
        samples=((((5, 4), (5,)), (0, 3)), (((3, 2), (2,)), (1, 4))),
    )
    def scatter_add(self, x: R, indices: R, axis: int, size: int) -> R:
        """Zeros of `size` along the axis, with the slices of x added at the indices, in any order."""
