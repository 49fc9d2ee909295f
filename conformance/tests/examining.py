"""Helpers for tests of laws: make a backend faulty, and run the cases of a law on it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator
from typing import Any

from tensorken_conformance.case import Case, Result
from tensorken_conformance.running.examine import examine, laws_for
from tensorken_conformance.subject import Depth, Subject
from tensorken_core.language.raw import RawTensor
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy


def every_case(case: Case) -> bool:
    """Select every case."""
    return True


def run_law(
    backend: RawTensor[Any],
    law: str,
    seed: int = 0,
    depth: Depth = "default",
    where: Callable[[Case], bool] = every_case,
) -> list[Result]:
    """The results of the selected cases of a law on `Fuse(backend)`."""
    subject = Subject(Fuse(backend), "examined", seed, depth)
    (chosen,) = laws_for(subject, [law])
    return [examine(subject, chosen, case) for case in chosen.cases(subject) if where(case)]


def fails(backend: RawTensor[Any], law: str, where: Callable[[Case], bool] = every_case) -> bool:
    """Whether a backend fails any selected case of a law; stops at the first failure."""
    subject = Subject(Fuse(backend), "examined")
    (chosen,) = laws_for(subject, [law])
    return any(
        examine(subject, chosen, case).status == "failed" for case in chosen.cases(subject) if where(case)
    )


def failed_cases(
    backend: RawTensor[Any], law: str, seed: int = 0, where: Callable[[Case], bool] = every_case
) -> set[str]:
    """The ids of the selected cases of a law that a backend fails."""
    results = run_law(backend, law, seed, where=where)
    return {result.case.id for result in results if result.status == "failed"}


def faulty_backend(
    name: str, change: Callable[..., Any], base: type[RawTensor[Any]] = Numpy
) -> RawTensor[Any]:
    """A backend whose method `name` returns `change(original, *args)`; `original` is the bound method of `base`."""
    unbound = getattr(base, name)

    def method(self: Any, *args: Any) -> Any:
        return change(functools.partial(unbound, self), *args)

    return type("Faulty", (base,), {name: method})()


def examine_all(
    subject: Subject, select: Collection[str] = (), cases: Collection[str] = ()
) -> Iterator[Result]:
    """Examine the cases of the selected laws in this process, or those with these ids."""
    failed: set[str] = set()
    for law in laws_for(subject, select):
        for case in law.cases(subject):
            if not cases or case.id in cases:
                result = examine(subject, law, case, failed)
                if result.status == "failed":
                    failed.add(case.id)
                yield result
