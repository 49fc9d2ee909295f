"""Padding."""

from __future__ import annotations

from collections.abc import Sequence

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ShapeError
from tensorken_nn.module import Module, static


class Pad(Module):
    """`tk.pad` of the last axes as a module.

    Args:
        padding: for each of the last axes the number of elements on both sides, or a pair (before, after).
        mode: "constant", "reflect", "edge" (replication), "wrap" (circular) or another mode of `tk.pad`.
        value: for "constant".

    >>> Pad((1, (0, 2)), "edge")(tk.tensor([[1, 2]])).tolist()
    [[1, 2, 2, 2], [1, 2, 2, 2], [1, 2, 2, 2]]
    """

    padding: tuple[int | tuple[int, int], ...] = static()
    mode: str = static()
    value: float = static()

    def __init__(
        self, padding: Sequence[int | tuple[int, int]], mode: str = "constant", value: float = 0.0
    ) -> None:
        self.padding = tuple(padding)
        self.mode = mode
        self.value = value

    def __call__(self, x: Tensor) -> Tensor:
        """Pad x.

        Raises:
            ShapeError: if x has too few axes, or a width is negative.
        """
        if x.ndim < len(self.padding):
            raise ShapeError(
                f"Pad: got shape {x.shape}, need {len(self.padding)} axes or more; reshape the input"
            )
        pairs = [(width, width) if isinstance(width, int) else width for width in self.padding]
        return tk.pad(x, [(0, 0)] * (x.ndim - len(pairs)) + pairs, self.mode, self.value)
