"""The decorators that declare the ops of the language: `primitive`, and `elementwise` and `linear` made from it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import OPS, Op, Rule, Sample, register
from tensorken_core.language.shapes import Shape, same

Method = TypeVar("Method", bound=Callable[..., Any])


def primitive(
    *,
    arity: int | None,
    shape: Callable[..., Any],
    dtype: Callable[..., Any],
    **facts: Any,
) -> Callable[[Method], Method]:
    """Declare a method of the language as an op; its call arrives at `interpret`."""

    def define(method: Method) -> Method:
        if arity is not None and facts.get("params"):
            facts["names"] = tuple(inspect.signature(method).parameters)[-len(facts["params"]) :]
        op = register(Op(method.__name__, arity, shape, dtype, method=True, **facts))

        @functools.wraps(method)
        def call(self: Any, *args: Any) -> Any:
            count = len(args) - len(op.params) if arity is None else arity
            return self.interpret(op, args[:count], args[count:])

        call.op = op  # type: ignore[attr-defined]
        return cast(Method, call)

    return define


def elementwise(
    scalar: Callable[..., Any],
    *partials: Rule | None,
    dtype: Callable[..., DType],
    arity: int | None = None,
    **facts: Any,
) -> Callable[[Method], Method]:
    """Declare an op on operands of one shape.

    Its Jacobian is diagonal, so each partial derivative is one rule that serves as JVP and as VJP.
    """
    count = arity or len(partials)
    samples: tuple[Sample, ...] = tuple((((s,) * count), ()) for s in ((), (3,), (2, 3)))
    facts = {"samples": samples, **facts}
    return primitive(
        arity=count,
        shape=same,
        dtype=dtype,
        jvp=partials,
        vjp=partials,
        scalar=scalar,
        elementwise=True,
        **facts,
    )


def linear(
    shape: Callable[..., Shape],
    transpose: Rule,
    *samples: Sample,
    dtype: Callable[..., DType],
    params: tuple[str, ...],
    **facts: Any,
) -> Callable[[Method], Method]:
    """Declare an op that is linear in its one operand: its JVP is itself, only its transpose is written."""

    def define(method: Method) -> Method:
        def push(t: Any, y: Any, x: Any, *params: Any) -> Any:
            return t.apply(OPS[method.__name__], *params)

        declare = primitive(
            arity=1,
            shape=shape,
            dtype=dtype,
            params=params,
            jvp=(push,),
            vjp=(transpose,),
            samples=samples,
            **facts,
        )
        return declare(method)

    return define
