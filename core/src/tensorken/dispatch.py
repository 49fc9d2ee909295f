"""Where every op passes: operands meet at one level, one dtype and one shape, and their interpreter is called."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorken.errors import ArgumentError, DTypeError, ScalarRangeError, ShapeError, TensorkenError
from tensorken.levels import lift, meet
from tensorken.spec.dtype_rules import floating
from tensorken.spec.dtypes import DType, bool_, float32, promote, with_scalar
from tensorken.spec.interpreter import Interpreter
from tensorken.spec.op import Op, run
from tensorken.spec.shapes import Shape, broadcast, shown

if TYPE_CHECKING:
    from tensorken.tensor import Tensor


class Value:
    """What ops act upon: an interpreter, and what that keeps for the value.

    Attributes:
        interpreter: what gives the ops their meaning for this value, a backend or a level of a transform.
        representation: what that interpreter keeps.
    """

    __slots__ = ("__weakref__", "_dtype", "_shape", "interpreter", "representation")
    __array_ufunc__ = None  # numpy arrays leave mixed operators to us
    __hash__ = object.__hash__

    def __init__(
        self,
        interpreter: Interpreter[Any],
        representation: Any = None,
        shape: Shape | None = None,
        dtype: DType | None = None,
    ) -> None:
        if shape is None and not isinstance(interpreter, Interpreter):
            raise ArgumentError(
                f"{type(self).__name__}: need an interpreter and a representation, got {shown(interpreter)}; "
                f"tk.tensor(data) makes a tensor of numbers, tk.zeros(shape) one of a shape"
            )
        self.interpreter = interpreter
        self.representation = representation
        self._shape = shape
        self._dtype = dtype

    # ---- what it is ------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        """The size along each axis.

        >>> import tensorken as tk
        >>> tk.zeros((2, 3)).shape
        (2, 3)
        """
        shape = self._shape
        if shape is None:
            shape = self._shape = self.interpreter.shape(self.representation)
        return shape

    @property
    def dtype(self) -> DType:
        """The type of the elements.

        >>> import tensorken as tk
        >>> tk.tensor([1.0, 2.0]).dtype
        tensorken.float32
        """
        dtype = self._dtype
        if dtype is None:
            dtype = self._dtype = self.interpreter.dtype(self.representation)
        return dtype

    @property
    def ndim(self) -> int:
        """The number of axes.

        >>> import tensorken as tk
        >>> tk.zeros((2, 3)).ndim
        2
        """
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements.

        >>> import tensorken as tk
        >>> tk.zeros((2, 3)).size
        6
        """
        return math.prod(self.shape)


def apply(op: Op, operands: Sequence[Value], params: tuple[Any, ...] = ()) -> Any:
    """Run one op on tensors, raising them to one level first: the one place where every op passes.

    Returns:
        A Tensor; a tuple of them if the op has several results.

    Raises:
        ShapeError, DTypeError: if the op is not defined for these operands; the message begins with the op's name.
    """
    interpreter = operands[0].interpreter
    representations = [x.representation for x in operands]
    for x in operands:
        if x.interpreter is not interpreter:
            interpreter, representations = at_one_level(op, operands)
            break
    try:
        shape = op.shape(*[x.shape for x in operands], *params)
        dtypes = tuple([x.dtype for x in operands])
        dtype = op.dtypes.get(dtypes) or op.result_dtype(dtypes, params)
    except TensorkenError as error:
        raise type(error)(f"{op.name}: {error}") from None
    result = run(interpreter, op, representations, params)
    tensor = type(operands[0])
    if op.results == 1:
        return tensor(interpreter, result, shape, dtype)
    return tuple([tensor(interpreter, *facts) for facts in zip(result, shape, dtype, strict=True)])


def at_one_level(op: Op, operands: Sequence[Value]) -> tuple[Interpreter[Any], list[Any]]:
    """The interpreter to which all operands can rise, and their representations there."""
    interpreter = meet([x.interpreter for x in operands], op.name)
    return interpreter, [lift(x.representation, x.interpreter, interpreter) for x in operands]


def unary(op: Op, x: Value, params: tuple[Any, ...] = ()) -> Tensor:
    """`apply` for one operand: nothing has to meet."""
    dtype = op.dtypes.get((x.dtype,))
    if dtype is None:
        if x.dtype is bool_ and op.of_bools is not None:
            return op.of_bools(x)  # type: ignore[no-any-return]
        return apply(op, _as_floats(op, x), params)  # type: ignore[no-any-return]
    shape = x.shape
    if params:
        try:
            shape = op.shape(shape, *params)
        except TensorkenError as error:
            raise type(error)(f"{op.name}: {error}") from None
    interpreter = x.interpreter
    result = run(interpreter, op, (x.representation,), params)
    return type(x)(interpreter, result, shape, dtype)  # type: ignore[return-value]


def binary(op: Op, a: Any, b: Any) -> Tensor:
    """`apply` for an elementwise op on two operands, promoted to one dtype and broadcast to one shape first."""
    if not isinstance(b, Value):
        a, b = with_operand(op, a, b)
    dtype = a.dtype
    if dtype is not b.dtype:
        dtype = promote(dtype, b.dtype)
        try:
            a, b = a.astype(dtype), b.astype(dtype)
        except DTypeError as error:  # a backend has not this one; which is no matter if they have two
            meet([a.interpreter, b.interpreter], op.name)
            raise DTypeError(f"{op.name}: {str(error).removeprefix('astype: ')}") from None
    shape = a.shape
    if shape != b.shape:
        try:
            shape = broadcast(shape, b.shape)
        except ShapeError as error:
            raise ShapeError(f"{op.name}: {error}") from None
        if (
            a.interpreter is not b.interpreter
        ):  # what is traced shall hold the small value, not the repeated one
            interpreter, operands = at_one_level(op, (a, b))
            a, b = [
                type(a)(interpreter, *facts)
                for facts in zip(operands, (a.shape, b.shape), (dtype, dtype), strict=True)
            ]
        a, b = a.broadcast_to(shape), b.broadcast_to(shape)
    result_dtype = op.dtypes.get((dtype, dtype))
    if result_dtype is None:
        if dtype is bool_ and op.of_bools is not None:
            return op.of_bools(a, b)  # type: ignore[no-any-return]
        return apply(op, _as_floats(op, a, b))  # type: ignore[no-any-return]
    interpreter = a.interpreter
    if interpreter is b.interpreter:
        operands = [a.representation, b.representation]
    else:
        interpreter, operands = at_one_level(op, (a, b))
    result = run(interpreter, op, operands, ())
    tensor: type[Tensor] = type(a)
    return tensor(interpreter, result, shape, result_dtype)


def _as_floats(op: Op, *operands: Any) -> Sequence[Value]:
    """Operands of one dtype; integers and bools in float32, as numpy and JAX have it, if the op takes floats alone."""
    if op.dtype is floating and operands[0].dtype.kind != "float":
        return [x.astype(float32) for x in operands]
    return operands


def with_operand(op: Op, a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """The tensor and a number or array beside it; a number becomes one `full` of the backend."""
    if type(b) in (bool, int, float):
        dtype = a.dtype
        wanted = with_scalar(dtype, b)
        if wanted is not dtype:
            a = a.astype(wanted)
        try:
            return a, a.scalar(b)
        except ScalarRangeError as error:
            raise ScalarRangeError(f"{op.name}: {error}") from None
    from tensorken.creation import as_operand

    return a, as_operand(op.name, b, a)
