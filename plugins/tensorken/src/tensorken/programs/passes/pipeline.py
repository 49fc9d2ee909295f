"""Pipeline: the passes that a program goes through before it runs on a backend, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

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
from tensorken.programs.passes.raw_constants import with_raw_constants
from tensorken.programs.passes.scatters import with_scatters_summed
from tensorken.programs.passes.transposes import with_transposes_folded
from tensorken.programs.passes.updates import with_scatters_updating
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Program
from tensorken_core.rewriting.wrapper import Wrapper

Pass = Callable[[Program, RawTensor[Any]], Program]


def _inlined(program: Program, backend: RawTensor[Any]) -> Program:
    return inline(program)


def _without_dead_code(program: Program, backend: RawTensor[Any]) -> Program:
    return without_dead_code(program)


def _merged(program: Program, backend: RawTensor[Any]) -> Program:
    return without_common_subexpressions(program)


def _necessary_arguments(program: Program, backend: RawTensor[Any]) -> Program:
    return with_necessary_arguments(inline(program))  # after constant folding more predicates are literals


def _with_inner(program: Program, backend: RawTensor[Any]) -> Program:
    return with_inner_programs(program, lambda inner: _optimised_once(inner, backend))


def _with_invariants(program: Program, backend: RawTensor[Any]) -> Program:
    program = with_loop_invariants_hoisted(program)
    for inner in inner_programs(program):  # they are already optimised
        inner.derived[("optimised", backend)] = inner
    return program


def _optimised_once(program: Program, backend: RawTensor[Any]) -> Program:
    return program.once(("optimised", backend), lambda: optimised(program, backend))


CLEANING: tuple[tuple[str, Pass], ...] = (
    ("common subexpressions", _merged),
    ("constants", with_constants_folded),
    ("algebra", simplified),
    ("movement", with_movement_merged),
    ("common subexpressions", _merged),
)
"""Passes that make a program smaller; each may enable others, so the first pass runs twice."""

PASSES: tuple[tuple[str, Pass], ...] = (
    ("inline", _inlined),
    ("dead code", _without_dead_code),
    ("raw constants", with_raw_constants),
    ("lower", lowered),
    *CLEANING,
    ("control flow arguments", _necessary_arguments),
    ("factors", with_factors_out),
    ("concatenations", joined),
    ("scatters", with_scatters_summed),
    ("contractions", contracted),
    ("diagonals", with_diagonals_multiplied),
    ("dead code", _without_dead_code),
    ("transposes", with_transposes_folded),
    ("updates", with_scatters_updating),
    ("inner programs", _with_inner),
    ("loop invariants", _with_invariants),
    *CLEANING,
)
"""All passes by name, in order.  Contractions come after the passes that remove ops between products and sums, such as
factors of 1."""


def steps(program: Program, backend: RawTensor[Any]) -> Iterator[tuple[str, Program]]:
    """The name of each pass, and the program after the pass.

    A pass that returned a program unchanged does not run again on the same program.
    """
    raw = _below(backend)
    unchanged: dict[Pass, Program] = {}
    for name, pass_ in PASSES:
        if unchanged.get(pass_) is not program:
            before, program = program, pass_(program, raw)
            if program is before:
                unchanged[pass_] = program
        yield name, program


def optimised(program: Program, backend: RawTensor[Any]) -> Program:
    """The program after all passes for a backend; for a wrapper, the passes are for the backend below.

    The result is a copy if no pass changes anything: a program caches its executable, which refers to the optimised
    program, so a program would refer to itself.
    """
    done: Program | None = program.derived.get(("optimised", _below(backend)))
    if done is not None:
        return done
    result = program
    for _, rewritten in steps(program, backend):
        result = rewritten
    return result if result is not program else program.changed()


def _below(backend: RawTensor[Any]) -> RawTensor[Any]:
    while isinstance(backend, Wrapper):
        backend = backend.raw
    return backend
