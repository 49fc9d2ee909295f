"""The check of the name of a CPU: LLVM ends the process if it is asked to compile for a CPU that it does not know."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys

from tensorken_core.host.discovery import did_you_mean
from tensorken_core.host.variables import refused

_PROGRAM = """\
import sys
sys.path[:] = sys.argv[2:]
import llvmlite.binding as llvm
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
target = llvm.Target.from_triple(llvm.get_process_triple())
target.create_target_machine(cpu="help")
machine = target.create_target_machine(cpu=sys.argv[1], jit=True)
machine.emit_object(llvm.parse_assembly("define double @f(double %x) { ret double %x }"))
"""
"""LLVM prints the CPUs that it knows when it is asked for the one named help."""

_LISTED = re.compile(r"^ +(\S+) +- Select the ", re.MULTILINE)


def check(variable: str, name: str) -> None:
    """Compile for a CPU in another process, which LLVM may end.

    Args:
        variable: the environment variable with the name.
        name: of the CPU.

    Raises:
        SettingError: if LLVM does not know the CPU, or it has no 64-bit code.
    """
    done = None
    if sys.executable and not getattr(sys, "frozen", False) and "\0" not in name:
        with contextlib.suppress(OSError):  # no memory, or no permission
            done = subprocess.run(
                [sys.executable, "-P", "-c", _PROGRAM, name, *map(str, sys.path)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
            )
    if done is None:
        raise refused(variable, "LLVM's list of CPUs cannot be read without another process")
    known = set(_LISTED.findall(done.stderr))
    if name not in known:
        raise refused(variable, f"LLVM knows no such CPU{did_you_mean(name, known)}")
    if done.returncode:
        raise refused(variable, "LLVM cannot compile for this CPU on this machine")
