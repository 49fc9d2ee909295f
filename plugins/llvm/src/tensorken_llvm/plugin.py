"""The hook of the compiler."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from tensorken_core.host.plugin import hookimpl

BACKENDS = ("numpy",)
"""The backends whose programs are compiled; the conformance kit expects some for these."""


@hookimpl
def tensorken_compile(program: Any, backend: Any) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """Machine code for a program on numpy arrays; None for other backends, and where there is no llvmlite."""
    if not _can_compile(backend):
        return None
    from tensorken_llvm.program import compiled

    return compiled(program, backend)


@hookimpl
def tensorken_compile_traced(
    program: Any, optimised: Callable[[], Any], backend: Any
) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """The same for a program before the passes, which do not run if the cache has its machine code."""
    if not _can_compile(backend):
        return None
    from tensorken_llvm.program import compiled_traced

    return compiled_traced(program, optimised, backend)


def _can_compile(backend: Any) -> bool:
    """Whether programs on a backend are compiled."""
    from tensorken_numpy.backend import Numpy

    if type(backend) is not Numpy:  # a subclass may compute otherwise
        return False
    if fault() is not None:
        _warn()
        return False
    return True


@hookimpl
def tensorken_report_header() -> str:
    """LLVM, the CPU, and the cache of machine code."""
    found = fault()
    if found is not None:
        return found
    from tensorken_llvm import cache, machine

    return f"{machine.description()}; cache: {cache.description()}"


@functools.cache
def fault() -> str | None:
    """Why nothing can be compiled on this machine, in one line; None if llvmlite can be imported."""
    try:
        importlib.import_module("llvmlite.binding")
    except (ImportError, OSError) as error:
        cause = " ".join(str(error).split())
        return (
            f"tensorken-llvm: llvmlite cannot be imported ({cause}), so numpy runs programs itself; llvmlite has "
            f"wheels for Linux with glibc, Windows, and macOS on arm64; TENSORKEN_COMPILERS=-llvm hides this warning"
        )
    return None


@functools.cache
def _warn() -> None:
    """Tell about the fault once."""
    warnings.warn(fault() or "", RuntimeWarning, stacklevel=2)
