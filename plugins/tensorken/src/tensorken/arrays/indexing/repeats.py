"""Several values for one position: the last, the product, the largest or the smallest, in a deterministic order.

If no position repeats, one scatter finds the number of the value for each position.  Otherwise a stable sort by
position makes the values of each position adjacent, and they are combined over distances of 1, 2, 4, ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorken.arrays.indexing.checks import known_all
from tensorken.arrays.indexing.masks import one_to
from tensorken_core.language.bodies.arrangement import slice_along
from tensorken_core.language.op import OPS, Op
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.tensor import Tensor

Combine = Callable[..., Any]
"""(same, earlier, later) -> the combination of both values where `same` is True, else the later value."""


def combine_repeats(
    values: Tensor, positions: Tensor, axis: int, size: int, combine: Combine | None, unique: bool = False
) -> tuple[Tensor, Tensor]:
    """Values along an axis, and for each of `size` positions the number of its value: 1, 2, ...; 0 if it has no value.

    Args:
        positions: the positions of the values, in [0, size).
        combine: the function that combines two values for one position; None to take the last.
        unique: whether it is known that no position repeats.
    """
    numbers = one_to(positions, positions.size)
    source: Tensor = numbers.scatter_add(positions, 0, size)
    # If two values had the same position, both would gather the sum of their numbers.
    if unique or known_all(source.gather(positions, 0).eq(numbers)):
        return values, source
    order = positions.argsort(0)
    positions = positions.gather(order, 0)
    if combine is None:
        return values, _last_of_runs(positions, order.astype(positions.dtype) + 1, size)
    values = values.gather(order, axis)
    count, step = positions.size, 1
    while step < count:
        same = positions.crop(((step, count),)).eq(positions.crop(((0, count - step),)))
        if known_all(~same):
            break
        later = slice_along(values, axis, step, count)
        both = combine(broadcast_along(same, later, axis), slice_along(values, axis, 0, count - step), later)
        values = slice_along(values, axis, 0, step).concatenate(both, axis=axis)
        step *= 2
    return values, _last_of_runs(positions, numbers, size)


def _last_of_runs(positions: Tensor, numbers: Tensor, size: int) -> Tensor:
    """For each position the number at the end of its run in the sorted positions; 0 for a position without a run."""
    count = positions.size
    last = ~positions.crop(((1, count),)).eq(positions.crop(((0, count - 1),)))
    last = last.concatenate(last.constant([True], last.dtype, (1,)))
    return last.where(numbers, 0).scatter_add(positions, 0, size)


def values_by_position(values: Tensor, source: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """A 1-D mask of the positions with a value, and the value for each position; an arbitrary value elsewhere."""
    touched = source > 0
    return touched, values.gather(touched.where(source - 1, 0), axis)


def broadcast_along(row: Tensor, x: Tensor, axis: int) -> Tensor:
    """A 1-D tensor along an axis of x, broadcast to the shape of x."""
    shape = tuple([n if i == axis else 1 for i, n in enumerate(x.shape)])
    return row.reshape(shape).expand(x.shape)


def product_where(same: Tensor, earlier: Tensor, later: Tensor) -> Tensor:
    """The product where `same`, else `later`; an unused factor becomes 1, so that infinity is not multiplied by 0."""
    return same.where(earlier, 1) * later


# ---- maximum and minimum -----------------------------------------------------------------------------------


def _extreme(name: str) -> Op:
    """The op that writes the maximum (minimum) of the old and the new values at positions along an axis.

    All values equal to the result share its derivative equally, as in `max`.
    """

    def elementwise(a: Tensor, b: Tensor) -> Tensor:
        larger: Tensor = a.apply(OPS[name], b)
        return larger

    def combine(same: Tensor, earlier: Tensor, later: Tensor) -> Tensor:
        return elementwise(same.where(earlier, later), later)

    def body(x: Tensor, values: Tensor, positions: Tensor, axis: int) -> Tensor:
        values, source = combine_repeats(values, positions, axis, x.shape[axis], combine)
        touched, values = values_by_position(values, source, axis)
        return broadcast_along(touched, x, axis).where(elementwise(x, values), x)

    def shares(y: Tensor, x: Tensor, values: Tensor, positions: Tensor, axis: int) -> tuple[Tensor, Tensor]:
        """The fraction of a position's derivative for its old value, and the fraction for each new value.

        Narrow floats are counted in float32.
        """
        size = x.shape[axis]
        hits = values.eq(y.gather(positions, axis)).astype(x.dtype.wide)
        stays = x.eq(y).astype(x.dtype.wide)
        total = stays + hits.scatter_add(positions, axis, size)
        touched = positions.ones_like().scatter_add(positions, 0, size) > 0
        return broadcast_along(touched, x, axis).where(stays / total, 1.0), hits / total.gather(
            positions, axis
        )

    def push(tangents: Any, ys: Any, xs: Any, params: Any) -> tuple[Tensor | None]:
        (x, values, positions), (axis,), (dx, dvalues, _) = xs, params, tangents
        x_share, values_share = shares(ys[0], x, values, positions, axis)
        pushed = None if dx is None else dx * x_share
        if dvalues is not None:
            added = (dvalues * values_share).scatter_add(positions, axis, x.shape[axis])
            pushed = added if pushed is None else pushed + added
        return (None if pushed is None else pushed.astype(x.dtype),)

    def pull(cotangents: Any, ys: Any, xs: Any, params: Any) -> tuple[Tensor, Tensor, None]:
        (t,), (x, values, positions), (axis,) = cotangents, xs, params
        x_share, values_share = shares(ys[0], x, values, positions, axis)
        pulled = t * x_share, t.gather(positions, axis) * values_share
        return *[each.astype(x.dtype) for each in pulled], None

    return Op(
        f"{name}_at",
        3,
        shape=lambda x, values, positions, axis: x,
        dtype=lambda x, values, positions, axis: x,
        params=("axis",),
        operand_kinds=("data", "data", "indices"),
        jvp_all=push,
        vjp_all=pull,
        body=body,
        per_example=True,
    )


_EXTREMES = {name: _extreme(name) for name in ("maximum", "minimum")}


def extreme(name: str, x: Tensor, values: Tensor, positions: Tensor, axis: int) -> Tensor:
    """x with the maximum (minimum) of its elements and the values written at positions along an axis."""
    result: Tensor = apply(_EXTREMES[name], (x, values, positions), (axis,))
    return result
