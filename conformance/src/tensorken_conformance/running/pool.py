"""Pool: worker processes that do tasks, several at a time; one that dies or hangs is reported and replaced.

A task whose worker hangs may be done once more in the end, alone, before that is reported.
"""

from __future__ import annotations

import functools
import queue
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tensorken_conformance.running.process import Process
from tensorken_conformance.running.stopwatch import POLL, Stopwatch

BEGINNING = 120.0
"""Seconds that a worker may compute before it begins with its first case: it imports, and lists the cases."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker is to do.

    Attributes:
        data: what it is told.
        done: called with what came of it.
        died: called with the case that was running, and how the worker ended, if it did.
        limit: seconds that it may compute without telling anything, from the worker's first case on.
        twice: whether it is done once more, alone, before it counts as hanging.
    """

    data: dict[str, Any]
    done: Callable[[dict[str, Any]], None]
    died: Callable[[str, str], None]
    limit: float
    twice: bool = True


class Worker:
    """A process that does tasks, one after the other."""

    def __init__(self, module: str) -> None:
        self._process = Process(module, sys.path)
        self._messages: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._process.listen(self._messages.put)
        self._has_begun = False

    def do(self, task: Task, hung: Callable[[], None] | None = None) -> bool:
        """Have a task done; whether the worker outlived it.

        Args:
            task: what to do.
            hung: called in place of the task's `died`, if it is given and the worker hangs.
        """
        self._process.send(**task.data)
        running, watch = "", Stopwatch(self._process.pid)
        while True:
            limit = task.limit if self._has_begun else max(task.limit, BEGINNING)
            try:
                message = self._messages.get(timeout=POLL)
            except queue.Empty:
                watch.look()
                if not (reason := watch.verdict(limit)):
                    continue
                if hung is None or not task.twice:
                    task.died(running, self._process.exit_reason(reason))
                else:
                    self.end()
                    hung()
                return False
            watch.look()
            watch.restart()
            if message is None:
                task.died(running, self._process.exit_reason("it sends no more"))
                return False
            self._has_begun = True
            if "done" in message:
                task.done(message["done"])
                return True
            running = message["start"]

    def end(self) -> None:
        """Stop the process."""
        self._process.end()


def do_all(tasks: Iterable[Task], module: str, workers: int) -> None:
    """Have all tasks done, in their order.

    Args:
        tasks: what to do; their callbacks are called from several threads, one at a time.
        module: of this package, which serves tasks when it is run as a program.
        workers: how many processes.
    """
    waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
    again: list[Task] = []
    lock = threading.Lock()
    for task in tasks:
        waiting.put(_locked(task, lock))

    def work() -> None:
        worker: Worker | None = None
        try:
            while True:
                task = waiting.get_nowait()
                worker = worker or Worker(module)
                if not worker.do(task, functools.partial(again.append, task)):
                    worker = None
        except queue.Empty:
            return
        finally:
            if worker is not None:
                worker.end()

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for task in again:
        alone = Worker(module)
        try:
            alone.do(task)
        finally:
            alone.end()


def _locked(task: Task, lock: threading.Lock) -> Task:
    """The task with callbacks that wait for each other."""

    def done(result: dict[str, Any]) -> None:
        with lock:
            task.done(result)

    def died(case: str, reason: str) -> None:
        with lock:
            task.died(case, reason)

    return Task(task.data, done, died, task.limit, task.twice)
