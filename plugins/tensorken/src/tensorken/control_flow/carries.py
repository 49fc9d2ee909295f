"""Carries: how a loop passes each operand to its steps, and the fixed point over carries for the rules of loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

from tensorken.compilation.call_op import check_alike
from tensorken_core.errors import ArgumentError, ProgramError
from tensorken_core.program.program import Program
from tensorken_core.tensor.tensor import Tensor

CONSTANT, CARRY = "constant", "carry"

ArgSpec = str | int
"""How a loop passes an operand to its steps: "constant", the same at each step; "carry", from step to step; or the
axis along which a step takes its slice.  For a result of a step: "carry", or the axis along which the results are
stacked.
"""

ArgSpecs = tuple[ArgSpec, ...]
Flags = tuple[bool, ...]


def carries(values: Sequence[Any], specs: ArgSpecs) -> list[Any]:
    """The values whose spec is "carry"."""
    return [value for value, spec in zip(values, specs, strict=True) if spec == CARRY]


def with_carries(values: Sequence[Any], specs: ArgSpecs, carried: Sequence[Any]) -> tuple[Any, ...]:
    """The values, with the carries replaced."""
    rest = iter(carried)
    return tuple([next(rest) if spec == CARRY else x for x, spec in zip(values, specs, strict=True)])


def constant_flags(inputs: ArgSpecs) -> Flags:
    """Which inputs are the same at each step."""
    return tuple([spec == CONSTANT for spec in inputs])


def carry_pairs(inputs: ArgSpecs, outputs: ArgSpecs) -> tuple[tuple[int, int], ...]:
    """For each carry its indices among the inputs and outputs of a step."""
    return tuple(zip(carries(range(len(inputs)), inputs), carries(range(len(outputs)), outputs), strict=True))


def axes_of(specs: ArgSpecs) -> tuple[tuple[int, int], ...]:
    """The indices and axes of the values that are slices or are stacked."""
    return tuple([(i, spec) for i, spec in enumerate(specs) if isinstance(spec, int)])


def check_loop(
    name: str,
    operands: Sequence[Any],
    inputs: ArgSpecs,
    program: Program,
    outputs: ArgSpecs,
    length: int | None = None,
) -> None:
    """Raise a ProgramError unless the specs fit the operands, and the inputs of the step fit their slices.

    Args:
        operands: of the loop; they have a shape and a dtype.
        inputs: the specs of the operands.
        program: the step.
        outputs: the specs of the step's results.
        length: the number of steps; None if the loop has no slices.
    """
    for specs, values in ((inputs, operands), (inputs, program.inputs), (outputs, program.outputs)):
        if type(specs) is not tuple or len(specs) != len(values):
            raise ProgramError(f"{name}: need one spec for each of {len(values)} values, got {specs!r:.40}")
        for spec in specs:
            if spec not in (CONSTANT, CARRY) and not (type(spec) is int and spec >= 0 and length is not None):
                raise ProgramError(
                    f"{name}: a value has the spec {spec!r:.40}, which must be 'constant', 'carry' or an axis"
                )
    if not operands:
        raise ProgramError(f"{name}: a loop needs at least one operand")
    if CONSTANT in outputs:
        raise ProgramError(f"{name}: a result of a step has the spec {CONSTANT!r}")
    check_alike(
        f"{name}: carries before and after a step",
        carries(program.inputs, inputs),
        carries(program.outputs, outputs),
    )
    for x, v, spec in zip(operands, program.inputs, inputs, strict=True):
        shape = x.shape
        if isinstance(spec, int):
            if spec >= len(shape) or shape[spec] != length:
                raise ProgramError(f"{name}: there are no {length} slices along axis {spec} of shape {shape}")
            shape = (*shape[:spec], *shape[spec + 1 :])
        if (shape, x.dtype) != (v.shape, v.dtype):
            raise ProgramError(f"{name}: a step takes {v!r}, but the operand has {x.dtype.name} {shape}")
    for v, spec in zip(program.outputs, outputs, strict=True):
        if isinstance(spec, int) and spec > len(v.shape):
            raise ProgramError(f"{name}: values of shape {v.shape} cannot be stacked along axis {spec}")


def specs_at(indices: Sequence[int | None], specs: ArgSpecs) -> ArgSpecs:
    """The specs at these indices; None stands for a new constant."""
    return tuple([CONSTANT if i is None else specs[i] for i in indices])


def carry_fixpoint(
    make: Callable[[Flags, Flags], tuple[Program, Flags]], flags: Flags, inputs: ArgSpecs, outputs: ArgSpecs
) -> tuple[Program, Flags, Flags]:
    """The smallest flags that include `flags` and are equal for each carry before and after a step.

    Args:
        make: from the flags of a step's inputs, and the flags that its outputs must have, to a program and its
            outputs' flags.

    Returns:
        The program, the flags of the inputs, and the flags of the outputs.
    """
    while True:
        carries_in = carries(flags, inputs)
        program, pattern = make(flags, with_carries([False] * len(outputs), outputs, carries_in))
        carries_out = carries(pattern, outputs)
        if carries_out == carries_in:
            return program, flags, pattern
        flags = with_carries(flags, inputs, carries_out)


def active_outputs(program: Program, active: Flags, instantiate: Flags) -> Flags:
    """Which outputs may have a derivative with respect to the active inputs."""
    active_values = {v for v in compress(program.inputs, active) if v.dtype.kind == "float"}
    for equation in program.equations:
        if equation.op.differentiable and not active_values.isdisjoint(
            equation.operands[: equation.op.depends_on_first]
        ):
            active_values.update([v for v in equation.results if v.dtype.kind == "float"])
    return tuple([v in active_values or flag for v, flag in zip(program.outputs, instantiate, strict=True)])


def forwarded_inputs(program: Program) -> tuple[int | None, ...]:
    """For each output the index of the input that it always equals, or None."""
    return program.once("passed through", lambda: _passed_through(program))


def _passed_through(program: Program) -> tuple[int | None, ...]:
    index_of: dict[Any, int] = {v: i for i, v in enumerate(program.inputs)}
    for equation in program.equations:
        if equation.op.higher_order is None:
            continue
        parts = equation.op.higher_order.layout(equation.params)
        operands = equation.operands[1:] if parts.selects_branch else equation.operands
        inner = [forwarded_inputs(program) for program in parts.programs[parts.predicates :]]
        for k, v in enumerate(equation.results):
            index, *others = {indices[k] for indices in inner}
            if others or index is None or operands[index] not in index_of:
                continue
            if not parts.is_loop or (index, k) in parts.carries:
                index_of[v] = index_of[operands[index]]
    return tuple([index_of.get(v) for v in program.outputs])


def check_repeatable(name: str, programs: Sequence[Program]) -> None:
    """Raise an ArgumentError if the programs have effects that a batch, which runs them more often, may not repeat."""
    if any(["io" in program.opaque for program in programs]):
        raise ArgumentError(
            f"{name}: io_callback under vmap would run for examples that do not take this branch or step; move it "
            f"outside, or use tk.debug.callback, which runs for all examples"
        )


def select_examples(predicate: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """For each example of a batch, a if `predicate` is True, else b."""
    new_axes = [1] * (a.ndim - predicate.ndim)
    condition = predicate.reshape((*predicate.shape, *new_axes)).broadcast_to(a.shape)
    return condition.where(a, b)
