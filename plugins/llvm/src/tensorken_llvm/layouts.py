"""Layouts: the order in which a compiled program runs, and where its values are, as plain data that a file can keep.

Equations and constants are numbers: of the equations and constants of the program that was compiled.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tensorken_core.language.dtypes import DTYPES
from tensorken_core.program.program import Equation, Literal, Program
from tensorken_llvm.control_flow import ControlFlow
from tensorken_llvm.plans import Kernel, Plan

if TYPE_CHECKING:
    from tensorken_core.language.op import Op
    from tensorken_core.program.program import Variable

Shape = tuple[int, ...]

MIN_UNLOCKED = 2**15
"""From this many elements on other Python threads run meanwhile: releasing the lock costs as much as some hundred."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an operand of a called op is: one of `value`, `array` and `offset` is not None.

    Attributes:
        shape: of the operand.
        dtype: its name.
        value: the number that all its elements are.
        array: the number of an array.
        offset: in the arena, in bytes.
    """

    shape: Shape
    dtype: str
    value: bool | int | float | None = None
    array: int | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """An op that the backend runs.

    Attributes:
        equation: the number of an equation with this op and these params.
        operands: in order.
        results: the numbers of their arrays.
    """

    equation: int
    operands: tuple[Place, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """An output of the program: the elements of an array, in a shape, which may be another than the array's."""

    array: int
    shape: Shape
    is_reshaped: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """How a compiled program runs.

    The arrays are in order the inputs, the constants, the results, the results of called ops, and the arena.

    Attributes:
        constants: the numbers of constants, as `constants_of` orders them, and places of literals.
        results: the shapes and dtypes of arrays that machine code fills.
        called: how many arrays called ops make.
        outputs: of the program.
        segments: the names of functions in machine code, and called ops, in order.
        arena_size: in bytes.
        donated: the numbers of inputs whose memory results take.
        may_overlap: whether another call may begin during a call, in another Python thread or in a signal handler.
    """

    constants: tuple[int | Place, ...]
    results: tuple[tuple[Shape, str], ...]
    called: int
    outputs: tuple[Output, ...]
    segments: tuple[str | Call, ...]
    arena_size: int
    donated: tuple[int, ...]
    may_overlap: bool

    @property
    def names(self) -> list[str]:
        """The names of the functions in machine code."""
        return [one for one in self.segments if isinstance(one, str)]

    def to_json(self) -> str:
        """The layout as text."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Layout:
        """The layout of a text."""
        found = json.loads(text)
        return Layout(
            tuple([x if isinstance(x, int) else _place(x) for x in found["constants"]]),
            tuple([(tuple(shape), dtype) for shape, dtype in found["results"]]),
            found["called"],
            tuple([Output(x["array"], tuple(x["shape"]), x["is_reshaped"]) for x in found["outputs"]]),
            tuple([x if isinstance(x, str) else _call(x) for x in found["segments"]]),
            found["arena_size"],
            tuple(found["donated"]),
            found["may_overlap"],
        )


def _place(found: Mapping[str, Any]) -> Place:
    return Place(**{**found, "shape": tuple(found["shape"])})


def _call(found: Mapping[str, Any]) -> Call:
    return Call(found["equation"], tuple(map(_place, found["operands"])), tuple(found["results"]))


def literal(place: Place) -> Literal:
    """The literal at a place."""
    assert place.value is not None
    return Literal(place.shape, DTYPES[place.dtype], place.value)


def numbered(plan: Plan) -> dict[Variable, int]:
    """The number of each value that is in an array of its own."""
    arrays = [*plan.program.inputs, *plan.constants, *plan.results, *plan.called]
    return {v: i for i, v in reversed([*enumerate(arrays)])}


def layout_of(program: Program, plan: Plan) -> Layout | None:
    """The layout of a plan; None if the plan calls an op, or has a constant, that is not in the program.

    Args:
        program: as the caller of the compiler knows it.
        plan: of a program with the same meaning, outputs and constants.
    """
    numbers = numbered(plan)
    positions: dict[Variable, int | Place] = {v: i for i, v in enumerate(constants_of(program))}
    for v in plan.constants:
        if hasattr(v, "value"):
            positions[v] = _place_of(plan, numbers, v)
        elif v not in positions:
            return None
    outputs = [*zip(program.outputs, map(plan.root, plan.lowered.outputs), strict=True)]
    results = set(plan.results)
    shapes = {kept: v.shape for v, kept in reversed(outputs) if kept in results}  # of the first outputs
    names = iter(runs_of_kernels(plan))
    segments: list[str | Call] = []
    same = _Same(program if plan.called else program.changed(equations=()))
    for step in plan.steps:
        if isinstance(step, Equation):
            call = _call_of(same, plan, numbers, step)
            if call is None:
                return None
            segments.append(call)
        elif not segments or not isinstance(segments[-1], str):
            segments.append(next(names))
    return Layout(
        tuple([positions[v] for v in plan.constants]),
        tuple([(shapes.get(v, v.shape), v.dtype.name) for v in plan.results]),
        len(plan.called),
        tuple(
            [Output(numbers[kept], v.shape, v.shape != shapes.get(kept, kept.shape)) for v, kept in outputs]
        ),
        tuple(segments),
        plan.arena_size,
        tuple([numbers[x] for x in plan.updated.values() if x in plan.program.inputs]),
        any([is_long(run) or _has_control_flow(run) for run in runs_of_kernels(plan).values()]),
    )


def is_long(kernels: Iterable[Kernel]) -> bool:
    """Whether other Python threads may run while these kernels do."""
    return sum([kernel.computes.work for kernel in kernels]) >= MIN_UNLOCKED


def _has_control_flow(kernels: Iterable[Kernel]) -> bool:
    return any([isinstance(kernel.computes, ControlFlow) for kernel in kernels])


def constants_of(program: Program) -> dict[Variable, Program]:
    """The constants of a program and of the programs that its ops run, in order, and for each the program."""
    found: dict[Variable, Program] = dict.fromkeys(program.constants, program)
    for equation in program.equations:
        for param in equation.params:
            if isinstance(param, Program):
                found |= constants_of(param)
    return found


def runs_of_kernels(plan: Plan) -> dict[str, list[Kernel]]:
    """The kernels between called ops, by the names of the functions that run them."""
    runs: dict[str, list[Kernel]] = {}
    is_new = True
    for step in plan.steps:
        if isinstance(step, Equation):
            is_new = True
            continue
        if is_new:
            runs[f"entry{len(runs)}"] = []
            is_new = False
        runs[f"entry{len(runs) - 1}"].append(step)
    return runs


class _Same:
    """Finds the first equation of a program with the op and params of another, which may be of another program.

    Args:
        program: of the equations.
    """

    def __init__(self, program: Program) -> None:
        self._by_op: dict[Op, dict[Any, int]] = {}
        self._others: dict[Op, list[int]] = {}  # those whose params cannot be hashed
        self._equations = program.equations
        for i, e in enumerate(program.equations):
            try:
                self._by_op.setdefault(e.op, {}).setdefault(e.params, i)
            except TypeError:
                self._others.setdefault(e.op, []).append(i)

    def number(self, step: Equation) -> int | None:
        """The number of the equation; None if there is none."""
        try:
            return self._by_op.get(step.op, {}).get(step.params)
        except TypeError:
            found = [self._equations[i] for i in self._others.get(step.op, ())]
            same = [e is step or e.params is step.params or e.params == step.params for e in found]
            return self._others[step.op][same.index(True)] if any(same) else None


def _call_of(same: _Same, plan: Plan, numbers: Mapping[Variable, int], step: Equation) -> Call | None:
    number = same.number(step)
    if number is None:
        return None
    operands = tuple([_place_of(plan, numbers, x) for x in step.operands])
    return Call(number, operands, tuple([numbers[v] for v in step.results]))


def _place_of(plan: Plan, numbers: Mapping[Variable, int], x: Variable) -> Place:
    value = getattr(x, "value", None)
    if value is not None:
        return Place(x.shape, x.dtype.name, value=value)
    root = plan.root(x)
    if root in numbers:
        return Place(x.shape, x.dtype.name, array=numbers[root])
    return Place(x.shape, x.dtype.name, offset=plan.regions[root].offset)
