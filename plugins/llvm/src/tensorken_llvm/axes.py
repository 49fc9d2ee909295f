"""Axes: the loops over the rows of a kernel, of which neighbours are merged where every access allows it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tensorken.kernels.element_indices import Bound
from tensorken.kernels.index_expressions import IndexExpression, constant_index, variable
from tensorken.kernels.nests import CountingNest, CountingWalk, FusionGroup

if TYPE_CHECKING:
    from tensorken_core.language.dtypes import DType
    from tensorken_core.language.shapes import Axes, Shape
    from tensorken_core.program.program import Equation, Variable


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop over one axis, or over neighbouring axes.

    Attributes:
        name: of its variable.
        size: the number of iterations.
        stride: of the row-major index, of rows or within a row, from one iteration to the next.
    """

    name: str
    size: int
    stride: int

    @property
    def index(self) -> IndexExpression:
        """Its part of the row-major index."""
        return variable(self.name, self.size).times(self.stride)


@dataclass(frozen=True, slots=True)
class Loops:
    """The loops of a kernel.

    Attributes:
        outer: over the rows.
        inner: over the elements of a row; none if each element is its own row.
        count: how many elements and indices an iteration of all loops computes.
    """

    outer: tuple[Loop, ...]
    inner: tuple[Loop, ...]
    count: int

    @property
    def row(self) -> IndexExpression:
        """The row-major index of the row."""
        return _total(self.outer)

    @property
    def element(self) -> IndexExpression:
        """The row-major index within the row."""
        return _total(self.inner)


def _total(loops: Sequence[Loop]) -> IndexExpression:
    total = constant_index(0)
    for loop in loops:
        total = total + loop.index
    return total


def loops_of(group: FusionGroup, producers: Mapping[Variable, Equation], kept: Collection[Variable]) -> Loops:
    """The loops of a kernel, as few as its accesses allow."""
    shape, axes = _iterated(group)
    single = _loops([[i] for i, n in enumerate(shape) if n > 1], shape, axes, 0)
    nest = RecordingNest(group, producers, kept, single)
    count = nest.counted()
    merged: list[list[int]] = []
    order = [i for i, n in enumerate(shape) if n > 1]
    for inner in (False, True):
        last: list[int] | None = None
        for i in order:
            if (i in axes) is not inner:
                continue
            between = range(last[-1] + 1, i) if last else range(0)
            adjacent = last is not None and not any([(k in axes) is inner and shape[k] > 1 for k in between])
            if last is not None and adjacent and nest.can_merge(last[-1], i, shape[i]):
                last.append(i)
            else:
                last = [i]
                merged.append(last)
    return _loops(merged, shape, axes, count)


def _iterated(group: FusionGroup) -> tuple[Shape, Axes]:
    """The array that the loops go over: that of the rows, or the written value with the most axes."""
    if group.rows.axes:
        return group.rows.shape, group.rows.axes
    return max([v.shape for v in group.written or group.values], key=len), ()


def _loops(parts: Sequence[Sequence[int]], shape: Shape, axes: Axes, count: int) -> Loops:
    found: dict[bool, list[Loop]] = {False: [], True: []}
    for part in parts:
        inner = part[0] in axes
        after = [n for i, n in enumerate(shape) if i > part[-1] and (i in axes) is inner]
        size = prod([shape[i] for i in part])
        found[inner].append(Loop(_name(part), size, prod(after)))
    return Loops(tuple(found[False]), tuple(found[True]), count)


def _name(part: Sequence[int]) -> str:
    return "axis " + " ".join(map(str, part))


class RecordingWalk(CountingWalk):
    """Notes all index expressions whose numbers a kernel computes.

    Attributes:
        indices: the expressions.
        always: the values that are loaded for every element, not only within bounds, and their indices.
    """

    def __init__(
        self,
        producers: Mapping[Variable, Equation],
        kept: Collection[Variable],
        computed: Collection[Variable],
    ) -> None:
        super().__init__(producers, kept, computed)
        self.indices: list[IndexExpression] = []
        self.always: list[tuple[Variable, IndexExpression]] = []
        self._guards = 0

    def load(self, v: Variable, index: IndexExpression) -> bool:
        self.indices.append(index)
        if not self._guards:
            self.always.append((v, index))
        return super().load(v, index)

    def guarded(
        self, values: Callable[[], Sequence[bool]], bounds: Sequence[Sequence[Bound]], dtype: DType
    ) -> list[bool]:
        self.indices += [index for conditions in bounds for index, _ in conditions]
        self._guards += 1
        try:
            return super().guarded(values, bounds, dtype)
        finally:
            self._guards -= 1

    def index_element(self, index: IndexExpression, dtype: DType) -> bool:
        self.indices.append(index)
        return super().index_element(index, dtype)

    def new_quotient(
        self, dividend: IndexExpression, operator: str, divisor: int, size: int
    ) -> IndexExpression:
        self.indices.append(dividend)
        return super().new_quotient(dividend, operator, divisor, size)

    def new_index(self, index: IndexExpression, size: int) -> IndexExpression:
        self.indices.append(index)
        return super().new_index(index, size)


class RecordingNest(CountingNest):
    """Goes through a kernel once, with one loop for each axis."""

    def __init__(
        self,
        group: FusionGroup,
        producers: Mapping[Variable, Equation],
        kept: Collection[Variable],
        loops: Loops,
    ) -> None:
        super().__init__(group, producers, kept)
        self.recording = self.walk = RecordingWalk(producers, kept, group.values)
        self.loops_of_axes = loops

    def counted(self) -> int:
        self.run([self.loops_of_axes.row])
        return self.walk.count

    def loop(self, body: Callable[[Sequence[IndexExpression]], None]) -> None:
        with self.walk.scope():
            body([self.loops_of_axes.element])

    def store(self, v: Variable, elements: Sequence[tuple[IndexExpression, bool]]) -> None:
        self.recording.indices += [index for index, _ in elements]

    def can_merge(self, axis: int, following: int, size: int) -> bool:
        """Whether all indices advance over both axes as over one."""
        outer, inner = _name([axis]), _name([following])
        return all(
            [
                index.terms.get(outer, 0) == index.terms.get(inner, 0) * size
                for index in self.recording.indices
            ]
        )
