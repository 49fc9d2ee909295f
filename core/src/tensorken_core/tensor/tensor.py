"""Tensor: the class of arrays that users work with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tensorken_core.errors import (
    ArgumentError,
    ConcretizationError,
    EscapedTensorError,
    GradientError,
    ShapeError,
)
from tensorken_core.language.bodies.arrangement import slice_along
from tensorken_core.language.dtypes import (
    DType,
    as_dtype,
    bool_,
    check_scalar,
    index_dtype,
    int32,
    int64,
    position_dtype,
    real_dtype,
    sum_dtype,
    uint32,
)
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.language.op import OPS, Op, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Axes, Shape, broadcast
from tensorken_core.tensor.attached import Attached
from tensorken_core.tensor.coercion import check_supported, is_supported, pair_of_operands
from tensorken_core.tensor.dispatch import apply, unary
from tensorken_core.tensor.level import deepest, lift, lifted, lower
from tensorken_core.tensor.nested import flat_of_numbers
from tensorken_core.tensor.normalization import (
    Axis,
    axes_of,
    axis_of,
    filled_in,
    pairs_of,
    sizes_of,
)

Scalar = bool | int | float

INTS = frozenset({int})
"""The type of sizes and axes that need no conversion."""

SUM, MAX, RESHAPE, PERMUTE, EXPAND = (OPS[name] for name in ("sum", "max", "reshape", "permute", "expand"))
WHERE, CAST, ADD, MUL = OPS["where"], OPS["cast"], OPS["add"], OPS["mul"]


class Tensor(Attached):
    """An n-dimensional array of one dtype: immutable, differentiable, on any backend.

    Make one with `tk.tensor`, `tk.zeros` and their like, or with `Tensor.from_numbers`, not with this constructor.

    This class has Python's operators and the ops of the language.  A library of functions attaches further methods,
    whose signatures are in attached.pyi, for editors and type checkers.

    Attributes:
        interpreter: the interpreter that runs ops on this tensor: a backend, or a level of a transform.
        representation: the interpreter's representation of the value.

    >>> import tensorken as tk
    >>> x = tk.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.shape, str(x.dtype), x.backend
    ((2, 2), 'float32', 'numpy')
    >>> (x[0] @ x).tolist()
    [7.0, 10.0]
    """

    __slots__ = ()

    # ---- from Python -----------------------------------------------------------------------------------------

    @staticmethod
    def from_numbers(interpreter: Interpreter[Any], data: Any, dtype: Any = None) -> Tensor:
        """A tensor on a backend, of a number or nested sequences of numbers.

        Args:
            interpreter: a backend.
            data: the numbers, which are copied.
            dtype: of the result; by default float32 for floats, int32 for ints.

        Raises:
            ArgumentError: if the data is anything else.
            ShapeError: if nested sequences are ragged.
            DTypeError: if the dtype is unknown, or the backend does not support it.
            ScalarRangeError: if a number does not fit the dtype.

        >>> from tensorken_core.tensor.tensor import Tensor
        >>> from tensorken_reference.backend import Reference
        >>> Tensor.from_numbers(Reference(), [[1, 2], [3, 4]]).shape
        (2, 2)
        """
        shape, flat, result_dtype = flat_of_numbers(data, None if dtype is None else as_dtype(dtype))
        check_supported("tensor", interpreter, result_dtype)
        return Tensor.from_flat(interpreter, shape, flat, result_dtype)

    @staticmethod
    def from_flat(interpreter: Interpreter[Any], shape: Shape, flat: Any, dtype: DType) -> Tensor:
        """A tensor on a backend, of row-major values as `RawTensor.new` takes them, or of complex numbers.

        >>> from tensorken_core.language.dtypes import int32
        >>> from tensorken_reference.backend import Reference
        >>> Tensor.from_flat(Reference(), (2, 1), [1, 2], int32).tolist()
        [[1], [2]]
        """
        if dtype.kind == "complex":
            parts = [n.real for n in flat], [n.imag for n in flat]
            part = real_dtype(dtype)
            result: Tensor = Interpreter.complex_type(
                *[Tensor.from_flat(interpreter, shape, values, part) for values in parts]
            )
            return result
        return Tensor(interpreter, interpreter.new(shape, flat, dtype), shape, dtype)  # type: ignore[attr-defined]

    # ---- to Python -------------------------------------------------------------------------------------------

    def flat(self) -> Any:
        """The elements in row-major order, as the backend returns them: a buffer of the dtype's format, or a list.

        Raises:
            ConcretizationError: if the tensor has no value, for example while it is traced.

        >>> import tensorken as tk
        >>> [int(value) for value in tk.tensor([[1, 2], [3, 4]]).flat()]
        [1, 2, 3, 4]
        """
        base, value = lower(self.representation, self.interpreter)
        if not isinstance(base, RawTensor):
            raise ConcretizationError(f"no value is known: {type(base).__name__} computes only shapes")
        return base.ravel(value)

    def tolist(self) -> Any:
        """The elements as nested Python lists; a Python number if there are no axes.

        Raises:
            ConcretizationError: if the tensor has no value, for example while it is traced.

        >>> import tensorken as tk
        >>> tk.tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        flat = self.flat()
        values = flat if isinstance(flat, list) else flat.tolist()
        shape = self.shape
        for axis in range(len(shape) - 1, 0, -1):
            size = shape[axis]
            values = [values[i * size : (i + 1) * size] for i in range(math.prod(shape[:axis]))]
        return values if shape else values[0]

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ArgumentError(
                f"bool: the truth of shape {self.shape} is ambiguous, need exactly 1 element; "
                f"reduce it by x.all() or x.any(), combine conditions by & and |, or use tk.where"
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

    def __repr__(self) -> str:
        try:
            value = f"tensor({self.tolist()}, dtype={self.dtype})"
        except (ConcretizationError, EscapedTensorError):
            value = f"<tensor, shape={self.shape}, dtype={self.dtype}>"
        level: Any = self.interpreter
        return value if level.below is None else f"<{value} inside {level.transform}>"

    # ---- constants at the level of this tensor ---------------------------------------------------------------

    def scalar(self, value: Scalar) -> Tensor:
        """A tensor of this shape and dtype filled with the number: one `full` of the backend, lifted to this level."""
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
        """Flat row-major data as a constant at the level of this tensor.

        >>> import tensorken as tk
        >>> x = tk.ones((2, 3))
        >>> (x * x.constant([1.0, 2.0, 3.0], tk.float32, (3,))).tolist()
        [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]
        """
        base = self.interpreter.base
        values = data if isinstance(data, range) else list(data)
        value = base.new(shape, values, dtype)  # type: ignore[attr-defined]
        return Tensor(self.interpreter, lift(value, base, self.interpreter), shape, dtype)

    def zeros_like(self) -> Tensor:
        """Zeros of this shape and dtype, at this level."""
        return self.scalar(0)

    def ones_like(self) -> Tensor:
        """Ones of this shape and dtype, at this level."""
        return self.scalar(1)

    # ---- ops -------------------------------------------------------------------------------------------------

    def apply(self, op: Op, *rest: Any) -> Any:
        """Run an op with this tensor as its first operand; the other operands and the params follow.

        >>> import tensorken as tk
        >>> from tensorken_core.language.op import OPS
        >>> tk.tensor([1.0, 2.0]).apply(OPS["pad"], ((1, 0),)).tolist()
        [0.0, 1.0, 2.0]
        """
        count = (len(rest) - len(op.params) + 1) if op.arity is None else op.arity
        return apply(op, (self, *rest[: count - 1]), rest[count - 1 :])

    def where(self, a: Any, b: Any) -> Tensor:
        """a where this bool tensor is True, else b; all three broadcast."""
        a, b = pair_of_operands("where", a, b, self)
        try:
            shape = broadcast(broadcast(self.shape, a.shape), b.shape)
        except ShapeError as error:
            raise ShapeError(f"where: {error}") from None
        result: Tensor = apply(WHERE, [x.broadcast_to(shape) for x in (self, a, b)])
        return result

    def astype(self, dtype: Any, *, copy: bool = True) -> Tensor:
        """The elements in another dtype; see `tk.astype`.  `copy` makes no difference, as tensors are immutable."""
        dtype = dtype if isinstance(dtype, DType) else as_dtype(dtype)
        if dtype is self.dtype:
            return self
        if dtype.kind == "complex":
            return Interpreter.complex_of(self, dtype)  # type: ignore[no-any-return]
        base = self.interpreter.base
        if isinstance(base, RawTensor) and dtype.name not in base.capabilities.dtypes:
            check_supported("astype", base, dtype)
        return unary(CAST, self, (dtype,))

    # ---- reductions ------------------------------------------------------------------------------------------

    def sum(self, axis: Axis = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
        """The sum over axes, all by default; of bool and of small integers in 32 bits, unless a dtype is given.

        The sum of 2**31 bools or more is int64.
        """
        if dtype is None:
            if self.dtype.kind == "float":
                return _reduce(SUM, self, axis, keepdims)
            if self.dtype is bool_:
                axes = axes_of("sum", self.shape, axis)
                dtype = position_dtype(math.prod([self.shape[i] for i in axes]))
        return _reduced_in(SUM, ADD, self, axis, keepdims, dtype)

    def sum_in_own_dtype(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The sum over axes in this dtype, also of small integers, which wrap: the op `sum` of the language.

        >>> import tensorken as tk
        >>> tk.tensor([200, 100], dtype="uint8").sum_in_own_dtype().item()
        44
        """
        return _reduce(SUM, self, axis, keepdims)

    def max(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The maximum over axes, all by default."""
        return _reduce(MAX, self, axis, keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The minimum over axes, all by default."""
        return _reduce(OPS["min"], self, axis, keepdims)

    def prod(self, axis: Axis = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
        """The product over axes, all by default; of bool and of small integers in 32 bits, unless a dtype is given."""
        return _reduced_in(OPS["prod"], MUL, self, axis, keepdims, dtype)

    def in_sum_dtype(self, dtype: Any = None) -> Tensor:
        """This tensor in the dtype of its sums and products: see `sum_dtype`, unless a dtype is given.

        On a backend without uint32 the sums of small unsigned integers are int64.

        >>> import tensorken as tk
        >>> tk.tensor([True, True]).in_sum_dtype().tolist()
        [1, 1]
        """
        return self.astype(self.sum_dtype() if dtype is None else dtype)

    def sum_dtype(self) -> DType:
        """The dtype of sums and products of the elements: see `in_sum_dtype`.

        >>> import tensorken as tk
        >>> tk.tensor([1, 2], dtype="int8").sum_dtype()
        tensorken.int32
        """
        dtype = sum_dtype(self.dtype)
        return int64 if dtype is uint32 and not is_supported(self.interpreter.base, dtype) else dtype

    def in_index_dtype(self) -> Tensor:
        """Integers in the dtype of indices, int32 or int64; other dtypes as they are.

        >>> import tensorken as tk
        >>> tk.tensor([1, 2], dtype="uint8").in_index_dtype().dtype
        tensorken.int32
        """
        return self.astype(index_dtype(self.dtype)) if self.dtype.kind == "int" else self

    # ---- movement --------------------------------------------------------------------------------------------

    def reshape(self, *shape: Any) -> Tensor:
        """The same elements in another shape, one size of which may be -1."""
        new = shape[0] if len(shape) == 1 else shape
        if type(new) is not tuple or not INTS.issuperset(map(type, new)):
            new = sizes_of("reshape", shape)
        if -1 in new:
            new = filled_in(self.shape, new)
        if new == self.shape:
            return self
        return unary(RESHAPE, self, (new,))

    def permute(self, *order: Any) -> Tensor:
        """The axes in another order.

        Raises:
            AxisError: if an axis is missing, or given twice.

        >>> import tensorken as tk
        >>> tk.zeros((2, 3, 4)).permute(2, 0, 1).shape
        (4, 2, 3)
        """
        axes = order[0] if len(order) == 1 and isinstance(order[0], tuple | list) else order
        identity = list(range(len(self.shape)))
        if not INTS.issuperset(map(type, axes)) or sorted(axes) != identity:
            axes = [axis_of("permute", self.shape, axis) for axis in axes]
        axes = tuple(axes)
        if axes == tuple(identity):
            return self
        return unary(PERMUTE, self, (axes,))

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged.

        Raises:
            ShapeError: if there are fewer than two axes.

        >>> import tensorken as tk
        >>> tk.zeros((2, 3, 4)).mT.shape
        (2, 4, 3)
        """
        if self.ndim < 2:
            raise ShapeError(f"mT: need at least 2 axes, got shape {self.shape}; reshape first")
        return self.permute((*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))

    def __matmul__(self, other: Any) -> Tensor:
        """The products of matrices, of shapes (..., m, k) and (..., k, n): a sum of products that are never stored."""
        columns: Tensor = other.mT
        rows = self.reshape((*self.shape[:-1], 1, self.shape[-1]))
        return (rows * columns.reshape((*columns.shape[:-2], 1, *columns.shape[-2:]))).sum_in_own_dtype(-1)

    def expand(self, shape: Shape) -> Tensor:
        """Axes of size 1 repeated to the sizes of shape; no axis is added.

        Raises:
            ShapeError: if another size than 1 would change.

        >>> import tensorken as tk
        >>> tk.tensor([[1], [2]]).expand((2, 3)).tolist()
        [[1, 1, 1], [2, 2, 2]]
        """
        if type(shape) is not tuple:
            shape = sizes_of("expand", (shape,))
        if shape == self.shape:
            return self
        return unary(EXPAND, self, (shape,))

    def broadcast_to(self, shape: Shape) -> Tensor:
        """This tensor repeated to a shape, by numpy's rules."""
        if type(shape) is not tuple:
            shape = sizes_of("broadcast_to", (shape,))
        old = self.shape
        if old == shape:
            return self
        missing = len(shape) - len(old)
        x = unary(RESHAPE, self, ((1,) * missing + old,)) if missing > 0 else self
        try:
            return x if x.shape == shape else unary(EXPAND, x, (shape,))
        except ShapeError:
            raise ShapeError(
                f"broadcast_to: shape {old} does not broadcast to {shape}; "
                f"from the last axis on, sizes must be equal or 1"
            ) from None

    def flip(self, axis: Axis = None) -> Tensor:
        """The elements in reverse order along axes, all by default."""
        axes = axes_of("flip", self.shape, axis)
        return unary(OPS["flip"], self, (axes,))

    def pad(self, pads: Sequence[Sequence[int]]) -> Tensor:
        """Zeros before and after along each axis: one (before, after) pair an axis."""
        return unary(OPS["pad"], self, (pairs_of("pad", pads),))

    def crop(self, limits: Sequence[Sequence[int]]) -> Tensor:
        """The elements from start to end (exclusive) along each axis: one (start, end) pair an axis.

        Raises:
            ShapeError: if a pair does not fit the axis.

        >>> import tensorken as tk
        >>> tk.tensor([[1, 2, 3], [4, 5, 6]]).crop([(0, 2), (1, 3)]).tolist()
        [[2, 3], [5, 6]]
        """
        return unary(OPS["crop"], self, (pairs_of("crop", limits),))

    def concatenate(self, *others: Tensor, axis: int = 0) -> Tensor:
        """This tensor and others, one after the other along an axis."""
        result: Tensor = apply(
            OPS["concatenate"], (self, *others), (axis_of("concatenate", self.shape, axis),)
        )
        return result

    def gather(self, indices: Tensor, axis: int) -> Tensor:
        """The slices at 1-D indices, each in [0, size), along an axis.

        Raises:
            AxisError: if there is no such axis.

        >>> import tensorken as tk
        >>> tk.tensor([10, 20, 30]).gather(tk.tensor([2, 0]), 0).tolist()
        [30, 10]
        """
        operands = (self, indices.in_index_dtype())
        result: Tensor = apply(OPS["gather"], operands, (axis_of("gather", self.shape, axis),))
        return result

    def scatter_add(self, indices: Tensor, axis: int, size: int) -> Tensor:
        """Zeros of `size` along the axis, with the slices of this tensor added at 1-D indices.

        Raises:
            AxisError: if there is no such axis.

        >>> import tensorken as tk
        >>> tk.tensor([1, 2, 3]).scatter_add(tk.tensor([0, 2, 0]), 0, 4).tolist()
        [4, 0, 2, 0]
        """
        operands = (self, indices.in_index_dtype())
        result: Tensor = apply(OPS["scatter_add"], operands, (axis_of("scatter_add", self.shape, axis), size))
        return result


def as_tensor(data: Any) -> Tensor:
    """A tensor unchanged; other data as a tensor on the default backend, and a number in its default dtype."""
    if isinstance(data, Tensor):
        return data.astype(data.dtype) if data.is_number else data
    result: Tensor = Interpreter.coerce(data)
    return result


def result_at(level: Any, y: Any) -> Tensor:
    """A leaf of a function's result, lifted to the level; a number becomes a tensor of the level's backend."""
    if level.gave_number and isinstance(y, float | complex):
        raise GradientError(
            f"{level.transform}: the result is a number of Python without a derivative, since a value was read, as by "
            f"float(x) or x.item(); use functions of tensors, such as tk.sin for math.sin"
        )
    try:
        result = y if isinstance(y, Tensor) else Interpreter.coerce(y, None, level.base)
    except ArgumentError as error:
        raise ArgumentError(f"{level.transform}: the result of the function: {error}") from None
    if result.interpreter is level:
        return result
    interpreter: Any = deepest((result.interpreter, level), level.transform)
    if interpreter is not level:
        raise interpreter.escaped_error(level.transform)
    return Tensor(level, lifted(result, level), result.shape, result.dtype)


def _coerced(data: Any, dtype: Any = None, interpreter: Interpreter[Any] | None = None) -> Tensor:
    return Tensor.from_numbers(Interpreter.default() if interpreter is None else interpreter, data, dtype)


Interpreter.tensor_type = Tensor
Interpreter.coerce = staticmethod(_coerced)


PIECE = 2**22
"""The number of elements of a piece of a large tensor, whose conversion to a wider dtype takes little memory."""


def pieces(x: Tensor, axis: int) -> list[Tensor]:
    """A tensor along an axis: the whole, or pieces of some `PIECE` elements if it has many more.

    A program has fewer and larger pieces, as each makes it longer.
    """
    size = x.shape[axis]
    length = PIECE if x.interpreter.below is None else 16 * PIECE
    if x.size <= 4 * length:
        return [x]
    step = max(length * size // x.size, 1)
    return [slice_along(x, axis, start, min(start + step, size)) for start in range(0, size, step)]


def reduced_by_pieces(x: Tensor, axes: Axes, reduce: Callable[[Tensor], Tensor], pair: Op) -> Tensor:
    """A reduction of a tensor, of a large one by pieces, as the whole would take many times its memory.

    Args:
        x: the tensor.
        axes: of the reduction.
        reduce: the reduction of a piece, which keeps the axes.
        pair: the op that combines the results of two pieces.
    """
    split = max(range(x.ndim), key=x.shape.__getitem__, default=0)
    first, *rest = map(reduce, pieces(x, split) if x.ndim else [x])
    if split not in axes:
        return first.concatenate(*rest, axis=split) if rest else first
    for part in rest:
        first = apply(pair, (first, part))
    return first


def without_axes(x: Tensor, axes: Axes) -> Tensor:
    """The tensor without axes of size 1."""
    return x.reshape(tuple([n for i, n in enumerate(x.shape) if i not in axes]))


def _reduced_in(op: Op, pair: Op, x: Tensor, axis: Axis, keepdims: bool, dtype: Any) -> Tensor:
    """The reduction in a dtype, to which the elements are converted as it goes.

    Args:
        op: the reduction.
        pair: the op that combines the results of two pieces.
        x, axis, keepdims, dtype: as those of `Tensor.sum`.
    """
    to = x.sum_dtype() if dtype is None else as_dtype(dtype)
    # A derivative would put the cotangent of each piece into a tensor of the whole size.
    is_plain = not x.dtype.inexact or x.interpreter.below is None
    if not (is_plain and to.itemsize > x.dtype.itemsize and to.kind != "complex"):
        return _reduce(op, x.astype(to), axis, keepdims)
    axes = axes_of(op.name, x.shape, axis)

    def reduced(piece: Tensor) -> Tensor:
        # The sum of so few bytes fits int32, in which it is faster.
        few = math.prod([piece.shape[i] for i in axes]) < 2**23
        narrow = int32 if few and op is SUM and to.kind == "int" and x.dtype.itemsize == 1 else to
        return unary(op, piece.astype(narrow), (axes,)).astype(to)

    result = reduced_by_pieces(x, axes, reduced, pair)
    return result if keepdims or not axes else without_axes(result, axes)


def _reduce(op: Op, x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    shape = x.shape
    axes = tuple(range(len(shape))) if axis is None else axes_of(op.name, shape, axis)
    result = unary(op, x, (axes,))
    if keepdims or not axes:
        return result
    kept = () if axis is None else tuple([n for i, n in enumerate(shape) if i not in axes])
    if type(result) is not Tensor:
        return result.reshape(kept)
    interpreter = result.interpreter
    y = run(interpreter, RESHAPE, (result.representation,), (kept,))
    return Tensor(interpreter, y, kept, result.dtype)
