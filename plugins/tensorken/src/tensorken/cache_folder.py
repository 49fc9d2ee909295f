"""The folder of the user's caches, for compiled code and measurements, and the reading and writing of files in it.

Machine code runs, so a file is read only if nobody else could have written it: the folder and the file belong to the
user, only the user may write them, and neither is a link.  Others are ignored, and a warning says so once.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from tensorken_core.text import printable

_TEMPORARY = ".part"
"""The ending of files that are being written."""

_ABANDONED = 3600.0
"""Seconds after which a file that is being written has no writer any more."""

_told: set[str] = set()


def cache_folder() -> Path | None:
    """The folder `tensorken` in the user's cache folder, which may not exist yet; None if the user has none.

    It is $XDG_CACHE_HOME (%LOCALAPPDATA% on Windows), or ~/.cache.

    >>> folder = cache_folder()
    >>> folder is None or folder.name
    'tensorken'
    """
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    caches = Path(os.environ.get(variable, ""))
    try:
        if not caches.is_absolute():
            caches = Path.home() / ".cache"
    except RuntimeError:
        return None
    return caches / "tensorken"


def folder_fault(folder: Path) -> str | None:
    """Why files in a folder are not used, in one line; None if they are, or if there is no folder yet."""
    try:
        fault = _fault(folder.lstat(), stat.S_ISDIR, "folder")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        fault = f"cannot be used ({_cause(error)})"
    return None if fault is None else f"the cache {printable(str(folder))} is not used: it {fault}"


def read_file(path: Path) -> bytes | None:
    """The content of a file; None if there is none, or another user could have written it, which is told once."""
    if not _is_trusted(path.parent):
        return None
    try:
        # a named pipe in its place must not block
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            fault = _fault(facts, stat.S_ISREG, "file")
            if fault is None and facts.st_nlink > 1:
                fault = "has several hard links"
            if fault is None:
                return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        fault = "is a link" if path.is_symlink() else f"cannot be read ({_cause(error)})"
    _tell(f"the file {printable(str(path))} in the cache is ignored: it {fault}")
    return None


def write_file(path: Path, content: bytes) -> None:
    """Write a file atomically, and make its folder if needed: a reader sees the new content or the old content.

    Nothing is written into a folder whose files are not used.

    Raises:
        OSError: if the file cannot be written; no temporary file remains.
    """
    _make(path.parent)
    if not _is_trusted(path.parent):
        return
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=_TEMPORARY)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def temporary_files(folder: Path) -> Iterator[Path]:
    """The files of a folder that are being written, or were when their process was killed."""
    return folder.glob(f"*{_TEMPORARY}")


def remove_abandoned(folder: Path) -> None:
    """Remove the files of processes that were killed while they wrote."""
    for file in temporary_files(folder):
        with contextlib.suppress(OSError):
            if time.time() - file.lstat().st_mtime > _ABANDONED:
                file.unlink()


def _make(folder: Path) -> None:
    """Make a folder, and the folders around it, for the user alone."""
    missing = [place for place in (folder, *folder.parents) if not os.path.lexists(place)]
    for place in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process makes it too
            place.mkdir(mode=0o700)


def _is_trusted(folder: Path) -> bool:
    fault = folder_fault(folder)
    if fault is not None:
        _tell(fault)
    return fault is None


def _fault(facts: os.stat_result, is_kind: Callable[[int], bool], kind: str) -> str | None:
    """What is wrong with a file or folder, as the end of a sentence; None if it is the user's own."""
    if stat.S_ISLNK(facts.st_mode):
        return "is a link"
    if not is_kind(facts.st_mode):
        return f"is no {kind}"
    if not hasattr(os, "geteuid"):  # Windows keeps the folder of each user from the others
        return None
    if facts.st_uid != os.geteuid():
        return f"belongs to user {facts.st_uid}, not to user {os.geteuid()}; remove it"
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written by other users; remove it, or chmod go-w it"
    return None


def _cause(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__


def _tell(message: str) -> None:
    """Warn once."""
    if message not in _told:
        _told.add(message)
        warnings.warn(f"tensorken: {message}", RuntimeWarning, stacklevel=2)
