"""`cond` and `switch`: all branches are traced, and one of them runs."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
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
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_core.language.dtypes import bool_
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms.arguments import Function, check_function, flatten

__all__ = ["cond", "switch"]


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
    return _choice(Branches("cond", "true_fun", "false_fun"), pred, true_fun, false_fun, operands)


def switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """Run `branches[index](*operands)`.

    An index below 0 runs the first branch, one beyond the end the last.  All branches are traced, so their
    results must have the same structure, shapes and dtypes.  It is a tree of conds: under `vmap`, if the index differs
    between examples, all branches run for all examples.

    Args:
        index: an int, or an integer tensor of shape ().
        branches: a sequence of at least one function of pytrees of tensors; captured tensors are differentiated and
            batched too.
        operands: the arguments of all functions.

    Raises:
        ArgumentError: if there is no branch.
        ShapeError, DTypeError, StructureError: if the index is not one integer, or the results differ.

    >>> import tensorken as tk
    >>> f = tk.jit(lambda i, x: tk.switch(i, [tk.sin, tk.exp, lambda x: 2.0 * x], x))
    >>> f(1, 0.0).item(), f(2, 3.0).item(), f(7, 3.0).item()
    (1.0, 6.0, 6.0)
    """
    functions = [check_function("switch", f) for f in branches]
    if not functions:
        raise ArgumentError("switch: there is no branch; give at least one function")
    leaves = tree.leaves(operands)
    i = LoopArguments.of("switch", [index, *leaves]).tensors[0]
    if i.shape != ():
        raise ShapeError(f"switch: the index has shape {i.shape}, need (); choose for examples with tk.vmap")
    if i.dtype.kind != "int":
        raise DTypeError(f"switch: the index must be an integer, got {i.dtype.name}; cast it (x.astype)")

    def run(i: Tensor, *operands: Any, first: int, last: int) -> Any:
        """The result of one of the branches from `first` up to, but not including, `last`."""
        if last - first == 1:
            return functions[first](*operands)
        middle = (first + last) // 2
        names = Branches("switch", f"branch {first}", f"branch {middle}")
        below = functools.partial(run, first=first, last=middle)
        above = functools.partial(run, first=middle, last=last)
        return _choice(names, i < middle, below, above, (i, *operands))

    return run(i, *operands, first=0, last=len(functions))


# ---- shared code -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Branches:
    """The names of the public function and of its two branches, for messages."""

    function: str
    first: str
    second: str

    @property
    def compared(self) -> str:
        return f"{self.function}: the result of {self.second}, compared with {self.first}'s"


def _choice(
    names: Branches, pred: Any, true_fun: Function, false_fun: Function, operands: tuple[Any, ...]
) -> Any:
    """The result of one of two branches."""
    name = names.function
    leaves, structure = flatten(operands)
    arguments = LoopArguments.of(name, [pred, *leaves])
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
    numbers = [i - 1 for i in arguments.numbers if i]

    def traced(f: Function, like_outputs: Sequence[Any]) -> TracedFunction:
        return TracedFunction.of(
            name, f, structure, xs, arguments.inner, like_outputs, in_branch=True, numbers=numbers
        )

    bodies = [traced(f, ()) for f in branches]
    tree.check_same(bodies[0].result, bodies[1].result, names.compared)
    like_outputs = [
        v if i not in bodies[0].numbers else w
        for i, (v, w) in enumerate(zip(bodies[0].outputs, bodies[1].outputs, strict=True))
    ]
    bodies = [
        traced(f, like_outputs) if body.numbers else body for f, body in zip(branches, bodies, strict=True)
    ]
    check_alike(names.compared, bodies[0], bodies[1].outputs)
    captured = [*bodies[0].captured, *bodies[1].captured]
    programs = with_common_inputs(bodies)
    ys = apply_higher_order(COND, [predicate, *captured, *xs], tuple(programs))
    return tree.unflatten(bodies[0].result, ys)
