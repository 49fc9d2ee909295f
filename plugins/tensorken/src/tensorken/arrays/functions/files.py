"""Files of arrays in numpy's formats, npy and npz, and tensors of raw bytes.

The format is that of `numpy.lib.format`: a header with the shape and the dtype, then the elements.  numpy itself is not
needed.
"""

from __future__ import annotations

import ast
import math
import os
import struct
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.creation import of_flat, shape_of
from tensorken.interchange.elements import unpacked
from tensorken.interchange.interop import to_bytes
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError, TensorkenError
from tensorken_core.language.dtypes import COMPLEX, DTYPES, DType, as_dtype, bfloat16, float32, real_dtype
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor, as_tensor
from tensorken_core.text import printable, quoted

__all__ = ["frombuffer", "load", "save", "savez", "savez_compressed"]

MAGIC = b"\x93NUMPY"
ORDER = "<" if sys.byteorder == "little" else ">"
"""The byte order of this machine, as headers state it."""

ORDERS = ("<", ">", "|", "=")

MAX_HEADER = 2**16
"""The most bytes of a header: one with a shape and a dtype has some hundred."""


def frombuffer(
    buffer: Any,
    dtype: Any = float32,
    count: int = -1,
    offset: int = 0,
    *,
    backend: Any = None,
    device: str | None = None,
) -> Tensor:
    """A tensor with one axis of the raw bytes of a buffer, which are copied.

    Args:
        buffer: bytes or another contiguous buffer, in the byte order of the machine.
        dtype: of the result, float32 by default, where numpy's default is float64.
        count: the number of elements; all that follow the offset if negative.
        offset: the number of bytes to skip.
        backend: a name such as `"numpy"`, or an interpreter; the default backend if None.
        device: one of the backend's devices.

    Raises:
        ArgumentError: if the offset is outside the buffer.
        ShapeError: if the bytes are not a whole number of elements, or fewer than `count` elements.

    >>> import tensorken as tk
    >>> tk.frombuffer(bytes([1, 2, 3]), dtype="uint8", offset=1).tolist()
    [2, 3]
    """
    data = memoryview(buffer).cast("B")
    own = as_dtype(dtype)
    if not 0 <= offset <= len(data):
        raise ArgumentError(f"frombuffer: offset={offset} is outside the buffer of {len(data)} bytes")
    size = len(data) - offset
    if count < 0 and size % own.itemsize:
        raise ShapeError(
            f"frombuffer: {size} bytes are not a whole number of elements of {own.itemsize} bytes; give count="
        )
    n = size // own.itemsize if count < 0 else count
    if n * own.itemsize > size:
        raise ShapeError(f"frombuffer: {n} elements of {own} need {n * own.itemsize} bytes, got {size}")
    found = bytes(data[offset : offset + n * own.itemsize])
    return of_flat("frombuffer", (n,), unpacked(found, own), own, backend, device)


# ---- saving ------------------------------------------------------------------------------------------------


def save(file: Any, arr: ArrayLike) -> None:
    """Write a tensor to a file in numpy's format npy, which `tk.load` and `numpy.load` read.

    Args:
        file: a path, to which `.npy` is added if it has another ending, or a binary file that is open for writing.
        arr: the tensor.

    Raises:
        ConcretizationError: inside a transform, where the values are not known.
        DTypeError: if it is bfloat16, which the format lacks.

    >>> import tempfile
    >>> import tensorken as tk
    >>> with tempfile.TemporaryFile() as file:
    ...     tk.save(file, [1.0, 2.0])
    ...     _ = file.seek(0)
    ...     print(tk.load(file))
    [1. 2.]
    """
    header, data = _written("save", arr)
    if hasattr(file, "write"):
        file.write(header)
        file.write(data)
        return
    with _with_ending(file, ".npy").open("wb") as opened:
        opened.write(header)
        opened.write(data)


def savez(file: Any, *args: ArrayLike, **kwds: ArrayLike) -> None:
    """Write several tensors to a file in numpy's format npz, which `tk.load` and `numpy.load` read.

    Args:
        file: a path, to which `.npz` is added if it has another ending, or a binary file that is open for writing.
        *args: tensors, named `arr_0`, `arr_1` and so on.
        **kwds: tensors by name.

    Raises:
        ArgumentError: if two tensors have one name.
        ConcretizationError: inside a transform, where the values are not known.
        DTypeError: if one is bfloat16, which the format lacks.

    >>> import tempfile
    >>> import tensorken as tk
    >>> with tempfile.TemporaryFile() as file:
    ...     tk.savez(file, tk.ones(2), bias=0.5)
    ...     {name: x.tolist() for name, x in tk.load(file).items()}
    {'arr_0': [1.0, 1.0], 'bias': 0.5}
    """
    _save_zipped("savez", file, args, kwds, zipfile.ZIP_STORED)


def savez_compressed(file: Any, *args: ArrayLike, **kwds: ArrayLike) -> None:
    """`tk.savez`, with compression.

    Raises:
        DTypeError: if a tensor is bfloat16, which the format lacks.

    >>> import tempfile
    >>> import tensorken as tk
    >>> with tempfile.TemporaryFile() as file:
    ...     tk.savez_compressed(file, zeros=tk.zeros(1000))
    ...     tk.load(file)["zeros"].shape, file.seek(0, 2) < 1000
    ((1000,), True)
    """
    _save_zipped("savez_compressed", file, args, kwds, zipfile.ZIP_DEFLATED)


def _save_zipped(name: str, file: Any, args: Any, kwds: dict[str, Any], compression: int) -> None:
    arrays = {f"arr_{i}": x for i, x in enumerate(args)}
    if clash := arrays.keys() & kwds.keys():
        raise ArgumentError(f"{name}: {min(clash)} is the name of an argument without a name; choose another")
    parts = {key: _written(name, x) for key, x in (arrays | kwds).items()}
    target = file if hasattr(file, "write") else _with_ending(file, ".npz")
    with zipfile.ZipFile(target, "w", compression) as archive:
        for key, (header, data) in parts.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                member.write(header)
                member.write(data)


def _written(name: str, x: Any) -> tuple[bytes, bytes | memoryview]:
    """The header of version 1 of the format, and the elements."""
    y = as_tensor(x)
    if y.dtype is bfloat16:
        raise DTypeError(f"{name}: numpy's format has no bfloat16; cast it (x.astype), or write a checkpoint")
    order = "|" if y.dtype.itemsize == 1 else ORDER
    kind = y.dtype.kind[0] if y.dtype.signed else "u"
    text = f"{{'descr': '{order}{kind}{y.dtype.itemsize}', 'fortran_order': False, 'shape': {y.shape!r}, }}"
    start = len(MAGIC) + 4
    padded = text + " " * (-(start + len(text) + 1) % 64) + "\n"
    return MAGIC + b"\x01\x00" + struct.pack("<H", len(padded)) + padded.encode("latin1"), to_bytes(name, y)


def _with_ending(file: Any, ending: str) -> Path:
    path = Path(os.fspath(file))
    return path if path.name.endswith(ending) else path.with_name(path.name + ending)


# ---- loading -----------------------------------------------------------------------------------------------


def load(file: Any, *, max_bytes: int | None = None, backend: Any = None, device: str | None = None) -> Any:
    """The tensor in a file of numpy's format npy, or a dict of the tensors in a file of the format npz.

    Programs are loaded by `tk.Program.load`.

    Args:
        file: a path, or a binary file that is open for reading, which can seek.
        max_bytes: the most bytes of all tensors of a compressed file. By default 1 GiB, or 100 times the size of the
            file if that is more: a small file of others must not fill the memory.
        backend: a name such as `"numpy"`, or an interpreter; the default backend if None.
        device: one of the backend's devices.

    Raises:
        ArgumentError: if the file has another format, is damaged, ends early, or has more than `max_bytes`.
        DTypeError: if no dtype corresponds to that of the file; objects are never loaded.
        OSError: if there is no such file, or it cannot be opened.

    >>> import io
    >>> import numpy as np
    >>> import tensorken as tk
    >>> file = io.BytesIO()
    >>> np.save(file, np.arange(3))
    >>> _ = file.seek(0)
    >>> print(tk.load(file))
    [0 1 2]
    """
    if not hasattr(file, "read"):
        with Path(os.fspath(file)).open("rb") as opened:
            return load(opened, max_bytes=max_bytes, backend=backend, device=device)
    start = file.tell()
    size = file.seek(0, os.SEEK_END) - start
    file.seek(start)
    if file.read(len(MAGIC)) == MAGIC:
        stored = _stored("the file", file, size - len(MAGIC))
        return stored.tensor(backend, device)
    file.seek(start)
    if not zipfile.is_zipfile(file):
        raise ArgumentError(
            "load: the file has neither of the formats npy and npz; tk.Program.load reads programs, and "
            "tensorken_nn.checkpoints.load checkpoints"
        )
    members = _members(file, max(2**30, 100 * size) if max_bytes is None else max_bytes)
    return {name: stored.tensor(backend, device) for name, stored in members.items()}


@dataclass(frozen=True, slots=True)
class _Stored:
    """The contents of a file of the format npy: `data` has the elements in the byte order of the machine."""

    shape: Shape
    by_columns: bool
    dtype: DType
    data: bytes

    def tensor(self, backend: Any, device: str | None) -> Tensor:
        """The tensor on a backend."""
        stored = self.shape[::-1] if self.by_columns else self.shape
        x = of_flat("load", stored, unpacked(self.data, self.dtype), self.dtype, backend, device)
        return x.transpose() if self.by_columns else x


def _members(file: Any, limit: int) -> dict[str, _Stored]:
    """The arrays in a zip file, by their names."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            size = sum([member.file_size for member in members])
            if size > limit:
                raise ArgumentError(
                    f"load: the file unpacks to {size} bytes, more than {limit}; pass max_bytes= if you trust it"
                )
            return {member.filename.removesuffix(".npy"): _member(archive, member) for member in members}
    except (TensorkenError, MemoryError):
        raise
    except Exception as error:  # zipfile raises a dozen classes for damaged files
        text = printable(str(error), 120) or type(error).__name__
        raise ArgumentError(f"load: the file is damaged ({text}); write it again") from error


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> _Stored:
    name = printable(member.filename, 80)
    with archive.open(member) as opened:
        if opened.read(len(MAGIC)) != MAGIC:
            raise ArgumentError(f"load: {name} in the file does not have the format npy")
        found = _stored(name, opened, member.file_size - len(MAGIC))
        if opened.read(1):
            raise ArgumentError(f"load: {name} in the file has more bytes than its shape {found.shape} needs")
        return found


def _stored(name: str, file: IO[bytes], left: int) -> _Stored:
    """The array of a file after the magic bytes.

    Args:
        name: of the file, for errors.
        file: the file.
        left: the bytes that it still has, so that nothing is made for sizes that it only claims.
    """
    major = _bytes(name, file, 2, left)[0]
    if major not in (1, 2, 3):
        raise ArgumentError(
            f"load: version {major} of the format npy is unknown; the versions are 1, 2 and 3"
        )
    width = 2 if major == 1 else 4
    length = int.from_bytes(_bytes(name, file, width, left - 2), "little")
    left -= 2 + width
    if length > MAX_HEADER:
        raise ArgumentError(f"load: {name} is damaged: its header has {length} bytes, more than {MAX_HEADER}")
    text = _bytes(name, file, length, left).decode("utf-8" if major == 3 else "latin1", "replace")
    header = _header(text)
    if header is None:
        raise ArgumentError(f"load: the header {quoted(text.strip())} is not that of the format npy")
    descr, by_columns, shape = header
    shape = shape_of("load", shape)
    dtype, order = _dtype_of(descr)
    data = _bytes(name, file, math.prod(shape) * dtype.itemsize, left - length)
    if order not in ("|", "=", ORDER) and dtype.itemsize > 1:
        swapped, width = bytearray(len(data)), real_dtype(dtype).itemsize
        for i in range(width):
            swapped[i::width] = data[width - 1 - i :: width]
        data = bytes(swapped)
    return _Stored(shape, by_columns, dtype, data)


def _header(text: str) -> tuple[Any, bool, Shape] | None:
    """The description of the dtype, whether columns come first, and the shape; None if the text is no header."""
    try:
        header = ast.literal_eval(text)
        descr, by_columns, shape = header["descr"], header["fortran_order"], tuple(header["shape"])
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError):
        return None
    if type(by_columns) is not bool or not all([type(n) is int and n >= 0 for n in shape]):
        return None
    return descr, by_columns, shape


def _dtype_of(descr: Any) -> tuple[DType, str]:
    """The dtype and the byte order of a header's description, such as `<f4`."""
    kinds = {"b": ("bool", True), "i": ("int", True), "u": ("int", False), "f": ("float", True)}
    kinds["c"] = ("complex", True)
    if isinstance(descr, str) and descr[:1] in ORDERS and descr[1:2] in kinds:
        kind, signed = kinds[descr[1]]
        for dtype in (DTYPES | COMPLEX).values():
            if (dtype.kind, str(dtype.itemsize)) == (kind, descr[2:]) and (
                kind != "int" or dtype.signed == signed
            ):
                return dtype, descr[0]
    raise DTypeError(f"load: the file's dtype {printable(repr(descr), 60)} is none of {', '.join(DTYPES)}")


def _bytes(name: str, file: IO[bytes], count: int, left: int) -> bytes:
    """The next `count` bytes of a file that has `left` bytes."""
    data = file.read(count) if count <= left else b""
    if len(data) != count:
        raise ArgumentError(
            f"load: {name} ends early: {count} bytes are needed, and {max(left, 0)} are there"
        )
    return data
