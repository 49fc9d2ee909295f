"""lifetime.threads: several threads can compute at once."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import tensorken as tk
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

PROGRAMS = "programs"
"""The op of the cases in which each thread compiles and runs programs of its own, with constants of its own."""

BODIES: tuple[Callable[[Any, float], Any], ...] = (
    lambda x, c: (x * c + 1) * (x - c),
    lambda x, c: (x + c).sum(0) - c,
    lambda x, c: (x - c).max(1) * c + x[:, 0],
)
"""Functions of a matrix and a constant, of tensors and of arrays."""

PROGRAMS_OF_EACH = 6

READS = 20
"""The number of results that all threads read at once."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each scenario, on operands of each thread; on shared ones and with a shared result only if threads may share."""
    shared = () if subject.capabilities.thread_bound else ("shared", "read")
    yield from scenarios.cases("lifetime.threads", subject, ("own", *shared))
    if subject.depth != "smoke":
        for dtype in scenarios.dtypes(subject):
            if dtype.kind != "bool":
                yield Case("lifetime.threads", EVERY_OP, dtype.name)
            if dtype.name in ("float32", "float64", "int32", "int64"):  # whose sums keep their dtype
                yield Case("lifetime.threads", PROGRAMS, dtype.name)


PAUSES, MANY_PAUSES = 0.03, 0.15
"""The probability that a thread pauses, at each call of a function of the language or the backend, and at each line
of the backend; and the probability in the cases that run each op a few times only."""


PATIENCE, BLOCKED = 0.05, 5
"""Seconds that one thread waits for another, which may wait for a lock; and the most threads that may be blocked."""

LATE = 5
"""Once a thread is blocked, the next counts as blocked after this multiple of the time of the last that was not."""


OURS = ("tensorken.", "tensorken_conformance.")
"""The prefixes of the modules of the language and of the kit."""

Trace = Callable[[FrameType, str, object], Any]
"""A trace function, which Python calls at each call and at each line."""


@contextmanager
def interrupted(number: int, packages: Collection[str], pauses: float) -> Iterator[None]:
    """A context in which this thread pauses at random, which the scheduler alone does seldom.

    The pauses are in Python code: compiled code of a backend is not interrupted.

    Args:
        number: of the thread, which seeds its random numbers.
        packages: the packages in whose code it pauses at lines, too.
        pauses: the probability of a pause at a call or a line.
    """
    chance, pause = random.Random(number).random, time.sleep
    # by module: whether calls pause, and how lines are traced
    watched: dict[str, tuple[bool, Trace | None]] = {}

    def on_line(frame: FrameType, event: str, argument: object) -> Trace:
        if chance() < pauses:
            pause(1e-6)
        return on_line

    def on_call(frame: FrameType, event: str, argument: object) -> Trace | None:
        module = frame.f_globals.get("__name__", "")
        found = watched.get(module)  # cached, since this runs at each call of any function
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
    """The packages of the classes of a backend, and of the backends that it wraps.

    Their dependencies are not included: bindings of a driver may run a thousand lines for each op, and pauses at all of
    these take minutes.

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
    """Whether code is in one of these packages, or in a faulty backend of the selftest."""
    name = str(frame.f_globals.get("__name__", ""))
    return name.partition(".")[0] in packages or name.startswith("tensorken_conformance.faults.")


def together(work: Callable[[int], None], packages: Collection[str], pauses: float = PAUSES) -> None:
    """Run work in several threads, which start at once and pause at random.

    Args:
        work: the function of each thread, called with its number.
        packages: the packages in whose code threads pause at lines, too.
        pauses: the probability of a pause at a call or a line.

    Raises:
        Failure: the first failure of a thread.
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
    """Run work in a thread that stops once at each line of a backend, while another thread runs it completely.

    So state that the backend shares between threads is overwritten between any two lines.

    Raises:
        Failure: the first failure of a thread.
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
        if thread.is_alive():  # it waits for a lock of the first thread
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
    """Run work, and keep its failure."""
    try:
        work(number)
    except Failure as failure:
        wrong.append(failure)
    except Exception as error:  # noqa: BLE001, whatever a backend raises is a result
        wrong.append(Failure(f"{type(error).__name__} in one of {THREADS} threads: {error}"))


@law("lifetime.threads", cases, level=4)
def threads(subject: Subject, case: Case) -> None:
    """A program that runs in four threads at once gives the same bits in each as alone."""
    if case.op == EVERY_OP:
        _every_op(subject, case)
        return
    if case.op == PROGRAMS:
        _programs(subject, case)
        return
    run, packages = scenarios.SCENARIOS[case.op].run, packages_of(subject.backend) | compiler_packages()
    says = f"in one of {THREADS} threads"
    if case.detail == "read":
        for number in range(READS):
            operands = scenarios.values(subject, case, number)
            expected = scenarios.expected(case, operands)
            result = scenarios.run(subject, case, operands)
            together(
                lambda _, y=result, z=expected: scenarios.agree(subject, case, y, z, f"read {says}"),  # type: ignore[misc]
                packages,
            )
        return
    shared = scenarios.values(subject, case)
    inputs = scenarios.tensors(subject, case, shared)

    def work(number: int, rounds: int = 1) -> None:
        rows = scenarios.ROWS + number // 2  # two threads share one shape, the two others another
        own = shared if case.detail == "shared" else scenarios.values(subject, case, number, rows)
        expected = scenarios.expected(case, own)
        for _ in range(rounds):
            x, y = inputs if case.detail == "shared" else scenarios.tensors(subject, case, own)
            scenarios.agree(subject, case, run(x, y), expected, says)

    at_every_line(work, packages)
    together(lambda number: work(number, ROUNDS), packages)


def _programs(subject: Subject, case: Case) -> None:
    """Each thread compiles its own programs, all at once, and runs each of them several times."""

    def work(number: int) -> None:
        values = scenarios.values(subject, case, number)
        x, _ = scenarios.tensors(subject, case, values)
        for j in range(PROGRAMS_OF_EACH):
            body, c = BODIES[j % len(BODIES)], 1 + number * PROGRAMS_OF_EACH + j
            f = tk.jit(lambda x, b=body, c=c: b(x, c))
            expected = body(values[0], c).astype(values[0].dtype)  # numpy adds integers in int64
            for _ in range(ROUNDS_OF_ALL):
                exact.same(subject.read(f(x)), expected, f"program {j} in one of {THREADS} threads")

    together(work, packages_of(subject.backend) | compiler_packages())


def _every_op(subject: Subject, case: Case) -> None:
    """All ops but factorizations, on their samples, in each thread on its own operands."""
    dtype = DTYPES[case.dtype]
    names = [other.op for other in samples.cases(case.law, subject) if other.dtype == case.dtype]
    refused = subject.capabilities.why_not
    ops = [OPS[name] for name in names if not samples.heavy(OPS[name]) and refused(name, case.dtype) is None]
    gate = threading.Barrier(THREADS)

    def computed(op: Op, number: int) -> list[Array]:
        found = []
        for sample in samples.declared(subject, op):
            given = samples.values_of(op, sample, dtype, subject.seed + 1000 * number)
            operands = [subject.tensor(*one) for one in given]
            found += [subject.read(y) for y in subject.results(op, operands, sample[1])]
        return found

    alone = [[computed(op, number) for op in ops] for number in range(THREADS)]

    def work(number: int) -> None:
        try:
            for op, expected in zip(ops, alone[number], strict=True):
                gate.wait()  # so that all threads run the same op
                for _ in range(ROUNDS_OF_ALL):
                    for got, value in zip(computed(op, number), expected, strict=True):
                        if op.name not in subject.capabilities.nondeterministic:
                            exact.same(got, value, f"{op.name} of {case.dtype}, in one of {THREADS} threads")
        except threading.BrokenBarrierError:
            pass  # another thread has failed, and reports it
        except BaseException:
            gate.abort()
            raise

    together(work, packages_of(subject.backend) | compiler_packages(), MANY_PAUSES)
