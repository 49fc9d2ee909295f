"""Pool: worker processes that do tasks, several at a time; one that dies or hangs is told and replaced.

A task whose worker hangs may be done once more in the end, alone, before that is told.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tensorken_conformance.running.stopwatch import POLL, Stopwatch

BEGINNING = 120.0
"""Seconds that a worker may compute before it begins with its first case: it imports, and lists the cases."""


ENDING = 10.0
"""Seconds in which a process that tells no more must have ended by itself, so that its exit status can be told."""


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
    """A process that serves lines of JSON: a module of this package, run as a program."""

    def __init__(self, module: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"tensorken_conformance.{module}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.curdir for path in sys.path)},
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._has_begun = False
        self._ear = threading.Thread(target=self._hear, daemon=True)
        self._ear.start()

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def do(self, task: Task, hung: Callable[[], None] | None = None) -> bool:
        """Have a task done; whether the worker outlived it.

        Args:
            task: what to do.
            hung: called in place of the task's `died`, if it is given and the worker hangs.
        """
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # its end is noticed below
            self._process.stdin.write(json.dumps(task.data) + "\n")
            self._process.stdin.flush()
        running = ""
        watch = Stopwatch(self._process.pid)
        while True:
            limit = task.limit if self._has_begun else max(task.limit, BEGINNING)
            try:
                line = self._lines.get(timeout=POLL)
            except queue.Empty:
                watch.look()
                reason = watch.verdict(limit)
                if not reason:
                    continue
                self.end()
                if hung is None or not task.twice:
                    task.died(running, f"hang: {reason}")
                else:
                    hung()
                return False
            watch.look()
            watch.restart()
            if not line:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(ENDING)
                self.end()
                task.died(running, f"crash: exit status {self._process.returncode}")
                return False
            self._has_begun = True
            message = json.loads(line)
            if "done" in message:
                task.done(message["done"])
                return True
            running = message["start"]

    def end(self) -> None:
        """Stop the process, if it still runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.0 if self._ear.is_alive() else 1.0)
        self._process.kill()
        self._process.wait()
        self._ear.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # of what it did not live to read
                    pipe.close()


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
