"""Offers: the installed compiler plugins, how to run without them, and the number of programs offered to each."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tensorken.programs.compiler_choice import VARIABLE, short_name
from tensorken.programs.execution import compiler_plugins, observe_compilers
from tensorken_conformance.compilers import Programs
from tensorken_core.program.program import Program


def installed() -> list[str]:
    """The names of the installed and chosen compilers, in the order in which they are called."""
    return list(dict.fromkeys([short_name(name) for name, _ in compiler_plugins()]))


def required(backend: str) -> list[str]:
    """The names of those that must compile programs for a backend: a plugin may state others in `BACKENDS`."""
    found = [
        short_name(name)
        for name, function in compiler_plugins()
        if backend in getattr(sys.modules.get(function.__module__), "BACKENDS", (backend,))
    ]
    return list(dict.fromkeys(found))


def packages() -> frozenset[str]:
    """The packages of these compilers."""
    return frozenset([function.__module__.partition(".")[0] for _, function in compiler_plugins()])


@contextmanager
def without_installed() -> Iterator[None]:
    """Within the block, and in processes that start in it, call only the compilers that are registered in the block.

    Faults in the programs of a backend show only if no installed compiler compiles these programs first.
    """
    before = os.environ.pop(VARIABLE, None)
    if names := installed():
        os.environ[VARIABLE] = ",".join([f"-{name}" for name in names])
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before


@contextmanager
def counted() -> Iterator[dict[str, Programs]]:
    """Count the programs that each installed compiler is offered within the block."""
    found = {name: Programs() for name in installed()}

    def note(plugin: str, program: Program, compiled: bool) -> None:
        programs = found.setdefault(short_name(plugin), Programs())
        programs.offered += 1
        programs.compiled += compiled

    with observe_compilers(note):
        yield found
