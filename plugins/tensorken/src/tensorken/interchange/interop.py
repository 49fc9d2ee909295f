"""Interop: exporting tensors to other array libraries, and reading the arrays of other libraries.

Values are copied on import, unless the caller asks to share memory.  On export, to numpy or by DLPack, memory is shared
and marked as read-only, if the backend's library exports its arrays; else it is copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from tensorken.interchange.dlpack import CPU, READABLE, device_of, exported, imported, mark_read_only
from tensorken.interchange.elements import packed
from tensorken.interchange.strided import Strided, of_interface
from tensorken_core.errors import (
    ArgumentError,
    ConcretizationError,
    DTypeError,
    ExchangeError,
    ShapeError,
    TensorkenError,
)
from tensorken_core.language.dtypes import DType, bfloat16
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.level import Level, lower
from tensorken_core.tensor.tensor import Tensor

# ---- export ------------------------------------------------------------------------------------------------


def to_numpy(x: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """A numpy array of the values: the implementation of `__array__`, which numpy calls on a tensor.

    The array is read-only, as a tensor never changes, and shares the memory of the backend if that is the host's.  If
    copy is True, or the values are cast, it is a new array that may be changed.
    """
    numpy = import_module("numpy")  # only numpy calls this
    if x.dtype is bfloat16:
        try:
            import_module("ml_dtypes")
        except ImportError:
            raise ExchangeError(
                "__array__: numpy has no bfloat16 without ml_dtypes; run pip install ml_dtypes, or cast it (x.astype)"
            ) from None
    found = shared = None if copy else _on_host(x, numpy)
    if found is None:
        found = numpy.array(_elements_outside_transforms("__array__", x), x.dtype.name).reshape(x.shape)
    return as_asked(found, dtype, copy, shared is not None)


def as_asked(array: Any, dtype: Any, copy: bool | None, is_shared: bool) -> Any:
    """An array as the arguments of `__array__` ask for it, which is new unless it is shared.

    Raises:
        ExchangeError: if copy is False, and the values must be copied.
    """
    result = array if dtype is None else array.astype(dtype, copy=False)
    if copy is False and (result is not array or not is_shared):
        reason = (
            f"to cast them to {result.dtype}" if result is not array else "as the backend has no such array"
        )
        raise ExchangeError(f"__array__: the values must be copied, {reason}; leave out copy=False")
    if result is array and not copy:
        array.flags.writeable = False
    return result


def _on_host(x: Tensor, numpy: Any) -> Any:
    """A new view of the backend's memory as a numpy array; None if it is not the host's, or not in numpy's form."""
    array = _exported("__array__", x)
    if array is None or not hasattr(array, "__array__"):
        return None
    try:
        if type(array) is not numpy.ndarray:
            array = numpy.asarray(array)
    except (
        TypeError,
        RuntimeError,
        ValueError,
    ):  # on a device, or of a dtype that the library does not convert
        return None
    return array.view() if array.dtype == x.dtype.name else None


def _numpy_dtype(dtype: DType) -> Any:
    return import_module("numpy").dtype(dtype.name)  # only numpy reads the attributes below


DType.dtype = DType.__numpy_dtype__ = property(_numpy_dtype)  # type: ignore[attr-defined] # as in numpy.zeros(3, x.dtype)


def own_array(x: Tensor) -> Any:
    """The values as an array of the backend's library: the implementation of `Tensor.array`."""
    array = _exported("array", x)
    if array is None:
        raise ExchangeError(
            f"array: the backend {x.backend} has no arrays of another library; use numpy.asarray(x)"
        )
    flags = getattr(array, "flags", None)
    if getattr(flags, "writeable", False):
        array = array.view()
        array.flags.writeable = False
    return array


def placement(x: Tensor) -> Any:
    """The devices that hold the value: the implementation of `Tensor.placement`."""
    _check_outside("placement", x)
    base, value = lower(x.representation, x.interpreter)
    return base.placement(value) if isinstance(base, RawTensor) else None


def to_dlpack(
    x: Tensor, stream: Any, max_version: tuple[int, int] | None, dl_device: Any, copy: bool | None
) -> Any:
    """A DLPack capsule of the values: of the memory of the backend's array if possible, else of a copy on the CPU."""
    array = None if copy else _exported("__dlpack__", x)
    if array is not None:
        arguments = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        try:
            capsule = array.__dlpack__(
                **{key: value for key, value in arguments.items() if value is not None}
            )
        except BufferError as error:
            if copy is False:
                raise ExchangeError(
                    f"__dlpack__: cannot avoid a copy: {error}; leave out copy=False"
                ) from error
        else:
            mark_read_only(capsule)
            return capsule
    flat = _elements_outside_transforms("__dlpack__", x)
    if stream is not None:
        raise ArgumentError(
            f"__dlpack__: values are exported from the CPU, so stream must be None, got {stream!r}"
        )
    if dl_device is not None and tuple(dl_device) != CPU:
        raise ExchangeError(
            f"__dlpack__: dl_device must be the CPU, {CPU}, got {tuple(dl_device)}; import there, then move"
        )
    if copy is False:
        raise ExchangeError("__dlpack__: the values are always copied; leave out copy=False")
    if isinstance(flat, list) or x.dtype is bfloat16:
        flat = packed(flat, x.dtype)
    return exported(flat, x.shape, x.dtype, max_version is not None and max_version[0] >= 1)


def to_mutable(x: Tensor) -> memoryview:
    """A mutable copy of the values as a memoryview."""
    if x.dtype.wide is not x.dtype:  # memoryview has no bfloat16, and float16 only from Python 3.12 on
        raise DTypeError(f"to_mutable: {x.dtype} has no mutable form in Python; cast it (x.astype)")
    if not x.size:
        raise ShapeError(f"to_mutable: shape {x.shape} has no elements to change; need at least one")
    return memoryview(bytearray(to_bytes("to_mutable", x))).cast(x.dtype.format, x.shape)  # type: ignore[call-overload,no-any-return]


def to_bytes(name: str, x: Tensor) -> bytes | memoryview:
    """The elements in row-major order, in the byte order of the machine.

    Raises:
        ConcretizationError: inside a transform.
    """
    flat = _elements_outside_transforms(name, x)
    if isinstance(flat, list) or x.dtype is bfloat16:
        return packed(flat, x.dtype)
    return memoryview(flat).cast("B") if len(flat) else b""


def device_of_dlpack(x: Tensor) -> tuple[int, int]:
    """The DLPack type and number of the device that `to_dlpack` exports to."""
    array = _exported("__dlpack_device__", x)
    return CPU if array is None else tuple(array.__dlpack_device__())


def _exported(name: str, x: Tensor) -> Any:
    """An array of the backend's library that shares the memory of the tensor; None if there is none."""
    _check_outside(name, x)
    base, value = lower(x.representation, x.interpreter)
    return base.export(value) if isinstance(base, RawTensor) else None


def _elements_outside_transforms(name: str, x: Tensor) -> Any:
    _check_outside(name, x)
    return x.flat()


def _check_outside(name: str, x: Tensor) -> None:
    """Raise if the tensor belongs to a running transform, which would not trace operations of another library."""
    interpreter = x.interpreter
    for level in (interpreter, *reversed(interpreter.levels_below)):
        if isinstance(level, Level) and not level.closed:
            raise ConcretizationError(
                f"{name}: this tensor is inside {level.transform}, which cannot trace another library; "
                f"use Tensorken's functions, or return the tensor first"
            )


API_VERSION = "2025.12"
"""The version of the array API standard that the namespace follows."""

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", API_VERSION)
"""The supported versions: each includes the previous version."""


def namespace(version: str | None) -> Any:
    """The module whose functions take tensors.

    Raises:
        ExchangeError: if the requested version of the standard is not supported.
    """
    if version is not None and version not in VERSIONS:
        raise ExchangeError(
            f"__array_namespace__: version {version!r} of the array API standard is not supported; "
            f"use {API_VERSION}"
        )
    return import_module("tensorken")


# ---- import ------------------------------------------------------------------------------------------------


def strided_of(x: Any, keep: list[Any]) -> memoryview | Strided | None:
    """The memory of another library's array, or None if the object offers no memory.

    Args:
        x: any object; it is read by the buffer protocol, `__array_interface__`, `__dlpack__` or `__array__`.
        keep: a list to which objects are added that must stay alive until the memory has been read.

    Raises:
        DTypeError: if it is a masked array.
    """
    if isinstance(x, Strided):
        return x
    check_unmasked("tensor", x)
    try:
        return memoryview(x)
    except (TypeError, ValueError, BufferError):
        pass  # ValueError: an array of elements that no buffer supports, such as dates
    if isinstance(x, type):
        return None
    interface = getattr(x, "__array_interface__", None)
    if isinstance(interface, Mapping):
        keep.append(x)
        return of_interface(interface, keep, str(getattr(x, "dtype", "")))
    if hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__"):
        return strided_of_dlpack(x, keep)
    if not hasattr(x, "__array__"):
        return None
    array = x.__array__()
    if type(array) is type(x):
        raise ExchangeError(
            f"tensor: __array__ of {type(x).__name__} returns another {type(x).__name__}, no array"
        )
    return strided_of(array, keep)


def check_unmasked(name: str, x: Any) -> None:
    """Raise if an array has a mask, as numpy's masked arrays do; a tensor cannot represent it."""
    if hasattr(x, "mask") and hasattr(x, "filled") and not isinstance(x, type):
        raise DTypeError(
            f"{name}: {type(x).__name__} has a mask, and tensors have none; pass x.filled(value), "
            f"or x.data and x.mask as two tensors"
        )


def check_exporter(x: Any) -> None:
    """Raise if an object does not implement DLPack."""
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise ArgumentError(
            f"from_dlpack: need an array with __dlpack__ and __dlpack_device__, got {short_repr(x)}; use tk.asarray"
        )


def not_exported(name: str, x: Any, error: Exception) -> ExchangeError:
    """The error for an array that does not export its memory."""
    return ExchangeError(f"{name}: {type(x).__name__} cannot be exported by DLPack: {error}")


def strided_of_dlpack(x: Any, keep: list[Any]) -> Strided:
    """The memory that an array offers through `__dlpack__`.

    Raises:
        ArgumentError: if it has no `__dlpack__`.
        DTypeError: if it is a masked array.
        ExchangeError: if its memory cannot be read.
    """
    check_unmasked("from_dlpack", x)
    check_exporter(x)
    device_argument = {} if device_of(x)[0] in READABLE else {"dl_device": CPU}
    try:
        try:
            capsule = x.__dlpack__(max_version=(1, 0), **device_argument)
        except TypeError:
            # A producer of version 0, or an error of the producer, which the next call raises again.
            capsule = x.__dlpack__()
    except TensorkenError:
        raise
    except (BufferError, TypeError, ValueError, RuntimeError) as error:
        raise not_exported("from_dlpack", x, error) from error
    keep.append(capsule)
    return imported(capsule)
