"""Loaders: the batches of a training, whose order is decided by a key and the number of the step alone.

So a training that goes on after a stop sees from there on what it would have seen without the stop.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import tensorken as tk
from tensorken import Tensor
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_nn.data import rows_of, shuffled

CUT = 64
"""For how many sizes of texts, parts and batches what cuts them is kept compiled."""


class Loader(Protocol):
    """What gives batches without end, from any step on."""

    def from_step(self, step: int) -> Iterator[Any]:
        """The batches of this step and all that follow; steps count from 0."""


@dataclass(frozen=True, slots=True, eq=False)
class DataLoader:
    """The rows of data in batches: all of them in each epoch, each time in another order.

    The rows of an epoch are gathered once, so a batch is only a part of the result.

    Args:
        data: a tree of tensors with the same number of rows, such as (inputs, labels).
        batch_size: the number of rows in a batch; the last one of an epoch has what remains.
        key: what decides the orders, int32 of shape (2,); None keeps the rows as they are.
        drop_last: whether to leave out a last batch that is smaller than the others.

    Raises:
        ArgumentError: if there is no row in a batch, or no batch in an epoch.
        ShapeError: if the numbers of rows differ.

    >>> loader = DataLoader((tk.zeros((5, 2)), tk.arange(5)), 2, key=tk.random.key(0))
    >>> [labels.tolist() for _, labels in loader.epoch(0)]
    [[3, 1], [0, 4], [2]]
    >>> [labels.tolist() for _, labels in loader.epoch(1)]
    [[0, 4], [2, 3], [1]]
    >>> inputs, labels = next(loader.from_step(4))
    >>> labels.tolist()
    [2, 3]
    """

    data: Any
    batch_size: int
    key: Tensor | None = None
    drop_last: bool = False

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ArgumentError(f"DataLoader: need at least one row in a batch, got {self.batch_size}")
        if not len(self):
            raise ArgumentError(
                f"DataLoader: {self.rows} rows make no batch of {self.batch_size}; use a smaller batch_size"
            )

    @property
    def rows(self) -> int:
        """The number of rows."""
        return rows_of("DataLoader", self.data)

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        whole, rest = divmod(self.rows, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def epoch(self, number: int) -> Iterator[Any]:
        """The batches of an epoch, which count from 0."""
        return self._batches(number, 0)

    def from_step(self, step: int) -> Iterator[Any]:
        """The batches of this step and all that follow, without end; steps count from 0 through all epochs."""
        number, batch = divmod(step, len(self))
        yield from self._batches(number, batch)
        for later in itertools.count(number + 1):
            yield from self._batches(later, 0)

    def _batches(self, number: int, first: int) -> Iterator[Any]:
        """Those of an epoch, beginning with one of them."""
        _check_counted("DataLoader", number)
        data = self.data
        if self.key is not None:
            data = shuffled(data, tk.random.fold_in(self.key, number), self.rows)
        leaves, structure = tree.flatten(data)
        for start in range(first * self.batch_size, len(self) * self.batch_size, self.batch_size):
            yield tree.unflatten(structure, [leaf[start : start + self.batch_size] for leaf in leaves])


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Random parts of a long text, each beside the same part one token later: what a language model learns.

    Args:
        tokens: the numbers of all tokens, of shape (n,), integers.
        context: the number of tokens in a part.
        batch_size: the number of parts in a batch.
        key: what decides the parts, int32 of shape (2,).

    Raises:
        ArgumentError: if there is no token in a part, or no part in a batch.
        ShapeError: if the tokens are not one row that is longer than the context.
        DTypeError: if they are no integers.

    >>> windows = Windows(tk.arange(100), 3, 2, tk.random.key(0))
    >>> inputs, targets = windows.batch(0)
    >>> inputs.tolist(), targets.tolist()
    ([[93, 94, 95], [89, 90, 91]], [[94, 95, 96], [90, 91, 92]])
    """

    tokens: Tensor
    context: int
    batch_size: int
    key: Tensor

    def __post_init__(self) -> None:
        if self.context < 1 or self.batch_size < 1:
            raise ArgumentError(
                f"Windows: need at least one token in a part and one part in a batch, got context {self.context} and "
                f"batch_size {self.batch_size}"
            )
        if self.tokens.dtype.kind != "int":
            raise DTypeError(f"Windows: tokens are integers, got {self.tokens.dtype}; see Vocabulary.encode")
        if self.tokens.ndim != 1 or self.tokens.size <= self.context:
            raise ShapeError(
                f"Windows: need more than {self.context} tokens in one row, got shape {self.tokens.shape}; "
                f"give a longer text, or a smaller context"
            )

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """The inputs and the targets of a step, each int32 of shape (batch_size, context)."""
        _check_counted("Windows", step)
        here = self.tokens.interpreter.base
        number, key = tk.tensor(step, tk.int32, backend=here), self.key.to(here)
        cut = _cutting(self.tokens.size, self.context, self.batch_size)
        result: tuple[Tensor, Tensor] = cut(self.tokens, key, number)
        return result

    def from_step(self, step: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches of this step and all that follow, without end; steps count from 0."""
        return map(self.batch, itertools.count(step))


@functools.lru_cache(maxsize=CUT)
def _cutting(
    size: int, context: int, count: int
) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
    """What cuts parts out of so many tokens; compiled, as a key's ciphers are many small ops.

    Each size has a function of its own: one for all would be traced anew for each, of which jit warns.
    """

    def windows(tokens: Tensor, key: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
        starts = tk.random.randint(tk.random.fold_in(key, step), (count, 1), 0, size - context)
        places = starts + tk.arange(context + 1, backend=tokens.interpreter.base)
        found = tokens.gather(places.ravel(), 0).reshape(places.shape).astype(tk.int32)
        return found[:, :-1], found[:, 1:]

    return tk.jit(windows)


def _check_counted(name: str, number: int) -> None:
    if number < 0:
        raise ArgumentError(f"{name}: steps and epochs count from 0, got {number}")
