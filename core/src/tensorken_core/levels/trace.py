"""Tracing: a level that computes nothing and writes every op down in a Program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from tensorken_core.errors import ConcretizationError
from tensorken_core.language.dtypes import DType
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.language.observe import OBSERVERS, notify
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_core.source_line import users_line
from tensorken_core.tensor.level import ClosureError, Level, current_level, lift
from tensorken_core.tensor.tensor import Tensor, result_at

_scope: ContextVar[int] = ContextVar("tensorken_scope_of_equations", default=0)
_numbers = itertools.count(1)  # gives each scope its own
_KEEP_THE_NUMBER = frozenset(OPS[name] for name in ("reshape", "expand", "permute", "flip", "crop"))
"""Ops that make of a tensor of equal elements another one of the same number."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a traced function came from, for messages.

    Attributes:
        transform: the function that the user called.
        name: the name of the traced function.
        labels: what the traced function calls its inputs; fewer than these where that is not known.
        static: the names of arguments that can be made static.
    """

    transform: str = "trace"
    name: str = "the function"
    labels: Callable[[], Sequence[str]] = list
    static: frozenset[str] = frozenset()


class Trace(Level[Variable]):
    """Writes down ops as equations; of the values it knows shapes and dtypes alone.

    What an op on captured tensors gives is computed at the level of these, as always, and so is a constant here.
    """

    transform = "trace"
    hint = "return it from the function"
    placeholder = "without values"
    in_branch = False
    """Whether it traces a branch, so that what may take long, or for ever, must not run before the choice."""

    def __init__(
        self, inner: Interpreter[Any], inputs: Sequence[Variable] = (), source: Source | None = None
    ) -> None:
        super().__init__(inner)
        self.source = source or Source()
        self._inputs = inputs
        self._behind = {
            v: 1 << i for i, v in enumerate(inputs)
        }  # the inputs that a value depends on, a bit each
        self._looked_at = 0  # how many equations that has been found for
        self.equations: list[Equation] = []
        self.constants: dict[Variable, Tensor] = {}
        self._captured: dict[int, Variable] = {}

    def shape(self, x: Variable) -> Shape:
        return x.shape

    def dtype(self, x: Variable) -> DType:
        return x.dtype

    def lift_from(self, x: Any, start: Interpreter[Any]) -> Variable:
        """Capture a value of any level below, each once."""
        known = self._captured.get(id(x))
        if known is not None:
            return known
        shape, dtype = start.shape(x), start.dtype(x)
        number = start.number(x) if isinstance(start, RawTensor) else None
        if number is not None:
            return Literal(shape, dtype, float(number) if dtype.kind == "float" else number)
        variable = Variable(shape, dtype)
        self.constants[variable] = Tensor(start, x, shape, dtype)  # which keeps x alive, and so its id
        self._captured[id(x)] = variable
        return variable

    def lift(self, x: Any) -> Variable:
        return self.lift_from(x, self.inner)

    def lower(self, x: Variable) -> Any:
        if isinstance(x, Literal):
            base: Any = self.base
            return lift(base.full(x.shape, x.value, x.dtype), base, self.inner)
        constant = self.constants.get(x)
        if constant is not None:
            return lift(constant.representation, constant.interpreter, self.inner)
        raise self._unknown_value(x)

    def _unknown_value(self, x: Variable) -> ConcretizationError:
        """The error of who asks for a value: it names the arguments that the value depends on."""
        source, line, depends = self.source, users_line(), ""
        way_out = "choose by tk.where or tk.cond, and loop by tk.scan, tk.fori_loop or tk.while_loop"
        behind = self._arguments_behind(x)
        names = [*behind]
        if names:
            shown = names[:3] if len(names) <= 3 else [*names[:2], f"{len(names) - 2} more"]
            listed = " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
            depends = f", as it depends on the argument{'' if len(names) == 1 else 's'} {listed}"
            if source.static.issuperset(names) and all([v.shape == () for v in behind.values()]):
                static, them = (names[0], "it") if len(names) == 1 else (names, "them")
                way_out += f", or make {them} static: tk.jit(f, static_argnames={static!r})"
        return ConcretizationError(
            f"{source.transform}: this {x.dtype.name} of shape {x.shape} has no value while {source.name} is traced"
            f"{depends}{'' if line is None else f' (at {line})'}; {way_out}"
        )

    def _arguments_behind(self, x: Variable) -> dict[str, Variable]:
        """What the function calls the inputs that a value depends on; none where that is not known."""
        behind = self._behind
        for equation in self.equations[self._looked_at :]:
            found = 0
            for v in equation.operands:
                found |= behind.get(v, 0)
            if found:
                behind.update(dict.fromkeys(equation.results, found))
        self._looked_at = len(self.equations)
        inputs = behind.get(x, 0)
        labels = zip(self.source.labels(), self._inputs, strict=False) if inputs else ()
        return {label: v for i, (label, v) in enumerate(labels) if inputs >> i & 1}

    def interpret(self, op: Op, operands: Sequence[Variable], params: tuple[Any, ...]) -> Any:
        if self.closed:
            raise self.escaped_error(op.name)
        if op in _KEEP_THE_NUMBER and isinstance(operands[0], Literal):
            return Literal(op.shape(operands[0].shape, *params), operands[0].dtype, operands[0].value)
        if op.results is None and op.higher_order is None:
            op, params = self._with_program(op, operands, params)
        shapes = op.shape(*[x.shape for x in operands], *params)
        dtypes = op.dtype(*[x.dtype for x in operands], *params)
        one = op.results == 1
        results = (
            (Variable(shapes, dtypes),)
            if one
            else tuple([Variable(*facts) for facts in zip(shapes, dtypes, strict=True)])
        )
        self.equations.append(Equation(op, tuple(operands), params, results, users_line(), _scope.get()))
        return results[0] if one else results

    def _with_program(
        self, op: Op, operands: Sequence[Variable], params: tuple[Any, ...]
    ) -> tuple[Op, tuple[Any, ...]]:
        """An op with a body and rules of a user's: the program that its body is, beside its rules."""
        body: Any = op.body
        source = Source(self.source.transform, op.name)
        inner = traced(lambda *xs: body(*xs, *params), operands, self, op.name, source)
        if any([x.interpreter.below is not None for x in inner.constants.values()]):
            raise ClosureError(op.name)
        return replace(
            op,
            params=("program",),
            shape=lambda *args: tuple([v.shape for v in args[-1].outputs]),
            dtype=lambda *args: tuple([v.dtype for v in args[-1].outputs]),
            body=lambda *args: args[-1].on(args[:-1]),
            tape_needs={},
            result_dtypes={},
        ), (inner,)


def traced(
    function: Callable[..., Any],
    like: Sequence[Any],
    inner: Interpreter[Any],
    name: str = "program",
    source: Source | None = None,
) -> Program:
    """The program of a function from tensors to a sequence of tensors.

    Args:
        function: called once, with tensors that have no values.
        like: anything with a shape and a dtype, one for each argument.
        inner: the level that the function stands on: what it uses from there or from below becomes a constant.
        name: of the program.
        source: where the function came from, for messages.
    """
    if OBSERVERS:
        return notify(_traced, inner, TRACING, (), (function, like, source, name))  # type: ignore[no-any-return]
    return _traced(inner, TRACING, (), (function, like, source, name))


def _traced(inner: Interpreter[Any], _: Op, __: Sequence[Any], params: tuple[Any, ...]) -> Program:
    function, like, source, name = params
    inputs = tuple([Variable(x.shape, x.dtype) for x in like])
    level = Trace(inner, inputs, source)
    with current_level(level), _in_scope(0):
        ys = function(*[Tensor(level, v, v.shape, v.dtype) for v in inputs])
        outputs = tuple([result_at(level, y).representation for y in ys])
    equations = _numbered(level.equations)
    return Program(inputs, outputs, equations, level.constants, name=name, backend=inner.base)


def closure_converted(
    function: Callable[..., Any],
    like: Sequence[Any],
    inner: Interpreter[Any],
    name: str,
    transform: str = "trace",
) -> tuple[Program, list[Tensor]]:
    """The program of a function, with the tensors of enclosing transforms that it closes over as its first inputs.

    Args:
        transform: the function that the user called, for messages; within a trace they name what traces.

    Returns:
        The program, and those tensors.
    """
    traces = [level for level in (*inner.levels_below, inner) if isinstance(level, Trace)]
    source = Source(traces[-1].source.transform if traces else transform, name)
    program = traced(function, like, inner, name, source)
    above = {v: x for v, x in program.constants.items() if x.interpreter.below is not None}
    constants = {v: x for v, x in program.constants.items() if v not in above}
    return program.changed(inputs=(*above, *program.inputs), constants=constants), list(above.values())


TRACING = Op(
    "tracing",
    0,
    shape=lambda *args: (),
    dtype=lambda *args: (),
    params=("data", "data", "data", "data"),
    results=0,
)
"""The tracing of a function, as who watches sees it; no interpreter meets it."""


def _numbered(equations: Sequence[Equation]) -> tuple[Equation, ...]:
    """The equations with the scopes numbered in the order in which they appear."""
    numbers = {0: 0}
    return tuple(
        [replace(e, scope=numbers.setdefault(e.scope, len(numbers))) if e.scope else e for e in equations]
    )


@contextmanager
def _in_scope(number: int) -> Iterator[None]:
    token = _scope.set(number)
    try:
        yield
    finally:
        _scope.reset(token)


def scope() -> AbstractContextManager[None]:
    """What is traced within the block has a scope of its own: nothing in it is merged with what is outside."""
    return _in_scope(next(_numbers))
