"""The decorators that declare the ops of the language: `primitive`, and `elementwise` and `linear`, built on it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from tensorken_core.language.dtype_rules import movement
from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import OPS, Op, Rule, Sample, register
from tensorken_core.language.shapes import Shape, same

Method = TypeVar("Method", bound=Callable[..., Any])

ANY_DTYPE = movement(1)


def primitive(
    *, shape: Callable[..., Any], dtype: Callable[..., Any], params: tuple[str, ...] = (), **facts: Any
) -> Callable[[Method], Method]:
    """Declare a method of the language as an op; a call of it arrives at `interpret`.

    The signature gives the operands, which are annotated `R`, and then the params; `*args` takes any number of
    operands, and then the params.

    Args:
        shape: the shape rule.
        dtype: the dtype rule.
        params: the kinds of the params; by default the names that they have in the signature.
        facts: further attributes of `Op`.
    """

    def define(method: Method) -> Method:
        arity, names = _signature(method)
        op = register(Op(method.__name__, arity, shape, dtype, params or names, names, method=True, **facts))

        @functools.wraps(method)
        def call(self: Any, *args: Any) -> Any:
            count = len(args) - len(op.params) if arity is None else arity
            return self.interpret(op, args[:count], args[count:])

        call.op = op  # type: ignore[attr-defined]
        return cast(Method, call)

    return define


def elementwise(
    scalar: Callable[..., Any], *partials: Rule | None, dtype: Callable[..., DType], **facts: Any
) -> Callable[[Method], Method]:
    """Declare an op on operands of one shape.

    Its Jacobian is diagonal, so each partial derivative is one rule, both JVP and VJP.
    """

    def define(method: Method) -> Method:
        arity, _ = _signature(method)
        samples = [((shape,) * (arity or 0), ()) for shape in ((), (3,), (2, 3))]
        rest = {"samples": tuple(samples), **facts}
        declare = primitive(
            shape=same, dtype=dtype, jvp=partials, vjp=partials, scalar=scalar, elementwise=True, **rest
        )
        return declare(method)

    return define


def linear(
    shape: Callable[..., Shape],
    transpose: Rule,
    *samples: Sample,
    dtype: Callable[..., DType] = ANY_DTYPE,
    **facts: Any,
) -> Callable[[Method], Method]:
    """Declare an op that is linear in its one operand: its JVP is the op itself, and its VJP is the transpose."""

    def define(method: Method) -> Method:
        def push(t: Any, y: Any, x: Any, *params: Any) -> Any:
            return t.apply(OPS[method.__name__], *params)

        declare = primitive(shape=shape, dtype=dtype, jvp=(push,), vjp=(transpose,), samples=samples, **facts)
        return declare(method)

    return define


def _signature(method: Callable[..., Any]) -> tuple[int | None, tuple[str, ...]]:
    """The number of operands of a method, None for any number, and the names of its params."""
    _, *parameters = inspect.signature(method).parameters.values()
    if parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        return None, ()
    arity = sum([str(parameter.annotation) in ("R", "~R") for parameter in parameters])
    return arity, tuple([parameter.name for parameter in parameters[arity:]])
