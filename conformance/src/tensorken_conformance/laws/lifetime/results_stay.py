"""lifetime.results-stay: later computations do not change earlier results."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws.lifetime import memory, scenarios
from tensorken_conformance.subject import Array, Depth, Subject

CALLS: dict[Depth, int] = {"smoke": 5, "default": 100, "deep": 100}
"""The number of later calls; few in the smoke run, for slow backends."""

ROWS = (4, 5, 16, 17, 64, 65)
"""The rows of the operands of later calls of other sizes."""

ROUNDS = 20
"""The number of sequences of all scenarios."""

SEQUENCE = "sequence"
"""The op of the cases that run all scenarios in sequence."""

WAYS = ("same-shapes", "other-sizes", "dropped", "interleaved")


def cases(subject: Subject) -> Iterator[Case]:
    """Each scenario: with later calls of the same shapes, of other sizes, after operands are dropped, and interleaved.

    Besides, all scenarios in sequence.
    """
    yield from scenarios.cases("lifetime.results-stay", subject, WAYS)
    if subject.depth != "smoke":
        for dtype in scenarios.dtypes(subject):
            yield Case("lifetime.results-stay", SEQUENCE, dtype.name)


@law("lifetime.results-stay", cases, level=4)
def results_stay(subject: Subject, case: Case) -> None:
    """A result, and the values read from it, are the same after 100 later calls, whether it was read before or not.

    The later calls have the same shapes or others, and right results themselves; the operands are alive or collected.
    """
    if case.op == SEQUENCE:
        _sequence(subject, case)
        return
    if case.detail == "interleaved":
        _interleaved(subject, case)
        return
    operands = scenarios.values(subject, case)
    expected = scenarios.expected(case, operands)
    inputs = scenarios.tensors(subject, case, operands)
    read, unread = (scenarios.SCENARIOS[case.op].run(*inputs) for _ in range(2))
    scenarios.agree(subject, case, read, expected, "at once")
    flat, calls = read.flat(), CALLS[subject.depth]
    if case.detail == "dropped":
        del inputs
        gc.collect()
    for number in range(1, calls + 1):
        rows = ROWS[number % len(ROWS)] if case.detail == "other-sizes" else scenarios.ROWS
        others = scenarios.values(subject, case, number, rows)
        later = scenarios.run(subject, case, others)
        scenarios.agree(subject, case, later, scenarios.expected(case, others), f"later call {number}")
    scenarios.agree(subject, case, read, expected, f"read again after {calls} later calls")
    scenarios.agree(subject, case, unread, expected, f"first read after {calls} later calls")
    scenarios.agree(subject, case, read, expected, "read again after an equal result was read")
    _require_kept(case, flat, expected)


def _require_kept(case: Case, flat: Any, expected: Array) -> None:
    if memory.numbers(flat, expected.dtype).tolist() != expected.reshape(-1).tolist():
        raise Failure(f"{case.op} of {case.dtype}: the result of ravel has changed after later calls")


def _interleaved(subject: Subject, case: Case) -> None:
    """Many results are alive at once; every second one is read immediately."""
    kept, calls = [], CALLS[subject.depth]
    for number in range(calls):
        operands = scenarios.values(subject, case, number, ROWS[number % 3])
        result = scenarios.run(subject, case, operands)
        kept.append((result, scenarios.expected(case, operands), result.flat() if number % 2 else None))
    for number, (result, right, flat) in reversed(list(enumerate(kept))):
        scenarios.agree(subject, case, result, right, f"result {number} of {calls} that live at a time")
        if flat is not None:
            _require_kept(case, flat, right)


def _sequence(subject: Subject, case: Case) -> None:
    """All scenarios of this dtype, in sequence."""
    found = [other for other in scenarios.cases(case.law, subject) if other.dtype == case.dtype]
    for turn in range(ROUNDS):
        for other in found:
            operands = scenarios.values(subject, other)
            result, expected = scenarios.run(subject, other, operands), scenarios.expected(other, operands)
            scenarios.agree(
                subject, other, result, expected, f"in the {turn + 1}. sequence of {len(found)} calls"
            )
