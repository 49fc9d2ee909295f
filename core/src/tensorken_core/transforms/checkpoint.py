"""checkpoint: a function whose inner values are computed again for the derivative, instead of being kept."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from tensorken_core.errors import ConcretizationError, EscapedTensorError
from tensorken_core.language.interpreter import R
from tensorken_core.language.op import Op, run
from tensorken_core.levels.trace import closure_converted, scope
from tensorken_core.tensor.level import (
    ClosureError,
    Level,
    current_level,
    inside_a_transform,
    interpreter_below,
    lifted,
)
from tensorken_core.tensor.tensor import Tensor, as_tensor, result_at
from tensorken_core.transforms.arguments import Function, check_function
from tensorken_core.transforms.user_op import (
    Arguments,
    Result,
    at_level,
    call,
    pulled_through,
    pushed_through,
    results_and_tangents,
    user_op,
)

__all__ = [
    "checkpoint",
]


def checkpoint(f: Function) -> Callable[..., Any]:
    """The same function; reverse mode keeps its arguments only, and runs it again when it needs what is inside.

    Memory for time: of a chain of n checkpointed blocks only the values between the blocks are kept.

    f may close over tensors of enclosing transforms, as the parameters in `tk.checkpoint(lambda x: block(params, x))`:
    they count as arguments, so their derivatives are right too.  Such an f is traced, as by `jit`.

    Args:
        f: a function of pytrees of tensors, the same at every call with the same arguments.

    Raises:
        ConcretizationError: when called, if f closes over tensors of enclosing transforms and asks for a value, as by
            `if x > 0`.

    >>> import tensorken as tk
    >>> block = tk.checkpoint(lambda x: tk.sin(tk.sin(x)))
    >>> tk.grad(block)(1.0).item() == tk.grad(lambda x: tk.sin(tk.sin(x)))(1.0).item()
    True
    >>> tk.grad(lambda w: tk.checkpoint(lambda x: w * x)(2.0))(3.0).item()
    2.0
    """
    name = getattr(f, "__name__", "checkpoint")
    may_close_over_tensors = inside_a_transform()

    @functools.wraps(check_function("checkpoint", f))
    def checkpointed(*arguments: Any, **keywords: Any) -> Any:
        given, tensors = Arguments.of(name, (arguments, keywords))
        level = interpreter_below([x.interpreter for x in tensors] or [as_tensor(0.0).interpreter], name)
        result = Result(name)

        def flat(*xs: Tensor) -> list[Any]:
            positional, named = given.filled(xs)
            return result.tensors(f(*positional, **named))

        if level.below is None:  # no enclosing transform
            if not tensors:
                return f(*arguments, **keywords)
            return result.put_together(_run_again(name, flat, tensors))

        def direct() -> list[Tensor]:
            return _run_again(name, flat, tensors)

        def converted() -> list[Tensor]:
            """... with what f closes over as further operands."""
            program, captured = closure_converted(flat, tensors, level, name, "checkpoint")
            operands = [*captured, *tensors]
            if not operands:
                return list(program.on([]))
            return _run_again(name, lambda *xs: list(program.on(xs)), operands)

        first, second = (converted, direct) if may_close_over_tensors or not tensors else (direct, converted)
        refused = (ClosureError, EscapedTensorError, ConcretizationError)
        try:
            return result.put_together(first())
        except refused as error:
            if not tensors:
                raise
            try:
                return result.put_together(second())
            except refused as other:  # it both closes over tensors and asks for values
                raise (other if isinstance(other, ConcretizationError) else error) from None

    return checkpointed


def _run_again(name: str, flat: Callable[..., list[Any]], operands: Sequence[Tensor]) -> list[Tensor]:
    """A function's results, of which reverse mode keeps the operands alone."""

    def primal(active: Sequence[bool], xs: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        return _run_again(name, functools.partial(_primals, flat, active), xs), []

    def pull(cotangents: Any, _: Any, xs: Any, active: Any) -> Any:
        with scope():  # or a program that computes this would keep what is inside after all
            return pulled_through(flat, xs, cotangents, active)

    op = user_op(
        name,
        lambda xs: [at_level(name, xs[0].interpreter, y) for y in flat(*xs)],
        lambda tangents, _, xs: pushed_through(flat, xs, tangents),
        pull,
        primal=primal,
        both=lambda tangents, xs: results_and_tangents(flat, xs, tangents),
    )
    return call(op, operands)


# ---- results where they are differentiated -------------------------------------------------------------------


@dataclass(slots=True)
class Flagged(Generic[R]):
    """A value of the level below, and whether it has a derivative."""

    value: R
    active: bool


class Primal(Level[Flagged[R]]):
    """Computes what a derivative's levels compute beside the derivative: custom rules give other results there."""

    transform = "checkpoint"
    way_out = "return it from the function"

    def lift(self, x: R) -> Flagged[R]:
        return Flagged(x, False)

    def lower(self, x: Flagged[R]) -> R:
        return x.value

    def interpret(self, op: Op, operands: Sequence[Flagged[R]], params: tuple[Any, ...]) -> Any:
        if self.closed:
            raise self.refuse(op.name)
        inner, values = self.inner, [x.value for x in operands]
        flags = tuple([x.active for x in operands])
        active = op.differentiable and any(flags)
        if active and op.primal_rule is not None:
            ys, _ = op.primal_rule(flags, [Tensor(inner, x) for x in values], params)
            return tuple([Flagged(y.representation, True) for y in ys])
        count: int | None = None
        if active and op.higher_order is not None:
            op, params, count = op.higher_order.record(flags, params)
        results = run(inner, op, values, params)
        if op.results == 1:
            return Flagged(results, active)
        return tuple([Flagged(y, active) for y in results[:count]])


def _primals(flat: Callable[..., list[Any]], active: Sequence[bool], *xs: Tensor) -> list[Tensor]:
    """The results of a function where these operands have derivatives."""
    inner = interpreter_below([x.interpreter for x in xs], "checkpoint")
    level: Primal[Any] = Primal(inner)
    with current_level(level):
        flagged = [
            Tensor(level, Flagged(lifted(x, inner), one), x.shape, x.dtype)
            for x, one in zip(xs, active, strict=True)
        ]
        ys = [result_at(level, y) for y in flat(*flagged)]
    return [Tensor(inner, y.representation.value, y.shape, y.dtype) for y in ys]
