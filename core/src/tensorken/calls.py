"""Calls: the op that runs a program, and the programs that its derivatives and batches are, each made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tensorken.batch import over_examples
from tensorken.dispatch import at_one_level
from tensorken.programs.execution import prepared
from tensorken.programs.passes.dead_code import without_dead_code
from tensorken.programs.program import Equation, Literal, Program, Variable
from tensorken.spec.op import Op, run
from tensorken.tensor import Tensor
from tensorken.tracing import traced
from tensorken.transforms import pull, record
from tensorken.user_ops import results_and_tangents


def call(program: Program, xs: Sequence[Tensor]) -> list[Tensor]:
    """Run a program as one op on its inputs, raised to one level; the outputs, flat."""
    interpreter, representations = at_one_level(CALL, xs)
    ys = run(interpreter, CALL, representations, (program,))
    return [Tensor(interpreter, y, v.shape, v.dtype) for y, v in zip(ys, program.outputs, strict=True)]


def _body(*args: Any) -> tuple[Tensor, ...]:
    """On a backend: run what has been prepared for it."""
    *xs, program = args
    backend = xs[0].interpreter
    ys = prepared(program, backend)([x.representation for x in xs])
    return tuple([Tensor(backend, y, v.shape, v.dtype) for y, v in zip(ys, program.outputs, strict=True)])


class _Calls:
    """A call goes through derivatives and batches as a call of another program."""

    def push(self, active: tuple[bool, ...], params: tuple[Any, ...]) -> tuple[Op, Any, tuple[bool, ...]]:
        (program,) = params
        pushed, pattern = program.once(("push", active), lambda: pushed_program(program, active))
        return CALL, (pushed,), pattern

    def record(self, active: tuple[bool, ...], params: tuple[Any, ...]) -> tuple[Op, Any, int]:
        (program,) = params
        forward, op = program.once(("record", active), lambda: recorded_program(program, active))
        return op, (forward,), len(program.outputs)

    def batch(self, size: int, batched: tuple[bool, ...], params: tuple[Any, ...]) -> tuple[Op, Any]:
        (program,) = params
        return CALL, (
            program.once(("batch", size, batched), lambda: batched_program(program, size, batched)),
        )


def pushed_program(program: Program, active: tuple[bool, ...]) -> tuple[Program, tuple[bool, ...]]:
    """From inputs, and tangents of the active ones, to outputs and tangents; and which outputs have one."""
    count = len(program.inputs)
    pattern: list[bool] = []

    def function(*values: Tensor) -> list[Tensor]:
        rest = iter(values[count:])
        tangents = [next(rest) if one else None for one in active]
        ys, pushed = results_and_tangents(lambda *xs: program.on(xs), values[:count], tangents)
        pattern[:] = [t is not None for t in pushed]
        return [*ys, *[t for t in pushed if t is not None]]

    like = [*program.inputs, *[v for v, one in zip(program.inputs, active, strict=True) if one]]
    return traced(function, like, program.backend, f"jvp of {program.name}"), tuple(pattern)


def batched_program(program: Program, size: int, batched: tuple[bool, ...]) -> Program:
    """From inputs, with examples along the first axis of the batched ones, to outputs, all with examples."""
    over = over_examples(lambda *xs: program.on(xs), size, batched)
    like = [
        Variable((size, *v.shape), v.dtype) if one else v
        for v, one in zip(program.inputs, batched, strict=True)
    ]
    return traced(over, like, program.backend, f"vmap of {program.name}")


def recorded_program(program: Program, active: tuple[bool, ...]) -> tuple[Program, Op]:
    """The program, with what its derivative needs as further outputs, and an op whose `vjp_all` uses that."""
    inputs, count = program.inputs, len(program.outputs)
    wanted = [i for i, v in enumerate(inputs) if active[i] and v.dtype.kind == "float"]
    floats = [i for i, v in enumerate(program.outputs) if v.dtype.kind == "float"]
    reached: list[int] = []

    def joint(*values: Tensor) -> list[Tensor]:
        def function(*chosen: Tensor) -> Sequence[Tensor]:
            xs = list(values[: len(inputs)])
            for i, x in zip(wanted, chosen, strict=True):
                xs[i] = x
            return program.on(xs)

        level, ys, *_ = record("vjp", function, [values[i] for i in wanted], None, False)
        found = pull(level, [ys[i] for i in floats], list(values[len(inputs) :]), consume=True)
        reached[:] = [wanted[i] for i in sorted(found)]
        results = [Tensor(level.inner, y.representation.primal) for y in ys]
        return [*results, *[found[i] for i in sorted(found)]]

    like = [*inputs, *[program.outputs[i] for i in floats]]
    both = without_dead_code(traced(joint, like, program.backend, program.name))
    forward, backward, kept = divided(both, len(inputs), count)

    def pull_back(cotangents: Any, ys: Any, xs: Any, params: Any) -> list[Tensor | None]:
        """The cotangents of the operands."""
        given = [ys[i].zeros_like() if cotangents[i] is None else cotangents[i] for i in floats]
        pulled = call(backward, [*given, *[(*xs, *ys)[place] for place in kept]])
        found: list[Tensor | None] = [None] * len(xs)
        for i, t in zip(reached, pulled, strict=True):
            found[i] = t
        return found

    return forward, replace(CALL, vjp_all=pull_back)


def divided(both: Program, given: int, count: int) -> tuple[Program, Program, list[int]]:
    """A program in two: what its first inputs give, and what needs its other inputs, or is computed again for it.

    Args:
        both: the program.
        given: how many inputs belong to the first part.
        count: how many outputs belong to it.

    Returns:
        The first part, with what the second needs of it as further outputs; the second, from the other inputs and what
        it needs; and the places of that among the inputs and outputs of the first.
    """
    late: set[Variable] = set(both.inputs[given:])
    first: list[Equation] = []
    second: list[Equation] = []
    for equation in both.equations:
        if equation.scope or not late.isdisjoint(equation.operands):
            late.update(equation.results)
            second.append(equation)
        else:
            first.append(equation)
    outputs, pulled = both.outputs[:count], both.outputs[count:]
    used = dict.fromkeys([v for e in second for v in e.operands])
    used.update(dict.fromkeys(pulled))
    needed = [v for v in used if v not in late and v not in both.constants and not isinstance(v, Literal)]
    known = [*both.inputs[:given], *outputs]
    known += [v for v in needed if v not in known]
    inputs = both.inputs[:given]
    forward = both.changed(inputs=inputs, outputs=tuple(known[given:]), equations=tuple(first))
    backward = both.changed(
        inputs=(*both.inputs[given:], *needed),
        outputs=pulled,
        equations=tuple(second),
        name=f"vjp of {both.name}",
    )
    return without_dead_code(forward), without_dead_code(backward), [known.index(v) for v in needed]


CALL = Op(
    "call",
    None,
    shape=lambda *args: tuple([v.shape for v in args[-1].outputs]),
    dtype=lambda *args: tuple([v.dtype for v in args[-1].outputs]),
    params=("program",),
    body=_body,
    results=None,
    whole=_Calls(),
)
