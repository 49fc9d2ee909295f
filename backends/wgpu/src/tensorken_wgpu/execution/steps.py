"""Steps: loops of a program, each step of which is one program that knows the number of the step.

Such a program reads its slices from whole operands and writes its results into stacks, so nothing is copied.  A step of
a `while_loop` keeps its values where the condition is False, so that steps are submitted before their condition is
known.  A branch of little work is computed beside the other, and `where` selects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from tensorken.programs.costs import program_flop_count
from tensorken.programs.ops import IOTA, STEP_SLICE, STEP_STACK
from tensorken_core.language.higher_order import Loop
from tensorken_core.language.op import OPS, Op
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_wgpu.wgsl.dtypes import size_of

ADD, EXPAND, PERMUTE, RESHAPE, WHERE = (
    OPS[name] for name in ("add", "expand", "permute", "reshape", "where")
)

MAX_SELECTED = 2**22
"""The most operations of two branches that are both computed: reading the predicate takes as long as many."""

ELEMENT_WORK = 16
"""The number of operations that take as long as an element in memory."""

Has = Callable[[Op], bool]
"""Whether the backend has an op."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordedLoop:
    """A loop whose steps run one program.

    Attributes:
        step: takes an operand for each of its inputs; its outputs are the next carries, then the stacked values.
        carried: the index of the operand that each carry replaces.
        stacked: the stacks, of all steps.
        length: the number of steps; None if the condition decides it.
        reverse: whether the steps run from the last slice to the first.
        condition: the program that says from the operands whether another step is taken; None if the length is known.
        predicate: in the step's program, whether the step is taken; None if the length is known.
    """

    step: Program
    carried: tuple[int, ...]
    stacked: tuple[Variable, ...]
    length: int | None
    reverse: bool
    condition: Program | None
    predicate: Variable | None = None


def _no_shape(*_: Any) -> Any:
    raise NotImplementedError("a recorded loop runs only as a part of a compiled program")


RECORDED = Op("recorded_loop", None, _no_shape, _no_shape, ("data",), ("loop",), results=None)
"""A loop that the backend records; its param is a `RecordedLoop`."""


def with_recorded_loops(program: Program, has: Has, binding_size: int) -> Program:
    """The program with loops that are recorded, and branches that are both computed, where possible.

    Args:
        program: after the passes.
        has: whether the backend has an op.
        binding_size: bytes of the largest binding.  Loops with larger operands or results are not recorded.
    """
    program = with_selections(program, has)
    equations: list[Equation] = []
    for e in program.equations:
        loop = e.loop
        recorded = None
        if loop is not None and all([size_of(v) <= binding_size for v in (*e.operands, *e.results)]):
            recorded = _counted(e, loop) if loop.condition is None else _conditional(e, loop, has)
        equations += [e] if recorded is None else recorded
    return program.changed(equations=tuple(equations))


# ---- branches ------------------------------------------------------------------------------------------------


def with_selections(program: Program, has: Has) -> Program:
    """The program with both branches computed where they have little work."""
    equations: list[Equation] = []
    constants = dict(program.constants)
    replacements: dict[Variable, Variable] = {}
    for e in program.equations:
        e = replace(e, operands=tuple([replacements.get(v, v) for v in e.operands]))
        branches = [with_selections(branch, has) for branch in e.branches or ()]
        if (
            not branches
            or not all([has(inner.op) for branch in branches for inner in branch.equations])
            or sum(map(program_flop_count, branches)) > MAX_SELECTED
        ):
            equations.append(e)
            continue
        predicate, *operands = e.operands
        of_branches = []
        for branch in branches:
            inlined, ys = _inlined(branch, operands)
            equations += inlined
            constants.update(branch.constants)
            of_branches.append(ys)
        for result, a, b in zip(e.results, *of_branches, strict=True):
            equations += _selection(predicate, a, b, result)
    if len(equations) == len(program.equations) and not replacements:
        return program
    return program.changed(equations=tuple(equations), constants=constants)


def _inlined(program: Program, operands: Sequence[Variable]) -> tuple[list[Equation], list[Variable]]:
    """The equations of a program on these operands, with new variables, and its outputs."""
    of: dict[Variable, Variable] = dict(zip(program.inputs, operands, strict=True))
    equations = []
    for e in program.equations:
        results = tuple([Variable(v.shape, v.dtype) for v in e.results])
        operands_of_e = tuple([of.get(v, v) for v in e.operands])
        of.update(zip(e.results, results, strict=True))
        equations.append(replace(e, operands=operands_of_e, results=results))
    return equations, [of.get(v, v) for v in program.outputs]


def _selection(predicate: Variable, a: Variable, b: Variable, result: Variable) -> list[Equation]:
    """The equations of `where(predicate, a, b)`, for a predicate of shape ()."""
    shape = result.shape
    equations = []
    if isinstance(predicate, Literal):
        predicate = Literal(shape, predicate.dtype, predicate.value)
    elif shape:
        ones = (1,) * len(shape)
        small, wide = Variable(ones, predicate.dtype), Variable(shape, predicate.dtype)
        equations = [
            Equation(RESHAPE, (predicate,), (ones,), (small,)),
            Equation(EXPAND, (small,), (shape,), (wide,)),
        ]
        predicate = wide
    return [*equations, Equation(WHERE, (predicate, a, b), (), (result,))]


# ---- a known number of steps ---------------------------------------------------------------------------------


def _counted(e: Equation, loop: Loop) -> list[Equation] | None:
    """The equations of a recorded loop of a known number of steps; None if it has none."""
    body, length = loop.body, loop.length
    if not length:
        return None
    counters = _counters(e, loop)
    results_of = dict(loop.carried)
    before: list[Equation] = []
    inputs: list[Variable] = []  # of the step
    operands: list[Variable] = []
    carried: list[int] = []
    of: dict[Variable, Variable] = {}  # for inputs of the body the values in the step
    axes = dict(loop.sliced)
    for i, (x, operand) in enumerate(zip(body.inputs, e.operands, strict=True)):
        if i in counters:
            start, counting = _count(operand, counters[i], length, loop.reverse)
            before += counting
            of[x] = counting[-1].results[0]
            if start is not None:
                inputs.append(start)
                operands.append(operand)
            continue
        if isinstance(operand, Literal) and i not in results_of:
            shape = x.shape
            of[x] = Literal(shape, x.dtype, operand.value)
            continue
        whole = x
        if i in axes:
            whole = Variable(operand.shape, operand.dtype)
            before.append(Equation(STEP_SLICE, (whole,), (axes[i],), (x,)))
        elif i in results_of:
            carried.append(len(inputs))
        inputs.append(whole)
        operands.append(operand)
    outputs = [body.outputs[j] for i, j in loop.carried if i not in counters]
    stacks: list[Variable] = []
    after: list[Equation] = []
    stacking: list[Equation] = []
    for j, axis in loop.stacked:
        y, result = body.outputs[j], e.results[j]
        v = Variable(y.shape, y.dtype)
        stacking.append(Equation(STEP_STACK, (y,), (length,), (v,)))
        outputs.append(v)
        stack = result
        if axis:
            stack = Variable((length, *y.shape), y.dtype)
            order = (*range(1, axis + 1), 0, *range(axis + 1, len(result.shape)))
            after.append(Equation(PERMUTE, (stack,), (order,), (result,)))
        stacks.append(stack)
    for i, counter in counters.items():
        result = e.results[results_of[i]]
        after.append(Equation(ADD, (e.operands[i], _literal(result, counter * length)), (), (result,)))
    equations = [
        replace(equation, operands=tuple([of.get(v, v) for v in equation.operands]))
        for equation in (*before, *body.equations, *stacking)
    ]
    outputs = [of.get(v, v) for v in outputs]
    step = body.changed(inputs=tuple(inputs), outputs=tuple(outputs), equations=tuple(equations))
    recorded = RecordedLoop(step, tuple(carried), tuple(stacks), length, loop.reverse, None)
    results = (*[e.results[j] for i, j in loop.carried if i not in counters], *stacks)
    return [Equation(RECORDED, tuple(operands), (recorded,), results, e.origin, e.scope), *after]


def _counters(e: Equation, loop: Loop) -> dict[int, int]:
    """For each carry to which each step adds a positive integer, as an index, the integer."""
    producers = {v: equation for equation in loop.body.equations for v in equation.results}
    counters = {}
    for i, j in loop.carried:
        x, y = loop.body.inputs[i], loop.body.outputs[j]
        producer = producers.get(y)
        if producer is None or producer.op is not ADD or x.dtype.kind != "int" or x.shape != ():
            continue
        others = [v for v in producer.operands if v is not x]
        if len(others) == 1 and isinstance(others[0], Literal):
            number = int(others[0].value)
            if 0 < number * (loop.length or 0) < 2**31:
                counters[i] = number
    return counters


def _count(
    start: Variable, number: int, length: int, reverse: bool
) -> tuple[Variable | None, list[Equation]]:
    """The input of a step for the start of a counter, None if the start is known, and the equations that count.

    The steps of a reversed loop have falling numbers.
    """
    dtype = start.dtype
    known = isinstance(start, Literal) and not reverse and 0 <= start.value < 2**31 - number * length
    first = int(start.value) if known and isinstance(start, Literal) else 0
    counts, count = Variable((length,), dtype), Variable((), dtype)
    equations = [
        Equation(IOTA, (), ((length,), 0, first, number, dtype), (counts,)),
        Equation(STEP_SLICE, (counts,), (0,), (count,)),
    ]
    if known:
        return None, equations
    given, total = Variable((), dtype), Variable((), dtype)
    if reverse:
        back = Variable((), dtype)
        equations.append(Equation(OPS["mul"], (count, _literal(count, -1)), (), (back,)))
        last = Variable((), dtype)
        equations.append(Equation(ADD, (back, _literal(count, number * (length - 1))), (), (last,)))
        count = last
    equations.append(Equation(ADD, (given, count), (), (total,)))
    return given, equations


def _literal(like: Variable, value: int) -> Literal:
    return Literal(like.shape, like.dtype, value)


# ---- a condition -----------------------------------------------------------------------------------------------


def _conditional(e: Equation, loop: Loop, has: Has) -> list[Equation] | None:
    """The equations of a recorded `while_loop`; None if a step has loops or branches whose length depends on values.

    Once the condition is False, a step keeps all values.  A loop in such a step runs on values for which the condition
    is False, so its number of steps must be known.
    """
    condition, body = with_selections(loop.condition, has), with_selections(loop.body, has)
    if not all([has(x.op) for x in condition.equations]) or not _is_bounded(body, has):
        return None
    inputs = body.inputs
    of_condition, (predicate,) = _inlined(condition, inputs)
    equations, outputs = [*of_condition, *body.equations], []
    for i, j in loop.carried:
        x, y = inputs[i], body.outputs[j]
        if x is y:
            outputs.append(x)
            continue
        v = Variable(y.shape, y.dtype)
        equations += _selection(predicate, y, x, v)
        outputs.append(v)
    step = body.changed(
        outputs=tuple(outputs),
        equations=tuple(equations),
        constants={**condition.constants, **body.constants},
    )
    carried = tuple([i for i, _ in loop.carried])
    recorded = RecordedLoop(step, carried, (), None, False, condition, predicate)
    results = tuple([e.results[j] for _, j in loop.carried])
    return [Equation(RECORDED, e.operands, (recorded,), results, e.origin, e.scope)]


def _is_bounded(program: Program, has: Has) -> bool:
    """Whether a program has no loops with a condition, and no branches that must wait for their predicate."""
    program = with_selections(program, has)
    return all(
        [
            has(e.op) or (e.loop is not None and e.loop.condition is None and _is_bounded(e.loop.body, has))
            for e in program.equations
        ]
    )


def work_of(program: Program) -> int:
    """The work of a program, in operations: an element in memory takes as long as several."""
    elements = sum([prod(v.shape) for e in program.equations for v in e.results])
    return program_flop_count(program) + ELEMENT_WORK * elements
