"""Roles: what a value is to a loop; and what ops that loop share: how derivatives and batches spread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorken.programs.program import Program
from tensorken.tensor import Tensor

CONSTANT, CARRY = "constant", "carry"

Role = str | int
"""What an operand is to a loop: the same at each step, a value carried from step to step, or the axis along which a
step takes its slice; and so of a result: a carry, or the axis along which the steps' values are stacked."""

Roles = tuple[Role, ...]
Flags = tuple[bool, ...]


def carries(values: Sequence[Any], roles: Roles) -> list[Any]:
    """Those whose role is to be carried."""
    return [value for value, role in zip(values, roles, strict=True) if role == CARRY]


def with_carries(values: Sequence[Any], roles: Roles, carried: Sequence[Any]) -> tuple[Any, ...]:
    """The values, with others in the place of the carried ones."""
    rest = iter(carried)
    return tuple([next(rest) if role == CARRY else x for x, role in zip(values, roles, strict=True)])


def fixed_among(inputs: Roles) -> Flags:
    """Which inputs are the same at each step."""
    return tuple([role == CONSTANT for role in inputs])


def pairs(inputs: Roles, outputs: Roles) -> tuple[tuple[int, int], ...]:
    """For each carry its places among the inputs and outputs of a step."""
    return tuple(zip(carries(range(len(inputs)), inputs), carries(range(len(outputs)), outputs), strict=True))


def roles_at(places: Sequence[int | None], roles: Roles) -> Roles:
    """The roles of values that had these places before; what had none is the same at each step."""
    return tuple([CONSTANT if place is None else roles[place] for place in places])


def spread(
    make: Callable[[Flags, Flags], tuple[Program, Flags]], flags: Flags, inputs: Roles, outputs: Roles
) -> tuple[Program, Flags, Flags]:
    """Flags of the operands, widened until those of the carries are alike going into a step and coming out.

    Args:
        make: from the flags of a step's inputs, and the least of its outputs', to a program and the flags of these.

    Returns:
        The program, the flags of the inputs and those of the outputs.
    """
    while True:
        going_in = carries(flags, inputs)
        program, pattern = make(flags, with_carries([False] * len(outputs), outputs, going_in))
        coming_out = carries(pattern, outputs)
        if coming_out == going_in:
            return program, flags, pattern
        flags = with_carries(flags, inputs, coming_out)


def chosen_by(values: Sequence[Any], flags: Sequence[bool]) -> tuple[Any, ...]:
    """Those whose flag is set."""
    return tuple([value for value, one in zip(values, flags, strict=True) if one])


def reached(program: Program, active: Flags, least: Flags) -> Flags:
    """Which outputs may have a derivative with respect to the active inputs."""
    found = {v for v in chosen_by(program.inputs, active) if v.dtype.kind == "float"}
    for equation in program.equations:
        if equation.op.differentiable and not found.isdisjoint(equation.operands[: equation.op.reaching]):
            found.update([v for v in equation.results if v.dtype.kind == "float"])
    return tuple([v in found or one for v, one in zip(program.outputs, least, strict=True)])


def passed_through(program: Program) -> tuple[int | None, ...]:
    """For each output the place of the input that it is in any case; None where it may be another value."""
    return program.once("passed through", lambda: _passed_through(program))


def _passed_through(program: Program) -> tuple[int | None, ...]:
    places: dict[Any, int] = {v: i for i, v in enumerate(program.inputs)}
    for equation in program.equations:
        if equation.op.whole is None:
            continue
        parts = equation.op.whole.parts(equation.params)
        operands = equation.operands[1:] if parts.chooses else equation.operands
        inner = [passed_through(one) for one in parts.programs[parts.tests :]]
        for k, v in enumerate(equation.results):
            place, *others = {found[k] for found in inner}
            if others or place is None or operands[place] not in places:
                continue
            if not parts.repeats or (place, k) in parts.carries:
                places[v] = places[operands[place]]
    return tuple([places.get(v) for v in program.outputs])


def selected(each: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """For each example a or b."""
    condition = each.reshape((*each.shape, *[1] * (a.ndim - 1))).broadcast_to(a.shape)
    return condition.where(a, b)
