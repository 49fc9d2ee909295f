"""Ints, slices with any step, and new axes, as sequences of movement ops.

Each step has an inverse, so the same plan both extracts a part of a tensor and writes it back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorken_core.language.dtypes import bool_
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor

Step = tuple[str, Any]
"""The name of a movement op and its param."""


def row_steps(shape: Shape, index: int) -> list[Step]:
    """The steps for one int in [0, size): a fast path for the most common key."""
    limits = ((index, index + 1), *[(0, n) for n in shape[1:]])
    return [("crop", limits), ("reshape", shape[1:])]


def movement_steps(shape: Shape, entries: Sequence[Any]) -> list[Step]:
    """The steps for one entry per axis: an int in [0, size), a range of such ints, or None for a new axis of size 1."""
    flips: list[int] = []
    limits: list[tuple[int, int]] = []
    strides: list[int] = []
    result: list[int] = []
    axis = 0
    for entry in entries:
        if entry is None:
            result.append(1)
            continue
        size = shape[axis]
        if type(entry) is range:
            start, step, count = entry.start, entry.step, len(entry)
            if step < 0 and count:
                flips.append(axis)
                start = size - 1 - start
            low, stride = (start, abs(step)) if count else (0, 1)
            limits.append((low, low + (count - 1) * stride + 1 if count else low))
            strides.append(stride if count > 1 else 1)
            result.append(count)
        else:
            limits.append((entry, entry + 1))
            strides.append(1)
        axis += 1
    steps: list[Step] = []
    if flips:
        steps.append(("flip", tuple(flips)))
    current = shape
    if tuple(limits) != tuple([(0, n) for n in shape]):
        steps.append(("crop", tuple(limits)))
        current = tuple([e - s for s, e in limits])
    if any(stride > 1 for stride in strides):
        current = _add_strided(steps, current, strides)
    if tuple(result) != current:
        steps.append(("reshape", tuple(result)))
    return steps


def _add_strided(steps: list[Step], shape: Shape, strides: list[int]) -> Shape:
    """Every stride-th element: pad each axis to a multiple of its stride, split it in two, keep the first element."""
    counts = [-(-n // stride) for n, stride in zip(shape, strides, strict=True)]
    pads = tuple([(0, c * s - n) for n, s, c in zip(shape, strides, counts, strict=True)])
    split = tuple([size for pair in zip(counts, strides, strict=True) for size in pair])
    steps.append(("pad", pads))
    steps.append(("reshape", split))
    steps.append(("crop", tuple([limit for c in counts for limit in ((0, c), (0, 1))])))
    steps.append(("reshape", tuple(counts)))
    return tuple(counts)


def apply_steps(x: Tensor, steps: Sequence[Step]) -> Tensor:
    """The part of x that the steps extract."""
    for name, param in steps:
        x = x.apply(OPS[name], param)
    return x


def replace_part(x: Tensor, steps: Sequence[Step], part: Tensor) -> Tensor:
    """x with the part that the steps extract replaced by `part`."""
    shapes = shapes_along(x.shape, steps)
    full = _put_back(part, steps, shapes)
    if not any(name == "crop" for name, _ in steps):
        return full
    mask = x.constant([True], bool_, (1,)).reshape((1,) * part.ndim).expand(part.shape)
    result: Tensor = _put_back(mask, steps, shapes).where(full, x)
    return result


def shapes_along(shape: Shape, steps: Sequence[Step]) -> list[Shape]:
    """The shape before each step, and the shape after the last step."""
    shapes = [shape]
    for name, param in steps:
        shapes.append(OPS[name].shape(shapes[-1], param))
    return shapes


def _put_back(part: Tensor, steps: Sequence[Step], shapes: Sequence[Shape]) -> Tensor:
    """The part at its position in a tensor of zeros, by the inverse steps in reverse order."""
    for (name, param), shape in zip(reversed(steps), reversed(shapes[:-1]), strict=True):
        op, inverse = _INVERSE[name]
        part = part.apply(OPS[op], inverse(shape, param))
    return part


_INVERSE: dict[str, tuple[str, Callable[[Shape, Any], Any]]] = {
    "flip": ("flip", lambda shape, axes: axes),
    "permute": ("permute", lambda shape, order: tuple(sorted(range(len(order)), key=order.__getitem__))),
    "reshape": ("reshape", lambda shape, new: shape),
    "crop": (
        "pad",
        lambda shape, limits: tuple([(s, n - e) for n, (s, e) in zip(shape, limits, strict=True)]),
    ),
    "pad": ("crop", lambda shape, pads: tuple([(p, p + n) for n, (p, _) in zip(shape, pads, strict=True)])),
}
