"""lifetime.results-stay: nothing that is computed later changes what was computed before."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np

from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws.lifetime import situations
from tensorken_conformance.subject import Array, Subject

CALLS = 100
"""How many calls come later."""

ROWS = (4, 5, 16, 17, 64, 65)
"""How many rows the operands of later calls have, where they have others."""

WAYS = ("same-shapes", "other-sizes", "dropped", "interleaved")


def cases(subject: Subject) -> Iterator[Case]:
    """Each situation: with later calls of the same shapes, of others, after operands are gone, and all at once."""
    yield from situations.cases("lifetime.results-stay", subject, WAYS)


def copied(flat: object) -> Array:
    """What a backend handed out, as it is now."""
    return np.array(flat if isinstance(flat, list) else memoryview(flat))  # type: ignore[arg-type]


@law("lifetime.results-stay", cases, level=4, needs=situations.needs)
def results_stay(subject: Subject, case: Case) -> None:
    """A result is the same after 100 later calls, whether it was read before or not, and so is what was read of it.

    The later calls have the same shapes or others; the operands are still there, or collected.
    """
    if case.detail == "interleaved":
        _interleaved(subject, case)
        return
    operands = situations.values(subject, case)
    right = situations.expected(case, operands)
    inputs = situations.tensors(subject, case, operands)
    read, unread = (situations.SITUATIONS[case.op].run(*inputs) for _ in range(2))
    situations.agree(subject, case, read, right, "at once")
    flat = read.flat()
    if case.detail == "dropped":
        del inputs
        gc.collect()
    for number in range(1, CALLS + 1):
        rows = ROWS[number % len(ROWS)] if case.detail == "other-sizes" else situations.ROWS
        situations.run(subject, case, situations.values(subject, case, number, rows)).flat()
    situations.agree(subject, case, unread, right, f"first read after {CALLS} later calls")
    situations.agree(subject, case, read, right, f"read again after {CALLS} later calls")
    if copied(flat).tolist() != right.reshape(-1).tolist():
        raise Failure(f"{case.op} of {case.dtype}: what ravel gave has changed after {CALLS} later calls")


def _interleaved(subject: Subject, case: Case) -> None:
    """Many results of many operands live at a time; every second one is read as it comes."""
    kept = []
    for number in range(CALLS):
        operands = situations.values(subject, case, number, ROWS[number % 3])
        result = situations.run(subject, case, operands)
        kept.append((result, situations.expected(case, operands), result.flat() if number % 2 else None))
    for number, (result, right, flat) in reversed(list(enumerate(kept))):
        situations.agree(subject, case, result, right, f"result {number} of {CALLS} that live at a time")
        if flat is not None and copied(flat).tolist() != right.reshape(-1).tolist():
            raise Failure(f"{case.op} of {case.dtype}: what ravel gave has changed after later calls")
