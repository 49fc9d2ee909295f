"""Prefetching: a thread prepares the next batches during a training step."""

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
    """Iterate over the source in a thread, up to `size` items ahead.

    The thread has the context variables of the caller, such as the backend in use. It starts at the first request.
    It ends with the source, or when the iterator is closed or garbage-collected, which also closes a source that is
    a generator. An error of the source is raised here, after the items before it.

    Args:
        source: iterated over in the thread.
        size: the largest number of items that wait.

    Raises:
        ArgumentError: if `size` is not positive.

    >>> import tensorken as tk
    >>> from tensorken_nn.loader import DataLoader
    >>> with tk.use_backend("reference"):
    ...     batches = prefetch(DataLoader(tk.arange(5), 2).epoch(0))
    >>> [batch.tolist() for batch in batches]
    [[0, 1], [2, 3], [4]]
    """
    if size < 1:
        raise ArgumentError(f"prefetch: size must be 1 or more, got {size}")
    return _prefetched(source, size, copy_context())


@dataclass(frozen=True, slots=True)
class _End:
    """Marks the end of the items, with the error that ended the source, if any."""

    error: BaseException | None = None


def _prefetched(source: Iterable[T], size: int, context: Context) -> Generator[T, None, None]:
    items: SimpleQueue[T | _End] = SimpleQueue()
    free, stopped = Semaphore(size), Event()
    # A daemon thread: an unclosed iterator must not keep the process alive.
    thread = Thread(
        target=context.run, args=(_fill, source, items, free, stopped), name="prefetch", daemon=True
    )
    thread.start()
    try:
        while not isinstance(item := items.get(), _End):
            free.release()
            yield item
        if item.error is not None:
            raise item.error
    finally:
        stopped.set()
        free.release()
        thread.join()


def _fill(source: Iterable[T], items: SimpleQueue[T | _End], free: Semaphore, stopped: Event) -> None:
    """The thread's function: put items into the queue, as there is room, until the source ends or `stopped` is set."""
    end = _End()
    try:
        iterator = iter(source)
        try:
            while free.acquire() and not stopped.is_set():
                items.put(next(iterator))
        except StopIteration:
            pass
        finally:
            if isinstance(iterator, Generator):
                iterator.close()
    except BaseException as error:  # noqa: BLE001 - raised again in the consumer
        end = _End(error)
    items.put(end)
