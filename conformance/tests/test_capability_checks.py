"""What a backend declares beyond the limits of the levels: a failure by itself, and no excuse for anything else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from conformance.tests.examining import failures, results
from tensorken_conformance import limits
from tensorken_conformance.capability_checks import fault_of
from tensorken_conformance.enclosure.errors import Errors
from tensorken_core.host.plugin import Capabilities
from tensorken_core.language.dtypes import DTYPES
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

HUGE = 10**6

GENEROUS = replace(Numpy.capabilities, ulp={**Numpy.capabilities.ulp, "sub": HUGE, "add": 1})


class Generous(Numpy):
    """Right, and declares more than any level allows."""

    capabilities = GENEROUS


class FlatProducts(Generous):
    """Adds one unit to every product of float64 numbers, which declared errors of sums are to excuse."""

    def mul(self, a: Any, b: Any) -> Any:
        y = super().mul(a, b)
        return y * (1 + 2.0**-40) if y.dtype.name == "float64" else y


@pytest.mark.parametrize(
    ("key", "error", "says"),
    [
        ("sub", 1, "'sub' is declared 1 off, but level 2 allows 0, to which it is held there"),
        ("exp", 5, "level 2 allows 4"),
        ("exp.float16", 3, "level 2 allows 2"),
        ("*.float16", 5, "level 2 allows 4"),
        ("*", HUGE, "level 2 allows 16"),
    ],
)
def test_more_than_the_limit_is_a_fault_of_the_entry(key: str, error: int, says: str) -> None:
    def wrong(number: int) -> str:
        return fault_of(Capabilities(dtypes=tuple(DTYPES), ulp={key: number}), "ulp", key)

    assert says in wrong(error)
    assert wrong(error - 1) == "" if error != HUGE else wrong(16) == ""


def test_what_has_the_bound_of_a_theorem_has_no_limit() -> None:
    assert fault_of(Capabilities(dtypes=("float32",), ulp={"sum": HUGE}), "ulp", "sum") == ""


def test_our_own_backends_declare_what_level_2_allows() -> None:
    for backend in (Numpy(), Reference()):
        for key in backend.capabilities.ulp:
            assert fault_of(backend.capabilities, "ulp", key) == ""


@pytest.mark.parametrize("op", [*limits.ARITHMETIC, *limits.QUOTIENTS, *limits.FUNCTIONS])
def test_intervals_grow_by_the_limit_at_most(op: str) -> None:
    for name in ("float16", "float32", "float64"):
        found = [Errors(Capabilities(ulp=ulp)).steps(op, DTYPES[name]) for ulp in ({}, {op: HUGE}, {op: 0})]
        assert found == [limits.largest(op, name, 2)] * 2 + [0]


def test_too_large_a_declaration_fails_once_and_nothing_else_fails() -> None:
    assert failures(Generous(), "declarations.entries") == {
        "declarations.entries/ulp/-/-/-/sub",
        "declarations.entries/ulp/-/-/-/add",
    }
    for law in ("values.sums", "derivatives.consistency", "programs.meaning"):
        found = results(Generous(), law, depth="smoke")
        assert {result.status for result in found} == {"passed"}


def test_what_a_large_declaration_excused_is_found() -> None:
    assert failures(FlatProducts(), "derivatives.consistency", where=lambda case: case.op == "mul")
