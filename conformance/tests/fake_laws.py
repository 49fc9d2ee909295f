"""A backend that brings laws of its own, which misbehave; for worker processes alone, as the table keeps them."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.tests.fake_backends import Small
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.subject import Subject


def cannot_be_listed(subject: Subject) -> Iterator[Case]:
    yield Case("fake.unlisted", "one")
    raise OSError("the list is gone")


@law("fake.unlisted", cannot_be_listed, level=4)
def unlisted(subject: Subject, case: Case) -> None:
    """Nobody knows the cases of this one."""


def two(subject: Subject) -> Iterator[Case]:
    yield Case("fake.chain", "first")
    yield Case("fake.chain", "second")


@law("fake.chain", two, level=1, stage=0)
def chain(subject: Subject, case: Case) -> None:
    """The first case fails."""
    subject.call_counter.full((), 0, subject.dtypes()[0])
    if case.op == "first":
        raise Failure("it always does")


def waiting(subject: Subject) -> Iterator[Case]:
    for i in range(5):
        yield Case("fake.waiting", f"number-{i}")


@law("fake.waiting", waiting, level=2, needs=lambda case: ("fake.chain/first",))
def waits(subject: Subject, case: Case) -> None:
    """These wait for the first."""


__all__ = ["Small"]
