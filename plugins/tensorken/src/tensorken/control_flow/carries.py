"""Roles: what a value is to a loop; and what ops that loop share: how derivatives and batches spread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

from tensorken.compilation.call_op import check_alike
from tensorken_core.errors import ProgramError
from tensorken_core.program.program import Program
from tensorken_core.tensor.tensor import Tensor

CONSTANT, CARRY = "constant", "carry"

ArgSpec = str | int
"""What an operand is to a loop: the same at each step, a value carried from step to step, or the axis along which a
step takes its slice; and so of a result: a carry, or the axis along which the steps' values are stacked."""

ArgSpecs = tuple[ArgSpec, ...]
Flags = tuple[bool, ...]


def carries(values: Sequence[Any], roles: ArgSpecs) -> list[Any]:
    """Those whose role is to be carried."""
    return [value for value, role in zip(values, roles, strict=True) if role == CARRY]


def with_carries(values: Sequence[Any], roles: ArgSpecs, carried: Sequence[Any]) -> tuple[Any, ...]:
    """The values, with others in the place of the carried ones."""
    rest = iter(carried)
    return tuple([next(rest) if role == CARRY else x for x, role in zip(values, roles, strict=True)])


def constant_flags(inputs: ArgSpecs) -> Flags:
    """Which inputs are the same at each step."""
    return tuple([role == CONSTANT for role in inputs])


def carry_pairs(inputs: ArgSpecs, outputs: ArgSpecs) -> tuple[tuple[int, int], ...]:
    """For each carry its places among the inputs and outputs of a step."""
    return tuple(zip(carries(range(len(inputs)), inputs), carries(range(len(outputs)), outputs), strict=True))


def check_loop(
    name: str,
    operands: Sequence[Any],
    inputs: ArgSpecs,
    program: Program,
    outputs: ArgSpecs,
    length: int | None = None,
) -> None:
    """Raise a ProgramError unless a step of a loop takes what the roles make of the operands.

    Args:
        operands: of the loop; they have a shape and a dtype.
        program: the step, from a value for each of the roles `inputs` to one for each of the roles `outputs`.
        length: the number of steps; None: slices are no roles.
    """
    for roles, values in ((inputs, operands), (inputs, program.inputs), (outputs, program.outputs)):
        if type(roles) is not tuple or len(roles) != len(values):
            raise ProgramError(f"{name}: need one role for each of {len(values)} values, got {roles!r:.40}")
        for role in roles:
            if role not in (CONSTANT, CARRY) and not (type(role) is int and role >= 0 and length is not None):
                raise ProgramError(f"{name}: a value has the role {role!r:.40}")
    if not operands:
        raise ProgramError(f"{name}: a loop needs an operand at least")
    if CONSTANT in outputs:
        raise ProgramError(f"{name}: a result of a step has the role {CONSTANT!r}")
    check_alike(
        f"{name}: carries before and after a step",
        carries(program.inputs, inputs),
        carries(program.outputs, outputs),
    )
    for x, v, role in zip(operands, program.inputs, inputs, strict=True):
        shape = x.shape
        if isinstance(role, int):
            if role >= len(shape) or shape[role] != length:
                raise ProgramError(f"{name}: there are no {length} slices along axis {role} of shape {shape}")
            shape = (*shape[:role], *shape[role + 1 :])
        if (shape, x.dtype) != (v.shape, v.dtype):
            raise ProgramError(f"{name}: a step takes {v!r}, the operand gives {x.dtype.name} {shape}")
    for v, role in zip(program.outputs, outputs, strict=True):
        if isinstance(role, int) and role > len(v.shape):
            raise ProgramError(f"{name}: values of shape {v.shape} cannot be stacked along axis {role}")


def specs_at(places: Sequence[int | None], roles: ArgSpecs) -> ArgSpecs:
    """The roles of values that had these places before; what had none is the same at each step."""
    return tuple([CONSTANT if place is None else roles[place] for place in places])


def carry_fixpoint(
    make: Callable[[Flags, Flags], tuple[Program, Flags]], flags: Flags, inputs: ArgSpecs, outputs: ArgSpecs
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


def active_outputs(program: Program, active: Flags, least: Flags) -> Flags:
    """Which outputs may have a derivative with respect to the active inputs."""
    found = {v for v in compress(program.inputs, active) if v.dtype.kind == "float"}
    for equation in program.equations:
        if equation.op.differentiable and not found.isdisjoint(
            equation.operands[: equation.op.depends_on_first]
        ):
            found.update([v for v in equation.results if v.dtype.kind == "float"])
    return tuple([v in found or one for v, one in zip(program.outputs, least, strict=True)])


def forwarded_inputs(program: Program) -> tuple[int | None, ...]:
    """For each output the place of the input that it is in any case; None where it may be another value."""
    return program.once("passed through", lambda: _passed_through(program))


def _passed_through(program: Program) -> tuple[int | None, ...]:
    places: dict[Any, int] = {v: i for i, v in enumerate(program.inputs)}
    for equation in program.equations:
        if equation.op.higher_order is None:
            continue
        parts = equation.op.higher_order.layout(equation.params)
        operands = equation.operands[1:] if parts.selects_branch else equation.operands
        inner = [forwarded_inputs(one) for one in parts.programs[parts.predicates :]]
        for k, v in enumerate(equation.results):
            place, *others = {found[k] for found in inner}
            if others or place is None or operands[place] not in places:
                continue
            if not parts.is_loop or (place, k) in parts.carries:
                places[v] = places[operands[place]]
    return tuple([places.get(v) for v in program.outputs])


def select_examples(each: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """For each example a or b."""
    condition = each.reshape((*each.shape, *[1] * (a.ndim - 1))).broadcast_to(a.shape)
    return condition.where(a, b)
