"""Contractions: compute sums of products without the products, and repeated values before they are repeated.

The pass runs the program once on the interpreter `Fuse`, which eager code uses too, over a backend that writes
equations.  So `sum(mul(a, b))` becomes one `fused_multiply_add` whose operands keep size 1 along repeated axes, and a
sum over axes that no operand has becomes a factor: the derivative of `sum(a @ b)` needs no matrix product.

A deferred value is written at the position of its last equation, not at its first use, so that the peak memory
does not grow.
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
_DEFERRABLE = frozenset((SUM, *[OPS[name] for name in ("add", "sub", "reshape", "permute")]))
"""Ops that can leave their deferred operands uncomputed."""

_SHRINKABLE = frozenset((CONTRACT, SUM, *[OPS[name] for name in ("expand", "flip", "max", "min")]))
"""Ops besides `mul` that Fuse may defer or make smaller even if their operands are computed."""


def contracted(program: Program, backend: RawTensor[Any]) -> Program:
    """Replace sums of products by contractions, and run elementwise equations on values before they are repeated.

    Sums are taken in another order, so results differ by rounding: by at most n units in the last place of the sum of
    the absolute values of n terms.
    """
    writer = EquationWriter(backend)
    fuse = _Contracting(writer)
    values: dict[Variable, Deferred[Variable]] = {}  # deferred, or with size 1 along repeated axes
    replacements: dict[Variable, Variable] = {}  # computed, but by another variable

    def held(v: Variable) -> Deferred[Variable]:
        x = values.get(v)
        if x is None:
            x = fuse.full(v.shape, v.value, v.dtype) if isinstance(v, Literal) else fuse.wrap(v)
        return x

    materialized = _materialized(program)
    held_operands = _held_operands(program)
    simple = {op for op in program.ops if op not in _SHRINKABLE and not writer.lacks[op]}
    for position, e in enumerate(writer.equations_of(program, replacements)):
        if (
            e.op in simple
            and not (e.op is MUL and e.results[0] in held_operands)
            and values.keys().isdisjoint(e.operands)
            and _is_full_size(e)
        ):
            writer.append(e)  # a fast path with the same result as Fuse, for most equations
            continue
        operands = [held(v) for v in e.operands]
        if e.op is SUM and program.equations[position].operands[0] in materialized:
            fuse.build(operands[0])
        ys = run(fuse, e.op, operands, e.params)
        if e.op.results == 1:
            ys = (ys,)
        if ys and ys[0].products is not None:
            fuse.sources[id(ys[0].products)] = (ys[0].products, e, position)
        values.update(zip(e.results, ys, strict=True))
        for v in (*e.operands, *e.results):  # the op may have computed some operands
            y = values.get(v)
            if y is not None and y.value is not None and y.fill_value is None and y.value.shape == v.shape:
                del values[v]
                if y.value is not v:
                    replacements[v] = y.value
    return writer.program_from(program, [fuse.value(held(replacements.get(v, v))) for v in program.outputs])


def _is_full_size(e: Equation) -> bool:
    """Whether no operand must be repeated: all operands have all elements, besides numbers in an elementwise op.

    An int literal among floats does not count, because Fuse writes it as a float.
    """
    numbers = [v for v in e.operands if isinstance(v, Literal)]
    return not numbers or (
        e.op.elementwise
        and len(numbers) < len(e.operands)
        and all([v.dtype.kind != "float" or isinstance(v.value, float) for v in numbers])
    )


def _materialized(program: Program) -> set[Variable]:
    """The values that must be computed, so that no contraction can avoid them."""
    materialized = set(program.outputs)
    for e in reversed(program.equations):
        if e.op not in _DEFERRABLE or (e.op is not SUM and not materialized.isdisjoint(e.results)):
            materialized.update(e.operands)
    return materialized


def _held_operands(program: Program) -> set[Variable]:
    """The values that may still be deferred when an op sums, moves or adds them; all others can be computed."""
    pending: set[Variable] = set()
    held_operands: set[Variable] = set()
    for e in program.equations:
        if e.op in _DEFERRABLE and pending.issuperset(e.operands):
            held_operands.update(e.operands)
            pending.update(e.results)
        elif e.op in (MUL, SUM, CONTRACT):
            pending.update(e.results)
    return held_operands


class _Contracting(Fuse[Variable]):
    """Fuse that remembers which equation of the program each deferred value comes from."""

    raw: EquationWriter

    def __init__(self, writer: EquationWriter) -> None:
        super().__init__(writer)
        self.sources: dict[int, tuple[SumOfProducts, Equation, int]] = {}

    def build(self, x: Deferred[Variable]) -> None:
        """Compute a deferred value that must be computed, if it is not larger than its operands together."""
        p = x.products
        if p is not None:
            operand_size = sum(
                [math.prod(v.shape) for _, a, b, _ in p.terms for v in (a, b) if v is not None]
            )
            if math.prod([n for i, n in enumerate(p.full) if i not in p.axes]) <= operand_size:
                self.unexpanded(x)

    def _compute(self, p: SumOfProducts) -> Variable:
        writer, source = self.raw, self.sources.get(id(p))
        if source is None:
            return super()._compute(p)
        old_source, old_position = writer.source, writer.position
        _, writer.source, writer.position = source
        try:
            return super()._compute(p)
        finally:
            writer.source, writer.position = old_source, old_position
