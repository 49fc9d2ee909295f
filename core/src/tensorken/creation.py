"""Creation: tensors from Python data, buffers and other backends.  Only creation asks the registry for a backend."""

from __future__ import annotations

import math
import operator
import random
import struct
import sys
from collections.abc import Sequence
from typing import Any

from tensorken.errors import ArgumentError, BackendError, DTypeError, ScalarRangeError, ShapeError
from tensorken.interop import strided_of
from tensorken.levels import lower
from tensorken.registry import resolve
from tensorken.spec.dtypes import (
    DTYPES,
    DType,
    as_dtype,
    bool_,
    check_scalar,
    float16,
    float32,
    int32,
    of_scalar,
    promote,
    with_scalar,
)
from tensorken.spec.raw import RawTensor
from tensorken.spec.shapes import Shape, shown
from tensorken.strided import Strided
from tensorken.tensor import Scalar, Tensor

__all__ = [
    "arange",
    "full",
    "full_like",
    "linspace",
    "new",
    "ones",
    "ones_like",
    "randn",
    "scalar",
    "symbol",
    "tensor",
    "zeros",
    "zeros_like",
]

ShapeLike = int | Sequence[int]

# Buffer formats by kind and size: "l" is int32 on one platform and int64 on another.
_KINDS = {"?": "bool", **dict.fromkeys("bhilqn", "int"), **dict.fromkeys("efd", "float")}
_CONVERTED = (*_KINDS, *"BHILQN")


def tensor(data: Any, dtype: Any = None, *, backend: Any = None, device: str | None = None) -> Tensor:
    """A tensor of the given values, which are copied.

    Args:
        data: a number, nested sequences of numbers or tensors, a buffer (such as a numpy array), or a tensor.
        dtype: of the result; by default a buffer's own, float32 for floats, int32 for ints.
        backend: a name such as `"numpy"`, or an interpreter; the default backend if None.
        device: one of the backend's devices.

    Raises:
        ShapeError: if nested sequences are ragged.
        DTypeError: if the dtype is unknown.
        ScalarRangeError: if a number does not fit the dtype.

    >>> import tensorken as tk
    >>> tk.tensor([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(data, Tensor):
        result = data if backend is None and device is None else data.to(backend, device)
        return result if wanted is None else result.astype(wanted)
    if type(data) in (list, tuple) and _holds_tensor(data):
        return _stacked(data, wanted, backend, device)
    shape, flat, found = _flat(data, wanted)
    interpreter = resolve(backend, device)
    return Tensor(interpreter, interpreter.new(shape, flat, found), shape, found)


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
    sizes = _shape("new", shape)
    if isinstance(data, Tensor) or (type(data) in (list, tuple) and _holds_tensor(data)):
        flat = tensor(data, dtype, backend=backend, device=device)
        _check_filled(sizes, flat.shape)
        return flat.reshape(sizes)
    given, values, found = _flat(data, None if dtype is None else as_dtype(dtype))
    _check_filled(sizes, given)
    interpreter = resolve(backend, device)
    return Tensor(interpreter, interpreter.new(sizes, values, found), sizes, found)


def _check_filled(shape: Shape, given: Shape) -> None:
    if given != (math.prod(shape),):
        raise ShapeError(
            f"new: shape {shape} needs {math.prod(shape)} values in a flat sequence, got shape {given}; give them all"
        )


def full(
    shape: ShapeLike,
    value: Scalar | Tensor,
    dtype: Any = None,
    *,
    backend: Any = None,
    device: str | None = None,
) -> Tensor:
    """A tensor of this shape whose elements are all `value`."""
    sizes = _shape("full", shape)
    if isinstance(value, Tensor):
        return value.astype(value.dtype if dtype is None else dtype).broadcast_to(sizes)
    if not isinstance(value, int | float):
        raise ArgumentError(
            f"full: the value must be one number or tensor, got {shown(value)}; see tk.tensor"
        )
    (number,), found = _typed("full", [value], None if dtype is None else as_dtype(dtype))
    interpreter = resolve(backend, device)
    return Tensor(interpreter, interpreter.full(sizes, number, found), sizes, found)


def zeros(
    shape: ShapeLike, dtype: Any = float32, *, backend: Any = None, device: str | None = None
) -> Tensor:
    """A tensor of zeros."""
    return full(_shape("zeros", shape), 0, as_dtype(dtype), backend=backend, device=device)


def ones(shape: ShapeLike, dtype: Any = float32, *, backend: Any = None, device: str | None = None) -> Tensor:
    """A tensor of ones."""
    return full(_shape("ones", shape), 1, as_dtype(dtype), backend=backend, device=device)


def full_like(x: Tensor, value: Scalar, dtype: Any = None) -> Tensor:
    """A tensor of x's shape, dtype and backend whose elements are all `value`."""
    return (x if dtype is None else x.astype(dtype)).scalar(value)


def zeros_like(x: Tensor, dtype: Any = None) -> Tensor:
    """Zeros of x's shape, dtype and backend."""
    return full_like(x, 0, dtype)


def ones_like(x: Tensor, dtype: Any = None) -> Tensor:
    """Ones of x's shape, dtype and backend."""
    return full_like(x, 1, dtype)


def scalar(value: Scalar, dtype: Any = None, *, backend: Any = None, device: str | None = None) -> Tensor:
    """A tensor of shape ()."""
    return full((), value, dtype, backend=backend, device=device)


def arange(
    start: Scalar,
    stop: Scalar | None = None,
    step: Scalar = 1,
    dtype: Any = None,
    *,
    backend: Any = None,
    device: str | None = None,
) -> Tensor:
    """start, start + step, ... up to but without stop; 0, 1, ... if only one number is given.

    >>> import tensorken as tk
    >>> tk.arange(3).tolist()
    [0, 1, 2]
    """
    if stop is None:
        start, stop = 0, start
    numbers: tuple[Any, ...] = (start, stop, step)
    for number in numbers:
        if not isinstance(number, int | float) or not math.isfinite(number):
            raise ArgumentError(f"arange: start, stop and step must be finite numbers, got {shown(number)}")
    if step == 0:
        raise ArgumentError(f"arange: the step from {start} to {stop} must not be 0; use 1 or -1")
    count = max(0, math.ceil((stop - start) / step))
    found = of_scalar(start + stop + step) if dtype is None else as_dtype(dtype)
    return tensor([start + i * step for i in range(count)], found, backend=backend, device=device)


def linspace(
    start: float,
    stop: float,
    num: int = 50,
    dtype: Any = float32,
    *,
    backend: Any = None,
    device: str | None = None,
) -> Tensor:
    """`num` numbers evenly spaced from start to stop, both included; each is computed by itself, so nothing drifts."""
    if num < 0:
        raise ShapeError(f"linspace: num must not be negative, got {num}; give the number of values")
    span = num - 1
    values = [start + (stop - start) * (i / span) for i in range(span)] if num > 1 else []
    return tensor([*values, stop if num > 1 else start][:num], dtype, backend=backend, device=device)


def randn(
    shape: ShapeLike,
    rng: random.Random,
    dtype: Any = float32,
    *,
    backend: Any = None,
    device: str | None = None,
) -> Tensor:
    """Numbers from the standard normal distribution, the same on every backend for the same `random.Random`."""
    sizes = _shape("randn", shape)
    if not isinstance(rng, random.Random):
        raise ArgumentError(f"randn: rng must be a random.Random, got {shown(rng)}; pass random.Random(seed)")
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

    >>> import tensorken as tk
    >>> print(tk.symbol("A").exp() + tk.symbol("B").log())
    (A.exp() + B.log())
    """
    interpreter = resolve(backend, device)
    make = getattr(interpreter, "symbol", None)
    if make is None:
        raise BackendError(f"symbol: the backend {interpreter!r} has no symbols; use backend='string'")
    return Tensor(interpreter, make(name, _shape("symbol", shape), as_dtype(dtype)))


# ---- what other modules need -------------------------------------------------------------------------------


def as_tensor(data: Any) -> Tensor:
    """A tensor as it is; anything else by `tensor`."""
    return data if isinstance(data, Tensor) else tensor(data)


def as_operand(op_name: str, data: Any, beside: Tensor) -> Tensor:
    """Data as an operand beside a tensor, on its backend; a Python number takes its dtype if the kind allows."""
    if isinstance(data, Tensor):
        return data
    if type(data) in (bool, int, float):
        dtype = with_scalar(beside.dtype, data)
        base = beside.interpreter.base
        try:
            check_scalar(data, dtype)
        except ScalarRangeError as error:
            raise ScalarRangeError(f"{op_name}: {error}") from None
        return Tensor(base, base.full((), data, dtype), (), dtype)  # type: ignore[attr-defined]
    try:
        return tensor(data, backend=beside.interpreter.base)
    except (ArgumentError, DTypeError) as error:
        raise ArgumentError(
            f"{op_name}: cannot combine a tensor with {type(data).__name__}: {error}"
        ) from None


def pair_of_operands(op_name: str, a: Any, b: Any, beside: Tensor) -> tuple[Tensor, Tensor]:
    """Two operands of one dtype; numbers take the other's dtype, or their own kind's default beside each other."""
    if isinstance(a, Tensor):
        b = as_operand(op_name, b, a)
    elif isinstance(b, Tensor):
        a = as_operand(op_name, a, b)
    else:
        a, b = as_operand(op_name, a, beside), as_operand(op_name, b, beside)
    dtype = promote(a.dtype, b.dtype)
    return a.astype(dtype), b.astype(dtype)


def move(x: Tensor, backend: Any, device: str | None) -> Tensor:
    """The same values on another backend."""
    interpreter = resolve(backend, device)
    base, value = lower(x.representation, x.interpreter)
    if base is interpreter:
        return x
    if x.interpreter.below is not None:
        raise ArgumentError("to: a tensor inside a transform stays on its backend; move it before or after")
    if not isinstance(base, RawTensor):
        raise ArgumentError(f"to: {type(base).__name__} has no values to move")
    return Tensor(interpreter, interpreter.new(x.shape, base.ravel(value), x.dtype), x.shape, x.dtype)


def unpickle(shape: Shape, data: Any, dtype: DType, backend: str | None) -> Tensor:
    """The tensor that was pickled, on the backend that held it; on the default one if that has no name."""
    flat = _buffer(data, dtype) if isinstance(data, bytes) else data
    interpreter = resolve(backend, None)
    return Tensor(interpreter, interpreter.new(shape, flat, dtype), shape, dtype)


def _shape(name: str, shape: ShapeLike) -> Shape:
    try:
        sizes = tuple(map(operator.index, shape if isinstance(shape, Sequence) else (shape,)))
    except TypeError:
        raise ArgumentError(f"{name}: the sizes of a shape must be ints, got {shown(shape)}") from None
    if min(sizes, default=0) < 0:
        raise ShapeError(f"{name}: sizes must not be negative, got {sizes}; give each axis at least 0")
    return sizes


def _flat(data: Any, dtype: DType | None) -> tuple[Shape, Any, DType]:
    """The shape, the row-major values and the dtype of anything that `tensor` takes."""
    if type(data) in (bool, int, float):
        return (), *_typed("tensor", [data], dtype)
    if isinstance(data, list | tuple | range):
        values: list[Any] = []
        shape = _collect(data, values, ())
        return shape, *_typed("tensor", values, dtype)
    keep: list[Any] = []
    view = strided_of(data, keep)
    if view is not None:
        return _from_buffer(view, dtype)
    if isinstance(data, int | float):  # an enum, say
        return (), *_typed("tensor", [data], dtype)
    raise ArgumentError(
        f"tensor: cannot make a tensor of {type(data).__name__}; give numbers, nested lists of them, or a buffer"
    )


def _collect(data: Any, values: list[Any], path: tuple[int, ...]) -> Shape:
    """Append the numbers of nested sequences to `values`; their shape, which must be the same along each axis."""
    if not isinstance(data, list | tuple | range):
        if isinstance(data, bool | int | float):
            values.append(data)
            return ()
        shape, flat, _ = _flat(data, None)
        values.extend(flat if isinstance(flat, list) else flat.tolist())
        return shape
    shapes = [_collect(item, values, (*path, i)) for i, item in enumerate(data)]
    for i, shape in enumerate(shapes):
        if shape != shapes[0]:
            place = "".join([f"[{k}]" for k in (*path, i)])
            first = "".join([f"[{k}]" for k in (*path, 0)])
            raise ShapeError(
                f"tensor: ragged: data{place} has shape {shape}, data{first} has {shapes[0]}; "
                f"pad the rows to one length"
            )
    return (len(shapes), *(shapes[0] if shapes else ()))


def _typed(name: str, values: list[Any], dtype: DType | None) -> tuple[list[Any], DType]:
    """Numbers as bool, int or float, as their dtype demands; without one it follows from their types."""
    if dtype is None:
        kinds = {type(value) for value in values}
        whole_kinds = [issubclass(kind, int) for kind in kinds]
        dtype = bool_ if kinds == {bool} else int32 if kinds and all(whole_kinds) else float32
    if dtype is bool_:
        return [bool(value) for value in values], dtype
    try:
        if dtype.kind == "int":
            values = whole = [int(value) for value in values]
        else:
            whole = [value for value in values if isinstance(value, int)]
    except (ValueError, OverflowError):
        odd = next(value for value in values if isinstance(value, float) and not math.isfinite(value))
        raise ScalarRangeError(f"{name}: {odd} does not fit {dtype}; use a floating-point dtype") from None
    if whole:
        try:
            check_scalar(max(whole), dtype)
            check_scalar(min(whole), dtype)
        except ScalarRangeError as error:
            raise ScalarRangeError(f"{name}: {error}") from None
    return values, dtype


def _buffer(data: bytes, dtype: DType) -> Any:
    """Bytes as flat values of a dtype; a list for float16, which memoryview cannot name before Python 3.12."""
    if dtype is float16:
        return list(struct.unpack(f"{len(data) // dtype.itemsize}e", data))
    return memoryview(data).cast(dtype.format)  # type: ignore[call-overload]


def _from_buffer(view: memoryview | Strided, dtype: DType | None) -> tuple[Shape, Any, DType]:
    order, code = (view.format[0], view.format[1:]) if view.format[0] in "@=<>!" else ("@", view.format)
    kind = _KINDS.get(code)
    own = next((d for d in DTYPES.values() if d.kind == kind and d.itemsize == view.itemsize), None)
    if own is None and (dtype is None or code not in _CONVERTED):
        way_out = "pass dtype= to convert it" if code in _CONVERTED else "convert it before"
        raise DTypeError(
            f"tensor: the buffer's format {view.format!r} is none of {', '.join(DTYPES)}; {way_out}"
        )
    swapped = order in ("<" if sys.byteorder == "big" else ">!")
    shape = tuple(view.shape or ())
    if own is not None and not swapped:
        flat = _buffer(view.tobytes(), own)
        return (shape, flat, own) if dtype in (None, own) else (shape, *_typed("tensor", list(flat), dtype))
    count = view.nbytes // view.itemsize
    values = list(struct.unpack(f"{order}{count}{code}", view.tobytes()))
    return (shape, *_typed("tensor", values, dtype or own))


def _holds_tensor(data: Any) -> bool:
    return any(isinstance(x, Tensor) or (type(x) in (list, tuple) and _holds_tensor(x)) for x in data)


def _stacked(data: Any, dtype: DType | None, backend: Any, device: str | None) -> Tensor:
    from tensorken.functions.joining import stack

    return stack([tensor(x, dtype, backend=backend, device=device) for x in data])
