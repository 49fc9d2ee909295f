"""The entry point of the compiler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorken_core.host.plugin import hookimpl

BACKENDS = ("numpy",)
"""The backends for which the conformance kit expects the plugin to compile programs."""


@hookimpl
def tensorken_compile(program: Any, backend: Any) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """Compile programs of elementwise ops for numpy; None for all others."""
    from tensorken_numpy.backend import Numpy

    from tensorken_mycompiler.compiler import compiled

    return compiled(program) if isinstance(backend, Numpy) else None
