"""Tensors filled with one value.

Raises:
    ShapeError: if a size is negative.
    ScalarRangeError: if the value does not fit the dtype; a subclass of OverflowError.
    DTypeError: if the dtype is unknown, or the backend does not support it.
"""

from __future__ import annotations

from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.creation import ShapeLike, shape_of, tensor
from tensorken_core.errors import ArgumentError
from tensorken_core.host.registry import resolve
from tensorken_core.language.dtypes import as_dtype, float32
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.coercion import as_operand, check_supported
from tensorken_core.tensor.level import lift
from tensorken_core.tensor.nested import typed
from tensorken_core.tensor.tensor import Scalar, Tensor, as_tensor

__all__ = [
    "empty",
    "empty_like",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "scalar",
    "zeros",
    "zeros_like",
]


def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: Any = None,
    *,
    backend: Any = None,
    device: str | None = None,
) -> Tensor:
    """A tensor of this shape whose elements are all `fill_value`.

    Args:
        shape: the shape of the result.
        fill_value: a number; or a tensor or array, which is broadcast and stays on its backend.
        dtype: the dtype of the result; by default the dtype of the value: bool, int32 or float32 for Python numbers.
        backend, device: as in `tk.tensor`.

    Raises:
        ShapeError: if a size is negative, or the value does not broadcast.
        ScalarRangeError: if the number does not fit the dtype.

    >>> import tensorken as tk
    >>> tk.full((2, 2), 7).tolist()
    [[7, 7], [7, 7]]
    """
    return _filled("full", shape, fill_value, dtype, backend, device)


def zeros(shape: ShapeLike, dtype: Any = None, *, backend: Any = None, device: str | None = None) -> Tensor:
    """A tensor of zeros, in float32 if no dtype is given.

    >>> import tensorken as tk
    >>> tk.zeros((2, 2), "int32").tolist()
    [[0, 0], [0, 0]]
    """
    return _filled("zeros", shape, 0, float32 if dtype is None else dtype, backend, device)


def ones(shape: ShapeLike, dtype: Any = None, *, backend: Any = None, device: str | None = None) -> Tensor:
    """A tensor of ones, in float32 if no dtype is given.

    >>> import tensorken as tk
    >>> tk.ones(3).tolist()
    [1.0, 1.0, 1.0]
    """
    return _filled("ones", shape, 1, float32 if dtype is None else dtype, backend, device)


def empty(shape: ShapeLike, dtype: Any = None, *, backend: Any = None, device: str | None = None) -> Tensor:
    """A tensor of zeros, since tensors are immutable and have no use for uninitialized values.

    >>> import tensorken as tk
    >>> tk.empty((2, 3)).shape
    (2, 3)
    """
    return _filled("empty", shape, 0, float32 if dtype is None else dtype, backend, device)


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: Any = None,
    *,
    shape: ShapeLike | None = None,
    backend: Any = None,
    device: str | None = None,
) -> Tensor:
    """A tensor like x whose elements are all `fill_value`; transforms see it as a constant.

    Args:
        x: the source of the shape, dtype, backend and device that no argument sets.
        fill_value: a number; or a tensor or array, which is broadcast.
        dtype: the dtype of the result; the value is cast to it.
        shape: the shape of the result.
        backend, device: as in `tk.tensor`.

    Raises:
        ShapeError: if the value does not broadcast.
        ScalarRangeError: if the number does not fit the dtype.

    >>> import tensorken as tk
    >>> tk.full_like(tk.ones((1, 2)), 5).tolist()
    [[5.0, 5.0]]
    """
    return _alike("full_like", x, fill_value, dtype, shape, backend, device)


def zeros_like(
    x: ArrayLike,
    dtype: Any = None,
    *,
    shape: ShapeLike | None = None,
    backend: Any = None,
    device: str | None = None,
) -> Tensor:
    """Zeros with the shape, dtype and backend of x, unless arguments set others.

    >>> import tensorken as tk
    >>> tk.zeros_like([[1.0, 2.0]]).tolist()
    [[0.0, 0.0]]
    """
    return _alike("zeros_like", x, 0, dtype, shape, backend, device)


def ones_like(
    x: ArrayLike,
    dtype: Any = None,
    *,
    shape: ShapeLike | None = None,
    backend: Any = None,
    device: str | None = None,
) -> Tensor:
    """Ones with the shape, dtype and backend of x, unless arguments set others.

    >>> import tensorken as tk
    >>> tk.ones_like([[1.0, 2.0]], "int32").tolist()
    [[1, 1]]
    """
    return _alike("ones_like", x, 1, dtype, shape, backend, device)


def empty_like(
    x: ArrayLike,
    dtype: Any = None,
    *,
    shape: ShapeLike | None = None,
    backend: Any = None,
    device: str | None = None,
) -> Tensor:
    """A tensor of zeros like x, since tensors are immutable.

    >>> import tensorken as tk
    >>> tk.empty_like([[1.0, 2.0]]).shape
    (1, 2)
    """
    return _alike("empty_like", x, 0, dtype, shape, backend, device)


def scalar(value: Scalar, dtype: Any = None, *, backend: Any = None, device: str | None = None) -> Tensor:
    """A tensor of shape ().

    >>> import tensorken as tk
    >>> tk.scalar(2.0).shape
    ()
    """
    return full((), value, dtype, backend=backend, device=device)


# ---- shared code -------------------------------------------------------------------------------------------


def _filled(name: str, shape: ShapeLike, value: Any, dtype: Any, backend: Any, device: str | None) -> Tensor:
    sizes = shape_of(name, shape)
    requested = None if dtype is None else as_dtype(dtype)
    if not isinstance(value, int | float | complex) or hasattr(value, "dtype"):
        if not isinstance(value, Tensor | list | tuple) and not hasattr(value, "dtype"):
            raise ArgumentError(
                f"{name}: the value must be one number or tensor, got {short_repr(value)}; see tk.tensor"
            )
        return tensor(value, requested, backend=backend, device=device).broadcast_to(sizes)
    (number,), result_dtype = typed(name, [value], requested)
    interpreter = resolve(backend, device)
    check_supported(name, interpreter, result_dtype)
    if result_dtype.kind == "complex":
        return Tensor.from_flat(interpreter, (), [number], result_dtype).broadcast_to(sizes)
    return Tensor(interpreter, interpreter.full(sizes, number, result_dtype), sizes, result_dtype)


def _alike(
    name: str,
    x: Any,
    value: Any,
    dtype: Any,
    shape: ShapeLike | None,
    backend: Any,
    device: str | None,
) -> Tensor:
    """Fill a shape with a number, at the level of x unless a backend is given."""
    x = as_tensor(x)
    dtype = x.dtype if dtype is None else as_dtype(dtype)
    sizes = x.shape if shape is None else shape_of(name, shape)
    if backend is not None or device is not None:
        return full(sizes, value, dtype, backend=backend, device=device)
    if not isinstance(value, int | float) or dtype.kind == "complex":
        operand: Tensor = as_operand(name, value, x.astype(dtype) if dtype.kind == "complex" else x)
        return operand.astype(dtype).broadcast_to(sizes)
    (number,), _ = typed(name, [value], dtype)
    base = x.interpreter.base
    check_supported(name, base, dtype)
    return Tensor(x.interpreter, lift(base.full(sizes, number, dtype), base, x.interpreter), sizes, dtype)
