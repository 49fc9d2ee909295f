"""The folder of the user's caches, for what is compiled or measured once."""

from __future__ import annotations

import os
import sys
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
