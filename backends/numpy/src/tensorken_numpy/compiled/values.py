"""Values: what the writer of a function knows of each array that the function will meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorken_numpy.compiled.layouts import StandIn, address
from tensorken_numpy.compiled.memory import Place
from tensorken_numpy.contraction import Array, Sizes

if TYPE_CHECKING:
    from tensorken_core.program.program import Variable


OF: dict[str, np.dtype[Any]] = {
    name: np.dtype(name) for name in ("bool", "int32", "int64", "float16", "float32", "float64")
}
"""numpy's dtypes by the names that the language has for them."""


class Value:
    """An array, with size 1 along repeated axes.

    Attributes:
        layout: an array of its shape, dtype and strides; the array itself if it is the same in every call.
        kind: local (found while the function runs), planned (a view of the function's memory) or constant.
        known: whether the strides are sure to be those of the layout.
        place: in the memory, if it is planned.
        offset: of the first element, in the memory, or from that of the root.
        root: the local value that this one is a view of; it may be that itself.
        owner: whose memory it is, if that is to be let go when the owner dies.
    """

    __slots__ = ("_name", "kind", "known", "layout", "offset", "owner", "place", "root")

    def __init__(
        self,
        name: str | Callable[[], str],
        layout: StandIn,
        kind: str = "local",
        *,
        known: bool = True,
        place: Place | None = None,
        offset: int = 0,
        root: Value | None = None,
        owner: Variable | None = None,
    ) -> None:
        self._name = name
        self.layout = layout
        self.kind = kind
        self.known = known
        self.place = place
        self.offset = offset
        self.root = root or self
        self.owner = owner

    @property
    def name(self) -> str:
        """In the function, which has a line for it only if this is asked for."""
        if not isinstance(self._name, str):
            self._name = self._name()
        return self._name

    @property
    def shape(self) -> Sizes:
        """The shape that is kept."""
        shape: Sizes = self.layout.shape
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """As numpy has it."""
        return self.layout.dtype

    @property
    def contiguous(self) -> bool:
        """Whether the elements are sure to lie in row-major order."""
        return self.known and bool(self.layout.flags.c_contiguous)

    def offset_of(self, view: StandIn) -> int:
        """Where a view of the layout begins."""
        return self.offset + address(view) - address(self.layout)


def in_memory(memory: Array, layout: StandIn, offset: int) -> Array:
    """The array of this layout there."""
    if not layout.size:
        return np.empty(layout.shape, layout.dtype)
    return np.ndarray(layout.shape, layout.dtype, memory, offset, layout.strides)


def order_of(layout: StandIn, root: StandIn) -> Sizes | None:
    """In which order of the axes the root has this layout; None if in none."""
    if layout.ndim != root.ndim:
        return None
    facts = axes_of(root)
    order: list[int] = []
    for fact in axes_of(layout):
        found = [i for i, other in enumerate(facts) if other == fact and i not in order]
        if not found:
            return None
        order.append(found[0])
    return tuple(order)


def axes_of(layout: StandIn) -> tuple[tuple[int, int], ...]:
    """The size and stride of each axis, without the strides that do not matter."""
    return tuple([(n, 0 if n == 1 else s) for n, s in zip(layout.shape, layout.strides, strict=True)])
