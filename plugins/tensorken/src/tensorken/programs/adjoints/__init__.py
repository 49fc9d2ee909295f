"""Adjoints: the op-graph view of reverse mode: the ops that compute derivatives are added to the graph of a program.

Every value of the program supports three steps.  Its adjoint, the derivative of the output by the value, is
*initialised* by the first contribution of a value that was computed from it, *incremented* by the others, and
*finalised* once, when all who use the value have been: then it goes through the rule of the op that made the value, to
the operands of this.  A value whose increments go *straight on* through the rule keeps nothing.  The rules are those of
the op table, run while a `Trace` writes down what they do; what is here is the order, and who keeps what.

Source: "Autodiff" in the documentation of Intel's nGraph, whose `generate_adjoints` is an op's `vjp` here.
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

Choice = int | str | Variable
"""A value of a program: the place of an input or its name, or the value itself."""


def levels(program: Program) -> dict[Variable, int]:
    """For each value how many ops stand between it and what is given, at most: 0 for what is given.

    >>> import tensorken as tk
    >>> program = tk.trace(lambda a, b: a * (a + b))(1.0, 2.0)
    >>> list(levels(program).values())
    [0, 0, 1, 2]
    """
    found = dict.fromkeys([*program.inputs, *program.constants], 0)
    for equation in program.equations:
        level = 1 + max([found.get(v, 0) for v in equation.operands], default=0)
        found.update(dict.fromkeys(equation.results, level))
    return found


def adjoints(
    program: Program,
    output: int = 0,
    inputs: Choice | Sequence[Choice] | None = None,
    *,
    strategy: Strategy | None = None,
    cotangent: bool = False,
) -> Adjoints:
    """Add to a program the ops that compute the derivatives of one output by inputs, or by inner values.

    Args:
        program: the program.
        output: the place of the output, which has one element unless a cotangent is given.
        inputs: what to differentiate by: the place or the name of an input, or any value of the program; then the
            result is one tensor.  Several of them give a tuple, None those inputs that are floating-point.
        strategy: whether adjoints are accumulated and go on at the end (`"accumulate"`), or each increment goes
            straight on (`"pass on"`, which can cost very much where values are used often).  None chooses for each
            value: one increment, or two through a rule that is free, as that of `add` is, go straight on; the rest
            accumulates.
        cotangent: whether the adjoint of the output is a further positional argument, instead of 1.

    Raises:
        GradientError: if what is to be differentiated is not floating-point, or the output has several elements.
        ArgumentError: if there is no such output or input.

    >>> import tensorken as tk
    >>> program = tk.trace(lambda x, y: x * y + x)(2.0, 3.0)
    >>> found = program.adjoints(inputs=("x", "y"))
    >>> [t.item() for t in found(2.0, 3.0)]
    [4.0, 2.0]
    >>> found.record[program.inputs[0]].increments
    2
    """
    if strategy not in (None, "accumulate", "pass on"):
        raise ArgumentError(
            f"adjoints: strategy {strategy!r} is unknown; use 'accumulate', 'pass on' or None"
        )
    y = _output(program, output, cotangent)
    alone = isinstance(inputs, int | str | Variable)
    wanted = _wanted(program, inputs)
    walk = BackwardPass(program, y, wanted, strategy)
    seed: Variable = Variable(y.shape, y.dtype) if cotangent else Literal(y.shape, y.dtype, 1.0)
    found = walk.run(seed)
    outputs = [found.get(v) or Literal(v.shape, v.dtype, 0.0) for v in wanted]
    used = {v for e in walk.level.equations for v in e.operands} | set(outputs)
    facts: dict[str, Any] = _with_cotangent(program, seed) if cotangent else {}
    added = program.changed(
        outputs=tuple(outputs),
        equations=tuple(walk.level.equations),
        constants={v: x for v, x in walk.level.constants.items() if v in used},
        result=tree.structure(0) if alone else None,
        name=f"adjoints of {program.name}",
        donated=frozenset(),
        **facts,
    )
    return Adjoints(program, added, tuple(walk.steps), tuple(wanted))


# ---- what is asked for -------------------------------------------------------------------------------------


def _output(program: Program, output: int, cotangent: bool) -> Variable:
    count = len(program.outputs)
    if type(output) is not int or not -count <= output < count:
        raise ArgumentError(f"adjoints: {program.name} has {count} outputs, so no output {output!r}")
    y = program.outputs[output]
    if y.dtype.kind != "float":
        raise GradientError(f"adjoints: output {output} is {y.dtype.name}, which has no derivative")
    if y.shape != () and not cotangent:
        raise GradientError(
            f"adjoints: output {output} has shape {y.shape}, need (); pass cotangent=True, and the "
            f"adjoint of the output as a further argument"
        )
    return y


def _wanted(program: Program, inputs: Choice | Sequence[Choice] | None) -> list[Variable]:
    if inputs is None:
        return [v for v in program.inputs if v.dtype.kind == "float"]
    if isinstance(inputs, int | str | Variable):
        inputs = (inputs,)
    names = labels(program)
    known = {*program.inputs, *program.constants, *[v for e in program.equations for v in e.results]}
    found: list[Variable] = []
    for choice in inputs:
        v: Variable | None = None
        if isinstance(choice, str):
            v = program.inputs[names.index(choice)] if choice in names else None
        elif isinstance(choice, Variable):
            v = choice if choice in known else None
        elif type(choice) is int and -len(program.inputs) <= choice < len(program.inputs):
            v = program.inputs[choice]
        if v is None:
            has = ", ".join(names) or f"{len(program.inputs)} without names"
            raise ArgumentError(f"adjoints: {program.name} has no input {choice!r}; it has {has}")
        if v.dtype.kind != "float":
            raise GradientError(f"adjoints: {choice!r} is {v.dtype.name}, which has no derivative")
        found.append(v)
    return found


def _with_cotangent(program: Program, seed: Variable) -> dict[str, Any]:
    """The facts of a program with one more positional argument."""
    if program.arguments is None:
        return {"inputs": (*program.inputs, seed)}
    positional, named = tree.unflatten(program.arguments, program.inputs)
    inputs, arguments = tree.flatten(((*positional, seed), named))
    names = program.parameters[: len(positional)]
    parameters = (*names, "cotangent") if len(names) == len(positional) else names
    return {"inputs": tuple(inputs), "arguments": arguments, "parameters": parameters}
