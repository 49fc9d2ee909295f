"""checkpoint: recompute the intermediate values of a function for its derivative instead of keeping them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tensorken_core.errors import ConcretizationError, EscapedTensorError, GradientError
from tensorken_core.language.interpreter import R as Representation
from tensorken_core.language.op import Op
from tensorken_core.levels.reverse import Reverse, TapeValue
from tensorken_core.levels.trace import closure_converted, scope
from tensorken_core.program.program import opaque_ops
from tensorken_core.tensor.level import ClosureError, inside_a_transform
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms.arguments import argnums_partial, check_function, inner_interpreter
from tensorken_core.transforms.grad import P, R, jvp_flat, record, vjp_flat
from tensorken_core.transforms.user_op import Arguments, Result, Rules, call, user_op

__all__ = ["checkpoint"]


def checkpoint(f: Callable[P, R]) -> Callable[P, R]:
    """The same function, for which reverse mode keeps only the arguments; it runs f again for the other values.

    This saves memory and costs time: in a chain of checkpointed blocks only the values between blocks are kept.

    f may close over tensors of enclosing transforms, as the parameters in `tk.checkpoint(lambda x: block(params, x))`:
    they count as arguments, so their derivatives are correct too.  Such an f is traced, as in `jit`.

    Args:
        f: a pure function of pytrees of tensors.  `tk.debug.print` within it prints again in the backward pass;
            `tk.io_callback` raises an error where f is differentiated.

    Raises:
        ConcretizationError: when called, if f closes over tensors of enclosing transforms and needs a value, as in
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

    @functools.wraps(check_function("checkpoint", f), updated=())
    def checkpointed(*arguments: Any, **keywords: Any) -> Any:
        layout, tensors = Arguments.of(name, (arguments, keywords))
        level = inner_interpreter(name, tensors)
        result = Result(name)

        def flat(*xs: Tensor) -> list[Any]:
            positional, named = layout.filled(xs)
            return result.tensors(f(*positional, **named))

        if level.below is None:  # no enclosing transform
            if not tensors:
                return f(*arguments, **keywords)
            return result.unflatten(_recomputed(name, flat, tensors))

        def direct() -> list[Tensor]:
            return _recomputed(name, flat, tensors)

        def converted() -> list[Tensor]:
            """The results, with the tensors that f closes over as further operands."""
            program, captured = closure_converted(flat, tensors, level, name, "checkpoint")
            operands = [*captured, *tensors]
            if not operands:
                return list(program.on([]))
            return _recomputed(name, lambda *xs: list(program.on(xs)), operands)

        first, second = (converted, direct) if may_close_over_tensors or not tensors else (direct, converted)
        failures = (ClosureError, EscapedTensorError, ConcretizationError)
        try:
            return result.unflatten(first())
        except failures as error:
            if not tensors:
                raise
            try:
                return result.unflatten(second())
            except failures as other:  # f both closes over tensors and needs values
                raise (other if isinstance(other, ConcretizationError) else error) from None

    return checkpointed


def _recomputed(name: str, flat: Callable[..., list[Any]], operands: Sequence[Tensor]) -> list[Tensor]:
    """The results of a function, for which reverse mode keeps only the operands."""

    def primal(active: Sequence[bool], xs: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        return _recomputed(name, functools.partial(_primals, flat, active), xs), []

    def pull(cotangents: Any, _: Any, xs: Any, active: Any) -> Any:
        with scope():  # else a pass would merge this run with the first one, and keep the values of the first
            return vjp_flat(flat, xs, cotangents, active)

    def both(tangents: Any, xs: Any) -> Any:
        return jvp_flat("jvp", flat, xs, tangents)[:2]

    rules = Rules(lambda tangents, _, xs: both(tangents, xs)[1], pull, primal, both)
    return call(user_op(name, flat, rules), operands)


class _Repeatable(Reverse[Representation]):
    """Refuses ops with effects, except those that show values, since the backward pass runs the function again."""

    def interpret(
        self, op: Op, operands: Sequence[TapeValue[Representation]], params: tuple[Any, ...]
    ) -> Any:
        if op.opaque == "io" or "io" in opaque_ops(params):
            name = op.name if op.opaque else "io_callback"
            raise GradientError(
                f"{name}: tk.checkpoint would run it again in the backward pass; call it outside of the checkpointed "
                f"function, or use tk.debug.callback, which may run twice"
            )
        return super().interpret(op, operands, params)


def _primals(flat: Callable[..., list[Any]], active: Sequence[bool], *xs: Tensor) -> list[Tensor]:
    """The results of a function where these operands are differentiated: custom rules may return other results."""
    indices = [i for i, flag in enumerate(active) if flag]
    of_active = argnums_partial(flat, xs, indices, {})
    level, ys, *_ = record(
        "checkpoint", of_active, [xs[i] for i in indices], None, False, make_level=_Repeatable
    )
    return [Tensor(level.inner, y.representation.primal, y.shape, y.dtype) for y in ys]
