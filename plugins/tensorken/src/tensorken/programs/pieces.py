"""Pieces: a program cut at its opaque equations, for compilers that do not compile these.

The equations between two opaque ones are programs, which are compiled; the opaque ones run on the backend, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorken_core.language.op import run
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Equation, Literal, Program, Variable

Run = Callable[..., Sequence[Any]]


def pieces(
    program: Program, is_cut: Callable[[Equation], bool] = lambda e: bool(e.opaque)
) -> list[Equation | Program]:
    """Some equations, by default the opaque ones, and programs of the equations between them, in order.

    The inputs and outputs of the programs are values of the whole program.
    """
    groups: list[Equation | list[Equation]] = []
    for equation in program.equations:
        if is_cut(equation):
            groups.append(equation)
        elif groups and isinstance(groups[-1], list):
            groups[-1].append(equation)
        else:
            groups.append([equation])
    needed: set[Variable] = set(program.outputs)
    result: list[Equation | Program] = []
    for group in reversed(groups):
        if isinstance(group, Equation):
            needed.update(group.operands)
            result.append(group)
            continue
        results = [v for e in group for v in e.results]
        known = {*results, *program.constants}
        used = dict.fromkeys([v for e in group for v in e.operands])
        inputs = tuple([v for v in used if v not in known and not isinstance(v, Literal)])
        result.append(
            Program(
                inputs,
                tuple([v for v in results if v in needed]),
                tuple(group),
                {v: program.constants[v] for v in used if v in program.constants},
                name=program.name,
                backend=program.backend,
            )
        )
        needed.update(inputs)
    return result[::-1]


def joined(program: Program, parts: Sequence[tuple[Equation | Program, Run]], backend: RawTensor[Any]) -> Run:
    """A function that runs the parts of a program in order; a value is dropped after its last use.

    Args:
        program: the program.
        parts: its pieces, and the functions that run them.
        backend: holds the values.

    Returns:
        A function of the inputs; it passes all further arguments to each part.
    """
    last_use: dict[Variable, int] = {}
    for i, (part, _) in enumerate(parts):
        last_use.update(dict.fromkeys(_reads(part), i))
    for v in program.outputs:
        last_use[v] = len(parts)
    dying: list[list[Variable]] = [[] for _ in range(len(parts) + 1)]
    for v, i in last_use.items():
        dying[i].append(v)

    def run_parts(xs: Sequence[Any], *context: Any) -> list[Any]:
        values: dict[Variable, Any] = dict(zip(program.inputs, xs, strict=True))

        def value(v: Variable) -> Any:
            return values[v] if v in values else program.outside(v, backend)

        for (part, run_part), dead in zip(parts, dying, strict=False):
            ys = run_part([value(v) for v in _reads(part)], *context)
            values.update(zip(_writes(part), ys, strict=True))
            for v in dead:
                values.pop(v, None)
        return [value(v) for v in program.outputs]

    return run_parts


def runner_of(equation: Equation, backend: RawTensor[Any]) -> Run:
    """A function that runs one equation."""
    op, params = equation.op, equation.params
    if op.results == 1:
        return lambda xs: [run(backend, op, xs, params)]
    return lambda xs: run(backend, op, xs, params)


def _reads(part: Equation | Program) -> tuple[Variable, ...]:
    return part.operands if isinstance(part, Equation) else part.inputs


def _writes(part: Equation | Program) -> tuple[Variable, ...]:
    return part.results if isinstance(part, Equation) else part.outputs
