"""Lowering: a program as fusion groups over the values that are kept in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorken.kernels.fusion_groups import FusionGroups, Target
from tensorken.kernels.keeping import kept_values, reshape_sources
from tensorken.kernels.nests import FusionGroup
from tensorken_core.errors import ArgumentError

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Program, Variable


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """A program as fusion groups.

    Attributes:
        producers: for each computed value its equation.
        kept: the values in memory.
        outputs: for each output of the program the value in memory with the same elements.
        reshaped_from: for each reshaped value the value before the reshape: both have the same elements in memory.
        groups: in an order in which their kernels and calls can run.
    """

    producers: Mapping[Variable, Equation]
    kept: Collection[Variable]
    outputs: tuple[Variable, ...]
    reshaped_from: Mapping[Variable, Variable]
    groups: tuple[FusionGroup, ...]


def lower(program: Program, target: Target) -> Lowered:
    """Divide a program into fusion groups.

    Args:
        program: of elementwise ops, casts, moves, pads, gathers and reductions, and of ops that the target calls.
        target: the device or compiler.

    Raises:
        ArgumentError: if the target allows a kernel too few operands for an op.
    """
    read = {e: target.read_by_call(e) for e in program.equations}
    most = max([len(e.operands) for e, x in read.items() if x is None], default=0) + 1
    if target.max_operands < most:
        raise ArgumentError(
            f"lower: an op of {program.name} reads and writes {most} values, but the target allows kernels of "
            f"{target.max_operands}; do not compile this program"
        )
    producers = {v: e for e in program.equations for v in e.results}
    reshaped_from = reshape_sources(program)
    calls = {e: [reshaped_from.get(x, x) for x in xs] for e, xs in read.items() if xs is not None}
    outputs = tuple([reshaped_from.get(v, v) for v in program.outputs])
    kept = kept_values(
        program, producers, reshaped_from, outputs, calls, target.max_operands - 1, target.costs
    )
    groups = FusionGroups(producers, kept, outputs, calls, target)
    return Lowered(producers, kept, outputs, reshaped_from, tuple(groups.in_order()))
