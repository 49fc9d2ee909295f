"""Choices: `cond`, of which both branches are traced and one runs."""

from __future__ import annotations

from typing import Any

from tensorken.compilation.call_op import applied
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
    """`true_fun(*operands)` if pred is True, else `false_fun(*operands)`: one of them runs.

    Both are traced, wherever cond is called, so their results must be alike.  Under `vmap`, where examples may differ
    in pred, both run for all examples.  An op on tensors that a function uses without being given them depends on no
    operand, and runs with the tracing; loops and choices in a branch wait for it all the same.

    Args:
        pred: a bool, or a tensor of shape (): whether it is not zero.
        true_fun: a function of pytrees of tensors; tensors that it uses without being given them are differentiated
            and batched all the same.
        false_fun: another, whose result has the structure, shapes and dtypes of the first one's.
        operands: their arguments.

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
    given = LoopArguments.of("cond", [pred, *leaves])
    predicate, *xs = given.tensors
    if predicate.shape != ():
        raise ShapeError(
            f"cond: the predicate has shape {predicate.shape}, need (); choose by element with tk.where, or by example "
            f"with tk.vmap"
        )
    if predicate.dtype is not bool_:
        predicate = predicate != 0
    branches = (true_fun, false_fun)
    if jit_is_disabled():
        found = cond_in_python(predicate, branches, given, structure)
        if found is not None:
            return found[0]
    bodies = [TracedFunction.of("cond", f, structure, xs, given.inner, (), chosen=True) for f in branches]
    tree.check_same(bodies[0].result, bodies[1].result, "cond: the result of false_fun, beside true_fun's")
    wanted = [
        v if i not in bodies[0].numbers else w
        for i, (v, w) in enumerate(zip(bodies[0].outputs, bodies[1].outputs, strict=True))
    ]
    bodies = [
        TracedFunction.of("cond", f, structure, xs, given.inner, wanted, chosen=True)
        if body.numbers
        else body
        for f, body in zip(branches, bodies, strict=True)
    ]
    check_alike("cond: the result of false_fun, beside true_fun's", bodies[0], bodies[1].outputs)
    captured = [*bodies[0].captured, *bodies[1].captured]
    programs = with_common_inputs(bodies)
    ys = applied(COND, [predicate, *captured, *xs], tuple(programs))
    return tree.unflatten(bodies[0].result, ys)
