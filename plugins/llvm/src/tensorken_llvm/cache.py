"""The cache of compiled programs: the most recent ones in memory, and files on disk, found by their keys.

TENSORKEN_LLVM_CACHE is the folder; by default `llvm` in the folder of Tensorken's caches.  "0" turns the cache off.
Machine code is read only from files that nobody but the user can have written.
A program is found by its key before the passes, too: a file of its own has this name for it.
A file that is damaged, or is not what its name says, is compiled again.  The least recently used files go when there
are too many bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorken.cache_folder import (
    cache_folder,
    folder_fault,
    read_file,
    remove_abandoned,
    temporary_files,
    write_file,
)
from tensorken_core.host.variables import OFF, refused, value_of
from tensorken_llvm.entry import CALLS
from tensorken_llvm.layouts import Layout
from tensorken_llvm.machine import Library, load

VARIABLE = "TENSORKEN_LLVM_CACHE"

MAX_BYTES = 2**28
"""The most bytes of all files."""

MAX_IN_MEMORY = 64
"""The most programs in memory that nothing else refers to."""

_HASH_BYTES = 32

_recent: OrderedDict[str, Entry] = OrderedDict()
_written: dict[Path, int] = {}  # for each folder the bytes since its size was last looked up


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A compiled program.

    Attributes:
        layout: where its values are.
        library: its machine code.
        calls: how many calls of quick code are cheaper than optimised code; 0 if it stays as it is.
    """

    layout: Layout
    library: Library
    calls: int


def loaded(code: bytes, layout: Layout, calls: int) -> Entry:
    """A compiled program from its object file."""
    return Entry(layout, load(code, [*layout.names, CALLS] if calls else layout.names), calls)


def folder() -> Path | None:
    """The folder of the cache; None if there is none.

    Raises:
        SettingError: if TENSORKEN_LLVM_CACHE is no absolute path.
    """
    if VARIABLE not in os.environ:
        caches = cache_folder()
        return None if caches is None else caches / "llvm"
    text = value_of(VARIABLE)
    if text.lower() in OFF:
        return None
    if not Path(text).is_absolute() or "\0" in text:
        raise refused(VARIABLE, "expected an absolute path, or 0 for no cache")
    return Path(text)


def description() -> str:
    """The folder of the cache, and what is in it."""
    place = folder()
    if place is None:
        return "none"
    fault = folder_fault(place)
    if fault is not None:
        return f"none: {fault}"
    try:
        sizes = [file.stat().st_size for file in place.glob("*.o")]
        unfinished = len([*temporary_files(place)])
    except OSError as error:
        return f"{place} ({error.strerror})"
    rest = f", {unfinished} unfinished" if unfinished else ""
    return f"{place}, {len(sizes)} files of {sum(sizes) / 2**20:.1f} MiB{rest}"


def find(key: str) -> Entry | None:
    """The compiled program with a key; None if there is none, or the cache is off."""
    place = folder()
    if place is None:
        return None
    found = _recent.get(key)
    if found is None:
        found = _read(_path(place, key), key)
    if found is not None:
        _remember(key, found)
    return found


def keep(key: str, code: bytes, entry: Entry) -> None:
    """Keep a compiled program."""
    place = folder()
    if place is None:
        return
    _remember(key, entry)
    _write(place, key, {"key": key, "layout": entry.layout.to_json(), "calls": entry.calls}, code)


def keep_name(name: str, key: str, constants: Sequence[str]) -> None:
    """Keep another name of a compiled program.

    Args:
        name: the key of the program before the passes.
        key: of the compiled program.
        constants: the digests of the constants of its layout, in order.
    """
    place = folder()
    if place is not None:
        _write(place, name, {"key": name, "program": key, "constants": constants}, b"")


def find_name(name: str) -> tuple[str, list[str]] | None:
    """The key of a compiled program with a name, and the digests of its constants; None if it has none."""
    place = folder()
    content = None if place is None else _content(_path(place, name), name)
    if content is None:
        return None
    try:
        return content[0]["program"], content[0]["constants"]
    except KeyError:
        return None


def forget() -> None:
    """Drop the programs in memory."""
    _recent.clear()


def _path(place: Path, key: str) -> Path:
    return place / f"{key}.o"


def _remember(key: str, entry: Entry) -> None:
    _recent[key] = entry
    with contextlib.suppress(KeyError):  # other threads do the same
        _recent.move_to_end(key)
        while len(_recent) > MAX_IN_MEMORY:
            _recent.popitem(last=False)


def _write(place: Path, key: str, head: Mapping[str, Any], code: bytes) -> None:
    """Write a file: a digest of the rest, the size of the head, the head, and the object file."""
    text = json.dumps(head).encode()
    content = b"%d\n%b%b" % (len(text), text, code)
    with contextlib.suppress(OSError):  # a cache that cannot be written is no fault of the program
        write_file(_path(place, key), hashlib.sha256(content).digest() + content)
        _written[place] = _written.get(place, MAX_BYTES) + len(content)
        if _written[place] > MAX_BYTES // 16:  # listing the folder takes long
            _written[place] = 0
            _shrink(place)


def _content(path: Path, key: str) -> tuple[dict[str, Any], bytes] | None:
    """The head and the object file of a file; None if it is missing, damaged, or another one."""
    content = read_file(path)
    if content is None:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    rest = content[_HASH_BYTES:]
    if content[:_HASH_BYTES] != hashlib.sha256(rest).digest():
        return None
    try:
        size, _, rest = rest.partition(b"\n")
        head = json.loads(rest[: int(size)])
        return (head, rest[int(size) :]) if head["key"] == key else None
    except (ValueError, KeyError, TypeError, RecursionError):  # something else wrote the file
        return None


def _read(path: Path, key: str) -> Entry | None:
    """The program in a file; None if it is missing, damaged, or another one."""
    content = _content(path, key)
    if content is None:
        return None
    head, code = content
    try:
        return loaded(code, Layout.from_json(head["layout"]), head["calls"])
    except (ValueError, KeyError, TypeError, RuntimeError):  # something else wrote the file
        return None


def _shrink(place: Path) -> None:
    """Remove unfinished files, and the least recently used files until the rest fits."""
    remove_abandoned(place)
    files = [(file.stat(), file) for file in place.glob("*.o")]
    total = sum([facts.st_size for facts, _ in files])
    for facts, file in sorted(files, key=lambda one: one[0].st_mtime):
        if total <= MAX_BYTES:
            return
        file.unlink(missing_ok=True)
        total -= facts.st_size
