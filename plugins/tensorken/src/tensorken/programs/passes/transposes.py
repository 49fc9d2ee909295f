"""Transposes: those around a reduction or contraction taken into it, so that its result comes in the order wanted.

An axis that is summed may stand anywhere, and a matrix product gives its result in either order: so a permutation of
the result becomes one of the operands, where it is merged with what is there, or a mere reshape.
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
    """Contractions whose result is permuted get permuted operands; what was moved is reduced before it moves.

    The same sums, in an order that the backend may choose otherwise: they differ by their rounding, as in `contracted`.
    """
    return rewritten(program, backend, _RULES)


def _of_contraction(sweep: Rewriting, e: Equation) -> Variable | None:
    """A permutation of a contraction that is used for nothing else."""
    x, (order,) = e.operands[0], e.params
    found = sweep.definition(x)
    if found is None or found.op is not CONTRACT or sweep.uses.get(x, 0) > 1:
        return None
    real = [i for i, n in enumerate(x.shape) if n != 1]
    wanted = iter([i for i in order if x.shape[i] != 1])
    places = tuple([next(wanted) if i in real else i for i in range(len(x.shape))])
    operands = [sweep.write(PERMUTE, (v,), (places,)) for v in found.operands]
    return sweep.write(RESHAPE, (sweep.write(CONTRACT, operands, found.params),), (e.results[0].shape,))


def _of_operands(sweep: Rewriting, e: Equation) -> Variable | None:
    """A contraction of permuted operands, if its summed axes can stand where its operands need not be permuted."""
    axes = e.params[0]
    orders = []
    for v in e.operands:
        source, order = arrangement(sweep, v)
        orders.append((source, dict(zip([i for i, n in enumerate(v.shape) if n != 1], order, strict=True))))
    permuted = [list(order.values()) != sorted(order.values()) for _, order in orders]
    if not any(permuted):
        return None
    real = sorted({i for _, order in orders for i in order})
    chains = [sorted(order, key=order.__getitem__) for _, order in orders]
    result = [i for i in real if i not in axes]
    first, second = (0, 1) if permuted[0] else (1, 0)
    wanted = _in_one_order([result, *chains])
    if wanted is None and all(permuted):
        wanted = _in_one_order([result, chains[first]]) or _in_one_order([result, chains[second]])
    if wanted is None or wanted == real:
        return None
    places = (*wanted, *[i for i in range(len(e.results[0].shape)) if i not in real])
    operands = [sweep.write(PERMUTE, (v,), (places,)) for v in e.operands]
    summed = tuple(sorted([places.index(i) for i in axes]))
    return sweep.write(RESHAPE, (sweep.write(CONTRACT, operands, (summed,)),), (e.results[0].shape,))


def _in_one_order(chains: list[list[int]]) -> list[int] | None:
    """An order in which each chain is in order; None if there is none."""
    wanted: list[int] = []
    left = [list(chain) for chain in chains if chain]
    while left:
        free = [chain[0] for chain in left if not any([chain[0] in other[1:] for other in left])]
        if not free:
            return None
        wanted.append(min(free))
        left = [rest for chain in left if (rest := [i for i in chain if i != wanted[-1]])]
    return wanted


def _of_moved(sweep: Rewriting, e: Equation) -> Variable | None:
    """The reduction of something permuted, or whose axes of size 1 were moved."""
    moved, (axes,) = e.operands[0], e.params
    x, order = arrangement(sweep, moved)
    if x is moved:
        return None
    source = dict(zip([i for i, n in enumerate(moved.shape) if n != 1], order, strict=True))
    inner: Axes = tuple(sorted([source[i] for i in axes if i in source]))
    y = sweep.write(e.op, (x,), (inner,))
    left = [axis for i, axis in source.items() if i not in axes]
    ascending = sorted(left)
    if left != ascending:
        places = dict(zip(ascending, left, strict=True))
        y = sweep.write(PERMUTE, (y,), (tuple([places.get(i, i) for i in range(len(x.shape))]),))
    return sweep.write(RESHAPE, (y,), (e.results[0].shape,))


_RULES = {
    **RULES,
    CONTRACT: (_of_operands,),
    PERMUTE: (*RULES[PERMUTE], _of_contraction),
    **{op: (*RULES.get(op, ()), _of_moved) for op in REDUCTIONS},
}
