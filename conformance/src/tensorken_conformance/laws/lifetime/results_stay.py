"""lifetime.results-stay: nothing that is computed later changes what was computed before."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws.lifetime import samples, scenarios
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Depth, Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_core.tensor.tensor import Tensor

CALLS: dict[Depth, int] = {"smoke": 5, "default": 100, "deep": 100}
"""How many calls come later; few in the quick run, where a backend may be slow."""

ROWS = (4, 5, 16, 17, 64, 65)
"""How many rows the operands of later calls have, where they have others."""

LITTLE: dict[Depth, int] = {"smoke": 2, "default": 10, "deep": 10}
"""How many calls come later of an op that is a factorization."""

KINDS = 5
"""How many different operands the later calls of one op have."""

WAYS = ("same-shapes", "other-sizes", "dropped", "interleaved")


def cases(subject: Subject) -> Iterator[Case]:
    """Each scenario: with later calls of the same shapes, of others, after operands are gone, and all at once.

    Beside them each op of the table in each dtype, with later calls of itself.
    """
    yield from scenarios.cases("lifetime.results-stay", subject, WAYS)
    yield from samples.cases("lifetime.results-stay", subject)


def copied(flat: Any) -> Array:
    """What a backend handed out, as it is now."""
    return np.array(flat if isinstance(flat, list) else memoryview(flat))


@law("lifetime.results-stay", cases, level=4)
def results_stay(subject: Subject, case: Case) -> None:
    """A result is the same after 100 later calls, whether it was read before or not, and so is what was read of it.

    The later calls have the same shapes or others, and right results themselves; the operands are still there, or
    collected.
    """
    if not case.detail:
        _of_one_op(subject, case)
        return
    if case.detail == "interleaved":
        _interleaved(subject, case)
        return
    operands = scenarios.values(subject, case)
    right = scenarios.expected(case, operands)
    inputs = scenarios.tensors(subject, case, operands)
    read, unread = (scenarios.SCENARIOS[case.op].run(*inputs) for _ in range(2))
    scenarios.agree(subject, case, read, right, "at once")
    flat, calls = read.flat(), CALLS[subject.depth]
    if case.detail == "dropped":
        del inputs
        gc.collect()
    for number in range(1, calls + 1):
        rows = ROWS[number % len(ROWS)] if case.detail == "other-sizes" else scenarios.ROWS
        others = scenarios.values(subject, case, number, rows)
        later = scenarios.run(subject, case, others)
        scenarios.agree(subject, case, later, scenarios.expected(case, others), f"later call {number}")
    scenarios.agree(subject, case, read, right, f"read again after {calls} later calls")
    scenarios.agree(subject, case, unread, right, f"first read after {calls} later calls")
    scenarios.agree(subject, case, read, right, "read again after an equal result was read")
    if copied(flat).tolist() != right.reshape(-1).tolist():
        raise Failure(f"{case.op} of {case.dtype}: what ravel gave has changed after {calls} later calls")


def _interleaved(subject: Subject, case: Case) -> None:
    """Many results of many operands live at a time; every second one is read as it comes."""
    kept, calls = [], CALLS[subject.depth]
    for number in range(calls):
        operands = scenarios.values(subject, case, number, ROWS[number % 3])
        result = scenarios.run(subject, case, operands)
        kept.append((result, scenarios.expected(case, operands), result.flat() if number % 2 else None))
    for number, (result, right, flat) in reversed(list(enumerate(kept))):
        scenarios.agree(subject, case, result, right, f"result {number} of {calls} that live at a time")
        if flat is not None and copied(flat).tolist() != right.reshape(-1).tolist():
            raise Failure(f"{case.op} of {case.dtype}: what ravel gave has changed after later calls")


def _of_one_op(subject: Subject, case: Case) -> None:
    """Results of all samples of an op, and later calls of these samples in turn on other operands."""
    op, dtype = OPS[case.op], DTYPES[case.dtype]
    tried = samples.repeated(op, subject.depth)

    def computed(sample: samples.Sample, number: int) -> tuple[Tensor, ...]:
        arrays = samples.operands(subject, op, sample, dtype, number)
        tensors = [subject.tensor(x, DTYPES[x.dtype.name]) for x in arrays]
        result = subject.run(op, tensors, samples.params_of(subject, sample[1]))
        return result if isinstance(result, tuple) else (result,)

    first = [y for sample in tried for y in computed(sample, 0)]
    kept = [(y, y.flat(), subject.read(y)) for y in first]
    for number in range((LITTLE if samples.heavy(op) else CALLS)[subject.depth]):
        for y in computed(tried[number % len(tried)], 1 + number // len(tried) % KINDS):
            subject.read(y)
    for y, flat, right in kept:
        exact.agree(subject, y, right, f"{case.op} of {case.dtype}, read again after later calls of it")
        if exact.differing(copied(flat).reshape(right.shape).astype(right.dtype), right) is not None:
            raise Failure(f"{case.op} of {case.dtype}: what ravel gave has changed after later calls")
