"""Write single equations, with the numpy calls that the backend's methods make."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorken_core.language.op import run
from tensorken_numpy import special
from tensorken_numpy.clamping import SMALL_SIZE
from tensorken_numpy.compiled import layouts
from tensorken_numpy.compiled.contractions import write_contraction
from tensorken_numpy.compiled.emitter import Emitter
from tensorken_numpy.compiled.predicates import is_elementwise, is_literal, runs_body
from tensorken_numpy.compiled.schedule import BLOCK_SIZE
from tensorken_numpy.compiled.templates import safe_in_place, template
from tensorken_numpy.compiled.values import NUMPY_DTYPES, Value
from tensorken_numpy.compiled.writing import (
    mask_dtype,
    uses_masks,
    with_filled_numbers,
    write_scalars,
    write_steps,
    write_sum_of,
    write_where,
    write_where_constant,
)
from tensorken_numpy.exponential_sums import (
    has_contiguous_rows,
    log_softmax_of_rows,
    logsumexp_of_rows,
    softmax_of_rows,
)
from tensorken_numpy.sums import dtype_of_sums

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation


def write_equation(emitter: Emitter, equation: Equation) -> None:
    """Write the lines of one equation."""
    if is_elementwise(equation):
        _elementwise(emitter, equation)
    else:
        _WRITERS.get(equation.op.name, call)(emitter, equation)


def call(emitter: Emitter, equation: Equation) -> None:
    """Call the backend's method, which allocates the results; or run the op's body in the caller's context."""
    source = emitter.source
    op, params = equation.op, equation.params
    operands = [emitter.full(v).name for v in equation.operands]
    names = [source.new_name() for _ in equation.results]
    targets = names[0] if op.results == 1 else f"({', '.join(names)},)" if names else source.new_name()
    if runs_body(equation, emitter.backend):
        args = [source.bound(x) for x in (run, emitter.backend, op)]
        source.line(
            f"{targets} = in_context({', '.join(args)}, [{', '.join(operands)}], {source.bound(params)})"
        )
    else:
        method = source.bound(getattr(emitter.backend, op.name))
        source.line(f"{targets} = {method}({', '.join([*operands, *[source.bound(p) for p in params]])})")
    for v, name in zip(equation.results, names, strict=True):
        emitter.add_local(v, name, v.shape)


def _elementwise(emitter: Emitter, equation: Equation) -> None:
    (v,) = equation.results
    shape = emitter.compact[v]
    operands = equation.operands
    numbers = [x.value if is_literal(x) else None for x in operands]
    steps = template(equation.op.name, [NUMPY_DTYPES[x.dtype.name] for x in operands], numbers)
    dtype = NUMPY_DTYPES[v.dtype.name]
    if shape == () and steps is not None:
        names = [emitter.scalar(x) for x in operands]
        name = write_scalars(emitter, steps, names, NUMPY_DTYPES[operands[-1].dtype.name])
        emitter.values[v] = Value(name, layouts.contiguous((), dtype))
        emitter.scalars[v] = name
        return
    if all([n == 1 for n in shape]):
        names = [emitter.value(x).name for x in operands]
    else:
        names = [emitter.operand(x) for x in operands]
    filled = functools.partial(emitter.filled, shape) if SMALL_SIZE < math.prod(shape) <= BLOCK_SIZE else None
    names = with_filled_numbers(names, operands, steps, dtype, filled)
    if equation.op.name == "cast" and _is_plain(NUMPY_DTYPES[operands[0].dtype.name], dtype):
        target = emitter.target(v, shape, operands)
        emitter.source.line(f"{emitter.source.bound(np.copyto)}({target.name}, {names[0]}, 'unsafe')")
    elif equation.op.name == "where" and uses_masks(shape, dtype):
        target = emitter.target(v, shape)
        condition = None if is_literal(operands[0]) else emitter.value(operands[0])
        if condition is not None and condition.storage == "constant" and condition.layout.size <= BLOCK_SIZE:
            write_where_constant(
                emitter, operands, names, target.name, condition.layout, emitter.source.bound, dtype
            )
            return
        mask = emitter.scratch(layouts.contiguous(emitter.compact[operands[0]], mask_dtype(dtype)), None)
        write_where(emitter, operands, names, target.name, mask.name, dtype)
        assert mask.region is not None
        emitter.planner.free(mask.region)
    elif steps is None:
        params = [emitter.source.bound(p) for p in equation.params]
        if runs_body(equation, emitter.backend):
            args = [emitter.source.bound(x) for x in (run, emitter.backend, equation.op)]
            full = [emitter.full(x).name for x in operands]
            name = emitter.source.assign(
                f"in_context({', '.join(args)}, [{', '.join(full)}], ({', '.join(params)}))"
            )
            shape = v.shape
        else:
            method = emitter.source.bound(getattr(emitter.backend, equation.op.name))
            name = emitter.source.assign(f"{method}({', '.join([*names, *params])})")
        emitter.add_local(v, name, shape)
    else:
        reusable = [x for x, letter in zip(operands, "ab", strict=False) if safe_in_place(steps, letter)]
        if len(reusable) != len(operands):
            reusable = [x for x in reusable if operands.count(x) == 1]
        target = emitter.target(v, shape, reusable)
        scratch = None
        if any(["t" in (to, *sources) for _, to, sources in steps]):
            scratch = emitter.scratch(target.layout, None)
        write_steps(
            emitter,
            steps,
            names,
            target.name,
            scratch.name if scratch else "",
            NUMPY_DTYPES[operands[-1].dtype.name],
            filled,
        )
        if scratch is not None and scratch.region is not None:
            emitter.planner.free(scratch.region)


def _expand(emitter: Emitter, equation: Equation) -> None:
    emitter.values[equation.results[0]] = emitter.value(equation.operands[0])


def _permute(emitter: Emitter, equation: Equation) -> None:
    (order,) = equation.params
    x = emitter.value(equation.operands[0])
    emitter.values[equation.results[0]] = emitter.view(x, x.layout.transpose(order), f".transpose({order})")


def _reshape(emitter: Emitter, equation: Equation) -> None:
    (v,), (x,) = equation.results, equation.operands
    value = emitter.value(x)
    shape = emitter.compact[v]
    if math.prod(shape) != value.layout.size:  # repetitions must be copied
        value = emitter.copied(emitter.full(x), v)
    emitter.values[v] = emitter.reshaped(value, shape, v)


def _flip(emitter: Emitter, equation: Equation) -> None:
    (axes,) = equation.params
    x = emitter.value(equation.operands[0])
    key = [slice(None, None, -1) if i in axes and n != 1 else slice(None) for i, n in enumerate(x.shape)]
    _sliced(emitter, equation, x, key)


def _crop(emitter: Emitter, equation: Equation) -> None:
    (limits,) = equation.params
    v, x = equation.operands[0], emitter.value(equation.operands[0])
    if 0 in equation.results[0].shape:
        x = emitter.full(v)
    key = [
        slice(None) if n != m or (start, end) == (0, n) else slice(start, end)
        for n, m, (start, end) in zip(x.shape, v.shape, limits, strict=True)
    ]
    _sliced(emitter, equation, x, key)


def _sliced(emitter: Emitter, equation: Equation, x: Value, key: list[slice]) -> None:
    (v,) = equation.results
    if all([one == slice(None) for one in key]):
        emitter.values[v] = x
        return
    emitter.values[v] = emitter.view(x, x.layout[tuple(key)], _key(key))


def _pad(emitter: Emitter, equation: Equation) -> None:
    (v,), (x,), (pads,) = equation.results, equation.operands, equation.params
    target = emitter.target(v, v.shape)
    emitter.source.line(f"{target.name}.fill(0)")
    key = [slice(before, before + n) for n, (before, _) in zip(x.shape, pads, strict=True)]
    if key:
        inside = emitter.view(target, target.layout[tuple(key)], _key(key))
    else:
        inside = target
    emitter.source.line(f"{emitter.source.bound(np.copyto)}({inside.name}, {emitter.value(x).name})")


def _concatenate(emitter: Emitter, equation: Equation) -> None:
    (v,), (axis,) = equation.results, equation.params
    parts = [emitter.full(x).name for x in equation.operands]
    order = emitter.orders.get(v)
    target = emitter.target(v, v.shape) if order is None else emitter.target_in_order(v, order)
    emitter.source.line(
        f"{emitter.source.bound(np.concatenate)}(({', '.join(parts)},), {axis}, {target.name})"
    )


def _gather(emitter: Emitter, equation: Equation) -> None:
    (v,), (x, indices), (axis,) = equation.results, equation.operands, equation.params
    names = [emitter.full(x).name, emitter.full(indices).name]
    if 0 in x.shape or 0 in v.shape:
        call(emitter, equation)
        return
    target = emitter.target(v, v.shape)
    emitter.source.line(  # indices are in range, and numpy copies the array in mode "raise"
        f"{emitter.source.bound(np.take)}({names[0]}, {names[1]}, {axis}, {target.name}, 'clip')"
    )


def _scatter_add(emitter: Emitter, equation: Equation) -> None:
    (v,), (x, indices), (axis, _) = equation.results, equation.operands, equation.params
    names = [emitter.full(x).name, emitter.full(indices).name]
    target = emitter.target(v, v.shape)
    emitter.source.line(f"{target.name}.fill(0)")
    emitter.source.line(f"{emitter.source.bound(special.add_at)}({target.name}, {', '.join(names)}, {axis})")


def _add_at(emitter: Emitter, equation: Equation) -> None:
    (v,), (y, x, indices), (axis,) = equation.results, equation.operands, equation.params
    names = [emitter.full(x).name, emitter.full(indices).name]
    if emitter.updates_in_place(equation):
        target = emitter.values[v] = emitter.value(y)
    else:
        target = emitter.target(v, v.shape)
        emitter.source.line(f"{emitter.source.bound(np.copyto)}({target.name}, {emitter.operand(y)})")
    emitter.source.line(f"{emitter.source.bound(special.add_at)}({target.name}, {', '.join(names)}, {axis})")


def _sum(emitter: Emitter, equation: Equation) -> None:
    _reduce(emitter, equation, write_sum_of)


def _prod(emitter: Emitter, equation: Equation) -> None:
    _reduce(emitter, equation, _write_product)


def _reduce(
    emitter: Emitter, equation: Equation, write: Callable[[Emitter, Value, Sequence[int], str], None]
) -> None:
    (v,), (x,), (axes,) = equation.results, equation.operands, equation.params
    if not axes:
        emitter.values[v] = emitter.value(x)
        return
    value = emitter.full(x)
    write(emitter, value, axes, emitter.target(v, v.shape).name)


def _write_product(emitter: Emitter, value: Value, axes: Sequence[int], y: str) -> None:
    source = emitter.source
    dtype = source.bound(dtype_of_sums(value.dtype))
    source.line(f"{source.bound(np.multiply.reduce)}({value.name}, {axes}, {dtype}, {y}, True)")


def _max(emitter: Emitter, equation: Equation) -> None:
    _extreme(emitter, equation, np.maximum.reduce)


def _min(emitter: Emitter, equation: Equation) -> None:
    _extreme(emitter, equation, np.minimum.reduce)


def _extreme(emitter: Emitter, equation: Equation, reduce: Callable[..., Any]) -> None:
    (v,), (x,), (axes,) = equation.results, equation.operands, equation.params
    value = emitter.value(x)
    if 0 in x.shape:
        call(emitter, equation)
        return
    kept = tuple([i for i in axes if value.shape[i] != 1])
    if not axes:
        emitter.values[v] = value
        return
    target = emitter.target(v, emitter.compact[v])
    if kept:
        emitter.source.line(
            f"{emitter.source.bound(reduce)}({value.name}, {kept}, None, {target.name}, True)"
        )
    else:
        emitter.source.line(f"{emitter.source.bound(np.copyto)}({target.name}, {value.name})")


def _softmax(emitter: Emitter, equation: Equation) -> None:
    _rows(emitter, equation, softmax_of_rows)


def _log_softmax(emitter: Emitter, equation: Equation) -> None:
    _rows(emitter, equation, log_softmax_of_rows)


def _logsumexp(emitter: Emitter, equation: Equation) -> None:
    _rows(emitter, equation, logsumexp_of_rows)


def _rows(emitter: Emitter, equation: Equation, function: Callable[..., None]) -> None:
    (v,), (x,), (axes,) = equation.results, equation.operands, equation.params
    value = emitter.full(x)
    if value.contiguous and value.layout.size and has_contiguous_rows(value.layout, axes):
        target = emitter.target(v, v.shape)
        emitter.source.line(f"{emitter.source.bound(function)}({value.name}, {axes}, {target.name})")
    else:
        call(emitter, equation)


def _cumsum(emitter: Emitter, equation: Equation) -> None:
    _accumulate(emitter, equation, np.add.accumulate)


def _cumprod(emitter: Emitter, equation: Equation) -> None:
    _accumulate(emitter, equation, np.multiply.accumulate)


def _accumulate(emitter: Emitter, equation: Equation, accumulate: Callable[..., Any]) -> None:
    (v,), (x,), (axis,) = equation.results, equation.operands, equation.params
    value = emitter.full(x)
    target = emitter.target(v, v.shape)
    dtype = emitter.source.bound(dtype_of_sums(value.dtype))
    emitter.source.line(f"{emitter.source.bound(accumulate)}({value.name}, {axis}, {dtype}, {target.name})")


def _fused_multiply_add(emitter: Emitter, equation: Equation) -> None:
    write_contraction(emitter, equation)


def _is_plain(of: np.dtype[Any], to: np.dtype[Any]) -> bool:
    return not (of.kind == "f" and to.kind in "iu")


def _key(key: Sequence[slice]) -> str:
    """The text of an index."""
    parts = [
        ":".join(["" if i is None else str(i) for i in (one.start, one.stop)])
        + ("" if one.step is None else f":{one.step}")
        for one in key
    ]
    return f"[{', '.join(parts)}]"


_WRITERS: dict[str, Callable[[Emitter, Equation], None]] = {
    name: globals()[f"_{name}"]
    for name in (
        "expand", "permute", "reshape", "flip", "crop", "pad", "concatenate", "gather", "sum", "prod", "max", "min",
        "cumsum", "cumprod", "fused_multiply_add", "scatter_add", "add_at",
        "softmax", "log_softmax", "logsumexp",
    )
}  # fmt: skip
