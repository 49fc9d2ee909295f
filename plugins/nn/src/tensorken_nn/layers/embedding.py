"""Embedding: a table with a vector for each label."""

from __future__ import annotations

from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, DTypeError
from tensorken_nn.initializers import Initializer
from tensorken_nn.module import Module


class Embedding(Module):
    """Look up a row of `weight` for each label.

    Args:
        count: the number of labels.
        width: the size of a row.
        key: for the initial weight, which is on the key's backend.
        weight_initializer: of the weight; by default standard normal.
        dtype: of the weight, a float.

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
        """Map labels of shape (...), int, to rows of shape (..., width); as in indexing, -1 is the last row.

        Raises:
            DTypeError: if the labels are not ints.
            IndexingError: if a label is not in [-count, count); in a compiled function, where labels are unknown, it is
                clipped to the nearest valid label instead.
        """
        if labels.dtype.kind != "int":
            raise DTypeError(f"Embedding: labels must be ints, got {labels.dtype}; cast them (labels.astype)")
        return self.weight[labels]
