"""Planning: which values of a program lie in memory, each computed by one kernel; all others are written into those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tensorken_wgpu import contractions, scatters
from tensorken_wgpu.clusters import Clusters
from tensorken_wgpu.folds import rows_of
from tensorken_wgpu.kernels import Cluster, Draft, Kernel, kernels_of
from tensorken_wgpu.scatters import is_walked
from tensorken_wgpu.target import Target
from tensorken_wgpu.writer import FOLDS, MOVES

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Program, Variable

CHEAP = 4
"""Up to which cost a value is computed again by each kernel that needs it."""

MULTIPLIED = 1
"""The same of what is multiplied as a matrix, each element many times."""

LONGEST = 128
"""How many values may be written into one kernel."""

_COSTS = {"exp": 4, "log": 4, "sin": 4, "cos": 4, "pow": 8, "sqrt": 2, "div": 2, "floor_divide": 4}
FREE_MOVES = frozenset({"reshape", "permute", "expand", "flip"})
_FREE = FREE_MOVES | {"crop", "cast"}


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A kernel, and which values nobody needs after it."""

    kernel: Kernel
    dead: tuple[Variable, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How a program is computed.

    Attributes:
        steps: one after the other.
        outputs: for each output of the program which value in memory it is, of the same elements.
    """

    steps: tuple[Step, ...]
    outputs: tuple[Variable, ...]


def plan(program: Program, target: Target) -> Plan:
    """The kernels of a program, in order."""
    makers = {v: e for e in program.equations for v in e.results}
    same = _same(program)
    outputs = tuple([same.get(v, v) for v in program.outputs])
    kept = _kept(program, makers, same, outputs, target.bindings - 1)
    clusters = Clusters(makers, kept, outputs, target)
    kernels = [
        kernel
        for cluster in clusters.in_order()
        for kernel in _kernels(cluster, makers, kept, target, clusters.drafts.get(cluster.values))
    ]
    last = {x: i for i, kernel in enumerate(kernels) for x in (*kernel.writes, *kernel.reads)}
    last.update(dict.fromkeys([*outputs, *program.inputs, *program.constants], len(kernels)))
    steps = []
    for i, kernel in enumerate(kernels):
        dead = [x for x in (*kernel.reads, *kernel.writes) if last[x] == i]
        steps.append(Step(kernel, tuple(dead)))
    return Plan(tuple(steps), outputs)


def _kernels(
    cluster: Cluster,
    makers: Mapping[Variable, Equation],
    kept: set[Variable],
    target: Target,
    draft: Draft | None,
) -> list[Kernel]:
    first = cluster.values[0]
    if is_walked(makers[first], target):
        return scatters.kernels(first, makers, kept, target)
    tiled = contractions.kernels(cluster, makers, kept, target)
    return kernels_of(cluster, makers, kept, target, draft) if tiled is None else tiled


def _same(program: Program) -> dict[Variable, Variable]:
    """For each value that is another one in a new shape that one: both have the same elements in memory."""
    same: dict[Variable, Variable] = {}
    for e in program.equations:
        if e.op.name == "reshape":
            (x,) = e.operands
            same[e.results[0]] = same.get(x, x)
    return same


def _kept(
    program: Program,
    makers: Mapping[Variable, Equation],
    same: Mapping[Variable, Variable],
    outputs: Sequence[Variable],
    inputs: int,
) -> set[Variable]:
    """What lies in memory: what is given, outputs, folds, and what would be computed too often or is too long."""
    kept = {*program.inputs, *program.constants, *[v for v in outputs if v in makers]}
    kept |= {v for v, e in makers.items() if e.op.name in FOLDS}
    _keep_what_is_computed_again(program, makers, same, kept)
    _keep_what_is_too_long(program, same, kept, inputs)
    return kept


def _keep_what_is_computed_again(
    program: Program,
    makers: Mapping[Variable, Equation],
    same: Mapping[Variable, Variable],
    kept: set[Variable],
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
        if len(own) > 1 and costs[v] > CHEAP and v not in same:
            kept.add(v)
        if v in kept:
            own = {v}
        moves = name in FOLDS or (name in MOVES and name != "reshape")
        for x in e.operands:
            if costs.get(x, 0) > (MULTIPLIED if name == "fused_multiply_add" else CHEAP) and _repeats(e, x):
                kept.add(_unmoved(x, makers))
            points.setdefault(x, set()).update({(v, point) for point in own} if moves else own)


def _unmoved(v: Variable, makers: Mapping[Variable, Equation]) -> Variable:
    """What a value was before it was moved: as costly, and no larger."""
    while v in makers and makers[v].op.name in FREE_MOVES:
        (v,) = makers[v].operands
    return v


def _repeats(equation: Equation, x: Variable) -> bool:
    """Whether an op needs the elements of an operand several times each."""
    name = equation.op.name
    if name == "fused_multiply_add":
        return prod(x.shape) < prod(rows_of(equation).shape)
    return name in ("expand", "gather") and prod(equation.results[0].shape) > prod(x.shape)


def _costs(program: Program, kept: set[Variable]) -> dict[Variable, int]:
    """What one element costs that is computed from what lies in memory."""
    costs: dict[Variable, int] = {}
    for e in program.equations:
        (v,) = e.results
        cost = 0 if e.op.name in _FREE else _COSTS.get(e.op.name, 1)
        cost += sum([costs.get(x, 0) for x in e.operands])
        costs[v] = 0 if v in kept else min(cost, 1000)
    return costs


def _keep_what_is_too_long(
    program: Program, same: Mapping[Variable, Variable], kept: set[Variable], inputs: int
) -> None:
    """Add what would need too many operands, or too much text, in one kernel.

    Which values each one reads, and which are written into it, is kept as the bits of an integer.
    """
    bits = {v: 1 << i for i, v in enumerate((*kept, *[v for e in program.equations for v in e.results]))}
    reads: dict[Variable, int] = {}
    written: dict[Variable, int] = {}
    alike: dict[Variable, list[Variable]] = {}
    for x, other in same.items():
        alike.setdefault(other, []).append(x)

    def union(of: Mapping[Variable, int], operands: Sequence[Variable]) -> int:
        found = 0
        for x in operands:
            found |= of.get(x, 0)
        return found

    def keep(v: Variable) -> None:
        v = same.get(v, v)
        kept.add(v)
        for x in (v, *alike.get(v, ())):
            reads[x], written[x] = bits[v], 0

    def keep_the_largest(of: Mapping[Variable, int], operands: Sequence[Variable]) -> None:
        keep(max(operands, key=lambda x: of.get(x, 0).bit_count()))

    for v in list(kept):
        keep(v)
    for e in program.equations:
        (v,) = e.results
        while (needed := union(reads, e.operands)).bit_count() > inputs:
            keep_the_largest(reads, e.operands)
        while (text := union(written, e.operands)).bit_count() >= LONGEST:
            keep_the_largest(written, e.operands)
            needed = union(reads, e.operands)
        if v not in kept:
            reads[v], written[v] = needed, text | bits[v]
