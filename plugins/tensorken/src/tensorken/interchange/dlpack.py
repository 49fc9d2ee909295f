"""DLPack: the capsules by which array libraries exchange memory, written and read with ctypes.

The structures are from `dlpack.h`, version 1.0 (https://dmlc.github.io/dlpack/latest/c_api.html).  An
export is one block of C memory with the structure, the shape and a copy of the values, so its deleter can be the C
function that frees it.  No Python code runs when another library releases the block: that may happen without the
interpreter lock, while an exception propagates, or while the process exits.
"""

from __future__ import annotations

import ctypes
import math
import sys
import threading
from types import FunctionType
from typing import Any

from tensorken.interchange.strided import BFLOAT16, Strided, check_memory, check_sizes
from tensorken_core.errors import DTypeError, ExchangeError
from tensorken_core.language.dtypes import DType, bfloat16
from tensorken_core.language.shapes import Shape

CPU = (1, 0)
"""The device of exported memory: kDLCPU, number 0."""

READABLE = {1: "CPU", 3: "CUDA host memory", 11: "ROCm host memory"}
"""The device types whose memory can be read directly."""

_ALIGNMENT = 256  # of the values in an exported block, as dlpack.h requires for version 0
_READ_ONLY, _IS_COPIED = 1 << 0, 1 << 1
_CODES = {"int": 0, "float": 2, "bool": 6}
_UNSIGNED, _BFLOAT = 1, 4
_FORMATS = {
    **{(0, bits): code for bits, code in ((8, "b"), (16, "h"), (32, "i"), (64, "q"))},
    **{(1, bits): code for bits, code in ((8, "B"), (16, "H"), (32, "I"), (64, "Q"))},
    **{(2, bits): code for bits, code in ((16, "e"), (32, "f"), (64, "d"))},
    (_BFLOAT, 16): BFLOAT16,
    **{(5, bits): code for bits, code in ((64, "Zf"), (128, "Zd"))},
    (6, 8): "?",
}
"""Formats by DLPack's type code and number of bits."""

_NAMES = {3: "opaque", 5: "complex"}  # of dtypes that are not here, as complex32


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    """DLManagedTensor: the struct that a capsule named "dltensor" points to."""

    _fields_ = (("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _ManagedVersioned(ctypes.Structure):
    """DLManagedTensorVersioned: the struct that a capsule named "dltensor_versioned" points to."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    )


_STRUCTURES: dict[bytes, type[_Managed] | type[_ManagedVersioned]] = {
    b"dltensor_versioned": _ManagedVersioned,
    b"dltensor": _Managed,
}


def _function(name: str, result: Any, *arguments: Any) -> Any:
    """A function of Python's C API."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_allocate = _function("PyMem_RawMalloc", ctypes.c_void_p, ctypes.c_size_t)
_free = _function("PyMem_RawFree", None, ctypes.c_void_p)
_new_capsule = _function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_is_valid = _function("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_pointer = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)

_FREE = ctypes.cast(ctypes.pythonapi.PyMem_RawFree, ctypes.c_void_p)


# ---- export ------------------------------------------------------------------------------------------------


def exported(flat: Any, shape: Shape, dtype: DType, versioned: bool) -> Any:
    """A capsule with a copy of flat row-major values, which its consumer owns.

    Args:
        flat: a 1-D C-contiguous buffer of the dtype's elements.
        shape: of the tensor.
        dtype: of the values.
        versioned: whether to make the struct of DLPack 1; else the struct of version 0.
    """
    name = b"dltensor_versioned" if versioned else b"dltensor"
    structure = _STRUCTURES[name]
    with memoryview(flat) as view:
        size = view.nbytes
        sizes_at = ctypes.sizeof(structure)
        head = sizes_at + 2 * 8 * len(shape)
        block = _allocate(head + _ALIGNMENT + size)
        if not block:
            raise MemoryError(f"__dlpack__: no memory for {size} bytes")
        data = -(-(block + head) // _ALIGNMENT) * _ALIGNMENT
        if size:
            memory = (ctypes.c_char * size).from_address(data)
            memoryview(memory).cast("B")[:] = view.cast("B")
    sizes = (ctypes.c_int64 * (2 * len(shape))).from_address(block + sizes_at)
    sizes[:] = [*shape, *[math.prod(shape[axis + 1 :]) for axis in range(len(shape))]]
    managed = structure.from_address(block)
    managed.context = None
    managed.deleter = _FREE
    managed.tensor = _DLTensor(
        data if size else None,
        *CPU,
        len(shape),
        _BFLOAT if dtype is bfloat16 else _CODES[dtype.kind] if dtype.signed else _UNSIGNED,
        8 * dtype.itemsize,
        1,
        block + sizes_at if shape else None,
        block + sizes_at + 8 * len(shape) if shape else None,
        0,
    )
    if isinstance(managed, _ManagedVersioned):
        managed.major, managed.minor, managed.flags = 1, 0, _IS_COPIED
    capsule = _new_capsule(block, name, None)
    release_unclaimed()
    _UNCLAIMED.append(capsule)
    return capsule


def mark_read_only(capsule: Any) -> None:
    """Mark the memory of an unconsumed capsule as read-only; version 0 of DLPack has no such mark."""
    name = b"dltensor_versioned"
    if _is_valid(capsule, name):
        _ManagedVersioned.from_address(_pointer(capsule, name)).flags |= _READ_ONLY


# A capsule's destructor would be Python code, which must not run while an exception propagates, and a capsule may be
# destroyed at such a time.  So each capsule is kept here until no other reference to it is left.  A capsule that was
# not consumed (a consumer changes its name) still owns its block.
_UNCLAIMED: list[Any] = []


def _references(capsules: list[Any], index: int) -> int:
    return sys.getrefcount(capsules[index])


_UNREFERENCED = _references([object()], 0)


_RELEASE_LOCK = threading.Lock()


def release_unclaimed() -> int:
    """Free the blocks of unconsumed capsules that are no longer referenced.

    Returns:
        The number of capsules that are still referenced.
    """
    # If this function is running already, in another thread or below a finalizer, there is nothing to do.
    if _RELEASE_LOCK.acquire(blocking=False):
        try:
            for index in reversed(range(len(_UNCLAIMED))):
                if _references(_UNCLAIMED, index) == _UNREFERENCED:
                    capsule = _UNCLAIMED.pop(index)
                    for name in _STRUCTURES:
                        if _is_valid(capsule, name):
                            _free(_pointer(capsule, name))
        finally:
            _RELEASE_LOCK.release()
    return len(_UNCLAIMED)


# ---- import ------------------------------------------------------------------------------------------------


def imported(capsule: Any) -> Strided:
    """The memory of a capsule; the caller must keep the capsule alive while reading it.  The capsule stays unconsumed.

    Raises:
        ExchangeError: if this is not an unconsumed DLPack capsule, or its memory cannot be read.
        DTypeError: if its elements have no format in Python.
    """
    name = next((name for name in _STRUCTURES if _is_valid(capsule, name)), None)
    if name is None:
        raise ExchangeError(
            f"from_dlpack: need an unused DLPack capsule, got {type(capsule).__name__}; each can be consumed once"
        )
    managed = _STRUCTURES[name].from_address(_pointer(capsule, name))
    if isinstance(managed, _ManagedVersioned) and managed.major != 1:
        raise ExchangeError(
            f"from_dlpack: the capsule has DLPack version {managed.major}, need 1; export it with max_version=(1, 0)"
        )
    tensor = managed.tensor
    if tensor.device_type not in READABLE:
        raise ExchangeError(
            f"from_dlpack: the values are on a device of DLPack type {tensor.device_type}, need the CPU; "
            f"move them there first"
        )
    code = _FORMATS.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if code is None:
        what = f"{_NAMES.get(tensor.code, f'code {tensor.code},')}{tensor.bits}"
        lanes = f" in {tensor.lanes} lanes" if tensor.lanes != 1 else ""
        raise DTypeError(f"from_dlpack: there is no dtype for {what}{lanes}; convert the values first")
    check(tensor)
    ndim, itemsize = tensor.ndim, tensor.bits // 8
    shape = tuple((ctypes.c_int64 * ndim).from_address(tensor.shape)) if ndim else ()
    if tensor.strides and ndim:
        steps = tuple((ctypes.c_int64 * ndim).from_address(tensor.strides))
        strides = tuple([step * itemsize for step in steps])
    else:
        strides = None
    return Strided((tensor.data or 0) + tensor.byte_offset, shape, strides, code, itemsize)


def check(tensor: _DLTensor) -> None:
    """Raise if the description of an array contradicts itself.

    Raises:
        ExchangeError: see above.
    """
    name, ndim, itemsize = "from_dlpack", tensor.ndim, -(-tensor.bits * tensor.lanes // 8)
    check_sizes(name, ndim)
    if ndim and not tensor.shape:
        raise ExchangeError(f"{name}: the array says that it has {ndim} axes, and has no shape")
    shape = tuple((ctypes.c_int64 * ndim).from_address(tensor.shape)) if ndim else ()
    has_strides = ndim and tensor.strides
    steps = tuple((ctypes.c_int64 * ndim).from_address(tensor.strides)) if has_strides else None
    check_sizes(name, ndim, shape, steps)
    if tensor.device_type in READABLE:
        strides = None if steps is None else tuple([step * itemsize for step in steps])
        start = tensor.data + tensor.byte_offset if tensor.data else 0
        check_memory(name, Strided(start, shape, strides, "B", itemsize))


def device_of(array: Any) -> tuple[int, int]:
    """The DLPack type and number of the device of an array.

    Raises:
        ExchangeError: if the array returns anything else.
    """
    try:
        kind, number = map(int, array.__dlpack_device__())
    except (TypeError, ValueError):
        name = type(array).__name__
        raise ExchangeError(f"from_dlpack: __dlpack_device__ of {name} must return two ints") from None
    return kind, number


class Checked:
    """An array whose capsules are checked before another library reads their memory.

    Args:
        array: an object with `__dlpack__` and `__dlpack_device__`.
    """

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return device_of(self._array)

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self._array.__dlpack__(**options)
        for name, structure in _STRUCTURES.items():
            if _is_valid(capsule, name):
                check(structure.from_address(_pointer(capsule, name)).tensor)
        return capsule


TRUSTED = frozenset({"cupy", "jax", "jaxlib", "numpy", "torch"})
"""The libraries whose arrays describe themselves rightly."""


def checked(array: Any) -> Any:
    """The array, or an object that checks its capsules if Python code of another library makes them."""
    method = getattr(type(array), "__dlpack__", None)
    is_python = method is None or isinstance(method, FunctionType)
    return (
        Checked(array)
        if is_python and getattr(method, "__module__", "").split(".")[0] not in TRUSTED
        else array
    )
