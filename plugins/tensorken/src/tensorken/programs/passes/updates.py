"""Updates: replace a sum with a scatter by a scatter that starts from the other operand.

The derivative of indexing is such a sum wherever the indexed value has other uses, and so is `x.at[i].add(v)`.
"""

from __future__ import annotations

from typing import Any

from tensorken.programs.ops import ADD_AT
from tensorken.programs.passes.rewriting import Rewriting, negated_literal, rewritten
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Equation, Literal, Program, Variable

ADD, NEG, RESHAPE, SCATTER_ADD, SUB = (OPS[name] for name in ("add", "neg", "reshape", "scatter_add", "sub"))
REDUCTIONS = (OPS["sum"], OPS["fused_multiply_add"])


def with_scatters_updating(program: Program, backend: RawTensor[Any]) -> Program:
    """Add scattered slices to the other operand of the sum, without an array of zeros, if the backend has `add_at`.

    Where several slices are added to one element, they are added to the other operand in turn, and not to each other
    first.  An element without a slice keeps its bits, where 0.0 + -0.0 is 0.0.

    A backend with placements may have to communicate for a reduction and for a scatter.  It does both at once only if
    neither needs the other, so their sum is kept.
    """
    return rewritten(program, backend, {ADD: (_sum,), SUB: (_difference,)} if backend.has(ADD_AT) else {})


def _sum(rewriting: Rewriting, e: Equation) -> Variable | None:
    """scatter_add(x, indices) + y, for a scatter without another use."""
    a, b = e.operands
    return _updated(rewriting, a, b) or _updated(rewriting, b, a)


def _difference(rewriting: Rewriting, e: Equation) -> Variable | None:
    """y - scatter_add(x, indices), and scatter_add(x, indices) - y."""
    a, b = e.operands
    if _scatter(rewriting, b) is not None:
        return _updated(rewriting, b, a, is_negated=True)
    if _scatter(rewriting, a) is None or not rewriting.backend.has(NEG):
        return None
    return _updated(rewriting, a, _negated(rewriting, b))


def _updated(rewriting: Rewriting, v: Variable, y: Variable, is_negated: bool = False) -> Variable | None:
    """y with the slices added that v scatters; None if v does not scatter, or has another use."""
    found = _scatter(rewriting, v)
    if found is None or (is_negated and not rewriting.backend.has(NEG)):
        return None
    if rewriting.backend.has(OPS["with_placement"]) and _is_reduction(rewriting, y):
        return None
    (x, indices), (axis, _) = found.operands, found.params
    shape = found.results[0].shape
    updated = rewriting.write(
        ADD_AT,
        (_reshaped(rewriting, y, shape), _negated(rewriting, x) if is_negated else x, indices),
        (axis,),
    )
    return _reshaped(rewriting, updated, v.shape)


def _scatter(rewriting: Rewriting, v: Variable) -> Equation | None:
    """The scatter whose result v is, maybe in another shape, if there is no other use."""
    found = rewriting.definition(v)
    while found is not None and found.op is RESHAPE and rewriting.uses.get(v, 0) == 1:
        (v,) = found.operands
        found = rewriting.definition(v)
    is_scatter = found is not None and found.op is SCATTER_ADD and rewriting.uses.get(v, 0) == 1
    return found if is_scatter else None


def _is_reduction(rewriting: Rewriting, v: Variable) -> bool:
    """Whether v is the result of a sum or a contraction, maybe in another shape."""
    found = rewriting.definition(v)
    while found is not None and found.op is RESHAPE:
        found = rewriting.definition(found.operands[0])
    return found is not None and found.op in REDUCTIONS


def _reshaped(rewriting: Rewriting, v: Variable, shape: tuple[int, ...]) -> Variable:
    if v.shape == shape:
        return v
    if isinstance(v, Literal):
        return Literal(shape, v.dtype, v.value)
    return rewriting.write(RESHAPE, (v,), (shape,))


def _negated(rewriting: Rewriting, v: Variable) -> Variable:
    """-v, or the value that v negates."""
    literal = negated_literal(v)
    if literal is not None:
        return literal
    inner = rewriting.operands_if(v, NEG)
    return inner[0] if inner else rewriting.write(NEG, (v,))
