"""The choice of compiler plugins for a suite."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "TENSORKEN_COMPILERS"

NONE, MACHINE_CODE = "none", "llvm"


@contextmanager
def compilers(names: str) -> Iterator[None]:
    """Within the block, use these compilers, also in new processes."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = names
    try:
        yield
    finally:
        os.environ.pop(VARIABLE)
        if before is not None:
            os.environ[VARIABLE] = before


def missing() -> str:
    """A message if one of the chosen compilers is not installed; else empty."""
    # numpy is imported after the environment is set
    from tensorken.programs.execution import compiler_plugins
    from tensorken_core.errors import BackendError

    try:
        compiler_plugins()
    except BackendError as error:
        return str(error)
    return ""
