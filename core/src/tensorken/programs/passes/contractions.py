"""Contractions: sums of products without the products, and repeated values computed before they are repeated.

The pass is the interpreter `Fuse`, which eager code runs on: the program runs once on it, over a backend that writes.
So `sum(mul(a, b))` becomes one `fused_multiply_add` of operands that keep size 1 along repeated axes, and a sum over
axes that no operand has becomes a factor: the derivative of `sum(a @ b)` needs no matrix product.

What is held back is written where its last equation stood, not where it is first used: so a program that ran in
little memory still does.
"""

from __future__ import annotations

import math
from typing import Any

from tensorken.fuse import Fuse, Held, Pending
from tensorken.programs.passes.writing import Writer
from tensorken.programs.program import Equation, Literal, Program, Variable
from tensorken.spec.op import OPS, run
from tensorken.spec.raw import RawTensor

SUM = OPS["sum"]
_HELD_BACK = frozenset((SUM, *[OPS[name] for name in ("add", "sub", "reshape", "permute")]))


def contracted(program: Program, backend: RawTensor[Any]) -> Program:
    """Products that are summed become contractions, and each elementwise equation is as small as its operands.

    Sums are taken in another order, so results differ by their rounding: by no more than n units in the last place of
    the sum of the absolute values of n terms.
    """
    writer = Writer(backend)
    fuse = _Contracting(writer)
    values: dict[Variable, Held[Variable]] = {}

    def held(v: Variable) -> Held[Variable]:
        found = values.get(v)
        if found is None:
            found = fuse.full(v.shape, v.value, v.dtype) if isinstance(v, Literal) else fuse.hold(v)
            values[v] = found
        return found

    built = _built(program)
    for place, e in enumerate(writer.following(program)):
        operands = [held(v) for v in e.operands]
        if e.op is SUM and e.operands[0] in built:
            fuse.build(operands[0])
        ys = run(fuse, e.op, operands, e.params)
        if e.op.results == 1:
            ys = (ys,)
        if ys[0].pending is not None:
            fuse.asked[id(ys[0].pending)] = (ys[0].pending, e, place)
        values.update(zip(e.results, ys, strict=True))
    return writer.finished(program, [fuse.value(held(v)) for v in program.outputs])


def _built(program: Program) -> set[Variable]:
    """The values that something needs as they are, so that no contraction can spare them."""
    built = set(program.outputs)
    for e in reversed(program.equations):
        if e.op not in _HELD_BACK or (e.op is not SUM and not built.isdisjoint(e.results)):
            built.update(e.operands)
    return built


class _Contracting(Fuse[Variable]):
    """Fuse, which remembers where in the program what is pending was asked for."""

    raw: Writer

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer)
        self.asked: dict[int, tuple[Pending, Equation, int]] = {}

    def build(self, x: Held[Variable]) -> None:
        """Compute what is to be computed anyway, if it is smaller than all that it is made of."""
        p = x.pending
        if p is not None:
            made_of = sum([math.prod(v.shape) for _, a, b, _ in p.terms for v in (a, b) if v is not None])
            if math.prod([n for i, n in enumerate(p.full) if i not in p.axes]) <= made_of:
                self.small(x)

    def _compute(self, p: Pending) -> Variable:
        writer, found = self.raw, self.asked.get(id(p))
        if found is None:
            return super()._compute(p)
        at, place = writer.at, writer.place
        _, writer.at, writer.place = found
        try:
            return super()._compute(p)
        finally:
            writer.at, writer.place = at, place
