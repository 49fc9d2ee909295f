"""Fault: a backend, or a rule of the language, with one error; the table of faults, and its decorators."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

from tensorken_conformance.faults.changes import attribute, rules
from tensorken_conformance.subject import Array
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.program.program import Program
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy

Declared = TypeVar("Declared", bound=Callable[..., Any])

Place = AbstractContextManager[Any]
"""A context in which the language is wrong; it yields the name of the backend, or None for the id of the fault."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One faulty backend, and the law that must detect it.

    Attributes:
        family: the module that declares it.
        name: the name of its class or function, in words.
        law: the id of the law that must detect it.
        ops: the ops that it changes; empty if it is not about single ops.
        crude: whether it is wrong in more than one of a hundred cells of these ops.
        says: what is wrong, in a sentence.
        make: makes the backend.
        place: the context in which the backend is examined, for faults outside the backend.
    """

    family: str
    name: str
    law: str
    ops: tuple[str, ...]
    crude: bool
    says: str
    make: Callable[[], RawTensor[Any]]
    place: Callable[[], Place] = nullcontext

    @property
    def id(self) -> str:
        """Family and name, as in reports."""
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
    dtype: str = "",
    shape: Shape | None = None,
    ndim: int | None = None,
) -> Callable[[Declared], Declared]:
    """Declare a fault, whose docstring says in a sentence what is wrong.

    The decorated object is one of these:

    * a backend class;
    * a function that replaces one method of a correct backend. It receives the original method and the operands; if it
      has a parameter `state`, it receives a dict that lives as long as the backend;
    * a function without parameters that returns a context in which the language is wrong, or a generator that is one;
      it yields the name of the backend, or None.

    Args:
        law: the id of the law that must detect it.
        ops: the ops that it changes.
        crude: whether it is wrong in more than one of a hundred cells of these ops.
        fuse: whether derivatives and programs run on it in `Fuse`, as on an installed backend.
        on: the correct backend that a function or a generator changes.
        method: the method that a function replaces; by default the first of the ops.
        dtype: a function is called only if an operand has this dtype (and `shape` and `ndim`, if given).
        shape: the shape of that operand.
        ndim: the number of its axes.
    """

    def declare(wrong: Declared) -> Declared:
        name = wrong.__name__
        place: Callable[[], Place] = nullcontext
        if isinstance(wrong, type):
            kind: Callable[[], RawTensor[Any]] = wrong
            name = re.sub(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[0-9])(?=[A-Z])", "-", name)
        elif inspect.isgeneratorfunction(wrong):
            kind, place = on, contextmanager(wrong)
        elif not inspect.signature(wrong, follow_wrapped=False).parameters:
            kind, place = on, wrong
        else:
            kind = _with_method(on, method or ops[0], wrong, lambda x: _matches(x, dtype, shape, ndim))
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


def _matches(x: Any, dtype: str, shape: Shape | None, ndim: int | None) -> bool:
    """Whether an argument is an array of this dtype, shape and rank; empty and None match all."""
    if not (dtype or shape is not None or ndim is not None):
        return True
    return (
        hasattr(x, "shape")
        and dtype in ("", x.dtype.name)
        and shape in (None, x.shape)
        and ndim in (None, len(x.shape))
    )


def _with_method(
    base: type[RawTensor[Any]], method: str, wrong: Callable[..., Any], matches: Callable[[Any], bool]
) -> type[RawTensor[Any]]:
    """The backend with one method replaced: it calls `wrong` with the original method if an argument matches."""
    stateful = "state" in inspect.signature(wrong, follow_wrapped=False).parameters

    def call(self: Any, *args: Any) -> Any:
        original = getattr(super(changed, self), method)
        if not any(map(matches, args)):
            return original(*args)
        return wrong(original, *([vars(self).setdefault("state", {})] if stateful else []), *args)

    changed = type(wrong.__name__, (base,), {method: call})
    return changed


Arrays = Sequence[Array]

State = dict[Any, Any]
"""State that a faulty backend or a faulty compiled program keeps between calls."""

Run = Callable[[Arrays], Arrays]
"""A compiled program, as `compile` returns it."""


def fault_by(
    changed: Callable[..., Any], law: str, *ops: str, **facts: Any
) -> Callable[[Declared], Declared]:
    """Declare a fault in terms of another one.

    Args:
        changed: the other fault, as for `fault`; it receives the decorated function before its own arguments.
        law: as for `fault`.
        ops: as for `fault`.
        facts: further arguments of `fault`.
    """

    def declare(wrong: Declared) -> Declared:
        fault(law, *ops, **facts)(functools.update_wrapper(functools.partial(changed, wrong), wrong))
        return wrong

    return declare


def fault_in_calls(law: str) -> Callable[[Declared], Declared]:
    """Declare a fault in the calls of compiled programs.

    The function receives the correct program, a dict that lives as long as it, its equations, and the operands.
    """

    def compiled(wrong: Callable[..., Arrays], original: Compile, program: Program) -> Run | None:
        run, state = original(program), State()
        return None if run is None else lambda xs: wrong(run, state, program, xs)

    return fault_by(compiled, law, method="compile")


def fault_in_function(
    law: str, owner: Any, name: str, *ops: str, **facts: Any
) -> Callable[[Declared], Declared]:
    """Declare a fault in a function of a module, or in a method of a class, outside the backends.

    The decorated function receives the original one, and its arguments.
    """

    def patch(wrong: Callable[..., Any]) -> Place:
        original = getattr(owner, name)
        return attribute(owner, name, lambda *args, **kwargs: wrong(original, *args, **kwargs))

    return fault_by(patch, law, *ops, **facts)


def fault_in_fact(law: str, op: str, fact: str, *ops: str) -> Callable[[Declared], Declared]:
    """Declare a fault in a fact of an op that is a function, such as its shape rule.

    The decorated function receives the original one, and its arguments.
    """

    def patch(wrong: Callable[..., Any]) -> Place:
        return rules(op, **{fact: functools.partial(wrong, getattr(OPS[op], fact))})

    return fault_by(patch, law, *ops)


def fault_in_rule(
    law: str,
    *ops: str,
    op: str = "",
    operand: int = 0,
    modes: tuple[str, ...] = ("jvp", "vjp"),
    **facts: Any,
) -> Callable[[Declared], Declared]:
    """Declare a fault in a derivative rule, by default the same one in both modes.

    The function receives the original rule and its arguments.

    Args:
        law: the id of the law that must detect it.
        ops: the ops that it changes.
        op: the op whose rule it replaces; by default the first of the ops.
        operand: the operand to which the rule belongs.
        modes: `jvp`, `vjp` or both.
        facts: further arguments of `fault`.
    """

    def patch(wrong: Callable[..., Any]) -> Place:
        name, changed = op or ops[0], {}
        for mode in modes:
            found = list(getattr(OPS[name], mode))
            found[operand] = functools.partial(wrong, found[operand])
            changed[mode] = tuple(found)
        return rules(name, **changed)

    return fault_by(patch, law, *ops, **facts)


Original = Callable[..., Array]
"""The original method of numpy's backend."""

Compile = Callable[[Program], "Run | None"]
"""The original method `compile`."""
