"""Prefetching: a thread makes the next batches while the last one is learned from."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextvars import Context, copy_context
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event, Semaphore, Thread
from typing import TypeVar

from tensorken_core.errors import ArgumentError

T = TypeVar("T")


def prefetch(source: Iterable[T], size: int = 2) -> Generator[T, None, None]:
    """What the source gives, made in a thread, up to `size` things before they are asked for.

    The thread sees the context of the call: a backend that is in use there is in use in the thread. It begins when the
    first thing is asked for. It ends with the source, with an error of the source, which is raised here after what
    came before it, or when the iterator is closed or forgotten; a source that is a generator is closed then.

    Args:
        source: what is iterated over, in the thread.
        size: how many things may wait.

    Raises:
        ArgumentError: if none may wait.

    >>> import tensorken as tk
    >>> from tensorken_nn.loader import DataLoader
    >>> with tk.use_backend("reference"):
    ...     batches = prefetch(DataLoader(tk.arange(5), 2).epoch(0))
    >>> [batch.tolist() for batch in batches]
    [[0, 1], [2, 3], [4]]
    """
    if size < 1:
        raise ArgumentError(f"prefetch: at least one thing must be able to wait, got size {size}")
    return _prefetched(source, size, copy_context())


@dataclass(frozen=True, slots=True)
class _End:
    """What follows the last thing: the error that ended the source, if one did."""

    error: BaseException | None = None


def _prefetched(source: Iterable[T], size: int, context: Context) -> Generator[T, None, None]:
    things: SimpleQueue[T | _End] = SimpleQueue()
    free, stopped = Semaphore(size), Event()
    # A daemon: a process that ends with an iterator that nobody closed does not wait for it.
    thread = Thread(
        target=context.run, args=(_fill, source, things, free, stopped), name="prefetch", daemon=True
    )
    thread.start()
    try:
        while not isinstance(thing := things.get(), _End):
            free.release()
            yield thing
        if thing.error is not None:
            raise thing.error
    finally:
        stopped.set()
        free.release()
        thread.join()


def _fill(source: Iterable[T], things: SimpleQueue[T | _End], free: Semaphore, stopped: Event) -> None:
    """What the thread does: wait for room, make the next thing, until there is none or nobody wants it."""
    end = _End()
    try:
        iterator = iter(source)
        try:
            while free.acquire() and not stopped.is_set():
                things.put(next(iterator))
        except StopIteration:
            pass
        finally:
            if isinstance(iterator, Generator):
                iterator.close()
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised where the things are asked for
        end = _End(error)
    things.put(end)
