"""Values: the shape, strides, memory and name of each array in a generated function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorken_core.language.dtypes import DTYPES, bfloat16
from tensorken_numpy.arrays import Array, Sizes
from tensorken_numpy.compiled.layouts import Layout, address
from tensorken_numpy.compiled.memory import Region

if TYPE_CHECKING:
    from tensorken_core.program.program import Variable


NUMPY_DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(name) for name, dtype in DTYPES.items() if dtype is not bfloat16
}
"""numpy's dtypes by the language's names; no function is generated for bfloat16."""


class Value:
    """An array with its compact shape.

    Attributes:
        layout: an array of its shape, dtype and strides; the array itself if it is a constant.
        storage: "local" (allocated while the function runs), "planned" (a view of the function's memory) or
            "constant".
        known: whether the strides are certain to be those of the layout.
        region: of the function's memory, if it is planned.
        offset: of the first element, in bytes, in the memory or relative to the root.
        root: the local value that this one is a view of; itself if it is none.
        owner: the value after whose last use the array is dropped, if it is to be dropped.
    """

    __slots__ = ("_name", "known", "layout", "offset", "owner", "region", "root", "storage")

    def __init__(
        self,
        name: str | Callable[[], str],
        layout: Layout,
        storage: str = "local",
        *,
        known: bool = True,
        region: Region | None = None,
        offset: int = 0,
        root: Value | None = None,
        owner: Variable | None = None,
    ) -> None:
        self._name = name
        self.layout = layout
        self.storage = storage
        self.known = known
        self.region = region
        self.offset = offset
        self.root = root or self
        self.owner = owner

    @property
    def name(self) -> str:
        """The name in the function.  A view gets its line only if its name is used."""
        if not isinstance(self._name, str):
            self._name = self._name()
        return self._name

    @property
    def shape(self) -> Sizes:
        """The compact shape."""
        shape: Sizes = self.layout.shape
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """numpy's dtype."""
        return self.layout.dtype

    @property
    def contiguous(self) -> bool:
        """Whether the elements are certain to be in row-major order."""
        return self.known and bool(self.layout.flags.c_contiguous)

    def offset_of(self, view: Layout) -> int:
        """The offset of a view of the layout."""
        return self.offset + address(view) - address(self.layout)


def in_memory(memory: Array, layout: Layout, offset: int) -> Array:
    """The array of this layout at the offset in the memory."""
    if not layout.size:
        return np.empty(layout.shape, layout.dtype)
    return np.ndarray(layout.shape, layout.dtype, memory, offset, layout.strides)


def order_of(layout: Layout, root: Layout) -> Sizes | None:
    """The permutation of the root's axes that has this layout; None if there is none."""
    if layout.ndim != root.ndim:
        return None
    axes = axes_of(root)
    order: list[int] = []
    for axis in axes_of(layout):
        matches = [i for i, other in enumerate(axes) if other == axis and i not in order]
        if not matches:
            return None
        order.append(matches[0])
    return tuple(order)


def axes_of(layout: Layout) -> tuple[tuple[int, int], ...]:
    """The size and stride of each axis; strides of axes of size 1 do not matter and are 0."""
    return tuple([(n, 0 if n == 1 else s) for n, s in zip(layout.shape, layout.strides, strict=True)])
