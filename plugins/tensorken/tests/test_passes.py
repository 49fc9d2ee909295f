"""Passes: each gives an equivalent program for drawn programs, and changes the programs that it is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

from core.tests.examples import examples
from core.tests.plain import bits, elements_of, largest, numbers, on
from core.tests.random_programs.draft import Draft
from core.tests.random_programs.strategies import for_passes, programs, traced
from core.tests.support import Required
from tensorken.programs.passes.algebra import simplified
from tensorken.programs.passes.common_subexpressions import without_common_subexpressions
from tensorken.programs.passes.concatenations import joined
from tensorken.programs.passes.constants import with_constants_folded
from tensorken.programs.passes.contractions import contracted
from tensorken.programs.passes.control_flow_arguments import with_necessary_arguments
from tensorken.programs.passes.dead_code import without_dead_code
from tensorken.programs.passes.diagonals import with_diagonals_multiplied
from tensorken.programs.passes.factors import with_factors_out
from tensorken.programs.passes.inlining import inline
from tensorken.programs.passes.inner_programs import inner_programs, with_inner_programs
from tensorken.programs.passes.loop_invariants import with_loop_invariants_hoisted
from tensorken.programs.passes.lowering import lowered
from tensorken.programs.passes.movement import with_movement_merged
from tensorken.programs.passes.pipeline import optimised
from tensorken.programs.passes.raw_constants import with_raw_constants
from tensorken.programs.passes.scatters import with_scatters_summed
from tensorken.programs.passes.transposes import with_transposes_folded
from tensorken.programs.passes.updates import with_scatters_updating
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Program
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.tensor.tensor import Tensor
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

pytestmark = pytest.mark.slow

Pass = Callable[[Program, RawTensor[Any]], Program]

SAME_BITS: dict[str, Pass] = {
    "inline": lambda program, backend: inline(program),
    "dead code": lambda program, backend: without_dead_code(program),
    "common subexpressions": lambda program, backend: without_common_subexpressions(program),
    "lower": lowered,
    "raw constants": with_raw_constants,
    "constants": lambda program, backend: with_constants_folded(
        with_raw_constants(program, backend), backend
    ),
    "algebra": simplified,
    "movement": with_movement_merged,
    "control flow arguments": lambda program, backend: with_necessary_arguments(program),
    "inner programs": lambda program, backend: with_inner_programs(program, without_dead_code),
    "loop invariants": lambda program, backend: with_loop_invariants_hoisted(program),
}
SAME_NUMBERS: dict[str, Pass] = {
    "factors": with_factors_out,
    "concatenations": joined,
    "scatters": with_scatters_summed,
    "contractions": contracted,
    "diagonals": lambda program, backend: with_diagonals_multiplied(contracted(program, backend), backend),
    "transposes": lambda program, backend: with_transposes_folded(contracted(program, backend), backend),
    "updates": with_scatters_updating,
    "all": optimised,
}
REFERENCE = Reference()
BACKENDS: dict[str, RawTensor[Any]] = {"numpy": Numpy(), "reference": REFERENCE, "required": Required()}
MANY = settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def check_well_formed(program: Program) -> None:
    """Every value is defined once, before it is used, and has the shape and dtype of its op's rules."""
    known = {*program.inputs, *program.constants}
    for e in program.equations:
        for v in e.operands:
            assert v in known or hasattr(v, "value"), f"{v} is used before it is defined"
        shapes = e.op.shape(*[v.shape for v in e.operands], *e.params)
        dtypes = e.op.dtype(*[v.dtype for v in e.operands], *e.params)
        facts = [(shapes, dtypes)] if e.op.results == 1 else list(zip(shapes, dtypes, strict=True))
        assert facts == [(v.shape, v.dtype) for v in e.results]
        assert known.isdisjoint(e.results)
        known.update(e.results)
    for v in program.outputs:
        assert v in known or hasattr(v, "value")
    for inner in inner_programs(program):
        check_well_formed(inner)


# ---- the law of passes -------------------------------------------------------------------------------------


def with_contiguous_constants(program: Program) -> Program:
    """The program with constants that are no views."""

    def copied(x: Tensor) -> Tensor:
        interpreter: Any = x.interpreter
        value = interpreter.new(x.shape, list(interpreter.ravel(x.representation)), x.dtype)
        return Tensor(interpreter, value, x.shape, x.dtype)

    return program.changed(constants={v: copied(x) for v, x in program.constants.items()})


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("backend", BACKENDS)
@MANY
@given(draft=programs(weight=for_passes))
def test_each_pass_that_claims_so_gives_the_same_bits(backend: str, draft: Draft) -> None:
    at = BACKENDS[backend]
    program, xs = traced(draft, Fuse(at))
    program = with_contiguous_constants(program)  # numpy adds in an order that depends on the layout
    elements = elements_of(xs)
    expected = bits(on(program, at, elements))
    for name, change in SAME_BITS.items():
        after = change(program, at)
        check_well_formed(after)
        assert after is program or bits(on(after, at, elements)) == expected, name


@pytest.mark.parametrize("backend", BACKENDS)
@MANY
@given(draft=programs(whole=True, weight=for_passes))
def test_each_pass_that_reassociates_gives_the_same_numbers_where_nothing_is_rounded(
    backend: str, draft: Draft
) -> None:
    at = BACKENDS[backend]
    program, xs = traced(draft, Fuse(at))
    elements = elements_of(xs)
    program = inline(program)
    assume(largest(program, at, elements) < 2.0**40)
    expected = numbers(on(program, at, elements))
    for name, change in SAME_NUMBERS.items():
        after = change(program, at)
        check_well_formed(after)
        assert after is program or numbers(on(after, at, elements)) == expected, name
