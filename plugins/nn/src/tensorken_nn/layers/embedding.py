"""The embedding: a table with a vector for each label."""

from __future__ import annotations

from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, DTypeError
from tensorken_nn.initializers import Initializer
from tensorken_nn.module import Module


class Embedding(Module):
    """A row of `weight` for each label.

    Args:
        count: how many labels there are.
        width: the size of a row.
        key: for the rows to begin with; they live on its backend.
        weight_initializer: how they begin; by default as standard normal numbers.
        dtype: of the rows, a float.

    Raises:
        ArgumentError: if a size is not positive.

    >>> table = Embedding(27, 10, key=tk.random.key(0))
    >>> table
    Embedding(weight=float32 (27, 10))
    >>> table(tk.tensor([[0, 5, 13]])).shape
    (1, 3, 10)
    """

    weight: Tensor  # (count, width)

    def __init__(
        self,
        count: int,
        width: int,
        *,
        key: Tensor,
        weight_initializer: Initializer = tk.random.normal,
        dtype: Any = tk.float32,
    ) -> None:
        if count < 1 or width < 1:
            raise ArgumentError(f"Embedding: need one label and one column or more, got {count}, {width}")
        self.weight = weight_initializer(key, (count, width), dtype)

    def __call__(self, labels: Tensor) -> Tensor:
        """From labels of shape (...), int, to rows of shape (..., width); as with any index, -1 is the last row.

        Raises:
            DTypeError: if the labels are no ints.
            IndexingError: if a label is not in [-count, count); in a compiled function, where it is not known, the
                nearest that is takes its place.
        """
        if labels.dtype.kind != "int":
            raise DTypeError(f"Embedding: labels must be ints, got {labels.dtype}; cast them (labels.astype)")
        return self.weight[labels]
