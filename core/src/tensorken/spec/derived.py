# mypy: disable-error-code="empty-body"
"""The derived ops: own derivative rules, and a default body in other ops that a backend may override.

A body obeys the same laws as an override: signed zeros, infinities and NaN come out as in a direct implementation.
"""

from __future__ import annotations

import math
from typing import Any

from tensorken.spec import bodies, scalar
from tensorken.spec.dtype_rules import anything, floating, movement, numeric, numeric_with, position
from tensorken.spec.interpreter import Interpreter, R
from tensorken.spec.op import elementwise, linear, primitive
from tensorken.spec.shapes import Axes, along_axis, concatenated, reduced_nonempty, without_axis


def _minima(y: Any, x: Any, axes: Axes) -> Any:
    """1 / (number of minima) where x attains the minimum y, else 0."""
    hits = x.eq(y.expand(x.shape)).astype(x.dtype)
    return hits / hits.sum(axes, keepdims=True).expand(x.shape)


def _chosen(t: Any, mine: Any, other: Any, y: Any) -> Any:
    """t where `mine` was chosen as the result y, half of it in a tie."""
    return mine.eq(y).where(mine.eq(other).where(t * 0.5, t), 0.0)


def _push_pieces(tangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    first, *rest = [x.zeros_like() if t is None else t for t, x in zip(tangents, xs, strict=True)]
    return (first.concatenate(*rest, axis=params[0]),)


def _pull_pieces(cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    (t,), axis, start, pieces = cotangents, params[0], 0, []
    for x in xs:
        end = start + x.shape[axis]
        pieces.append(t.crop(tuple([(start, end) if i == axis else (0, n) for i, n in enumerate(t.shape)])))
        start = end
    return tuple(pieces)


def _dtype_of_pieces(*args: Any) -> Any:
    return anything(*args[:-1])


class Derived(Interpreter[R]):
    """Ops that can be said in others."""

    # ---- elementwise, on numbers -----------------------------------------------------------------------------

    @elementwise(lambda x: -x, lambda t, y, x: -t, dtype=numeric, body=bodies.neg)
    def neg(self, x: R) -> R:
        """-x."""

    @elementwise(lambda x: x * x, lambda t, y, x: t * (x + x), dtype=numeric, body=bodies.square)
    def square(self, x: R) -> R:
        """x * x."""

    @elementwise(abs, lambda t, y, x: t * x.sign(), dtype=numeric, body=bodies.abs)
    def abs(self, x: R) -> R:
        """The absolute value of x; its derivative at 0 is 0."""

    @elementwise(scalar.sign, None, dtype=numeric, body=bodies.sign)
    def sign(self, x: R) -> R:
        """-1, 0 or 1 as x is negative, zero or positive; a zero keeps its sign, NaN stays."""

    @elementwise(
        scalar.maximum,
        lambda t, y, a, b: _chosen(t, a, b, y),
        lambda t, y, a, b: _chosen(t, b, a, y),
        dtype=numeric,
        body=bodies.maximum,
    )
    def maximum(self, a: R, b: R) -> R:
        """The larger of a and b; NaN if either is; a tie shares the derivative equally."""

    @elementwise(
        scalar.minimum,
        lambda t, y, a, b: _chosen(t, a, b, y),
        lambda t, y, a, b: _chosen(t, b, a, y),
        dtype=numeric,
        body=bodies.minimum,
    )
    def minimum(self, a: R, b: R) -> R:
        """The smaller of a and b; NaN if either is; a tie shares the derivative equally."""

    @elementwise(scalar.relu, lambda t, y, x: (y > 0.0).where(t, 0.0), dtype=floating, body=bodies.relu)
    def relu(self, x: R) -> R:
        """max(x, 0); its derivative at 0 is 0."""

    # ---- elementwise, on floats ------------------------------------------------------------------------------

    @elementwise(
        lambda x: scalar.div(1.0, x),
        lambda t, y, x: -(t * (y * y)),
        dtype=floating,
        body=bodies.reciprocal,
        domain=(0.5, 2.0),
    )
    def reciprocal(self, x: R) -> R:
        """1 / x."""

    @elementwise(
        scalar.tan, lambda t, y, x: t * (y * y + 1.0), dtype=floating, body=bodies.tan, domain=(-1.0, 1.0)
    )
    def tan(self, x: R) -> R:
        """The tangent of x, in radians."""

    @elementwise(math.tanh, lambda t, y, x: t * (1.0 - y * y), dtype=floating, body=bodies.tanh)
    def tanh(self, x: R) -> R:
        """The hyperbolic tangent of x."""

    @elementwise(
        scalar.sigmoid, lambda t, y, x: t * (y * (-x).sigmoid()), dtype=floating, body=bodies.sigmoid
    )
    def sigmoid(self, x: R) -> R:
        """1 / (1 + e**-x), without overflow."""

    @elementwise(
        scalar.log1p, lambda t, y, x: t / (x + 1.0), dtype=floating, body=bodies.log1p, domain=(-0.5, 2.0)
    )
    def log1p(self, x: R) -> R:
        """log(1 + x), accurate for small x."""

    @elementwise(scalar.expm1, lambda t, y, x: t * (y + 1.0), dtype=floating, body=bodies.expm1)
    def expm1(self, x: R) -> R:
        """e**x - 1, accurate for small x."""

    # ---- reductions and scans --------------------------------------------------------------------------------

    @primitive(
        arity=1,
        shape=reduced_nonempty,
        dtype=movement(1),
        params=("axes",),
        jvp=(lambda t, y, x, axes: (t * _minima(y, x, axes)).sum(axes, keepdims=True),),
        vjp=(lambda t, y, x, axes: t.expand(x.shape) * _minima(y, x, axes),),
        body=bodies.min,
        samples=((((2, 3),), ((1,),)), (((2, 3),), ((0, 1),))),
    )
    def min(self, x: R, axes: Axes) -> R:
        """The minimum over axes, which stay with size 1; NaN propagates; ties share the derivative equally."""

    @primitive(
        arity=1,
        shape=without_axis,
        dtype=position(1),
        params=("axis",),
        body=bodies.argmax,
        samples=((((2, 3),), (1,)), (((4,),), (0,))),
    )
    def argmax(self, x: R, axis: int) -> R:
        """The int32 index of the first maximum along the axis, which stays with size 1; a NaN counts as the maximum."""

    @linear(
        along_axis,
        lambda t, y, x, axis: t.flip((axis,)).cumsum(axis).flip((axis,)),
        (((2, 3),), (1,)),
        (((4,),), (0,)),
        dtype=numeric_with(1),
        params=("axis",),
        body=bodies.cumsum,
    )
    def cumsum(self, x: R, axis: int) -> R:
        """The running sum along the axis."""

    # ---- movement --------------------------------------------------------------------------------------------

    @primitive(
        arity=None,
        shape=concatenated,
        dtype=_dtype_of_pieces,
        params=("axis",),
        jvp_all=_push_pieces,
        vjp_all=_pull_pieces,
        body=bodies.concatenate,
        samples=((((2, 3), (4, 3)), (0,)), (((2, 1), (2, 2), (2, 3)), (1,))),
    )
    def concatenate(self, *operands: Any) -> R:
        """The operands one after the other along the axis, the last argument."""
