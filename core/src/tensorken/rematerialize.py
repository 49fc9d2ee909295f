"""checkpoint: a function whose inner values are computed again for the derivative, instead of being kept."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tensorken.arguments import Function, check_function
from tensorken.creation import as_tensor
from tensorken.errors import EscapedTensorError
from tensorken.levels import ground
from tensorken.tensor import Tensor
from tensorken.tracing import ClosureError, closure_converted, scope
from tensorken.user_ops import Arguments, Result, at_level, call, pulled_through, pushed_through, user_op

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

    @functools.wraps(check_function("checkpoint", f))
    def checkpointed(*arguments: Any, **keywords: Any) -> Any:
        given, tensors = Arguments.of(name, (arguments, keywords))
        level = ground([x.interpreter for x in tensors] or [as_tensor(0.0).interpreter], name)
        result = Result(name)

        def flat(*xs: Tensor) -> list[Any]:
            positional, named = given.filled(xs)
            return result.tensors(f(*positional, **named))

        if level.below is None:  # no enclosing transform
            return (
                result.put_together(_run_again(name, flat, tensors)) if tensors else f(*arguments, **keywords)
            )
        try:
            if tensors:
                return result.put_together(_run_again(name, flat, tensors))
        except (ClosureError, EscapedTensorError):
            pass
        program, captured = closure_converted(flat, tensors, level, name)
        operands = [*captured, *tensors]
        if not operands:
            return result.put_together(program.on([]))
        return result.put_together(_run_again(name, lambda *xs: list(program.on(xs)), operands))

    return checkpointed


def _run_again(name: str, flat: Callable[..., list[Any]], operands: Sequence[Tensor]) -> list[Tensor]:
    """A function's results, of which reverse mode keeps the operands alone."""

    def pull(cotangents: Any, _: Any, xs: Any) -> Any:
        with scope():  # or a program that computes this would keep what is inside after all
            return pulled_through(flat, xs, cotangents)

    op = user_op(
        name,
        lambda xs: [at_level(name, xs[0].interpreter, y) for y in flat(*xs)],
        lambda tangents, _, xs: pushed_through(flat, xs, tangents),
        pull,
    )
    return call(op, operands)
