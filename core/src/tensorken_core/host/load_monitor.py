"""Messages about slow loading, and about an `os._exit` during loading, on stderr.

A plugin runs its own code when it is loaded, so both can happen.  The monitor costs a thread that sleeps.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import NoReturn

from tensorken_core.text import printable

SLOW_LOAD = 5.0
"""Seconds after which a message names a plugin that is still loading."""

_EXIT = os._exit
_lock = threading.Lock()
_loading: list[tuple[tuple[int, int], str]] = []  # process and thread, and the plugin that they load


@contextlib.contextmanager
def monitored(what: str) -> Iterator[None]:
    """Name a plugin on stderr if the block that loads it takes long or ends the process.

    >>> with monitored("backend 'toy' of dist-toy 1.0"):
    ...     pass
    """
    entry = ((os.getpid(), threading.get_ident()), what)
    timer = threading.Timer(SLOW_LOAD, _report_slow, (what,))
    timer.daemon = True
    with contextlib.suppress(RuntimeError):  # a platform without threads
        timer.start()
    with _lock:
        _loading.append(entry)
        os._exit = _exit
    try:
        yield
    finally:
        timer.cancel()
        with _lock:
            _loading.remove(entry)
            if not _loading and os._exit is _exit:
                os._exit = _EXIT


def to_ascii(text: str) -> str:
    r"""Text that any console can show, without the control characters that command a terminal.

    >>> print(to_ascii("\x1b[2J\N{SNOWMAN}\nnext"))
    \x1b[2J\u2603
    next
    """
    lines = map(printable, text.split("\n"))
    return "\n".join(lines).encode("ascii", "backslashreplace").decode("ascii")


def write_message(text: str) -> None:
    """Write a message of the host to stderr, if there is one."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(to_ascii(f"tensorken: {text}"), file=sys.stderr, flush=True)


def _report_slow(what: str) -> None:
    write_message(
        f"still loading {what} after {SLOW_LOAD:g} s; if it never returns, remove it "
        f"(tensorken backends --probe tells which do not load)"
    )


def _exit(status: int) -> NoReturn:
    """`os._exit` while something loads."""
    caller = (os.getpid(), threading.get_ident())
    for loader, what in _loading:
        if loader == caller:
            write_message(f"{what} ended this process by os._exit({status!r:.20}) while it was loaded")
    _EXIT(status)
