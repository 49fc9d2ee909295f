"""checkpoint: a function whose inner values are computed again for the derivative, instead of being kept."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorken.arguments import Function, check_function
from tensorken.tensor import Tensor
from tensorken.tracing import scope
from tensorken.user_ops import Arguments, Result, call, pulled_through, pushed_through, user_op

__all__ = [
    "checkpoint",
]


def checkpoint(f: Function) -> Callable[..., Any]:
    """The same function; reverse mode keeps its arguments only, and runs it again when it needs what is inside.

    Memory for time: of a chain of n checkpointed blocks only the values between the blocks are kept.

    Args:
        f: a function of pytrees of tensors, the same at every call with the same arguments.  What is to be
            differentiated comes in as an argument, not by a closure.

    Raises:
        ArgumentError: when called inside a transform, if f uses a tensor of that transform that is no argument.

    >>> import tensorken as tk
    >>> block = tk.checkpoint(lambda x: tk.sin(tk.sin(x)))
    >>> tk.grad(block)(1.0).item() == tk.grad(lambda x: tk.sin(tk.sin(x)))(1.0).item()
    True
    """
    name = getattr(f, "__name__", "checkpoint")

    @functools.wraps(check_function("checkpoint", f))
    def checkpointed(*arguments: Any, **keywords: Any) -> Any:
        given, tensors = Arguments.of(name, (arguments, keywords))
        if not tensors:
            return f(*arguments, **keywords)
        result = Result(name)

        def on(*xs: Tensor) -> Any:
            positional, named = given.filled(xs)
            return f(*positional, **named)

        def again(*xs: Tensor) -> list[Any]:
            return result.tensors(on(*xs))

        def pull(cotangents: Any, _: Any, xs: Any) -> Any:
            with scope():  # or a program that computes this would keep what is inside after all
                return pulled_through(again, xs, cotangents)

        op = user_op(
            name,
            lambda xs: result.taken_apart(on(*xs), xs[0].interpreter),
            lambda tangents, ys, xs: pushed_through(again, xs, tangents),
            pull,
        )
        return result.put_together(call(op, tensors))

    return checkpointed
