"""Compilation in the background: another process optimises machine code, and the program runs meanwhile.

The processes need no lock of LLVM and no time of this process.  What runs meanwhile is for the caller to choose.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path

from tensorken_core.host.variables import switch
from tensorken_llvm.machine import object_code

BACKGROUND = "TENSORKEN_LLVM_BACKGROUND"
"""The variable that turns compilation in the background on, with the value 1."""

_PROGRAM = """\
import sys
folder, sys.path[:] = sys.argv[1], sys.argv[2:]
from tensorken_llvm.background import compile_file
compile_file(folder)
"""

_processes: weakref.WeakSet[subprocess.Popen[bytes]] = weakref.WeakSet()


def is_background() -> bool:
    """Whether other processes optimise machine code."""
    return switch(BACKGROUND)


class Compilation:
    """Optimised machine code that another process writes; at most one process per processor runs at a time.

    Args:
        text: a module in LLVM's text form.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self._start()

    def code(self) -> bytes | None:
        """The object file; None while the other process runs.

        If there can be no other process, or it failed, this process compiles: an error of LLVM is raised here.
        """
        if self._process is None and not self._start():
            return None
        if self._process is not None and self._process.poll() is None:
            return None
        if self._folder is not None:
            try:
                return (self._folder / "program.o").read_bytes()
            except OSError:  # the process was killed, for example
                pass
        return object_code(self._text, is_quick=False)

    def _start(self) -> bool:
        """Start the process, unless too many run; whether there is nothing to wait for."""
        if sum([process.poll() is None for process in list(_processes)]) >= (os.cpu_count() or 1):
            return False
        if not sys.executable or getattr(sys, "frozen", False):
            return True
        try:
            folder = self._folder = Path(tempfile.mkdtemp(prefix="tensorken-"))
            remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            (folder / "program.ll").write_text(self._text, encoding="utf-8")
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, str(folder), *map(str, sys.path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the program that runs
            )
        except OSError:  # no memory, no place on the disk, or no permission
            return True
        _processes.add(self._process)
        remove.detach()
        weakref.finalize(self, _end, self._process, folder)  # also when this process ends
        return True


def compile_file(folder: str) -> None:
    """Compile `program.ll` in a folder to `program.o` there."""
    text = Path(folder, "program.ll").read_text(encoding="utf-8")
    written = Path(folder, "written")
    written.write_bytes(object_code(text, is_quick=False))
    written.replace(Path(folder, "program.o"))


def _end(process: subprocess.Popen[bytes], folder: Path) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    shutil.rmtree(folder, ignore_errors=True)
