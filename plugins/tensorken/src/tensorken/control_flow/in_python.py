"""Loops and conds in Python, for `disable_jit`: their functions get values.

Each function has the arguments, results and checks of the traced version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorken.arrays.functions.joining import stack
from tensorken.control_flow.traced_function import (
    NUMBER_TYPES,
    Loop,
    LoopArguments,
    TracedFunction,
    adopt_dtypes,
    as_constant,
    check_carry,
    check_condition,
    check_structure,
    in_default_dtypes,
)
from tensorken_core import tree
from tensorken_core.errors import ConcretizationError
from tensorken_core.language.dtypes import with_number, with_scalar
from tensorken_core.tensor.number import Number, numbers_among, with_numbers
from tensorken_core.tensor.tensor import Tensor, as_tensor
from tensorken_core.transforms.arguments import Function


def scan_in_python(
    loop: Loop,
    step: Function,
    arguments: LoopArguments,
    init: tree.Structure,
    rows: tree.Structure,
    length: int,
    reverse: bool,
) -> tuple[Any, Any]:
    """The last carry and the stacked results of a scan of at least one step."""
    values, slices = arguments.tensors[: init.size], arguments.tensors[init.size :]
    numbers = {i: x for i, x in arguments.numbers.items() if i < init.size}
    order = range(length)[::-1] if reverse else range(length)
    stacked: list[tuple[list[Any], tree.Structure]] = []
    carried = values
    steps = 0
    while steps < length:
        k = order[steps]
        carry = tree.unflatten(init, with_numbers(carried, [*numbers]))
        after, y = step(carry, tree.unflatten(rows, [x[k] for x in slices]))
        new_carry = _carried(loop, init, carried, after)
        if steps == 0 and adopt_dtypes(values, new_carry, numbers, numbers_among(tree.leaves(after))):
            continue  # repeat the first step with numbers of the right dtype
        check_carry(loop, init, carried, new_carry)
        leaves, structure = tree.flatten(y)
        if stacked:
            tree.check_same(stacked[0][1], structure, f"{loop.name}: the results that are stacked")
        stacked.append(([_tensor(leaf, None, values or slices) for leaf in leaves], structure))
        carried = new_carry
        steps += 1
    results = [leaves for leaves, _ in (reversed(stacked) if reverse else stacked)]
    ys = [stack(column) for column in zip(*results, strict=True)]
    return tree.unflatten(init, in_default_dtypes(carried, numbers)), tree.unflatten(stacked[0][1], ys)


def while_in_python(
    loop: Loop, cond_fun: Function, body_fun: Function, arguments: LoopArguments, structure: tree.Structure
) -> list[Tensor] | None:
    """The last values; None if the loop must be traced, because the condition or a dtype is otherwise unknown."""
    values, numbers = arguments.tensors, dict(arguments.numbers)
    carried, steps = values, 0
    try:
        while True:
            value = tree.unflatten(structure, with_numbers(carried, [*numbers]))
            condition = _tensors(tree.leaves(cond_fun(value)), values)
            check_condition(loop.name, condition)
            if not bool(condition[0]):
                break
            after = body_fun(value)
            new_carry = _carried(loop, structure, carried, after)
            if steps == 0 and adopt_dtypes(values, new_carry, numbers, numbers_among(tree.leaves(after))):
                continue
            check_carry(loop, structure, carried, new_carry)
            carried = new_carry
            steps += 1
    except ConcretizationError:
        return None
    return in_default_dtypes(carried, numbers) if steps or not numbers else None


def cond_in_python(
    pred: Tensor, functions: tuple[Function, Function], arguments: LoopArguments, structure: tree.Structure
) -> Any:
    """The result of the branch taken, in a tuple; None if the predicate is unknown."""
    operands = with_numbers(arguments.tensors, [*arguments.numbers])[1:]
    try:
        chosen, other = functions if bool(pred) else functions[::-1]
    except ConcretizationError:
        return None
    leaves, result = tree.flatten(chosen(*tree.unflatten(structure, operands)))
    like: Sequence[Any] = ()
    # Numbers take the dtype that the other function returns.
    if any([type(leaf) in NUMBER_TYPES or type(leaf) is Number for leaf in leaves]):
        try:
            body = TracedFunction.of(
                "cond",
                other,
                structure,
                operands,
                arguments.inner,
                (),
                in_branch=True,
                numbers=numbers_among(operands),
            )
        except ConcretizationError:
            pass
        else:
            like = [None if i in body.numbers else v for i, v in enumerate(body.outputs)]
    ys = [
        _tensor(leaf, like[i] if i < len(like) else None, arguments.tensors) for i, leaf in enumerate(leaves)
    ]
    return (tree.unflatten(result, ys),)


def _carried(loop: Loop, carry: tree.Structure, values: Sequence[Tensor], after: Any) -> list[Tensor]:
    """The leaves of the next carry; numbers take the dtypes of the values, if their kind allows."""
    leaves, structure = tree.flatten(after)
    check_structure(loop, carry, structure)
    return [_tensor(leaf, x, values) for leaf, x in zip(leaves, values, strict=True)]


def _tensors(leaves: Sequence[Any], others: Sequence[Tensor]) -> list[Tensor]:
    return [_tensor(leaf, None, others) for leaf in leaves]


def _tensor(leaf: Any, like: Any, others: Sequence[Tensor]) -> Tensor:
    """A result as a tensor on the backend of `others`; a number takes the dtype of `like`, if its kind allows."""
    if isinstance(leaf, Tensor):
        is_number = type(leaf) is Number and like is not None
        return leaf.astype(with_number(like.dtype, leaf.dtype)) if is_number else as_tensor(leaf)
    base = others[0].interpreter.base if others else None
    dtype = with_scalar(like.dtype, leaf) if type(leaf) in NUMBER_TYPES and like is not None else None
    return as_constant(leaf, dtype, base)
