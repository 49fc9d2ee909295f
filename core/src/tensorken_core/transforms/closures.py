"""Closure conversion of custom rules: what their functions close over, of enclosing transforms, becomes operands.

A function with a rule of its own runs below the level that it is called at: under `vmap` for one example, under a
derivative without it, in a program whenever that runs.  So where it is called, it and its rule are traced, and the
tensors that they close over, of that level or those below, become further operands of the op; the traced programs then
stand for the functions.  Functions that close over nothing are not replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from tensorken_core.errors import ArgumentError, ConcretizationError, EscapedTensorError
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.levels.trace import closure_converted
from tensorken_core.program.program import Program, Variable
from tensorken_core.tensor.level import ClosureError, Level
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms.arguments import Static

Flat = Callable[..., Sequence[Tensor | None]]
"""A function from tensors to tensors; None is an exact zero."""

FUNCTION = "function"
"""The name of the function itself, beside those of the parts of its rule."""

KEPT = 64
"""How many kinds of arguments a function is known to close over nothing for."""


@dataclass(slots=True)
class Facts:
    """What is known of a function of the user's for arguments of one kind, once it has been traced.

    Attributes:
        structure: of its result.
        leaves: of its result, None where a tensor stands.
        outputs: the shapes and dtypes of these tensors.
    """

    structure: Any
    leaves: list[Any]
    outputs: tuple[Variable, ...]


class Same:
    """A static argument of any kind, which is equal to itself alone."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(frozen=True, slots=True)
class CacheKey:
    """What calls must have in common to close over the same tensors."""

    structure: Any
    static: tuple[Any, ...]
    base: Any
    types: tuple[Any, ...]

    @classmethod
    def of(cls, structure: Any, static: Sequence[Any], xs: Sequence[Tensor]) -> CacheKey:
        simple = (bool, int, float, str, bytes, type(None))
        return cls(
            structure,
            tuple([Static(x) if isinstance(x, simple) else Same(x) for x in static]),
            xs[0].interpreter.base,
            tuple([(x.shape, x.dtype) for x in xs]),
        )

    @property
    def simple(self) -> bool:
        """Whether it holds no object of the user's, so that it may be kept."""
        return not any([isinstance(x, Same) for x in self.static])


@dataclass(frozen=True, slots=True)
class Converted:
    """A traced function: its program takes captured tensors first.

    Attributes:
        program: the program.
        own: where its own captured tensors stand among all of the call; it takes these first.
        takes_all: whether it then takes all captured tensors of the call too, for calls of the function itself in it.
        given: for each result whether there is a tensor.
    """

    program: Program
    own: slice
    takes_all: bool
    given: tuple[bool, ...]

    def __call__(self, captured: Sequence[Tensor], *xs: Tensor) -> list[Tensor | None]:
        every = captured if self.takes_all else ()
        ys = iter(self.program.on([*captured[self.own], *every, *xs]))
        return [next(ys) if one else None for one in self.given]


@dataclass(slots=True)
class Functions:
    """The functions of one call: a function and its rule.

    Attributes:
        name: for messages.
        direct: the user's functions, by name.
        converted: the programs in place of those that close over tensors of enclosing transforms.
        of_function: how many of the captured tensors, the first ones, the function itself closes over.
        facts: of the function; None if it cannot be traced, as it asks for values.
    """

    name: str
    direct: dict[str, Flat]
    converted: dict[str, Converted] = field(default_factory=dict)
    of_function: int = 0
    facts: Facts | None = None

    def run(self, which: str, captured: Sequence[Tensor], *xs: Tensor) -> list[Tensor | None]:
        """The results of a function; those of the rule take what the op's `primal` and its like are given."""
        converted = self.converted.get(which)
        return list(self.direct[which](*xs)) if converted is None else converted(captured, *xs)


@dataclass(slots=True)
class _Tracing:
    """The rule of a function, being traced: it may call the function itself.

    Attributes:
        owner: what the user calls.
        kind: of the arguments.
        functions: of the call that is traced.
        captured: in place of all captured tensors of that call, in the second pass; None in the first.
        called: whether the rule calls the function.
    """

    owner: Any
    kind: CacheKey
    functions: Functions
    captured: list[Tensor] | None = None
    called: bool = False


_tracings: ContextVar[tuple[_Tracing, ...]] = ContextVar("tensorken_tracings_of_rules", default=())

Part = tuple[str, Flat, Callable[[dict[str, Program]], Sequence[Any]]]
"""A part of a rule: its name, the function, and from the programs of the parts before to the likes of its operands."""


def within_own_rule(owner: Any, kind: CacheKey) -> tuple[Functions, list[Tensor]] | None:
    """For a call of a function in its own rule while that is traced: the functions, and what they close over."""
    for tracing in reversed(_tracings.get()):
        if tracing.owner is owner and tracing.kind == kind:
            tracing.called = True
            if tracing.captured is None:
                return _in_first_pass(tracing.functions), []
            return tracing.functions, tracing.captured
    return None


def _in_first_pass(functions: Functions) -> Functions:
    """The functions, without what they close over: this pass only finds out what the rule does."""
    if not functions.of_function or functions.facts is None:
        return functions
    outputs = functions.facts.outputs

    def zeros(*xs: Tensor) -> list[Tensor | None]:
        base: Any = xs[0].interpreter.base
        return [Tensor(base, base.full(v.shape, 0, v.dtype), v.shape, v.dtype) for v in outputs]

    direct = {**functions.direct, FUNCTION: zeros}
    return Functions(functions.name, direct, facts=functions.facts)


def close(
    owner: Any,
    kind: CacheKey,
    level: Interpreter[Any],
    functions: Functions,
    like: Sequence[Tensor],
    facts: Callable[[tuple[Variable, ...]], Facts],
    parts: Sequence[Part],
    *,
    convert: bool,
) -> list[Tensor]:
    """Find out what a function and the parts of its rule close over, and convert them if that is something.

    Args:
        owner: what the user calls.
        kind: of the arguments.
        level: where the function is called.
        functions: of the call; it gets the converted ones, and the facts.
        like: the operands of the function.
        facts: from the outputs of the traced function to what is known of it.
        parts: of the rule.
        convert: whether they are converted in any case.

    Returns:
        What they all close over.
    """
    assert isinstance(level, Level)
    name = functions.name
    programs: dict[str, Program] = {}
    captured: list[Tensor] = []
    try:
        program, captured = closure_converted(functions.direct[FUNCTION], like, level, name)
    except ConcretizationError:  # it asks for values, so it must run where these are
        pass
    else:
        programs[FUNCTION] = program
        functions.facts = facts(program.outputs)
        functions.of_function = len(captured)
        if captured or convert:
            functions.converted[FUNCTION] = _converted(program, slice(0, len(captured)))
    tracing = _Tracing(owner, kind, functions)
    token = _tracings.set((*_tracings.get(), tracing))
    try:
        first = _traced_parts(level, name, parts, programs, [])
        for _, own, _ in first.values():
            captured = [*captured, *own]
        if captured and tracing.called:
            for part in first:
                programs.pop(part)
            slots = [Variable(x.shape, x.dtype) for x in captured]
            second = _traced_parts(level, name, parts, programs, slots, tracing)
            if [(part, len(own)) for part, (_, own, _) in second.items()] != [
                (part, len(own)) for part, (_, own, _) in first.items()
            ]:
                raise ArgumentError(
                    f"{name}: its rule closes over other tensors each time that it is called; pass them as arguments"
                )
            captured = captured[: functions.of_function]
            for _, own, _ in second.values():
                captured = [*captured, *own]
            first = second
    finally:
        _tracings.reset(token)
    if captured or convert:
        place = functions.of_function
        for part, (program, own, given) in first.items():
            stop = place + len(own)
            takes_all = bool(captured) and tracing.called
            functions.converted[part] = Converted(program, slice(place, stop), takes_all, given)
            place = stop
        for part in functions.converted:
            functions.direct.pop(part)
    return captured


def _converted(program: Program, own: slice) -> Converted:
    return Converted(program, own, False, (True,) * len(program.outputs))


def _traced_parts(
    level: Interpreter[Any],
    name: str,
    parts: Sequence[Part],
    programs: dict[str, Program],
    slots: list[Variable],
    tracing: _Tracing | None = None,
) -> dict[str, tuple[Program, list[Tensor], tuple[bool, ...]]]:
    """The programs of the parts of a rule that can be traced, what each closes over, and which results are given.

    Args:
        slots: in place of the captured tensors of the call, the first operands of each part.
        tracing: gets the tensors of the slots.
    """
    found = {}
    for part, function, like in parts:
        given: list[bool] = []

        def flat(*xs: Tensor, function: Flat = function, given: list[bool] = given) -> list[Tensor]:
            if tracing is not None:
                tracing.captured = list(xs[: len(slots)])
            ys = function(*xs[len(slots) :])
            given[:] = [y is not None for y in ys]
            return [y for y in ys if y is not None]

        try:
            program, own = closure_converted(flat, [*slots, *like(programs)], level, name)
        except (ClosureError, EscapedTensorError):  # what encloses this call must be traced itself
            raise
        except Exception:  # noqa: BLE001, a rule that fails is run again where it is needed, and fails there
            break
        finally:
            if tracing is not None:
                tracing.captured = None
        programs[part] = program
        found[part] = (program, own, tuple(given))
    return found
