"""Borders: what goes into the programs that choices and loops run, and what comes out of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tensorken.programs.passes.dead_code import without_dead_code
from tensorken.programs.passes.inner_programs import runs_programs
from tensorken.programs.passes.rewriting import substituted
from tensorken_core.language.dtypes import exact
from tensorken_core.language.higher_order import HigherOrderRules
from tensorken_core.language.op import Op
from tensorken_core.program.program import Equation, Literal, Program, Variable

Known = Mapping[int, Literal | int]
"""Inputs of which something is known: the number that they are, or an earlier input that they are."""


def with_necessary_arguments(program: Program) -> Program:
    """What crosses the border of a choice or a loop is what must: the rest stands within, or outside, or nowhere.

    A number that goes in stands within, if it is the same at each step or what a loop goes along; an operand that is
    there twice goes in once; what is carried along and never changes is what it was before; what serves nobody is gone,
    also where a loop carries it for its own sake alone.  Bit for bit the same.
    """
    if not runs_programs(program):
        return program
    needed: set[Variable] = set(program.outputs)
    known: dict[Variable, Variable] = {}
    written: list[Equation] = []
    for equation in reversed(program.equations):
        if needed.isdisjoint(equation.results):
            continue
        if equation.op.higher_order is not None:
            narrow, unchanged = _narrowed(equation, equation.op.higher_order, needed)
            known.update(unchanged)
            needed.update([x for y, x in unchanged.items() if y in needed])
            if narrow is None:
                continue
            equation = narrow
        written.append(equation)
        needed.update(equation.operands)
    for v in reversed(known):  # the first of the program first, so that what it stands for is known
        known[v] = known.get(known[v], known[v])
    equations = tuple([substituted(e, known) for e in reversed(written)])
    outputs = tuple([known.get(v, v) for v in program.outputs])
    return without_dead_code(program.changed(equations=equations, outputs=outputs))


def _narrowed(
    equation: Equation, whole: HigherOrderRules[Op], needed: Collection[Variable]
) -> tuple[Equation | None, dict[Variable, Variable]]:
    """The equation, None if it is not needed; and which of its results are operands."""
    parts = whole.layout(equation.params)
    own, operands = equation.operands[: parts.selects_branch], equation.operands[parts.selects_branch :]
    giving = parts.programs[parts.predicates :]
    same = {i: o for i, o in parts.carries if all([p.outputs[o] is p.inputs[i] for p in giving])}
    carries = {i: o for i, o in parts.carries if i not in same}
    unchanged = {equation.results[o]: operands[i] for i, o in same.items()}

    known: dict[int, Literal | int] = {}
    places: dict[Variable, int] = {}
    for i, (x, v) in enumerate(zip(operands, parts.programs[0].inputs, strict=True)):
        if isinstance(x, Literal) and i not in carries:
            known[i] = Literal(v.shape, v.dtype, x.value)
        elif (parts.fixed[i] or i in same) and places.setdefault(x, i) != i:
            known[i] = places[x]

    asked = [o for o, y in enumerate(equation.results) if y in needed and y not in unchanged]
    if not asked:
        return None, unchanged
    inputs, outputs = _alive(parts.programs, parts.predicates, carries, known, asked)
    alone = not inputs and not own
    if alone:
        inputs = [0]  # an op needs an operand, to know where to run
    if len(inputs) == len(operands) and len(outputs) == len(equation.results):
        return equation, unchanged

    programs = tuple(
        [
            _within(p, known, inputs, range(len(p.outputs)) if i < parts.predicates else outputs)
            for i, p in enumerate(parts.programs)
        ]
    )
    before = [None if i in same or (alone and i in carries) else i for i in inputs]
    return Equation(
        equation.op,
        (*own, *[operands[i] for i in inputs]),
        whole.with_programs(equation.params, programs, before, outputs),
        tuple([equation.results[o] for o in outputs]),
        equation.origin,
        equation.scope,
    ), unchanged


def _alive(
    programs: Sequence[Program],
    predicates: int,
    carries: Mapping[int, int],
    known: Known,
    asked: Sequence[int],
) -> tuple[list[int], list[int]]:
    """The places of the inputs and outputs that what is asked for needs, at any step."""
    outputs = set(asked)
    while True:
        used: set[int] = set()
        for i, p in enumerate(programs):
            for place in _used(p, p.outputs if i < predicates else [p.outputs[o] for o in outputs]):
                stands = known.get(place, place)
                if isinstance(stands, int):
                    used.add(stands)
        more = {carries[i] for i in used if i in carries} - outputs
        if not more:
            break
        outputs |= more
    inputs = [
        i
        for i in range(len(programs[0].inputs))
        if i not in known and (i in used or carries.get(i) in outputs)
    ]
    return inputs, sorted(outputs)


def _used(program: Program, outputs: Sequence[Variable]) -> list[int]:
    """The places of the inputs that these outputs depend on."""
    needed = set(outputs)
    for equation in reversed(program.equations):
        if not needed.isdisjoint(equation.results):
            needed.update(equation.operands)
    return [i for i, v in enumerate(program.inputs) if v in needed]


def _within(program: Program, known: Known, inputs: Sequence[int], outputs: Sequence[int]) -> Program:
    """The program of these inputs and outputs alone, made once."""
    facts = tuple([(i, x if isinstance(x, int) else exact(x.value)) for i, x in known.items()])

    def make() -> Program:
        values = {program.inputs[i]: program.inputs[x] if isinstance(x, int) else x for i, x in known.items()}
        chosen = [program.outputs[o] for o in outputs]
        return without_dead_code(
            program.changed(
                inputs=tuple([program.inputs[i] for i in inputs]),
                outputs=tuple([values.get(v, v) for v in chosen]),
                equations=tuple([substituted(e, values) for e in program.equations]),
            )
        )

    return program.once(("within", facts, tuple(inputs), tuple(outputs)), make)
