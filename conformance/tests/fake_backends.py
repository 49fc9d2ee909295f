"""Backends that misbehave, for the tests of the runner, the command and the reports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tensorken_core.host.plugin import Capabilities
from tensorken_numpy.backend import Numpy

PLACE = "conformance.tests.fake_backends"


class Small(Numpy):
    """Right, with two dtypes."""

    capabilities = Capabilities(dtypes=("bool", "float32"), shares_memory=True)


class Optional(Small):
    """Right, if it is told so."""

    def __init__(self, right: bool = False, device: str = "none") -> None:
        self.right, self.device = right, device

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        return super().full(shape, value if self.right else 0, dtype)


class Wrong(Small):
    """Makes zeros of everything."""

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        return super().full(shape, 0, dtype)


class WithoutDtypes(Numpy):
    """Declares nothing."""

    capabilities = Capabilities()


class CrashesOnce(Small):
    """Ends the process at one case."""

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        if shape == (7,) and dtype.name == "float32":
            os.abort()
        return super().full(shape, value, dtype)


class CrashesAlways(Small):
    """Ends the process whenever it is to fill a tensor."""

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        os._exit(9)


class CrashesAtAll(Small):
    """Ends the process whenever something is read."""

    def ravel(self, x: Any) -> Any:
        os._exit(9)


class At(Small):
    """Does something at one case."""

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        if shape == (7,) and dtype.name == "float32":
            self.do()
        return super().full(shape, value, dtype)

    def do(self) -> None:
        """What is done."""


class Hangs(At):
    """Waits for ever."""

    def do(self) -> None:
        lock = threading.Lock()
        with lock:
            lock.acquire()


class Spins(At):
    """Computes for ever."""

    def do(self) -> None:
        while True:
            pass


class SpinsOnce(At):
    """Computes for ever, unless there is a file that it left before."""

    def do(self) -> None:
        if not Path("spun").exists():
            Path("spun").touch()
            while True:
                pass


class Sleeps(At):
    """Waits for longer than it may compute."""

    def do(self) -> None:
        if not Path("slept").exists():
            Path("slept").touch()
            time.sleep(1.6)


class Stopped(At):
    """Is kept from running, as by a busy machine, for longer than it may compute."""

    def do(self) -> None:
        if not Path("stopped").exists():
            Path("stopped").touch()
            subprocess.Popen(["/bin/sh", "-c", f"sleep 1.6; kill -CONT {os.getpid()}"])
            os.kill(os.getpid(), signal.SIGSTOP)


class Slow(Small):
    """Takes its time, and leaves a file where it is when it begins."""

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        Path("begun").touch()
        time.sleep(0.2)
        return super().full(shape, value, dtype)


class Chatters(Small):
    """Writes to stdout what looks like results, and reads from stdin."""

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        print(
            '{"result": {"case": "x/y", "status": "failed", "level": 0}, "index": 0, "place": 0}', flush=True
        )
        os.write(1, b'{"done": 1}\n' + b"x" * 70_000)
        assert sys.stdin is None or sys.stdin.read() == ""
        return super().full(shape, value, dtype)


class Exits(Small):
    """Calls sys.exit as if all were well."""

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        sys.exit(0)


class Interrupts(Small):
    """Raises what Ctrl-C raises."""

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        raise KeyboardInterrupt


class Verbose(Small):
    """Puts much into its messages, in many letters."""

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        raise RuntimeError("snow \N{SNOWMAN} | <b>`x`</b> ]]> \x00\x1b[31m\ud800 " + "x" * 1_000_000)


def broken() -> Small:
    """Cannot be made."""
    raise OSError("no adapter")


def deadly() -> Small:
    """Ends the process when it is made."""
    os._exit(5)


class Refusing(Small):
    """Declares what it does not do."""

    capabilities = Capabilities(
        dtypes=("bool", "int32", "float32", "float64"),
        unsupported={"exp.float32": "it is not needed here", "erf": "no erf"},
    )


class Unreadable(Small):
    """Reads back ones, whatever there is."""

    def ravel(self, x: Any) -> Any:
        return super().ravel(x) * 0 + 1
