"""The cache of machine code: object files on disk, found by what they were compiled from.

TENSORKEN_LLVM_CACHE is the folder; by default `llvm` in the folder of Tensorken's caches.  "0" turns the cache off.
A file that is damaged is compiled again.  The least recently used files go when there are too many bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from tensorken.cache_folder import cache_folder, write_file

VARIABLE = "TENSORKEN_LLVM_CACHE"

MAX_BYTES = 2**28
"""The most bytes of all files."""

_HASH_BYTES = 32


def folder() -> Path | None:
    """The folder of the cache; None if there is none."""
    text = os.environ.get(VARIABLE)
    if text is None:
        caches = cache_folder()
        return None if caches is None else caches / "llvm"
    return Path(text) if text not in ("", "0") else None


def description() -> str:
    """The folder of the cache, and what is in it."""
    place = folder()
    if place is None:
        return "none"
    try:
        sizes = [file.stat().st_size for file in place.glob("*.o")]
    except OSError as error:
        return f"{place} ({error.strerror})"
    return f"{place}, {len(sizes)} files of {sum(sizes) / 2**20:.1f} MiB"


def cached(key: str, make: Callable[[], bytes]) -> bytes:
    """The machine code of a key, made if the cache has none.

    Args:
        key: names everything that the code depends on.
        make: compiles it.
    """
    place = folder()
    if place is None:
        return make()
    path = place / f"{hashlib.sha256(key.encode()).hexdigest()}.o"
    found = _read(path)
    if found is None:
        found = make()
        with contextlib.suppress(OSError):  # a cache that cannot be written is no fault of the program
            write_file(path, hashlib.sha256(found).digest() + found)
            _shrink(place)
    return found


def _read(path: Path) -> bytes | None:
    """The contents of a file; None if it is missing or damaged."""
    try:
        content = path.read_bytes()
        os.utime(path)
    except OSError:
        return None
    code = content[_HASH_BYTES:]
    return code if code and content[:_HASH_BYTES] == hashlib.sha256(code).digest() else None


def _shrink(place: Path) -> None:
    """Remove the least recently used files until the rest fits."""
    files = [(file.stat(), file) for file in place.glob("*.o")]
    total = sum([facts.st_size for facts, _ in files])
    for facts, file in sorted(files, key=lambda one: one[0].st_mtime):
        if total <= MAX_BYTES:
            return
        file.unlink(missing_ok=True)
        total -= facts.st_size
