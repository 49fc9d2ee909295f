"""The hook of the compiler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorken_core.host.plugin import hookimpl

BACKENDS = ("numpy",)
"""The backends whose programs are compiled; the conformance kit expects some for these."""


@hookimpl
def tensorken_compile(program: Any, backend: Any) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """Machine code for a program on numpy arrays; None for other backends."""
    from tensorken_numpy.backend import Numpy

    if type(backend) is not Numpy:  # a subclass may compute otherwise
        return None
    from tensorken_llvm.program import compiled

    return compiled(program, backend)


@hookimpl
def tensorken_report_header() -> str:
    """LLVM, the CPU, and the cache of machine code."""
    from tensorken_llvm import cache, machine

    return f"{machine.description()}; cache: {cache.description()}"
