"""Process: a worker process, its messages, and the reason of its end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

LAST_WORDS = 16_384
"""The number of bytes of a worker's stderr that are kept."""


class Process:
    """A process that runs a module of this package, which reads and writes lines of JSON.

    Args:
        module: the name of the module within the package.
        path: the module search path.

    Raises:
        OSError: if the process cannot be started.
    """

    def __init__(self, module: str, path: Sequence[str]) -> None:
        group: dict[str, Any] = {} if sys.platform == "win32" else {"process_group": 0}
        if sys.platform == "win32":
            group["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP
        self._process = subprocess.Popen(  # a new process group, so that Ctrl-C reaches only the parent
            [sys.executable, "-P", "-m", f"tensorken_conformance.{module}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, path))},
            **group,
        )
        self._stderr = b""
        self._collector = threading.Thread(target=self._collect, daemon=True)
        self._collector.start()

    def listen(self, receive: Callable[[dict[str, Any] | None], None]) -> None:
        """Call a function in a thread with each message, and with None after the last one."""
        self._reader = threading.Thread(target=self._pass_on, args=(receive,), daemon=True)
        self._reader.start()

    def _pass_on(self, receive: Callable[[dict[str, Any] | None], None]) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with contextlib.suppress(ValueError):  # a line that the backend wrote
                message = json.loads(line)
                if isinstance(message, dict):
                    receive(message)
        receive(None)

    def _collect(self) -> None:
        assert self._process.stderr is not None
        while chunk := os.read(self._process.stderr.fileno(), 65_536):
            self._stderr = (self._stderr + chunk)[-LAST_WORDS:]

    def send(self, **message: Any) -> None:
        """Send a message; errors of a process that has ended are ignored, since its reader reports them."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def exit_reason(self, hangs: str) -> str:
        """Why the process ended, or `hangs` if it still runs; then it is killed."""
        code = self._wait(0.5)
        if code is None:
            if sys.platform != "win32":
                self._process.send_signal(signal.SIGABRT)  # its fault handler prints the stack
                self._wait(1.0)
            self.end()
            place = last_frame(self._stderr)
            return f"hang: {hangs}{place and f', {place}'}"
        self.end()
        words = last_words(self._stderr)
        how = f"signal {-code} ({_signal_name(-code)})" if code < 0 else f"exit status {code}"
        return f"crash: {how}{words and f': {words}'}"

    def _wait(self, seconds: float) -> int | None:
        try:
            return self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """Kill the process, and those that it started."""
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        for thread, pipe in ((self._reader, self._process.stdout), (self._collector, self._process.stderr)):
            thread.join(timeout=1.0)  # a process that escaped may hold the pipe open
            if pipe is not None and not thread.is_alive():
                pipe.close()
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def last_words(said: bytes) -> str:
    r"""The last error on the stderr of a process, in one line.

    >>> last_words(b"nonsense\nValueError: no adapter\n\n")
    'ValueError: no adapter'
    """
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    fatal = next((line for line in reversed(lines) if line.startswith("Fatal Python error:")), "")
    if fatal:
        place = last_frame(said)
        return f"{fatal.removeprefix('Fatal Python error: ')}{place and f', {place}'}"
    return lines[-1][:500] if lines else ""


def last_frame(said: bytes) -> str:
    r"""The innermost frame in the dump of Python's fault handler; empty without one.

    >>> last_frame(b'Current thread 0x1 (most recent call first):\n  File "mine.py", line 3 in exp\n')
    'in exp, line 3 of mine.py'
    """
    text = said.decode("utf-8", "replace").rpartition("Current thread")[2]
    found = re.search(r'File "(.*)", line (\d+) in (.*)', text)
    if found is None or "(most recent call first)" not in text:
        return ""
    path, line, name = found.groups()
    return f"in {name.strip()}, line {line} of {PurePath(path).name}"
