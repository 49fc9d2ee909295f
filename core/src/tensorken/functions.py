"""The numpy-named functions over Tensor, built from the language alone, so they work on every backend and level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tensorken.creation import as_operand, as_tensor, pair_of_operands
from tensorken.dispatch import apply, binary
from tensorken.errors import ArgumentError, DTypeError, IndexingError, ShapeError
from tensorken.normalization import Axis, axes_of, axis_of, sizes_of
from tensorken.spec.dtypes import bool_, promote
from tensorken.spec.op import OPS, Op
from tensorken.spec.shapes import Axes, shown
from tensorken.tensor import Tensor

# ---- elementwise -------------------------------------------------------------------------------------------


def exp(x: Any) -> Tensor:
    """e**x, elementwise; for floats.

    >>> import tensorken as tk
    >>> print(f"{tk.exp([0.0, 1.0]):.5f}")
    [1.00000 2.71828]
    """
    return as_tensor(x).exp()


def log(x: Any) -> Tensor:
    """The natural logarithm, elementwise; -inf at 0, NaN below; for floats."""
    return as_tensor(x).log()


def sin(x: Any) -> Tensor:
    """The sine of x in radians, elementwise; for floats."""
    return as_tensor(x).sin()


def cos(x: Any) -> Tensor:
    """The cosine of x in radians, elementwise; for floats."""
    return as_tensor(x).cos()


def tan(x: Any) -> Tensor:
    """The tangent of x in radians, elementwise; for floats."""
    return as_tensor(x).tan()


def tanh(x: Any) -> Tensor:
    """The hyperbolic tangent, elementwise; for floats."""
    return as_tensor(x).tanh()


def sqrt(x: Any) -> Tensor:
    """The square root, elementwise; NaN below 0; for floats."""
    return as_tensor(x).sqrt()


def floor(x: Any) -> Tensor:
    """The largest whole number not above x, elementwise."""
    return as_tensor(x).floor()


def log1p(x: Any) -> Tensor:
    """log(1 + x), accurate for small x, elementwise; for floats."""
    return as_tensor(x).log1p()


def expm1(x: Any) -> Tensor:
    """e**x - 1, accurate for small x, elementwise; for floats."""
    return as_tensor(x).expm1()


def sigmoid(x: Any) -> Tensor:
    """1 / (1 + e**-x), without overflow, elementwise; for floats."""
    return as_tensor(x).sigmoid()


def relu(x: Any) -> Tensor:
    """max(x, 0), elementwise; its derivative at 0 is 0; for floats."""
    return as_tensor(x).relu()


def abs(x: Any) -> Tensor:
    """The absolute value, elementwise; its derivative at 0 is 0."""
    return as_tensor(x).abs()


def sign(x: Any) -> Tensor:
    """-1, 0 or 1 as x is negative, zero or positive, elementwise."""
    return as_tensor(x).sign()


def square(x: Any) -> Tensor:
    """x * x, elementwise."""
    return as_tensor(x).square()


def reciprocal(x: Any) -> Tensor:
    """1 / x, elementwise; for floats."""
    return as_tensor(x).reciprocal()


def negative(x: Any) -> Tensor:
    """-x, elementwise."""
    return -as_tensor(x)


def add(a: Any, b: Any) -> Tensor:
    """a + b, elementwise; the shapes broadcast."""
    return _elementwise(OPS["add"], a, b)


def subtract(a: Any, b: Any) -> Tensor:
    """a - b, elementwise; the shapes broadcast."""
    return _elementwise(OPS["sub"], a, b)


def multiply(a: Any, b: Any) -> Tensor:
    """a * b, elementwise; the shapes broadcast."""
    return _elementwise(OPS["mul"], a, b)


def divide(a: Any, b: Any) -> Tensor:
    """a / b, elementwise; of ints in float32; the shapes broadcast."""
    x, y = pair_of_operands("div", a, b, _some(a, b))
    return x / y


def power(a: Any, b: Any) -> Tensor:
    """a**b, elementwise; the shapes broadcast."""
    return as_tensor(a) ** b


def maximum(a: Any, b: Any) -> Tensor:
    """The larger of a and b, elementwise; NaN if either is; a tie shares the derivative equally."""
    return _elementwise(OPS["maximum"], a, b)


def minimum(a: Any, b: Any) -> Tensor:
    """The smaller of a and b, elementwise; NaN if either is; a tie shares the derivative equally."""
    return _elementwise(OPS["minimum"], a, b)


def equal(a: Any, b: Any) -> Tensor:
    """Whether a equals b, elementwise, as bool."""
    return _elementwise(OPS["eq"], a, b)


def less(a: Any, b: Any) -> Tensor:
    """Whether a is less than b, elementwise, as bool."""
    return _elementwise(OPS["lt"], a, b)


def where(condition: Any, a: Any, b: Any) -> Tensor:
    """a where the bool condition holds, else b; the three shapes broadcast.

    The operand not chosen contributes neither value nor derivative, whatever it is.  (A derivative that is infinite
    there still meets a zero cotangent on its way back, and gives NaN: guard the operand as well.)

    >>> import tensorken as tk
    >>> tk.where(tk.tensor([True, False]), 1.0, 2.0).tolist()
    [1.0, 2.0]
    """
    test = (
        as_operand("where", condition, _some(a, b))
        if isinstance(a, Tensor) or isinstance(b, Tensor)
        else as_tensor(condition)
    )
    return test.where(a, b)


def astype(x: Any, dtype: Any) -> Tensor:
    """x in another dtype."""
    return as_tensor(x).astype(dtype)


# ---- reductions --------------------------------------------------------------------------------------------


def sum(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The sum over axes, all by default; of bool in int32, else in x's dtype."""
    return as_tensor(x).sum(axis, keepdims)


def max(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The maximum over axes, all by default; NaN propagates; ties share the derivative equally."""
    return as_tensor(x).max(axis, keepdims)


def min(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The minimum over axes, all by default; NaN propagates; ties share the derivative equally."""
    return as_tensor(x).min(axis, keepdims)


def mean(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The arithmetic mean over axes, all by default; of ints and bools in float32."""
    return as_tensor(x).mean(axis, keepdims)


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The int32 index of the first maximum along an axis, or in the flat tensor."""
    return as_tensor(x).argmax(axis, keepdims)


def cumsum(x: Any, axis: int | None = None) -> Tensor:
    """The running sum along an axis, or over the flat tensor."""
    return as_tensor(x).cumsum(axis)


def logsumexp(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over axes, all by default, without overflow; -inf where all are -inf.

    >>> import tensorken as tk
    >>> print(f"{tk.logsumexp([1000.0, 1000.0]):.3f}")
    1000.693
    """
    x = as_tensor(x)
    axes = axes_of("logsumexp", x.shape, axis)
    shift = _finite_maximum(x, axes)
    result = (x - shift).exp().sum(axes, keepdims=True).log() + shift
    return result if keepdims else result.reshape(tuple([n for i, n in enumerate(x.shape) if i not in axes]))


def softmax(x: Any, axis: Axis = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along axes, without overflow.

    >>> import tensorken as tk
    >>> tk.softmax([0.0, 0.0]).tolist()
    [0.5, 0.5]
    """
    x = as_tensor(x)
    axes = axes_of("softmax", x.shape, axis)
    weights = (x - _finite_maximum(x, axes)).exp()
    return weights / weights.sum(axes, keepdims=True)


def log_softmax(x: Any, axis: Axis = -1) -> Tensor:
    """log(softmax(x)), without its rounding to 0."""
    x = as_tensor(x)
    axes = axes_of("log_softmax", x.shape, axis)
    shifted = x - _finite_maximum(x, axes)
    return shifted - shifted.exp().sum(axes, keepdims=True).log()


def _finite_maximum(x: Tensor, axes: Axes) -> Tensor:
    """What to subtract before exp: the maximum, as a constant; 0 where that is infinite, as inf - inf is NaN."""
    top = stop_gradient(x).max(axes, keepdims=True)
    return (top - top).eq(0.0).where(top, 0.0)


# ---- products ----------------------------------------------------------------------------------------------


def matmul(a: Any, b: Any) -> Tensor:
    """The matrix product, by numpy's rules: leading axes are a batch and broadcast, one axis is a row or column.

    The product of every row with every column, summed: the interpreters below keep it from ever being built.

    Raises:
        ShapeError: if an operand has no axes, or the inner sizes differ.

    >>> import tensorken as tk
    >>> (tk.tensor([[1.0, 2.0]]) @ tk.tensor([3.0, 4.0])).tolist()
    [11.0]
    """
    a, b = pair_of_operands("matmul", a, b, _some(a, b))
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(
            f"matmul: need at least one axis each, got shapes {a.shape} and {b.shape}; use * to scale"
        )
    if a.dtype is bool_:
        raise DTypeError(
            f"matmul: not defined for bool, got shapes {a.shape} and {b.shape}; cast first (x.astype)"
        )
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        raise ShapeError(
            f"matmul: inner sizes differ, {a.shape} @ {b.shape}: axis -1 of the first has {a.shape[-1]}, "
            f"axis {-2 if b.ndim > 1 else -1} of the second has {inner}; transpose one"
        )
    rows, columns = a, b
    if b.ndim > 1:
        if a.ndim > 1:
            rows = a.reshape((*a.shape[:-1], 1, a.shape[-1]))
            columns = b.reshape((*b.shape[:-2], 1, *b.shape[-2:]))
        columns = columns.mT
    return binary(OPS["mul"], rows, columns).sum(-1)


def dot(a: Any, b: Any) -> Tensor:
    """numpy's dot: the sum over the last axis of a and the last but one of b, with all other axes side by side."""
    a, b = pair_of_operands("dot", a, b, _some(a, b))
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    if a.ndim <= 2 and b.ndim <= 2:
        return matmul(a, b)
    if b.ndim == 1:
        return matmul(a, b)
    outer = a.reshape(a.shape[:-1] + (1,) * (b.ndim - 1) + a.shape[-1:])
    inner = b.ndim - 2
    if a.shape[-1] != b.shape[inner]:
        raise ShapeError(f"dot: sizes differ, axis -1 of {a.shape} and axis -2 of {b.shape}; transpose one")
    order = tuple([i for i in range(b.ndim) if i != inner]) + (inner,)
    return (outer * b.permute(order)).sum(-1)


# ---- shape -------------------------------------------------------------------------------------------------


def reshape(x: Any, shape: int | Sequence[int]) -> Tensor:
    """The same elements in another shape, one size of which may be -1."""
    return as_tensor(x).reshape(shape)


def transpose(x: Any, axes: Sequence[int] | None = None) -> Tensor:
    """The axes in another order; reversed by default."""
    return as_tensor(x).transpose(axes)


permute_dims = transpose


def broadcast_to(x: Any, shape: int | Sequence[int]) -> Tensor:
    """x repeated to a shape, by numpy's rules."""
    return as_tensor(x).broadcast_to(sizes_of("broadcast_to", (shape,)))


def flip(x: Any, axis: Axis = None) -> Tensor:
    """The elements in reverse order along axes, all by default."""
    return as_tensor(x).flip(axis)


def pad(x: Any, pads: Sequence[Sequence[int]]) -> Tensor:
    """Zeros before and after along each axis: one (before, after) pair an axis."""
    return as_tensor(x).pad(pads)


def expand_dims(x: Any, axis: int = 0) -> Tensor:
    """A new axis of size 1."""
    x = as_tensor(x)
    place = axis_of("expand_dims", (*x.shape, 1), axis)
    return x.reshape((*x.shape[:place], 1, *x.shape[place:]))


def squeeze(x: Any, axis: Axis = None) -> Tensor:
    """Without axes of size 1: all of them, or the given ones, which must have size 1."""
    x = as_tensor(x)
    if axis is None:
        return x.reshape(tuple([n for n in x.shape if n != 1]))
    axes = axes_of("squeeze", x.shape, axis)
    for i in axes:
        if x.shape[i] != 1:
            raise ShapeError(
                f"squeeze: axis {i} of shape {x.shape} has size {x.shape[i]}, need 1; leave it out"
            )
    return x.reshape(tuple([n for i, n in enumerate(x.shape) if i not in axes]))


def concatenate(tensors: Sequence[Any], axis: int = 0) -> Tensor:
    """Tensors one after the other along an axis; their other sizes agree.

    >>> import tensorken as tk
    >>> tk.concatenate([tk.tensor([1.0]), tk.tensor([2.0, 3.0])]).tolist()
    [1.0, 2.0, 3.0]
    """
    pieces = _promoted("concatenate", tensors)
    if len(pieces) == 1:
        return pieces[0]
    result: Tensor = apply(OPS["concatenate"], pieces, (axis_of("concatenate", pieces[0].shape, axis),))
    return result


def stack(tensors: Sequence[Any], axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis."""
    pieces = _promoted("stack", tensors)
    for piece in pieces:
        if piece.shape != pieces[0].shape:
            raise ShapeError(
                f"stack: tensors need one shape, got {pieces[0].shape} and {piece.shape}; reshape one"
            )
    place = axis_of("stack", (*pieces[0].shape, 1), axis)
    return concatenate([expand_dims(piece, place) for piece in pieces], place)


def take(x: Any, indices: Any, axis: int | None = None) -> Tensor:
    """The slices of x at integer indices along an axis, or of the flat tensor; negative ones count from the end.

    Raises:
        IndexingError: if an index is out of range.

    >>> import tensorken as tk
    >>> tk.take(tk.tensor([10.0, 20.0, 30.0]), [2, 0]).tolist()
    [30.0, 10.0]
    """
    x = as_tensor(x)
    if axis is None:
        return take(x.reshape((x.size,)), indices, 0)
    place = axis_of("take", x.shape, axis)
    index = as_operand("take", indices, x)
    if index.dtype.kind != "int":
        raise DTypeError(f"take: indices must be int32 or int64, got {index.dtype}; cast them (x.astype)")
    size = x.shape[place]
    flat = index.reshape((index.size,))
    if index.size and not (-size <= int(flat.min()) and int(flat.max()) < size):
        raise IndexingError(
            f"take: indices from {int(flat.min())} to {int(flat.max())} are out of range for axis {place} "
            f"of shape {x.shape}; they run from {-size} to {size - 1}"
        )
    found = x.gather((flat < 0).where(flat + size, flat), place)
    return found.reshape(x.shape[:place] + index.shape + x.shape[place + 1 :])


# ---- derivatives -------------------------------------------------------------------------------------------

_STOP_GRADIENT = Op("stop_gradient", 1, lambda x: x, lambda x: x, body=lambda x: x)


def stop_gradient(x: Any) -> Tensor:
    """x as a constant: no derivative passes through it.

    >>> import tensorken as tk
    >>> tk.grad(lambda x: x * tk.stop_gradient(x))(3.0).item()
    3.0
    """
    result: Tensor = apply(_STOP_GRADIENT, (as_tensor(x),))
    return result


# ---- pieces ------------------------------------------------------------------------------------------------


def _some(a: Any, b: Any) -> Tensor:
    """The first of two operands that is a tensor, or the first made one."""
    return a if isinstance(a, Tensor) else b if isinstance(b, Tensor) else as_tensor(a)


def _elementwise(op: Op, a: Any, b: Any) -> Tensor:
    if not isinstance(a, Tensor):
        a = as_operand(op.name, a, b) if isinstance(b, Tensor) else as_tensor(a)
    return binary(op, a, b)


def _promoted(name: str, tensors: Any) -> list[Tensor]:
    given = list(tensors) if isinstance(tensors, Iterable) else []
    if not given:
        raise ArgumentError(
            f"{name}: need a sequence of at least one tensor, got {shown(tensors)}; write {name}([a, b])"
        )
    beside = next((x for x in given if isinstance(x, Tensor)), None)
    pieces = [as_tensor(x) if beside is None else as_operand(name, x, beside) for x in given]
    dtype = pieces[0].dtype
    for piece in pieces[1:]:
        dtype = promote(dtype, piece.dtype)
    return [piece.astype(dtype) for piece in pieces]
