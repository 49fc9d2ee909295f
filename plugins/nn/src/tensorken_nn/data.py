"""Data: trees of tensors with the same number of rows, in random order and in parts."""

from __future__ import annotations

from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, ShapeError


def hold_out(data: Any, share: float, key: Tensor) -> tuple[Any, Any]:
    """The rows of data in random order, in two parts: to train on and, the share, to test with.

    Args:
        data: a tree of tensors with the same number of rows.
        share: of the rows that are held out, from 0 to 1.
        key: what decides which, int32 of shape (2,).

    Raises:
        ArgumentError: if one of the parts would be empty.
        ShapeError: if the numbers of rows differ.

    >>> train, test = hold_out(tk.arange(10), 0.2, tk.random.key(0))
    >>> train.tolist(), test.tolist()
    ([4, 8, 3, 7, 6, 2, 9, 1], [5, 0])
    """
    count = rows_of("hold_out", data)
    kept = count - round(count * share)
    if not 0 < kept < count:
        raise ArgumentError(
            f"hold_out: a share of {share} of {count} rows leaves one part empty; use more rows"
        )
    mixed = shuffled(data, key, count)
    return tree.map(lambda x: x[:kept], mixed), tree.map(lambda x: x[kept:], mixed)


def rows_of(function: str, data: Any) -> int:
    """The number of rows of a tree of tensors.

    Raises:
        ShapeError: if it is not the same for all, or there are none.
    """
    shapes = [leaf.shape for leaf in tree.leaves(data)]
    rows = {shape[:1] for shape in shapes}
    if len(rows) != 1 or () in rows:
        told = ", ".join(map(str, shapes)) or "none"
        raise ShapeError(f"{function}: need tensors with the same number of rows, got shapes {told}")
    count: int = shapes[0][0]
    return count


def shuffled(data: Any, key: Tensor, rows: int) -> Any:
    """The rows in an order that the key decides, which may live elsewhere than they do."""
    order = tk.random.permutation(key, rows)
    return tree.map(lambda x: x.gather(order.to(x.interpreter.base), 0).realize(), data)
