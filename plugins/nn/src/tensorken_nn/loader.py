"""Loaders: batches whose order depends only on a key and the number of the step.

A resumed training run therefore sees the same batches as one that was never interrupted.
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
from tensorken_nn.data import row_count, shuffle_rows

MAX_SAMPLERS = 64
"""The number of compiled samplers to cache; each is for one size of text, window and batch."""


class Loader(Protocol):
    """An endless sequence of batches that can start at any step."""

    def from_step(self, step: int) -> Iterator[Any]:
        """The batches from this step on; steps count from 0."""


@dataclass(frozen=True, slots=True, eq=False)
class DataLoader:
    """Batches of rows: each epoch has all rows, in a new random order.

    The rows of an epoch are shuffled once, and its batches are slices of the result.

    Args:
        data: a tree of tensors with the same number of rows, such as (inputs, labels).
        batch_size: the number of rows in a batch; the last batch of an epoch may be smaller.
        key: for the random order, int32 of shape (2,); None keeps the order of the data.
        drop_last: whether to leave out a smaller last batch.

    Raises:
        ArgumentError: if `batch_size` is not positive, or an epoch has no batch.
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
        return row_count("DataLoader", self.data)

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        full_batches, remainder = divmod(self.rows, self.batch_size)
        return full_batches + (remainder > 0 and not self.drop_last)

    def epoch(self, number: int) -> Iterator[Any]:
        """The batches of an epoch; epochs count from 0."""
        return self._batches(number, 0)

    def from_step(self, step: int) -> Iterator[Any]:
        """The batches from this step on, without end; steps count from 0 through all epochs."""
        number, batch = divmod(step, len(self))
        yield from self._batches(number, batch)
        for later in itertools.count(number + 1):
            yield from self._batches(later, 0)

    def _batches(self, number: int, first: int) -> Iterator[Any]:
        """The batches of an epoch, from batch `first` on."""
        _check_not_negative("DataLoader", number)
        data = self.data
        if self.key is not None:
            data = shuffle_rows(data, tk.random.fold_in(self.key, number), self.rows)
        leaves, structure = tree.flatten(data)
        for start in range(first * self.batch_size, len(self) * self.batch_size, self.batch_size):
            yield tree.unflatten(structure, [leaf[start : start + self.batch_size] for leaf in leaves])


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Random windows of a text, each with the same window one token later as the target, to train a language model.

    Args:
        tokens: the text as token numbers, shape (n,), int.
        context: the number of tokens in a window.
        batch_size: the number of windows in a batch.
        key: for the random windows, int32 of shape (2,).

    Raises:
        ArgumentError: if `context` or `batch_size` is not positive.
        ShapeError: if the tokens do not have one axis longer than the context.
        DTypeError: if the tokens are not ints.

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
                f"Windows: need a context of 1 or more and a batch_size of 1 or more, got {self.context} and "
                f"{self.batch_size}"
            )
        if self.tokens.dtype.kind != "int":
            raise DTypeError(f"Windows: tokens must be ints, got {self.tokens.dtype}; see Vocabulary.encode")
        if self.tokens.ndim != 1 or self.tokens.size <= self.context:
            raise ShapeError(
                f"Windows: need more than {self.context} tokens in one row, got shape {self.tokens.shape}; "
                f"give a longer text, or a smaller context"
            )

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """The inputs and targets of a step, each int32 of shape (batch_size, context)."""
        _check_not_negative("Windows", step)
        backend = self.tokens.interpreter.base
        number, key = tk.tensor(step, tk.int32, backend=backend), self.key.to(backend)
        sample = _window_sampler(self.tokens.size, self.context, self.batch_size)
        result: tuple[Tensor, Tensor] = sample(self.tokens, key, number)
        return result

    def from_step(self, step: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches from this step on, without end; steps count from 0."""
        return map(self.batch, itertools.count(step))


@functools.lru_cache(maxsize=MAX_SAMPLERS)
def _window_sampler(
    size: int, context: int, count: int
) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
    """A compiled function that takes random windows of a text; compiled, as drawing random numbers takes many small
    ops.

    Each size has its own function. A shared one would be retraced for each size, and jit warns of that.
    """

    def windows(tokens: Tensor, key: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
        starts = tk.random.randint(tk.random.fold_in(key, step), (count, 1), 0, size - context)
        positions = starts + tk.arange(context + 1, backend=tokens.interpreter.base)
        sampled = tokens.gather(positions.ravel(), 0).reshape(positions.shape).astype(tk.int32)
        return sampled[:, :-1], sampled[:, 1:]

    return tk.jit(windows)


def _check_not_negative(name: str, number: int) -> None:
    if number < 0:
        raise ArgumentError(f"{name}: steps and epochs count from 0, got {number}")
