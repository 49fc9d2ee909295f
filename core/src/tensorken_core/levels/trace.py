"""Trace: a level that computes nothing and records every op as an equation of a Program."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from tensorken_core.errors import ConcretizationError, NestingError
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
_PRESERVE_FILL_VALUE = frozenset(OPS[name] for name in ("reshape", "expand", "permute", "flip", "crop"))
"""Ops that map a tensor of equal elements to a tensor with the same fill value."""


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of a traced function, for messages.

    Attributes:
        transform: the function that the user called.
        name: the name of the traced function.
        labels: the names of the inputs in the traced function; fewer than the inputs if some are unknown.
        static: the names of the arguments that can be made static.
    """

    transform: str = "trace"
    name: str = "the function"
    labels: Callable[[], Sequence[str]] = list
    static: frozenset[str] = frozenset()


class Trace(Level[Variable]):
    """Records ops as equations; its values have shapes and dtypes only.

    An op whose operands are all captured runs at their level, and its result is a constant of the program.
    """

    transform = "trace"
    hint = "return it from the function"
    placeholder = "without values"
    in_branch = False
    """Whether it traces a branch of `cond`, in which nothing may run eagerly before the branch is chosen."""

    def __init__(
        self, inner: Interpreter[Any], inputs: Sequence[Variable] = (), source: Source | None = None
    ) -> None:
        super().__init__(inner)
        self.eager = False
        self.source = source or Source()
        self._inputs = inputs
        self._dependences = {v: 1 << i for i, v in enumerate(inputs)}
        """The inputs that each value depends on, one bit for each."""
        self._dependences_known = 0
        """The number of equations whose results have recorded dependences."""
        self.equations: list[Equation] = []
        self.constants: dict[Variable, Tensor] = {}
        self._captured: dict[int, Variable] = {}

    def shape(self, x: Variable) -> Shape:
        return x.shape

    def dtype(self, x: Variable) -> DType:
        return x.dtype

    def lift_from(self, x: Any, start: Interpreter[Any]) -> Variable:
        """Capture a value of any level below as a constant; the same value becomes the same constant."""
        captured = self._captured.get(id(x))
        if captured is not None:
            return captured
        shape, dtype = start.shape(x), start.dtype(x)
        number = start.fill_value(x) if isinstance(start, RawTensor) else None
        if number is not None:
            return Literal(shape, dtype, number)
        variable = Variable(shape, dtype)
        # This keeps x alive, so no other value takes its id.
        self.constants[variable] = Tensor(start, x, shape, dtype)
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
        """The error for a read of a value; it names the arguments that the value depends on."""
        source, line, depends = self.source, users_line(), ""
        hint = "choose by tk.where or tk.cond, and loop by tk.scan, tk.fori_loop or tk.while_loop"
        arguments = self._arguments_of(x)
        names = [*arguments]
        if names:
            shown = names[:3] if len(names) <= 3 else [*names[:2], f"{len(names) - 2} more"]
            listed = " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
            depends = f", as it depends on the argument{'' if len(names) == 1 else 's'} {listed}"
            if source.static.issuperset(names) and all([v.shape == () for v in arguments.values()]):
                static, them = (names[0], "it") if len(names) == 1 else (names, "them")
                hint += f", or make {them} static: tk.jit(f, static_argnames={static!r})"
        return ConcretizationError(
            f"{source.transform}: this {x.dtype.name} of shape {x.shape} has no value while {source.name} is traced"
            f"{depends}{'' if line is None else f' (at {line})'}; {hint}"
        )

    def _arguments_of(self, x: Variable) -> dict[str, Variable]:
        """The inputs that a value depends on, by their names in the function; inputs without a name are missing."""
        dependences = self._dependences
        for equation in self.equations[self._dependences_known :]:
            bits = 0
            for v in equation.operands:
                bits |= dependences.get(v, 0)
            if bits:
                dependences.update(dict.fromkeys(equation.results, bits))
        self._dependences_known = len(self.equations)
        inputs = dependences.get(x, 0)
        labels = zip(self.source.labels(), self._inputs, strict=False) if inputs else ()
        return {label: v for i, (label, v) in enumerate(labels) if inputs >> i & 1}

    def interpret(self, op: Op, operands: Sequence[Variable], params: tuple[Any, ...]) -> Any:
        if self.closed:
            raise self.escaped_error(op.name)
        if op in _PRESERVE_FILL_VALUE and isinstance(operands[0], Literal):
            return Literal(op.shape(operands[0].shape, *params), operands[0].dtype, operands[0].value)
        if op.results is None and op.higher_order is None and not op.opaque:
            op, params = self._with_program(op, operands, params)
        shapes = op.shape(*[x.shape for x in operands], *params)
        dtypes = op.dtype(*[x.dtype for x in operands], *params)
        one = op.results == 1
        results = (
            (Variable(shapes, dtypes),)
            if one
            else tuple([Variable(*parts) for parts in zip(shapes, dtypes, strict=True)])
        )
        self.equations.append(Equation(op, tuple(operands), params, results, users_line(), _scope.get()))
        return results[0] if one else results

    def _with_program(
        self, op: Op, operands: Sequence[Variable], params: tuple[Any, ...]
    ) -> tuple[Op, tuple[Any, ...]]:
        """An op with a user's body and rules, as an op with the program of the body."""
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


MIN_NESTED = 20
"""From this many traced functions within each other on, a recursion that is too deep is explained by them."""


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
        inner: the level below the trace; values of it, or of levels below, become constants.
        name: the name of the program.
        source: the origin of the function, for messages.
    """
    if OBSERVERS:
        return notify(_traced, inner, TRACING, (), (function, like, source, name))  # type: ignore[no-any-return]
    return _traced(inner, TRACING, (), (function, like, source, name))


def _traced(inner: Interpreter[Any], _: Op, __: Sequence[Any], params: tuple[Any, ...]) -> Program:
    function, like, source, name = params
    inputs = tuple([Variable(x.shape, x.dtype) for x in like])
    level = Trace(inner, inputs, source)
    with current_level(level), _in_scope(0):
        try:
            ys = function(*[Tensor(level, v, v.shape, v.dtype) for v in inputs])
        except RecursionError as error:
            depth = sum([isinstance(x, Trace) for x in level.levels_below]) + 1
            if depth < MIN_NESTED or isinstance(error, NestingError):  # a recursion of the user's
                raise
            raise NestingError(
                f"{name}: Python's recursion limit of {sys.getrecursionlimit()} is too low for {depth} traced "
                f"functions within each other; transform only the outermost, or raise it by sys.setrecursionlimit"
            ) from None
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
    """The program of a function, whose first inputs are the tensors of enclosing transforms that it closes over.

    Args:
        transform: the function that the user called, for messages; within a trace they name the outer trace.

    Returns:
        The program, and the tensors of its first inputs.
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
"""The op that observers see while a function is traced; no interpreter runs it."""


def _numbered(equations: Sequence[Equation]) -> tuple[Equation, ...]:
    """The equations, with their scopes renumbered in the order of appearance."""
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
    """Give the equations traced within the block a new scope: no pass merges them with equations of other scopes."""
    return _in_scope(next(_numbers))
