"""Values: what the writer of a function knows of each array that the function will meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorken_numpy.compiled.layouts import StandIn, address
from tensorken_numpy.compiled.memory import Place
from tensorken_numpy.contraction import Array, Sizes


@dataclass(eq=False, slots=True)
class Value:
    """An array, with size 1 along repeated axes.

    Attributes:
        name: in the function.
        layout: an array of its shape, dtype and strides; the array itself if it is the same in every call.
        kind: local (found while the function runs), planned (a view of the function's memory) or constant.
        known: whether the strides are sure to be those of the layout.
        place: in the memory, if it is planned.
        offset: of the first element, in the memory.
        number: what all elements are, if the program tells.
    """

    name: str
    layout: StandIn
    kind: str = "local"
    known: bool = True
    place: Place | None = None
    offset: int = 0
    number: Any = None

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
        """Where in the memory a view of the layout begins."""
        return self.offset + address(view) - address(self.layout)


def in_memory(memory: Array, layout: StandIn, offset: int) -> Array:
    """The array of this layout there."""
    if not layout.size:
        return np.empty(layout.shape, layout.dtype)
    return np.ndarray(layout.shape, layout.dtype, memory, offset, layout.strides)
