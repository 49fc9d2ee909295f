"""Functions with derivatives of the user's own: each call runs an Op value, which needs no place in the table."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tensorken import tree
from tensorken.arguments import Argnums, check_function, matching, places_of
from tensorken.creation import as_tensor
from tensorken.dispatch import apply
from tensorken.errors import ArgumentError, GradientError, ShapeError
from tensorken.reverse import Reverse
from tensorken.spec.dtype_rules import floating
from tensorken.spec.interpreter import Interpreter
from tensorken.spec.op import Op
from tensorken.tensor import Tensor
from tensorken.tracing import Trace
from tensorken.user_ops import (
    STATIC,
    Arguments,
    Result,
    added,
    at_level,
    call,
    pulled_through,
    pushed_through,
    transposed,
    user_op,
    zeros_for_none,
)

__all__ = [
    "custom_jvp",
    "custom_vjp",
    "elementwise",
]


def elementwise(
    f: Callable[[Tensor], Tensor], derivative: Callable[[Tensor], Tensor]
) -> Callable[[Any], Tensor]:
    """The elementwise function f with a derivative given by hand; it works in every mode and to any order.

    Args:
        f: from a tensor of floats to one of the same shape; no derivative is taken through it.
        derivative: f's derivative, from f's argument to a tensor of its shape; higher orders differentiate it.

    Raises:
        ShapeError: when called, if f changes the shape; when differentiated, if the derivative has another shape.
        GradientError: when differentiated, if the derivative has a wider dtype.
        ArgumentError: when called inside a transform, if f uses another tensor of that transform.

    >>> import tensorken as tk
    >>> softplus = tk.elementwise(lambda x: tk.log1p(tk.exp(x)), tk.sigmoid)
    >>> tk.grad(softplus)(0.0).item(), tk.grad(tk.grad(softplus))(0.0).item()
    (0.5, 0.25)
    """
    name = _name_of(f)

    def body(x: Tensor) -> Tensor:
        y = at_level(name, x.interpreter, f(x))
        if y.shape != x.shape:
            raise ShapeError(f"{name}: an elementwise function must keep the shape {x.shape}, got {y.shape}")
        return y

    def rule(t: Tensor, y: Tensor, x: Tensor) -> Tensor:
        return matching(name, "derivative", x, t * derivative(x))

    op = Op(name, 1, lambda x: x, floating, jvp=(rule,), vjp=(rule,), body=body)

    def call(x: Any) -> Tensor:
        result: Tensor = apply(op, (as_tensor(x),))
        return result

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f.__doc__
    return call


class custom_jvp:
    """A function whose pushforward is given by hand: a decorator, with `defjvp` or `defjvps` for the rule.

    Reverse mode transposes the rule, which is linear in the tangents, so one rule serves all modes, and vmap; higher
    orders differentiate it.

    Args:
        f: a function of pytrees of tensors; no derivative is taken through it.  It gets what it needs of enclosing
            transforms as arguments, not by a closure.
        nondiff_argnums: the places of arguments that are no tensors, such as functions; the rule gets them first.

    Raises:
        GradientError: when differentiated without a rule.
        ArgumentError: when called inside a transform, if f uses a tensor of that transform that is no argument.
        StructureError: if the rule's tangent differs from the result in its structure.

    >>> import tensorken as tk
    >>> @tk.custom_jvp
    ... def clipped(x):
    ...     return tk.clip(x, -1.0, 1.0)
    >>> @clipped.defjvp
    ... def push_forward(primals, tangents):
    ...     return clipped(*primals), tangents[0]  # straight through
    >>> tk.grad(clipped)(3.0).item(), tk.jvp(clipped, (3.0,), (2.0,))[1].item()
    (1.0, 2.0)
    """

    def __init__(self, f: Callable[..., Any], nondiff_argnums: Argnums = ()) -> None:
        functools.update_wrapper(
            self, check_function("custom_jvp", f)
        )  # first, as f may be one of these itself
        self._function = f
        self._static = _static_places(nondiff_argnums)
        self._rule: Callable[..., Any] | None = None

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule `(primals, tangents) -> (result, tangent of the result)`, with tuples of all arguments.

        Arguments of nondiff_argnums come before the two; the tangent of what is no tensor is None.
        """
        self._rule = check_function("custom_jvp.defjvp", rule)
        return rule

    def defjvps(self, *rules: Callable[..., Any] | None) -> None:
        """Set one rule an argument, `(t, y, *arguments) -> its share of the tangent of the result`, None for zero.

        Arguments of nondiff_argnums come before `t`, and have no rule.
        """

        def rule(*given: Any) -> tuple[Any, Any]:
            *static, primals, tangents = given
            y = self(*_with_static(self._static, static, primals))
            if len(rules) != len(primals):
                raise ArgumentError(
                    f"{_name_of(self._function)}: custom_jvp has {len(rules)} rules by defjvps for {len(primals)} "
                    f"arguments; give it one for each, None for zero"
                )
            total: Any = None
            for t, own in zip(tangents, rules, strict=True):
                if own is not None and t is not None:
                    part = own(*static, t, y, *primals)
                    total = part if total is None else tree.map(lambda a, b: a + b, total, part)
            if total is None:
                total = tree.map(lambda y: y.zeros_like() if isinstance(y, Tensor) else y, y)
            return y, total

        self._rule = rule

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        name = _name_of(self._function)
        positional = _positional(self._function, arguments, keywords)
        static, given, tensors = _without_static(name, self._static, positional)
        if not tensors:
            return self._function(*positional)
        result = Result(name)

        def body(xs: list[Tensor]) -> list[Tensor]:
            return result.taken_apart(
                self._function(*_with_static(self._static, static, given.filled(xs))), xs[0].interpreter
            )

        def push(tangents: list[Tensor | None], ys: list[Tensor], xs: list[Tensor]) -> list[Tensor]:
            if self._rule is None:
                raise GradientError(f"{name}: custom_jvp has no rule; give it one by {name}.defjvp(rule)")
            pushes = given.filled(zeros_for_none(tangents, xs), rest=False)
            pair = self._rule(*static, given.filled(xs), pushes)
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise ArgumentError(
                    f"{name}: the rule of a custom_jvp returns (result, tangent), got {type(pair).__name__}"
                )
            return result.matching("the tangent of the result", pair[1], ys)

        def pull(cotangents: list[Tensor | None], ys: list[Tensor], xs: list[Tensor]) -> list[Tensor | None]:
            return transposed(lambda *tangents: push(list(tangents), ys, xs), xs, cotangents)

        op = user_op(name, body, push, pull)
        return result.put_together(call(op, tensors))


class custom_vjp:
    """A function whose pullback is given by hand: a decorator, with `defvjp` for the two halves of the rule.

    Forward mode transposes the pullback, which is linear in the cotangent, so one rule serves all modes, and vmap;
    higher orders differentiate it.

    Args:
        f: a function of pytrees of tensors; no derivative is taken through it.  It gets what it needs of enclosing
            transforms as arguments, not by a closure.
        nondiff_argnums: the places of arguments that are no tensors, such as functions; `backward` gets them first.

    Raises:
        GradientError: when differentiated without a rule.
        ArgumentError: when called inside a transform, if f uses a tensor of that transform that is no argument.
        StructureError, ShapeError: if a cotangent of the rule differs from its argument.

    >>> import tensorken as tk
    >>> @tk.custom_vjp
    ... def bounded(x, limit):
    ...     return x
    >>> def forward(x, limit):
    ...     return bounded(x, limit), limit  # the result, and what `backward` will need
    >>> def backward(limit, t):
    ...     return tk.clip(t, -limit, limit), None
    >>> bounded.defvjp(forward, backward)
    >>> tk.grad(lambda x: 5.0 * bounded(x, 1.0))(3.0).item()
    1.0
    """

    def __init__(self, f: Callable[..., Any], nondiff_argnums: Argnums = ()) -> None:
        functools.update_wrapper(
            self, check_function("custom_vjp", f)
        )  # first, as f may be one of these itself
        self._function = f
        self._static = _static_places(nondiff_argnums)
        self._forward: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Set the rule.

        Args:
            forward: takes f's arguments, and returns (result, residuals): a pytree of whatever `backward` will need.
            backward: `(residuals, cotangent of the result)` to a tuple of one cotangent an argument; None is zero.
        """
        self._forward = check_function("custom_vjp.defvjp", forward)
        self._backward = check_function("custom_vjp.defvjp", backward)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        name = _name_of(self._function)
        positional = _positional(self._function, arguments, keywords)
        static, given, tensors = _without_static(name, self._static, positional)
        if not tensors:
            return self._function(*positional)
        result, residuals = Result(name), Result(name, static=(*STATIC, float))
        # Under reverse mode the residuals are further results of the op, so that the forward half runs once.
        recorded = self._forward is not None and any([_is_recorded(x.interpreter) for x in tensors])

        def full(xs: Sequence[Tensor]) -> list[Any]:
            return _with_static(self._static, static, given.filled(xs))

        def halves(xs: Sequence[Tensor]) -> tuple[Any, Any]:
            if self._forward is None:
                raise GradientError(
                    f"{name}: custom_vjp has no rule; give it one by {name}.defvjp(forward, backward)"
                )
            pair = self._forward(*full(xs))
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise ArgumentError(
                    f"{name}: the forward half of a custom_vjp returns (result, residuals), got {type(pair).__name__}"
                )
            return pair

        def body(xs: list[Tensor]) -> list[Tensor]:
            interpreter = xs[0].interpreter
            if not recorded:
                return result.taken_apart(self._function(*full(xs)), interpreter)
            y, kept = halves(xs)
            return [*result.taken_apart(y, interpreter), *residuals.taken_apart(kept, interpreter)]

        def residuals_of(*xs: Tensor) -> list[Any]:
            return residuals.tensors(halves(xs)[1])

        def pull(cotangents: list[Tensor | None], ys: list[Tensor], xs: list[Tensor]) -> list[Tensor | None]:
            count = result.count
            kept = ys[count:] if recorded else residuals_of(*xs)
            t = result.put_together(zeros_for_none(cotangents[:count], ys[:count]))
            assert self._backward is not None
            pulled = given.cotangents(name, self._backward(*static, residuals.put_together(kept), t), xs)
            return added(pulled, pulled_through(residuals_of, xs, cotangents[count:]))

        def push(tangents: list[Tensor | None], ys: list[Tensor], xs: list[Tensor]) -> list[Tensor | None]:
            count = result.count

            def linear(*cotangents: Tensor) -> list[Tensor | None]:
                return pull([*cotangents, *[None] * (len(ys) - count)], ys, xs)

            pushed = transposed(linear, ys[:count], tangents)
            return [*pushed, *pushed_through(residuals_of, xs, tangents)] if recorded else pushed

        op = user_op(name, body, push, pull)
        return result.put_together(call(op, tensors)[: result.count])


# ---- pieces ------------------------------------------------------------------------------------------------


def _is_recorded(interpreter: Interpreter[Any]) -> bool:
    """Whether what is done at a level comes before a Reverse; a program that is being traced is none of those below."""
    for level in (interpreter, *reversed(interpreter.foundation)):
        if isinstance(level, Reverse | Trace):
            return isinstance(level, Reverse)
    return False


def _name_of(f: Any) -> str:
    return str(getattr(f, "__name__", type(f).__name__)).strip("<>")


def _static_places(argnums: Argnums) -> tuple[int, ...]:
    return (argnums,) if isinstance(argnums, int) else tuple(argnums)


def _positional(
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
            f"{_name_of(f)}: a custom rule knows arguments by position, so {', '.join(bound.kwargs)} cannot be "
            f"keyword-only; make them positional"
        )
    return bound.args


def _without_static(
    name: str, argnums: tuple[int, ...], arguments: tuple[Any, ...]
) -> tuple[list[Any], Arguments, list[Tensor]]:
    """The arguments of nondiff_argnums, and the others, their tensors apart."""
    places = places_of(name, argnums, len(arguments)) if argnums else ()
    rest = tuple([x for i, x in enumerate(arguments) if i not in places])
    return [arguments[i] for i in places], *Arguments.of(name, rest)


def _with_static(argnums: tuple[int, ...], static: Sequence[Any], rest: Sequence[Any]) -> list[Any]:
    """The inverse of `_without_static`."""
    full = list(rest)
    count = len(static) + len(rest)
    for place, x in sorted(zip([i % count for i in argnums], static, strict=True), key=lambda pair: pair[0]):
        full.insert(place, x)
    return full
