"""View: a shape with strides and an offset, which maps an index to a position in a flat buffer, and back.

With a view, permute, expand, flip, crop, slicing with a step and most reshapes copy no elements. There is no `pad`,
since it adds elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from tensorken_core.errors import ShapeError
from tensorken_core.language.shapes import Shape, cropped, expanded, flipped, permuted, reshaped


@dataclass(frozen=True, slots=True)
class View:
    """A tensor of some shape in a flat buffer: the element at index `t` is at `offset + sum(strides * t)`.

    Strides and offset count elements, not bytes. A stride may be zero (the axis repeats its elements) or
    negative (it runs backwards). The movement methods return new views and never touch a buffer. The
    constructor does not check its arguments; `contiguous` and `as_strided` do.

    >>> View.contiguous((6, 2)).permute((1, 0))
    View(shape=(2, 6), strides=(1, 2), offset=0)
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    # Constructors.

    @classmethod
    def contiguous(cls, shape: Sequence[int], offset: int = 0) -> View:
        """The row-major view of a buffer: the last stride is 1, each other is the next stride times its size.

        Raises:
            ShapeError: if a size is negative.

        >>> View.contiguous((2, 3, 4)).strides
        (12, 4, 1)
        """
        shape = _checked_shape("contiguous", shape)
        strides = []
        stride = 1
        for size in reversed(shape):
            strides.append(stride)
            stride *= size
        return cls(shape, tuple(reversed(strides)), offset)

    @classmethod
    def as_strided(cls, shape: Sequence[int], strides: Sequence[int], offset: int, buffer_size: int) -> View:
        """The view with these strides, if all of it lies within a buffer of `buffer_size` elements.

        Elements may overlap: the windows of width 3 over 5 elements are shape `(3, 3)`, strides `(1, 1)`.

        Raises:
            ShapeError: if shape and strides differ in length, or an element would lie outside the buffer.

        >>> list(View.as_strided((3, 3), (1, 1), 0, buffer_size=5).indices())
        [0, 1, 2, 1, 2, 3, 2, 3, 4]
        """
        shape = _checked_shape("as_strided", shape)
        if len(strides) != len(shape):
            raise ShapeError(f"as_strided: shape {shape} and strides {tuple(strides)} must be equally long")
        view = cls(shape, tuple(strides), offset)
        lowest, highest = view.bounds if view.size else (offset, offset - 1)
        if lowest < 0 or highest >= buffer_size:
            raise ShapeError(
                f"as_strided: shape {shape} with strides {view.strides} and offset {offset} spans elements "
                f"{lowest} to {highest}, but a buffer of {buffer_size} has 0 to {buffer_size - 1}; "
                "choose a smaller shape or other strides"
            )
        return view

    # Properties.

    @property
    def size(self) -> int:
        """The number of elements: the product of the shape, 1 for shape `()`."""
        return math.prod(self.shape)

    @property
    def bounds(self) -> tuple[int, int]:
        """The lowest and the highest position in the buffer of an element of the view.

        Raises:
            ShapeError: if the view has no elements.

        >>> View.contiguous((2, 3)).flip((0,)).bounds
        (0, 5)
        """
        if not self.size:
            raise ShapeError(f"bounds: a view of shape {self.shape} has no elements")
        steps = [stride * (size - 1) for size, stride in zip(self.shape, self.strides, strict=True)]
        return self.offset + sum(s for s in steps if s < 0), self.offset + sum(s for s in steps if s > 0)

    def indices(self) -> Iterable[int]:
        """The positions of all elements in the buffer, in row-major order; a range if possible.

        >>> View.contiguous((2, 3)).indices()
        range(0, 6)
        >>> list(View.contiguous((2, 3)).permute((1, 0)).indices())
        [0, 3, 1, 4, 2, 5]
        """
        if not self.size:
            return range(0)
        (size, stride), *inner = self._blocks() or [(1, 1)]
        positions = _spaced(self.offset, size, stride)
        for size, stride in inner:
            positions = chain.from_iterable(map(_spaced, positions, repeat(size), repeat(stride)))
        return positions

    # Movement.

    def reshape(self, shape: Sequence[int]) -> View | None:
        """The view of the same elements, in the same row-major order, with another shape.

        None if there is no such view: numpy then copies the elements, and the view of the copy is
        `View.contiguous(shape)`.

        Raises:
            ShapeError: if the number of elements would change.

        >>> transposed = View.contiguous((6, 2)).permute((1, 0))
        >>> transposed.reshape((2, 2, 3))
        View(shape=(2, 2, 3), strides=(1, 6, 2), offset=0)
        >>> transposed.reshape((12,)) is None
        True
        """
        shape = _shape_of("reshape", reshaped, self.shape, tuple(shape))
        if not self.size:
            return View.contiguous(shape, self.offset)
        # A block of axes with evenly spaced elements can be split in any way, but no new axis can span two
        # blocks, so the new axes, taken from the right, must fill block after block exactly.
        blocks = self._blocks()
        remaining, stride = blocks.pop() if blocks else (1, 1)
        strides: list[int] = []
        for size in reversed(shape):
            if remaining == 1 and size > 1:
                remaining, stride = blocks.pop()
            if remaining % size:
                return None
            strides.append(stride)
            remaining //= size
            stride *= size
        return View(shape, tuple(reversed(strides)), self.offset)

    def permute(self, order: Sequence[int]) -> View:
        """The axes in another order: axis `i` of the result is axis `order[i]`.

        Raises:
            AxisError: if `order` does not name each axis once.
        """
        shape = _shape_of("permute", permuted, self.shape, tuple(order))
        return View(shape, tuple(self.strides[axis] for axis in order), self.offset)

    def expand(self, shape: Sequence[int]) -> View:
        """Axes of size 1 repeated to the sizes of `shape`, by a stride of 0.

        Raises:
            ShapeError: if the rank would change, or an axis that is not of size 1.

        >>> View.contiguous((1, 3)).expand((10, 3)).strides
        (0, 1)
        """
        shape = _shape_of("expand", expanded, self.shape, tuple(shape))
        grown = zip(self.shape, shape, self.strides, strict=True)
        return View(shape, tuple(stride if old == new else 0 for old, new, stride in grown), self.offset)

    def flip(self, axes: Sequence[int]) -> View:
        """The named axes back to front, by negative strides.

        Raises:
            AxisError: if an axis is out of range or named twice.

        >>> View.contiguous((4,)).flip((0,))
        View(shape=(4,), strides=(-1,), offset=3)
        """
        _shape_of("flip", flipped, self.shape, tuple(axes))
        backwards, forwards = slice(None, None, -1), slice(None)
        return self.slice_axes([backwards if axis in axes else forwards for axis in range(len(self.shape))])

    def crop(self, limits: Sequence[tuple[int, int]]) -> View:
        """The elements from `start` to `end` (exclusive) along each axis; there may be none.

        Raises:
            ShapeError: if there is not one pair for each axis, or not `0 <= start <= end <= size`.

        >>> View.contiguous((3, 2)).crop(((0, 2), (1, 2)))
        View(shape=(2, 1), strides=(2, 1), offset=1)
        """
        limits = tuple((start, end) for start, end in limits)
        _shape_of("crop", cropped, self.shape, limits)
        return self.slice_axes([slice(start, end) for start, end in limits])

    def slice_axes(self, slices: Sequence[slice]) -> View:
        """Python's slices, one for each axis from the left, with steps of any sign; other axes are unchanged.

        Raises:
            ShapeError: if there are more slices than axes, or a step is zero.

        >>> View.contiguous((6,)).slice_axes([slice(None, None, -2)])
        View(shape=(3,), strides=(-2,), offset=5)
        """
        if len(slices) > len(self.shape):
            raise ShapeError(
                f"slice_axes: {len(slices)} slices for the {len(self.shape)} axes of {self.shape}"
            )
        shape, strides, offset = list(self.shape), list(self.strides), self.offset
        for axis, part_slice in enumerate(slices):
            if part_slice.step == 0:
                raise ShapeError(
                    f"slice_axes: the step of axis {axis} is zero; it must be positive or negative"
                )
            part = range(shape[axis])[part_slice]
            shape[axis] = len(part)
            offset += part.start * strides[axis]  # for an empty part any offset is correct
            strides[axis] *= part.step
        return View(tuple(shape), tuple(strides), offset)

    # Shared by the methods above.

    def _blocks(self) -> list[tuple[int, int]]:
        """Size and stride of the fewest axes that visit the same positions in the same order; the view has elements."""
        blocks: list[tuple[int, int]] = []
        for size, stride in zip(self.shape, self.strides, strict=True):
            if size == 1:
                continue
            if blocks and blocks[-1][1] == size * stride:
                size *= blocks.pop()[0]
            blocks.append((size, stride))
        return blocks

    if TYPE_CHECKING:  # `import tensorken` attaches these: tensorken.arrays.view_methods

        @property
        def is_contiguous(self) -> bool: ...
        def buffer_index(self, index: Sequence[int]) -> int: ...
        def tensor_indices(self, element: int) -> Iterator[tuple[int, ...]]: ...
        def tensor_index(self, element: int) -> tuple[int, ...]: ...


def _checked_shape(op: str, shape: Sequence[int]) -> tuple[int, ...]:
    shape = tuple(shape)
    if any(size < 0 for size in shape):
        raise ShapeError(f"{op}: shape {shape} has a negative size; sizes are 0 or more")
    return shape


def _shape_of(op: str, rule: Callable[..., Shape], *args: Any) -> Shape:
    """The shape by the language's rule; the op's name begins the message of an error."""
    try:
        return rule(*args)
    except ShapeError as error:
        raise type(error)(f"{op}: {error}") from None


def _spaced(start: int, size: int, stride: int) -> Iterable[int]:
    """`size` positions from `start`, `stride` apart."""
    return range(start, start + size * stride, stride) if stride else repeat(start, size)
