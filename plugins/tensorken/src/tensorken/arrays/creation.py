"""Creation: tensors from Python data, buffers and other backends.  Only creation looks up a backend in the registry."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Sequence
from typing import Any

from tensorken.complex_numbers.tensor import ComplexTensor
from tensorken.interchange.buffers import flat_of
from tensorken.interchange.dlpack import checked
from tensorken.interchange.elements import unpacked
from tensorken.interchange.interop import check_unmasked, not_exported
from tensorken.ops.placement import check_has_placements
from tensorken_core import tree
from tensorken_core.errors import (
    ArgumentError,
    BackendError,
    ConcretizationError,
    DTypeError,
    ExchangeError,
    ShapeError,
)
from tensorken_core.host.registry import resolve
from tensorken_core.language.dtypes import DType, as_dtype, float32, promote, real_dtype
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import MOST_ELEMENTS, Shape, short_repr
from tensorken_core.tensor.coercion import as_operand as as_operand, check_supported
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.level import deepest, lower
from tensorken_core.tensor.nested import MOST_NESTED, NUMBERS
from tensorken_core.tensor.tensor import Tensor, as_tensor as as_tensor

__all__ = [
    "array",
    "asarray",
    "new",
    "randn",
    "symbol",
    "tensor",
]

ShapeLike = int | Sequence[int]


def tensor(data: Any, dtype: Any = None, *, backend: Any = None, device: str | None = None) -> Tensor:
    """A tensor of the given values, which are copied.

    Args:
        data: a number, nested sequences of numbers or tensors, a buffer (such as a numpy array), or a tensor.
        dtype: of the result; by default a buffer's own, float32 for floats, int32 for ints.
        backend: a name such as `"numpy"`, or an interpreter; the default backend if None.
        device: one of the backend's devices.

    Raises:
        ShapeError: if nested sequences are ragged.
        DTypeError: if the dtype is unknown, or the backend does not support it.
        ScalarRangeError: if a number does not fit the dtype.

    >>> import tensorken as tk
    >>> tk.tensor([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    requested = None if dtype is None else as_dtype(dtype)
    if isinstance(data, Tensor):
        values = as_tensor(data) if requested is None else data
        result = values if backend is None and device is None else values.to(backend, device)
        return result if requested is None else result.astype(requested)
    if type(data) in (list, tuple) and _holds_tensor(data):
        return _stacked(data, requested, backend, device)
    interpreter = resolve(backend, device)
    if is_complex_array(data):
        return _of_complex_array(data, requested, interpreter)
    if hasattr(data, "__dlpack__") and not isinstance(data, type):
        adopted_tensor = adopted("tensor", data, requested, interpreter, copy=True)
        if adopted_tensor is not None:
            return adopted_tensor
    shape, flat, result_dtype = flat_of(data, requested)
    check_supported("tensor", interpreter, result_dtype)
    return Tensor.from_flat(interpreter, shape, flat, result_dtype)


def is_complex_array(data: Any) -> bool:
    """Whether the data is an array of complex numbers of another library."""
    dtype = getattr(data, "dtype", "")
    is_complex = getattr(dtype, "kind", "") == "c" or "complex" in str(dtype)
    return is_complex and hasattr(data, "real") and not isinstance(data, type)


def _of_complex_array(data: Any, dtype: DType | None, interpreter: RawTensor[Any]) -> Tensor:
    """A complex tensor of an array of another library."""
    if dtype is not None and dtype.kind != "complex":
        raise DTypeError(f"tensor: complex numbers do not fit {dtype}; pass x.real or x.imag")
    parts = [tensor(x, dtype and real_dtype(dtype), backend=interpreter) for x in (data.real, data.imag)]
    real, imag = [x.astype(promote(x.dtype, float32)) for x in parts]
    return ComplexTensor(real, imag)


def adopted(name: str, x: Any, dtype: DType | None, interpreter: RawTensor[Any], copy: bool) -> Tensor | None:
    """A tensor of an array with `__dlpack__`, without a copy through the host; None if the backend cannot take it.

    Args:
        name: the function that is called, for error messages.
        dtype: that the tensor must have; None for that of the array.
        copy: whether to copy the values on the device, and to cast them to another floating-point dtype; else the
            tensor shares the array's memory.

    Raises:
        DTypeError: if it is a masked array.
        ExchangeError: if the memory is to be shared, and the array does not export it.
    """
    check_unmasked(name, x)
    x = checked(x)
    try:
        representation = interpreter.adopt(x, False)
        if representation is None:
            return None
        own = interpreter.dtype(representation)
        is_cast = copy and dtype is not None and dtype.kind == "float" and dtype is not own  # which copies
        if dtype not in (None, own) and not is_cast:
            return None
        if copy and not is_cast:
            representation = interpreter.adopt(x, True)
            assert representation is not None
    except (BufferError, TypeError, ValueError, RuntimeError) as error:
        if copy:
            return None
        raise not_exported(name, x, error) from error
    check_supported(name, interpreter, own)
    result = Tensor(interpreter, representation, interpreter.shape(representation), own)
    return result.astype(dtype) if is_cast else result


def shared(name: str, x: Any, dtype: DType | None, interpreter: RawTensor[Any]) -> Tensor:
    """A tensor that shares the memory of an array; the caller must never change the array afterwards.

    Raises:
        ExchangeError: if the values must be copied; a subclass of ValueError and of BufferError.
        DTypeError: if it is a masked array.
    """
    if is_complex_array(x) and dtype in (None, as_dtype(x.dtype)):
        real, imag = [shared(name, part, None, interpreter) for part in (x.real, x.imag)]
        return ComplexTensor(real, imag)
    found = adopted(name, x, dtype, interpreter, copy=False) if hasattr(x, "__dlpack__") else None
    if found is None:
        raise ExchangeError(f"{name}: cannot avoid a copy of these values; leave out copy=False")
    return found


def new(
    shape: ShapeLike, data: Any, dtype: Any = None, *, backend: Any = None, device: str | None = None
) -> Tensor:
    """A tensor of this shape from flat row-major data.

    Raises:
        ShapeError: if the number of values is not the product of the shape.

    >>> import tensorken as tk
    >>> tk.new((2, 2), [1.0, 2.0, 3.0, 4.0]).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    sizes = shape_of("new", shape)
    if (
        isinstance(data, Tensor)
        or is_complex_array(data)
        or (type(data) in (list, tuple) and _holds_tensor(data))
    ):
        flat = tensor(data, dtype, backend=backend, device=device)
        _check_filled(sizes, flat.shape)
        return flat.reshape(sizes)
    flat_shape, values, result_dtype = flat_of(data, None if dtype is None else as_dtype(dtype))
    _check_filled(sizes, flat_shape)
    interpreter = resolve(backend, device)
    check_supported("new", interpreter, result_dtype)
    return Tensor.from_flat(interpreter, sizes, values, result_dtype)


def _check_filled(shape: Shape, values: Shape) -> None:
    if values != (math.prod(shape),):
        raise ShapeError(
            f"new: shape {shape} needs {math.prod(shape)} values in a flat sequence, got shape {values}; give them all"
        )


def asarray(
    obj: Any,
    dtype: Any = None,
    *,
    copy: bool | None = None,
    device: str | None = None,
    backend: Any = None,
) -> Tensor:
    """A tensor of the given values: `tk.tensor`, under the name of numpy and the array API standard.

    Args:
        obj: a number, nested sequences of numbers or tensors, a buffer (such as a numpy array), or a tensor.
        dtype: of the result; by default a buffer's own, float32 for floats, int32 for ints.
        copy: False shares the memory of an array, and is an error where the backend or the dtype do not allow it. Never
            change such an array afterwards. A tensor is immutable, so its memory is not copied even if copy is True.
        device: one of the backend's devices.
        backend: a name such as `"numpy"`, or an interpreter; the default backend if None.

    Raises:
        ExchangeError: if copy is False, and the values must be copied; it is a ValueError.
        ShapeError, DTypeError, ScalarRangeError: as `tk.tensor` does.

    >>> import tensorken as tk
    >>> tk.asarray([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    if copy is False and not isinstance(obj, Tensor):
        return shared("asarray", obj, None if dtype is None else as_dtype(dtype), resolve(backend, device))
    result = tensor(obj, dtype, backend=backend, device=device)
    if copy is False and result is not obj:
        raise ExchangeError("asarray: cannot avoid a copy of these values; leave out copy=False")
    if copy and result is obj:
        return tree.map(_another, result)  # type: ignore[no-any-return]
    return result


array = asarray


def randn(
    shape: ShapeLike,
    rng: random.Random,
    dtype: Any = float32,
    *,
    backend: Any = None,
    device: str | None = None,
) -> Tensor:
    """Numbers from the standard normal distribution, the same on every backend for the same `random.Random`.

    For random numbers from keys, which work under every transform, see `tk.random.normal`.

    Args:
        shape: the sizes.
        rng: the generator; every call draws new numbers from it.
        dtype: of the result.
        backend, device: as in `tk.tensor`.

    Raises:
        ArgumentError: if rng is not a `random.Random`.
        ShapeError: if a size is negative.

    >>> import random
    >>> import tensorken as tk
    >>> tk.randn((2, 3), random.Random(0)).shape
    (2, 3)
    """
    sizes = shape_of("randn", shape)
    if not isinstance(rng, random.Random):
        raise ArgumentError(
            f"randn: rng must be a random.Random, got {short_repr(rng)}; pass random.Random(seed)"
        )
    values = [rng.gauss(0.0, 1.0) for _ in range(math.prod(sizes))]
    return tensor(values, dtype, backend=backend, device=device).reshape(sizes)


def symbol(
    name: str,
    shape: ShapeLike = (),
    dtype: Any = float32,
    *,
    backend: Any = "string",
    device: str | None = None,
) -> Tensor:
    """A tensor without a value, known by its name, on a backend that prints expressions.

    Raises:
        BackendError: if the backend has no symbols; backends that compute values have none.
        ShapeError: if a size is negative.

    >>> import tensorken as tk
    >>> print(tk.symbol("A").exp() + tk.symbol("B").log())
    (A.exp() + B.log())
    """
    interpreter = resolve(backend, device)
    make = getattr(interpreter, "symbol", None)
    if make is None:
        raise BackendError(f"symbol: the backend {interpreter!r} has no symbols; use backend='string'")
    result_dtype = as_dtype(dtype)
    check_supported("symbol", interpreter, result_dtype)
    return Tensor(interpreter, make(name, shape_of("symbol", shape), result_dtype))


# ---- functions for other modules ---------------------------------------------------------------------------


def move(x: Tensor, backend: Any, device: Any) -> Tensor:
    """The same values on another backend; on one of its devices by name, or placed as an object of its library says."""
    if device is not None and not isinstance(device, str):
        check_has_placements("to", resolve(backend, None))
        return with_placement(move(x, backend, None), device)
    interpreter = resolve(backend, device)
    base, value = lower(x.representation, x.interpreter)
    if base is interpreter:
        return x
    if x.interpreter.below is not None:
        raise ArgumentError("to: a tensor inside a transform stays on its backend; move it before or after")
    if not isinstance(base, RawTensor):
        raise ArgumentError(f"to: {type(base).__name__} has no values to move")
    check_supported("to", interpreter, x.dtype)
    return Tensor(interpreter, interpreter.new(x.shape, base.ravel(value), x.dtype), x.shape, x.dtype)


def with_placement(x: Tensor, placement: Any) -> Tensor:
    """The tensor, placed on devices as an object of the backend's library says."""
    try:
        hash(placement)
    except TypeError:
        raise ArgumentError(
            f"with_placement: need an object of the backend's library that places a value, got {short_repr(placement)}"
        ) from None
    check_has_placements("with_placement", x.interpreter.base)
    result: Tensor = x.apply(OPS["with_placement"], placement, 0)
    return result


def unpickle(shape: Shape, data: Any, dtype: DType, backend: str | None) -> Tensor:
    """The tensor that was pickled, on its old backend, or on the default backend if the old backend had no name."""
    return of_flat(
        "unpickle", shape, unpacked(data, dtype) if isinstance(data, bytes) else data, dtype, backend
    )


def of_flat(
    name: str, shape: Shape, flat: Any, dtype: DType, backend: Any, device: str | None = None
) -> Tensor:
    """The tensor of elements in row-major order: a list, or a buffer of the dtype's format."""
    interpreter = resolve(backend, device)
    check_supported(name, interpreter, dtype)
    return Tensor.from_flat(interpreter, shape, flat, dtype)


def shape_of(name: str, shape: ShapeLike) -> Shape:
    """The sizes of a shape, which must be nonnegative ints."""
    try:
        sizes = tuple(map(operator.index, shape if isinstance(shape, Sequence) else (shape,)))
    except ConcretizationError as error:
        raise error.at(name) from None
    except TypeError:
        raise ArgumentError(f"{name}: the sizes of a shape must be ints, got {short_repr(shape)}") from None
    if min(sizes, default=0) < 0:
        raise ShapeError(f"{name}: sizes must not be negative, got {sizes}; give each axis at least 0")
    if math.prod([n or 1 for n in sizes]) >= MOST_ELEMENTS:
        raise ShapeError(f"{name}: sizes {sizes!s:.60} are too large; need less than 2**60 elements")
    return sizes


def _another(x: Tensor) -> Tensor:
    """Another tensor of the same value."""
    return Tensor(x.interpreter, x.representation, x.shape, x.dtype)


def _holds_tensor(data: Any, depth: int = 0) -> bool:
    if set(map(type, data)) <= NUMBERS:  # a fast path for the usual case: a long list of numbers
        return False
    return depth < MOST_NESTED and any(
        isinstance(x, Tensor) or (type(x) in (list, tuple) and _holds_tensor(x, depth + 1)) for x in data
    )


def _stacked(data: Any, dtype: DType | None, backend: Any, device: str | None) -> Tensor:
    """Data that contain tensors, stacked along a new first axis."""
    pieces = [tensor(x, dtype, backend=backend, device=device) for x in data]
    deepest([piece.interpreter for piece in pieces], "stack")
    common, shape = pieces[0].dtype, pieces[0].shape
    for piece in pieces:
        if piece.shape != shape:
            raise ShapeError(f"stack: tensors need one shape, got {shape} and {piece.shape}; reshape one")
        common = promote(common, piece.dtype)
    rows = [piece.astype(common).reshape((1, *shape)) for piece in pieces]
    result: Tensor = apply(OPS["concatenate"], rows, (0,))
    return result


def _coerced(data: Any, dtype: Any = None, interpreter: Any = None) -> Tensor:
    return tensor(data, dtype, backend=interpreter)


def _of_dtype(dtype: DType, x: Any) -> Tensor:
    """x as a tensor of a dtype: `tk.float32(x)`, as in numpy and JAX."""
    return tensor(x, dtype)


Interpreter.coerce = staticmethod(_coerced)
DType.__call__ = _of_dtype  # type: ignore[method-assign, assignment]
