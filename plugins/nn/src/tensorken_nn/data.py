"""Data: trees of tensors with the same number of rows, in random order and in parts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import tensorken as tk
from tensorken import Tensor, tree
from tensorken.errors import ArgumentError, ShapeError


def split(count: int, held_out: float, rng: random.Random) -> tuple[list[int], list[int]]:
    """The numbers below `count` in random order, in two parts: for training and, the share `held_out`, for the test.

    Raises:
        ArgumentError: if one of the parts would be empty.

    >>> train, test = split(10, 0.2, random.Random(0))
    >>> len(train), len(test), sorted(train + test) == list(range(10))
    (8, 2, True)
    """
    order = list(range(count))
    rng.shuffle(order)
    kept = count - round(count * held_out)
    if not 0 < kept < count:
        raise ArgumentError(
            f"split: of {count} examples, a share of {held_out} held out leaves one part empty; use more"
        )
    return order[:kept], order[kept:]


def batches(data: Any, size: int, rng: random.Random) -> Iterator[Any]:
    """All rows of the data in random order, `size` at a time; the last batch has what remains.

    The rows are gathered once, so a batch is only a part of the result.

    Args:
        data: a tree of tensors with the same number of rows, such as (inputs, labels).
        size: the number of rows in a batch.
        rng: where the order comes from.

    Raises:
        ArgumentError, ShapeError: if `size` is not positive, or the numbers of rows differ.

    >>> [batch.shape for batch in batches(tk.zeros((5, 2)), 2, random.Random(0))]
    [(2, 2), (2, 2), (1, 2)]
    """
    leaves, structure = tree.flatten(data)
    if size < 1:
        raise ArgumentError(f"batches: need at least one row in a batch, got {size}")
    rows = {leaf.shape[:1] for leaf in leaves}
    if len(rows) != 1 or () in rows:
        shapes = ", ".join([str(leaf.shape) for leaf in leaves])
        raise ShapeError(f"batches: need tensors with the same number of rows, got shapes {shapes or 'none'}")
    count = leaves[0].shape[0]
    order = list(range(count))
    rng.shuffle(order)
    index = leaves[0].constant(order, tk.int32, (count,))
    shuffled = [leaf.gather(index, 0) for leaf in leaves]
    for start in range(0, count, size):
        yield tree.unflatten(structure, [leaf[start : start + size] for leaf in shuffled])


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
