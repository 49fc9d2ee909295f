"""Backends with one fault each, for the tests of the runner, the command and the reports."""

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

MODULE = "conformance.tests.fake_backends"


class Small(Numpy):
    """A correct backend with two dtypes."""

    capabilities = Capabilities(dtypes=("bool", "float32"), shares_memory=True)


class WithOptions(Small):
    """Correct only with the option `correct=True`; otherwise fills with zeros."""

    def __init__(self, correct: bool = False, device: str = "none") -> None:
        self.correct, self.device = correct, device

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        return super().full(shape, value if self.correct else 0, dtype)


class FillsWithZeros(Small):
    """Fills every tensor with zeros."""

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        return super().full(shape, 0, dtype)


class WithoutDtypes(Numpy):
    """Declares no dtypes."""

    capabilities = Capabilities()


class CrashesOnce(Small):
    """Aborts the process at one case."""

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        if shape == (7,) and dtype.name == "float32":
            os.abort()
        return super().full(shape, value, dtype)


class CrashesInFull(Small):
    """Ends the process at each call of `full`."""

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        os._exit(9)


class CrashesInRavel(Small):
    """Ends the process at each read of a tensor."""

    def ravel(self, x: Any) -> Any:
        os._exit(9)


class ActsAtOneCase(Small):
    """Calls `act` at one case."""

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        if shape == (7,) and dtype.name == "float32":
            self.act()
        return super().full(shape, value, dtype)

    def act(self) -> None:
        """Do nothing; subclasses override this."""


class Hangs(ActsAtOneCase):
    """Waits forever at a lock."""

    def act(self) -> None:
        lock = threading.Lock()
        with lock:
            lock.acquire()


class Spins(ActsAtOneCase):
    """Loops forever."""

    def act(self) -> None:
        while True:
            pass


class SpinsOnce(ActsAtOneCase):
    """Loops forever the first time; the file `spun` marks that it did."""

    def act(self) -> None:
        if not Path("spun").exists():
            Path("spun").touch()
            while True:
                pass


class Sleeps(ActsAtOneCase):
    """Sleeps once, for longer than the limit on CPU time."""

    def act(self) -> None:
        if not Path("slept").exists():
            Path("slept").touch()
            time.sleep(1.6)


class Stopped(ActsAtOneCase):
    """Stops its own process once, for longer than the limit on CPU time, as on a busy machine."""

    def act(self) -> None:
        if not Path("stopped").exists():
            Path("stopped").touch()
            subprocess.Popen(["/bin/sh", "-c", f"sleep 1.6; kill -CONT {os.getpid()}"])
            os.kill(os.getpid(), signal.SIGSTOP)


class Slow(Small):
    """Sleeps in each call of `full`; creates the file `begun` in the current folder first."""

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        Path("begun").touch()
        time.sleep(0.2)
        return super().full(shape, value, dtype)


class Chatters(Small):
    """Writes lines to stdout that look like results, and reads from stdin."""

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        print(
            '{"result": {"case": "x/y", "status": "failed", "level": 0}, "index": 0, "place": 0}', flush=True
        )
        os.write(1, b'{"done": 1}\n' + b"x" * 70_000)
        assert sys.stdin is None or sys.stdin.read() == ""
        return super().full(shape, value, dtype)


class Exits(Small):
    """Calls `sys.exit(0)`."""

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        sys.exit(0)


class Interrupts(Small):
    """Raises KeyboardInterrupt."""

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        raise KeyboardInterrupt


class Verbose(Small):
    """Raises an error whose message is long and has special characters."""

    def full(self, shape: Any, value: Any, dtype: Any) -> Any:
        raise RuntimeError("snow \N{SNOWMAN} | <b>`x`</b> ]]> \x00\x1b[31m\ud800 " + "x" * 1_000_000)


def raises_when_made() -> Small:
    """Raises an error instead of returning a backend."""
    raise OSError("no adapter")


def exits_when_made() -> Small:
    """Ends the process instead of returning a backend."""
    os._exit(5)


class Refusing(Small):
    """Declares two ops unsupported."""

    capabilities = Capabilities(
        dtypes=("bool", "int32", "float32", "float64"),
        unsupported={"exp.float32": "it is not needed here", "erf": "no erf"},
    )


class Unreadable(Small):
    """Reads every tensor back as ones."""

    def ravel(self, x: Any) -> Any:
        return super().ravel(x) * 0 + 1


class _CrashWhileCounted(tuple[str, ...]):
    """Dtypes that end the process when the kit counts the cases."""

    def __contains__(self, dtype: object) -> bool:
        frame = sys._getframe()
        while frame.f_back is not None:
            frame = frame.f_back
            if frame.f_code.co_qualname == "Plan.count":
                os._exit(9)
        return super().__contains__(dtype)


class CrashesWhileCounted(Small):
    """Correct, but ends the process when the kit counts the cases."""

    capabilities = Capabilities(dtypes=_CrashWhileCounted(("bool", "float32")), shares_memory=True)


class OffInTransforms(Numpy):
    """Its rfft is off in one element."""

    def rfft(self, x: Any) -> Any:
        real, imag = super().rfft(x)
        real = real.copy()
        real[..., 1] += 1e-3
        return real, imag


class FlipsNothing(Numpy):
    """Returns the operand of a flip."""

    def flip(self, x: Any, axes: Any) -> Any:
        return x


class RaisesInTransforms(Numpy):
    """Has a mistake in a method."""

    def rfft(self, x: Any) -> Any:
        raise KeyError("no rfft")


class NeverCopies(Numpy):
    """Shares the memory of an array that it should copy."""

    def adopt(self, array: Any, copy: bool) -> Any:
        return super().adopt(array, False)


class ForgetsSlowly(Numpy):
    """The third call of exp and each later one are wrong."""

    count = 0

    def exp(self, x: Any) -> Any:
        type(self).count += 1
        return super().exp(x) + (self.count > 2)
