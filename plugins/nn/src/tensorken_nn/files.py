"""Files: read with one line for what may go wrong, and written so that they are there whole or not at all."""

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
    """A text or a table in a file is none, or is damaged."""


def read(path: str | os.PathLike[str]) -> bytes:
    """All bytes of a file.

    Raises:
        FileError: if it cannot be read.
    """
    with reading(path) as file:
        return file.read()


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """The file, open to be read.

    Raises:
        FileError: if it cannot be.
    """
    try:
        with Path(path).open("rb") as file:
            yield file
    except OSError as error:
        why = error.strerror or error
        raise FileError(f"cannot read {path}: {why}; give the path of a file that can be read") from error


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write, which takes the place of the one at `path` once all is written.

    At any moment, whatever ends the process or the machine, the whole old file is there or the whole new one. Until
    then the new one is beside it, as `.NAME.xxxxxxxx.part`. One that a killed process left there is removed when
    the file is written again; so one process at a time writes to a place.

    Raises:
        FileError: if it cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "words.txt")
    ...     with replacing(path) as file:
    ...         _ = file.write(b"all of them")
    ...     read(path), len(list(Path(folder).iterdir()))
    (b'all of them', 1)
    """
    target = Path(os.path.realpath(path))  # a link keeps leading to the file
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # before the name leads there: the system may write in another order
        temporary.replace(target)
        _sync_names(target.parent)
    except OSError as error:
        if isinstance(error, TensorkenError):
            raise
        why = error.strerror or error
        raise FileError(f"cannot write {path}: {why}; choose another place, or make room") from error
    finally:
        _remove(temporary)
    for leftover in target.parent.glob(f".{_literal(target.name)}.{'[0-9a-f]' * 8}.part"):
        _remove(leftover)


def _sync_names(folder: Path) -> None:
    """Have the names in a folder on the disk, where the system lets folders be opened for that."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF):  # what file systems say that cannot do it
            raise
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _literal(name: str) -> str:
    """A name as a pattern that matches it alone."""
    return "".join([f"[{letter}]" if letter in "*?[" else letter for letter in name])
