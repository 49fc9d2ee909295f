"""Prologues: ops before a Fourier transform that its first kernel computes, as it reads each element once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from heapq import heappop, heappush
from math import prod
from typing import TYPE_CHECKING

from tensorken.kernels.elements import MOVES
from tensorken_wgpu.wgsl.dtypes import size_of
from tensorken_wgpu.wgsl.target import Target

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Program, Variable

MAX_COMPUTED = 32
"""The most values that a transform computes from those that it reads."""

_MOVES = MOVES - {"gather"}

Sources = Mapping["Equation", Collection["Variable"]]
"""For each transform the values in memory that it reads."""


def sources_of(program: Program, transforms: Mapping[Equation, bool], target: Target) -> Sources:
    """The sources of transforms.

    A transform computes movement ops, and may compute elementwise ops whose results no other op uses.

    Args:
        program: the program.
        transforms: for each one whether it may compute elementwise ops.
        target: the device.
    """
    graph = _Graph(program, target) if transforms else None
    return {e: graph.sources(e, is_fused) for e, is_fused in transforms.items() if graph}


class _Graph:
    """A program with the users of each value."""

    def __init__(self, program: Program, target: Target) -> None:
        self.target = target
        self.outputs = frozenset(program.outputs)
        self.equations: dict[Variable, Equation] = {}
        self.positions: dict[Variable, int] = {}
        self.users: dict[Variable, list[Equation]] = {}
        for i, e in enumerate(program.equations):
            for v in e.results:
                self.equations[v], self.positions[v] = e, i
            for v in e.operands:
                self.users.setdefault(v, []).append(e)

    def sources(self, transform: Equation, is_fused: bool) -> Collection[Variable]:
        """The values that a transform reads; without elementwise ops if these read too many."""
        found = self._sources(transform, MAX_COMPUTED if is_fused else 0)
        windows = [len(self.target.windows(size_of(v))) for v in (*found, *transform.results)]
        return found if sum(windows) < self.target.bindings else self._sources(transform, 0)

    def _sources(self, transform: Equation, most: int) -> Collection[Variable]:
        parts = len(self.target.windows(size_of(transform.operands[0])))
        read: dict[Variable, None] = {}
        alone = {transform}  # equations that only the transform needs
        repeated: set[Variable] = set()  # values of which elements are read several times
        pending: list[tuple[int, int, Variable]] = []
        seen: set[Variable] = set()

        def add(v: Variable) -> None:
            if v not in seen and getattr(v, "value", None) is None:
                seen.add(v)
                heappush(pending, (-self.positions.get(v, -1), len(seen), v))

        for v in transform.operands:
            add(v)
        computed = 0
        while pending:  # the users of a value come before it
            v = heappop(pending)[2]
            e = self.equations.get(v)
            if e is None or len(e.results) > 1:
                read[v] = None
                continue
            is_move = e.op.name in _MOVES
            is_alone = v not in self.outputs and alone.issuperset(self.users[v])
            is_computed = is_alone and v not in repeated and computed < most
            if not (is_computed and (e.op.elementwise or e.op.name in ("cast", "iota"))) and not (
                is_move and all([len(self.target.windows(size_of(x))) <= parts for x in e.operands])
            ):
                read[v] = None
                continue
            computed += not is_move
            if is_alone:
                alone.add(e)
            for x in e.operands:
                if v in repeated or prod(x.shape) < prod(v.shape):
                    repeated.add(x)
                add(x)
        return read
