"""Fault: a backend, or a rule of the language, that is wrong in one way; the table of them, and its decorator."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

from tensorken_core.language.raw import RawTensor
from tensorken_numpy.backend import Numpy

Declared = TypeVar("Declared", bound=Callable[..., Any])

Place = Callable[[], AbstractContextManager[Any]]
"""What is wrong while it is entered: it gives the name that the backend goes by, or None for that of the fault."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One way of being wrong, and the law that it must not get past.

    Attributes:
        family: the module that it is declared in.
        name: the name of its class or function, in words.
        law: the id of the law that it is aimed at.
        ops: the ops that it touches; none: it is not about single ops.
        crude: whether it is wrong in more than one of a hundred cells of these ops.
        says: what is wrong, in a sentence.
        make: makes the backend.
        place: wherein the backend is examined, for what is wrong elsewhere than in the backend.
    """

    family: str
    name: str
    law: str
    ops: tuple[str, ...]
    crude: bool
    says: str
    make: Callable[[], RawTensor[Any]]
    place: Place = nullcontext

    @property
    def id(self) -> str:
        """Family and name, as reports have it."""
        return f"{self.family}/{self.name}"


FAULTS: dict[str, Fault] = {}
"""All faults, by their ids."""


def fault(
    law: str,
    *ops: str,
    crude: bool = False,
    fuse: bool = True,
    on: Callable[[], RawTensor[Any]] = Numpy,
) -> Callable[[Declared], Declared]:
    """Declare a fault: above a class of backends that is wrong, or above a generator in whose course something is.

    The docstring is the sentence.  A generator yields the name that the backend goes by, or None.

    Args:
        law: the id of the law that must find it.
        ops: those that it touches.
        crude: whether it is wrong in more than one of a hundred cells of these ops.
        fuse: whether derivatives and programs run on it in `Fuse`, as the host would have it.
        on: makes the backend, which is right, that is examined in the course of a generator.
    """

    def declare(wrong: Declared) -> Declared:
        from tensorken_core.rewriting.fuse import Fuse

        is_class = isinstance(wrong, type)
        kind: Callable[[], RawTensor[Any]] = wrong if is_class else on
        words = (
            re.sub(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[0-9])(?=[A-Z])", "-", wrong.__name__)
            if is_class
            else wrong.__name__
        )
        found = Fault(
            wrong.__module__.rpartition(".")[2].replace("_", "-"),
            words.lower().replace("_", "-"),
            law,
            ops,
            crude,
            " ".join((wrong.__doc__ or "").split()),
            (lambda: Fuse(kind())) if fuse else kind,
            nullcontext if is_class else contextmanager(wrong),
        )
        if not found.says:
            raise ValueError(f"fault {found.id} says nothing: write its docstring")
        if FAULTS.setdefault(found.id, found) is not found:
            raise ValueError(f"there are two faults {found.id}")
        return wrong

    return declare


Course = Iterator[str | None]
"""What a generator that is declared a fault returns."""
