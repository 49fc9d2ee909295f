"""Runner: examines a backend in worker processes, several at a time; a crash or a hang of one is a result."""

from __future__ import annotations

import contextlib
import os
import queue
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tensorken_conformance.backends.loading import search_path
from tensorken_conformance.case import Case, Result, script_of
from tensorken_conformance.detection.finders import finders
from tensorken_conformance.running.options import Run, RunError, Tell
from tensorken_conformance.running.plan import ALONE, IN_TURNS
from tensorken_conformance.running.process import Process
from tensorken_conformance.running.stopwatch import POLL, Stopwatch

PARTS = 64
"""The number of jobs per law.  Each has its own ops, the same in every law.

A worker does the same part of each law in turn, so that a backend can reuse the code that it compiled for an op, which
may take longer to compile than to run.  So a part has only a few ops.
"""

MAX_CRASHES_OF_OP = 2
"""The number of crashes after which a law gives up an op; a hang counts as two."""

MAX_CRASHES = 100
"""The number of crashes that end a run."""

CRASHES_PER_HANG = 10
"""A hang counts as so many of MAX_CRASHES, since it takes as long as the limit of a case."""

BEGINNING = 120.0
"""The least limit, in seconds, for the first message of a worker, which imports the backend."""

SHORT = 5.0
"""The seconds after which a smoke run starts further processes."""

USUAL = 0.05
"""The seconds of a case of a law that has not run yet."""

SECOND_TIME = "twice"
"""The end of the report of a hang: the case was tried again, alone."""

REST = "enumeration"
"""The op in the id of a result that counts for all cases that did not run."""


@dataclass(slots=True, eq=False)
class Job:
    """A part of a law's cases.

    Attributes:
        skip: the number of finished cases.
        total: the number of cases; None before the worker has listed them.
        level: the lowest level of the cases.
        crashes: the number of crashes by op; by an empty name for crashes outside of cases.
        without: the ops that were given up, with reasons.
        rest: the job that follows a job of one case which is tried again, alone.
    """

    law: str
    part: int
    parts: int
    skip: int = 0
    rest: Job | None = None
    total: int | None = None
    level: int = 0
    crashes: Counter[str] = field(default_factory=Counter)
    without: dict[str, str] = field(default_factory=dict)


def examine_apart(outcome: Run, tell: Tell) -> None:
    """Examine a backend in worker processes."""
    crew = _Workers(outcome, tell)
    try:
        if crew.begin():
            stages = sorted({law["stage"] for law in outcome.laws})
            for turn in range(outcome.options.turns):
                for stage in stages if turn == 0 else [stage for stage in stages if stage >= IN_TURNS]:
                    crew.perform(stage, turn)
    finally:
        crew.end()


class _Worker:
    """A worker process and its state."""

    def __init__(self, process: Process, job: Job | None, counts: bool) -> None:
        self.process, self.job = process, job
        self.counts = counts  # whether it is counting all cases
        self.part = -1  # of the last job
        self.case, self.level, self.place = "", 0, 0  # of the running case
        self.heard = time.monotonic()
        self.ready = False  # whether it has sent a message
        self.watch = Stopwatch(process.pid)
        self.before = 0.0  # the watch's total at the start of the job
        self.failed = 0  # the number of failed cases that it knows


class _Workers:
    """The worker processes of a run; all messages arrive in one queue, which one thread reads."""

    def __init__(self, outcome: Run, tell: Tell) -> None:
        self._outcome, self._tell, self._options = outcome, tell, outcome.options
        self._workers: list[_Worker] = []
        self._messages: queue.SimpleQueue[tuple[_Worker, dict[str, Any] | None]] = queue.SimpleQueue()
        self._failed = outcome.failed
        self._done = outcome.ids
        self._worth = Counter(id.partition("/")[0] for id in finders().values())  # seeded faults found by law
        self._places: dict[str, int] = {}  # of cases among those of their law
        self._seconds: dict[str, float] = {}  # seconds by law
        self._cases: Counter[str] = Counter()  # cases by law
        self._retries: deque[Job] = deque()  # cases that hung, to be tried again
        self._crashes = 0

    # ---- starting ------------------------------------------------------------------------------------------

    def begin(self) -> bool:
        """Start the first worker, and receive the plan; false if the backend cannot be loaded.

        Raises:
            RunError: if the backend or a law is unknown.
        """
        first = self._start(None, counts=True)
        first_message, hangs = self._first_message(first)
        if first_message is not None and "laws" in first_message:
            self._outcome.take(first_message)
            return True
        if first_message is not None and first_message["usage"]:
            raise RunError(first_message["refused"])
        reason = first_message["refused"] if first_message else first.process.exit_reason(hangs)
        case = Case("host.load", "load")
        self._record(Result(case, "crashed" if first_message is None else "failed", 0, reason))
        return False

    def _start(self, job: Job | None, counts: bool = False) -> _Worker:
        """Start a worker; one of them counts all cases before its first job."""
        options = self._options
        process = Process("running.worker", search_path(options.backend))
        process.send(
            backend=options.backend,
            options=dict(options.options),
            seed=options.seed,
            depth=options.depth,
            select=options.select,
            done=self._done,
            turns=options.turns,
            counts=counts,
        )
        worker = _Worker(process, job, counts)
        worker.process.listen(lambda message: self._messages.put((worker, message)))
        self._workers.append(worker)
        return worker

    def _first_message(self, first: _Worker) -> tuple[dict[str, Any] | None, str]:
        """The first message of the first worker; None if it died, or hangs for the returned reason."""
        while True:
            with contextlib.suppress(queue.Empty):
                _, first_message = self._messages.get(timeout=POLL)
                first.ready = True
                return first_message, ""
            first.watch.look()
            if reason := first.watch.verdict(self._limit(first)):
                return None, reason

    def _limit(self, worker: _Worker) -> float:
        """The seconds that a worker may compute without a message."""
        return self._options.limit if worker.ready else max(self._options.limit, BEGINNING)

    # ---- a stage -------------------------------------------------------------------------------------------

    def perform(self, stage: int, turn: int) -> None:
        """Do all jobs of a stage in a turn, until the budget is spent."""
        laws = [law["id"] for law in self._outcome.laws if law["stage"] == stage]
        in_parts = 1 if self._options.depth == "smoke" or stage >= ALONE else PARTS
        parts = range(in_parts * turn, in_parts * (turn + 1))
        jobs = deque(Job(law, part, in_parts * self._options.turns) for part in parts for law in laws)
        known = len(self._failed)
        if stage >= ALONE:
            self._stop(keep=1)
        while True:
            if self._outcome.is_over_budget:
                self._stop(keep=0)
                self._outcome.end_at_budget()
                return
            self._hand_out(jobs, self._count(stage), known)
            busy = [worker for worker in self._workers if worker.job is not None]
            if not busy:
                return
            try:
                worker, message = self._messages.get(timeout=POLL)  # on Windows, Ctrl-C waits for its end
            except queue.Empty:
                pass
            else:
                if worker not in self._workers:
                    pass  # the worker was stopped in the meantime
                elif message is None:
                    self._handle_exit(worker, jobs, "it tells no more")
                else:
                    self._handle_message(worker, message, jobs)
            self._end_hanging(busy, jobs)

    def _count(self, stage: int) -> int:
        """The number of processes now; a smoke run may end before another one has started."""
        if stage >= ALONE:
            return 1
        is_short = self._options.depth == "smoke" and time.monotonic() - self._outcome.began < SHORT
        return self._options.workers or (1 if is_short else processors())

    def _end_hanging(self, busy: Sequence[_Worker], jobs: deque[Job]) -> None:
        """End the workers that hang, unless there are unread messages."""
        for worker in busy:
            if worker in self._workers and worker.watch.due:
                worker.watch.look()
        if self._messages.empty():
            for worker in busy:
                reason = worker.watch.verdict(self._limit(worker))
                if reason and worker in self._workers and worker.job is not None:
                    self._handle_exit(worker, jobs, reason)

    def _hand_out(self, jobs: deque[Job], count: int, known: int) -> None:
        """Give jobs to idle workers, and start more workers for further jobs.

        A case that hung comes first: when all workers are idle, in a new process.
        """
        if self._retries:
            if not any(worker.job is not None for worker in self._workers):
                job = self._retries.popleft()
                self._stop(keep=0)
                self._send(self._start(job), job, known)
            return
        while jobs:
            idle = next((worker for worker in self._workers if worker.job is None), None)
            if idle is None and len(self._workers) >= count:
                return
            job = self._take_job(jobs, idle)
            if self._crashes > MAX_CRASHES:
                self._end_law(
                    job, jobs, "the backend crashed or hung so often in this run that it was given up"
                )
                continue
            self._send(idle or self._start(job), job, known)

    def _send(self, worker: _Worker, job: Job, known: int) -> None:
        """Give a job to a worker."""
        worker.job, worker.part, worker.case = job, job.part, ""
        worker.heard = time.monotonic()
        worker.watch.look()
        worker.watch.restart()
        worker.before = worker.watch.total
        news, worker.failed = self._failed[worker.failed : known], known
        worker.process.send(
            law=job.law,
            part=job.part,
            parts=job.parts,
            skip=job.skip,
            count=1 if job.rest else None,
            without=list(job.without),
            failed=news,
        )

    def _take_job(self, jobs: deque[Job], idle: _Worker | None) -> Job:
        """Take a job for a worker: of the part of its last job, or else of a part without a worker."""
        part = -1 if idle is None else idle.part
        others = {worker.part for worker in self._workers if worker is not idle}
        if self._options.turns > 1:
            job = max(jobs, key=self._rate)
        else:
            same = next((job for job in jobs if job.part == part), None)
            job = same or next((job for job in jobs if job.part not in others), jobs[0])
        jobs.remove(job)
        return job

    def _rate(self, job: Job) -> float:
        """The seeded faults that a law found, by the seconds that a case of it takes here."""
        seconds, cases = self._seconds.get(job.law, 0.0), self._cases[job.law]
        return self._worth[job.law] / max(seconds / cases if cases else USUAL, 1e-4)

    def _handle_message(self, worker: _Worker, message: dict[str, Any], jobs: deque[Job]) -> None:
        job, worker.ready = worker.job, True
        worker.heard = time.monotonic()
        worker.watch.restart()
        if "planned" in message:
            self._outcome.planned, worker.counts = message["planned"], False
        if job is None:  # its first message
            return
        if "unlisted" in message:
            self._end_law(job, jobs, message["unlisted"])
        if "begin" in message:
            job.total, job.level = message["begin"], message["level"]
            self._skip_ops(job, message["left"])
        if "start" in message:
            worker.case, worker.level, worker.place = message["start"], message["level"], message["place"]
            self._places[worker.case] = message["index"]
        if "result" in message:
            job.skip, worker.case = message["place"] + 1, ""
            self._record(Result.from_data(message["result"]))
        taken = self._seconds.get(job.law, 0.0) + worker.watch.total - worker.before
        if "done" in message:
            self._seconds[job.law], worker.job = taken, None
            if job.rest is not None:
                jobs.appendleft(job.rest)
        elif taken > self._options.law_limit:
            reason = f"time limit: the law took more than {self._options.law_limit:g} s in all"
            self._end_law(job, jobs, f"{reason}; the rest of its cases did not run")

    def _handle_exit(self, worker: _Worker, jobs: deque[Job], hangs: str) -> None:
        """Record the running case of a worker that died or hangs; another worker does the rest of its job.

        A case that hangs for the first time is tried again, alone.
        """
        job, reason = worker.job, worker.process.exit_reason(hangs)
        hung = reason.startswith("hang")
        self._workers.remove(worker)
        if job is None:
            return
        if worker.counts:  # before its job, which another worker does
            jobs.appendleft(job)
            return
        if hung and worker.case and job.rest is None:
            job.skip = worker.place + 1
            self._retries.append(
                replace(job, skip=worker.place, rest=job, crashes=Counter(), without=dict(job.without))
            )
            return
        reason += f", {SECOND_TIME}" if hung and job.rest else ""
        seconds = time.monotonic() - worker.heard
        job = job.rest or job
        self._crashes += CRASHES_PER_HANG if hung else 1
        op = ""
        if worker.case:
            case = Case.parse(worker.case)
            op, job.skip = case.op, worker.place + 1
            options = self._options
            script = script_of(case, options.backend, options.seed, options.depth)
            self._record(Result(case, "crashed", worker.level, reason, script, seconds=seconds))
        job.crashes[op] += 2 if hung else 1
        if job.crashes[op] < MAX_CRASHES_OF_OP:
            jobs.appendleft(job)
        elif op:
            job.without[op] = reason
            jobs.appendleft(job)
        elif job.total is None or job.skip < job.total:
            part = f"part {job.part + 1} of {job.parts}"
            rest = Case(job.law, REST, detail=part)
            self._record(Result(rest, "crashed", job.level, reason, seconds=seconds))

    def _skip_ops(self, job: Job, left: Mapping[str, Sequence[str]]) -> None:
        """Record the cases of an op that was given up as one crash per dtype; they block the cases that need them."""
        for op, ids in left.items():
            reason, job.without[op] = job.without[op], ""
            if reason:
                for dtype, count in Counter(Case.parse(id).dtype for id in ids).items():
                    says = f"given up, {count} cases did not run: {reason}"
                    self._record(Result(Case(job.law, op, dtype, detail=REST), "crashed", job.level, says))
                self._failed += ids

    def _end_law(self, job: Job, jobs: deque[Job], reason: str) -> None:
        """End all jobs of the law of a job, and record their other cases as one crash."""
        for waiting in (jobs, self._retries):
            for other in [other for other in waiting if other.law == job.law]:
                waiting.remove(other)
        for worker in list(self._workers):
            if worker.job is not None and worker.job.law == job.law:
                worker.process.end()
                self._workers.remove(worker)
        level = job.level if job.total is not None else int(not job.law.startswith("host."))
        self._record(Result(Case(job.law, REST), "crashed", level, reason))

    # ---- results -------------------------------------------------------------------------------------------

    def _record(self, result: Result) -> None:
        self._outcome.results.append(result)
        self._cases[result.case.law] += 1
        if result.status in ("failed", "crashed"):
            self._failed.append(result.case.id)
        self._tell(result)

    # ---- ending --------------------------------------------------------------------------------------------

    def _stop(self, keep: int) -> None:
        for worker in self._workers[keep:]:
            worker.process.end()
        del self._workers[keep:]

    def end(self) -> None:
        """Stop all processes."""
        self._stop(keep=0)
        self._outcome.put_in_order(self._places)


def processors() -> int:
    """The default number of processes: one for each usable processor, at most 8."""
    usable = getattr(os, "sched_getaffinity", None)
    return min(8, len(usable(0)) if usable else os.cpu_count() or 1)
