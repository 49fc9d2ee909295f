"""The cases of laws that run each op on its samples."""

from __future__ import annotations

from collections.abc import Iterator

from tensorken_conformance.case import Case
from tensorken_conformance.operands import samples
from tensorken_conformance.subject import Subject
from tensorken_core.language.op import OPS


def cases(law: str, subject: Subject) -> Iterator[Case]:
    """Each op in each dtype; in the smoke run no factorization that runs as its body.

    Such a body is thousands of ops, which have cases of their own, and `values.factorizations` runs it.
    """
    for case in samples.cases(law, subject):
        op = OPS[case.op]
        if subject.depth != "smoke" or subject.call_counter.has(op) or not samples.heavy(op):
            yield case
