"""Loading watched: what takes long to load, or ends the process by `os._exit` while it loads, is named on stderr.

A plugin runs its own code when it is loaded, so it may do either.  The watch costs a thread that sleeps.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import NoReturn

PATIENCE = 5.0
"""Seconds after which what is still loading is named."""

_EXIT = os._exit
_lock = threading.Lock()
_loading: list[tuple[tuple[int, int], str]] = []  # process and thread, and what loads there


@contextlib.contextmanager
def watched(what: str) -> Iterator[None]:
    """Name on stderr what a block loads, if that takes long or ends the process.

    >>> with watched("backend 'toy' of dist-toy 1.0"):
    ...     pass
    """
    here = ((os.getpid(), threading.get_ident()), what)
    timer = threading.Timer(PATIENCE, _name_slow, (what,))
    timer.daemon = True
    with contextlib.suppress(RuntimeError):  # a platform without threads
        timer.start()
    with _lock:
        _loading.append(here)
        os._exit = _exit
    try:
        yield
    finally:
        timer.cancel()
        with _lock:
            _loading.remove(here)
            if not _loading and os._exit is _exit:
                os._exit = _EXIT


def say(line: str) -> None:
    """Write a line to stderr, if there is one."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(line.encode("ascii", "backslashreplace").decode("ascii"), file=sys.stderr, flush=True)


def _name_slow(what: str) -> None:
    say(
        f"tensorken: still loading {what} after {PATIENCE:g} s; if it never returns, remove it "
        f"(tensorken backends --probe tells which do not load)"
    )


def _exit(status: int) -> NoReturn:
    """`os._exit` while something loads."""
    here = (os.getpid(), threading.get_ident())
    for place, what in _loading:
        if place == here:
            say(f"tensorken: {what} ended this process by os._exit({status!r:.20}) while it was loaded")
    _EXIT(status)
