"""Pipeline: which passes a program goes through before it is run on a backend, and in what order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorken.programs.passes.dead_code import without_dead_code
from tensorken.programs.passes.inlining import inline
from tensorken.programs.program import Program
from tensorken.spec.raw import RawTensor

Pass = Callable[[Program], Program]


def passes_for(backend: RawTensor[Any]) -> tuple[Pass, ...]:
    """The passes that prepare a program for a backend."""
    return (inline, without_dead_code)


def optimised(program: Program, backend: RawTensor[Any]) -> Program:
    """The program after all passes for a backend."""
    for one in passes_for(backend):
        program = one(program)
    return program
