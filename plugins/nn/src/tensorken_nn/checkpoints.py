"""Checkpoints: trees of tensors and numbers in safetensors files, and back into trees.

The format is eight bytes for the size of a header, the header, which is JSON, and the elements, little-endian on
machines of any kind (https://huggingface.co/docs/safetensors). The library `safetensors` reads it here, as files come
from anywhere. What it writes it takes from addresses of memory, and in 0.8.0 an array with strides is written as if it
had none; a header is quickly written, and tensors give their elements in order.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import safetensors

import tensorken as tk
from tensorken import Tensor
from tensorken.programs.forms.files import checksum, little_endian
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, ScalarRangeError, TensorkenError
from tensorken_core.language.dtypes import DTYPES, DType, check_scalar
from tensorken_nn.files import read, reading, replacing
from tensorken_nn.module import named_parameters

__all__ = ["CheckpointError", "UncheckedWarning", "load", "metadata", "save"]

METADATA = "__metadata__"
"""The place in the header of what is told beside the tensors; no tensor may have this name."""

CHECKSUM = "tensorken.checksum"
"""The name, among the metadata, of the checksum of all elements, names, dtypes, shapes and texts."""

UNKNOWN = f"sha256:{'0' * 64}"
"""What stands in the place of the checksum until the elements are written."""

CODES = {"bool": "BOOL", "int32": "I32", "int64": "I64", "float16": "F16", "float32": "F32", "float64": "F64"}
"""What dtypes are called in the header."""

NAMES = {code: name for name, code in CODES.items()}
"""The dtypes by what they are called there."""

OF_PYTHON: dict[type, DType] = {bool: tk.bool, int: tk.int64, float: tk.float64}
"""The dtypes that Python's numbers are kept in."""

LARGEST_HEADER = 100_000_000  # bytes; the library reads none that is larger
MANY = 5  # differences that an error tells; of the others, how many there are


class CheckpointError(TensorkenError, ValueError):
    """A file is no checkpoint, or not one of the tree that is wanted."""


class UncheckedWarning(UserWarning):
    """A checkpoint has no checksum, so that damage to its elements would not be seen."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the header says of a leaf."""

    code: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{NAMES.get(self.code, self.code)} {self.shape}"


def save(path: str | os.PathLike[str], tree: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Write a tree into a safetensors file; a process that is killed meanwhile leaves the file that was there.

    The elements of each leaf stand under the dotted name of its place, row-major. A checksum of everything is among the
    metadata, by which `load` sees damage.

    Args:
        path: of the file; its folder is there.
        tree: modules, states of optimisers, keys, in any containers; the leaves are tensors, of any backend, and
            Python's numbers.
        metadata: texts by their names, such as settings.

    Raises:
        ArgumentError: if a leaf is something else, two have one name, or the metadata are no texts.
        ScalarRangeError: if a Python int does not fit int64.
        FileError: if the file cannot be written.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.safetensors")
    ...     save(path, {"weight": tk.ones((2, 3)), "step": 7}, {"job": "example"})
    ...     load(path, {"weight": tk.zeros((2, 3)), "step": 0})["step"], metadata(path)
    (7, {'job': 'example'})
    """
    leaves = named_parameters(tree)
    entries = {name: _entry("save", name, leaf) for name, leaf in leaves.items()}
    if METADATA in leaves:
        raise ArgumentError(f"save: no leaf may be called {METADATA}, as the metadata are; rename its key")
    texts = _texts(metadata or {})
    header: dict[str, Any] = {METADATA: {CHECKSUM: UNKNOWN, **texts}}
    # The widest elements stand first, so that all of them are aligned for those who map the file into memory.
    names = sorted(leaves, key=lambda name: -_dtype(entries[name]).itemsize)
    start = 0
    for name in names:
        code, shape = entries[name].code, entries[name].shape
        end = start + math.prod(shape) * _dtype(entries[name]).itemsize
        header[name] = {"dtype": code, "shape": shape, "data_offsets": (start, end)}
        start = end
    try:
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError as error:
        raise ArgumentError(f"save: a name or a text of the metadata is no Unicode: {error}") from None
    text += b" " * (-len(text) % 8)
    digests: dict[str, str] = {}
    with replacing(path) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in names:
            elements = _elements(leaves[name], _dtype(entries[name]))
            digests[name] = hashlib.sha256(elements).hexdigest()
            file.write(elements)
        file.seek(8 + text.index(UNKNOWN.encode()))  # the checksum is the first of the texts
        file.write(_checksum(texts, entries, digests).encode())


def load(path: str | os.PathLike[str], like: Any) -> Any:
    """The tree that was saved into a file.

    Args:
        path: of the file.
        like: a tree of the same structure, shapes and dtypes, such as a model that was just made. Each tensor that
            is loaded lives where its counterpart does, wherever it was saved from; where `like` has a Python number,
            so has the result, also if a compiled step made a tensor of that before it was saved.

    Raises:
        CheckpointError: if the file is no safetensors file, is damaged, or holds another tree; then it tells the
            differences.
        FileError: if the file cannot be read.
        ArgumentError: if a leaf of `like` is neither a tensor nor a number.

    Warns:
        UncheckedWarning: if the file has no checksum, as those of other libraries and of earlier versions have none.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.safetensors")
    ...     save(path, {"weight": tk.ones((2, 3))})
    ...     load(path, {"weight": tk.zeros((2, 3), backend="reference")})["weight"].backend
    'reference'
    """
    wanted = {name: (leaf, _entry("load", name, leaf)) for name, leaf in named_parameters(like).items()}
    data = read(path)
    try:
        rows = dict(safetensors.deserialize(data))  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as error:
        raise _damaged(path, error) from None
    found = {name: Entry(row["dtype"], tuple(row["shape"])) for name, row in rows.items()}
    texts = _texts_of(path, data[8 : 8 + int.from_bytes(data[:8], "little")])
    _check(path, texts, found, {name: row["data"] for name, row in rows.items()})
    differences = [
        f"it has no {name}, {entry}" if name not in found else f"{name} is {found[name]}, need {entry}"
        for name, (_, entry) in wanted.items()
        if not _fits(found.get(name), entry, wanted[name][0])
    ]
    differences += [f"it has {name}, {found[name]}" for name in sorted(found) if name not in wanted]
    if differences:
        more = [f"{len(differences) - MANY} more differences"] if len(differences) > MANY else []
        raise CheckpointError(
            f"load: {path} holds another tree: {'; '.join([*differences[:MANY], *more])}; "
            f"load it into what was made with the same settings"
        )
    values = [_value(leaf, found[name], rows[name]["data"]) for name, (leaf, _) in wanted.items()]
    return tree.unflatten(tree.structure(like), values)


def metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """The texts that were saved beside a tree; nothing else of the file is read.

    Raises:
        CheckpointError: if the file is no safetensors file.
        FileError: if it cannot be read.
    """
    with reading(path) as file:
        size = int.from_bytes(file.read(8), "little")
        text = file.read(size) if size <= LARGEST_HEADER else b""
    return {name: text for name, text in _texts_of(path, text).items() if name != CHECKSUM}


def _texts_of(path: str | os.PathLike[str], header: bytes) -> dict[str, str]:
    """The metadata in a header, the checksum among them."""
    try:
        content = json.loads(header)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, error) from None
    texts = content.get(METADATA, {}) if isinstance(content, dict) else None
    if not isinstance(texts, dict) or not all([isinstance(value, str) for value in texts.values()]):
        raise _damaged(path, "the metadata are no texts")
    return texts


def _checksum(texts: Mapping[str, str], entries: Mapping[str, Entry], digests: Mapping[str, str]) -> str:
    """Of the texts, and of each leaf's name, dtype, shape and elements, in whatever order they stand in the file."""
    leaves = {name: [entry.code, list(entry.shape), digests[name]] for name, entry in entries.items()}
    return checksum({"metadata": dict(texts), "leaves": leaves})


def _check(
    path: str | os.PathLike[str],
    texts: Mapping[str, str],
    entries: Mapping[str, Entry],
    elements: Mapping[str, bytes],
) -> None:
    """Raise a CheckpointError if what a file holds is not what its checksum was made of."""
    own = {name: text for name, text in texts.items() if name != CHECKSUM}
    if CHECKSUM not in texts:
        warnings.warn(
            f"{path} has no checksum, so damage to its numbers cannot be seen; save it again to give it one",
            UncheckedWarning,
            stacklevel=3,
        )
    elif texts[CHECKSUM] != _checksum(
        own, entries, {name: hashlib.sha256(data).hexdigest() for name, data in elements.items()}
    ):
        raise _damaged(path, "what it holds differs from its checksum")


def _fits(found: Entry | None, wanted: Entry, leaf: Any) -> bool:
    """Whether a leaf can be made of what the file has: the same, or for a number a tensor of one of its kind."""
    if found is None or found == wanted:
        return found is not None
    of_number = not isinstance(leaf, Tensor) and found.shape == () and found.code in NAMES
    return of_number and _dtype(found).kind == _dtype(wanted).kind


def _damaged(path: str | os.PathLike[str], why: object) -> CheckpointError:
    told = " ".join(str(why).split()).removeprefix("Error while deserializing: ")
    return CheckpointError(
        f"{path} is no safetensors file, or a damaged one: {told:.120}; use another checkpoint"
    )


def _texts(metadata: Mapping[Any, Any]) -> dict[str, str]:
    for name, text in metadata.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise ArgumentError(
                f"save: metadata are texts by their names, got {name!r}: {text!r:.40}; use json.dumps"
            )
    if CHECKSUM in metadata:
        raise ArgumentError(f"save: {CHECKSUM} is the checksum's place among the metadata; use another name")
    return dict(metadata)


def _entry(function: str, name: str, leaf: Any) -> Entry:
    if isinstance(leaf, Tensor):
        return Entry(CODES[leaf.dtype.name], leaf.shape)
    if type(leaf) in OF_PYTHON:
        dtype = OF_PYTHON[type(leaf)]
        try:
            check_scalar(leaf, dtype)
        except ScalarRangeError as error:
            raise ScalarRangeError(f"{function}: {name}: {error}") from None
        return Entry(CODES[dtype.name], ())
    raise ArgumentError(
        f"{function}: {name} is of type {type(leaf).__name__}, need a tensor or a number; "
        f"make it a static field, or a text of the metadata"
    )


def _dtype(entry: Entry) -> DType:
    return DTYPES[NAMES[entry.code]]


def _elements(leaf: Any, dtype: DType) -> bytes:
    """The elements of a tensor or number, row-major and little-endian."""
    flat = leaf.flat() if isinstance(leaf, Tensor) else [leaf]
    if isinstance(flat, list):
        return struct.pack(f"<{len(flat)}{dtype.format}", *flat)
    return little_endian(memoryview(flat).tobytes(), dtype)


def _value(like: Any, entry: Entry, data: bytes) -> Any:
    """Elements as what `like` is: a tensor where that lives, or a number."""
    dtype = _dtype(entry)
    if dtype.format in "e?" or not isinstance(like, Tensor):
        # No memoryview has float16 before Python 3.12, and the bytes of a bool may be others than 0 and 1.
        values: Any = list(struct.unpack(f"<{len(data) // dtype.itemsize}{dtype.format}", data))
    else:
        values = memoryview(little_endian(data, dtype)).cast(dtype.format)  # type: ignore[call-overload]
    if not isinstance(like, Tensor):
        return values[0]
    return tk.new(entry.shape, values, dtype, backend=like.interpreter.base)
