"""Checkpoints: save trees of tensors and numbers to safetensors files, and load them.

The format is eight bytes for the size of the header, the header in JSON, and the elements, little-endian on every
machine (https://huggingface.co/docs/safetensors). The library `safetensors` reads the files, as they may come from
untrusted sources. It does not write them: it reads elements from memory addresses, and version 0.8.0 ignores strides.
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
from tensorken.interchange.elements import packed, unpacked
from tensorken.programs.forms.files import checksum, little_endian
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, ScalarRangeError, TensorkenError
from tensorken_core.language.dtypes import DTYPES, DType, check_scalar
from tensorken_nn.files import atomic_write, open_to_read, read
from tensorken_nn.module import named_parameters

__all__ = ["CheckpointError", "UncheckedWarning", "load", "metadata", "save"]

METADATA = "__metadata__"
"""The key of the metadata in the header; no tensor may have this name."""

CHECKSUM = "tensorken.checksum"
"""The metadata key of the checksum over all elements, names, dtypes, shapes and metadata."""

CHECKSUM_PLACEHOLDER = f"sha256:{'0' * 64}"
"""Written in place of the checksum until the elements are written."""

CODES = {name: f"{name[0].upper()}{8 * dtype.itemsize}" for name, dtype in DTYPES.items()}
CODES |= {"bool": "BOOL", "bfloat16": "BF16"}
"""The names of dtypes in the header."""

NAMES = {code: name for name, code in CODES.items()}
"""Dtype names by their names in the header."""

PYTHON_DTYPES: dict[type, DType] = {bool: tk.bool, int: tk.int64, float: tk.float64}
"""The dtypes in which Python numbers are stored."""

MAX_HEADER_SIZE = 100_000_000  # bytes; the limit of the library
MAX_DIFFERENCES = 5  # an error message lists this many differences and counts the others


class CheckpointError(TensorkenError, ValueError):
    """A file is not a checkpoint, or its tree differs from the expected one."""


class UncheckedWarning(UserWarning):
    """A checkpoint has no checksum, so damage to its elements cannot be detected."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The header's entry for a leaf."""

    code: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{NAMES.get(self.code, self.code)} {self.shape}"


def save(path: str | os.PathLike[str], tree: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Save a tree to a safetensors file, atomically: if the process is killed, the old file remains.

    Each leaf is stored row-major under its dotted path in the tree. The metadata contain a checksum of all leaves and
    metadata, with which `load` detects damage.

    Args:
        path: of the file; its folder must exist.
        tree: modules, optimiser states, keys, in any containers; the leaves are tensors of any backend and Python
            numbers.
        metadata: strings by name, such as settings.

    Raises:
        ArgumentError: if a leaf is anything else, two leaves have the same name, or the metadata are not strings.
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
    texts = _check_metadata(metadata or {})
    header: dict[str, Any] = {METADATA: {CHECKSUM: CHECKSUM_PLACEHOLDER, **texts}}
    # The widest elements come first, so that all are aligned when the file is mapped into memory.
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
        raise ArgumentError(
            f"save: a name or a string of the metadata is not valid Unicode: {error}"
        ) from None
    text += b" " * (-len(text) % 8)
    digests: dict[str, str] = {}
    with atomic_write(path) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in names:
            elements = _elements(leaves[name], _dtype(entries[name]))
            digests[name] = hashlib.sha256(elements).hexdigest()
            file.write(elements)
        file.seek(8 + text.index(CHECKSUM_PLACEHOLDER.encode()))  # the first entry of the metadata
        file.write(_checksum(texts, entries, digests).encode())


def load(path: str | os.PathLike[str], like: Any) -> Any:
    """Load the tree that was saved to a file.

    Args:
        path: of the file.
        like: a tree of the same structure, shapes and dtypes, such as a newly made model. Each loaded tensor is on the
            backend and device of its counterpart in `like`. Where `like` has a Python number, so does the result,
            even if a compiled step turned it into a tensor before it was saved.

    Raises:
        CheckpointError: if the file is not a safetensors file, is damaged, or contains a different tree; the message
            lists the differences.
        FileError: if the file cannot be read.
        ArgumentError: if a leaf of `like` is neither a tensor nor a number.

    Warns:
        UncheckedWarning: if the file has no checksum, such as files of other libraries and earlier versions.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.safetensors")
    ...     save(path, {"weight": tk.ones((2, 3))})
    ...     load(path, {"weight": tk.zeros((2, 3), backend="reference")})["weight"].backend
    'reference'
    """
    expected = {name: (leaf, _entry("load", name, leaf)) for name, leaf in named_parameters(like).items()}
    data = read(path)
    try:
        rows = dict(safetensors.deserialize(data))  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as error:
        raise _damaged(path, error) from None
    entries = {name: Entry(row["dtype"], tuple(row["shape"])) for name, row in rows.items()}
    texts = _read_metadata(path, data[8 : 8 + int.from_bytes(data[:8], "little")])
    _check(path, texts, entries, {name: row["data"] for name, row in rows.items()})
    differences = [
        f"it has no {name}, {entry}" if name not in entries else f"{name} is {entries[name]}, need {entry}"
        for name, (_, entry) in expected.items()
        if not _fits(entries.get(name), entry, expected[name][0])
    ]
    differences += [f"it has {name}, {entries[name]}" for name in sorted(entries) if name not in expected]
    if differences:
        more = (
            [f"{len(differences) - MAX_DIFFERENCES} more differences"]
            if len(differences) > MAX_DIFFERENCES
            else []
        )
        raise CheckpointError(
            f"load: {path} contains another tree: {'; '.join([*differences[:MAX_DIFFERENCES], *more])}; "
            f"load it into a tree made with the same settings"
        )
    values = [_value(leaf, entries[name], rows[name]["data"]) for name, (leaf, _) in expected.items()]
    return tree.unflatten(tree.structure(like), values)


def metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """The metadata that were saved with a tree; nothing else of the file is read.

    Raises:
        CheckpointError: if the file is not a safetensors file.
        FileError: if it cannot be read.
    """
    with open_to_read(path) as file:
        size = int.from_bytes(file.read(8), "little")
        text = file.read(size) if size <= MAX_HEADER_SIZE else b""
    return {name: text for name, text in _read_metadata(path, text).items() if name != CHECKSUM}


def _read_metadata(path: str | os.PathLike[str], header: bytes) -> dict[str, str]:
    """The metadata in a header, including the checksum."""
    try:
        content = json.loads(header)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, error) from None
    texts = content.get(METADATA, {}) if isinstance(content, dict) else None
    if not isinstance(texts, dict) or not all([isinstance(value, str) for value in texts.values()]):
        raise _damaged(path, "the metadata are not strings")
    return texts


def _checksum(texts: Mapping[str, str], entries: Mapping[str, Entry], digests: Mapping[str, str]) -> str:
    """The checksum over metadata and each leaf's name, dtype, shape and elements, independent of their order."""
    leaves = {name: [entry.code, list(entry.shape), digests[name]] for name, entry in entries.items()}
    return checksum({"metadata": dict(texts), "leaves": leaves})


def _check(
    path: str | os.PathLike[str],
    texts: Mapping[str, str],
    entries: Mapping[str, Entry],
    elements: Mapping[str, bytes],
) -> None:
    """Raise a CheckpointError if the content of a file does not agree with its checksum."""
    own = {name: text for name, text in texts.items() if name != CHECKSUM}
    if CHECKSUM not in texts:
        warnings.warn(
            f"{path} has no checksum, so damage to its numbers cannot be detected; save it again to add one",
            UncheckedWarning,
            stacklevel=3,
        )
    elif texts[CHECKSUM] != _checksum(
        own, entries, {name: hashlib.sha256(data).hexdigest() for name, data in elements.items()}
    ):
        raise _damaged(path, "its content differs from its checksum")


def _fits(entry: Entry | None, expected: Entry, leaf: Any) -> bool:
    """Whether a leaf can be loaded from an entry: an equal one, or for a number a scalar tensor of the same kind."""
    if entry is None or entry == expected:
        return entry is not None
    of_number = not isinstance(leaf, Tensor) and entry.shape == () and entry.code in NAMES
    return of_number and _dtype(entry).kind == _dtype(expected).kind


def _damaged(path: str | os.PathLike[str], cause: object) -> CheckpointError:
    reason = " ".join(str(cause).split()).removeprefix("Error while deserializing: ")
    return CheckpointError(
        f"{path} is not a safetensors file, or is damaged: {reason:.120}; use another checkpoint"
    )


def _check_metadata(metadata: Mapping[Any, Any]) -> dict[str, str]:
    for name, text in metadata.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise ArgumentError(
                f"save: metadata must be strings by name, got {name!r}: {text!r:.40}; use json.dumps"
            )
    if CHECKSUM in metadata:
        raise ArgumentError(
            f"save: the metadata key {CHECKSUM} is reserved for the checksum; use another name"
        )
    return dict(metadata)


def _entry(function: str, name: str, leaf: Any) -> Entry:
    if isinstance(leaf, Tensor):
        return Entry(CODES[leaf.dtype.name], leaf.shape)
    if type(leaf) in PYTHON_DTYPES:
        dtype = PYTHON_DTYPES[type(leaf)]
        try:
            check_scalar(leaf, dtype)
        except ScalarRangeError as error:
            raise ScalarRangeError(f"{function}: {name}: {error}") from None
        return Entry(CODES[dtype.name], ())
    raise ArgumentError(
        f"{function}: {name} is of type {type(leaf).__name__}, need a tensor or a number; "
        f"make it a static field, or a string in the metadata"
    )


def _dtype(entry: Entry) -> DType:
    return DTYPES[NAMES[entry.code]]


def _elements(leaf: Any, dtype: DType) -> bytes:
    """The elements of a tensor or number as bytes, row-major and little-endian."""
    flat = leaf.flat() if isinstance(leaf, Tensor) else [leaf]
    return little_endian(packed(flat, dtype), dtype)


def _value(like: Any, entry: Entry, data: bytes) -> Any:
    """The elements as a tensor on the backend of `like`, or as a number if `like` is one."""
    dtype = _dtype(entry)
    if dtype is tk.bool:  # a byte may be neither 0 nor 1
        data = bytes(map(bool, data))
    values = unpacked(little_endian(data, dtype), dtype)
    if not isinstance(like, Tensor):
        return values[0]
    return tk.new(entry.shape, values, dtype, backend=like.interpreter.base)
