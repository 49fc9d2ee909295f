"""Transposes: move permutations through reductions and contractions, so that they compute the permuted result.

A summed axis may be anywhere, and a matrix product can compute its result in either order.  So a permutation of the
result becomes a permutation of an operand, where it merges with other permutations or becomes a reshape.
"""

from __future__ import annotations

from typing import Any

from tensorken.programs.passes.movement import PERMUTE, RESHAPE, RULES, arrangement
from tensorken.programs.passes.rewriting import Rewriting, rewritten
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Axes
from tensorken_core.program.program import Equation, Program, Variable

CONTRACT = OPS["fused_multiply_add"]
REDUCTIONS = tuple(OPS[name] for name in ("sum", "max", "min"))


def with_transposes_folded(program: Program, backend: RawTensor[Any]) -> Program:
    """Permute the operands of a contraction instead of its result, and reduce values before they are moved.

    The same sums, which the backend may compute in another order: results differ by rounding, as in `contracted`.
    """
    return rewritten(program, backend, _RULES)


def _permuted_result(rewriting: Rewriting, e: Equation) -> Variable | None:
    """A permutation of a contraction that has no other use."""
    x, (order,) = e.operands[0], e.params
    contraction = rewriting.definition(x)
    if contraction is None or contraction.op is not CONTRACT or rewriting.uses.get(x, 0) > 1:
        return None
    nontrivial = [i for i, n in enumerate(x.shape) if n != 1]
    nontrivial_order = iter([i for i in order if x.shape[i] != 1])
    full_order = tuple([next(nontrivial_order) if i in nontrivial else i for i in range(len(x.shape))])
    operands = [rewriting.write(PERMUTE, (v,), (full_order,)) for v in contraction.operands]
    return rewriting.write(
        RESHAPE, (rewriting.write(CONTRACT, operands, contraction.params),), (e.results[0].shape,)
    )


def _permuted_operands(rewriting: Rewriting, e: Equation) -> Variable | None:
    """A contraction of permuted operands, if some order of its summed axes leaves operands unpermuted."""
    axes = e.params[0]
    orders = []
    for v in e.operands:
        source, order = arrangement(rewriting, v)
        orders.append((source, dict(zip([i for i, n in enumerate(v.shape) if n != 1], order, strict=True))))
    permuted = [list(order.values()) != sorted(order.values()) for _, order in orders]
    if not any(permuted):
        return None
    nontrivial = sorted({i for _, order in orders for i in order})
    chains = [sorted(order, key=order.__getitem__) for _, order in orders]
    result = [i for i in nontrivial if i not in axes]
    first, second = (0, 1) if permuted[0] else (1, 0)
    new_order = _merged_order([result, *chains])
    if new_order is None and all(permuted):
        new_order = _merged_order([result, chains[first]]) or _merged_order([result, chains[second]])
    if new_order is None or new_order == nontrivial:
        return None
    full_order = (*new_order, *[i for i in range(len(e.results[0].shape)) if i not in nontrivial])
    operands = [rewriting.write(PERMUTE, (v,), (full_order,)) for v in e.operands]
    summed = tuple(sorted([full_order.index(i) for i in axes]))
    return rewriting.write(RESHAPE, (rewriting.write(CONTRACT, operands, (summed,)),), (e.results[0].shape,))


def _merged_order(chains: list[list[int]]) -> list[int] | None:
    """An order that contains each chain in order; None if there is none."""
    order: list[int] = []
    remaining = [list(chain) for chain in chains if chain]
    while remaining:
        free = [chain[0] for chain in remaining if not any([chain[0] in other[1:] for other in remaining])]
        if not free:
            return None
        order.append(min(free))
        remaining = [rest for chain in remaining if (rest := [i for i in chain if i != order[-1]])]
    return order


def _reduction_of_moved(rewriting: Rewriting, e: Equation) -> Variable | None:
    """A reduction of a permuted value, or of a value whose axes of size 1 were moved."""
    moved, (axes,) = e.operands[0], e.params
    x, order = arrangement(rewriting, moved)
    if x is moved:
        return None
    source = dict(zip([i for i, n in enumerate(moved.shape) if n != 1], order, strict=True))
    inner: Axes = tuple(sorted([source[i] for i in axes if i in source]))
    y = rewriting.write(e.op, (x,), (inner,))
    remaining = [axis for i, axis in source.items() if i not in axes]
    ascending = sorted(remaining)
    if remaining != ascending:
        target = dict(zip(ascending, remaining, strict=True))
        y = rewriting.write(PERMUTE, (y,), (tuple([target.get(i, i) for i in range(len(x.shape))]),))
    return rewriting.write(RESHAPE, (y,), (e.results[0].shape,))


_RULES = {
    **RULES,
    CONTRACT: (_permuted_operands,),
    PERMUTE: (*RULES[PERMUTE], _permuted_result),
    **{op: (*RULES.get(op, ()), _reduction_of_moved) for op in REDUCTIONS},
}
