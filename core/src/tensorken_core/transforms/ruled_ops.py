"""The op of one call of a function with a rule of its own: its arguments, what it closes over, its rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tensorken_core.errors import ArgumentError, GradientError
from tensorken_core.language.op import Op
from tensorken_core.program.program import Variable
from tensorken_core.tensor.level import interpreter_below
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms.arguments import Argnums, places_of
from tensorken_core.transforms.closures import (
    FUNCTION,
    KEPT,
    CacheKey,
    Facts,
    Functions,
    Part,
    close,
    within_own_rule,
)
from tensorken_core.transforms.user_op import Arguments, Result, at_level, user_op


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of an op whose first operands are arguments, and whose others are what its functions close over.

    They are as `user_op` has them, and used only where an argument has a derivative.
    """

    push: Callable[..., Any]
    pull: Callable[..., Any]
    primal: Callable[..., Any]
    both: Callable[..., Any]

    def op(self, functions: Functions, count: int, *, transposes_through_body: bool = False) -> Op:
        """The op of one call, with so many arguments."""

        def body(operands: list[Tensor]) -> list[Tensor]:
            ys = functions.run(FUNCTION, operands[count:], *operands[:count])
            return [at_level(functions.name, operands[0].interpreter, y) for y in ys]

        facts = functions.facts
        has_derivative = facts is None or any([v.dtype.kind == "float" for v in facts.outputs])

        def floats_of(active: Sequence[bool], operands: Sequence[Tensor]) -> list[bool]:
            return [one and x.dtype.kind == "float" for one, x in zip(active, operands, strict=True)]

        def applies(active: Sequence[bool]) -> bool:
            """Whether an argument has a derivative, which the rule knows; what is closed over may have none."""
            if not has_derivative:
                return False
            argument = any(active[:count])
            if any(active[count:] if argument else active[count : count + functions.of_function]):
                raise GradientError(
                    f"{functions.name}: the function or its rule closes over a tensor that is differentiated here, and "
                    f"a custom rule knows the derivatives of arguments alone; pass the tensor as an argument, or close "
                    f"over tk.stop_gradient of it"
                )
            return argument

        def primal(active: Sequence[bool], operands: list[Tensor]) -> Any:
            active = floats_of(active, operands)
            return self.primal(active, operands) if applies(active) else (body(operands), [])

        def both(tangents: list[Tensor | None], operands: list[Tensor]) -> Any:
            active = floats_of([t is not None for t in tangents], operands)
            if applies(active):
                given = [t if one else None for t, one in zip(tangents, active, strict=True)]
                return self.both(given, operands)
            ys = body(operands)
            return ys, [None] * len(ys)

        def push(tangents: list[Tensor | None], ys: list[Tensor], operands: list[Tensor]) -> Any:
            active = floats_of([t is not None for t in tangents], operands)
            return self.push(tangents, ys, operands) if applies(active) else [None] * len(ys)

        def pull(
            cotangents: list[Tensor | None], ys: list[Tensor], operands: list[Tensor], active: Sequence[bool]
        ) -> Any:
            active = floats_of(active, operands)
            return self.pull(cotangents, ys, operands, active) if applies(active) else [None] * len(operands)

        return user_op(
            functions.name,
            body,
            push,
            pull,
            primal=primal,
            both=both,
            transposes_through_body=transposes_through_body,
            reaching=count + functions.of_function,
        )


def closed_over(
    known: dict[CacheKey, Facts] | None,
    owner: object,
    functions: Functions,
    given: Arguments,
    static: Sequence[Any],
    tensors: Sequence[Tensor],
    result: Result,
    parts: Sequence[Part],
) -> tuple[Functions, list[Tensor]]:
    """The functions of a call, those converted that close over tensors of enclosing transforms; and these tensors.

    Args:
        known: the kinds of arguments for which the functions are known to close over nothing, which may grow; None if
            they may close over other tensors at each call, so that they are converted in any case.
        owner: what the user calls.
        functions: of the call.
        given: the arguments.
        static: the arguments that are no tensors.
        tensors: among the arguments.
        result: of the function; it gets the structure.
        parts: of the rule.
    """
    level = interpreter_below([x.interpreter for x in tensors], functions.name)
    if level.below is None:  # no enclosing transform
        return functions, []
    others = [leaf for i, leaf in enumerate(given.leaves) if i not in given.places]
    kind = CacheKey.of((given.structure, tuple(given.places)), [*static, *others], tensors)
    facts = known.get(kind) if known is not None and kind.simple else None
    if facts is not None:
        functions.facts = facts
        result.structure, result.leaves = facts.structure, facts.leaves
        return functions, []
    within = within_own_rule(owner, kind)
    if within is not None:
        facts = within[0].facts
        if facts is not None:
            result.structure, result.leaves = facts.structure, facts.leaves
        return within

    def facts_of(outputs: tuple[Variable, ...]) -> Facts:
        return Facts(result.structure, result.leaves, outputs)

    captured = close(owner, kind, level, functions, tensors, facts_of, parts, convert=known is None)
    if known is not None and functions.facts is not None and not captured and kind.simple:
        if len(known) >= KEPT:
            known.clear()
        known[kind] = functions.facts
    return functions, captured


def name_of(f: Any) -> str:
    """What messages call a function."""
    return str(getattr(f, "__name__", type(f).__name__)).strip("<>")


def static_places(argnums: Argnums) -> tuple[int, ...]:
    """nondiff_argnums as a tuple."""
    return (argnums,) if isinstance(argnums, int) else tuple(argnums)


def by_position(
    f: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[Any, ...]:
    """The arguments of a call by position, defaults filled in."""
    try:
        signature = inspect.signature(f)
    except ValueError:  # some functions written in C
        return arguments
    bound = signature.bind(*arguments, **keywords)
    bound.apply_defaults()
    if bound.kwargs:
        raise ArgumentError(
            f"{name_of(f)}: a custom rule knows arguments by position, so {', '.join(bound.kwargs)} cannot be "
            f"keyword-only; make them positional"
        )
    return bound.args


def without_static(
    name: str, argnums: tuple[int, ...], arguments: tuple[Any, ...]
) -> tuple[list[Any], Arguments, list[Tensor]]:
    """The arguments of nondiff_argnums, and the others, their tensors apart."""
    places = places_of(name, argnums, len(arguments)) if argnums else ()
    rest = tuple([x for i, x in enumerate(arguments) if i not in places])
    return [arguments[i] for i in places], *Arguments.of(name, rest)


def with_static(argnums: tuple[int, ...], static: Sequence[Any], rest: Sequence[Any]) -> list[Any]:
    """The inverse of `without_static`."""
    full = list(rest)
    count = len(static) + len(rest)
    for place, x in sorted(zip([i % count for i in argnums], static, strict=True), key=lambda pair: pair[0]):
        full.insert(place, x)
    return full
