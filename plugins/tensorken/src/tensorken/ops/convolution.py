# mypy: disable-error-code="empty-body"
"""The op `convolution`: its shape rule, its body, its derivatives and its rule for batches.

    y[n, o, i] = sum over c and j of z[n, group(o) + c, strides * i + kernel_dilation * j] * kernel[o, c, j]

Here i and j are indices along all spatial axes; z is the input after `input_dilation - 1` zeros between its elements
and then `padding`, whose negative numbers cut; group(o) is the first input channel of the group of o.  Kernels are not
flipped, so in the words of signal processing it is a cross-correlation.

The convolution is linear in each operand, and the transposes of both linear functions are convolutions again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from tensorken_core.errors import ShapeError
from tensorken_core.language.bodies.arrangement import slice_along
from tensorken_core.language.declare import primitive
from tensorken_core.language.dtype_rules import numeric_with
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Axes, Pairs, Shape
from tensorken_core.tensor.tensor import Tensor

# ---- shapes --------------------------------------------------------------------------------------------------


def dilated(size: int, dilation: int) -> int:
    """The size of an axis with `dilation - 1` zeros between its elements."""
    return (size - 1) * dilation + 1 if size else 0


def windows_of(
    sizes: Shape, kernel: Shape, strides: Axes, padding: Pairs, input_dilation: Axes, kernel_dilation: Axes
) -> Shape:
    """The number of windows along each spatial axis.

    Raises:
        ShapeError: if no window fits along an axis.
    """
    counts = []
    facts = zip(sizes, kernel, strides, padding, input_dilation, kernel_dilation, strict=True)
    for axis, (n, k, stride, (before, after), step, kernel_step) in enumerate(facts):
        size, width = dilated(n, step) + before + after, dilated(k, kernel_step)
        if not 0 < width <= size:
            raise ShapeError(
                f"a kernel of {width} elements, with dilation, does not fit along spatial axis {axis}, which has "
                f"{size} with dilation and padding; pad the input"
            )
        counts.append((size - width) // stride + 1)
    return tuple(counts)


def _shape(
    x: Shape,
    kernel: Shape,
    strides: Axes,
    padding: Pairs,
    input_dilation: Axes,
    kernel_dilation: Axes,
    groups: int,
) -> Shape:
    rank = len(x) - 2
    if rank < 0 or len(kernel) != len(x):
        raise ShapeError(
            f"need shapes (batch, channels, *sizes) and (outputs, channels / groups, *sizes) with equally many "
            f"sizes, got {x} and {kernel}; reshape first"
        )
    if any(len(param) != rank for param in (strides, padding, input_dilation, kernel_dilation)):
        raise ShapeError(
            f"shape {x} needs {rank} strides, paddings and dilations; give each spatial axis one"
        )
    if min((*strides, *input_dilation, *kernel_dilation, groups)) < 1:
        raise ShapeError("strides, dilations and groups must be positive; the smallest is 1")
    if kernel[1] * groups != x[1] or kernel[0] % groups:
        raise ShapeError(
            f"{groups} groups of shape {x} and {kernel} clash: need {x[1]} input channels = groups * {kernel[1]}, and "
            f"outputs that the groups divide; change groups or the kernel"
        )
    found = windows_of(x[2:], kernel[2:], strides, padding, input_dilation, kernel_dilation)
    return (x[0], kernel[0], *found)


# ---- derivatives ---------------------------------------------------------------------------------------------


def _input_cotangent(t: Tensor, y: Tensor, x: Tensor, kernel: Tensor, *params: Any) -> Tensor | None:
    """The convolution of the cotangent with the flipped kernel, whose outputs are the inputs."""
    if not x.size:
        return None
    strides, _, input_dilation, kernel_dilation, groups = params
    outputs, inputs, *sizes = kernel.shape
    spatial = tuple(range(3, 3 + len(sizes)))
    turned = kernel.reshape((groups, outputs // groups, inputs, *sizes)).permute((0, 2, 1, *spatial))
    turned = turned.reshape((groups * inputs, outputs // groups, *sizes)).flip(
        tuple([axis - 1 for axis in spatial])
    )
    pads = []
    for n, windows, k, stride, (before, _), step, kernel_step in _axis_facts(t, x, kernel, params):
        width = dilated(k, kernel_step)
        pads.append((width - 1 - before, dilated(n, step) + before - dilated(windows, stride)))
    return _convolved(t, turned, input_dilation, tuple(pads), strides, kernel_dilation, groups)


def _kernel_cotangent(t: Tensor, y: Tensor, x: Tensor, kernel: Tensor, *params: Any) -> Tensor | None:
    """The convolution of the input with the cotangent as the kernel: it sums over the batch and all windows."""
    if not kernel.size:
        return None
    strides, _, input_dilation, kernel_dilation, groups = params
    outputs, inputs, *sizes = kernel.shape
    count, spatial = x.shape[0], tuple(range(2, 2 + len(sizes)))
    if math.prod(input_dilation) > math.prod(strides):
        # The input would have more zeros between its elements than the cotangent, so the cotangent is the input of the
        # convolution and the input its kernel, whose dilation costs nothing; the sums come in reverse order.
        turned = _swapped(t, groups, groups_first=False)
        turned = turned.reshape((outputs // groups, groups * count, *t.shape[2:]))
        pads = []
        for n, windows, k, stride, (before, _), step, kernel_step in _axis_facts(t, x, kernel, params):
            start = kernel_step * (k - 1) - before
            needed = dilated(k, kernel_step) + dilated(n, step) - 1
            pads.append((start, needed - dilated(windows, stride) - start))
        order = (1, 0, *spatial)
        y = _convolved(
            turned, x.permute(order), kernel_dilation, tuple(pads), strides, input_dilation, groups
        )
        y = y.reshape((outputs // groups, groups, inputs, *sizes)).swapaxes(0, 1)
        return y.reshape(kernel.shape).flip(spatial)
    turned = _swapped(x, groups, groups_first=False).reshape((inputs, groups * count, *x.shape[2:]))
    pads = []
    for n, windows, k, stride, (before, _), step, kernel_step in _axis_facts(t, x, kernel, params):
        needed = dilated(windows, stride) + dilated(k, kernel_step) - 1
        pads.append((before, needed - dilated(n, step) - before))
    order = (1, 0, *spatial)
    y = _convolved(turned, t.permute(order), kernel_dilation, tuple(pads), input_dilation, strides, groups)
    return y.permute(order)


def _axis_facts(t: Tensor, x: Tensor, kernel: Tensor, params: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """For each spatial axis the sizes of the input, the cotangent and the kernel, and the params."""
    return zip(x.shape[2:], t.shape[2:], kernel.shape[2:], *params[:4], strict=True)


def _swapped(x: Tensor, groups: int, groups_first: bool) -> Tensor:
    """x of shape (batch, channels, *sizes) as (channels, groups, batch, *sizes), or with the groups first.

    One group has no axis.
    """
    if groups == 1:
        return x.permute((1, 0, *range(2, x.ndim)))
    count, channels, *sizes = x.shape
    x = x.reshape((count, groups, channels // groups, *sizes))
    return x.permute(((1, 2, 0) if groups_first else (2, 1, 0)) + tuple(range(3, x.ndim)))


def _convolved(x: Tensor, kernel: Tensor, *params: Any) -> Tensor:
    y: Tensor = x.apply(OPS["convolution"], kernel, *params)
    return y


# ---- batches -------------------------------------------------------------------------------------------------


def _batch(flags: tuple[bool, ...], operands: Sequence[Tensor], params: tuple[Any, ...]) -> Tensor:
    """One convolution for all examples: examples of the input belong to its batch; those of the kernel are outputs of
    their own in each group, or, if the input differs too, groups of their own.
    """
    x, kernel = operands
    *rest, groups = params
    if not flags[1]:
        size, count, *of_x = x.shape
        y = _convolved(x.reshape((size * count, *of_x)), kernel, *params)
        return y.reshape((size, count, *y.shape[1:]))
    size, outputs, *of_kernel = kernel.shape
    kernel = kernel.reshape((size, groups, outputs // groups, *of_kernel))
    if flags[0]:
        _, count, channels, *sizes = x.shape
        x = x.permute((1, 0, *range(2, x.ndim))).reshape((count, size * channels, *sizes))
        kernel = kernel.reshape((size * outputs, *of_kernel))
        y = _convolved(x, kernel, *rest, size * groups)
        y = y.reshape((count, size, *(outputs, *y.shape[2:])))
        return y.permute((1, 0, *range(2, y.ndim)))
    kernel = kernel.permute((1, 0, *range(2, kernel.ndim))).reshape((size * outputs, *of_kernel))
    y = _convolved(x, kernel, *params)
    y = y.reshape((y.shape[0], groups, size, outputs // groups, *y.shape[2:]))
    y = y.permute((2, 0, 1, *range(3, y.ndim)))
    return y.reshape((size, y.shape[1], outputs, *y.shape[4:]))


MIN_POSITIONS = 128
"""So many windows of an image make a product of matrices efficient."""

# ---- the body ------------------------------------------------------------------------------------------------


def body(
    x: Tensor,
    kernel: Tensor,
    strides: Axes,
    padding: Pairs,
    input_dilation: Axes,
    kernel_dilation: Axes,
    groups: int,
) -> Tensor:
    """Products of matrices: of the kernels and the windows of each image; or, if that has fewer numbers, of the kernels
    and the elements of each image, of which those for one window are then added.
    """
    count, channels, *sizes = x.shape
    outputs, inputs, *kernel_sizes = kernel.shape
    windows = windows_of(tuple(sizes), tuple(kernel_sizes), strides, padding, input_dilation, kernel_dilation)
    elements, positions = math.prod(kernel_sizes), math.prod(windows)
    adds = outputs * math.prod(sizes) <= channels * positions
    if groups > 1 or max(elements, positions) < MIN_POSITIONS:
        # Products of each image alone are small: sum over all channels, or all images, as over a spatial axis.
        params = (1, *strides), ((0, 0), *padding), (1, *input_dilation), (1, *kernel_dilation)
        if (adds or positions >= elements) and count > 1:
            x = _swapped(x, groups, groups_first=True).reshape((1, channels, count, *sizes))
            y = body(x, kernel.reshape((outputs, inputs, 1, *kernel_sizes)), *params, groups)
            return y.reshape(y.shape[1:]).permute((1, 0, *range(2, kernel.ndim)))
        if positions < elements and inputs > 1:
            x = x.reshape((count, groups, inputs, *sizes))
            y = body(x, kernel.reshape((outputs, 1, inputs, *kernel_sizes)), *params, groups)
            return y.reshape((count, outputs, *windows))
    several = (groups,) if groups > 1 else ()  # one group has no axis
    lead, rank = len(several), len(sizes)
    spatial = range(rank)
    kernel = kernel.reshape((*several, outputs // groups, inputs, *kernel_sizes))
    if adds:  # the products are added one after the other, so not in the narrow dtype of a float
        dtype = x.dtype
        x, kernel = x.astype(dtype.wide), kernel.astype(dtype.wide)
        kernel = kernel.permute((*range(lead + 1), *[lead + 2 + axis for axis in spatial], lead + 1))
        x = x.reshape((count, *several, 1, inputs, math.prod(sizes)))
        y = (kernel.reshape((*several, outputs // groups * elements, inputs, 1)) * x).sum_in_own_dtype(
            lead + 2
        )
        y = y.reshape((count, outputs, *kernel_sizes, *sizes))
        y = _sum_of_products(y, windows, strides, padding, input_dilation, kernel_dilation)
        return y.astype(dtype)
    large = positions < elements
    if large:  # the cotangent of another convolution's kernel: its windows are those of that one, which has axes 0 and
        # 1 of its input the other way round
        x = _swapped(x, groups, groups_first=False).reshape((inputs, groups * count, *sizes))
    x = padded(x, tuple(kernel_sizes), windows, strides, padding, input_dilation, kernel_dilation)
    if not large:
        x = _stacked(x, kernel_sizes, kernel_dilation, windows, strides)
        x = x.reshape((count, *several, 1, inputs * elements, positions))
        y = (kernel.reshape((*several, outputs // groups, inputs * elements, 1)) * x).sum_in_own_dtype(
            lead + 2
        )
        return y.reshape((count, outputs, *windows))
    x = _stacked(x, windows, strides, kernel_sizes, kernel_dilation)
    x = x.reshape((inputs, *several, 1, count * positions, *kernel_sizes))
    kernel = kernel.permute((lead + 1, *range(lead + 1), *[lead + 2 + axis for axis in spatial]))
    kernel = kernel.reshape((*kernel.shape[: lead + 2], 1, *kernel_sizes))
    y = (kernel * x).sum_in_own_dtype((0, *[lead + 3 + axis for axis in spatial]))
    y = y.reshape((groups, outputs // groups, count, positions)).permute((2, 0, 1, 3))
    return y.reshape((count, outputs, *windows))


def padded(
    x: Tensor,
    kernel: Shape,
    windows: Shape,
    strides: Axes,
    padding: Pairs,
    input_dilation: Axes,
    kernel_dilation: Axes,
) -> Tensor:
    """The input with dilation and padding, as far as windows reach.

    Args:
        x: with two axes and then the spatial ones.
        kernel: its spatial sizes.
        windows: their number along each spatial axis.
        strides: those of the op, and so on.
    """
    facts = zip(kernel, windows, strides, padding, input_dilation, kernel_dilation, strict=True)
    for axis, (k, count, stride, (before, _), step, kernel_step) in enumerate(facts):
        needed = dilated(count, stride) + dilated(k, kernel_step) - 1
        x = _placed(x, axis + 2, step, before, needed)
    return x


def _sum_of_products(
    y: Tensor, windows: Shape, strides: Axes, padding: Pairs, input_dilation: Axes, kernel_dilation: Axes
) -> Tensor:
    """The sums over the elements of windows of their products; y has axes (count, outputs, *kernel sizes, *sizes)."""
    for axis in reversed(range(len(windows))):  # sum over the last axis of the kernel first
        place = y.ndim - len(windows) + axis - 1
        needed = dilated(windows[axis], strides[axis])
        total = None
        for j in range(y.shape[2 + axis]):
            before = padding[axis][0] - j * kernel_dilation[axis]
            part = _placed(_taken(y, 2 + axis, j), place, input_dilation[axis], before, needed)
            part = _every(part, place, 0, windows[axis], strides[axis])
            total = part if total is None else total + part
        assert total is not None
        y = total
    return y


def _stacked(x: Tensor, stacks: Sequence[int], steps: Axes, sizes: Sequence[int], strides: Axes) -> Tensor:
    """Slices along all spatial axes: element (a, b, *i, *j) is element (a, b, *(steps * i + strides * j)) of x.

    Args:
        x: with two axes and then the spatial ones.
        stacks: the number of slices along each spatial axis.
        steps: the distance between slices.
        sizes: of a slice.
        strides: the distance between the elements of a slice.
    """
    shape, parts = (*x.shape[:2], *stacks, *sizes), []
    for at in product(*map(range, stacks)):
        part = x
        for axis, (i, step, size, stride) in enumerate(zip(at, steps, sizes, strides, strict=True)):
            part = _every(part, 2 + axis, step * i, size, stride)
        parts.append(part.reshape((*shape[:2], 1, *sizes)))
    first, *rest = parts
    return (first.concatenate(*rest, axis=2) if rest else first).reshape(shape)


def _taken(x: Tensor, axis: int, i: int) -> Tensor:
    """Element i along an axis, which goes."""
    element: Tensor = slice_along(x, axis, i, i + 1).reshape((*x.shape[:axis], *x.shape[axis + 1 :]))
    return element


def _cut(x: Tensor, axis: int, start: int, end: int) -> Tensor:
    part: Tensor = x if (start, end) == (0, x.shape[axis]) else slice_along(x, axis, start, end)
    return part


def _padded(x: Tensor, axis: int, before: int, after: int) -> Tensor:
    if before == after == 0:
        return x
    return x.pad(tuple([(before, after) if place == axis else (0, 0) for place in range(x.ndim)]))


def _placed(x: Tensor, axis: int, dilation: int, before: int, size: int) -> Tensor:
    """The elements along an axis, `dilation` apart, from index `before` on, among zeros; those outside the size go."""
    first = min(-(before // dilation), x.shape[axis]) if before < 0 else 0
    last = max(min(-((before - size) // dilation), x.shape[axis]), first)
    x = _cut(x, axis, first, last)
    if first == last:
        return _padded(x, axis, 0, size)
    before += first * dilation
    if dilation > 1:
        shape = x.shape
        x = _padded(x.reshape((*shape[: axis + 1], 1, *shape[axis + 1 :])), axis + 1, 0, dilation - 1)
        x = x.reshape((*shape[:axis], shape[axis] * dilation, *shape[axis + 1 :]))
        x = _cut(x, axis, 0, dilated(shape[axis], dilation))
    return _padded(x, axis, before, size - before - x.shape[axis])


def _every(x: Tensor, axis: int, start: int, count: int, step: int) -> Tensor:
    """`count` elements along an axis from a start, `step` apart."""
    if step == 1 or count == 1:
        return _cut(x, axis, start, start + count)
    # Split the axis into rows of one step: their first elements are a view, unlike a slice with a step.
    shape = x.shape
    x = _cut(x, axis, start, min(start + count * step, shape[axis]))
    x = _padded(x, axis, 0, count * step - x.shape[axis])
    x = x.reshape((*shape[:axis], count, step, *shape[axis + 1 :]))
    return _taken(x, axis + 1, 0)


# ---- the op --------------------------------------------------------------------------------------------------


class Convolutions(Interpreter[R]):
    """Convolutions along any number of axes."""

    @primitive(
        shape=_shape,
        dtype=numeric_with(5),
        params=("strides", "padding", "dilation", "dilation", "groups"),
        jvp=(
            lambda t, y, x, kernel, *params: _convolved(t, kernel, *params),
            lambda t, y, x, kernel, *params: _convolved(x, t, *params),
        ),
        vjp=(_input_cotangent, _kernel_cotangent),
        batch=_batch,
        body=body,
        samples=(
            (((1, 2, 3, 2), (2, 2, 2, 1)), ((1, 2), ((1, 0), (0, 0)), (1, 1), (1, 1), 1)),
            (((1, 2, 3), (2, 1, 2)), ((2,), ((2, -1),), (2,), (2,), 2)),
            (((1, 2, 3), (1, 2, 2)), ((1,), ((0, 0),), (1,), (1,), 1)),
        ),
    )
    def convolution(
        self,
        x: R,
        kernel: R,
        strides: Axes,
        padding: Pairs,
        input_dilation: Axes,
        kernel_dilation: Axes,
        groups: int,
    ) -> R:
        """The sums of products of each kernel with each window of the input, for each group of channels."""
