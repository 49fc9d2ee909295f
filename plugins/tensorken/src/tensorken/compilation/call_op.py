"""Calls: the op that runs a program, and the programs that its derivatives and batches are, each made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tensorken.programs.execution import prepared
from tensorken.programs.passes.dead_code import without_dead_code
from tensorken_core.errors import ProgramError
from tensorken_core.language.higher_order import SubprogramLayout
from tensorken_core.language.op import OPS, Op, register, run
from tensorken_core.levels.batch import vmap_flat_with_flags
from tensorken_core.levels.reverse import transposing
from tensorken_core.levels.trace import Trace, traced
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_core.tensor.dispatch import at_one_level
from tensorken_core.tensor.level import interpreter_below, lift
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms.grad import pull, push_forward, record


def call(program: Program, xs: Sequence[Tensor]) -> list[Tensor]:
    """Run a program as one op on its inputs, raised to one level; the outputs, flat."""
    return applied(CALL, xs, (program,))


def applied(op: Op, xs: Sequence[Tensor], params: tuple[Any, ...]) -> list[Tensor]:
    """Run an op with programs on tensors, raised to one level; its results."""
    if xs:
        xs = _in_branch(op.name, xs)
    interpreter, representations = at_one_level(op, xs)
    ys = run(interpreter, op, representations, params)
    shapes, dtypes = op.shape(*[x.shape for x in xs], *params), op.dtype(*[x.dtype for x in xs], *params)
    return [Tensor(interpreter, *facts) for facts in zip(ys, shapes, dtypes, strict=True)]


def _in_branch(name: str, xs: Sequence[Tensor]) -> Sequence[Tensor]:
    """The operands at the level of what is being traced in a branch, if that is so; though they all were captured."""
    running = interpreter_below([x.interpreter for x in xs], name)
    traces = [one for one in (running, *reversed(running.levels_below)) if isinstance(one, Trace)]
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
    """On a backend: run what has been prepared for it."""
    *xs, program = args
    backend = xs[0].interpreter if xs else program.backend
    ys = prepared(program, backend)([x.representation for x in xs])
    return tuple([Tensor(backend, y, v.shape, v.dtype) for y, v in zip(ys, program.outputs, strict=True)])


class _Calls:
    """A call goes through derivatives and batches as a call of another program."""

    def jvp(
        self, active: tuple[bool, ...], params: tuple[Any, ...]
    ) -> tuple[Op, Any, tuple[bool, ...], tuple[bool, ...]]:
        pushed, pattern = pushed_program(params[0], active)
        return CALL, (pushed,), active, pattern

    def with_residuals(self, active: tuple[bool, ...], params: tuple[Any, ...]) -> tuple[Op, Any, int]:
        (program,) = params
        key = ("record", active, transposing.get())
        forward, op = program.once(key, lambda: recorded_program(program, active))
        return op, (forward,), len(program.outputs)

    def batch(
        self, size: int, batched: tuple[bool, ...], params: tuple[Any, ...]
    ) -> tuple[Op, Any, tuple[bool, ...], tuple[bool, ...]]:
        program, pattern = batched_program(params[0], size, batched)
        return CALL, (program,), batched, pattern

    def check(self, operands: Sequence[Any], params: tuple[Any, ...]) -> None:
        check_alike("call: the operands and the inputs", operands, params[0].inputs)

    def layout(self, params: tuple[Any, ...]) -> SubprogramLayout:
        return SubprogramLayout(params, (True,) * len(params[0].inputs))

    def with_programs(self, params: Any, programs: Any, inputs: Any, outputs: Any) -> tuple[Any, ...]:
        return (*programs,)


def check_alike(what: str, given: Sequence[Any], needed: Sequence[Any]) -> None:
    """Raise a ProgramError unless values have the shapes and dtypes of others."""
    if [(v.shape, v.dtype) for v in given] != [(v.shape, v.dtype) for v in needed]:
        raise ProgramError(f"{what} differ in number, shape or dtype")


# ---- programs made of a program, each once -----------------------------------------------------------------


def pushed_program(
    program: Program, active: tuple[bool, ...], least: tuple[bool, ...] | None = None
) -> tuple[Program, tuple[bool, ...]]:
    """From inputs, and tangents of the active ones, to outputs and tangents; and which outputs have one.

    Args:
        least: which outputs have a tangent in any case, be it zeros.
    """
    count = len(program.inputs)
    forced = least or (False,) * len(program.outputs)
    pattern: list[bool] = []

    def function(*values: Tensor) -> list[Tensor]:
        rest = iter(values[count:])
        tangents = [next(rest) if one else None for one in active]
        ys, found, *_ = push_forward("jvp", lambda *xs: program.on(xs), values[:count], tangents)
        pushed = [
            y.zeros_like() if t is None and one else t for y, t, one in zip(ys, found, forced, strict=True)
        ]
        pattern[:] = [t is not None for t in pushed]
        return [*ys, *[t for t in pushed if t is not None]]

    def make() -> tuple[Program, tuple[bool, ...]]:
        like = [*program.inputs, *[v for v, one in zip(program.inputs, active, strict=True) if one]]
        return traced(function, like, program.backend, f"jvp of {program.name}"), tuple(pattern)

    return program.once(("push", active, forced), make)


def batched_program(
    program: Program, size: int, batched: tuple[bool, ...], least: tuple[bool, ...] | None = None
) -> tuple[Program, tuple[bool, ...]]:
    """From inputs, with examples along the first axis of the batched ones, to outputs; and which of these have them.

    Args:
        least: which outputs have an axis of examples in any case.
    """
    forced = least or (False,) * len(program.outputs)
    over = vmap_flat_with_flags(lambda *xs: program.on(xs), size, batched, forced)
    pattern: list[bool] = []

    def function(*xs: Tensor) -> list[Tensor]:
        ys, pattern[:] = over(*xs)
        return ys

    def make() -> tuple[Program, tuple[bool, ...]]:
        like = [
            Variable((size, *v.shape), v.dtype) if one else v
            for v, one in zip(program.inputs, batched, strict=True)
        ]
        return traced(function, like, program.backend, f"vmap of {program.name}"), tuple(pattern)

    return program.once(("batch", size, batched, forced), make)


def recorded_program(program: Program, active: tuple[bool, ...]) -> tuple[Program, Op]:
    """The program, with what its derivative needs as further outputs, and an op whose `vjp_all` uses that."""
    halves = forward_backward_of(program, active)

    def pull_back(cotangents: Any, ys: Any, xs: Any, params: Any) -> list[Tensor | None]:
        """The cotangents of the operands."""
        given = [ys[i].zeros_like() if cotangents[i] is None else cotangents[i] for i in halves.seeds]
        pulled = call(halves.backward, [*given, *[(*xs, *ys)[place] for place in halves.kept]])
        found: list[Tensor | None] = [None] * len(xs)
        for i, t in zip(halves.reached, pulled, strict=True):
            found[i] = t
        return found

    return halves.forward, replace(CALL, vjp_all=pull_back)


@dataclass(frozen=True, slots=True)
class ForwardBackward:
    """A program for reverse mode: in two, the second of which pulls cotangents back.

    Attributes:
        forward: the program, with what the other half needs as further outputs.
        backward: from cotangents of outputs, and what it needs, to those of inputs.
        seeds: the places, among the outputs, of those with cotangents.
        kept: the places of what the backward half needs among the inputs and outputs of the forward half.
        reached: the places, among the inputs, of those that get cotangents.
    """

    forward: Program
    backward: Program
    seeds: Sequence[int]
    kept: Sequence[int]
    reached: Sequence[int]


def forward_backward_of(
    program: Program,
    active: tuple[bool, ...],
    seeds: Sequence[int] | None = None,
    fixed: Sequence[int] = (),
) -> ForwardBackward:
    """The two halves of a program, when the active ones of its inputs have derivatives.

    Args:
        program: the program.
        active: which inputs.
        seeds: which outputs have cotangents; None: all that are floating-point.
        fixed: the places of inputs whose functions are computed again, rather than kept.
    """
    inputs, count = program.inputs, len(program.outputs)
    wanted = [i for i, v in enumerate(inputs) if active[i] and v.dtype.kind == "float"]
    if seeds is None:
        seeds = [i for i, v in enumerate(program.outputs) if v.dtype.kind == "float"]
    reached: list[int] = []
    linear = transposing.get()

    def joint(*values: Tensor) -> list[Tensor]:
        if not wanted:
            return list(program.on(values[: len(inputs)]))

        def function(*chosen: Tensor) -> Sequence[Tensor]:
            xs = list(values[: len(inputs)])
            for i, x in zip(wanted, chosen, strict=True):
                xs[i] = x
            return program.on(xs)

        level, ys, *_ = record("vjp", function, [values[i] for i in wanted], None, False, linear)
        found = pull(level, [ys[i] for i in seeds], list(values[len(inputs) :]), consume=True)
        places = sorted([i for i in found if i < len(wanted)])
        reached[:] = [wanted[i] for i in places]
        results = [Tensor(level.inner, y.representation.primal) for y in ys]
        return [*results, *[found[i] for i in places]]

    like = [*inputs, *[program.outputs[i] for i in seeds]]
    both = without_dead_code(traced(joint, like, program.backend, program.name))
    forward, backward, kept = partial_eval(both, len(inputs), count, fixed)
    return ForwardBackward(forward, backward, seeds, kept, reached)


ARRANGEMENTS = frozenset(OPS[name] for name in ("expand", "permute", "reshape"))
"""Ops that compute nothing: what they give is made again rather than kept."""


def partial_eval(
    both: Program, given: int, count: int, fixed: Sequence[int] = ()
) -> tuple[Program, Program, list[int]]:
    """A program in two: what its first inputs give, and what needs its other inputs, or is computed again for it.

    What has a scope of its own is computed again, and so is what a mere arrangement of other values gives.

    Args:
        both: the program.
        given: how many inputs belong to the first part.
        count: how many outputs belong to it.
        fixed: places of inputs; what follows from these alone is computed again too.

    Returns:
        The first part, with what the second needs of it as further outputs; the second, from the other inputs and what
        it needs; and the places of that among the inputs and outputs of the first.
    """
    late: set[Variable] = set(both.inputs[given:])
    same: set[Variable] = {both.inputs[i] for i in fixed}
    first: list[Equation] = []
    second: set[Equation] = set()
    again: set[Equation] = set()
    for equation in both.equations:
        if not late.isdisjoint(equation.operands):
            late.update(equation.results)
            second.add(equation)
            continue
        first.append(equation)
        if all([v in same or v in both.constants or isinstance(v, Literal) for v in equation.operands]):
            same.update(equation.results)
            again.add(equation)
        elif equation.scope or equation.op in ARRANGEMENTS:
            again.add(equation)
    outputs, pulled = both.outputs[:count], both.outputs[count:]
    used = dict.fromkeys([v for e in second for v in e.operands])
    used.update(dict.fromkeys(pulled))
    repeated: set[Equation] = set()
    for equation in reversed(first):
        if equation in again and not used.keys().isdisjoint(equation.results):
            repeated.add(equation)
            used.update(dict.fromkeys(equation.operands))
    late.update([v for e in repeated for v in e.results])
    needed = [v for v in used if v not in late and v not in both.constants and not isinstance(v, Literal)]
    inputs = both.inputs[:given]
    known = [*inputs, *outputs]
    places: dict[Variable, int] = {}
    for i, v in enumerate(known):
        places.setdefault(v, i)
    for v in needed:
        if v not in places:
            places[v] = len(known)
            known.append(v)
    forward = both.changed(inputs=inputs, outputs=tuple(known[given:]), equations=tuple(first))
    backward = both.changed(
        inputs=(*both.inputs[given:], *needed),
        outputs=pulled,
        equations=tuple(_in_need([e for e in both.equations if e in second or e in repeated], pulled)),
        name=f"vjp of {both.name}",
    )
    return without_dead_code(forward), without_dead_code(backward), [places[v] for v in needed]


def _in_need(equations: Sequence[Equation], outputs: Sequence[Variable]) -> list[Equation]:
    """The equations with those that merely arrange other values moved to where these are needed first."""
    waiting = {v: e for e in equations if not e.scope and e.op in ARRANGEMENTS for v in e.results}
    order = {e: i for i, e in enumerate(equations)}
    found: list[Equation] = []

    def take(values: Sequence[Variable]) -> None:
        taken = [waiting.pop(v) for v in values if v in waiting]
        for e in taken:  # which grows by what these need
            taken += [waiting.pop(v) for v in e.operands if v in waiting]
        found.extend(sorted(taken, key=order.__getitem__))

    for equation in equations:
        if equation.op not in ARRANGEMENTS or equation.scope:
            take(equation.operands)
            found.append(equation)
    take(outputs)
    return found


CALL = register(
    Op(
        "call",
        None,
        shape=lambda *args: tuple([v.shape for v in args[-1].outputs]),
        dtype=lambda *args: tuple([v.dtype for v in args[-1].outputs]),
        params=("program",),
        body=_body,
        results=None,
        higher_order=_Calls(),
    )
)
