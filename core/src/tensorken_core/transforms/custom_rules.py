"""Functions with derivatives of the user's own: each call runs an Op value, which needs no place in the table."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tensorken_core import tree
from tensorken_core.errors import ArgumentError, GradientError, ShapeError
from tensorken_core.language.dtype_rules import floating
from tensorken_core.language.op import Op
from tensorken_core.program.program import Program
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.level import inside_a_transform, meet
from tensorken_core.tensor.tensor import Tensor, as_tensor
from tensorken_core.transforms.arguments import Argnums, check_function, matching
from tensorken_core.transforms.closures import FUNCTION, CacheKey, Facts, Functions, Part
from tensorken_core.transforms.ruled_ops import (
    Rules,
    by_position,
    closed_over,
    name_of,
    static_places,
    with_static,
    without_static,
)
from tensorken_core.transforms.user_op import STATIC, Result, at_level, call, transposed, zeros_for_none

__all__ = [
    "custom_jvp",
    "custom_vjp",
    "elementwise",
]

RULE, FORWARD, BACKWARD = "rule", "forward", "backward"
"""What the parts of rules are called."""


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
    name = name_of(f)

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
    orders differentiate it.  As in JAX, the result that the rule gives is the result wherever the function is
    differentiated, and what higher orders differentiate.

    The function and the rule may close over tensors of enclosing transforms, except over what is differentiated
    there: the rule knows the derivatives of arguments alone.

    Args:
        f: a function of pytrees of tensors; no derivative is taken through it.
        nondiff_argnums: the places of arguments that are no tensors, such as functions; the rule gets them first.

    Raises:
        GradientError: when differentiated without a rule, or by a tensor that f or the rule closes over.
        StructureError, ShapeError, DTypeError: if the rule's result differs from f's in structure, shape or dtype.
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
        self._static = static_places(nondiff_argnums)
        self._rule: Callable[..., Any] | None = None
        self._symbolic_zeros = False
        self._known: dict[CacheKey, Facts] | None = None if inside_a_transform() else {}

    def defjvp(self, rule: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule `(primals, tangents) -> (result, tangent of the result)`, with tuples of all arguments.

        Arguments of nondiff_argnums come before the two; the tangent of what is no tensor is None.

        Args:
            rule: the rule.
            symbolic_zeros: whether the tangent of a tensor that is not differentiated is None, an exact zero, and not
                a tensor of zeros; the rule may give None for a tangent, too.  A rule that closes over tensors of
                enclosing transforms gets tensors of zeros in any case.

        >>> import tensorken as tk
        >>> @tk.custom_jvp
        ... def scaled(x, n):
        ...     return x * n
        >>> def push_forward(primals, tangents):
        ...     (x, n), (dx, dn) = primals, tangents
        ...     assert dn is None, "not differentiable by n"
        ...     return scaled(x, n), dx * n
        >>> _ = scaled.defjvp(push_forward, symbolic_zeros=True)
        >>> tk.grad(scaled)(2.0, 3.0).item()
        3.0
        """
        self._rule = check_function("custom_jvp.defjvp", rule)
        self._symbolic_zeros = symbolic_zeros
        if self._known:
            self._known.clear()
        return rule

    def defjvps(self, *rules: Callable[..., Any] | None) -> None:
        """Set one rule an argument, `(t, y, *arguments) -> its share of the tangent of the result`, None for zero.

        Arguments of nondiff_argnums come before `t`, and have no rule.
        """

        def rule(*given: Any) -> tuple[Any, Any]:
            *static, primals, tangents = given
            y = self(*with_static(self._static, static, primals))
            if len(rules) != len(primals):
                raise ArgumentError(
                    f"{name_of(self._function)}: custom_jvp has {len(rules)} rules by defjvps for {len(primals)} "
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

        self.defjvp(rule)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        name = name_of(self._function)
        positional = by_position(self._function, arguments, keywords)
        static, given, tensors = without_static(name, self._static, positional)
        if not tensors:
            return self._function(*positional)
        result, count = Result(name), len(tensors)

        def function(*xs: Tensor) -> list[Tensor]:
            value = self._function(*with_static(self._static, static, given.filled(xs)))
            return result.taken_apart(value, xs[0].interpreter)

        def rule(xs: Sequence[Tensor], tangents: Sequence[Tensor | None]) -> list[Tensor | None]:
            """The results and their tangents."""
            if self._rule is None:
                raise GradientError(f"{name}: custom_jvp has no rule; give it one by {name}.defjvp(rule)")
            pushes = tangents if self._symbolic_zeros else zeros_for_none(tangents, xs)
            pair = self._rule(*static, given.filled(xs), given.filled(pushes, rest=False))
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise ArgumentError(
                    f"{name}: the rule of a custom_jvp returns (result, tangent), got {type(pair).__name__}"
                )
            like = function(*xs) if functions.facts is None else functions.facts.outputs
            level = meet([x.interpreter for x in (*xs, *tangents) if x is not None], name)
            ys = result.alike("the result of the rule", pair[0], like, level)
            return [*ys, *result.matching("the tangent of the result", pair[1], ys, self._symbolic_zeros)]

        def both(tangents: Sequence[Tensor | None], operands: Sequence[Tensor]) -> Any:
            xs, captured = operands[:count], operands[count:]
            if RULE in functions.converted and (captured or not self._symbolic_zeros):
                found = functions.run(RULE, captured, *xs, *_floats(zeros_for_none(tangents[:count], xs)))
            else:
                found = rule(xs, tangents[:count])
            return found[: result.count], found[result.count :]

        def traced_rule(*values: Tensor) -> list[Tensor | None]:
            xs, rest = values[:count], iter(values[count:])
            return rule(xs, [next(rest) if x.dtype.kind == "float" else x.zeros_like() for x in xs])

        functions = Functions(name, {FUNCTION: function, RULE: traced_rule})
        parts: list[Part] = [(RULE, traced_rule, lambda programs: [*tensors, *_floats(tensors)])]
        functions, captured = closed_over(self._known, self, functions, given, static, tensors, result, parts)

        def primal(active: Sequence[bool], operands: list[Tensor]) -> Any:
            zeros = [x.zeros_like() if one else None for x, one in zip(operands, active, strict=True)]
            return both(zeros, operands)[0], []

        def pull(
            cotangents: list[Tensor | None],
            ys: list[Tensor],
            operands: list[Tensor],
            active: Sequence[bool],
        ) -> list[Tensor | None]:
            places = [i for i in range(count) if active[i]]

            def linear(*tangents: Tensor) -> list[Tensor | None]:
                full: list[Tensor | None] = [None] * len(operands)
                for i, t in zip(places, tangents, strict=True):
                    full[i] = t
                pushed: list[Tensor | None] = both(full, operands)[1]
                return pushed

            found: list[Tensor | None] = [None] * len(operands)
            pulled = transposed(linear, [operands[i] for i in places], cotangents)
            for i, t in zip(places, pulled, strict=True):
                found[i] = t
            return found

        rules = Rules(lambda tangents, ys, operands: both(tangents, operands)[1], pull, primal, both)
        op = rules.op(functions, count, transposes_through_body=True)
        return result.put_together(call(op, [*tensors, *captured]))


class custom_vjp:
    """A function whose pullback is given by hand: a decorator, with `defvjp` for the two halves of the rule.

    Forward mode transposes the pullback, which is linear in the cotangent, so one rule serves all modes, and vmap;
    higher orders differentiate it.  As in JAX, the result that the forward half gives is the result wherever the
    function is differentiated, and what higher orders differentiate.

    The function and both halves may close over tensors of enclosing transforms, except over what is differentiated
    there: the rule knows the derivatives of arguments alone.

    Args:
        f: a function of pytrees of tensors; no derivative is taken through it.
        nondiff_argnums: the places of arguments that are no tensors, such as functions; `backward` gets them first.

    Raises:
        GradientError: when differentiated without a rule, or by a tensor that f or the rule closes over.
        StructureError, ShapeError, DTypeError: if the result of `forward` differs from f's in structure, shape or
            dtype.
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
        self._static = static_places(nondiff_argnums)
        self._forward: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._known: dict[CacheKey, Facts] | None = None if inside_a_transform() else {}

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Set the rule.

        Args:
            forward: takes f's arguments, and returns (result, residuals): a pytree of whatever `backward` will need.
            backward: `(residuals, cotangent of the result)` to a tuple of one cotangent an argument; None is zero.
        """
        self._forward = check_function("custom_vjp.defvjp", forward)
        self._backward = check_function("custom_vjp.defvjp", backward)
        if self._known:
            self._known.clear()

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        name = name_of(self._function)
        positional = by_position(self._function, arguments, keywords)
        static, given, tensors = without_static(name, self._static, positional)
        if not tensors:
            return self._function(*positional)
        result, residuals, count = Result(name), Result(name, static=(*STATIC, float)), len(tensors)

        def full(xs: Sequence[Tensor]) -> list[Any]:
            return with_static(self._static, static, given.filled(xs))

        def function(*xs: Tensor) -> list[Tensor]:
            return result.taken_apart(self._function(*full(xs)), xs[0].interpreter)

        def forward(*xs: Tensor) -> list[Tensor]:
            """The results and the residuals."""
            if self._forward is None:
                raise GradientError(
                    f"{name}: custom_vjp has no rule; give it one by {name}.defvjp(forward, backward)"
                )
            pair = self._forward(*full(xs))
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise ArgumentError(
                    f"{name}: the forward half of a custom_vjp returns (result, residuals), got {type(pair).__name__}"
                )
            like = function(*xs) if functions.facts is None else functions.facts.outputs
            level = xs[0].interpreter
            ys = result.alike("the result of the forward half", pair[0], like, level)
            return [*ys, *residuals.taken_apart(pair[1], level)]

        def backward(*values: Tensor) -> list[Tensor | None]:
            """The cotangents of the operands, from these, the residuals, and the cotangents of the results."""
            assert self._backward is not None
            xs, kept = values[:count], values[count : len(values) - result.count]
            t = result.put_together(values[len(values) - result.count :])
            return given.cotangents(name, self._backward(*static, residuals.put_together(kept), t), xs)

        def like_backward(programs: dict[str, Program]) -> Sequence[Any]:
            ys = programs[FORWARD].outputs
            return [*tensors, *ys[result.count :], *ys[: result.count]]

        functions = Functions(name, {FUNCTION: function, FORWARD: forward, BACKWARD: backward})
        parts: list[Part] = [
            (FORWARD, forward, lambda programs: tensors),
            (BACKWARD, backward, like_backward),
        ]
        functions, captured = closed_over(self._known, self, functions, given, static, tensors, result, parts)

        def primal(active: Sequence[bool], operands: list[Tensor]) -> Any:
            found = functions.run(FORWARD, operands[count:], *operands[:count])
            return found[: result.count], found[result.count :]

        def pull(
            cotangents: list[Tensor | None],
            ys: list[Tensor],
            operands: list[Tensor],
            active: Sequence[bool],
        ) -> list[Tensor | None]:
            xs, captured = operands[:count], operands[count:]
            ts = zeros_for_none(cotangents[: result.count], ys[: result.count])
            pulled = functions.run(BACKWARD, captured, *xs, *ys[result.count :], *ts)
            return [*pulled, *[None] * len(captured)]

        def push(
            tangents: list[Tensor | None], ys: list[Tensor], operands: list[Tensor]
        ) -> list[Tensor | None]:
            active = [t is not None for t in tangents]

            def linear(*cotangents: Tensor) -> list[Tensor | None]:
                return pull(list(cotangents), ys, operands, active)

            return transposed(linear, ys[: result.count], tangents)

        def both(tangents: list[Tensor | None], operands: list[Tensor]) -> Any:
            ys, kept = primal([t is not None for t in tangents], operands)
            return ys, push(tangents, [*ys, *kept], operands)

        op = Rules(push, pull, primal, both).op(functions, count)
        return result.put_together(call(op, [*tensors, *captured]))


def _floats(xs: Sequence[Tensor]) -> list[Tensor]:
    return [x for x in xs if x.dtype.kind == "float"]
