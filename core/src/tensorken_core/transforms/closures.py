"""Closure conversion of custom rules: tensors of enclosing transforms that their functions close over become operands.

A function with a custom rule does not run at the level of its call: `vmap` runs it for one example, a derivative on
the primals, a program whenever it runs.  So the function and its rule are traced at the call.  If they
close over tensors of enclosing transforms, these become further operands of the op, and the traced programs replace
the functions.  Functions that close over no tensors are not replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from tensorken_core.errors import ArgumentError, ConcretizationError, EscapedTensorError
from tensorken_core.levels.trace import closure_converted
from tensorken_core.program.program import Program, Variable
from tensorken_core.tensor.level import ClosureError, Level, interpreter_below
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms.arguments import Static
from tensorken_core.transforms.user_op import Result

Flat = Callable[..., Sequence[Tensor | None]]
"""A function from tensors to tensors; None is an exact zero."""

RuleOperands = Callable[[dict[str, Program]], Sequence[Any]]
"""From the programs traced so far to values with the shapes and dtypes of the operands of a part of a rule."""

FUNCTION = "function"
"""The name of the function itself, among the names of the parts of its rule."""

MAX_CACHED_KEYS = 64
"""The largest number of cache keys for which a function is recorded as closing over no tensors."""

MAX_NESTED_RULES = 4
"""The largest number of traced rules of a function within each other.  Deeper ones run when they are needed."""

Cache = dict[Any, Result]
"""The structure of the result, by keys of calls that close over no tensors."""


@dataclass(frozen=True, slots=True)
class ConvertedFunction:
    """A traced function: its program takes captured tensors first.

    Attributes:
        program: the program.
        own: the slice of the call's captured tensors that the function itself closes over; its first inputs.
        takes_all: whether all captured tensors of the call come next, since the rule calls the function.
        is_tensor: for each result whether it is a tensor, not None.
    """

    program: Program
    own: slice
    takes_all: bool
    is_tensor: Sequence[bool]

    def __call__(self, captured: Sequence[Tensor], *xs: Tensor) -> list[Tensor | None]:
        shared = captured if self.takes_all else ()
        ys = iter(self.program.on([*captured[self.own], *shared, *xs]))
        return [next(ys) if flag else None for flag in self.is_tensor]


@dataclass(slots=True)
class RuleFunctions:
    """The user's function and the parts of its rule, at one call.

    Attributes:
        result: of the function.
        direct: the functions by name, the function itself first.
        converted: the programs that replace functions.
        captured_by_function: the number of leading captured tensors, which the function itself closes over.
    """

    result: Result
    direct: dict[str, Flat]
    converted: dict[str, ConvertedFunction] = field(default_factory=dict)
    captured_by_function: int = 0

    def run(self, part: str, captured: Sequence[Tensor], *xs: Tensor) -> list[Tensor | None]:
        """The results of the function or of a part of its rule."""
        converted = self.converted.get(part)
        return list(self.direct[part](*xs)) if converted is None else converted(captured, *xs)

    def without_captured(self) -> RuleFunctions:
        """These functions with zeros as results, for a first trace, which only finds the captured tensors."""
        outputs = self.result.outputs
        if not self.captured_by_function or outputs is None:
            return self

        def zeros(*xs: Tensor) -> list[Tensor | None]:
            base: Any = xs[0].interpreter.base
            return [Tensor(base, base.full(v.shape, 0, v.dtype), v.shape, v.dtype) for v in outputs]

        return RuleFunctions(self.result, {**self.direct, FUNCTION: zeros})


@dataclass(slots=True)
class _RuleTrace:
    """A rule that is being traced; it may call the function itself.

    Attributes:
        owner: the custom_jvp or custom_vjp.
        key: of the call.
        functions: of the call.
        captured: all captured tensors of the call, in the second trace; None in the first.
        recursive: whether the rule calls the function.
    """

    owner: object
    key: Any
    functions: RuleFunctions
    captured: list[Tensor] | None = None
    recursive: bool = False


_rule_traces: ContextVar[tuple[_RuleTrace, ...]] = ContextVar("tensorken_rule_traces", default=())


def close_over(
    functions: RuleFunctions,
    xs: Sequence[Tensor],
    operands: Mapping[str, RuleOperands],
    owner: object,
    static: Sequence[Any],
    structure: Any,
    cache: Cache | None,
) -> tuple[RuleFunctions, list[Tensor]]:
    """The functions of a call, converted if they close over tensors of enclosing transforms; and these tensors.

    Args:
        functions: of the call.
        xs: the tensors among the arguments.
        operands: of each part of the rule, in the order in which they are traced.
        owner: the custom_jvp or custom_vjp.
        static: the arguments that are not tensors.
        structure: of the arguments.
        cache: the calls that close over no tensors; None if the functions may close over other tensors at each call, so
            that they are always converted.
    """
    level = interpreter_below([x.interpreter for x in xs], functions.result.name)
    if not isinstance(level, Level):  # no enclosing transform
        return functions, []
    plain = [isinstance(x, bool | int | float | str | bytes | None) for x in static]
    # objects by identity: these keys are compared only while the call runs
    values = tuple([Static(x) if simple else id(x) for x, simple in zip(static, plain, strict=True)])
    key = structure, values, level.base, tuple([(x.shape, x.dtype) for x in xs])
    cached = cache.get(key) if cache is not None and all(plain) else None
    if cached is not None:
        functions.result.copy_from(cached)
        return functions, []
    for trace in reversed(_rule_traces.get()):
        if trace.owner is owner and trace.key == key:
            trace.recursive = True
            functions.result.copy_from(trace.functions.result)
            if trace.captured is None:
                return trace.functions.without_captured(), []
            return trace.functions, trace.captured
    if sum([trace.owner is owner for trace in _rule_traces.get()]) >= MAX_NESTED_RULES:
        raise ArgumentError(f"{functions.result.name}: its rule calls it with other arguments each time")
    captured = _convert(_RuleTrace(owner, key, functions), level, xs, operands, always=cache is None)
    if cache is not None and functions.result.outputs is not None and not captured and all(plain):
        if len(cache) >= MAX_CACHED_KEYS:
            cache.clear()
        cache[key] = Result(functions.result.name).copy_from(functions.result)
    return functions, captured


def _convert(
    trace: _RuleTrace,
    level: Level[Any],
    xs: Sequence[Tensor],
    operands: Mapping[str, RuleOperands],
    *,
    always: bool,
) -> list[Tensor]:
    """Trace the function and its rule, convert them if they close over tensors or `always`; the captured tensors."""
    functions = trace.functions
    name, converted = functions.result.name, functions.converted
    programs: dict[str, Program] = {}
    captured: list[Tensor] = []
    try:
        program, captured = closure_converted(functions.direct[FUNCTION], xs, level, name)
    except ConcretizationError:  # the function reads values, so it must run where they exist
        pass
    else:
        programs[FUNCTION] = program
        functions.result.outputs = program.outputs
        functions.captured_by_function = len(captured)
        if captured or always:
            is_tensor = [True] * len(program.outputs)
            converted[FUNCTION] = ConvertedFunction(program, slice(0, len(captured)), False, is_tensor)
    of_function = captured
    token = _rule_traces.set((*_rule_traces.get(), trace))
    try:
        parts = _trace_parts(trace, level, operands, programs, None)
        captured = [*of_function, *[x for _, closed_over, _ in parts.values() for x in closed_over]]
        if captured and trace.recursive:
            second = _trace_parts(
                trace, level, operands, programs, [Variable(x.shape, x.dtype) for x in captured]
            )
            if [(name, len(closed_over)) for name, (_, closed_over, _) in parts.items()] != [
                (name, len(closed_over)) for name, (_, closed_over, _) in second.items()
            ]:
                raise ArgumentError(
                    f"{name}: its rule closes over different tensors at each call; pass them as arguments"
                )
            parts = second
            captured = [*of_function, *[x for _, closed_over, _ in parts.values() for x in closed_over]]
    finally:
        _rule_traces.reset(token)
    if captured or always:
        start = functions.captured_by_function
        for part, (program, closed_over, is_tensor) in parts.items():
            stop = start + len(closed_over)
            takes_all = bool(captured) and trace.recursive
            converted[part] = ConvertedFunction(program, slice(start, stop), takes_all, is_tensor)
            start = stop
        for part in converted:
            functions.direct.pop(part)
    return captured


def _trace_parts(
    trace: _RuleTrace,
    level: Level[Any],
    operands: Mapping[str, RuleOperands],
    programs: dict[str, Program],
    captured: list[Variable] | None,
) -> dict[str, tuple[Program, list[Tensor], list[bool]]]:
    """For each part of a rule that can be traced: its program, its captured tensors, and which results are tensors.

    Args:
        trace: gets the captured tensors in the second trace.
        level: where the function is called.
        operands: of each part.
        programs: the program of the function; gets the programs of the parts.
        captured: the shapes and dtypes of the captured tensors of the call, in the second trace.
    """
    traced = {}
    first = captured or []
    for part, like in operands.items():
        is_tensor: list[bool] = []

        def flat(*xs: Tensor, part: str = part, is_tensor: list[bool] = is_tensor) -> list[Tensor]:
            trace.captured = None if captured is None else list(xs[: len(first)])
            ys = trace.functions.direct[part](*xs[len(first) :])
            is_tensor[:] = [y is not None for y in ys]
            return [y for y in ys if y is not None]

        try:
            program, closed_over = closure_converted(
                flat, [*first, *like(programs)], level, trace.functions.result.name
            )
        except (ClosureError, EscapedTensorError):  # the enclosing transform must be traced
            raise
        except Exception:  # noqa: BLE001, a rule that fails runs again when it is needed, and raises then
            break
        finally:
            trace.captured = None
        programs[part] = program
        traced[part] = (program, closed_over, is_tensor)
    return traced
