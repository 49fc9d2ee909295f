"""Processes: run a program of this package with one mutant in place of the original."""

from __future__ import annotations

import contextlib
import json
import marshal
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oracles.mutation.sites import Mutant, code_of
from oracles.mutation.targets import Target
from tensorken_conformance.running.stopwatch import POLL, Stopwatch

ROOT = Path(__file__).resolve().parents[2]
HOOK = Path(__file__).with_name("hook")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

CASE = 20
"""The seconds of computing after which a case counts as hanging."""


@dataclass(slots=True)
class Ended:
    """A process that ended.

    Attributes:
        messages: the lines that it printed.
        ran: whether the mutated node ran.
        ending: `exit`, `hang`, or the name of the signal that ended it.
        errors: the end of its standard error.
    """

    messages: list[dict[str, Any]] = field(default_factory=list)
    ran: bool = False
    ending: str = "exit"
    errors: str = ""

    @property
    def last(self) -> dict[str, Any]:
        """The last message; empty if there is none."""
        return self.messages[-1] if self.messages else {}


def run(
    target: Target, mutant: Mutant | None, module: str, arguments: Sequence[str], seconds: float
) -> Ended:
    """Run a module of this package with a mutant, or with the original.

    Args:
        target: the target.
        mutant: the mutant; None: the original.
        module: the name of the module, such as `examination`.
        arguments: of its command line.
        seconds: its limit of computing time between two messages; it may wait for twice as long.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, "-m", f"oracles.mutation.{module}", *arguments]
        with (folder / "errors").open("wb") as errors:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=folder,
                env=_environment(target, mutant, folder),
                start_new_session=True,
            )
            RUNNING.add(process)
            try:
                found = _listen(process, seconds)
            finally:
                RUNNING.discard(process)
        found.ran = (folder / "mark").exists()
        found.errors = (folder / "errors").read_text("utf-8", "replace")[-500:]
    return found


def _environment(target: Target, mutant: Mutant | None, folder: Path) -> dict[str, str]:
    """The variables of a process: its caches are empty, and the hook is the first place of its path."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("TENSORKEN_")}
    variables = {**own, **ONE_THREAD, **target.variables}
    variables |= {"XDG_CACHE_HOME": str(folder / "caches"), "PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore"}
    path = [str(HOOK), str(ROOT), *filter(None, own.get("PYTHONPATH", "").split(os.pathsep))]
    variables["PYTHONPATH"] = os.pathsep.join(path)
    if mutant is not None:
        file = target.files()[mutant.module]
        code = code_of(mutant, file.read_text("utf-8"), str(file))
        (folder / "mutant").write_bytes(marshal.dumps((mutant.module, code, str(folder / "mark"))))
        variables["MUTATION"] = str(folder / "mutant")
    return variables


def _listen(process: subprocess.Popen[str], seconds: float) -> Ended:
    """Collect the messages of a process until it ends, or computes for so many seconds without a message."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    found, watch, line = Ended(), Stopwatch(process.pid), ""
    while line is not None or os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        try:
            line = lines.get(timeout=POLL) if line is not None else time.sleep(0.01)
        except queue.Empty:
            watch.look()
            if watch.verdict(seconds):
                found.ending = "hang"
                break
            continue
        if line is not None:
            found.messages.append(json.loads(line))
            watch.restart()
    end(process)
    reader.join(1.0)
    assert process.stdout is not None
    process.stdout.close()
    status = process.wait()
    if found.ending != "hang" and status < 0:
        number = signal.Signals(-status)
        found.ending = "hang" if number is signal.SIGXCPU else number.name
    return found


def end(process: subprocess.Popen[str]) -> None:
    """End a process, which is not reaped yet, and all that it started: it is the first of its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


RUNNING: set[subprocess.Popen[str]] = set()
"""The processes that run now."""


def end_all(number: int, frame: object) -> None:
    """End all processes and this one; a handler of signals."""
    for process in list(RUNNING):
        end(process)
    os._exit(128 + number)
