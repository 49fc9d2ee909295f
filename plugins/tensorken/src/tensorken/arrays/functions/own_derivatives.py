"""Elementwise functions with derivatives of their own, which are accurate and right at the ends of their domains.

A function whose body replaces an operand at an end (`where`) has the derivative of the replacement there, and the
derivative of an accurate formula may cancel.  So such a function states its derivative.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.operands import floating_of, promoted_tensors
from tensorken.derivatives import derivative, elementwise
from tensorken_core.errors import ShapeError
from tensorken_core.language.bodies.arithmetic import in_float32
from tensorken_core.language.dtype_rules import floating
from tensorken_core.language.op import Op
from tensorken_core.language.shapes import broadcast, same
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.level import deepest, levels_on
from tensorken_core.tensor.tensor import Tensor, as_tensor


def with_derivative(
    slope: Callable[[Any], Any],
) -> Callable[[Callable[[Any], Any]], Callable[[ArrayLike], Tensor]]:
    """Decorate an elementwise function of one operand that has its own derivative.

    Both get float32 or float64: float32 for integers, bools and narrower floats, which the result has again.
    """

    def decorate(f: Callable[[Any], Any]) -> Callable[[ArrayLike], Tensor]:
        op = elementwise(in_float32(f), in_float32(slope))

        @functools.wraps(f)
        def call(x: ArrayLike) -> Tensor:
            return op(floating_of(as_tensor(x)))

        return call

    return decorate


def with_derivatives(
    *partials: Callable[..., Any] | None,
) -> Callable[[Callable[..., Any]], Callable[[*tuple[ArrayLike, ...]], Tensor]]:
    """Decorate an elementwise function of several operands: promoted and broadcast, and of narrower floats in float32.

    Args:
        partials: for each operand the partial derivative, a function of all operands, which higher orders
            differentiate; None: the derivative is that of the computation.
    """

    def decorate(f: Callable[..., Any]) -> Callable[[*tuple[ArrayLike, ...]], Tensor]:
        name, body = f.__name__.lstrip("_"), in_float32(f)
        rules = tuple([_rule(body, i, partial) for i, partial in enumerate(partials)])
        op = Op(name, len(partials), same, floating, jvp=rules, vjp=rules, body=body)

        @functools.wraps(f)
        def call(*operands: ArrayLike) -> Tensor:
            xs = [floating_of(x) for x in promoted_tensors(name, operands)]
            try:
                shape = functools.reduce(broadcast, [x.shape for x in xs])
            except ShapeError as error:
                raise ShapeError(f"{name}: {error}") from None
            result: Tensor = apply(op, [x.broadcast_to(shape) for x in xs])
            return result

        return call

    return decorate


def _rule(body: Callable[..., Any], index: int, partial: Callable[..., Any] | None) -> Callable[..., Any]:
    """The rule, both JVP and VJP, for one operand of an elementwise function."""
    slope = partial_derivative(body, index) if partial is None else in_float32(partial)

    def rule(t: Any, y: Any, *xs: Any) -> Any:
        return t * slope(*xs)

    return rule


def partial_derivative(f: Callable[..., Any], index: int = 0) -> Callable[..., Any]:
    """The derivative of an elementwise function by one operand, for rules: it stays at the operands' deepest level."""
    slope = derivative(f, index)

    def call(*xs: Any) -> Any:
        with levels_on(deepest([x.interpreter for x in xs], f.__name__.lstrip("_"))):
            return slope(*xs)

    return call
