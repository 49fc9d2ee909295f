"""Adjoints: the op-graph view of reverse mode: the ops that compute derivatives are added to the graph of a program.

Every value of the program supports three steps.  Its adjoint, the derivative of the output by the value, is
*initialised* by the first contribution of a value that was computed from it, *incremented* by the others, and
*finalised* once, when all who use the value have been: then it goes through the rule of the op that made the value, to
the operands of this.  A value whose increments go *straight on* through the rule keeps nothing.  The rules are those of
the op table, run while a `Trace` writes down what they do; what is here is the order, and who keeps what.

Source: "Autodiff" in the documentation of Intel's nGraph, whose `generate_adjoints` is an op's `vjp` here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal as OneOf

from tensorken import tree
from tensorken.arguments import result_at
from tensorken.errors import ArgumentError, GradientError
from tensorken.levels import ground, running
from tensorken.programs.names import Names, labels
from tensorken.programs.program import Equation, Literal, Program, Variable
from tensorken.programs.text import text
from tensorken.tensor import Tensor
from tensorken.tracing import Trace

Choice = int | str | Variable
"""A value of a program: the place of an input or its name, or the value itself."""

Strategy = OneOf["accumulate", "pass on"]

STEPS = ("initialise", "increment", "pass on", "finalise")

FEW = 2
"""So many increments may go straight on through a rule that costs nothing; more would meet more of them below."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step of one adjoint.

    Attributes:
        kind: initialise, increment, pass on (an increment that goes straight on) or finalise.
        value: whose adjoint.
        place: how many equations of the program of the adjoints stand before it.
        term: the contribution; for finalise the whole adjoint, None if nothing was kept.
    """

    kind: str
    value: Variable
    place: int
    term: Variable | None


@dataclass(frozen=True, slots=True, eq=False)
class Adjoint:
    """What became of the adjoint of one value; places count equations of the program of the adjoints.

    Attributes:
        kept: whether it was accumulated; if not, each increment went straight on.
        initialised: where the first contribution arrived.
        increments: how many contributions arrived, the first among them.
        finalised: where it was complete, and its storage could be freed.
    """

    kept: bool
    initialised: int
    increments: int
    finalised: int


@dataclass(frozen=True, slots=True, eq=False)
class Adjoints:
    """A program with the ops that compute the adjoints, and how each adjoint came about.

    Attributes:
        forward: the program whose derivatives these are.
        program: from the same arguments to the adjoints that were asked for; the forward equations stand first.
        steps: all steps, in their order.
    """

    forward: Program
    program: Program
    steps: tuple[Step, ...]

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run the program."""
        return self.program(*arguments, **keywords)

    @property
    def record(self) -> Mapping[Variable, Adjoint]:
        """For each value of the forward program that the output depends on, and that depends on an input asked for."""
        found: dict[Variable, Adjoint] = {}
        for step in self.steps:
            known = found.get(step.value)
            if known is None:
                found[step.value] = Adjoint(step.kind != "pass on", step.place, 1, step.place)
            elif step.kind == "finalise":
                found[step.value] = replace(known, finalised=step.place)
            else:
                found[step.value] = replace(known, increments=known.increments + 1)
        return found

    @property
    def added(self) -> tuple[Equation, ...]:
        """The equations that were added to those of the forward program."""
        return self.program.equations[len(self.forward.equations) :]

    @property
    def most_kept(self) -> int:
        """How many adjoints of inner values are kept at most at one time."""
        asked = {s.value for s in self.steps if s.kind == "finalise" and s.term in self.program.outputs}
        kept = most = 0
        for step in self.steps:
            if step.value not in asked and step.term is not None:
                kept += {"initialise": 1, "finalise": -1}.get(step.kind, 0)
                most = max(most, kept)
        return most

    def __str__(self) -> str:
        """The program, with each step between its equations."""
        at: dict[int, list[Step]] = {}
        for step in self.steps:
            if step.kind != "finalise" or step.term is not None:
                at.setdefault(step.place, []).append(step)

        def remarks(place: int, names: Names) -> list[str]:
            return [_told(step, names) for step in at.get(place, ())]

        return text(self.program, remarks)


def _told(step: Step, names: Names) -> str:
    assert step.term is not None
    value, term = names[step.value], names[step.term]
    if step.kind == "finalise":
        return f"{value}: finalise, the adjoint is {term}"
    return f"{value}: {step.kind} {'by' if step.kind != 'pass on' else 'the increment'} {term}"


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
    walk = _Walk(program, y, wanted, strategy)
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
    return Adjoints(program, added, tuple(walk.steps))


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


# ---- the walk ----------------------------------------------------------------------------------------------


class _Walk:
    """The equations of a program from last to first, each giving its operands what it has to."""

    def __init__(
        self, program: Program, output: Variable, wanted: Iterable[Variable], strategy: Strategy | None
    ) -> None:
        interpreters = [program.backend, *[x.interpreter for x in program.constants.values()]]
        self.level = Trace(ground(interpreters, "adjoints"))
        self.level.transform = "adjoints"
        self.level.constants.update(program.constants)
        self.output = output
        self.wanted = tuple(dict.fromkeys(wanted))
        self.strategy = strategy
        self.steps: list[Step] = []
        self.kept: dict[Variable, Tensor] = {}
        self.finished: dict[Variable, Variable] = {}
        self.active = _dependent(program, self.wanted) & _needed(program, output)
        self.forward = [self._recording(equation) for equation in program.equations]
        self.made_by = {v: e for e in self.forward for v in e.results}
        self.level.equations[:] = self.forward
        self.passing, self.arrived = self._plan(), Counter[Variable]()

    def run(self, seed: Variable) -> dict[Variable, Variable]:
        """The adjoint of each value that is wanted and that the output depends on."""
        if self.output not in self.active:
            return {}
        self.level.closed = False
        with running(self.level):
            self._increment([(self.output, self._tensor(seed))])
            for equation in reversed(self.forward):
                if any([v in self.arrived for v in equation.results]):
                    self._finalise(equation)
            for v in self.wanted:
                if v in self.kept:
                    self._step("finalise", v, self._taken(v))
        return self.finished

    # ---- who keeps what ------------------------------------------------------------------------------------

    def _plan(self) -> set[Variable]:
        """The values whose increments go straight on."""
        arrivals = Counter({self.output: 1})
        passing: set[Variable] = set()
        for equation in reversed(self.forward):
            for v in equation.results:
                if arrivals[v] and self._passes_on(v, equation, arrivals[v]):
                    passing.add(v)
            if any([arrivals[v] for v in equation.results]):
                sent = max([arrivals[v] if v in passing else 1 for v in equation.results])
                for v in equation.operands:
                    if v in self.active:
                        arrivals[v] += sent
        return passing

    def _passes_on(self, v: Variable, equation: Equation, arrivals: int) -> bool:
        if v in self.wanted or len(equation.results) > 1 or self.strategy == "accumulate":
            return False
        if self.strategy == "pass on":
            return True
        return arrivals == 1 or (arrivals <= FEW and self._is_free(equation))

    def _is_free(self, equation: Equation) -> bool:
        """Whether the rule hands increments on as they are."""
        before = len(self.level.equations)
        (y,) = equation.results
        self.level.closed = False
        with running(self.level):
            self._pulled(equation, [self._tensor(Variable(y.shape, y.dtype))])
        count = len(self.level.equations) - before
        del self.level.equations[before:]
        return count == 0

    # ---- the three steps -----------------------------------------------------------------------------------

    def _increment(self, contributions: list[tuple[Variable, Tensor]]) -> None:
        """Bring contributions to values, and further where they go straight on."""
        pending = contributions[::-1]
        while pending:
            v, t = pending.pop()
            self.arrived[v] += 1
            if v in self.passing:
                self._step("pass on", v, t)
                pending += self._contributions(self.made_by[v], [t])[::-1]
            elif v in self.kept:
                self.kept[v] = self.kept[v] + t
                made_by = self.made_by.get(v)
                origin = None if made_by is None else made_by.origin
                self.level.equations[-1] = replace(self.level.equations[-1], origin=origin)
                self._step("increment", v, t)
            else:
                self._step("initialise", v, t)
                self.kept[v] = t

    def _finalise(self, equation: Equation) -> None:
        """All that uses the results has been: what they have kept goes on, and is freed."""
        given: list[Tensor | None] = []
        for v in equation.results:
            given.append(self._taken(v) if v in self.kept else None)
            if v in self.arrived:
                self._step("finalise", v, given[-1])
        if any([t is not None for t in given]) and any([v in self.active for v in equation.operands]):
            self._increment(self._contributions(equation, given))

    def _taken(self, v: Variable) -> Tensor:
        t = self.kept.pop(v)
        if v in self.wanted:
            self.finished[v] = t.representation
        return t

    def _step(self, kind: str, v: Variable, t: Tensor | None) -> None:
        term = None if t is None else t.representation
        self.steps.append(Step(kind, v, len(self.level.equations), term))

    # ---- rules ---------------------------------------------------------------------------------------------

    def _contributions(
        self, equation: Equation, given: Sequence[Tensor | None]
    ) -> list[tuple[Variable, Tensor]]:
        """What a rule gives to the operands that need it; the equations of what they do not need go again."""
        equations = self.level.equations
        before = len(equations)
        found = self._pulled(equation, given)
        needed: set[Variable] = {t.representation for _, t in found}
        kept: list[Equation] = []
        for added in reversed(equations[before:]):
            if not needed.isdisjoint(added.results):
                needed.update(added.operands)
                kept.append(replace(added, origin=equation.origin))
        equations[before:] = kept[::-1]
        return found

    def _pulled(self, equation: Equation, given: Sequence[Tensor | None]) -> list[tuple[Variable, Tensor]]:
        op, params = equation.op, equation.params
        ys = [self._tensor(v) for v in equation.results]
        xs = [self._tensor(v) for v in equation.operands]
        if op.vjp_all is not None:
            pulled = op.vjp_all(given, ys, xs, params)
        else:
            pulled = [
                rule(given[0], *ys, *xs, *params) if rule is not None and v in self.active else None
                for v, rule in zip(equation.operands, op.vjp, strict=False)
            ]
        return [
            (v, result_at(self.level, t))
            for v, t in zip(equation.operands, pulled, strict=False)
            if t is not None and v in self.active
        ]

    def _tensor(self, v: Variable) -> Tensor:
        return Tensor(self.level, v, v.shape, v.dtype)

    def _recording(self, equation: Equation) -> Equation:
        """The equation; one that runs programs gives besides what its derivative needs."""
        op = equation.op
        active = tuple([v in self.active for v in equation.operands])
        if op.whole is None or not any(active) or self.active.isdisjoint(equation.results):
            return equation
        op, params, count = op.whole.record(active, equation.params)
        shapes = op.shape(*[v.shape for v in equation.operands], *params)
        dtypes = op.dtype(*[v.dtype for v in equation.operands], *params)
        more = [Variable(*facts) for facts in zip(shapes[count:], dtypes[count:], strict=True)]
        return replace(equation, op=op, params=params, results=(*equation.results, *more))


def _dependent(program: Program, given: Iterable[Variable]) -> set[Variable]:
    """What depends on given values by rules that have derivatives."""
    found = set(given)
    for equation in program.equations:
        op = equation.op
        if op.whole is None and op.vjp_all is None:
            on = [v for v, rule in zip(equation.operands, op.vjp, strict=False) if rule is not None]
        else:
            on = list(equation.operands)
        if not found.isdisjoint(on):
            found.update([v for v in equation.results if v.dtype.kind == "float"])
    return found


def _needed(program: Program, output: Variable) -> set[Variable]:
    """What an output is computed from, and itself."""
    found = {output}
    for equation in reversed(program.equations):
        if not found.isdisjoint(equation.results):
            found.update(equation.operands)
    return found
