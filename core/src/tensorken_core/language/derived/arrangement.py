# mypy: disable-error-code="empty-body"
"""Derived ops along axes: prod, min, argmax, argmin, cumsum, cumprod, sort, argsort, concatenate."""

from __future__ import annotations

from typing import Any

from tensorken_core.language.bodies import arrangement
from tensorken_core.language.declare import linear, primitive
from tensorken_core.language.dtype_rules import anything, movement, numeric_with, position
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import (
    Axes,
    along_axis,
    concatenated,
    reduced,
    reduced_nonempty,
    sorted_positions,
    without_axis,
)


def tie_weights(y: Any, x: Any, axes: Axes) -> Any:
    """1 / (number of ties) where x equals y, its maximum or minimum over axes; else 0; narrow floats as float32."""
    hits = x.eq(y.expand(x.shape)).astype(x.dtype.wide)
    return hits / hits.sum(axes, keepdims=True).expand(x.shape)


def _sort_jvp(t: Any, y: Any, x: Any, axis: int) -> Any:
    """The tangents, permuted like the elements."""
    return arrangement.take_along(t, x.apply(OPS["argsort"], axis), axis)


def _sort_vjp(t: Any, y: Any, x: Any, axis: int) -> Any:
    """The cotangents, scattered to the original indices of the elements."""
    indices = arrangement.flat_indices(x.apply(OPS["argsort"], axis), x.shape[axis], axis)
    return t.reshape((t.size,)).scatter_add(indices, 0, t.size).reshape(x.shape)


def _cumprod_vjp(t: Any, y: Any, x: Any, axis: int) -> Any:
    """s times the product of the factors before each factor, where s[i] = t[i] + x[i + 1] * s[i + 1]."""
    after = arrangement.preceding(x.flip((axis,)), axis)
    return arrangement.recurrence(after, t.flip((axis,)), axis).flip((axis,)) * arrangement.preceding(y, axis)


def _concatenate_jvp(tangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    first, *rest = [x.zeros_like() if t is None else t for t, x in zip(tangents, xs, strict=True)]
    return (first.concatenate(*rest, axis=params[0]),)


def _concatenate_vjp(cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    (t,), axis, start, pieces = cotangents, params[0], 0, []
    for x in xs:
        end = start + x.shape[axis]
        pieces.append(arrangement.slice_along(t, axis, start, end))
        start = end
    return tuple(pieces)


def _dtype_of_concatenated(*args: Any) -> Any:
    return anything(*args[:-1])


EXTREME: Any = {
    "either_zero": True,
    "shape": reduced_nonempty,
    "dtype": movement(1),
    "jvp": (lambda t, y, x, axes: (t * tie_weights(y, x, axes)).sum(axes, keepdims=True).astype(x.dtype),),
    "vjp": (lambda t, y, x, axes: (t.expand(x.shape) * tie_weights(y, x, axes)).astype(x.dtype),),
    "samples": ((((2, 3),), ((1,),)), (((2, 3),), ((0, 1),)), (((2, 3),), ((),))),
}
"""The declaration that the ops `max` and `min` share."""


class Arrangement(Interpreter[R]):
    """Reductions, cumulative sums and products, sorting, concatenation."""

    # ---- reductions and scans ----------------------------------------------------------------------------------

    @primitive(**EXTREME, body=arrangement.min)
    def min(self, x: R, axes: Axes) -> R:
        """The minimum over axes, which are kept with size 1; NaN propagates; of 0.0 and -0.0 either.

        Ties share the derivative equally.
        """

    @primitive(
        shape=without_axis,
        dtype=position(1),
        body=arrangement.argmax,
        samples=((((2, 3),), (1,)), (((4,),), (0,))),
    )
    def argmax(self, x: R, axis: int) -> R:
        """The int32 index of the first maximum along the axis, which is kept with size 1; NaN counts as the maximum."""

    @primitive(
        shape=without_axis,
        dtype=position(1),
        body=arrangement.argmin,
        samples=((((2, 3),), (1,)), (((4,),), (0,))),
    )
    def argmin(self, x: R, axis: int) -> R:
        """The int32 index of the first minimum along the axis, which is kept with size 1; NaN counts as the minimum."""

    @linear(
        along_axis,
        lambda t, y, x, axis: t.flip((axis,)).apply(OPS["cumsum"], axis).flip((axis,)),
        (((2, 3),), (1,)),
        (((4,),), (0,)),
        dtype=numeric_with(1),
        body=arrangement.cumsum,
    )
    def cumsum(self, x: R, axis: int) -> R:
        """The cumulative sum along the axis."""

    @primitive(
        shape=reduced,
        dtype=numeric_with(1),
        jvp=(lambda t, y, x, axes: (t * arrangement.product_of_others(x, axes)).sum(axes, keepdims=True),),
        vjp=(lambda t, y, x, axes: t.expand(x.shape) * arrangement.product_of_others(x, axes),),
        body=arrangement.prod,
        samples=((((2, 3),), ((1,),)), (((2, 3, 2),), ((0, 2),)), (((2, 3),), ((),))),
    )
    def prod(self, x: R, axes: Axes) -> R:
        """The product over axes, which are kept with size 1; the derivative is correct for zero factors too."""

    @primitive(
        shape=along_axis,
        dtype=numeric_with(1),
        jvp=(lambda t, y, x, axis: arrangement.recurrence(x, t * arrangement.preceding(y, axis), axis),),
        vjp=(_cumprod_vjp,),
        body=arrangement.cumprod,
        samples=((((2, 3),), (1,)), (((4,),), (0,))),
    )
    def cumprod(self, x: R, axis: int) -> R:
        """The cumulative product along the axis; the derivative is correct for zero factors too."""

    # ---- sorting -----------------------------------------------------------------------------------------------

    @primitive(
        shape=along_axis,
        dtype=movement(1),
        jvp=(_sort_jvp,),
        vjp=(_sort_vjp,),
        body=arrangement.sort,
        samples=((((2, 5),), (1,)), (((3, 2),), (0,)), (((1,),), (0,)), (((2, 0),), (1,))),
    )
    def sort(self, x: R, axis: int) -> R:
        """The elements in ascending order along the axis; the sort is stable, and NaN comes last."""

    @primitive(
        shape=sorted_positions,
        dtype=position(1),
        body=arrangement.argsort,
        samples=((((2, 5),), (1,)), (((3, 2),), (0,)), (((1,),), (0,)), (((2, 0),), (1,))),
    )
    def argsort(self, x: R, axis: int) -> R:
        """The int32 indices that sort the elements along the axis; the sort is stable, and NaN comes last."""

    # ---- movement ----------------------------------------------------------------------------------------------

    @primitive(
        params=("axis",),
        shape=concatenated,
        dtype=_dtype_of_concatenated,
        jvp_all=_concatenate_jvp,
        vjp_all=_concatenate_vjp,
        body=arrangement.concatenate,
        samples=((((2, 3), (4, 3)), (0,)), (((2, 1), (2, 2), (2, 3)), (1,))),
    )
    def concatenate(self, *operands: Any) -> R:
        """The operands joined along the axis, which is the last argument."""
