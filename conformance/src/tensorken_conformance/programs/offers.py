"""Offers: the compiler plugins that are installed, and a count of the programs that each is offered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tensorken.programs.execution import compiler_plugins, observe_compilers
from tensorken_conformance.compilers import Programs
from tensorken_core.program.program import Program


def short_name(plugin: str) -> str:
    """The name of a compiler in reports: that of its entry point.

    >>> short_name("plugins:llvm@tensorken-llvm"), short_name("mine")
    ('llvm', 'mine')
    """
    return plugin.partition("@")[0].rpartition(":")[2]


def installed() -> list[str]:
    """The names of the installed compilers, in the order in which they are called."""
    return list(dict.fromkeys([short_name(name) for name, _ in compiler_plugins()]))


def packages() -> frozenset[str]:
    """The packages of the installed compilers."""
    return frozenset([function.__module__.partition(".")[0] for _, function in compiler_plugins()])


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
