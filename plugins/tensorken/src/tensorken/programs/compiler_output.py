"""The output of compiler plugins, which must not be among that of the user's program."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_diverted: Counter[int] = Counter()  # by thread, the number of running blocks


class _Divided:
    """Standard output for all threads but those that run a compiler, which write to standard error.

    Args:
        output: the standard output.
    """

    def __init__(self, output: Any) -> None:
        self.output = output

    def __getattr__(self, name: str) -> Any:
        is_diverted = threading.get_ident() in _diverted
        return getattr(sys.stderr if is_diverted and sys.stderr is not None else self.output, name)


@contextmanager
def printing_to_stderr() -> Iterator[None]:
    """Within the block, whatever this thread prints goes to standard error; other threads print as before."""
    thread = threading.get_ident()
    with _lock:
        if not _diverted:
            sys.stdout = _Divided(sys.stdout)
        _diverted[thread] += 1
    try:
        yield
    finally:
        with _lock:
            _diverted[thread] -= 1
            if not _diverted[thread]:
                del _diverted[thread]
            if not _diverted and isinstance(sys.stdout, _Divided):
                sys.stdout = sys.stdout.output
