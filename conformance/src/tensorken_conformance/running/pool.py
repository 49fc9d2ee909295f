"""Pool: worker processes that do tasks in parallel; a worker that dies or hangs is reported and replaced.

A task whose worker hangs may run once more in the end, alone, before the hang is reported.
"""

from __future__ import annotations

import functools
import queue
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from tensorken_conformance.running.process import Process
from tensorken_conformance.running.stopwatch import POLL, Stopwatch

BEGINNING = 120.0
"""The seconds that a worker may compute before its first case, to import and to list the cases."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task for a worker.

    Attributes:
        data: the message to the worker.
        done: called with the result.
        died: called, if the worker died or hung, with the running case and the reason.
        limit: the seconds that the worker may compute without a message, from its first case on.
        twice: whether a task that hangs runs once more, alone.
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
        """Do a task; returns whether the worker is still alive.

        If `hung` is given and the worker hangs, it is called in place of the task's `died`.
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
    """Do all tasks, started in their order.

    Args:
        tasks: the tasks; several threads call their callbacks, one at a time.
        module: the module of this package that a worker runs as a program.
        workers: the number of processes.
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
    """The task with callbacks that run one at a time."""

    def locked(callback: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            with lock:
                callback(*arguments)

        return call

    return replace(task, done=locked(task.done), died=locked(task.died))
