"""Planning: which values of a program lie in memory, each computed by one kernel; all others are written into those."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken_wgpu.kernels import INLINE, TURNS, WHOLE, Kernel, Writer
from tensorken_wgpu.single import Value

if TYPE_CHECKING:
    from tensorken.programs.program import Equation, Program, Variable

CHEAP = 4
"""Up to which cost a value is computed again by each kernel that needs it."""

LONGEST = 128
"""How many values may be written into one kernel."""

_COSTS = {"exp": 4, "log": 4, "sin": 4, "cos": 4, "pow": 8, "sqrt": 2, "div": 2, "floor_divide": 4}
_FREE = frozenset({"reshape", "permute", "expand", "flip", "crop", "cast"})


@dataclass(frozen=True, slots=True)
class Step:
    """A kernel, what it computes, and which values nobody needs after it."""

    kernel: Kernel
    result: Variable
    dead: tuple[Variable, ...]


def plan(program: Program, inputs: int) -> list[Step]:
    """The kernels of a program, in order; each reads at most so many values."""
    makers = {v: e for e in program.equations for v in e.results}
    kept = _kept(program, makers, inputs)
    kernels = [step for v in makers if v in kept and 0 not in v.shape for step in _kernels(v, makers, kept)]
    last = {x: i for i, (_, kernel) in enumerate(kernels) for x in kernel.reads}
    last.update(dict.fromkeys(program.outputs, len(kernels)))
    steps = []
    for i, (v, kernel) in enumerate(kernels):
        steps.append(Step(kernel, v, tuple([x for x in kernel.reads if last[x] == i])))
    return steps


def _kernels(
    v: Variable, makers: Mapping[Variable, Equation], kept: set[Variable]
) -> Iterator[tuple[Any, Kernel]]:
    """What computes a value, and with which result; a long fold is computed in parts."""
    turns = Writer(makers, kept).turns(v)
    if turns <= TURNS:
        yield v, Writer(makers, kept).kernel(v)
        return
    parts = -(-turns // TURNS)
    between: Any = Value((parts * prod(v.shape),), v.dtype)
    yield between, Writer(makers, kept).part(v, parts)
    yield v, Writer(makers, kept).of_parts(v, between, parts)


def _kept(program: Program, makers: Mapping[Variable, Equation], inputs: int) -> set[Variable]:
    """What lies in memory: what is given, outputs, reductions, and what would be computed too often or is too long."""
    kept = {*program.inputs, *program.constants, *[v for v in program.outputs if v in makers]}
    kept |= {v for v, e in makers.items() if e.op.name in WHOLE}
    _keep_what_is_computed_again(program, makers, kept)
    _keep_what_is_too_long(program, kept, inputs)
    return kept


def _keep_what_is_computed_again(
    program: Program, makers: Mapping[Variable, Equation], kept: set[Variable]
) -> None:
    """Add what is not cheap, and needed by several kernels, or at several points, or for many elements of a result.

    Backwards, each value learns at which points it is needed: those of a kernel's own result go through elementwise
    ops, and each movement op makes others of them.
    """
    costs = _costs(program, kept)
    points: dict[Variable, set[object]] = {}
    for e in reversed(program.equations):
        (v,) = e.results
        name, own = e.op.name, points.get(v, set())
        if len(own) > 1 and costs[v] > CHEAP:
            kept.add(v)
        if v in kept:
            own = {v}
        moves = name in WHOLE or (name in INLINE and name != "cast")
        for x in e.operands:
            if name in ("expand", "gather") and prod(v.shape) > prod(x.shape) and costs.get(x, 0) > CHEAP:
                kept.add(x)
            points.setdefault(x, set()).update({(v, point) for point in own} if moves else own)


def _costs(program: Program, kept: set[Variable]) -> dict[Variable, int]:
    """What one element costs that is computed from what lies in memory."""
    costs: dict[Variable, int] = {}
    for e in program.equations:
        (v,) = e.results
        cost = 0 if e.op.name in _FREE else _COSTS.get(e.op.name, 1)
        cost += sum([costs.get(x, 0) for x in e.operands])
        costs[v] = 0 if v in kept else min(cost, 1000)
    return costs


def _keep_what_is_too_long(program: Program, kept: set[Variable], inputs: int) -> None:
    """Add what would need too many operands, or too much text, in one kernel."""
    reads: dict[Variable, frozenset[Variable]] = dict.fromkeys(kept, frozenset())
    written: dict[Variable, frozenset[Variable]] = {}

    def union(
        of: Mapping[Variable, frozenset[Variable]], operands: Sequence[Variable]
    ) -> frozenset[Variable]:
        return frozenset().union(*[of.get(x, frozenset()) for x in operands])

    def keep(v: Variable) -> None:
        kept.add(v)
        reads[v], written[v] = frozenset({v}), frozenset()

    for v in list(kept):
        keep(v)
    for e in program.equations:
        (v,) = e.results
        while len(union(reads, e.operands)) > inputs:
            keep(max(e.operands, key=lambda x: len(reads.get(x, ()))))
        while len(union(written, e.operands)) >= LONGEST:
            keep(max(e.operands, key=lambda x: len(written.get(x, ()))))
        if v not in kept:
            reads[v] = union(reads, e.operands)
            written[v] = union(written, e.operands) | {v}
