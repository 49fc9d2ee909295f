"""A backend whose module registers faulty laws.

Only worker processes may import it, since laws stay registered for the rest of a process.
"""

from __future__ import annotations

from collections.abc import Iterator

from conformance.tests.fake_backends import Small
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.subject import Subject


def raises_after_one(subject: Subject) -> Iterator[Case]:
    yield Case("fake.unlisted", "one")
    raise OSError("the list is gone")


@law("fake.unlisted", raises_after_one, level=4)
def unlisted(subject: Subject, case: Case) -> None:
    """Listing its cases raises an error."""


def two_cases(subject: Subject) -> Iterator[Case]:
    yield Case("fake.chain", "first")
    yield Case("fake.chain", "second")


@law("fake.chain", two_cases, level=1, stage=0)
def chain(subject: Subject, case: Case) -> None:
    """Its first case fails."""
    subject.call_counter.full((), 0, subject.dtypes()[0])
    if case.op == "first":
        raise Failure("it always does")


def waiting_cases(subject: Subject) -> Iterator[Case]:
    for i in range(5):
        yield Case("fake.waiting", f"number-{i}")


@law("fake.waiting", waiting_cases, level=2, needs=lambda case: ("fake.chain/first",))
def waits(subject: Subject, case: Case) -> None:
    """Its cases need the first case of fake.chain."""


__all__ = ["Small"]
