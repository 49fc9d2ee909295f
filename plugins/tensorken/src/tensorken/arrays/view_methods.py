"""Methods of `View` for contiguity and for the positions of elements in the buffer; `attach` adds them."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import product

from tensorken_core.errors import IndexingError
from tensorken_core.rewriting.view import View


def is_contiguous(self: View) -> bool:
    """Whether the elements in row-major order are adjacent in the buffer, at any offset."""
    if 0 in self.shape:
        return True
    stride = 1
    for size, actual in zip(reversed(self.shape), reversed(self.strides), strict=True):
        if size != 1:
            if actual != stride:
                return False
            stride *= size
    return True


def buffer_index(self: View, index: Sequence[int]) -> int:
    """The position in the buffer of the element at `index`: `offset + sum(strides * index)`.

    Raises:
        IndexingError: if the index has the wrong length or is out of range.

    >>> View.contiguous((3, 2)).crop(((0, 2), (1, 2))).buffer_index((1, 0))
    3
    """
    if len(index) != len(self.shape) or any(not 0 <= i < n for i, n in zip(index, self.shape, strict=True)):
        raise IndexingError(f"buffer_index: {tuple(index)} is not a valid index for shape {self.shape}")
    return self.offset + sum(s * i for s, i in zip(self.strides, index, strict=True))


def tensor_indices(self: View, element: int) -> Iterator[tuple[int, ...]]:
    """Every index of this element of the buffer, in row-major order.

    Usually there is one index.  There is none if the view omits the element (a crop), and there are several if a stride
    is zero (an expand) or if elements overlap (`as_strided`).

    >>> list(View.contiguous((1, 3)).expand((2, 3)).tensor_indices(1))
    [(0, 1), (1, 1)]
    """
    if not self.size:
        return iter(())
    # Only axes with a stride other than 0 determine the element; along the other axes, every index is a solution.
    order = sorted(
        (axis for axis, (n, s) in enumerate(zip(self.shape, self.strides, strict=True)) if n > 1 and s),
        key=lambda axis: -abs(self.strides[axis]),
    )
    choices: list[Sequence[int]] = [range(n) for n in self.shape]
    sequences: list[Iterator[tuple[int, ...]]] = []
    for solution in _solutions(self, order, element - self.offset):
        for axis, i in zip(order, solution, strict=True):
            choices[axis] = (i,)
        sequences.append(product(*choices))
    return heapq.merge(*sequences)


def tensor_index(self: View, element: int) -> tuple[int, ...]:
    """The first index, in row-major order, of this element of the buffer.

    Raises:
        IndexingError: if the view does not have the element.

    >>> View(shape=(2, 2), strides=(3, 1), offset=1).tensor_index(5)
    (1, 1)
    """
    for index in self.tensor_indices(element):
        return index
    raise IndexingError(f"tensor_index: {self} has no element {element} of the buffer")


def _solutions(view: View, axes: Sequence[int], distance: int) -> Iterator[tuple[int, ...]]:
    """The indices along `axes`, sorted by decreasing |stride|, that are `distance` from the offset."""
    if not axes:
        if distance == 0:
            yield ()
        return
    (axis, *inner) = axes
    size, stride = view.shape[axis], view.strides[axis]
    # The inner axes add between `lowest` and `highest`, so distance - i * stride must be in that range.
    # Without overlap the stride exceeds the sum of all inner steps, which leaves one candidate.
    steps = [view.strides[other] * (view.shape[other] - 1) for other in inner]
    lowest, highest = sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)
    low, high = distance - highest, distance - lowest
    if stride < 0:
        low, high, stride = -high, -low, -stride
    for i in range(max(0, -(-low // stride)), min(size - 1, high // stride) + 1):
        for rest in _solutions(view, inner, distance - i * view.strides[axis]):
            yield (i, *rest)


def attach() -> None:
    """Add the methods to `View`."""
    for method in (buffer_index, tensor_indices, tensor_index):
        setattr(View, method.__name__, method)
    View.is_contiguous = property(is_contiguous)  # type: ignore[method-assign, assignment]
