"""Fault: a backend, or a rule of the language, that is wrong in one way; the table of them, and its decorator."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

from tensorken_conformance.faults.changes import rules
from tensorken_conformance.subject import Array
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Program
from tensorken_core.rewriting.fuse import Fuse
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
    on: type[RawTensor[Any]] = Numpy,
    method: str = "",
) -> Callable[[Declared], Declared]:
    """Declare a fault, whose docstring says in a sentence what is wrong.

    What is decorated is a backend, or a function that replaces one method of a right backend and is called with the
    right method and the operands (and, as `kept`, with a dict of the backend if it has a parameter of this name), or a
    generator that changes the language until it ends and yields the name that the backend goes by, or None.

    Args:
        law: the id of the law that must find it.
        ops: those that it touches.
        crude: whether it is wrong in more than one of a hundred cells of these ops.
        fuse: whether derivatives and programs run on it in `Fuse`, as the host would have it.
        on: the right backend that a function or a generator changes.
        method: which one a function replaces; by default the first of the ops.
    """

    def declare(wrong: Declared) -> Declared:
        name = wrong.__name__
        place: Place = nullcontext
        if isinstance(wrong, type):
            kind: Callable[[], RawTensor[Any]] = wrong
            name = re.sub(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[0-9])(?=[A-Z])", "-", name)
        elif inspect.isgeneratorfunction(wrong):
            kind, place = on, contextmanager(wrong)
        else:
            kind = _with_method(on, method or ops[0], wrong)
        found = Fault(
            wrong.__module__.rpartition(".")[2].replace("_", "-"),
            name.lower().replace("_", "-"),
            law,
            ops,
            crude,
            " ".join((wrong.__doc__ or "").split()),
            (lambda: Fuse(kind())) if fuse else kind,
            place,
        )
        if not found.says:
            raise ValueError(f"fault {found.id} says nothing: write its docstring")
        if FAULTS.setdefault(found.id, found) is not found:
            raise ValueError(f"there are two faults {found.id}")
        return wrong

    return declare


def _with_method(base: type[RawTensor[Any]], method: str, wrong: Callable[..., Any]) -> type[RawTensor[Any]]:
    """The backend with another method, which calls `wrong` with the right one."""
    stateful = "kept" in inspect.signature(wrong, follow_wrapped=False).parameters

    def call(self: Any, *args: Any) -> Any:
        right = getattr(super(changed, self), method)
        return wrong(right, *([vars(self).setdefault("kept", {})] if stateful else []), *args)

    changed = type(wrong.__name__, (base,), {method: call})
    return changed


Run = Callable[[Sequence[Array]], Sequence[Array]]
"""What `compile` gives."""


def fault_in_calls(law: str) -> Callable[[Declared], Declared]:
    """Declare a fault in the calls of compiled programs.

    The function is called with the right run, a dict of this run, the program and the operands of a call.
    """

    def declare(wrong: Declared) -> Declared:
        @functools.wraps(wrong)
        def compiled(right: Compile, program: Program) -> Run | None:
            run, kept = right(program), dict[Any, Any]()
            return None if run is None else lambda xs: wrong(run, kept, program, xs)

        fault(law, method="compile")(compiled)
        return wrong

    return declare


def fault_in_rule(
    law: str,
    *ops: str,
    op: str = "",
    operand: int = 0,
    modes: tuple[str, ...] = ("jvp", "vjp"),
    fuse: bool = True,
    on: type[RawTensor[Any]] = Numpy,
) -> Callable[[Declared], Declared]:
    """Declare a fault in a rule of differentiation, by default the same one in both modes.

    The function is called with the right rule, and with what that is called with.

    Args:
        law: the id of the law that must find it.
        ops: those that it touches.
        op: whose rule it is; by default the first of the ops.
        operand: by which operand.
        modes: `jvp`, `vjp` or both.
        fuse: as for `fault`.
        on: as for `fault`.
    """

    def declare(wrong: Declared) -> Declared:
        @functools.wraps(wrong)
        def course() -> Course:
            name, changed = op or ops[0], {}
            for mode in modes:
                found = list(getattr(OPS[name], mode))
                found[operand] = functools.partial(wrong, found[operand])
                changed[mode] = tuple(found)
            with rules(name, **changed):
                yield None

        fault(law, *ops, fuse=fuse, on=on)(course)
        return wrong

    return declare


Right = Callable[..., Array]
"""The right method of numpy's backend, which a function that is declared a fault is given."""

Compile = Callable[[Program], "Run | None"]
"""The same of `compile`."""

Course = Iterator[str | None]
"""What a generator that is declared a fault returns."""
