"""Choose the values of a program to keep in memory; all others are computed inside the kernels that need them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

from tensorken.kernels.elements import MOVES
from tensorken.kernels.rows import REDUCTIONS, rows_of

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Program, Variable

FREE_MOVES = frozenset({"reshape", "permute", "expand", "flip"})
_FREE = FREE_MOVES | {"crop", "cast", "step_slice"}
_MAX_COST = 1000
_MAX_READS = 64
_NONE: frozenset[Variable] = frozenset()

GUARDED = frozenset({"pad", "gather"})
"""Ops whose elements are computed only where a condition holds."""

MAX_GUARDS = 8
"""The most such ops of which each computes its elements from those of the next within one kernel."""


@dataclass(frozen=True)
class Costs:
    """The costs of computing a value again instead of keeping it in memory.

    Attributes:
        ops: the cost of an element of an elementwise op, by its name; 1 for all others.
        read: the cost of reading an element of a second value from memory, where a kept value would be the only one.
        recomputed: a value of at most this cost is computed again by each kernel that needs it.
        recomputed_elements: the same limit for values of which elements are needed many times, as by `expand`.
        recomputed_factor: the same limit for operands of matrix products.
        inlined: the most values that are computed inside one kernel.
        gathers: whether to keep the result of a gather from a computed value, so that the value's kernel gathers.
    """

    ops: Mapping[str, int] = field(
        default_factory=lambda: {
            "exp": 4,
            "log": 4,
            "sin": 4,
            "cos": 4,
            "pow": 8,
            "sqrt": 2,
            "div": 2,
            "floor_divide": 4,
        }
    )
    read: int = 0
    recomputed: int = 4
    recomputed_elements: int = 4
    recomputed_factor: int = 1
    inlined: int = 128
    gathers: bool = False


def reshape_sources(program: Program) -> dict[Variable, Variable]:
    """For each reshaped value the value before the reshape: both have the same elements in memory."""
    reshaped_from: dict[Variable, Variable] = {}
    for e in program.equations:
        if e.op.name == "reshape":
            (x,) = e.operands
            reshaped_from[e.results[0]] = reshaped_from.get(x, x)
    return reshaped_from


def kept_values(
    program: Program,
    producers: Mapping[Variable, Equation],
    reshaped_from: Mapping[Variable, Variable],
    outputs: Sequence[Variable],
    calls: Mapping[Equation, Collection[Variable]],
    inputs: int,
    costs: Costs,
) -> set[Variable]:
    """The values kept in memory: inputs, outputs, reductions, and values that would be recomputed too often or
    inlined too deeply.

    Args:
        program: to lower.
        producers: for each computed value its equation.
        reshaped_from: see `reshape_sources`.
        outputs: of the program, before reshapes.
        calls: for each called op the values in memory that it reads; its results are in memory as well.
        inputs: the most values that one kernel may read.
        costs: of the target.
    """
    kept = {*program.inputs, *program.constants, *[v for v in outputs if v in producers]}
    kept |= {v for v, e in producers.items() if e.op.name in REDUCTIONS or e in calls}
    kept |= {x for values in calls.values() for x in values if x in producers}
    _keep_recomputed(program, producers, reshaped_from, kept, costs)
    _keep_oversized(program, reshaped_from, kept, calls, inputs, costs.inlined)
    return kept


def _keep_recomputed(
    program: Program,
    producers: Mapping[Variable, Equation],
    reshaped_from: Mapping[Variable, Variable],
    kept: set[Variable],
    limits: Costs,
) -> None:
    """Keep values that are expensive and needed by several kernels, at several element indices, or for many
    elements of a result.

    Equations are visited backwards to collect the element indices at which each value is needed: the indices of the
    kernel's results pass unchanged through elementwise ops, and each movement op changes them.
    """
    costs = _costs(program, kept, limits)
    numbers: dict[tuple[Variable, int], int] = {}

    def number(v: Variable, index: int = -1) -> int:
        """The number of an index: that of an element of v itself, or of an operand of v for an index of v."""
        return numbers.setdefault((v, index), len(numbers))

    indices: dict[Variable, tuple[int, ...]] = {}  # two are as many as more
    for e in reversed(program.equations):
        v, *others = e.results
        if others:  # called
            continue
        name, needed_at = e.op.name, indices.get(v, ())
        if limits.gathers and name == "gather" and costs.get(e.operands[0], 0) > limits.recomputed_elements:
            kept.add(v)
        if len(needed_at) > 1 and costs[v] > limits.recomputed and name not in ("reshape", "expand"):
            kept.add(v)
        if v in kept:
            needed_at = (number(v),)
        moves = name in REDUCTIONS or (name in MOVES and name != "reshape")
        is_product = name == "fused_multiply_add"
        for x in e.operands:
            most = limits.recomputed_factor if is_product else limits.recomputed_elements
            if costs.get(x, 0) > most and _repeats(e, x):
                kept.add(unmoved(x, producers))
            at = [number(v, index) for index in needed_at] if moves else needed_at
            indices[x] = tuple(dict.fromkeys((*indices.get(x, ()), *at)))[:2]


def unmoved(v: Variable, producers: Mapping[Variable, Equation]) -> Variable:
    """The value before movement ops, which is as expensive and no larger."""
    while v in producers and producers[v].op.name in FREE_MOVES:
        (v,) = producers[v].operands
    return v


def _repeats(equation: Equation, x: Variable) -> bool:
    """Whether an op reads elements of an operand several times."""
    name = equation.op.name
    if name == "fused_multiply_add":
        return prod(x.shape) < prod(rows_of(equation).shape)
    return name in ("expand", "gather") and prod(equation.results[0].shape) > prod(x.shape)


def _costs(program: Program, kept: set[Variable], limits: Costs) -> dict[Variable, int]:
    """The cost of one element of each value, computed from values in memory."""
    ops: dict[Variable, int] = dict.fromkeys(kept, 0)
    reads: dict[Variable, Sequence[Variable]] = {v: (v,) for v in kept}
    for e in program.equations:
        v = e.results[0]
        if v in kept:
            continue
        cost = 0 if e.op.name in _FREE else limits.ops.get(e.op.name, 1)
        ops[v] = min(cost + sum([ops.get(x, 0) for x in e.operands]), _MAX_COST)
        size = prod(v.shape)  # elements of smaller values are read repeatedly, from a cache
        found = [y for x in e.operands if prod(x.shape) >= size for y in reads.get(x, ())]
        reads[v] = [*dict.fromkeys(found)][:_MAX_READS]
    return {v: cost + limits.read * max(len(reads[v]) - 1, 0) for v, cost in ops.items()}


def _keep_oversized(
    program: Program,
    reshaped_from: Mapping[Variable, Variable],
    kept: set[Variable],
    called: Collection[Equation],
    inputs: int,
    most: int,
) -> None:
    """Keep values that would need too many operands, or too much text, in one kernel.

    Nested conditions count as well: each is a block of code within another.
    """
    reads: dict[Variable, frozenset[Variable]] = {}
    inlined: dict[Variable, frozenset[Variable]] = {}
    guards: dict[Variable, int] = {}
    reshapes: dict[Variable, list[Variable]] = {}
    for x, other in reshaped_from.items():
        reshapes.setdefault(other, []).append(x)

    def union(
        sets: Mapping[Variable, frozenset[Variable]], operands: Sequence[Variable]
    ) -> frozenset[Variable]:
        return _NONE.union(*[sets.get(x, _NONE) for x in operands])

    def keep(v: Variable) -> None:
        v = reshaped_from.get(v, v)
        kept.add(v)
        for x in (v, *reshapes.get(v, ())):
            reads[x], inlined[x], guards[x] = frozenset([v]), _NONE, 0

    def keep_largest(sets: Mapping[Variable, frozenset[Variable]], operands: Sequence[Variable]) -> None:
        keep(max(operands, key=lambda x: len(sets.get(x, _NONE))))

    for v in list(kept):
        keep(v)
    for e in program.equations:
        v = e.results[0]
        if e in called:
            continue
        if e.op.name in GUARDED and guards.get(e.operands[0], 0) >= MAX_GUARDS:
            keep(e.operands[0])
        while len(needed := union(reads, e.operands)) > inputs:
            keep_largest(reads, e.operands)
        while len(text := union(inlined, e.operands)) >= most:
            keep_largest(inlined, e.operands)
            needed = union(reads, e.operands)
        if v not in kept:
            reads[v], inlined[v] = needed, text | {v}
            guards[v] = max([guards.get(x, 0) for x in e.operands], default=0) + (e.op.name in GUARDED)
