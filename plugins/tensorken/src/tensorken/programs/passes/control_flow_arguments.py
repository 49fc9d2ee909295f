"""Control flow arguments: sink constants into cond, scan and while, and drop unneeded arguments and
results.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tensorken.programs.passes.dead_code import without_dead_code
from tensorken.programs.passes.inner_programs import runs_programs
from tensorken.programs.passes.rewriting import substituted
from tensorken_core.language.dtypes import exact
from tensorken_core.language.higher_order import HigherOrderRules
from tensorken_core.language.op import Op
from tensorken_core.program.program import Equation, Literal, Program, Variable

KnownInputs = Mapping[int, Literal | int]
"""Inputs with known values: a literal, or the index of an earlier input with the same value."""


def with_necessary_arguments(program: Program) -> Program:
    """Drop unneeded operands and results of control flow.

    Literals are sunk into the programs, unless a loop carries or slices them.  An operand that is passed twice is
    passed once.  A carry that no step changes is replaced by its first value.  Unneeded results and carries are
    dropped, also a carry that only its own computation uses.  Effects need their operands.  Bit for bit the same.
    """
    if not runs_programs(program):
        return program
    needed: set[Variable] = set(program.outputs)
    replacements: dict[Variable, Variable] = {}
    written: list[Equation] = []
    for equation in reversed(program.equations):
        if needed.isdisjoint(equation.results) and not equation.has_effect:
            continue
        if equation.op.higher_order is not None:
            smaller, unchanged = _with_fewer_arguments(equation, equation.op.higher_order, needed)
            replacements.update(unchanged)
            needed.update([x for y, x in unchanged.items() if y in needed])
            if smaller is None:
                continue
            equation = smaller
        written.append(equation)
        needed.update(equation.operands)
    for v in reversed(replacements):  # in program order, to resolve chains of replacements
        replacements[v] = replacements.get(replacements[v], replacements[v])
    equations = tuple([substituted(e, replacements) for e in reversed(written)])
    outputs = tuple([replacements.get(v, v) for v in program.outputs])
    return without_dead_code(program.changed(equations=equations, outputs=outputs))


def _with_fewer_arguments(
    equation: Equation, rules: HigherOrderRules[Op], needed: Collection[Variable]
) -> tuple[Equation | None, dict[Variable, Variable]]:
    """The equation with only the necessary operands, None if nothing needs it; and the results that equal operands."""
    parts = rules.layout(equation.params)
    predicate, operands = equation.operands[: parts.selects_branch], equation.operands[parts.selects_branch :]
    bodies = parts.programs[parts.predicates :]
    unchanged_carries = {i: o for i, o in parts.carries if all([p.outputs[o] is p.inputs[i] for p in bodies])}
    carries = {i: o for i, o in parts.carries if i not in unchanged_carries}
    unchanged = {equation.results[o]: operands[i] for i, o in unchanged_carries.items()}

    known_inputs: dict[int, Literal | int] = {}
    first_index: dict[Variable, int] = {}
    for i, (x, v) in enumerate(zip(operands, parts.programs[0].inputs, strict=True)):
        if isinstance(x, Literal) and i not in carries:
            known_inputs[i] = Literal(v.shape, v.dtype, x.value)
        elif (parts.fixed[i] or i in unchanged_carries) and first_index.setdefault(x, i) != i:
            known_inputs[i] = first_index[x]

    requested = [o for o, y in enumerate(equation.results) if y in needed and y not in unchanged]
    if not requested and not equation.has_effect:
        return None, unchanged
    inputs, outputs = _needed_indices(parts.programs, parts.predicates, carries, known_inputs, requested)
    only_constants = not inputs and not predicate
    if only_constants:
        inputs = [0]  # an op needs an operand, which determines the backend
    if len(inputs) == len(operands) and len(outputs) == len(equation.results):
        return equation, unchanged

    programs = tuple(
        [
            _restricted(p, known_inputs, inputs, range(len(p.outputs)) if i < parts.predicates else outputs)
            for i, p in enumerate(parts.programs)
        ]
    )
    before = [None if i in unchanged_carries or (only_constants and i in carries) else i for i in inputs]
    return Equation(
        equation.op,
        (*predicate, *[operands[i] for i in inputs]),
        rules.with_programs(equation.params, programs, before, outputs),
        tuple([equation.results[o] for o in outputs]),
        equation.origin,
        equation.scope,
    ), unchanged


def _needed_indices(
    programs: Sequence[Program],
    predicates: int,
    carries: Mapping[int, int],
    known_inputs: KnownInputs,
    requested: Sequence[int],
) -> tuple[list[int], list[int]]:
    """The indices of the inputs and outputs that the requested outputs need at some step."""
    outputs = set(requested)
    while True:
        used: set[int] = set()
        for i, p in enumerate(programs):
            for index in _used(p, p.outputs if i < predicates else [p.outputs[o] for o in outputs]):
                source = known_inputs.get(index, index)
                if isinstance(source, int):
                    used.add(source)
        more = {carries[i] for i in used if i in carries} - outputs
        if not more:
            break
        outputs |= more
    inputs = [
        i
        for i in range(len(programs[0].inputs))
        if i not in known_inputs and (i in used or carries.get(i) in outputs)
    ]
    return inputs, sorted(outputs)


def _used(program: Program, outputs: Sequence[Variable]) -> list[int]:
    """The indices of the inputs that these outputs depend on."""
    needed = set(outputs)
    for equation in reversed(program.equations):
        if not needed.isdisjoint(equation.results) or equation.has_effect:
            needed.update(equation.operands)
    return [i for i, v in enumerate(program.inputs) if v in needed]


def _restricted(
    program: Program, known_inputs: KnownInputs, inputs: Sequence[int], outputs: Sequence[int]
) -> Program:
    """The program with only these inputs and outputs, cached."""
    known_key = tuple([(i, x if isinstance(x, int) else exact(x.value)) for i, x in known_inputs.items()])

    def make() -> Program:
        values = {
            program.inputs[i]: program.inputs[x] if isinstance(x, int) else x for i, x in known_inputs.items()
        }
        chosen = [program.outputs[o] for o in outputs]
        return without_dead_code(
            program.changed(
                inputs=tuple([program.inputs[i] for i in inputs]),
                outputs=tuple([values.get(v, v) for v in chosen]),
                equations=tuple([substituted(e, values) for e in program.equations]),
            )
        )

    return program.once(("within", known_key, tuple(inputs), tuple(outputs)), make)
