"""Kernels: run a program as kernels of the reference target; its results must lie in the intervals of its steps.

The kernels compute one element at a time, by ops of the backend on arrays of one element.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import tensorken
from tensorken.kernels.elements import INLINE
from tensorken.kernels.keeping import Costs, unmoved
from tensorken.kernels.lowering import Lowered, lower
from tensorken.kernels.positions import with_positions
from tensorken.kernels.reference import Memory, ReferenceTarget, can_compute
from tensorken.programs.execution import Run
from tensorken.programs.passes.pipeline import optimised
from tensorken_conformance.enclosure import enclosure_for
from tensorken_conformance.programs.compiling import function_of
from tensorken_conformance.programs.judging import Tally, Values, expected_to_give, require_inside
from tensorken_conformance.programs.program import Program
from tensorken_conformance.subject import Subject
from tensorken_core.language.raw import RawTensor
from tensorken_core.program import program as ir
from tensorken_core.tensor.tensor import Tensor

LARGE = 600
"""The most elements that the kernels of a program may compute."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings that decide how a program is divided into kernels.

    Attributes:
        max_operands: how many values a kernel may read and write; more if an op of the program has more.
        max_count: how many elements and indices a kernel may compute.
        costs: what it costs to compute values again.
        called: one in so many ops is called on whole arrays, though kernels could compute it; 0 for none.
        positions: whether constants that count along an axis are computed by kernels.
    """

    max_operands: int
    max_count: int
    costs: Costs
    called: int
    positions: bool

    def __str__(self) -> str:
        return f"kernels of at most {self.max_operands} operands and {self.max_count} elements and indices"

    def target(self, program: ir.Program) -> ReferenceTarget:
        """The target for a program."""
        most = max([len(e.operands) for e in program.equations if can_compute(e)], default=0) + 1
        producers = {v: e for e in program.equations for v in e.results}
        callable_ = [e for e in program.equations if can_compute(e) and e.op.name not in INLINE]
        called = callable_[:: self.called] if self.called else []
        return ReferenceTarget(
            max(most, self.max_operands),
            self.max_count,
            self.costs,
            {e: [unmoved(x, producers) for x in e.operands] for e in called},
        )


def limits(rng: random.Random) -> Limits:
    """Random limits, narrow ones among them."""
    operands, count = rng.choice((4, 5, 8, 100)), rng.choice((10, 40, 1000))
    recomputed = rng.choice((0, 4, 50))
    costs = Costs(
        recomputed=recomputed,
        recomputed_elements=recomputed,
        inlined=rng.choice((4, 128)),
        gathers=rng.random() < 0.5,
    )
    return Limits(operands, count, costs, rng.choice((0, 0, 3, 5)), rng.random() < 0.5)


def compile_kernels(limits: Limits, program: ir.Program, backend: RawTensor[Any]) -> Run | None:
    """A compiler: the program as kernels of the reference target; None if they compute too many elements.

    Args:
        limits: of the kernels.
        program: optimised.
        backend: computes single elements.
    """
    if limits.positions:
        program = with_positions(program, backend)
    target = limits.target(program)
    lowered = lower(program, target)
    if elements(lowered) > LARGE:
        return None
    return lambda xs: Memory(program, backend, xs).run(lowered, target)


def elements(lowered: Lowered) -> int:
    """The number of elements that kernels compute, without those of inner kernels."""
    return sum([group.work * len(group.values) for group in lowered.groups])


def judge_kernels(
    subject: Subject, program: Program, tally: Tally, values: Values, *, limits: Limits
) -> None:
    """Run a program as kernels, and compare its results with their enclosures.

    Args:
        subject: the backend under test.
        program: the program; its results are the steps that no other step uses.
        tally: receives the counts; a program that is too large for kernels adds nothing.
        values: stays empty, since kernels do not show the values of the nodes.
        limits: of the kernels.

    Raises:
        Wrong: if a result does not lie in its interval.
    """
    ends = program.ends
    if not ends:  # a reduced program without steps
        return
    function, leaves = function_of(program)
    xs = [subject.tensor(leaf.values, leaf.dtype) for leaf in leaves]
    with expected_to_give(ends[0], str(limits), "results"), _noting_missing(subject):
        traced = tensorken.trace(function)(
            *[Tensor(subject.backend, x.representation, x.shape, x.dtype) for x in xs]
        )
        run = subject.call_counter.compile_below(
            lambda traced, backend: compile_kernels(limits, optimised(traced, backend), backend), traced
        )
        if run is None:
            return
        found = subject.together(run([x.representation for x in xs]))
        results = [
            subject.read(subject.wrap(y, v.shape, v.dtype))
            for v, y in zip(traced.outputs, found, strict=True)
        ]
    enclosure = enclosure_for(subject.stack, contracts=True)
    enclosed = function(*[subject.tensor(leaf.values, leaf.dtype, enclosure) for leaf in leaves])
    for i, got, expected in zip(ends, results, enclosed, strict=True):
        tally.elements += got.size
        require_inside(i, program.ops_of(i), got, expected, f"{limits}: ")


@contextmanager
def _noting_missing(subject: Subject) -> Iterator[None]:
    """Record the missing op that an error names, since the call counter does not see ops that tracing runs."""
    try:
        yield
    except NotImplementedError as error:
        subject.call_counter.missing.add(str(error).partition(":")[0])
        raise
