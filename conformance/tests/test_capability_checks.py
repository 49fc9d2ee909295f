"""Declared errors above the limits of the levels fail, and do not widen the bounds of other laws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from conformance.tests.examining import failed_cases, run_law
from tensorken_conformance import limits
from tensorken_conformance.backends.capability_checks import fault_of
from tensorken_conformance.enclosure.errors import Errors
from tensorken_core.host.plugin import Capabilities
from tensorken_core.language.dtypes import DTYPES
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

HUGE = 10**6

GENEROUS = replace(Numpy.capabilities, ulp={**Numpy.capabilities.ulp, "sub": HUGE, "add": 1})


class Generous(Numpy):
    """A correct backend that declares larger errors than any level allows."""

    capabilities = GENEROUS


class InaccurateProducts(Generous):
    """Multiplies float64 products by 1 + 2**-40; the large declared error of `add` must not excuse it."""

    def mul(self, a: Any, b: Any) -> Any:
        y = super().mul(a, b)
        return y * (1 + 2.0**-40) if y.dtype.name == "float64" else y


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        ("sub", 1, "'sub' is declared 1 off, but level 2 allows 0, to which it is held there"),
        ("exp", 5, "level 2 allows 4"),
        ("exp.float16", 3, "level 2 allows 2"),
        ("*.float16", 5, "level 2 allows 4"),
        ("*", HUGE, "level 2 allows 16"),
    ],
)
def test_a_declared_error_above_the_limit_is_a_fault(key: str, error: int, message: str) -> None:
    def fault_for(number: int) -> str:
        return fault_of(Capabilities(dtypes=tuple(DTYPES), ulp={key: number}), "ulp", key)

    assert message in fault_for(error)
    assert fault_for(error - 1) == "" if error != HUGE else fault_for(16) == ""


def test_ops_bounded_by_a_theorem_have_no_limit() -> None:
    assert fault_of(Capabilities(dtypes=("float32",), ulp={"sum": HUGE}), "ulp", "sum") == ""


def test_first_party_backends_declare_errors_within_level_2() -> None:
    for backend in (Numpy(), Reference()):
        for key in backend.capabilities.ulp:
            assert fault_of(backend.capabilities, "ulp", key) == ""


@pytest.mark.parametrize("op", [*limits.ARITHMETIC, *limits.QUOTIENTS, *limits.FUNCTIONS])
def test_intervals_grow_by_at_most_the_limit(op: str) -> None:
    for name in ("float16", "float32", "float64"):
        steps = [Errors(Capabilities(ulp=ulp)).steps(op, DTYPES[name]) for ulp in ({}, {op: HUGE}, {op: 0})]
        assert steps == [limits.largest(op, name, 2)] * 2 + [0]


def test_too_large_declared_errors_fail_only_their_own_cases() -> None:
    assert failed_cases(Generous(), "declarations.entries") == {
        "declarations.entries/ulp/-/-/-/sub",
        "declarations.entries/ulp/-/-/-/add",
    }
    for law in ("values.sums", "derivatives.consistency", "programs.meaning"):
        results = run_law(Generous(), law, depth="smoke")
        assert {result.status for result in results} == {"passed"}


def test_a_large_declared_error_does_not_excuse_wrong_values() -> None:
    assert failed_cases(InaccurateProducts(), "derivatives.consistency", where=lambda case: case.op == "mul")
