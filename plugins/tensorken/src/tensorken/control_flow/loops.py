"""Loops: `scan`, `map`, `while_loop` and `fori_loop` are traced once, for any number of steps."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tensorken.arrays.creation import as_tensor
from tensorken.compilation.call_op import apply_higher_order
from tensorken.compilation.eager import jit_is_disabled
from tensorken.control_flow.carries import CARRY, CONSTANT
from tensorken.control_flow.in_python import scan_in_python, while_in_python
from tensorken.control_flow.scan_op import SCAN
from tensorken.control_flow.traced_function import (
    Loop,
    LoopArguments,
    TracedFunction,
    as_constant,
    base_of,
    check_condition,
    in_default_dtypes,
    traced_step,
    with_common_inputs,
)
from tensorken.control_flow.while_op import WHILE
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.language.dtypes import DType, index_dtype, int32, int64
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Variable
from tensorken_core.tensor.normalization import integer_of
from tensorken_core.tensor.number import Number
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms.arguments import Function, check_function
from tensorken_core.transforms.vmap import vmap

__all__ = [
    "fori_loop",
    "map",
    "scan",
    "while_loop",
]


def scan(
    f: Function, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False
) -> tuple[Any, Any]:
    """Loop over the first axis of xs, carrying a state from step to step and stacking the other results.

    The same as this Python code, but traced once::

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, stack(ys)

    Reverse mode stores the residuals of f for each step; with `tk.checkpoint(f)` it stores the carries only.

    Args:
        f: a function (carry, x) -> (carry, y) of pytrees of tensors; the new carry has the structure, shapes and
            dtypes of the old one.
        init: the first carry.
        xs: a pytree of tensors with the same size along the first axis; None if f needs none.
        length: the number of steps; required if xs has no tensors.
        reverse: whether to start with the last x; ys are always in the order of xs.

    Returns:
        The last carry, and the ys, stacked along the first axis.

    Raises:
        ShapeError, DTypeError, StructureError: if the carry changes its structure, shape or dtype, or the sizes of xs
            differ.

    >>> import tensorken as tk
    >>> total, sums = tk.scan(lambda total, x: (total + x, total + x), 0.0, tk.tensor([1.0, 2.0, 3.0]))
    >>> total.item(), sums.tolist()
    (6.0, [1.0, 3.0, 6.0])
    """
    check_function("scan", f)
    return _scan(Loop("scan", "carry", stacks=True), f, init, xs, length, reverse)


def _scan(loop: Loop, f: Function, init: Any, xs: Any, length: int | None, reverse: bool) -> tuple[Any, Any]:
    """`scan` under another name, for messages."""
    leaves, structure = tree.flatten((init, xs))
    arguments = LoopArguments.of(loop.name, leaves)
    count = len(tree.leaves(init))
    values, slices = arguments.tensors[:count], arguments.tensors[count:]
    steps = _number_of_steps(loop.name, slices, length)
    rows = [Variable(x.shape[1:], x.dtype) for x in slices]

    @functools.wraps(f)
    def step(carry: Any, x: Any) -> Any:
        result = f(carry, x)
        if not isinstance(result, tuple) or len(result) != 2:
            raise ArgumentError(
                f"scan: the function must return a pair (carry, y), got {type(result).__name__}; return (carry, None) "
                f"if there is nothing to stack"
            )
        return result

    if steps and jit_is_disabled():
        first = tree.structure(init), tree.structure(xs)
        return scan_in_python(loop, step, arguments, *first, steps, bool(reverse))
    body = traced_step(loop, step, structure, arguments, values, rows, tree.structure(init))
    captured, program = body.captured, body.program
    if not program.inputs:  # an op needs an operand, which determines the backend
        captured = [as_tensor(0.0)]
        program = program.changed(inputs=(Variable((), captured[0].dtype),))
    input_specs = (*[CONSTANT] * len(captured), *[CARRY] * count, *[0] * len(slices))
    output_specs = (*[CARRY] * count, *[0] * (len(program.outputs) - count))
    params = (program, input_specs, output_specs, steps, bool(reverse))
    results = apply_higher_order(SCAN, [*captured, *values, *slices], params)
    last = in_default_dtypes(results[:count], body.numbers.intersection(body.given))
    carry, stacked = tree.unflatten(body.result, [*last, *results[count:]])
    return carry, stacked


def map(f: Function, xs: Any, *, batch_size: int | None = None) -> Any:
    """Apply f to each slice of xs along the first axis, one after the other, and stack the results.

    It is a `scan` without a carry.  `tk.vmap(f)(xs)` gives the same results, but computes all slices at once, which
    needs more memory; a batch size is a compromise.

    Args:
        f: a function of a pytree of tensors.
        xs: a pytree of tensors with the same size along the first axis.
        batch_size: how many slices are computed at once, by `vmap`; None: one, without it.

    Returns:
        The results of f, stacked along the first axis.

    Raises:
        ArgumentError: if xs has no tensors, or the batch size is not positive.
        ShapeError: if the sizes of xs differ.

    >>> import tensorken as tk
    >>> tk.map(lambda x: x.sum(), tk.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [3.0, 7.0]
    """
    check_function("map", f)
    tensors, structure = tree.flatten(xs)
    slices = LoopArguments.of("map", tensors).tensors
    steps = _number_of_steps("map", slices, None)
    xs = tree.unflatten(structure, slices)
    loop = Loop("map", stacks=True)
    if batch_size is None:
        return _scan(loop, _without_carry(f), None, xs, None, False)[1]
    size = integer_of("map", "batch_size", batch_size)
    if size < 1:
        raise ArgumentError(f"map: batch_size must be positive, got {size}; leave it out to go one by one")
    batched, whole = vmap(f), steps // size * size
    parts = []
    if whole:
        batches = tree.map(lambda x: x[:whole].reshape((steps // size, size, *x.shape[1:])), xs)
        ys = _scan(loop, _without_carry(batched), None, batches, None, False)[1]
        parts.append(tree.map(lambda y: y.reshape((whole, *y.shape[2:])), ys))
    if whole < steps or not steps:
        parts.append(batched(tree.map(lambda x: x[whole:], xs)))
    return parts[0] if len(parts) == 1 else tree.map(lambda a, b: a.concatenate(b), *parts)


def _without_carry(f: Function) -> Function:
    """A step of a scan that only stacks."""

    @functools.wraps(f)
    def step(carry: Any, x: Any) -> Any:
        return carry, f(x)

    return step


def while_loop(cond_fun: Function, body_fun: Function, init_val: Any) -> Any:
    """Apply body_fun to a value, starting with init_val, while cond_fun of the value is True.

    Under `vmap`, if examples end at different steps, the loop runs until the last example has ended, and each
    example keeps its own final value.  Forward mode works; reverse mode needs a known number of steps: see
    `fori_loop` and `scan`.

    Args:
        cond_fun: a function of the value that returns a bool of shape ().
        body_fun: a function of the value that returns a value of the same structure, shapes and dtypes.
        init_val: a pytree of tensors.

    Raises:
        ShapeError, DTypeError, StructureError: if the value changes its structure, shape or dtype, or cond_fun returns
            no bool.
        GradientError: when a cotangent is pulled back through the loop.

    >>> import tensorken as tk
    >>> tk.while_loop(lambda x: x < 100, lambda x: x * 2, 3).item()
    192
    """
    check_function("while_loop", cond_fun)
    check_function("while_loop", body_fun)
    leaves, structure = tree.flatten(init_val)
    if not leaves:
        raise ArgumentError(
            "while_loop: init_val has no tensors, so the loop would never end; pass at least one tensor"
        )
    return _while(Loop("while_loop"), cond_fun, body_fun, leaves, structure)


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """Apply `body_fun(i, value)` for i from lower up to, but not including, upper, starting with init_val.

    With known bounds (ints, or tensors outside all transforms) this is a `scan`, which supports forward and reverse
    mode; with unknown bounds it is a `while_loop`.

    Args:
        lower: the first i, an int or an integer tensor of shape ().
        upper: the end of the range, excluded.
        body_fun: a function of i and the value that returns a value of the same structure, shapes and dtypes.
        init_val: a pytree of tensors.

    Raises:
        ShapeError, DTypeError, StructureError: if the value changes its structure, shape or dtype, or a bound is not
            an integer.

    >>> import tensorken as tk
    >>> tk.fori_loop(1, 5, lambda i, x: x * i, 1.0).item()
    24.0
    """
    check_function("fori_loop", body_fun)
    first, last = _bound("lower", lower), _bound("upper", upper)
    if isinstance(first, int) and isinstance(last, int):

        @functools.wraps(body_fun)
        def step(carry: Any, _: Any) -> Any:
            i, value = carry
            return (i + 1, body_fun(i, value)), None

        start = Number.of(as_constant(first, _counter(first, last), base_of(init_val)))
        loop = Loop("fori_loop", extra_carries=1, stacks=True)
        return _scan(loop, step, (start, init_val), None, max(last - first, 0), False)[0][1]
    dtypes = [index_dtype(x.dtype) for x in (first, last) if isinstance(x, Tensor)]
    dtype = int64 if int64 in dtypes else int32
    base = base_of((lower, upper, init_val))
    i, end = [
        x.astype(dtype) if isinstance(x, Tensor) else as_constant(x, dtype, base) for x in (first, last)
    ]
    leaves, structure = tree.flatten((i, end, init_val))

    @functools.wraps(body_fun)
    def advanced(carry: Any) -> Any:
        i, end, value = carry
        return i + 1, end, body_fun(i, value)

    loop = Loop("fori_loop", extra_carries=2)
    return _while(loop, lambda carry: carry[0] < carry[1], advanced, leaves, structure)[2]


# ---- shared code -------------------------------------------------------------------------------------------


def _while(loop: Loop, cond_fun: Function, body_fun: Function, leaves: list[Any], structure: Any) -> Any:
    name = loop.name
    arguments = LoopArguments.of(name, leaves)
    if jit_is_disabled():
        result = while_in_python(loop, cond_fun, body_fun, arguments, structure)
        if result is not None:
            return tree.unflatten(structure, result)
    values = arguments.tensors
    single_argument = tree.structure((tree.unflatten(structure, leaves),))
    body = traced_step(loop, body_fun, single_argument, arguments, values, [], structure)
    condition = TracedFunction.of(
        name, cond_fun, single_argument, values, arguments.inner, (), numbers=body.given
    )
    check_condition(name, condition.outputs)
    captured = [*condition.captured, *body.captured]
    programs = with_common_inputs([condition, body])
    specs = (*[CONSTANT] * len(captured), *[CARRY] * len(values))
    ys = apply_higher_order(WHILE, [*captured, *values], (*programs, specs))
    return tree.unflatten(body.result, in_default_dtypes(ys, body.numbers.intersection(body.given)))


def _number_of_steps(name: str, slices: Sequence[Tensor], length: Any) -> int:
    if length is not None:
        length = integer_of(name, "length", length)
        if length < 0:
            raise ArgumentError(
                f"{name}: length must not be negative, got {length}; give the number of steps"
            )
    steps = length
    for i, x in enumerate(slices):
        if x.ndim == 0:
            raise ShapeError(f"{name}: leaf {i} of xs has shape (), need an axis to loop over; reshape it")
        if steps is None:
            steps = x.shape[0]
        if x.shape[0] != steps:
            expected = f"leaf 0 of xs has {steps}" if length is None else f"length is {steps}"
            raise ShapeError(
                f"{name}: {expected} and leaf {i} of xs has size {x.shape[0]} along axis 0; need equal sizes"
            )
    if steps is None:
        way_out = "pass length=, the number of steps" if name == "scan" else "pass at least one"
        raise ArgumentError(f"{name}: xs has no tensors; {way_out}")
    return int(steps)


def _bound(name: str, value: Any) -> Any:
    """A bound of a loop, as an int if its value is known."""
    if type(value) is int:
        return value
    if not isinstance(value, Tensor) or value.shape != () or value.dtype.kind != "int":
        got = f"{value.dtype.name} {value.shape}" if isinstance(value, Tensor) else type(value).__name__
        raise ArgumentError(f"fori_loop: {name} must be an int, or an integer tensor of shape (), got {got}")
    interpreter = value.interpreter
    return (
        int(value.item())
        if isinstance(interpreter, RawTensor) and not interpreter.capabilities.symbolic
        else value
    )


def _counter(first: int, last: int) -> DType:
    """The dtype of a counter with these bounds."""
    return int32 if first >= -(2**31) and last < 2**31 else int64
