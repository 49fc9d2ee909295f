"""Adjoints: reverse mode on a program's graph; the ops that compute derivatives are added to the equations.

Each value of the program has an adjoint, the derivative of the output with respect to the value, which is computed in
three steps.  The adjoint is *initialised* by the first contribution, *incremented* by each further one, and
*finalised* once, when every equation that uses the value has contributed: the rule of the op that made the value then
takes the adjoint to the op's operands.  An increment that is *passed on* goes through the rule at once, and no adjoint
is accumulated.  The rules are from the op table, and run at a `Trace` level that records them; this package determines
the order, and which adjoints are accumulated.

Source: "Autodiff" in the documentation of Intel's nGraph; nGraph's `generate_adjoints` is an op's `vjp` here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorken.programs.adjoints.backward_pass import BackwardPass, Strategy
from tensorken.programs.adjoints.record import Adjoint, Adjoints, Step
from tensorken.programs.names import labels
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, GradientError
from tensorken_core.program.program import Literal, Program, Variable

__all__ = ["Adjoint", "Adjoints", "Step", "adjoints", "levels"]

Selector = int | str | Variable
"""A value of a program: the index or the name of an input, or the variable itself."""


def levels(program: Program) -> dict[Variable, int]:
    """The depth of each value: the largest number of ops between it and an input or constant, whose depth is 0.

    >>> import tensorken as tk
    >>> program = tk.trace(lambda a, b: a * (a + b))(1.0, 2.0)
    >>> list(levels(program).values())
    [0, 0, 1, 2]
    """
    depths = dict.fromkeys([*program.inputs, *program.constants], 0)
    for equation in program.equations:
        level = 1 + max([depths.get(v, 0) for v in equation.operands], default=0)
        depths.update(dict.fromkeys(equation.results, level))
    return depths


def adjoints(
    program: Program,
    output: int = 0,
    inputs: Selector | Sequence[Selector] | None = None,
    *,
    strategy: Strategy | None = None,
    cotangent: bool = False,
) -> Adjoints:
    """Add to a program the ops that compute derivatives of one output with respect to inputs or intermediate values.

    Args:
        program: the program.
        output: the index of the output, which must have one element unless a cotangent is given.
        inputs: the values to differentiate with respect to: the index or the name of an input, or any variable of the
            program, which gives one tensor; a sequence of these, which gives a tuple; None for all floating-point
            inputs.
        strategy: `"accumulate"` sums the increments of each adjoint before its rule runs; `"pass on"` runs the rule
            for each increment, which can be very expensive for values with many uses.  None chooses for each value: a
            single increment is passed on, and so are two increments through a rule that adds no ops, such as the rule
            of `add`; all others are accumulated.
        cotangent: whether the adjoint of the output is a further positional argument, instead of 1.

    Raises:
        GradientError: if the output or an input is not floating-point, or the output has several elements.
        ArgumentError: if there is no such output or input.

    >>> import tensorken as tk
    >>> program = tk.trace(lambda x, y: x * y + x)(2.0, 3.0)
    >>> gradients = program.adjoints(inputs=("x", "y"))
    >>> [t.item() for t in gradients(2.0, 3.0)]
    [4.0, 2.0]
    >>> gradients.record[program.inputs[0]].increments
    2
    """
    if strategy not in (None, "accumulate", "pass on"):
        raise ArgumentError(
            f"adjoints: strategy {strategy!r} is unknown; use 'accumulate', 'pass on' or None"
        )
    y = _output(program, output, cotangent)
    single = isinstance(inputs, int | str | Variable)
    selected = _selected(program, inputs)
    backward = BackwardPass(program, y, selected, strategy)
    seed: Variable = Variable(y.shape, y.dtype) if cotangent else Literal(y.shape, y.dtype, 1.0)
    adjoint_of = backward.run(seed)
    outputs = [adjoint_of.get(v) or Literal(v.shape, v.dtype, 0.0) for v in selected]
    used = {v for e in backward.level.equations for v in e.operands} | set(outputs)
    fields: dict[str, Any] = _with_cotangent(program, seed) if cotangent else {}
    result = program.changed(
        outputs=tuple(outputs),
        equations=tuple(backward.level.equations),
        constants={v: x for v, x in backward.level.constants.items() if v in used},
        result=tree.structure(0) if single else None,
        name=f"adjoints of {program.name}",
        donated=frozenset(),
        **fields,
    )
    return Adjoints(program, result, tuple(backward.steps), tuple(selected))


# ---- the output and the inputs -------------------------------------------------------------------------------------


def _output(program: Program, output: int, cotangent: bool) -> Variable:
    count = len(program.outputs)
    if type(output) is not int or not -count <= output < count:
        raise ArgumentError(f"adjoints: {program.name} has {count} outputs, but no output {output!r}")
    y = program.outputs[output]
    if y.dtype.kind != "float":
        raise GradientError(f"adjoints: output {output} is {y.dtype.name}, which has no derivative")
    if y.shape != () and not cotangent:
        raise GradientError(
            f"adjoints: output {output} has shape {y.shape}, need (); pass cotangent=True, and the "
            f"adjoint of the output as a further argument"
        )
    return y


def _selected(program: Program, inputs: Selector | Sequence[Selector] | None) -> list[Variable]:
    if inputs is None:
        return [v for v in program.inputs if v.dtype.kind == "float"]
    if isinstance(inputs, int | str | Variable):
        inputs = (inputs,)
    names = labels(program)
    values = {*program.inputs, *program.constants, *[v for e in program.equations for v in e.results]}
    result: list[Variable] = []
    for selector in inputs:
        v: Variable | None = None
        if isinstance(selector, str):
            v = program.inputs[names.index(selector)] if selector in names else None
        elif isinstance(selector, Variable):
            v = selector if selector in values else None
        elif type(selector) is int and -len(program.inputs) <= selector < len(program.inputs):
            v = program.inputs[selector]
        if v is None:
            names_text = ", ".join(names) or f"{len(program.inputs)} without names"
            raise ArgumentError(f"adjoints: {program.name} has no input {selector!r}; it has {names_text}")
        if v.dtype.kind != "float":
            raise GradientError(f"adjoints: {selector!r} is {v.dtype.name}, which has no derivative")
        result.append(v)
    return result


def _with_cotangent(program: Program, seed: Variable) -> dict[str, Any]:
    """The fields of the program with one more positional argument, the cotangent."""
    if program.arguments is None:
        return {"inputs": (*program.inputs, seed)}
    positional, named = tree.unflatten(program.arguments, program.inputs)
    inputs, arguments = tree.flatten(((*positional, seed), named))
    names = program.parameters[: len(positional)]
    parameters = (*names, "cotangent") if len(names) == len(positional) else names
    return {"inputs": tuple(inputs), "arguments": arguments, "parameters": parameters}
