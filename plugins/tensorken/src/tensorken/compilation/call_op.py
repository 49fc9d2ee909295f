"""Calls: the op that runs a program, and the programs of its derivatives and batches, which are cached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tensorken.programs.execution import prepared
from tensorken.programs.passes.dead_code import without_dead_code
from tensorken_core.errors import ProgramError
from tensorken_core.language.higher_order import SubprogramLayout
from tensorken_core.language.op import OPS, Op, register, run
from tensorken_core.levels.batch import Axis, run_batched
from tensorken_core.levels.reverse import transposing
from tensorken_core.levels.trace import Trace, traced
from tensorken_core.program.program import Equation, Literal, Program, Variable, opaque_ops
from tensorken_core.tensor.dispatch import at_one_level
from tensorken_core.tensor.level import interpreter_below, lift, lifted
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms.grad import jvp_flat, pull, record


def call(program: Program, xs: Sequence[Tensor]) -> list[Tensor]:
    """Run a program as one op on its inputs, lifted to one level; return the flat outputs."""
    return apply_higher_order(CALL, xs, (program,))


def apply_higher_order(op: Op, xs: Sequence[Tensor], params: tuple[Any, ...]) -> list[Tensor]:
    """Run an op that takes programs on tensors, lifted to one level; return its results."""
    if opaque_ops(params):  # they run when the program runs that is being traced
        interpreter = interpreter_below([x.interpreter for x in xs], op.name)
        representations = [lifted(x, interpreter) for x in xs]
    else:
        interpreter, representations = at_one_level(op, _in_branch(op.name, xs) if xs else xs)
    ys = run(interpreter, op, representations, params)
    shapes, dtypes = op.shape(*[x.shape for x in xs], *params), op.dtype(*[x.dtype for x in xs], *params)
    return [Tensor(interpreter, *parts) for parts in zip(ys, shapes, dtypes, strict=True)]


def _in_branch(name: str, xs: Sequence[Tensor]) -> Sequence[Tensor]:
    """In a branch that is being traced, lift the operands to the trace, even if all of them are captured."""
    running = interpreter_below([x.interpreter for x in xs], name)
    traces = [level for level in (running, *reversed(running.levels_below)) if isinstance(level, Trace)]
    if not any([trace.in_branch for trace in traces]):
        return xs
    level = traces[0]
    return [
        Tensor(level, lift(x.representation, x.interpreter, level), x.shape, x.dtype)
        if x.interpreter in level.levels_below
        else x
        for x in xs
    ]


def _body(*args: Any) -> tuple[Tensor, ...]:
    """On a backend: run the prepared program; without operands the first argument is the backend."""
    *operands, program = args
    xs = [x for x in operands if isinstance(x, Tensor)]
    backend: Any = xs[0].interpreter if xs else operands[0]
    ys = prepared(program, backend)([x.representation for x in xs])
    return tuple([Tensor(backend, y, v.shape, v.dtype) for y, v in zip(ys, program.outputs, strict=True)])


class _CallRules:
    """JVP, VJP and batching rules: each is a call of another program."""

    def jvp(
        self, active: tuple[bool, ...], params: tuple[Any, ...]
    ) -> tuple[Op, Any, tuple[bool, ...], tuple[bool, ...]]:
        program, pattern = jvp_program(params[0], active)
        return CALL, (program,), active, pattern

    def with_residuals(self, active: tuple[bool, ...], params: tuple[Any, ...]) -> tuple[Op, Any, int]:
        (program,) = params
        key = ("record", active, transposing.get())
        forward, op = program.once(key, lambda: recorded_program(program, active))
        return op, (forward,), len(program.outputs)

    def batch(
        self, axis: Axis, batched: tuple[bool, ...], params: tuple[Any, ...]
    ) -> tuple[Op, Any, tuple[bool, ...], tuple[bool, ...]]:
        program, pattern = batched_program(params[0], axis, batched)
        return CALL, (program,), batched, pattern

    def check(self, operands: Sequence[Any], params: tuple[Any, ...]) -> None:
        check_alike("call: the operands and the inputs", operands, params[0].inputs)

    def layout(self, params: tuple[Any, ...]) -> SubprogramLayout:
        return SubprogramLayout(params, (True,) * len(params[0].inputs))

    def with_programs(self, params: Any, programs: Any, inputs: Any, outputs: Any) -> tuple[Any, ...]:
        return (*programs,)


def check_alike(what: str, values: Sequence[Any], expected: Sequence[Any]) -> None:
    """Raise a ProgramError unless values have the shapes and dtypes of the expected values."""
    if [(v.shape, v.dtype) for v in values] != [(v.shape, v.dtype) for v in expected]:
        raise ProgramError(f"{what} differ in number, shape or dtype")


# ---- programs derived from a program, cached ---------------------------------------------------------------


def jvp_program(
    program: Program, active: tuple[bool, ...], instantiate: tuple[bool, ...] | None = None
) -> tuple[Program, tuple[bool, ...]]:
    """The JVP program, from inputs and tangents of active inputs to outputs and their tangents; and which outputs
    have a tangent.

    Args:
        instantiate: which outputs must have a tangent, if necessary zeros.
    """
    count = len(program.inputs)
    instantiated = instantiate or (False,) * len(program.outputs)
    pattern: list[bool] = []

    def function(*values: Tensor) -> list[Tensor]:
        rest = iter(values[count:])
        tangents = [next(rest) if flag else None for flag in active]
        ys, pushed, *_ = jvp_flat("jvp", lambda *xs: program.on(xs), values[:count], tangents)
        tangents_out = [
            y.zeros_like() if t is None and flag else t
            for y, t, flag in zip(ys, pushed, instantiated, strict=True)
        ]
        pattern[:] = [t is not None for t in tangents_out]
        return [*ys, *[t for t in tangents_out if t is not None]]

    def make() -> tuple[Program, tuple[bool, ...]]:
        like = [*program.inputs, *[v for v, flag in zip(program.inputs, active, strict=True) if flag]]
        return traced(function, like, program.backend, f"jvp of {program.name}"), tuple(pattern)

    return program.once(("push", active, instantiated), make)


def batched_program(
    program: Program, axis: Axis, batched: tuple[bool, ...], instantiate: tuple[bool, ...] | None = None
) -> tuple[Program, tuple[bool, ...]]:
    """The batched program, whose batched inputs have examples along the first axis; and which of its outputs are
    batched.

    Args:
        instantiate: which outputs must be batched.
    """
    instantiated = instantiate or (False,) * len(program.outputs)
    pattern: list[bool] = []

    def function(*xs: Tensor) -> list[Tensor]:
        ys, pattern[:] = run_batched(lambda *xs: program.on(xs), axis, batched, xs, instantiated)
        return ys

    def make() -> tuple[Program, tuple[bool, ...]]:
        like = [
            Variable(axis.stacked(v.shape), v.dtype) if flag else v
            for v, flag in zip(program.inputs, batched, strict=True)
        ]
        return traced(function, like, program.backend, f"vmap of {program.name}"), tuple(pattern)

    return program.once(("batch", axis, batched, instantiated), make)


def recorded_program(program: Program, active: tuple[bool, ...]) -> tuple[Program, Op]:
    """The forward program, with residuals as further outputs, and an op whose `vjp_all` uses the residuals."""
    forward_backward = forward_backward_of(program, active)

    def pull_back(cotangents: Any, ys: Any, xs: Any, params: Any) -> list[Tensor | None]:
        """The cotangents of the operands."""
        seeded = [
            ys[i].zeros_like() if cotangents[i] is None else cotangents[i] for i in forward_backward.seeds
        ]
        pulled = call(
            forward_backward.backward,
            [*seeded, *[(*xs, *ys)[index] for index in forward_backward.residuals]],
        )
        result: list[Tensor | None] = [None] * len(xs)
        for i, t in zip(forward_backward.with_cotangents, pulled, strict=True):
            result[i] = t
        return result

    return forward_backward.forward, replace(CALL, vjp_all=pull_back)


@dataclass(frozen=True, slots=True)
class ForwardBackward:
    """The forward and backward programs of reverse mode.

    Attributes:
        forward: the program with the residuals as further outputs.
        backward: from the cotangents of outputs, and the residuals, to the cotangents of inputs.
        seeds: the indices of the outputs with cotangents.
        residuals: the indices of the residuals among the inputs and outputs of the forward program.
        with_cotangents: the indices of the inputs that get cotangents.
    """

    forward: Program
    backward: Program
    seeds: Sequence[int]
    residuals: Sequence[int]
    with_cotangents: Sequence[int]


def forward_backward_of(
    program: Program,
    active: tuple[bool, ...],
    seeds: Sequence[int] | None = None,
    invariant: Sequence[int] = (),
) -> ForwardBackward:
    """The forward and backward programs of a program.

    Args:
        program: the program.
        active: which inputs are differentiated.
        seeds: the indices of the outputs that have cotangents; None for all floating-point outputs.
        invariant: the indices of inputs that are the same at each step of a loop; values that depend only on these are
            recomputed instead of being residuals.
    """
    inputs, output_count = program.inputs, len(program.outputs)
    differentiated = [i for i, v in enumerate(inputs) if active[i] and v.dtype.kind == "float"]
    if seeds is None:
        seeds = [i for i, v in enumerate(program.outputs) if v.dtype.kind == "float"]
    with_cotangents: list[int] = []
    linear = transposing.get()
    effects = 0  # in the forward program

    def forward_and_backward(*values: Tensor) -> list[Tensor]:
        nonlocal effects
        if not differentiated:
            outputs = list(program.on(values[: len(inputs)]))
            effects = sum([e.has_effect for e in program.equations])
            return outputs

        def function(*primals: Tensor) -> Sequence[Tensor]:
            xs = list(values[: len(inputs)])
            for i, x in zip(differentiated, primals, strict=True):
                xs[i] = x
            return program.on(xs)

        level, ys, *_ = record("vjp", function, [values[i] for i in differentiated], None, False, linear)
        trace: Any = values[0].interpreter
        effects = sum([e.has_effect for e in trace.equations])
        cotangents = pull(level, [ys[i] for i in seeds], list(values[len(inputs) :]), consume=True)
        indices = sorted([i for i in cotangents if i < len(differentiated)])
        with_cotangents[:] = [differentiated[i] for i in indices]
        results = [Tensor(level.inner, y.representation.primal) for y in ys]
        return [*results, *[cotangents[i] for i in indices]]

    like = [*inputs, *[program.outputs[i] for i in seeds]]
    both = without_dead_code(traced(forward_and_backward, like, program.backend, program.name))
    forward, backward, residuals = partial_eval(both, len(inputs), output_count, invariant, effects)
    return ForwardBackward(forward, backward, seeds, residuals, with_cotangents)


CHEAP_OPS = frozenset(OPS[name] for name in ("expand", "permute", "reshape"))
"""Ops that compute nothing: their results are recomputed instead of being residuals."""


def partial_eval(
    program: Program, input_count: int, output_count: int, invariant: Sequence[int] = (), effects: int = 0
) -> tuple[Program, Program, list[int]]:
    """Split a program in two: the equations that depend only on its first inputs, and the rest.

    Equations in another scope than the program's are recomputed in the second program, and so are cheap ops; opaque
    ops only in another scope.

    Args:
        program: the program.
        input_count: the number of inputs of the first program.
        output_count: the number of outputs of the first program.
        invariant: the indices of inputs; values that depend only on these are recomputed too.
        effects: the number of equations with effects in the first program; those after these are in the second.

    Returns:
        The first program, with the residuals as further outputs; the second program, from the other inputs and the
        residuals; and the indices of the residuals among the inputs and outputs of the first program.
    """
    second_values: set[Variable] = set(program.inputs[input_count:])
    invariant_values: set[Variable] = {program.inputs[i] for i in invariant}
    first: list[Equation] = []
    second: set[Equation] = set()
    recomputable: set[Equation] = set()
    may_be_opaque = bool(program.opaque)
    for equation in program.equations:
        opaque = may_be_opaque and bool(equation.opaque)
        has_effect = opaque and equation.has_effect
        effects -= has_effect
        if not second_values.isdisjoint(equation.operands) or (has_effect and effects < 0):
            second_values.update(equation.results)
            second.add(equation)
            continue
        first.append(equation)
        if opaque and not equation.scope:
            continue
        if all(
            [
                v in invariant_values or v in program.constants or isinstance(v, Literal)
                for v in equation.operands
            ]
        ):
            invariant_values.update(equation.results)
            recomputable.add(equation)
        elif equation.scope or equation.op in CHEAP_OPS:
            recomputable.add(equation)
    outputs, pulled = program.outputs[:output_count], program.outputs[output_count:]
    used = dict.fromkeys([v for e in second for v in e.operands])
    used.update(dict.fromkeys(pulled))
    recomputed: set[Equation] = set()
    for equation in reversed(first):
        if equation in recomputable and not used.keys().isdisjoint(equation.results):
            recomputed.add(equation)
            used.update(dict.fromkeys(equation.operands))
    second_values.update([v for e in recomputed for v in e.results])
    needed = [
        v
        for v in used
        if v not in second_values and v not in program.constants and not isinstance(v, Literal)
    ]
    inputs = program.inputs[:input_count]
    available = [*inputs, *outputs]
    indices: dict[Variable, int] = {}
    for i, v in enumerate(available):
        indices.setdefault(v, i)
    for v in needed:
        if v not in indices:
            indices[v] = len(available)
            available.append(v)
    forward = program.changed(inputs=inputs, outputs=tuple(available[input_count:]), equations=tuple(first))
    backward = program.changed(
        inputs=(*program.inputs[input_count:], *needed),
        outputs=pulled,
        equations=tuple(
            _sink_cheap_ops([e for e in program.equations if e in second or e in recomputed], pulled)
        ),
        name=f"vjp of {program.name}",
    )
    return without_dead_code(forward), without_dead_code(backward), [indices[v] for v in needed]


def _sink_cheap_ops(equations: Sequence[Equation], outputs: Sequence[Variable]) -> list[Equation]:
    """The equations, with each cheap op moved to just before its first use."""
    deferred = {v: e for e in equations if not e.scope and e.op in CHEAP_OPS for v in e.results}
    order = {e: i for i, e in enumerate(equations)}
    sunk: list[Equation] = []

    def take(values: Sequence[Variable]) -> None:
        taken = [deferred.pop(v) for v in values if v in deferred]
        for e in taken:  # the list grows by the cheap operands of its equations
            taken += [deferred.pop(v) for v in e.operands if v in deferred]
        sunk.extend(sorted(taken, key=order.__getitem__))

    for equation in equations:
        if equation.op not in CHEAP_OPS or equation.scope:
            take(equation.operands)
            sunk.append(equation)
    take(outputs)
    return sunk


CALL = register(
    Op(
        "call",
        None,
        shape=lambda *args: tuple([v.shape for v in args[-1].outputs]),
        dtype=lambda *args: tuple([v.dtype for v in args[-1].outputs]),
        params=("program",),
        body=_body,
        results=None,
        higher_order=_CallRules(),
    )
)
