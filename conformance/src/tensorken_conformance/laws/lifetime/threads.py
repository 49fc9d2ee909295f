"""lifetime.threads: several threads may compute at once."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws.lifetime import scenarios
from tensorken_conformance.operands import samples
from tensorken_conformance.oracles import exact
from tensorken_conformance.programs.offers import packages as compiler_packages
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS, Op

THREADS = 4

ROUNDS = 30
"""How often each thread runs the program."""

EVERY_OP = "every-op"
"""The op of the cases in which each thread runs all ops of the table."""

ROUNDS_OF_ALL = 4

READS = 20
"""How many results are read by all threads at once."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each scenario, on operands of threads' own and on shared ones; and one result that all of them read."""
    yield from scenarios.cases("lifetime.threads", subject, ("own", "shared", "read"))
    if subject.depth != "smoke":
        for dtype in scenarios.dtypes(subject):
            if dtype.kind != "bool":
                yield Case("lifetime.threads", EVERY_OP, dtype.name)


PAUSES, MANY_PAUSES = 0.03, 0.15
"""How likely a thread lets others run, at each call of a function of the language or the backend and each line of the
backend's; and how likely where each op is run a few times only."""


PATIENCE, BLOCKED = 0.05, 5
"""Seconds that one thread waits for another, which may wait for a lock; and how often it tries again if that is so."""

LATE = 5
"""Once one waits for a lock, the next one is taken to wait, too, after this many times what the last took that ran."""


OURS = ("tensorken.", "tensorken_conformance.")
"""How the modules of the language and of the kit begin."""

Trace = Callable[[FrameType, str, object], Any]
"""What Python calls at each call of a function, or at each line of one."""


@contextmanager
def interrupted(number: int, packages: Collection[str], pauses: float) -> Iterator[None]:
    """While it lasts, this thread stops every now and then, as it might at any time: the scheduler alone seldom does.

    The pauses are where Python can see them: a backend's own code that runs without Python is not stopped in it.

    Args:
        number: of the thread; its chances are others than those of another one.
        packages: those in whose code it stops at lines, too.
        pauses: how likely it stops, at a call or a line.
    """
    chance, pause = random.Random(number).random, time.sleep
    watched: dict[str, tuple[bool, Trace | None]] = {}  # by module: whether calls count, and what sees lines

    def on_line(frame: FrameType, event: str, argument: object) -> Trace:
        if chance() < pauses:
            pause(1e-6)
        return on_line

    def on_call(frame: FrameType, event: str, argument: object) -> Trace | None:
        module = frame.f_globals.get("__name__", "")
        found = watched.get(module)  # this is asked at each call of any function, and takes most of the time
        if found is None:
            of_it = of_backend(frame, packages)
            seen = of_it or str(module).startswith(OURS)
            found = watched[module] = seen, on_line if of_it else None
        if found[0] and chance() < pauses:
            pause(1e-6)
        return found[1]

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield
    finally:
        sys.settrace(before)


def packages_of(interpreter: Any) -> frozenset[str]:
    """The packages in which the classes of a backend are, and of those that it is wrapped around.

    What these stand on is not among them: bindings of a driver may run a thousand lines for each op, and to stop at
    those takes minutes.

    >>> import tensorken as tk
    >>> from tensorken_reference.backend import Reference
    >>> sorted(packages_of(tk.Lazy(Reference())))
    ['tensorken_reference']
    """
    found: set[str] = set()
    while interpreter is not None:
        found |= {kind.__module__.partition(".")[0] for kind in type(interpreter).__mro__}
        interpreter = getattr(interpreter, "raw", None)
    return frozenset(
        found - {"tensorken", "tensorken_core", "tensorken_conformance", "builtins", "typing", "abc"}
    )


def of_backend(frame: FrameType, packages: Collection[str]) -> bool:
    """Whether code is in one of these packages, or of the faulty backends on which the kit is tried."""
    name = str(frame.f_globals.get("__name__", ""))
    return name.partition(".")[0] in packages or name.startswith("tensorken_conformance.faults.")


def together(work: Callable[[int], None], packages: Collection[str], pauses: float = PAUSES) -> None:
    """Do work in several threads, which start at once and take turns at every opportunity.

    Args:
        work: what each does, from its number.
        packages: those in whose code threads stop at lines, too.
        pauses: how likely one stops, at a call or a line.

    Raises:
        Failure: what went wrong in the first of them.
    """
    gate, wrong = threading.Barrier(THREADS), list[Failure]()

    def begin(number: int) -> None:
        gate.wait()
        with interrupted(number, packages, pauses):
            _kept(work, number, wrong)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]


def at_every_line(work: Callable[[int], None], packages: Collection[str]) -> None:
    """Do work in a thread that stops once at each line of a backend's, while another does it from begin to end.

    So what it keeps between two lines, where others find it, is theirs when it goes on.

    Raises:
        Failure: what went wrong in the first of them.
    """
    known: set[tuple[CodeType, int]] = set()
    blocked: list[threading.Thread] = []
    took = PATIENCE

    def other(wrong: list[Failure]) -> None:
        nonlocal took
        thread = threading.Thread(target=_kept, args=(work, 1, wrong))
        began = time.perf_counter()
        thread.start()
        thread.join(min(LATE * took, PATIENCE) if blocked else PATIENCE)
        if thread.is_alive():  # as where this one holds a lock
            blocked.append(thread)
        else:
            took = time.perf_counter() - began

    def on_line(frame: FrameType, event: str, argument: object) -> Any:
        line = frame.f_code, frame.f_lineno
        if event == "line" and line not in known and len(blocked) < BLOCKED:
            known.add(line)
            other(wrong)
        return on_line

    def on_call(frame: FrameType, event: str, argument: object) -> Any:
        return on_line if of_backend(frame, packages) else None

    def first() -> None:
        sys.settrace(on_call)
        _kept(work, 0, wrong)

    wrong: list[Failure] = []
    thread = threading.Thread(target=first)
    thread.start()
    thread.join()
    for thread in blocked:
        thread.join()
    if wrong:
        raise wrong[0]


def _kept(work: Callable[[int], None], number: int, wrong: list[Failure]) -> None:
    """Do work, and keep what goes wrong."""
    try:
        work(number)
    except Failure as failure:
        wrong.append(failure)
    except Exception as error:  # noqa: BLE001, whatever a backend raises is a result
        wrong.append(Failure(f"{type(error).__name__} in one of {THREADS} threads: {error}"))


@law("lifetime.threads", cases, level=4)
def threads(subject: Subject, case: Case) -> None:
    """A program that runs in four threads at once gives in each of them the same bits as alone."""
    if case.op == EVERY_OP:
        _every_op(subject, case)
        return
    run, packages = scenarios.SCENARIOS[case.op].run, packages_of(subject.backend) | compiler_packages()
    says = f"in one of {THREADS} threads"
    if case.detail == "read":
        for number in range(READS):
            operands = scenarios.values(subject, case, number)
            right = scenarios.expected(case, operands)
            result = scenarios.run(subject, case, operands)
            together(
                lambda _, y=result, z=right: scenarios.agree(subject, case, y, z, f"read {says}"),  # type: ignore[misc]
                packages,
            )
        return
    shared = scenarios.values(subject, case)
    inputs = scenarios.tensors(subject, case, shared)

    def work(number: int, rounds: int = 1) -> None:
        rows = scenarios.ROWS + number // 2  # two threads have one shape, the two others another
        own = shared if case.detail == "shared" else scenarios.values(subject, case, number, rows)
        right = scenarios.expected(case, own)
        for _ in range(rounds):
            x, y = inputs if case.detail == "shared" else scenarios.tensors(subject, case, own)
            scenarios.agree(subject, case, run(x, y), right, says)

    at_every_line(work, packages)
    together(lambda number: work(number, ROUNDS), packages)


def _every_op(subject: Subject, case: Case) -> None:
    """All ops but factorizations, on the samples that they declare, in each thread on operands of its own."""
    dtype = DTYPES[case.dtype]
    names = [other.op for other in samples.cases(case.law, subject) if other.dtype == case.dtype]
    refused = subject.capabilities.why_not
    ops = [OPS[name] for name in names if not samples.heavy(OPS[name]) and refused(name, case.dtype) is None]
    gate = threading.Barrier(THREADS)

    def computed(op: Op, number: int) -> list[Array]:
        found = []
        for sample in samples.declared(subject, op):
            given = samples.values_of(op, sample, dtype, subject.seed + 1000 * number)
            found.append(subject.read(subject.run(op, [subject.tensor(*one) for one in given], sample[1])))
        return found

    alone = [[computed(op, number) for op in ops] for number in range(THREADS)]

    def work(number: int) -> None:
        try:
            for op, expected in zip(ops, alone[number], strict=True):
                gate.wait()  # so that all are at the same op
                for _ in range(ROUNDS_OF_ALL):
                    for got, right in zip(computed(op, number), expected, strict=True):
                        if op.name not in subject.capabilities.nondeterministic:
                            exact.same(got, right, f"{op.name} of {case.dtype}, in one of {THREADS} threads")
        except threading.BrokenBarrierError:
            pass  # another thread has failed, and tells why
        except BaseException:
            gate.abort()
            raise

    together(work, packages_of(subject.backend) | compiler_packages(), MANY_PAUSES)
