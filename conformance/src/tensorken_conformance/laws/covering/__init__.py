"""values.covering: each op wherever two circumstances meet: dtypes, sizes, shapes, layouts, values, situations.

Other laws of values vary one of these axes at a time; here the rows of a covering design (operands/designs.py)
vary all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorken_conformance.case import Case, Measured
from tensorken_conformance.law import law
from tensorken_conformance.laws.covering import placed, products, single
from tensorken_conformance.laws.covering.axes import ID, chains_of
from tensorken_conformance.layouts import chains
from tensorken_conformance.subject import Subject


def cases(subject: Subject) -> Iterator[Case]:
    """Each op on the rows of its design."""
    for family in (single, placed, products):
        yield from family.cases(subject)


def needs(case: Case) -> tuple[str, ...]:
    """The movements that make the operands."""
    made = [op for chain in chains_of(case) for op in chains.movements(chain)]
    return chains.needs(case.dtype, dict.fromkeys(made))


@law(ID, cases, level=2, needs=needs)
def covering(subject: Subject, case: Case) -> Measured | None:
    """An op is right wherever any two circumstances meet: dtypes, sizes, shapes, layouts, values, and what went before.

    Sizes are powers of two and their neighbours.  Each operand has a layout of its own, made by one or two movements.
    One NaN, infinity or end of the format stands first, last, or in the last place of whole vectors.  An op runs once,
    again on the same operands, after others, beside a kept result, on another thread, as a user has it, or in a
    compiled program that is called with two sets of values.
    """
    if case.op in products.OPS_OF:
        products.check(subject, case)
    elif case.op in placed.OPS_OF:
        placed.check(subject, case)
    else:
        return single.check(subject, case)
    return None
