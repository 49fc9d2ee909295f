"""lifetime.repeats: the same calls give the same bits, however often."""

from __future__ import annotations

from collections.abc import Iterator

from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws.lifetime import samples, scenarios
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Depth, Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_core.tensor.tensor import Tensor

TIMES: dict[Depth, int] = {"smoke": 2, "default": 20, "deep": 20}
"""How often each sample is run; twice in the quick run, where a backend may be slow."""

MOST, ELEMENTS = 150, 600
"""How often a small sample is run: so often, unless that computes more elements.  All samples of an op make some 400
calls; what is wrong once in fifty calls at random passes them once in 3 000 times."""

SEQUENCE = "sequence"
"""The op of the cases that run all scenarios one after the other."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each op in each dtype, and all scenarios in a row."""
    yield from samples.cases("lifetime.repeats", subject)
    if subject.depth != "smoke":
        for dtype in scenarios.dtypes(subject):
            yield Case("lifetime.repeats", SEQUENCE, dtype.name)


def times(heavy: bool, size: int, depth: Depth) -> int:
    """How often a sample with so many elements is run: small ones more often, unless the op is a factorization."""
    if heavy or depth == "smoke":
        return TIMES[depth]
    return max(TIMES[depth], min(MOST, ELEMENTS // max(size, 1)))


@law("lifetime.repeats", cases, level=4)
def repeats(subject: Subject, case: Case) -> None:
    """The same sequence of calls gives the same bits each of twenty times and more, unless that is declared.

    The results of an op that is declared nondeterministic may differ within its errors: they only have to come.
    """
    if case.op == SEQUENCE:
        _sequence(subject, case)
        return
    op, dtype = OPS[case.op], DTYPES[case.dtype]
    free = op.name in subject.capabilities.nondeterministic
    kept = []
    for sample in samples.repeated(op, subject.depth):
        arrays = samples.operands(subject, op, sample, dtype)
        tensors = [subject.tensor(x, DTYPES[x.dtype.name]) for x in arrays]
        params = samples.params_of(subject, sample[1])
        first = _read(subject, subject.run(op, tensors, params))
        kept.append(
            (tensors, params, first, times(samples.heavy(op), sum(x.size for x in arrays), subject.depth))
        )
    for turn in range(1, max([count for *_, count in kept], default=0)):
        for tensors, params, first, count in kept:
            if turn < count:
                got = _read(subject, subject.run(op, tensors, params))
                for found, right in zip(got, first, strict=True):
                    places = None if free else exact.differing(found, right)
                    if places is not None:
                        told = exact.told(found, right, places)
                        raise Failure(
                            f"{case.op} {params or ''} of {case.dtype}, called {turn + 1} times: {told}"
                        )


def _read(subject: Subject, result: Tensor | tuple[Tensor, ...]) -> list[Array]:
    return [subject.read(y) for y in (result if isinstance(result, tuple) else (result,))]


def _sequence(subject: Subject, case: Case) -> None:
    """All scenarios that there are in this dtype, in a row."""
    row = [
        Case(case.law, other.op, other.dtype)
        for other in scenarios.cases(case.law, subject)
        if other.dtype == case.dtype
    ]
    for turn in range(TIMES[subject.depth]):
        for other in row:
            operands = scenarios.values(subject, other)
            right = scenarios.expected(other, operands)
            result = scenarios.run(subject, other, operands)
            scenarios.agree(subject, other, result, right, f"in the {turn + 1}. sequence of {len(row)} calls")
