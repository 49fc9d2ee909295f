"""Prefetching returns the items of its source, which a thread produces ahead, and leaves no thread behind."""

from __future__ import annotations

import gc
import itertools
import threading
import time
import traceback
from collections.abc import Callable, Iterator

import pytest

import tensorken as tk
from tensorken_core.errors import ArgumentError
from tensorken_nn.loader import DataLoader, Windows
from tensorken_nn.prefetching import prefetch

KEY = tk.random.key(0, backend="numpy")


def prefetching() -> list[threading.Thread]:
    """The prefetching threads; other threads may start and end."""
    return [thread for thread in threading.enumerate() if thread.name == "prefetch"]


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert not prefetching()


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait for a condition, with a time limit."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize("size", [1, 2, 100])
def test_the_items_come_in_order(size: int) -> None:
    assert list(prefetch(range(50), size)) == list(range(50))
    assert list(prefetch([], size)) == []


def test_batches_are_the_same_in_a_thread(backend: str) -> None:
    for loader in (
        DataLoader((tk.arange(7), tk.ones((7, 2))), 3, key=KEY),
        Windows(tk.arange(20), 3, 2, KEY),
    ):
        plain, ahead = (itertools.islice(make(loader.from_step(1)), 4) for make in (iter, prefetch))
        for one, other in zip(plain, ahead, strict=True):
            for x, y in zip(one, other, strict=True):
                assert x.tolist() == y.tolist() and y.backend == backend


def test_at_most_size_items_wait() -> None:
    produced: list[int] = []

    def source() -> Iterator[int]:
        for number in itertools.count():
            produced.append(number)
            yield number

    items = prefetch(source(), 3)
    assert produced == []
    assert next(items) == 0
    wait_for(lambda: len(produced) == 4)
    time.sleep(0.02)
    assert produced == [0, 1, 2, 3]
    items.close()


def test_items_are_produced_in_a_thread_with_the_callers_context() -> None:
    def source() -> Iterator[tuple[threading.Thread, str]]:
        while True:
            yield threading.current_thread(), tk.zeros(()).backend

    with tk.use_backend("reference"):
        items = prefetch(source())
    seen = list(itertools.islice(items, 3))
    assert {name for _, name in seen} == {"reference"}
    assert {thread.name for thread, _ in seen} == {"prefetch"}
    assert tk.zeros(()).backend == "numpy"
    del items


def test_an_error_comes_after_the_items_before_it() -> None:
    def broken() -> Iterator[int]:
        yield 1
        yield 2
        raise KeyError("gone")

    items = prefetch(broken(), 5)
    assert [next(items), next(items)] == [1, 2]
    with pytest.raises(KeyError, match="gone") as caught:
        next(items)
    assert "broken" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    with pytest.raises(StopIteration):
        next(items)


def test_a_source_that_is_not_iterable_raises_in_the_consumer() -> None:
    with pytest.raises(TypeError, match="not iterable"):
        next(prefetch(7))  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("end", ["closed", "unreferenced", "left by an error"])
def test_the_thread_ends_with_the_iterator(end: str, count: int) -> None:
    closed: list[bool] = []

    def source() -> Iterator[int]:
        try:
            yield from itertools.count()
        finally:
            closed.append(threading.current_thread() is not threading.main_thread())

    items = prefetch(source(), 2)
    assert [next(items) for _ in range(count)] == list(range(count))
    if end == "closed":
        items.close()
    elif end == "unreferenced":
        del items
    else:
        with pytest.raises(ValueError, match="enough"):
            _fail(items)
        del items
    gc.collect()
    assert closed == [True]


def _fail(items: Iterator[int]) -> None:
    for _ in items:
        raise ValueError("enough")


def test_the_thread_ends_while_it_produces_an_item() -> None:
    producing, proceed = threading.Event(), threading.Event()

    def source() -> Iterator[int]:
        yield 0
        producing.set()
        proceed.wait(10)
        yield 1

    items = prefetch(source())
    assert next(items) == 0
    assert producing.wait(10)
    timer = threading.Timer(0.01, proceed.set)
    timer.start()
    items.close()
    assert proceed.is_set()
    timer.join(10)


def test_a_nested_iterator_ends_with_the_outer_one() -> None:
    items = prefetch(prefetch(prefetch(itertools.count())))
    assert next(items) == 0
    items.close()


def test_nothing_runs_before_the_first_request() -> None:
    prefetch(itertools.count())


def test_a_size_of_zero_is_refused() -> None:
    with pytest.raises(ArgumentError, match="prefetch: size must be 1 or more, got 0"):
        prefetch([1], 0)
