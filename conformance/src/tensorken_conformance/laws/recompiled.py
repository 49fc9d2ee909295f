"""programs.recompiled: functions under jit are correct if calls alternate between functions and between arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.laws.lifetime import scenarios
from tensorken_conformance.layouts import chains
from tensorken_conformance.oracles import exact
from tensorken_conformance.programs.variations import VARIATIONS, Call, Numbers
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.tensor.tensor import Tensor

ID = "programs.recompiled"

QUICK = ("dtypes", "sizes")
"""The variations of the smoke run."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each variation, in a dtype of each kind, in a deep run in all."""
    numeric = [dtype for dtype in scenarios.dtypes(subject) if dtype.kind != "bool"]
    for name, (_, ops) in VARIATIONS.items():
        if subject.depth == "smoke" and name not in QUICK:
            continue
        for dtype in numeric:
            needed = ("add", "sub", "mul", "sum", *ops)
            if any(subject.capabilities.why_not(op, dtype.name) for op in needed):
                continue
            if dtype.kind == "float" or name != "gradients":
                yield Case(ID, name, dtype.name)
            if name == "dtypes" or subject.depth == "smoke":
                break


@law(ID, cases, level=4, stage=3)
def recompiled(subject: Subject, case: Case) -> None:
    """Compiled functions that are called in turn, with several kinds of arguments, have the results of single calls.

    Calls differ in one thing: dtypes, sizes, static arguments, captured numbers or tensors, axes, the order of operands
    or of results, memory layouts, or only values.  They run in one order, in the reverse, and once more; in the end the
    first results and all operands are unchanged.
    """
    dtype = DTYPES[case.dtype]
    calls = VARIATIONS[case.op][0](subject, dtype, Numbers(subject, case))
    kept: list[tuple[Call, list[Tensor]]] = []
    for turn, order in enumerate((calls, calls[::-1], calls)):
        for call in order:
            kept.append((call, _called(subject, case, call, f"call {turn + 1}")))
    for call, results in kept:
        _agree(subject, case, call, results, "read again after the other calls")


def _called(subject: Subject, case: Case, call: Call, says: str) -> list[Tensor]:
    """The results of a call, after checking them and that its operands are unchanged."""
    arrays = list(call.operands)
    dtypes = [DTYPES[x.dtype.name] for x in arrays]
    first = chains.lying(subject.stack, call.chain, arrays[0], dtypes[0])
    rest = zip(arrays[1:], dtypes[1:], strict=True)
    xs = [first, *[first if call.same else subject.tensor(x, d, subject.stack) for x, d in rest]]
    view = first.flip((0,)) if call.donated else None
    found = call.run(*xs, *call.statics)
    results = [*found] if isinstance(found, tuple | list) else [found]
    _agree(subject, case, call, results, says)
    for i, (x, values) in enumerate(zip(xs, arrays, strict=True)):
        if view is not None and not i:
            x, values = view, np.flip(values, 0)
        exact.agree(
            subject, x, np.array(values), f"{case.op}, {call.says}: operand {i} has changed after {says}"
        )
    return results


def _agree(subject: Subject, case: Case, call: Call, results: Sequence[Tensor], says: str) -> None:
    words = f"{case.op} in turn, {call.says}, {says}"
    if len(results) != len(call.expected):
        raise Failure(f"{words}: expected {len(call.expected)} results, got {len(results)}")
    for i, (y, right) in enumerate(zip(results, call.expected, strict=True)):
        exact.agree(subject, y, right, f"{words}: result {i}")
