"""Functions of sampled signals: interpolation, convolution, differences and integrals, phases.

Raises:
    AxisError: if an axis is out of range, or named twice.
    DTypeError: if the function is not defined for the dtype.
    ShapeError: if shapes do not fit together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arguments import ordered_axes_of, with_numpys_names
from tensorken.arrays.functions.complex_parts import conj
from tensorken.arrays.functions.convolution import convolution
from tensorken.arrays.functions.cumulative import cumsum, diff
from tensorken.arrays.functions.operands import as_tensors, first_operand, floating_of, promoted_tensors
from tensorken.arrays.functions.searching import insertion_points
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_core.language.bodies.arrangement import slice_along
from tensorken_core.language.dtypes import bool_, int32, int64, promote, real_dtype
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.coercion import as_operand, is_supported
from tensorken_core.tensor.normalization import axis_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "convolve",
    "correlate",
    "gradient",
    "interp",
    "trapezoid",
    "unwrap",
]

# ---- interpolation -----------------------------------------------------------------------------------------


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    period: Any = None,
) -> Tensor:
    """Piecewise linear interpolation of the points (xp, fp) at x; differentiable with respect to x, xp and fp.

    Args:
        x: where to interpolate, in any shape.
        xp: the ascending x-coordinates of the points.
        fp: the y-coordinates of the points.
        left, right: the values below the first and above the last point; by default those of these points.
        period: the period of the x-coordinates, which then need no order; `left` and `right` have no effect.

    Raises:
        ShapeError: if xp and fp are not vectors of one size, or have no elements.

    >>> import tensorken as tk
    >>> tk.interp([0.5, 1.5, 9.0], [0.0, 1.0, 2.0], [10.0, 20.0, 40.0]).tolist()
    [15.0, 30.0, 40.0]
    """
    at, points, values = [floating_of(t) for t in as_tensors("interp", (x, xp, fp))]
    at, points = promoted_tensors("interp", (at, points))
    if at.dtype.kind == "complex":
        raise DTypeError(f"interp: x and xp must be real, got {at.dtype}; take x.real; fp may be complex")
    common = promote(at.dtype, values.dtype)
    at, points, values = (
        at.astype(real_dtype(common)),
        points.astype(real_dtype(common)),
        values.astype(common),
    )
    if points.ndim != 1 or values.shape != points.shape or points.size == 0:
        raise ShapeError(
            f"interp: xp and fp must be vectors of one size from 1, got {points.shape} and {values.shape}"
        )
    if period is not None:
        at, points = at % period, points % period
        order = points.argsort(0)
        points, values = points.gather(order, 0), values.gather(order, 0)
        points = (points[-1:] - period).concatenate(points, points[:1] + period, axis=0)
        values = values[-1:].concatenate(values, values[:1], axis=0)
        left = right = None
    n, flat = points.size, at.ravel()
    above = insertion_points(points, flat, "right").maximum(1).minimum(max(n - 1, 1))
    x0, y0 = points.gather(above - 1, 0), values.gather(above - 1, 0)
    x1, y1 = (t.gather(above.minimum(n - 1), 0) for t in (points, values))
    width: Any = x1 - x0
    share = x0.eq(-math.inf).where(1.0, (flat - x0) / width.eq(0.0).where(1.0, width))
    between = flat.eq(x1).where(y1, flat.eq(x0).where(y0, _between(y0, y1, share))).reshape(at.shape)
    first, last = points[0], points[n - 1]
    result = (at < first).where(values[0] if left is None else left, between)
    return (at > last).where(values[n - 1] if right is None else right, result)


def _between(low: Any, high: Any, share: Any) -> Any:
    """The linear interpolation for a share from 0 to 1; an infinite value if the other is finite or equal."""
    low_is_finite, high_is_finite = low.abs() < math.inf, high.abs() < math.inf
    finite = low_is_finite & high_is_finite
    a, b = finite.where(low, 0.0), finite.where(high, 0.0)
    rise = b - a
    small = rise.abs() < math.inf
    regular = small.where(a + share * small.where(rise, 0.0), a * (1.0 - share) + b * share)
    infinite = low_is_finite.where(high, (high_is_finite | low.eq(high)).where(low, low + high))
    return finite.where(regular, share.eq(share).where(infinite, share))


# ---- convolution -------------------------------------------------------------------------------------------


def convolve(a: ArrayLike, v: ArrayLike, mode: str = "full") -> Tensor:
    """The discrete convolution of two vectors: element k is the sum of a[i] * v[k - i] over all i.

    Args:
        mode: "full" for all elements; "same" for as many as the longer vector has, from the middle; "valid" for those
            at which the vectors overlap completely.

    Raises:
        ArgumentError: if the mode is another one.
        ShapeError: if an operand is not a vector, or has no elements.

    >>> import tensorken as tk
    >>> tk.convolve([1.0, 2.0, 3.0], [0.0, 1.0, 0.5]).tolist()
    [0.0, 1.0, 2.5, 4.0, 1.5]
    """
    x, kernel = _vectors("convolve", a, v, mode)
    shorter = min(x.size, kernel.size)
    return _sliding(x, kernel.flip(0), mode, (shorter - 1) // 2)


def correlate(a: ArrayLike, v: ArrayLike, mode: str = "valid") -> Tensor:
    """The cross-correlation of two vectors: element k is the sum of a[k + i] * conj(v[i]) over all i.

    Args:
        mode: "valid" for the elements at which the vectors overlap completely; "same" for as many as the longer vector
            has, from the middle; "full" for all.

    Raises:
        ArgumentError: if the mode is another one.
        ShapeError: if an operand is not a vector, or has no elements.

    >>> import tensorken as tk
    >>> tk.correlate([1.0, 2.0, 3.0], [0.0, 1.0, 0.5], "same").tolist()
    [2.0, 3.5, 3.0]
    """
    x, kernel = _vectors("correlate", a, v, mode)
    shorter = min(x.size, kernel.size)
    start = (shorter - 1) // 2
    return _sliding(x, conj(kernel), mode, start if x.size >= kernel.size else shorter - 1 - start)


def _vectors(name: str, a: Any, v: Any, mode: str) -> tuple[Tensor, Tensor]:
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"{name}: mode must be 'full', 'same' or 'valid', got {short_repr(mode)}")
    x, kernel = promoted_tensors(name, (a, v))
    if x.ndim != 1 or kernel.ndim != 1 or not x.size or not kernel.size:
        raise ShapeError(
            f"{name}: need two vectors with elements, got {x.shape} and {kernel.shape}; see tk.convolution for images"
        )
    return x, kernel


def _sliding(x: Tensor, kernel: Tensor, mode: str, start: int) -> Tensor:
    """The sums of products of a kernel with all its windows, cropped to the mode; `start` is the first of "same"."""
    n, m = x.size, kernel.size
    of_bools = x.dtype is bool_
    x, kernel = (t.in_sum_dtype() if of_bools else t for t in (x, kernel))
    rows = convolution(x.reshape((1, 1, n)), kernel.reshape((1, 1, m)), padding=m - 1)
    rows = rows.astype(bool_) if of_bools else rows
    longer, shorter = max(n, m), min(n, m)
    first, count = {
        "full": (0, n + m - 1),
        "same": (start, longer),
        "valid": (shorter - 1, longer - shorter + 1),
    }[mode]
    return rows.reshape((n + m - 1,)).crop(((first, first + count),))


# ---- differences and integrals -----------------------------------------------------------------------------


def gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: int | Sequence[int] | None = None, edge_order: int = 1
) -> Any:
    """The derivative of sampled values along axes, all by default, by central differences, and at the ends one-sided.

    Args:
        f: the values.
        varargs: the distances between samples, 1 by default: one number for all axes, or for each axis a number or
            the vector of its coordinates.
        axis: the axes.
        edge_order: the order of accuracy at the ends, 1 or 2.

    Returns:
        A tensor for one axis, else a list with a tensor for each axis.

    Raises:
        ArgumentError: if there are neither 0 nor 1 distances nor one for each axis, or the order is not 1 or 2.
        ShapeError: if an axis has fewer than edge_order + 1 elements, or the coordinates do not fit it.

    >>> import tensorken as tk
    >>> tk.gradient([1.0, 2.0, 4.0, 7.0]).tolist(), tk.gradient([1.0, 2.0, 8.0], [0.0, 1.0, 3.0]).tolist()
    ([1.0, 1.5, 2.5, 3.0], [1.0, 1.6666666269302368, 3.0])
    """
    x = floating_of(as_tensor(f))
    axes = tuple(range(x.ndim)) if axis is None else ordered_axes_of("gradient", x.shape, axis)
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient: edge_order must be 1 or 2, got {short_repr(edge_order)}")
    spacings = [as_operand("gradient", given, x) for given in varargs or (1.0,)]
    if len(spacings) == 1 and spacings[0].ndim == 0:
        spacings = spacings * len(axes)
    if len(spacings) != len(axes):
        raise ArgumentError(
            f"gradient: got {len(spacings)} distances for {len(axes)} axes; give one number, or one for each axis"
        )
    results = [_derivative(x, along, h, edge_order) for along, h in zip(axes, spacings, strict=True)]
    return results[0] if len(results) == 1 else results


def _derivative(x: Tensor, axis: int, spacing: Tensor, edge_order: int) -> Tensor:
    """The differences along one axis, whose samples have a constant distance or coordinates."""
    n = x.shape[axis]
    if n < edge_order + 1:
        raise ShapeError(
            f"gradient: edge_order={edge_order} needs at least {edge_order + 1} elements along an axis, "
            f"got shape {x.shape}"
        )
    if spacing.ndim > 1 or (spacing.ndim == 1 and spacing.size != n):
        raise ShapeError(
            f"gradient: the coordinates of axis {axis} must be a vector of {n} elements, got shape {spacing.shape}"
        )
    beside = tuple([n - 1 if i == axis else 1 for i in range(x.ndim)])
    step = _widths(spacing, 0, x) if spacing.ndim else spacing.astype(x.dtype).broadcast_to((n - 1,))
    slopes: Any = diff(x, axis=axis) / step.reshape(beside)

    def part(values: Any, start: int, stop: int) -> Any:
        return slice_along(values, axis, start, stop)

    widths: Any = step.reshape(beside)
    first, last = part(slopes, 0, 1), part(slopes, n - 2, n - 1)
    if n == 2:
        ends: Tensor = first.concatenate(last, axis=axis)
        return ends
    before, after = part(widths, 0, n - 2), part(widths, 1, n - 1)
    if spacing.ndim:
        left, right = part(slopes, 0, n - 2), part(slopes, 1, n - 1)
        middle = (left * after + right * before) / (before + after)
    else:
        middle = (part(x, 2, n) - part(x, 0, n - 2)) / (before + after)
    if edge_order == 2:  # the derivative of the parabola through the last three points
        first = first + (first - part(slopes, 1, 2)) * part(before / (before + after), 0, 1)
        last = last + (last - part(slopes, n - 3, n - 2)) * part(after / (before + after), n - 3, n - 2)
    result: Tensor = first.concatenate(middle, last, axis=axis)
    return result


@with_numpys_names
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Tensor:
    """The integral of sampled values along an axis by the trapezoidal rule.

    Args:
        y: the values.
        x: the coordinates of the samples: a vector along the axis, or a tensor whose shape broadcasts to that of y.
        dx: the distance between samples if there are no coordinates.

    >>> import tensorken as tk
    >>> tk.trapezoid([1.0, 2.0, 3.0]).item(), tk.trapezoid([1.0, 2.0, 3.0], x=[4.0, 6.0, 8.0]).item()
    (4.0, 8.0)
    """
    values = floating_of(first_operand("trapezoid", y, x))
    along = axis_of("trapezoid", values.shape, axis)
    n = values.shape[along]
    widths: Any = dx
    if x is not None:
        points = as_operand("trapezoid", x, values)
        if points.ndim == 1:
            points = points.reshape((points.size, *[1] * (values.ndim - along - 1)))
        widths = _widths(points, along - values.ndim, values)
    upper, lower = slice_along(values, along, min(n, 1), n), slice_along(values, along, 0, max(n - 1, 0))
    result: Tensor = (widths * (upper + lower) * 0.5).sum(along)
    return result


def _widths(points: Tensor, axis: int, like: Tensor) -> Tensor:
    """The differences of coordinates along an axis, in the dtype of the values; those of integers do not wrap."""
    if points.dtype.kind == "bool" or (points.dtype.kind == "int" and points.dtype.itemsize < 4):
        points = points.astype(int32)
    elif points.dtype.kind == "int":
        points = points.astype(int64 if is_supported(points.interpreter.base, int64) else like.dtype)
    differences = diff(points, axis=axis)
    return differences if differences.dtype.inexact else differences.astype(like.dtype)


def unwrap(
    x: ArrayLike, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi
) -> Tensor:
    """x with multiples of the period added, so that neighbours along the axis differ by at most half a period.

    Args:
        discont: the difference from which on neighbours are changed; half a period is the least.

    >>> import tensorken as tk
    >>> tk.unwrap([0, 1, 2, -1, 0], period=4).tolist()
    [0, 1, 2, 3, 4]
    """
    y = as_tensor(x)
    y = y.astype(int32) if y.dtype is bool_ else y
    dtype = y.dtype if y.dtype.signed else None  # the steps of unsigned integers may be negative
    along = axis_of("unwrap", y.shape, axis)
    if y.dtype.kind == "int":
        y = floating_of(y) if not isinstance(period, int) else y.astype(promote(y.dtype, int32))
    step: Any = diff(y, axis=along)
    half = period // 2 if y.dtype.kind == "int" else period / 2.0
    is_exact = y.dtype.kind == "int" and period % 2 == 1
    moved = (step + half) % period - half
    if not is_exact:  # a step of exactly half a period keeps its sign
        moved = (moved.eq(-half) & (step > 0)).where(half, moved)
    least = half if discont is None else max(discont, half)
    correction = (step.abs() < least).where(0, moved - step)
    first: Tensor = slice_along(y, along, 0, min(y.shape[along], 1))
    unwrapped = y + first.zeros_like().concatenate(cumsum(correction.astype(y.dtype), along), axis=along)
    return unwrapped.astype(dtype) if dtype is not None and dtype.kind == unwrapped.dtype.kind else unwrapped
