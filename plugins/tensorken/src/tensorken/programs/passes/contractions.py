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

from tensorken.programs.passes.equation_writer import EquationWriter
from tensorken_core.language.op import OPS, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_core.rewriting.fuse import Deferred, Fuse, SumOfProducts

CONTRACT, MUL, SUM = OPS["fused_multiply_add"], OPS["mul"], OPS["sum"]
_HELD_BACK = frozenset((SUM, *[OPS[name] for name in ("add", "sub", "reshape", "permute")]))
"""What may be done to values that are held back without computing them."""

_SMALLER = frozenset((CONTRACT, SUM, *[OPS[name] for name in ("expand", "flip", "max", "min")]))
"""Ops that, beside `mul`, Fuse may hold back or make smaller though their operands are there as they are."""


def contracted(program: Program, backend: RawTensor[Any]) -> Program:
    """Products that are summed become contractions, and each elementwise equation is as small as its operands.

    Sums are taken in another order, so results differ by their rounding: by no more than n units in the last place of
    the sum of the absolute values of n terms.
    """
    writer = EquationWriter(backend)
    fuse = _Contracting(writer)
    values: dict[Variable, Deferred[Variable]] = {}  # what is held back, or has size 1 where it is repeated
    known: dict[Variable, Variable] = {}  # what is there as it is, but under another name

    def held(v: Variable) -> Deferred[Variable]:
        found = values.get(v)
        if found is None:
            found = fuse.full(v.shape, v.value, v.dtype) if isinstance(v, Literal) else fuse.wrap(v)
        return found

    built = _built(program)
    met = _met(program)
    simple = {op for op in program.ops if op not in _SMALLER and not writer.lacks[op]}
    for place, e in enumerate(writer.following(program, known)):
        if (
            e.op in simple
            and not (e.op is MUL and e.results[0] in met)
            and values.keys().isdisjoint(e.operands)
            and _has_all(e)
        ):
            writer.keep(e)  # as Fuse would; but most equations of most programs are such, and this is quick
            continue
        operands = [held(v) for v in e.operands]
        if e.op is SUM and program.equations[place].operands[0] in built:
            fuse.build(operands[0])
        ys = run(fuse, e.op, operands, e.params)
        if e.op.results == 1:
            ys = (ys,)
        if ys[0].pending is not None:
            fuse.asked[id(ys[0].pending)] = (ys[0].pending, e, place)
        values.update(zip(e.results, ys, strict=True))
        for v in (*e.operands, *e.results):  # of the operands some may have been computed just now
            y = values.get(v)
            if y is not None and y.value is not None and y.number is None and y.value.shape == v.shape:
                del values[v]
                if y.value is not v:
                    known[v] = y.value
    return writer.finished(program, [fuse.value(held(known.get(v, v))) for v in program.outputs])


def _has_all(e: Equation) -> bool:
    """Whether no operand need be repeated: numbers stand beside others, of which an elementwise op has all elements.

    An int among floats is none of these numbers, since what Fuse writes for it is a float.
    """
    numbers = [v for v in e.operands if isinstance(v, Literal)]
    return not numbers or (
        e.op.elementwise
        and len(numbers) < len(e.operands)
        and all([v.dtype.kind != "float" or isinstance(v.value, float) for v in numbers])
    )


def _built(program: Program) -> set[Variable]:
    """The values that something needs as they are, so that no contraction can spare them."""
    built = set(program.outputs)
    for e in reversed(program.equations):
        if e.op not in _HELD_BACK or (e.op is not SUM and not built.isdisjoint(e.results)):
            built.update(e.operands)
    return built


def _met(program: Program) -> set[Variable]:
    """The values that may still be held back where something sums, moves or adds them: all others can be computed."""
    pending: set[Variable] = set()
    met: set[Variable] = set()
    for e in program.equations:
        if e.op in _HELD_BACK and pending.issuperset(e.operands):
            met.update(e.operands)
            pending.update(e.results)
        elif e.op in (MUL, SUM, CONTRACT):
            pending.update(e.results)
    return met


class _Contracting(Fuse[Variable]):
    """Fuse, which remembers where in the program what is pending was asked for."""

    raw: EquationWriter

    def __init__(self, writer: EquationWriter) -> None:
        super().__init__(writer)
        self.asked: dict[int, tuple[SumOfProducts, Equation, int]] = {}

    def build(self, x: Deferred[Variable]) -> None:
        """Compute what is to be computed anyway, if it is smaller than all that it is made of."""
        p = x.pending
        if p is not None:
            made_of = sum([math.prod(v.shape) for _, a, b, _ in p.terms for v in (a, b) if v is not None])
            if math.prod([n for i, n in enumerate(p.full) if i not in p.axes]) <= made_of:
                self.unexpanded(x)

    def _compute(self, p: SumOfProducts) -> Variable:
        writer, found = self.raw, self.asked.get(id(p))
        if found is None:
            return super()._compute(p)
        at, place = writer.at, writer.place
        _, writer.at, writer.place = found
        try:
            return super()._compute(p)
        finally:
            writer.at, writer.place = at, place
