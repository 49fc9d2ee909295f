"""Functions with custom derivative rules: each call runs an Op value, which is not in the op table."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Generic, cast

from tensorken_core import tree
from tensorken_core.errors import ArgumentError, GradientError
from tensorken_core.language.op import Op
from tensorken_core.program.program import Program
from tensorken_core.tensor.level import deepest, inside_a_transform
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms.arguments import Argnums, argnums_of, at_indices, check_function, name_of
from tensorken_core.transforms.closures import FUNCTION, Cache, RuleFunctions, RuleOperands, close_over
from tensorken_core.transforms.conjugates import conjugated_tree
from tensorken_core.transforms.grad import P, R, vjp_flat
from tensorken_core.transforms.user_op import STATIC, Arguments, Result, Rules, call, user_op

__all__ = ["custom_jvp", "custom_vjp"]

RULE, FORWARD, BACKWARD = "rule", "forward", "backward"
"""The names of the parts of rules."""


class _CustomRule(Generic[P, R]):
    """A function with a derivative rule; each call runs a new op, whose body is the function."""

    def __init__(self, f: Callable[P, R], nondiff_argnums: Argnums = ()) -> None:
        # first, since f may itself be a _CustomRule
        functools.update_wrapper(self, check_function(type(self).__name__, f))
        self._function: Callable[..., R] = f
        self._name = name_of(f)
        self._argnums = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        self._cache: Cache | None = None if inside_a_transform() else {}
        self._rules: tuple[Callable[..., Any], ...] = ()
        self._symbolic_zeros = False

    def _set_rule(self, where: str, *functions: Callable[..., Any]) -> None:
        self._rules = tuple([check_function(where, f) for f in functions])
        if self._cache:
            self._cache.clear()

    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        name = self._name
        positional = self._by_position(arguments, keywords)
        argnums = argnums_of(name, self._argnums, len(positional)) if self._argnums else ()
        static = [positional[i] for i in argnums]
        layout, tensors = Arguments.of(name, tuple([x for i, x in enumerate(positional) if i not in argnums]))
        if not tensors:
            return self._function(*positional)
        result, count = Result(name), len(tensors)

        def function(*xs: Tensor) -> list[Tensor]:
            value = self._function(*self._with_static(static, layout.filled(xs)))
            return result.flatten(value, xs[0].interpreter)

        functions = RuleFunctions(result, {FUNCTION: function})
        operands, rules_of = self._rule(functions, static, layout, tensors)
        others = [*static, *[leaf for i, leaf in enumerate(layout.leaves) if i not in layout.indices]]
        structure = layout.structure, tuple(layout.indices)
        functions, captured = close_over(functions, tensors, operands, self, others, structure, self._cache)
        op = self._op(functions, rules_of(functions), count)
        return cast(R, result.unflatten(call(op, [*tensors, *captured])))

    def _rule(
        self, functions: RuleFunctions, static: list[Any], layout: Arguments, tensors: list[Tensor]
    ) -> tuple[dict[str, RuleOperands], Callable[[RuleFunctions], Rules]]:
        """Add the parts of the rule to the functions of a call.

        Returns:
            The operands of each part, and a function from the functions, converted or not, to the rules of the op.
        """
        raise NotImplementedError

    def _op(self, functions: RuleFunctions, rules: Rules, count: int) -> Op:
        """The op of a call: its first operands are the arguments, the others the captured tensors."""
        outputs, own_count = functions.result.outputs, functions.captured_by_function
        differentiable = outputs is None or any([v.dtype.kind == "float" for v in outputs])

        def applies(active: Sequence[bool]) -> bool:
            argument = any(active[:count])
            if differentiable and any(active[count:] if argument else active[count : count + own_count]):
                raise GradientError(
                    f"{self._name}: the function or its rule closes over a tensor that is being differentiated, but "
                    f"a custom rule covers arguments only; pass the tensor as an argument, or close "
                    f"over tk.stop_gradient of it"
                )
            return differentiable and argument

        return user_op(
            self._name,
            lambda *xs: functions.run(FUNCTION, xs[count:], *xs[:count]),
            rules,
            applies,
            transposes_through_body=isinstance(self, custom_jvp),
            depends_on_first=count + own_count,
        )

    def _by_position(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call by position, defaults filled in."""
        try:
            signature = inspect.signature(self._function)
        except ValueError:  # some functions written in C
            return arguments
        bound = signature.bind(*arguments, **keywords)
        bound.apply_defaults()
        if bound.kwargs:
            raise ArgumentError(
                f"{self._name}: arguments of a custom rule are positional, so {', '.join(bound.kwargs)} cannot be "
                f"keyword-only; make them positional"
            )
        return bound.args

    def _with_static(self, static: Sequence[Any], rest: Sequence[Any]) -> list[Any]:
        """All arguments in order, from the arguments of nondiff_argnums and the rest."""
        full, count = list(rest), len(static) + len(rest)
        for position, x in sorted(
            zip([i % count for i in self._argnums], static, strict=True), key=itemgetter(0)
        ):
            full.insert(position, x)
        return full

    def _check_pair(self, value: Any, what: str, names: str) -> tuple[Any, Any]:
        if not isinstance(value, tuple) or len(value) != 2:
            raise ArgumentError(
                f"{self._name}: {what} of a {type(self).__name__} returns {names}, got {type(value).__name__}"
            )
        return value


class custom_jvp(_CustomRule[P, R]):
    """A function with a custom JVP rule: a decorator, with `defjvp` or `defjvps` for the rule.

    Reverse mode transposes the rule, which is linear in the tangents, so one rule is enough for all modes and for vmap;
    higher orders differentiate it.  As in JAX, a differentiated call returns the result of the rule, and
    higher orders differentiate that result.

    The function and the rule may close over tensors of enclosing transforms, except over tensors that are
    differentiated there: the rule has derivatives only for the arguments.

    Args:
        f: a function of pytrees of tensors; no derivative is taken through it.
        nondiff_argnums: the positions of arguments that are not tensors, such as functions; the rule gets them first.

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

    def defjvp(self, rule: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule `(primals, tangents) -> (result, tangent of the result)`, with tuples of all arguments.

        Arguments of nondiff_argnums come before the two.  The tangent of an integer or bool is None, as in `tk.jvp`,
        and so is that of an argument that is not a tensor; the rule may return None for that of an integer result.

        Args:
            rule: the rule.
            symbolic_zeros: whether the tangent of a tensor that is not differentiated is None, an exact zero, not
                a tensor of zeros; the rule may return None for a tangent, too.  A rule that closes over tensors of
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
        self._set_rule("custom_jvp.defjvp", rule)
        self._symbolic_zeros = symbolic_zeros
        return rule

    def defjvps(self, *rules: Callable[..., Any] | None) -> None:
        """Set one rule for each argument, `(t, y, *arguments) -> a term of the tangent of the result`, None for zero.

        Arguments of nondiff_argnums come before `t`, and have no rule.
        """

        def rule(*args: Any) -> tuple[Any, Any]:
            *static, primals, tangents = args
            run: Callable[..., Any] = self
            y = run(*self._with_static(static, primals))
            if len(rules) != len(primals):
                raise ArgumentError(
                    f"{self._name}: custom_jvp has {len(rules)} rules by defjvps for {len(primals)} "
                    f"arguments; give one for each, None for zero"
                )
            total: Any = None
            for t, term_rule in zip(tangents, rules, strict=True):
                if term_rule is not None and t is not None:
                    term = term_rule(*static, t, y, *primals)
                    total = term if total is None else tree.map(lambda a, b: a + b, total, term)
            if total is None:
                total = tree.map(lambda y: y.zeros_like() if isinstance(y, Tensor) else y, y)
            return y, total

        self.defjvp(rule)

    def _rule(
        self, functions: RuleFunctions, static: list[Any], layout: Arguments, tensors: list[Tensor]
    ) -> tuple[dict[str, RuleOperands], Callable[[RuleFunctions], Rules]]:
        name, result, count = self._name, functions.result, len(tensors)
        function = functions.direct[FUNCTION]

        def rule(xs: Sequence[Tensor], tangents: Sequence[Tensor | None]) -> list[Tensor | None]:
            """The results and their tangents."""
            if not self._rules:
                raise GradientError(f"{name}: custom_jvp has no rule; define it with {name}.defjvp(rule)")
            pushes: Sequence[Tensor | None] = (
                tangents if self._symbolic_zeros else zeros_for_none(tangents, xs)
            )
            pushes = [t if x.dtype.kind == "float" else None for t, x in zip(pushes, xs, strict=True)]
            pair = self._rules[0](*static, layout.filled(xs), layout.filled(pushes, rest=False))
            value, tangent = self._check_pair(pair, "the rule", "(result, tangent)")
            like = function(*xs) if result.outputs is None else result.outputs
            level = deepest([x.interpreter for x in (*xs, *tangents) if x is not None], name)
            ys = result.tensors_like("the result of the rule", value, like, level)
            return [*ys, *result.tangents("tangent of the result", tangent, ys, self._symbolic_zeros)]

        def traced_rule(*values: Tensor) -> list[Tensor | None]:
            xs, rest = values[:count], iter(values[count:])
            return rule(xs, [next(rest) if x.dtype.kind == "float" else None for x in xs])

        functions.direct[RULE] = traced_rule

        def rules_of(functions: RuleFunctions) -> Rules:
            def both(tangents: Sequence[Tensor | None], operands: Sequence[Tensor]) -> Any:
                xs, captured = operands[:count], operands[count:]
                if RULE in functions.converted and (captured or not self._symbolic_zeros):
                    ys = functions.run(RULE, captured, *xs, *_floats(zeros_for_none(tangents[:count], xs)))
                else:
                    ys = rule(xs, tangents[:count])
                return ys[: result.count], ys[result.count :]

            def primal(active: Sequence[bool], operands: list[Tensor]) -> Any:
                zeros = [x.zeros_like() if flag else None for x, flag in zip(operands, active, strict=True)]
                return both(zeros, operands)[0], []

            def pull(
                cotangents: Sequence[Tensor | None],
                ys: list[Tensor],
                operands: list[Tensor],
                active: Sequence[bool],
            ) -> list[Tensor | None]:
                indices = [i for i in range(count) if active[i]]

                def linear(*tangents: Tensor) -> list[Tensor | None]:
                    pushed: list[Tensor | None] = both(
                        at_indices(tangents, indices, len(operands)), operands
                    )[1]
                    return pushed

                pulled = transpose(linear, [operands[i] for i in indices], cotangents)
                return at_indices(pulled, indices, len(operands))

            return Rules(lambda tangents, ys, operands: both(tangents, operands)[1], pull, primal, both)

        return {RULE: lambda programs: [*tensors, *_floats(tensors)]}, rules_of


class custom_vjp(_CustomRule[P, R]):
    """A function with a custom VJP rule: a decorator, with `defvjp` for the two halves of the rule.

    Forward mode transposes the pullback, which is linear in the cotangent, so one rule is enough for each mode and
    for vmap; higher orders differentiate it.  As in JAX, a differentiated call returns the result of
    the forward half, and higher orders differentiate that result.

    The function and both halves may close over tensors of enclosing transforms, except over tensors that are
    differentiated there: the rule has derivatives only for the arguments.

    Args:
        f: a function of pytrees of tensors; no derivative is taken through it.
        nondiff_argnums: the positions of arguments that are not tensors, such as functions; `backward` gets them
            first.

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
    ...     return bounded(x, limit), limit  # the result, and the residuals
    >>> def backward(limit, t):
    ...     return tk.clip(t, -limit, limit), None
    >>> bounded.defvjp(forward, backward)
    >>> tk.grad(lambda x: 5.0 * bounded(x, 1.0))(3.0).item()
    1.0
    """

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Set the rule.

        Args:
            forward: takes f's arguments, and returns (result, residuals): a pytree of values for `backward`.
            backward: `(residuals, cotangent of the result)` to a tuple of a cotangent for each argument; None is zero.
        """
        self._set_rule("custom_vjp.defvjp", forward, backward)

    def _rule(
        self, functions: RuleFunctions, static: list[Any], layout: Arguments, tensors: list[Tensor]
    ) -> tuple[dict[str, RuleOperands], Callable[[RuleFunctions], Rules]]:
        name, result, count = self._name, functions.result, len(tensors)
        residuals, function = Result(name, static=(*STATIC, float)), functions.direct[FUNCTION]

        def forward(*xs: Tensor) -> list[Tensor]:
            """The results and the residuals."""
            if not self._rules:
                raise GradientError(
                    f"{name}: custom_vjp has no rule; define it with {name}.defvjp(forward, backward)"
                )
            pair = self._rules[0](*self._with_static(static, layout.filled(xs)))
            value, kept = self._check_pair(pair, "the forward half", "(result, residuals)")
            like = function(*xs) if result.outputs is None else result.outputs
            ys = result.tensors_like("the result of the forward half", value, like, xs[0].interpreter)
            return [*ys, *residuals.flatten(kept, xs[0].interpreter)]

        def backward(*values: Tensor) -> list[Tensor | None]:
            """The cotangents of the operands, from the operands, the residuals, and the cotangents of the results."""
            split = len(values) - result.count
            t = conjugated_tree(result.unflatten(values[split:]))
            pulled = conjugated_tree(self._rules[1](*static, residuals.unflatten(values[count:split]), t))
            return layout.cotangents(name, pulled, values[:count])

        def operands_of_backward(programs: dict[str, Program]) -> Sequence[Any]:
            ys = programs[FORWARD].outputs
            return [*tensors, *ys[result.count :], *ys[: result.count]]

        functions.direct.update({FORWARD: forward, BACKWARD: backward})

        def rules_of(functions: RuleFunctions) -> Rules:
            def primal(active: Sequence[bool], operands: list[Tensor]) -> Any:
                results = functions.run(FORWARD, operands[count:], *operands[:count])
                return results[: result.count], results[result.count :]

            def pull(
                cotangents: Sequence[Tensor | None],
                ys: list[Tensor],
                operands: list[Tensor],
                active: Sequence[bool],
            ) -> list[Tensor | None]:
                xs, captured = operands[:count], operands[count:]
                ts = zeros_for_none(cotangents[: result.count], ys[: result.count])
                pulled = functions.run(BACKWARD, captured, *xs, *ys[result.count :], *ts)
                return [*pulled, *[None] * len(captured)]

            def push(
                tangents: Sequence[Tensor | None], ys: list[Tensor], operands: list[Tensor]
            ) -> list[Tensor | None]:
                active = [t is not None for t in tangents]
                return transpose(
                    lambda *cotangents: pull(cotangents, ys, operands, active), ys[: result.count], tangents
                )

            def both(tangents: Sequence[Tensor | None], operands: list[Tensor]) -> Any:
                ys, kept = primal([t is not None for t in tangents], operands)
                return ys, push(tangents, [*ys, *kept], operands)

            return Rules(push, pull, primal, both)

        return {FORWARD: lambda programs: tensors, BACKWARD: operands_of_backward}, rules_of


def transpose(
    linear: Callable[..., Sequence[Tensor | None]],
    operands: Sequence[Tensor],
    cotangents: Sequence[Tensor | None],
) -> list[Tensor | None]:
    """The transpose of a linear function of tensors like the operands, applied to cotangents of its results."""
    return vjp_flat(linear, [x.zeros_like() for x in operands], cotangents, linear=True)


def zeros_for_none(tangents: Sequence[Tensor | None], like: Sequence[Tensor]) -> list[Tensor]:
    """Tangents or cotangents with tensors of zeros for None."""
    return [x.zeros_like() if t is None else t for t, x in zip(tangents, like, strict=True)]


def _floats(xs: Sequence[Tensor]) -> list[Tensor]:
    return [x for x in xs if x.dtype.kind == "float"]
