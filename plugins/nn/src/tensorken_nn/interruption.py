"""Defer SIGINT (Ctrl-C) and SIGTERM to the end of a training step."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """A context in which the first signal only sets a flag; the second one acts at once.

    Outside the main thread it does nothing, as other threads receive no signals.

    >>> with Interruption() as interruption:
    ...     interruption.requested()
    False
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._handlers = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def requested(self) -> bool:
        """Whether a signal was received."""
        return self.signal is not None

    @property
    def status(self) -> int:
        """The exit status of a program ended by the signal, as in shells: 130 for Ctrl-C."""
        return 128 + (self.signal or signal.SIGINT)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        self._restore()
        if sys.stderr is not None and sys.stderr.isatty():
            print("\nsaving after this step; press Ctrl-C again to stop at once", file=sys.stderr)

    def _restore(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        self._handlers = {}
