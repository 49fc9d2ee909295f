"""Dispatch: lifts, promotes and broadcasts the operands of an op, and calls their interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorken_core.errors import DTypeError, ScalarRangeError, ShapeError, TensorkenError
from tensorken_core.language.dtype_rules import floating
from tensorken_core.language.dtypes import bool_, float32, int8, int32, with_scalar
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.language.op import OPS, Op, run
from tensorken_core.language.shapes import broadcast
from tensorken_core.tensor.coercion import NUMBERS, is_supported, operand_of, promoted_dtype
from tensorken_core.tensor.level import deepest, lift
from tensorken_core.tensor.value import V, Value


def apply(op: Op, operands: Sequence[Value], params: tuple[Any, ...] = ()) -> Any:
    """Run an op on tensors of one dtype and fitting shapes, which are lifted to one level first.

    Returns:
        A Tensor; a tuple of them if the op has several results.

    Raises:
        ShapeError, DTypeError: if the op is not defined for these operands; the message begins with the op's name.
    """
    dtypes = tuple([x.dtype for x in operands])
    dtype = op.result_dtypes.get(dtypes)
    if dtype is None and any([d.kind == "complex" for d in dtypes]):
        return Interpreter.apply_complex(op, operands, params)
    interpreter = operands[0].interpreter
    representations = [x.representation for x in operands]
    for x in operands:
        if x.interpreter is not interpreter:
            interpreter, representations = at_one_level(op, operands)
            break
    try:
        shape = op.shape(*[x.shape for x in operands], *params)
        dtype = dtype or op.result_dtype(dtypes, params)
    except TensorkenError as error:
        raise type(error)(f"{op.name}: {error}") from None
    result = run(interpreter, op, representations, params)
    tensor = type(operands[0])
    if op.results == 1:
        return tensor(interpreter, result, shape, dtype)
    return tuple([tensor(interpreter, *parts) for parts in zip(result, shape, dtype, strict=True)])


def at_one_level(op: Op, operands: Sequence[Value]) -> tuple[Interpreter[Any], list[Any]]:
    """The deepest of the operands' interpreters, and the operands lifted to it."""
    interpreter = deepest([x.interpreter for x in operands], op.name)
    return interpreter, [lift(x.representation, x.interpreter, interpreter) for x in operands]


def unary(op: Op, x: V, params: tuple[Any, ...] = ()) -> V:
    """`apply` for one operand, which needs no lifting."""
    dtype = op.result_dtypes.get((x.dtype,))
    if dtype is None:
        if x.dtype is bool_ and op.bool_version is not None:
            return op.bool_version(x)  # type: ignore[no-any-return]
        return apply(op, _as_floats(op, x), params)  # type: ignore[no-any-return]
    shape = x.shape
    if params:
        try:
            shape = op.shape(shape, *params)
        except TensorkenError as error:
            raise type(error)(f"{op.name}: {error}") from None
    interpreter = x.interpreter
    result = run(interpreter, op, (x.representation,), params)
    return type(x)(interpreter, result, shape, dtype)


def binary(op: Op, a: V, b: Any) -> V:
    """`apply` for an elementwise op on two operands, which are promoted and broadcast first."""
    if not isinstance(b, Value):
        try:
            a, b = with_operand(op, a, b)
        except ScalarRangeError:
            if op.name not in ("lt", "eq"):
                raise
            return all_equal(a, op.name == "lt" and b > 0)
    dtype = a.dtype
    if dtype is not b.dtype:
        dtype = promoted_dtype(a, b)
        try:
            a, b = a.astype(dtype), b.astype(dtype)
        except DTypeError as error:  # a mix of backends is the more important error
            deepest([a.interpreter, b.interpreter], op.name)
            raise DTypeError(f"{op.name}: {str(error).removeprefix('astype: ')}") from None
    shape = a.shape
    if shape != b.shape:
        try:
            shape = broadcast(shape, b.shape)
        except ShapeError as error:
            raise ShapeError(f"{op.name}: {error}") from None
        # Lift before broadcasting: a trace then captures the small value.
        if a.interpreter is not b.interpreter and dtype.kind != "complex":
            interpreter, operands = at_one_level(op, (a, b))
            a, b = [
                type(a)(interpreter, *parts)
                for parts in zip(operands, (a.shape, b.shape), (dtype, dtype), strict=True)
            ]
        a, b = a.broadcast_to(shape), b.broadcast_to(shape)
    result_dtype = op.result_dtypes.get((dtype, dtype))
    if result_dtype is None:
        if dtype is bool_ and op.bool_version is not None:
            return op.bool_version(a, b)  # type: ignore[no-any-return]
        return apply(op, _as_floats(op, a, b))  # type: ignore[no-any-return]
    interpreter = a.interpreter
    if interpreter is b.interpreter:
        operands = [a.representation, b.representation]
    else:
        interpreter, operands = at_one_level(op, (a, b))
    result = run(interpreter, op, operands, ())
    return type(a)(interpreter, result, shape, result_dtype)


_OF_BOOLS = frozenset("floor_divide remainder integer_pow shift_left shift_right square".split())
"""Ops that numpy computes for bools in int8."""


def _as_floats(op: Op, *operands: Any) -> Sequence[Value]:
    """The operands; integers and bools are cast to float32 if the op takes only floats, as in JAX.

    Bools are cast to int8 for arithmetic of integers, as in numpy.
    """
    if operands[0].dtype is bool_ and op.name in _OF_BOOLS:
        dtype = int8 if is_supported(operands[0].interpreter.base, int8) else int32
        return [x.astype(dtype) for x in operands]
    if op.dtype is floating and not operands[0].dtype.inexact:
        return [x.astype(float32) for x in operands]
    return operands


def all_equal(x: V, value: bool) -> V:
    """This bool for each element: the comparison with an int that is beyond the range of the dtype, as in numpy."""
    truths = binary(OPS["eq"], x, x)
    return truths if value else binary(OPS["eq"], truths, False)


def with_operand(op: Op, a: V, b: Any) -> tuple[V, V]:
    """The tensor and another operand as tensors; a number becomes a `full` of the backend."""
    if type(b) in NUMBERS:
        dtype = a.dtype
        promoted = with_scalar(dtype, b)
        if promoted is not dtype:
            a = a.astype(promoted)
        try:
            return a, a.scalar(b)
        except ScalarRangeError as error:
            raise ScalarRangeError(f"{op.name}: {error}") from None
    return a, operand_of(op.name, b, a)
