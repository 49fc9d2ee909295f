"""lifetime.threads: several threads may compute at once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws.lifetime import situations
from tensorken_conformance.subject import Subject

THREADS = 4

ROUNDS = 25
"""How often each thread runs the program."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each situation, on operands that threads share and on operands of their own; and one result read by all."""
    yield from situations.cases("lifetime.threads", subject, ("own", "shared", "read"))


def together(work: Callable[[int], None]) -> None:
    """Do work in several threads, which start at once and take turns as often as Python lets them.

    Raises:
        Failure: what went wrong in the first of them.
    """
    gate, wrong = threading.Barrier(THREADS), []

    def begin(number: int) -> None:
        gate.wait()
        try:
            work(number)
        except Failure as failure:
            wrong.append(failure)
        except Exception as error:  # noqa: BLE001, whatever a backend raises is a result
            wrong.append(Failure(f"{type(error).__name__} in one of {THREADS} threads: {error}"))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=begin, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if wrong:
        raise wrong[0]


@law("lifetime.threads", cases, level=4, needs=situations.needs)
def threads(subject: Subject, case: Case) -> None:
    """A program that runs in four threads at once gives in each of them the same bits as alone."""
    run = situations.SITUATIONS[case.op].run
    says = f"in one of {THREADS} threads"
    if case.detail == "read":
        for number in range(ROUNDS):
            operands = situations.values(subject, case, number)
            right = situations.expected(case, operands)
            result = situations.run(subject, case, operands)
            together(lambda _, y=result, z=right: situations.agree(subject, case, y, z, f"read {says}"))  # type: ignore[misc]
        return
    shared = situations.values(subject, case)
    inputs = situations.tensors(subject, case, shared)

    def work(number: int) -> None:
        own = shared if case.detail == "shared" else situations.values(subject, case, number, 16 + number)
        right = situations.expected(case, own)
        for _ in range(ROUNDS):
            x, y = inputs if case.detail == "shared" else situations.tensors(subject, case, own)
            situations.agree(subject, case, run(x, y), right, says)

    together(work)
