"""Groups of threads of one process: for tests, and for a few cores with one copy of the data."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from importlib import import_module
from typing import Any, TypeVar

from tensorken.distributed.group import DEFAULT_TIMEOUT, Group, ufunc_of
from tensorken_core.errors import ArgumentError, GroupError

T = TypeVar("T")


class _Board:
    """The arrays that the members have handed in, by the number of the exchange."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._arrays: dict[int, dict[int, Any]] = {}
        self._readers: dict[int, int] = {}
        self._ended: set[int] = set()
        self._changed = threading.Condition()

    def exchange(self, number: int, rank: int, x: Any, timeout: float) -> list[Any]:
        """Hand in an array, and wait for those of all members.

        Raises:
            TimeoutError: if they do not come in time, or a member has ended without its array.
        """
        with self._changed:
            arrays = self._arrays.setdefault(number, {})
            arrays[rank] = x
            self._changed.notify_all()
            in_time = self._changed.wait_for(
                lambda: len(arrays) == self.size or not self._ended <= arrays.keys(), timeout
            )
            if len(arrays) < self.size:
                missing = sorted({*range(self.size)} - arrays.keys())
                raise TimeoutError(
                    f"the threads of the members {missing} {'have ended' if in_time else 'are elsewhere'}"
                )
            self._readers[number] = self._readers.get(number, 0) + 1
            if self._readers[number] == self.size:
                del self._readers[number], self._arrays[number]
            return [arrays[i] for i in range(self.size)]

    def end(self, rank: int) -> None:
        """Note that a member hands in no more arrays."""
        with self._changed:
            self._ended.add(rank)
            self._changed.notify_all()


class ThreadGroup(Group):
    """A group of threads; `run_threads` makes one for each member."""

    def __init__(self, rank: int, board: _Board, timeout: float) -> None:
        self.rank = rank
        self.size = board.size
        self.timeout = timeout
        self._board = board
        self._exchanges = 0

    def all_gather(self, x: Any) -> Any:
        return import_module("numpy").stack(self._arrays_of_all(x))

    def all_to_all(self, x: Any) -> Any:
        return import_module("numpy").stack([y[self.rank] for y in self._arrays_of_all(x)])

    def all_reduce(self, x: Any, reduction: str) -> Any:
        ufunc, arrays = ufunc_of(reduction), self._arrays_of_all(x)
        if self.size == 1:
            return arrays[0]
        result = ufunc(arrays[0], arrays[1], out=import_module("numpy").empty_like(x))
        for y in arrays[2:]:
            ufunc(result, y, out=result)
        return result

    def permute(self, x: Any, pairs: Sequence[tuple[int, int]]) -> Any:
        arrays = self._arrays_of_all(x)
        source = next((source for source, target in pairs if target == self.rank), None)
        return import_module("numpy").zeros_like(x) if source is None else arrays[source]

    def _arrays_of_all(self, x: Any) -> list[Any]:
        """Copies of the arrays of all members, which nobody may change.

        Others may read a copy after this member has returned, when its own array may change.
        """
        self._exchanges += 1
        return self._board.exchange(self._exchanges, self.rank, x.copy(), self.timeout)

    def close(self) -> None:
        """End the membership: a member that waits for this one gets an error."""
        self._board.end(self.rank)


def run_threads(f: Callable[[Group], T], size: int, *, timeout: float = DEFAULT_TIMEOUT) -> list[T]:
    """Call a function in several threads, each with its member of one group, and return the results.

    Args:
        f: a function of the member's group.
        size: the number of threads.
        timeout: the time in seconds that a member waits for the others.

    Raises:
        ArgumentError: if size is not a positive int.
        Exception: the exception of the first member that raised one; it ends the group, so no member waits for it.

    >>> import tensorken as tk
    >>> tk.distributed.run_threads(lambda group: (group.rank, group.size), 3)
    [(0, 3), (1, 3), (2, 3)]
    """
    if type(size) is not int or size < 1:
        raise ArgumentError(f"run_threads: need a positive number of threads, got {size!r:.40}")
    board = _Board(size)
    results: dict[int, T] = {}
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        group = ThreadGroup(rank, board, timeout)
        try:
            results[rank] = f(group)
        except BaseException as error:  # noqa: BLE001 -- raised below
            errors.append(error)
        finally:
            group.close()

    threads = [
        threading.Thread(target=copy_context().run, args=(run, rank), name=f"member {rank}")
        for rank in range(size)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:  # one that is not the consequence of another, if there is one
        raise next((error for error in errors if not isinstance(error, GroupError)), errors[0])
    return [results[rank] for rank in range(size)]
