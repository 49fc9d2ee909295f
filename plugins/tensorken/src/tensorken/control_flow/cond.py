"""`cond`: both branches are traced, and one of them runs."""

from __future__ import annotations

from typing import Any

from tensorken.compilation.call_op import apply_higher_order
from tensorken.compilation.eager import jit_is_disabled
from tensorken.control_flow.cond_op import COND
from tensorken.control_flow.in_python import cond_in_python
from tensorken.control_flow.traced_function import (
    LoopArguments,
    TracedFunction,
    check_alike,
    with_common_inputs,
)
from tensorken_core import tree
from tensorken_core.errors import ShapeError
from tensorken_core.language.dtypes import bool_
from tensorken_core.transforms.arguments import Function, check_function

__all__ = ["cond"]


def cond(pred: Any, true_fun: Function, false_fun: Function, *operands: Any) -> Any:
    """Run `true_fun(*operands)` if pred is True, else `false_fun(*operands)`.

    Every call of cond traces both functions, so their results must have the same structure, shapes and
    dtypes.  Under `vmap`, if pred differs between examples, both run for all examples.  An op whose operands are
    all captured tensors runs while tracing, unless it is a loop or a cond.

    Args:
        pred: a bool, or a tensor of shape (), which is compared with zero.
        true_fun: a function of pytrees of tensors; captured tensors are differentiated and batched too.
        false_fun: a function whose result has the same structure, shapes and dtypes.
        operands: the arguments of both functions.

    Raises:
        ShapeError, DTypeError, StructureError: if pred is not one value, or the results differ.

    >>> import tensorken as tk
    >>> half_or_triple = tk.jit(lambda n: tk.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n))
    >>> half_or_triple(6).item(), half_or_triple(7).item()
    (3, 22)
    """
    check_function("cond", true_fun)
    check_function("cond", false_fun)
    leaves, structure = tree.flatten(operands)
    arguments = LoopArguments.of("cond", [pred, *leaves])
    predicate, *xs = arguments.tensors
    if predicate.shape != ():
        raise ShapeError(
            f"cond: the predicate has shape {predicate.shape}, need (); select elements with tk.where, or examples "
            f"with tk.vmap"
        )
    if predicate.dtype is not bool_:
        predicate = predicate != 0
    branches = (true_fun, false_fun)
    if jit_is_disabled():
        result = cond_in_python(predicate, branches, arguments, structure)
        if result is not None:
            return result[0]
    bodies = [
        TracedFunction.of("cond", f, structure, xs, arguments.inner, (), in_branch=True) for f in branches
    ]
    tree.check_same(
        bodies[0].result, bodies[1].result, "cond: the result of false_fun, compared with true_fun's"
    )
    like_outputs = [
        v if i not in bodies[0].numbers else w
        for i, (v, w) in enumerate(zip(bodies[0].outputs, bodies[1].outputs, strict=True))
    ]
    bodies = [
        TracedFunction.of("cond", f, structure, xs, arguments.inner, like_outputs, in_branch=True)
        if body.numbers
        else body
        for f, body in zip(branches, bodies, strict=True)
    ]
    check_alike("cond: the result of false_fun, compared with true_fun's", bodies[0], bodies[1].outputs)
    captured = [*bodies[0].captured, *bodies[1].captured]
    programs = with_common_inputs(bodies)
    ys = apply_higher_order(COND, [predicate, *captured, *xs], tuple(programs))
    return tree.unflatten(bodies[0].result, ys)
