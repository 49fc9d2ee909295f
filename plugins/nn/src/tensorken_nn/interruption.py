"""Interruption: Ctrl-C, and the signal that asks a process to end, wait for the end of a step."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """While it is entered, the first signal is only noted, and a second one ends what runs at once.

    In another thread than the main one, which gets no signals, nothing changes.

    >>> with Interruption() as interruption:
    ...     interruption.asked()
    False
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def asked(self) -> bool:
        """Whether a signal came."""
        return self.signal is not None

    @property
    def status(self) -> int:
        """The exit status of a program that the signal ended, as shells have it: 130 for Ctrl-C."""
        return 128 + (self.signal or signal.SIGINT)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        self._restore()
        if sys.stderr is not None and sys.stderr.isatty():
            print("\nsaving after this step; once more to end at once", file=sys.stderr)

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        self._before = {}
