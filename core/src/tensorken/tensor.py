"""Tensor: the one class that users meet, an interpreter and a representation; and `apply`, where every op passes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tensorken import display, indexing
from tensorken.errors import (
    ArgumentError,
    ConcretizationError,
    DTypeError,
    ImmutableError,
    ScalarRangeError,
    ShapeError,
    TensorkenError,
)
from tensorken.levels import lift, lower, meet
from tensorken.spec.dtypes import DType, as_dtype, bool_, check_scalar, float32, promote, with_scalar
from tensorken.spec.interpreter import Interpreter
from tensorken.spec.op import OPS, Op
from tensorken.spec.raw import RawTensor
from tensorken.spec.shapes import Axes, Shape, broadcast, normalize_axes, normalize_axis, shown

Scalar = bool | int | float
Axis = int | Sequence[int] | None


def apply(op: Op, operands: Sequence[Tensor], params: tuple[Any, ...] = ()) -> Any:
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
            interpreter, representations = _at_one_level(op, operands)
            break
    try:
        shape = op.shape(*[x.shape for x in operands], *params)
        dtypes = tuple([x.dtype for x in operands])
        dtype = op.dtypes.get(dtypes) or op.result_dtype(dtypes, params)
    except TensorkenError as error:
        raise type(error)(f"{op.name}: {error}") from None
    override = interpreter.overrides[op]
    if override is None:
        result = interpreter.interpret(op, representations, params)
    else:
        result = override(interpreter, *representations, *params)
    if op.results == 1:
        return Tensor(interpreter, result, shape, dtype)
    return tuple([Tensor(interpreter, *facts) for facts in zip(result, shape, dtype, strict=True)])


def _at_one_level(op: Op, operands: Sequence[Tensor]) -> tuple[Interpreter[Any], list[Any]]:
    """The interpreter to which all operands can rise, and their representations there."""
    interpreter = meet([x.interpreter for x in operands], op.name)
    return interpreter, [lift(x.representation, x.interpreter, interpreter) for x in operands]


def _unary(op: Op, x: Tensor, params: tuple[Any, ...] = ()) -> Tensor:
    """`apply` for one operand: nothing has to meet."""
    dtype = op.dtypes.get((x.dtype,))
    if dtype is None:
        return apply(op, (x,), params)  # type: ignore[no-any-return]
    shape = x.shape
    if params:
        try:
            shape = op.shape(shape, *params)
        except TensorkenError as error:
            raise type(error)(f"{op.name}: {error}") from None
    interpreter = x.interpreter
    override = interpreter.overrides[op]
    if override is None:
        result = interpreter.interpret(op, (x.representation,), params)
    else:
        result = override(interpreter, x.representation, *params)
    return Tensor(interpreter, result, shape, dtype)


def _binary(op: Op, a: Tensor, b: Any) -> Tensor:
    """`apply` for an elementwise op on two operands, promoted to one dtype and broadcast to one shape first."""
    if not isinstance(b, Tensor):
        a, b = _with_operand(op, a, b)
    dtype = a.dtype
    if dtype is not b.dtype:
        dtype = promote(dtype, b.dtype)
        a, b = a.astype(dtype), b.astype(dtype)
    shape = a.shape
    if shape != b.shape:
        try:
            shape = broadcast(shape, b.shape)
        except ShapeError as error:
            raise ShapeError(f"{op.name}: {error}") from None
        a, b = a.broadcast_to(shape), b.broadcast_to(shape)
    result_dtype = op.dtypes.get((dtype, dtype))
    if result_dtype is None:
        return apply(op, (a, b))  # type: ignore[no-any-return]
    interpreter = a.interpreter
    if interpreter is b.interpreter:
        operands = [a.representation, b.representation]
    else:
        interpreter, operands = _at_one_level(op, (a, b))
    override = interpreter.overrides[op]
    result = interpreter.interpret(op, operands, ()) if override is None else override(interpreter, *operands)
    return Tensor(interpreter, result, shape, result_dtype)


def _with_operand(op: Op, a: Tensor, b: Any) -> tuple[Tensor, Tensor]:
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


class Tensor:
    """An n-dimensional array of one dtype: immutable, differentiable, on any backend.

    Make one with `tk.tensor`, `tk.zeros` and their like, not with this constructor.

    Attributes:
        interpreter: what gives the ops their meaning for this tensor, a backend or a level of a transform.
        representation: what that interpreter keeps for the value.
    """

    __slots__ = ("__weakref__", "_dtype", "_shape", "interpreter", "representation")
    __array_ufunc__ = None  # numpy arrays leave mixed operators to us
    __hash__ = object.__hash__

    def __init__(
        self,
        interpreter: Interpreter[Any],
        representation: Any,
        shape: Shape | None = None,
        dtype: DType | None = None,
    ) -> None:
        self.interpreter = interpreter
        self.representation = representation
        self._shape = shape
        self._dtype = dtype

    # ---- what it is ------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        """The size along each axis."""
        shape = self._shape
        if shape is None:
            shape = self._shape = self.interpreter.shape(self.representation)
        return shape

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        dtype = self._dtype
        if dtype is None:
            dtype = self._dtype = self.interpreter.dtype(self.representation)
        return dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def backend(self) -> str:
        """The name of the backend that holds the value."""
        from tensorken.registry import name_of

        return name_of(self.interpreter.base)[0]

    @property
    def device(self) -> str:
        """The name of the backend's device that holds the value."""
        from tensorken.registry import name_of

        return name_of(self.interpreter.base)[1]

    def to(self, backend: Any, device: str | None = None) -> Tensor:
        """The same values on another backend.

        >>> import tensorken as tk
        >>> tk.tensor([1.0, 2.0]).to("reference").backend
        'reference'
        """
        from tensorken.creation import move

        return move(self, backend, device)

    # ---- the way out -----------------------------------------------------------------------------------------

    def flat(self) -> Any:
        """The elements in row-major order, as the backend gives them: a buffer of the dtype's format, or a list."""
        base, value = lower(self.representation, self.interpreter)
        if not isinstance(base, RawTensor):
            raise ConcretizationError(f"no value is known here: {type(base).__name__} has only shapes")
        return base.ravel(value)

    def tolist(self) -> Any:
        """The elements as nested Python lists; a Python number if there are no axes."""
        flat = self.flat()
        values = flat if isinstance(flat, list) else flat.tolist()
        shape = self.shape
        for axis in range(len(shape) - 1, 0, -1):
            size = shape[axis]
            values = [values[i * size : (i + 1) * size] for i in range(math.prod(shape[:axis]))]
        return values if shape else values[0]

    def item(self) -> Any:
        """The one element as a Python number.

        Raises:
            ShapeError: if there is not exactly one element.
        """
        if self.size != 1:
            raise ShapeError(
                f"item: shape {self.shape} has {self.size} elements, need exactly 1; use tolist()"
            )
        value = self.flat()[0]
        return value.item() if hasattr(value, "item") else value

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ArgumentError(
                f"bool: the truth of shape {self.shape} is ambiguous, need exactly 1 element; reduce it first, or use tk.where"
            )
        return bool(self.item())

    def __index__(self) -> int:
        if self.shape or self.dtype.kind != "int":
            raise ArgumentError(
                f"index: need an integer of shape (), got {self.dtype} of shape {self.shape}; use int(x)"
            )
        return int(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError("len: a tensor of shape () has no length; use x.item() for its value")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise ArgumentError(
                "iteration: a tensor of shape () has no axis to run over; use x.item() for its value"
            )
        return iter([self[i] for i in range(self.shape[0])])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """A fresh numpy array of the values."""
        import importlib

        numpy = importlib.import_module("numpy")  # only numpy calls this
        if copy is False:
            raise ArgumentError("__array__: the values must be copied; leave out copy=False")
        values = numpy.array(self.flat(), dtype=self.dtype.name).reshape(self.shape)
        return values if dtype is None else values.astype(dtype)

    def __repr__(self) -> str:
        return display.representation(self)

    def __str__(self) -> str:
        return display.text(self)

    def __format__(self, spec: str) -> str:
        return display.text(self, spec)

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return self

    def __reduce__(self) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
        from tensorken.creation import unpickle

        if self.interpreter.below is not None:
            raise ArgumentError(
                "pickle: a tensor inside a transform cannot be pickled; return it from the function first"
            )
        flat = self.flat()
        return unpickle, (
            self.shape,
            flat if isinstance(flat, list) else bytes(flat),
            self.dtype,
            self.backend,
        )

    # ---- constants beside it ---------------------------------------------------------------------------------

    def scalar(self, value: Scalar) -> Tensor:
        """The number in the shape and dtype of this tensor: one `full` of the backend, lifted to this level."""
        shape, dtype = self.shape, self.dtype
        if dtype.kind != "float" or type(value) is int:
            check_scalar(value, dtype)
        interpreter = self.interpreter
        base = interpreter.base
        constant = base.full(shape, value, dtype)  # type: ignore[attr-defined]
        if base is not interpreter:
            constant = lift(constant, base, interpreter)
        return Tensor(interpreter, constant, shape, dtype)

    def constant(self, data: Any, dtype: DType, shape: Shape) -> Tensor:
        """Flat row-major data as a constant at the level of this tensor."""
        base = self.interpreter.base
        value = base.new(shape, list(data), dtype)  # type: ignore[attr-defined]
        return Tensor(self.interpreter, lift(value, base, self.interpreter), shape, dtype)

    def zeros_like(self) -> Tensor:
        """Zeros of this shape and dtype, at this level."""
        return self.scalar(0)

    def ones_like(self) -> Tensor:
        """Ones of this shape and dtype, at this level."""
        return self.scalar(1)

    # ---- ops -------------------------------------------------------------------------------------------------

    def apply(self, op: Op, *rest: Any) -> Any:
        """Run an op with this tensor as its first operand; the other operands and the params follow."""
        count = (len(rest) - len(op.params) + 1) if op.arity is None else op.arity
        return apply(op, (self, *rest[: count - 1]), rest[count - 1 :])

    def exp(self) -> Tensor:
        return _unary(EXP, self)

    def log(self) -> Tensor:
        return _unary(LOG, self)

    def sin(self) -> Tensor:
        return _unary(SIN, self)

    def cos(self) -> Tensor:
        return _unary(COS, self)

    def tan(self) -> Tensor:
        return _unary(OPS["tan"], self)

    def tanh(self) -> Tensor:
        return _unary(OPS["tanh"], self)

    def sqrt(self) -> Tensor:
        return _unary(OPS["sqrt"], self)

    def floor(self) -> Tensor:
        return self if self.dtype.kind != "float" else _unary(OPS["floor"], self)

    def sigmoid(self) -> Tensor:
        return _unary(OPS["sigmoid"], self)

    def relu(self) -> Tensor:
        return _unary(OPS["relu"], self)

    def log1p(self) -> Tensor:
        return _unary(OPS["log1p"], self)

    def expm1(self) -> Tensor:
        return _unary(OPS["expm1"], self)

    def sign(self) -> Tensor:
        return _unary(OPS["sign"], self)

    def abs(self) -> Tensor:
        return _unary(OPS["abs"], self)

    def square(self) -> Tensor:
        return _unary(OPS["square"], self)

    def reciprocal(self) -> Tensor:
        return _unary(OPS["reciprocal"], self)

    def __neg__(self) -> Tensor:
        return _unary(NEG, self)

    def __pos__(self) -> Tensor:
        return self

    __abs__ = abs

    def __add__(self, other: Any) -> Tensor:
        return _binary(ADD, self, other)

    def __radd__(self, other: Any) -> Tensor:
        return _binary(ADD, self, other)

    def __sub__(self, other: Any) -> Tensor:
        return _binary(SUB, self, other)

    def __rsub__(self, other: Any) -> Tensor:
        a, b = _with_operand(SUB, self, other)
        return _binary(SUB, b, a)

    def __mul__(self, other: Any) -> Tensor:
        return _binary(MUL, self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return _binary(MUL, self, other)

    def __truediv__(self, other: Any) -> Tensor:
        a, b = (self, other) if isinstance(other, Tensor) else _with_operand(DIV, self, other)
        return _divided(a, b)

    def __rtruediv__(self, other: Any) -> Tensor:
        a, b = _with_operand(DIV, self, other)
        return _divided(b, a)

    def __pow__(self, other: Any) -> Tensor:
        if type(other) is int and (other == 2 or self.dtype.kind == "int"):
            return _integer_power(self, other)
        return _binary(POW, self, other)

    def __rpow__(self, other: Any) -> Tensor:
        a, b = _with_operand(POW, self, other)
        return _binary(POW, b, a)

    def __floordiv__(self, other: Any) -> Tensor:
        op = OPS["floor_divide"]
        a, b = (self, other) if isinstance(other, Tensor) else _with_operand(op, self, other)
        return _divided(a, b).floor() if "float" in (a.dtype.kind, b.dtype.kind) else _binary(op, a, b)

    def __rfloordiv__(self, other: Any) -> Tensor:
        a, b = _with_operand(OPS["floor_divide"], self, other)
        quotient: Tensor = b // a
        return quotient

    def __mod__(self, other: Any) -> Tensor:
        multiple: Tensor = self.__floordiv__(other) * other
        return self - multiple

    def __rmod__(self, other: Any) -> Tensor:
        a, b = _with_operand(OPS["floor_divide"], self, other)
        remainder: Tensor = b % a
        return remainder

    def __and__(self, other: Any) -> Tensor:
        return _logical(self, other, "bitwise_and", lambda a, b: a.where(b, False))

    def __or__(self, other: Any) -> Tensor:
        return _logical(self, other, "bitwise_or", lambda a, b: a.where(True, b))

    def __xor__(self, other: Any) -> Tensor:
        return _logical(self, other, "bitwise_xor", lambda a, b: ~a.eq(b))

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Tensor:
        if self.dtype is bool_:
            return self.where(False, True)
        return _binary(OPS["bitwise_xor"], self, -1)

    def __lshift__(self, other: Any) -> Tensor:
        return _binary(OPS["shift_left"], self, other)

    def __rshift__(self, other: Any) -> Tensor:
        """The bits moved down, the sign coming in, as in numpy."""
        negative = self < 0
        return negative.where(
            ~_binary(OPS["shift_right"], ~self, other), _binary(OPS["shift_right"], self, other)
        )

    def eq(self, other: Any) -> Tensor:
        """Elementwise equality, as bool."""
        return _binary(EQ, self, other)

    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]
        return NotImplemented if other is None or isinstance(other, str) else _binary(EQ, self, other)

    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]
        return NotImplemented if other is None or isinstance(other, str) else ~_binary(EQ, self, other)

    def __lt__(self, other: Any) -> Tensor:
        return _binary(LT, self, other)

    def __gt__(self, other: Any) -> Tensor:
        a, b = _with_operand(LT, self, other) if not isinstance(other, Tensor) else (self, other)
        return _binary(LT, b, a)

    def __le__(self, other: Any) -> Tensor:
        return self.__lt__(other).where(True, self.eq(other))

    def __ge__(self, other: Any) -> Tensor:
        return self.__gt__(other).where(True, self.eq(other))

    def maximum(self, other: Any) -> Tensor:
        return _binary(OPS["maximum"], self, other)

    def minimum(self, other: Any) -> Tensor:
        return _binary(OPS["minimum"], self, other)

    def where(self, a: Any, b: Any) -> Tensor:
        """a where this bool tensor holds, else b; all three broadcast."""
        from tensorken.creation import pair_of_operands

        a, b = pair_of_operands("where", a, b, self)
        if a.shape != self.shape or b.shape != self.shape:
            try:
                shape = broadcast(broadcast(self.shape, a.shape), b.shape)
            except ShapeError as error:
                raise ShapeError(f"where: {error}") from None
            a, b = a.broadcast_to(shape), b.broadcast_to(shape)
            result: Tensor = apply(WHERE, (self.broadcast_to(shape), a, b))
            return result
        result = apply(WHERE, (self, a, b))
        return result

    def astype(self, dtype: Any) -> Tensor:
        """The elements in another dtype; see `cast` in the language for what happens to each."""
        dtype = dtype if isinstance(dtype, DType) else as_dtype(dtype)
        if dtype is self.dtype:
            return self
        return _unary(CAST, self, (dtype,))

    def __matmul__(self, other: Any) -> Tensor:
        from tensorken.functions import matmul

        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        from tensorken.functions import matmul

        return matmul(other, self)

    # ---- reductions ------------------------------------------------------------------------------------------

    def sum(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The sum over axes, all by default; of bool in int32."""
        x = self.astype("int32") if self.dtype is bool_ else self
        return _reduce(SUM, x, axis, keepdims)

    def max(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The maximum over axes, all by default."""
        return _reduce(MAX, self, axis, keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The minimum over axes, all by default."""
        return _reduce(OPS["min"], self, axis, keepdims)

    def mean(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The arithmetic mean over axes, all by default; of ints and bools in float32."""
        axes = _axes("mean", self, axis)
        return _floating(self).sum(axes, keepdims) / math.prod([self.shape[i] for i in axes])

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """The int32 index of the first maximum along an axis, or in the flat tensor."""
        if axis is None:
            flat = self.reshape(self.size).argmax(0)
            return flat.reshape((1,) * self.ndim) if keepdims else flat
        axis = _axis("argmax", self.shape, axis)
        result = _unary(OPS["argmax"], self, (axis,))
        return result if keepdims else result.reshape(self.shape[:axis] + self.shape[axis + 1 :])

    def cumsum(self, axis: int | None = None) -> Tensor:
        """The running sum along an axis, or over the flat tensor."""
        x = self.astype("int32") if self.dtype is bool_ else self
        if axis is None:
            return x.reshape(x.size).cumsum(0)
        return _unary(OPS["cumsum"], x, (_axis("cumsum", x.shape, axis),))

    # ---- movement --------------------------------------------------------------------------------------------

    def reshape(self, *shape: Any) -> Tensor:
        """The same elements in another shape, one size of which may be -1."""
        new = _sizes("reshape", shape)
        if -1 in new:
            new = _fill_in(self.shape, new)
        if new == self.shape:
            return self
        return _unary(RESHAPE, self, (new,))

    def ravel(self) -> Tensor:
        """All elements along one axis, in row-major order."""
        return self.reshape((self.size,))

    def permute(self, *order: Any) -> Tensor:
        """The axes in another order."""
        axes = order[0] if len(order) == 1 and isinstance(order[0], tuple | list) else order
        axes = tuple([_axis("permute", self.shape, axis) for axis in axes])
        if axes == tuple(range(self.ndim)):
            return self
        return _unary(PERMUTE, self, (axes,))

    def transpose(self, *axes: Any) -> Tensor:
        """The axes in another order; reversed by default, as in numpy."""
        if not axes or axes == (None,):
            return self.permute(tuple(range(self.ndim))[::-1])
        return self.permute(*axes)

    @property
    def T(self) -> Tensor:
        """The axes reversed."""
        return self.transpose()

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
        if self.ndim < 2:
            raise ShapeError(f"mT: need at least 2 axes, got shape {self.shape}; reshape first")
        return self.permute((*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))

    def expand(self, shape: Shape) -> Tensor:
        """Axes of size 1 repeated to the sizes of shape; no axis is added."""
        if type(shape) is not tuple:
            shape = _sizes("expand", (shape,))
        if shape == self.shape:
            return self
        return _unary(EXPAND, self, (shape,))

    def broadcast_to(self, shape: Shape) -> Tensor:
        """This tensor repeated to a shape, by numpy's rules."""
        if type(shape) is not tuple:
            shape = _sizes("broadcast_to", (shape,))
        own = self.shape
        if own == shape:
            return self
        missing = len(shape) - len(own)
        x = self.reshape((1,) * missing + own) if missing > 0 else self
        try:
            return x.expand(shape)
        except ShapeError:
            raise ShapeError(
                f"broadcast_to: shape {own} does not broadcast to {shape}; from the last axis on, sizes must be equal or 1"
            ) from None

    def flip(self, axis: Axis = None) -> Tensor:
        """The elements in reverse order along axes, all by default."""
        axes = _axes("flip", self, axis)
        return _unary(OPS["flip"], self, (axes,))

    def pad(self, pads: Sequence[Sequence[int]]) -> Tensor:
        """Zeros before and after along each axis: one (before, after) pair an axis."""
        return _unary(OPS["pad"], self, (_pairs("pad", pads),))

    def crop(self, limits: Sequence[Sequence[int]]) -> Tensor:
        """The elements from start to end (exclusive) along each axis: one (start, end) pair an axis."""
        return _unary(OPS["crop"], self, (_pairs("crop", limits),))

    def concatenate(self, *others: Tensor, axis: int = 0) -> Tensor:
        """This tensor and others, one after the other along an axis."""
        result: Tensor = apply(OPS["concatenate"], (self, *others), (_axis("concatenate", self.shape, axis),))
        return result

    def gather(self, indices: Tensor, axis: int) -> Tensor:
        """The slices at 1-D indices, each in [0, size), along an axis."""
        result: Tensor = apply(OPS["gather"], (self, indices), (_axis("gather", self.shape, axis),))
        return result

    def scatter_add(self, indices: Tensor, axis: int, size: int) -> Tensor:
        """Zeros of `size` along the axis, with the slices of this tensor added at 1-D indices."""
        result: Tensor = apply(
            OPS["scatter_add"], (self, indices), (_axis("scatter_add", self.shape, axis), size)
        )
        return result

    def settle(self) -> Tensor:
        """This tensor, with nothing of it held back to be fused; work that a device delays stays delayed."""
        base, value = lower(self.representation, self.interpreter)
        if isinstance(base, RawTensor):
            base.settle(value)
        return self

    def realize(self) -> Tensor:
        """This tensor, with all delayed work of its backend done."""
        base, value = lower(self.representation, self.interpreter)
        if isinstance(base, RawTensor):
            base.realize(value)
        return self

    def __getitem__(self, key: Any) -> Tensor:
        return indexing.get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise ImmutableError(
            "assignment: tensors are immutable; x.at[i].set(v) gives a new tensor with v at i"
        )

    @property
    def at(self) -> indexing.At:
        """`x.at[i].set(v)`, `.add(v)`, `.multiply(v)`, `.get()`: a new tensor, changed at i."""
        return indexing.At(self)


Interpreter.tensor_type = Tensor

EXP, LOG, SIN, COS, NEG = (OPS[name] for name in ("exp", "log", "sin", "cos", "neg"))
ADD, SUB, MUL, DIV, POW, EQ, LT = (OPS[name] for name in ("add", "sub", "mul", "div", "pow", "eq", "lt"))
WHERE, CAST, SUM, MAX = (OPS[name] for name in ("where", "cast", "sum", "max"))
RESHAPE, PERMUTE, EXPAND = (OPS[name] for name in ("reshape", "permute", "expand"))


def _floating(x: Tensor) -> Tensor:
    return x if x.dtype.kind == "float" else x.astype(float32)


def _divided(a: Tensor, b: Tensor) -> Tensor:
    """a / b; in float32 if neither is a float."""
    if a.dtype.kind != "float" and b.dtype.kind != "float":
        a, b = a.astype(float32), b.astype(float32)
    return _binary(DIV, a, b)


def _integer_power(x: Tensor, exponent: int) -> Tensor:
    """x multiplied by itself, by repeated squaring."""
    if exponent == 2:
        return x.square()
    if exponent < 0:
        raise DTypeError(
            f"pow: {x.dtype} to the negative power {exponent} is not whole; cast first (x.astype)"
        )
    result, factor = x.ones_like(), x
    while exponent:
        if exponent & 1:
            result = result * factor
        exponent >>= 1
        factor = factor * factor if exponent else factor
    return result


def _logical(a: Tensor, b: Any, bitwise: str, logical: Callable[[Tensor, Any], Tensor]) -> Tensor:
    if not isinstance(b, Tensor):
        a, b = _with_operand(OPS[bitwise], a, b)
    return logical(a, b) if a.dtype is b.dtype is bool_ else _binary(OPS[bitwise], a, b)


def _axis(name: str, shape: Shape, axis: int) -> int:
    try:
        return normalize_axis(axis, len(shape), shape)
    except TensorkenError as error:
        raise type(error)(f"{name}: {error}") from None


def _axes(name: str, x: Tensor, axis: Axis) -> Axes:
    try:
        return normalize_axes(axis, x.shape)
    except TensorkenError as error:
        raise type(error)(f"{name}: {error}") from None


def _pairs(name: str, pairs: Sequence[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    try:
        return tuple([(operator.index(first), operator.index(second)) for first, second in pairs])
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}: need one pair of ints for each axis, got {shown(pairs)}") from None


def _sizes(name: str, shape: tuple[Any, ...]) -> Shape:
    """Sizes, given one by one or in one sequence."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    try:
        return tuple(map(operator.index, sizes))
    except TypeError:
        raise ArgumentError(f"{name}: the sizes of a shape must be ints, got {shown(sizes)}") from None


def _reduce(op: Op, x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    axes = _axes(op.name, x, axis)
    result = _unary(op, x, (axes,))
    return result if keepdims else result.reshape(tuple([n for i, n in enumerate(x.shape) if i not in axes]))


def _fill_in(shape: Shape, new: Shape) -> Shape:
    """The shape with its one -1 replaced by what the number of elements demands."""
    known = math.prod([n for n in new if n != -1])
    if new.count(-1) > 1:
        raise ShapeError(f"reshape: only one size may be -1, got {new}; give the others")
    if known == 0 or math.prod(shape) % known:
        raise ShapeError(
            f"reshape: {math.prod(shape)} elements of shape {shape} do not divide into {new}; sizes must agree"
        )
    return tuple([math.prod(shape) // known if n == -1 else n for n in new])
