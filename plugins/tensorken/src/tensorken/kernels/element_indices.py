"""Element indices: the element of an operand that a movement op reads for an element of its result.

Movement ops copy nothing: a kernel that reads the result reads the operand at the index that this module computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tensorken.kernels.index_expressions import IndexExpression, IndexTarget, constant_index, variable

STEP = "loop_step"
"""The variable of the number of a loop's step, which kernels of the step's program get when they run."""

Bound = tuple[IndexExpression, int]
"""A condition: the index is from 0 up to the number (exclusive)."""


class ElementIndex:
    """The index of an element of an array: an index along each axis, a row-major index, or both."""

    __slots__ = ("_indices", "_key", "_linear", "_target", "shape")

    def __init__(
        self,
        shape: Sequence[int],
        target: IndexTarget,
        indices: Sequence[IndexExpression] | None = None,
        linear: IndexExpression | None = None,
    ) -> None:
        self.shape = tuple(shape)
        self._target = target
        self._indices = None if indices is None else tuple(indices)
        self._linear = linear
        self._key: tuple[object, ...] | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for equal elements of arrays of one shape."""
        if self._key is None:
            self._key = self.linear.key
        return self._key

    @property
    def indices(self) -> tuple[IndexExpression, ...]:
        """The index along each axis."""
        if self._indices is None:
            assert self._linear is not None
            rest, indices = self._linear, []
            for n in reversed(self.shape[1:]):
                rest, index = rest.divided(n, self._target)
                indices.append(index)
            self._indices = (rest, *reversed(indices)) if self.shape else ()
        return self._indices

    @property
    def linear(self) -> IndexExpression:
        """The row-major index."""
        if self._linear is None:
            assert self._indices is not None
            total, step = constant_index(0), 1
            for index, n in zip(reversed(self._indices), reversed(self.shape), strict=True):
                total, step = total + index.times(step), step * n
            self._linear = total
        return self._linear

    def of_array(self, shape: Sequence[int], indices: Sequence[IndexExpression]) -> ElementIndex:
        """An element of another array."""
        return ElementIndex(shape, self._target, indices)

    # ---- the operand of each movement op -------------------------------------------------------------------

    def before_reshape(self, shape: Sequence[int]) -> ElementIndex:
        """The element of the operand of a reshape, which has this shape."""
        return ElementIndex(shape, self._target, linear=self.linear)

    def before_permute(self, shape: Sequence[int], order: Sequence[int]) -> ElementIndex:
        """The element of the operand of a permute, whose axis `order[i]` is axis i of the result."""
        indices = dict(zip(order, self.indices, strict=True))
        return self.of_array(shape, [indices[i] for i in range(len(order))])

    def before_expand(self, shape: Sequence[int]) -> ElementIndex:
        """The element of the operand of an expand, with index 0 along repeated axes."""
        return self.of_array(
            shape, [constant_index(0) if n == 1 else i for n, i in zip(shape, self.indices, strict=True)]
        )

    def before_flip(self, axes: Sequence[int]) -> ElementIndex:
        """The element of the operand of a flip along these axes."""
        return self.of_array(
            self.shape,
            [
                index.times(-1).plus(n - 1) if i in axes else index
                for i, (n, index) in enumerate(zip(self.shape, self.indices, strict=True))
            ],
        )

    def before_crop(self, shape: Sequence[int], limits: Sequence[tuple[int, int]]) -> ElementIndex:
        """The element of the operand of a crop, shifted by the start of the crop."""
        return self.of_array(
            shape, [i.plus(start) for i, (start, _) in zip(self.indices, limits, strict=True)]
        )

    def before_step_slice(self, shape: Sequence[int], axis: int) -> ElementIndex:
        """The element of the operand of which a step of a loop takes a slice."""
        step = variable(STEP, shape[axis])
        return self.of_array(shape, [*self.indices[:axis], step, *self.indices[axis:]])

    def before_pad(
        self, shape: Sequence[int], pads: Sequence[tuple[int, int]]
    ) -> tuple[ElementIndex, list[Bound]]:
        """The element of the operand of a pad, and the conditions under which it exists; otherwise it is arbitrary."""
        indices: list[IndexExpression] = []
        conditions: list[Bound] = []
        for index, n, (low, high) in zip(self.indices, shape, pads, strict=True):
            if low == high == 0:
                indices.append(index)
                continue
            inner = index.plus(-low)
            if inner.terms:
                conditions.append((inner, n))
                indices.append(self._target.bounded(inner, n))
            else:
                conditions += [] if 0 <= inner.constant < n else [(inner, n)]
                indices.append(constant_index(min(max(inner.constant, 0), n - 1)))
        return self.of_array(shape, indices), conditions


INDICES_BEFORE: Mapping[str, Callable[..., ElementIndex]] = {
    "reshape": lambda element, shape, _: element.before_reshape(shape),
    "permute": lambda element, shape, order: element.before_permute(shape, order),
    "expand": lambda element, shape, _: element.before_expand(shape),
    "flip": lambda element, _, axes: element.before_flip(axes),
    "crop": lambda element, shape, limits: element.before_crop(shape, limits),
    "step_slice": lambda element, shape, axis: element.before_step_slice(shape, axis),
}
"""For each op that only moves elements, a function from the index of the result's element, the operand's shape and the
params to the index of the operand's element."""
