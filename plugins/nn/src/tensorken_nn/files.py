"""Read files with one-line errors, and write them atomically."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tensorken_core.errors import TensorkenError


class FileError(TensorkenError, OSError):
    """A file cannot be read or written."""


class ContentError(TensorkenError, ValueError):
    """The content of a file is not a text or table of the expected form."""


def read(path: str | os.PathLike[str]) -> bytes:
    """Read all bytes of a file.

    Raises:
        FileError: if it cannot be read.
    """
    with open_to_read(path) as file:
        return file.read()


@contextmanager
def open_to_read(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for reading.

    Raises:
        FileError: if it cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            yield file
    except OSError as error:
        reason = error.strerror or error
        raise FileError(f"cannot read {path}: {reason}; give the path of a file that can be read") from error


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write a file atomically: it replaces the file at `path` when the block ends without an error.

    Even if the process or the machine stops, `path` is either the complete old file or the complete new one. The
    new file is written to `.NAME.xxxxxxxx.part` in the same folder. A partial file of a killed process is removed
    at the next write, so only one process may write to a path at a time.

    Raises:
        FileError: if it cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "words.txt")
    ...     with atomic_write(path) as file:
    ...         _ = file.write(b"all of them")
    ...     read(path), len(list(Path(folder).iterdir()))
    (b'all of them', 1)
    """
    target = Path(os.path.realpath(path))  # a symbolic link stays a link
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # before the rename: the system may write in another order
        temporary.replace(target)
        _sync_directory(target.parent)
    except OSError as error:
        if isinstance(error, TensorkenError):
            raise
        reason = error.strerror or error
        raise FileError(f"cannot write {path}: {reason}; choose another path, or free some space") from error
    finally:
        _remove(temporary)
    for leftover in target.parent.glob(f".{_escape_glob(target.name)}.{'[0-9a-f]' * 8}.part"):
        _remove(leftover)


def _sync_directory(folder: Path) -> None:
    """Flush a folder's entries to disk, if the system allows it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF):  # file systems that do not support it
            raise
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _escape_glob(name: str) -> str:
    """A glob pattern that matches only this name."""
    return "".join([f"[{letter}]" if letter in "*?[" else letter for letter in name])
