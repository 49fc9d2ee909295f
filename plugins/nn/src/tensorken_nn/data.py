"""Split and shuffle data: trees of tensors with the same number of rows."""

from __future__ import annotations

from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, ShapeError


def hold_out(data: Any, share: float, key: Tensor) -> tuple[Any, Any]:
    """Split data at random into a training set and a test set.

    Args:
        data: a tree of tensors with the same number of rows.
        share: the fraction of the rows in the test set, from 0 to 1.
        key: of the random order, int32 of shape (2,).

    Raises:
        ArgumentError: if one of the sets would be empty.
        ShapeError: if the numbers of rows differ.

    >>> train, test = hold_out(tk.arange(10), 0.2, tk.random.key(0))
    >>> train.tolist(), test.tolist()
    ([4, 8, 3, 7, 6, 2, 9, 1], [5, 0])
    """
    count = row_count("hold_out", data)
    kept = count - round(count * share)
    if not 0 < kept < count:
        raise ArgumentError(
            f"hold_out: a share of {share} of {count} rows leaves one part empty; use more rows"
        )
    shuffled = shuffle_rows(data, key, count)
    return tree.map(lambda x: x[:kept], shuffled), tree.map(lambda x: x[kept:], shuffled)


def row_count(function: str, data: Any) -> int:
    """The number of rows of the tensors of a tree.

    Raises:
        ShapeError: if the tensors differ in it, or there are no tensors.
    """
    shapes = [leaf.shape for leaf in tree.leaves(data)]
    rows = {shape[:1] for shape in shapes}
    if len(rows) != 1 or () in rows:
        listed = ", ".join(map(str, shapes)) or "none"
        raise ShapeError(f"{function}: need tensors with the same number of rows, got shapes {listed}")
    count: int = shapes[0][0]
    return count


def shuffle_rows(data: Any, key: Tensor, rows: int) -> Any:
    """The rows in random order; the key may be on another backend than the data."""
    order = tk.random.permutation(key, rows)
    return tree.map(lambda x: x.gather(order.to(x.interpreter.base), 0).realize(), data)
