"""Points: where an element lies in an array, and where movement ops find it in their operand.

No movement op copies: whoever reads its result asks for a point of it, and gets the point of the operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensorken_wgpu.places import Place, fixed
from tensorken_wgpu.templates import whole

Name = Callable[[str, int], Place]
"""Gives an expression, and how many values it has, a name in the kernel."""


class Point:
    """An element of an array of some shape: its index along each axis, or its place in row-major order, or both."""

    __slots__ = ("_indices", "_key", "_linear", "_name", "shape")

    def __init__(
        self,
        shape: Sequence[int],
        name: Name,
        indices: Sequence[Place] | None = None,
        linear: Place | None = None,
    ) -> None:
        self.shape = tuple(shape)
        self._name = name
        self._indices = None if indices is None else tuple(indices)
        self._linear = linear
        self._key: tuple[object, ...] | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for points of arrays of a shape that are the same."""
        if self._key is None:
            self._key = self.linear.key
        return self._key

    @property
    def indices(self) -> tuple[Place, ...]:
        """Along each axis."""
        if self._indices is None:
            assert self._linear is not None
            rest, found = self._linear, []
            for n in reversed(self.shape[1:]):
                rest, index = rest.divided(n, self._name)
                found.append(index)
            self._indices = (rest, *reversed(found)) if self.shape else ()
        return self._indices

    @property
    def linear(self) -> Place:
        """In row-major order."""
        if self._linear is None:
            assert self._indices is not None
            total, step = fixed(0), 1
            for index, n in zip(reversed(self._indices), reversed(self.shape), strict=True):
                total, step = total + index.times(step), step * n
            self._linear = total
        return self._linear

    def at(self, shape: Sequence[int], indices: Sequence[Place]) -> Point:
        """A point of another array."""
        return Point(shape, self._name, indices)

    # ---- the operand of each movement op -------------------------------------------------------------------

    def before_reshape(self, shape: Sequence[int]) -> Point:
        """In the operand, which has this shape."""
        return Point(shape, self._name, linear=self.linear)

    def before_permute(self, shape: Sequence[int], order: Sequence[int]) -> Point:
        """The axis `order[i]` of the operand is axis i here."""
        found = dict(zip(order, self.indices, strict=True))
        return self.at(shape, [found[i] for i in range(len(order))])

    def before_expand(self, shape: Sequence[int]) -> Point:
        """Index 0 along what is repeated."""
        return self.at(shape, [fixed(0) if n == 1 else i for n, i in zip(shape, self.indices, strict=True)])

    def before_flip(self, axes: Sequence[int]) -> Point:
        """From the end along these axes."""
        return self.at(
            self.shape,
            [
                index.times(-1).plus(n - 1) if i in axes else index
                for i, (n, index) in enumerate(zip(self.shape, self.indices, strict=True))
            ],
        )

    def before_crop(self, shape: Sequence[int], limits: Sequence[tuple[int, int]]) -> Point:
        """After what is cut off."""
        return self.at(shape, [i.plus(start) for i, (start, _) in zip(self.indices, limits, strict=True)])

    def before_pad(self, shape: Sequence[int], pads: Sequence[tuple[int, int]]) -> tuple[Point, list[str]]:
        """And the conditions under which there is one; where one fails, the point means nothing."""
        indices, conditions = [], []
        for index, n, (low, high) in zip(self.indices, shape, pads, strict=True):
            if low == high == 0:
                indices.append(index)
                continue
            inner = index.plus(-low)
            if inner.terms:  # below 0 it wraps, and is larger than any size
                conditions.append(f"({inner}) < {whole(n)}")
                indices.append(self._name(str(inner), n))
            else:
                conditions += [] if 0 <= inner.constant < n else ["false"]
                indices.append(fixed(min(max(inner.constant, 0), n - 1)))
        return self.at(shape, indices), conditions
