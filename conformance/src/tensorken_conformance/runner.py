"""Runner: examines a backend in worker processes, several at a time; a crash or a hang of one is a result."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from tensorken_conformance.case import Case, Result
from tensorken_conformance.subject import Depth

PARTS = 8
"""Into how many jobs the cases of a law are split, each with ops of its own."""


class RunError(RuntimeError):
    """The backend could not be examined at all."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to examine, and how.

    Args:
        backend: the name of the backend.
        seed: of all numbers that are drawn.
        depth: how many cases there are.
        select: the ids or groups of the laws; none: all.
        workers: how many processes; None: as many as there are processors, at most 8.
        limit: seconds that a worker may take for one case.
    """

    backend: str
    seed: int = 0
    depth: Depth = "default"
    select: tuple[str, ...] = ()
    workers: int | None = None
    limit: float = 60.0


@dataclass(slots=True)
class Job:
    """A part of a law's cases; `skip` of them are done."""

    law: str
    part: int
    parts: int
    skip: int = 0


@dataclass(slots=True)
class Run:
    """What a run has found so far."""

    results: list[Result] = field(default_factory=list)
    capabilities: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)


class Worker:
    """A process that examines cases, and what it has told us."""

    def __init__(self, options: Options) -> None:
        self._limit = options.limit
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tensorken_conformance.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.curdir for path in sys.path)},
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._errors: list[str] = []
        threading.Thread(target=self._hear, daemon=True).start()
        threading.Thread(target=self._collect, daemon=True).start()
        self._send(
            {
                "backend": options.backend,
                "seed": options.seed,
                "depth": options.depth,
                "select": list(options.select),
            }
        )

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def _collect(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._errors.append(line.rstrip())
            del self._errors[:-20]

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # what it died of is told where its answer is awaited
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def receive(self) -> dict[str, Any] | None:
        """What the worker tells next; None if it died or hangs."""
        try:
            line = self._lines.get(timeout=self._limit)
        except queue.Empty:
            return None
        message: dict[str, Any] | None = json.loads(line) if line else None
        return message

    def do(self, job: Job, failed: Collection[str]) -> Iterator[dict[str, Any]]:
        """What the worker tells of a job; it ends early if the worker dies or hangs."""
        self._send(
            {
                "law": job.law,
                "part": job.part,
                "parts": job.parts,
                "skip": job.skip,
                "failed": sorted(failed),
            }
        )
        while (message := self.receive()) is not None:
            yield message
            if "done" in message:
                return

    def obituary(self) -> str:
        """Why the worker told no more; it is gone afterwards."""
        try:
            code: int | None = self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            code = None
        self.end()
        if code is None:
            return f"hang: no result within {self._limit:g} s"
        last = f": {self._errors[-1]}" if self._errors else ""
        return f"crash: signal {-code}{last}" if code < 0 else f"crash: exit status {code}{last}"

    def end(self) -> None:
        """Stop the process."""
        self._process.kill()
        self._process.wait()


def run(options: Options, tell: Callable[[Result], None] = lambda result: None) -> Run:
    """Examine a backend.

    Args:
        options: what to examine, and how.
        tell: called with each result as it comes, from several threads, one at a time.

    Raises:
        RunError: if the backend cannot even be loaded.
    """
    found = Run()
    first = Worker(options)
    hello = first.receive()
    if hello is None:
        raise RunError(f"{options.backend}: {first.obituary()}")
    found.capabilities, found.about = hello["capabilities"], hello["about"]
    idle = [first]
    lock = threading.Lock()
    failed: set[str] = set()

    def note(result: Result) -> None:
        with lock:
            found.results.append(result)
            if result.status in ("failed", "crashed"):
                failed.add(result.case.id)
            tell(result)

    count = options.workers or min(8, os.cpu_count() or 1)
    try:
        for stage in sorted({stage for _, stage in hello["laws"]}):
            laws = [law for law, place in hello["laws"] if place == stage]
            parts = PARTS if options.depth != "smoke" and count > 1 else 1
            jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
            for law in laws:
                for part in range(parts):
                    jobs.put(Job(law, part, parts))
            threads = [
                threading.Thread(target=_work, args=(options, jobs, idle, frozenset(failed), note, lock))
                for _ in range(count if parts > 1 else 1)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        for worker in idle:
            worker.end()
    return found


def _work(
    options: Options,
    jobs: queue.SimpleQueue[Job],
    idle: list[Worker],
    failed: Collection[str],
    note: Callable[[Result], None],
    lock: threading.Lock,
) -> None:
    """Have one worker after the other do jobs, until there are none."""
    worker: Worker | None = None
    while True:
        try:
            job = jobs.get_nowait()
        except queue.Empty:
            break
        while True:
            if worker is None:
                worker = _take(options, idle, lock)
            running, done = "", False
            for message in worker.do(job, failed):
                running = message.get("start", running)
                if "result" in message:
                    job.skip, running = job.skip + 1, ""
                    note(Result.from_data(message["result"]))
                done = "done" in message
            if done:
                break
            reason, worker = worker.obituary(), None
            case = Case.parse(running) if running else Case(job.law, "enumeration")
            note(Result(case, "crashed", 0, reason))
            if not running:
                break
            job.skip += 1
    if worker is not None:
        with lock:
            idle.append(worker)


def _take(options: Options, idle: list[Worker], lock: threading.Lock) -> Worker:
    with lock:
        if idle:
            return idle.pop()
    worker = Worker(options)
    worker.receive()
    return worker
