"""`associative_scan`: all partial results of an associative function, in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorken_core import tree
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_core.tensor.normalization import axis_of
from tensorken_core.tensor.tensor import Tensor, as_tensor
from tensorken_core.transforms.arguments import check_function

__all__ = ["associative_scan"]


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The partial results of an associative function along an axis: x0, fn(x0, x1), fn(fn(x0, x1), x2) and so on.

    fn is called about 2 * log2(n) times, each time for many elements at once; in all, it combines fewer than 2 * n
    pairs.  A `scan` combines n - 1 pairs, one after the other, and fn need not be associative there.

    Args:
        fn: an associative function of two trees like elems, elementwise along the axis: fn(a, b) combines each slice of
            a with the slice of b at the same index, for any number of slices, also 0.
        elems: a pytree of tensors with the same size along the axis.
        reverse: whether to begin at the end: the last result is then the last element, x, the one before fn(x, y).
        axis: the axis, of each tensor.

    Returns:
        A tree like elems.

    Raises:
        ArgumentError: if elems has no tensors.
        AxisError: if a tensor lacks the axis.
        ShapeError, DTypeError, StructureError: if the sizes along the axis differ, or fn returns other shapes or
            dtypes, or another structure.

    >>> import tensorken as tk
    >>> tk.associative_scan(tk.add, tk.tensor([1.0, 2.0, 3.0, 4.0])).tolist()
    [1.0, 3.0, 6.0, 10.0]
    >>> # The states of a linear recurrence h = a * h + b from h = 0.
    >>> def combine(first, second):
    ...     (a, b), (c, d) = first, second
    ...     return a * c, b * c + d
    >>> a, b = tk.tensor([0.5, 0.5, 0.5]), tk.tensor([1.0, 2.0, 3.0])
    >>> tk.associative_scan(combine, (a, b))[1].tolist()
    [1.0, 2.5, 4.25]
    """
    name = "associative_scan"
    check_function(name, fn)
    leaves, structure = tree.flatten(elems)
    if not leaves:
        raise ArgumentError(f"{name}: elems has no tensors; pass at least one")
    tensors = [as_tensor(leaf) for leaf in leaves]
    axes = [axis_of(name, x.shape, axis) for x in tensors]
    sizes = [x.shape[along] for x, along in zip(tensors, axes, strict=True)]
    for i, size in enumerate(sizes):
        if size != sizes[0]:
            raise ShapeError(
                f"{name}: leaf 0 of elems has size {sizes[0]} along axis {axis} and leaf {i} has {size}; need equal "
                f"sizes"
            )

    def combine(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
        result = fn(tree.unflatten(structure, a), tree.unflatten(structure, b))
        found, actual = tree.flatten(result)
        tree.check_same(structure, actual, f"{name}: the result of the function")
        ys = [as_tensor(y) for y in found]
        for i, (x, y) in enumerate(zip(a, ys, strict=True)):
            text = f"{name}: the function returned {y.dtype.name} {y.shape} for leaf {i}, need {x.dtype.name} {x.shape}"
            if x.shape != y.shape:
                raise ShapeError(f"{text}; keep the size along the axis, and all others")
            if x.dtype is not y.dtype:
                raise DTypeError(f"{text}; cast it (x.astype)")
        return ys

    if reverse:
        tensors = [x.flip(along) for x, along in zip(tensors, axes, strict=True)]
    if sizes[0] > 1:
        tensors = _scanned(combine, tensors, axes)
    if reverse:
        tensors = [x.flip(along) for x, along in zip(tensors, axes, strict=True)]
    return tree.unflatten(structure, tensors)


def _scanned(
    combine: Callable[[list[Tensor], list[Tensor]], list[Tensor]], xs: list[Tensor], axes: list[int]
) -> list[Tensor]:
    """The partial results of at least two elements: those of pairs are the ones at odd indices."""
    size = xs[0].shape[axes[0]]
    even, odd = _every_second(xs, axes, 0), _every_second(xs, axes, 1)
    pairs = combine(_cut(even, axes, 0, size // 2), odd)
    at_odd = _scanned(combine, pairs, axes) if size > 3 else pairs
    at_even = _cut(even, axes, 0, 1)
    if size > 2:
        rest = (size - 1) // 2
        later = combine(_cut(at_odd, axes, 0, rest), _cut(even, axes, 1, rest + 1))
        at_even = [a.concatenate(b, axis=along) for a, b, along in zip(at_even, later, axes, strict=True)]
    return [_interleaved(a, b, along) for a, b, along in zip(at_even, at_odd, axes, strict=True)]


def _every_second(xs: list[Tensor], axes: list[int], start: int) -> list[Tensor]:
    return [x[(slice(None),) * along + (slice(start, None, 2),)] for x, along in zip(xs, axes, strict=True)]


def _cut(xs: list[Tensor], axes: list[int], start: int, stop: int) -> list[Tensor]:
    return [x[(slice(None),) * along + (slice(start, stop),)] for x, along in zip(xs, axes, strict=True)]


def _interleaved(even: Tensor, odd: Tensor, axis: int) -> Tensor:
    """Slices from both in turn, beginning with `even`, which may have one more."""
    shape, count = even.shape, odd.shape[axis]
    (first,) = _cut([even], [axis], 0, count)
    new = (*shape[:axis], count, 1, *shape[axis + 1 :])
    both = first.reshape(new).concatenate(odd.reshape(new), axis=axis + 1)
    both = both.reshape((*shape[:axis], 2 * count, *shape[axis + 1 :]))
    if shape[axis] == count:
        return both
    (last,) = _cut([even], [axis], count, count + 1)
    result: Tensor = both.concatenate(last, axis=axis)
    return result
