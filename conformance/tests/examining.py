"""What the tests of laws share: a backend made faulty, and which cases of a law it fails."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from tensorken_conformance.case import Case, Result
from tensorken_conformance.running.examine import examine, laws_for
from tensorken_conformance.subject import Depth, Subject
from tensorken_core.language.raw import RawTensor
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy


def anything(case: Case) -> bool:
    """All cases."""
    return True


def results(
    backend: RawTensor[Any],
    law: str,
    seed: int = 0,
    depth: Depth = "default",
    where: Callable[[Case], bool] = anything,
) -> list[Result]:
    """What becomes of the cases of a law, on the backend in `Fuse`, as the host would have it."""
    subject = Subject(Fuse(backend), "examined", seed, depth)
    (chosen,) = laws_for(subject, [law])
    return [examine(subject, chosen, case) for case in chosen.cases(subject) if where(case)]


def is_found(backend: RawTensor[Any], law: str, where: Callable[[Case], bool] = anything) -> bool:
    """Whether a law finds fault with a backend: no more cases are examined than it takes."""
    subject = Subject(Fuse(backend), "examined")
    (chosen,) = laws_for(subject, [law])
    return any(
        examine(subject, chosen, case).status == "failed" for case in chosen.cases(subject) if where(case)
    )


def failures(
    backend: RawTensor[Any], law: str, seed: int = 0, where: Callable[[Case], bool] = anything
) -> set[str]:
    """The ids of the cases of a law that a backend fails."""
    return {found.case.id for found in results(backend, law, seed, where=where) if found.status == "failed"}


def faulty(name: str, change: Callable[..., Any], base: type[RawTensor[Any]] = Numpy) -> RawTensor[Any]:
    """A backend with one method that a change replaces: it is given the right method, bound, and the arguments."""
    right = getattr(base, name)

    def method(self: Any, *args: Any) -> Any:
        return change(lambda *given: right(self, *given), *args)

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
