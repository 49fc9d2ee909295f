"""Products of matrices and vectors: sums of elementwise products, which the backends never store.

Of bools sums are or and products are and, as in numpy: the result is bool.

Raises:
    ShapeError: if contracted sizes differ, or batch axes do not broadcast.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.operands import first_tensor
from tensorken.arrays.functions.reordering import roll
from tensorken.arrays.functions.shaping import moveaxis
from tensorken.complex_numbers.arithmetic import sum_of_products
from tensorken_core.errors import ArgumentError, AxisError, DTypeError, ShapeError
from tensorken_core.language.dtypes import DType, bool_, int32
from tensorken_core.language.op import OPS, run
from tensorken_core.language.shapes import Axes, Shape, short_repr
from tensorken_core.tensor.coercion import pair_of_operands
from tensorken_core.tensor.dispatch import binary
from tensorken_core.tensor.level import deepest, lift
from tensorken_core.tensor.normalization import axis_of
from tensorken_core.tensor.tensor import Tensor

__all__ = [
    "cross",
    "dot",
    "inner",
    "kron",
    "matmul",
    "matvec",
    "outer",
    "tensordot",
    "vdot",
    "vecdot",
    "vecmat",
]

F = TypeVar("F", bound=Callable[..., Any])

MATMUL = OPS["matmul"]
RESHAPE, PERMUTE, EXPAND, MUL, SUM = (OPS[name] for name in ("reshape", "permute", "expand", "mul", "sum"))


def matmul(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The matrix product, by numpy's rules: leading axes are batch axes and broadcast; a vector is a row or a column.

    It is the sum over the products of every row with every column; the backends never store these products.

    Args:
        a: of shape (..., m, k), or (k,).
        b: of shape (..., k, n), or (k,).

    Returns:
        A tensor of shape (..., m, n), without m or n if that operand is a vector.

    Raises:
        ShapeError: if an operand has no axes, the inner sizes differ or the batch axes do not broadcast.

    >>> import tensorken as tk
    >>> (tk.tensor([[1.0, 2.0]]) @ tk.tensor([3.0, 4.0])).tolist()
    [11.0]
    """
    if (
        type(a) is type(b) is Tensor
        and (dtype := a.dtype) is b.dtype
        and dtype is not bool_
        and len(sizes := a.shape) == len(others := b.shape) >= 2
        and sizes[-1] == others[-2]
        and sizes[:-2] == others[:-2]
    ):
        return _matrix_product(a, b, dtype)
    a, b = _operands("matmul", a, b)
    if a.dtype is bool_:
        return matmul(a.astype(int32), b.astype(int32)).astype(bool_)
    if a.ndim == 2 and b.ndim == 1 and a.shape[1] == b.shape[0] and _has_matmul(a, b):
        return _matrix_product(a, b.reshape((b.shape[0], 1)), a.dtype).reshape((a.shape[0],))
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(
            f"matmul: need at least one axis each, got shapes {a.shape} and {b.shape}; use * to scale"
        )
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        raise ShapeError(
            f"matmul: inner sizes differ, {a.shape} @ {b.shape}: axis -1 of the first has {a.shape[-1]}, "
            f"axis {-2 if b.ndim > 1 else -1} of the second has {inner}; {_transposed(a.shape, b.shape)}"
        )
    rows, columns = a, b
    if b.ndim > 1:
        if a.ndim > 1:
            rows = a.reshape((*a.shape[:-1], 1, a.shape[-1]))
            columns = b.reshape((*b.shape[:-2], 1, *b.shape[-2:]))
        columns = columns.mT
    try:
        product = sum_of_products(rows, columns, -1)
        return product
    except ShapeError:
        raise ShapeError(
            f"matmul: the batch axes of {a.shape} @ {b.shape} do not broadcast; need equal sizes, or 1"
        ) from None


def also_of_bools(function: F) -> F:
    """A function of two operands, and of bools too: it counts them, and the result is whether there are any."""
    names = function.__code__.co_varnames[:2]

    @functools.wraps(function)
    def product(*operands: Any, **named: Any) -> Any:
        given = [*operands[:2], *[named[name] for name in names[len(operands) :] if name in named]]
        if len(given) < 2 or (type(given[0]) is type(given[1]) is Tensor and given[0].dtype is not bool_):
            return function(*operands, **named)
        first, second = given
        a, b = pair_of_operands(function.__name__, first, second, first_tensor(first, second))
        if a.dtype is not bool_:
            return function(*operands, **named)
        others = {name: value for name, value in named.items() if name not in names}
        counts = function(a.astype(int32), b.astype(int32), *operands[2:], **others)
        return counts.astype(bool_)

    return product  # type: ignore[return-value]


def _matrix_product(a: Tensor, b: Tensor, dtype: DType) -> Tensor:
    """The matrix product of operands with equal batch shapes and dtypes, possibly at different levels."""
    a_level, b_level = a.interpreter, b.interpreter
    interpreter = a_level if a_level is b_level else deepest((a_level, b_level), "matmul")
    (*batch, m, k), n = a.shape, b.shape[-1]
    if _computes_matmul(interpreter):
        x, y = a.representation, b.representation
        if a_level is not b_level:
            x, y = lift(x, a_level, interpreter), lift(y, b_level, interpreter)
        return Tensor(interpreter, run(interpreter, MATMUL, (x, y), ()), (*batch, m, n), dtype)
    rank = len(batch)
    rows = run(a_level, RESHAPE, (a.representation,), ((*batch, m, 1, k),))
    columns = run(b_level, RESHAPE, (b.representation,), ((*batch, 1, k, n),))
    columns = run(b_level, PERMUTE, (columns,), ((*range(rank + 1), rank + 2, rank + 1),))
    if a_level is not b_level:
        rows, columns = lift(rows, a_level, interpreter), lift(columns, b_level, interpreter)
    full = (*batch, m, n, k)
    if n != 1:
        rows = run(interpreter, EXPAND, (rows,), (full,))
    if m != 1:
        columns = run(interpreter, EXPAND, (columns,), (full,))
    products = run(interpreter, MUL, (rows, columns), ())
    total = run(interpreter, SUM, (products,), ((rank + 2,),))
    shape = (*batch, m, n)
    return Tensor(interpreter, run(interpreter, RESHAPE, (total,), (shape,)), shape, dtype)


def _has_matmul(a: Tensor, b: Tensor) -> bool:
    return all([x.dtype.kind != "complex" and _computes_matmul(x.interpreter) for x in (a, b)])


def _computes_matmul(interpreter: Any) -> bool:
    """Whether products of matrices at this level are computed now, on a backend with a method for them."""
    return interpreter.eager and interpreter.base.has(MATMUL)  # type: ignore[no-any-return]


def _transposed(a: Shape, b: Shape) -> str:
    """A hint for the error: the operand to transpose so that the inner sizes are equal, if there is one."""
    hints = [
        text
        for text, last, inner in (
            ("a.mT @ b", a[-2:-1], b[-2:][:1]),
            ("a @ b.mT", a[-1:], b[-1:] if len(b) > 1 else ()),
            ("a.mT @ b.mT", a[-2:-1], b[-1:] if len(b) > 1 else ()),
        )
        if last and last == inner
    ]
    return f"{hints[0]} would fit" if hints else "they must be equal"


@also_of_bools
def dot(a: ArrayLike, b: ArrayLike) -> Tensor:
    """numpy's dot: the sum of products over the last axis of a and the second to last of b; all other axes are kept.

    Args:
        a: of shape (..., k).
        b: of shape (..., k, n), or (k,); if either operand has no axes, the two are multiplied elementwise.

    Raises:
        ShapeError: if the two sizes differ.

    >>> import tensorken as tk
    >>> tk.dot([1.0, 2.0], [[3.0], [4.0]]).tolist()
    [11.0]
    """
    a, b = _operands("dot", a, b)
    if a.ndim == 0 or b.ndim == 0:
        return _multiplied("dot", a, b)
    inner = max(b.ndim - 2, 0)
    if a.shape[-1] != b.shape[inner]:
        raise ShapeError(
            f"dot: sizes differ, axis -1 of {a.shape} and axis {inner - b.ndim} of {b.shape}; they must be equal"
        )
    return _contracted(a, b, (a.ndim - 1,), (inner,))


@also_of_bools
def inner(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The sum of products over the last axes of both operands; all other axes are kept, the axes of a first.

    Raises:
        ShapeError: if the last sizes differ.

    >>> import tensorken as tk
    >>> tk.inner([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0]).tolist()
    [3.0, 7.0]
    """
    a, b = _operands("inner", a, b)
    if a.ndim == 0 or b.ndim == 0:
        return _multiplied("inner", a, b)
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(
            f"inner: the last sizes differ, {a.shape[-1]} of {a.shape} and {b.shape[-1]} of {b.shape}; "
            f"they must be equal"
        )
    return _contracted(a, b, (a.ndim - 1,), (b.ndim - 1,))


@also_of_bools
def vdot(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The dot product of the flattened operands, of which the first is conjugated.

    Raises:
        ShapeError: if the operands differ in their number of elements.

    >>> import tensorken as tk
    >>> tk.vdot([[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]]).item()
    5.0
    """
    a, b = _operands("vdot", a, b)
    if a.size != b.size:
        raise ShapeError(
            f"vdot: {a.size} elements of shape {a.shape} and {b.size} of {b.shape}; need equal numbers, or use tk.dot"
        )
    return sum_of_products(a.reshape((a.size,)).conj(), b.reshape((b.size,)), -1)


@also_of_bools
def vecdot(x1: ArrayLike, x2: ArrayLike, axis: int = -1) -> Tensor:
    """The dot products of the vectors along an axis, of which the first are conjugated; all other axes broadcast.

    Raises:
        ShapeError: if the sizes along the axis differ, or the other axes do not broadcast.
        AxisError: if an operand has no such axis.

    >>> import tensorken as tk
    >>> tk.vecdot([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0]).tolist()
    [3.0, 7.0]
    """
    a, b = _operands("vecdot", x1, x2)
    a, b = (moveaxis(x, axis_of("vecdot", x.shape, axis), -1) for x in (a, b))
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(
            f"vecdot: sizes {a.shape[-1]} and {b.shape[-1]} differ along axis {axis}; need vectors of equal length"
        )
    try:
        return sum_of_products(a.conj(), b, -1)
    except ShapeError as error:
        raise ShapeError(f"vecdot: {str(error).removeprefix('mul: ')}") from None


@also_of_bools
def matvec(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The products of matrices, of shape (..., m, n), and vectors, of shape (..., n); all other axes broadcast.

    Raises:
        ShapeError: if the sizes differ, or an operand has too few axes.

    >>> import tensorken as tk
    >>> tk.matvec([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0]).tolist()
    [3.0, 7.0]
    """
    a, b = _matrix_and_vector("matvec", x1, x2)
    return vecdot(a.conj(), b.reshape((*b.shape[:-1], 1, b.shape[-1])))


@also_of_bools
def vecmat(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """The products of vectors, of shape (..., n), and matrices, of shape (..., n, m); all other axes broadcast.

    Raises:
        ShapeError: if the sizes differ, or an operand has too few axes.

    >>> import tensorken as tk
    >>> tk.vecmat([1.0, 1.0], [[1.0, 2.0], [3.0, 4.0]]).tolist()
    [4.0, 6.0]
    """
    b, a = _matrix_and_vector("vecmat", x2, x1)
    return vecdot(a.reshape((*a.shape[:-1], 1, a.shape[-1])), b.mT)


def _matrix_and_vector(name: str, matrix: Any, vector: Any) -> tuple[Tensor, Tensor]:
    a, b = _operands(name, matrix, vector)
    if a.ndim < 2 or b.ndim < 1:
        raise ShapeError(
            f"{name}: need a matrix and a vector, got shapes {a.shape} and {b.shape}; reshape first"
        )
    return a, b


@also_of_bools
def outer(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The product of every element of a with every element of b: shape (a.size, b.size).

    >>> import tensorken as tk
    >>> tk.outer([1.0, 2.0], [3.0, 4.0]).tolist()
    [[3.0, 4.0], [6.0, 8.0]]
    """
    a, b = _operands("outer", a, b)
    return _multiplied("outer", a.reshape((a.size, 1)), b.reshape((1, b.size)))


@also_of_bools
def tensordot(a: ArrayLike, b: ArrayLike, axes: int | Sequence[int | Sequence[int]] = 2) -> Tensor:
    """The sum of products over pairs of axes; the other axes of a come first, then the other axes of b.

    Args:
        a, b: the operands.
        axes: the number of axes to contract, the last of a with the first of b; or a pair, the axes of a and those
            of b, each an int or a sequence of ints.

    Raises:
        ShapeError: if the sizes of a pair differ.
        AxisError: if an axis is out of range or given twice.

    >>> import tensorken as tk
    >>> tk.tensordot(tk.ones((2, 3, 4)), tk.ones((4, 3, 5)), axes=((1, 2), (1, 0))).shape
    (2, 5)
    """
    a, b = _operands("tensordot", a, b)
    axes_a, axes_b = _pairs_of_axes(a, b, axes)
    for i, j in zip(axes_a, axes_b, strict=True):
        if a.shape[i] != b.shape[j]:
            raise ShapeError(
                f"tensordot: axis {i} of {a.shape} has size {a.shape[i]}, axis {j} of {b.shape} has {b.shape[j]}; "
                f"pair axes of equal size"
            )
    return _contracted(a, b, axes_a, axes_b)


@also_of_bools
def kron(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The Kronecker product: a block for each element of a, equal to that element times b.

    >>> import tensorken as tk
    >>> tk.kron([1.0, 10.0], [1.0, 2.0]).tolist()
    [1.0, 2.0, 10.0, 20.0]
    """
    a, b = _operands("kron", a, b)
    rank = max(a.ndim, b.ndim)
    outer_sizes, inner_sizes = ((1,) * (rank - x.ndim) + x.shape for x in (a, b))
    blocks = _multiplied(
        "kron",
        a.reshape(tuple([size for n in outer_sizes for size in (n, 1)])),
        b.reshape(tuple([size for n in inner_sizes for size in (1, n)])),
    )
    return blocks.reshape(tuple([n * m for n, m in zip(outer_sizes, inner_sizes, strict=True)]))


def cross(a: ArrayLike, b: ArrayLike, axis: int = -1) -> Tensor:
    """The cross products of the vectors of three elements along an axis; all other axes broadcast.

    Raises:
        DTypeError: if both operands are bool.
        ShapeError: if the size along the axis is not 3, or the other axes do not broadcast.

    >>> import tensorken as tk
    >>> tk.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]).tolist()
    [0.0, 0.0, 1.0]
    """
    a, b = _operands("cross", a, b)
    if a.dtype is bool_:
        raise DTypeError(
            f"cross: not defined for bool, got shapes {a.shape} and {b.shape}; cast first (x.astype)"
        )
    a, b = (moveaxis(x, axis_of("cross", x.shape, axis), -1) for x in (a, b))
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ShapeError(
            f"cross: vectors need 3 elements, got sizes {a.shape[-1]} and {b.shape[-1]} along axis {axis}; "
            f"add a third element of 0"
        )
    first = _multiplied("cross", roll(a, -1, -1), roll(b, -2, -1))
    return moveaxis(first - roll(a, -2, -1) * roll(b, -1, -1), -1, axis)


# ---- shared code -------------------------------------------------------------------------------------------


def _operands(name: str, a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Convert the operands of a product to one backend and one dtype."""
    a, b = pair_of_operands(name, a, b, first_tensor(a, b))
    if a.interpreter is not b.interpreter:
        deepest((a.interpreter, b.interpreter), name)
    return a, b


def _multiplied(name: str, a: Tensor, b: Tensor) -> Tensor:
    """The elementwise product, with the name of the function in its error."""
    try:
        return binary(MUL, a, b)
    except ShapeError as error:
        raise ShapeError(f"{name}: {str(error).removeprefix('mul: ')}") from None


def _contracted(a: Tensor, b: Tensor, axes_a: Axes, axes_b: Axes) -> Tensor:
    """The sum of products over pairs of axes of a and b."""
    free_a = [i for i in range(a.ndim) if i not in axes_a]
    free_b = [i for i in range(b.ndim) if i not in axes_b]
    paired = [a.shape[i] for i in axes_a]
    rows = a.permute((*free_a, *axes_a)).reshape((*[a.shape[i] for i in free_a], *[1] * len(free_b), *paired))
    columns = b.permute((*free_b, *axes_b)).reshape(
        (*[1] * len(free_a), *[b.shape[i] for i in free_b], *paired)
    )
    axes = tuple(range(rows.ndim - len(paired), rows.ndim))
    return sum_of_products(rows, columns, axes) if paired else binary(MUL, rows, columns)


def _pairs_of_axes(a: Tensor, b: Tensor, axes: Any) -> tuple[Axes, Axes]:
    """The contracted axes of a and the corresponding axes of b."""
    if hasattr(axes, "__index__"):
        count = operator.index(axes)
        if not 0 <= count <= min(a.ndim, b.ndim):
            raise AxisError(
                f"tensordot: cannot pair {count} axes of shapes {a.shape} and {b.shape}; "
                f"give 0 to {min(a.ndim, b.ndim)} axes"
            )
        return tuple(range(a.ndim - count, a.ndim)), tuple(range(count))
    if not isinstance(axes, Sequence) or len(axes) != 2:
        raise ArgumentError(
            f"tensordot: axes must be an int or a pair of axes of a and of b, got {short_repr(axes)}; "
            f"write axes=((1,), (0,))"
        )
    axes_of_both = []
    for x, axes_of_x in zip((a, b), axes, strict=True):
        several = axes_of_x if isinstance(axes_of_x, Sequence) else (axes_of_x,)
        normalized = tuple([axis_of("tensordot", x.shape, axis) for axis in several])
        if len(set(normalized)) != len(normalized):
            raise AxisError(
                f"tensordot: axes {tuple(several)} name an axis twice for shape {x.shape}; name each once"
            )
        axes_of_both.append(normalized)
    if len(axes_of_both[0]) != len(axes_of_both[1]):
        raise ArgumentError(
            f"tensordot: {len(axes_of_both[0])} axes of a and {len(axes_of_both[1])} of b; give equal numbers of axes"
        )
    return axes_of_both[0], axes_of_both[1]
