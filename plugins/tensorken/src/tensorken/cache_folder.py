"""The folder of the user's caches, for compiled code and measurements, and the writing of files in it."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path


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


def write_file(path: Path, content: bytes) -> None:
    """Write a file atomically, and make its folder if needed: a reader sees the new content or the old content.

    Raises:
        OSError: if the file cannot be written; no temporary file remains.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink()
        raise
