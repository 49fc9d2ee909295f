"""values.layouts: its operands have the given values in distinct layouts; correct backends pass, and a fault fails."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken_conformance.laws  # noqa: F401, importing them registers the laws
from core.tests.each import each_of
from tensorken_conformance.case import Case
from tensorken_conformance.law import LAWS
from tensorken_conformance.laws import layouts
from tensorken_conformance.layouts import chains
from tensorken_conformance.running.examine import examine
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import float32
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy
from tensorken_numpy.quiet import quiet
from tensorken_reference.backend import Reference

LAW = LAWS["values.layouts"]
VALUES = np.arange(12, dtype=np.float32).reshape(3, 4)


@each_of("layout", layouts.LAYOUTS)
def test_operands_have_the_given_values(layout: str) -> None:
    subject = Subject(Fuse(Numpy()), "numpy")
    values = chains.fitted(layouts.LAYOUTS[layout], VALUES)
    assert values.shape == VALUES.shape
    repeats = layouts.repeats(layout)
    assert [bool((np.diff(values, axis=i) == 0).all()) for i in range(2)] == [i in repeats for i in range(2)]
    for interpreter in (subject.call_counter, subject.stack):
        x = layouts.laid(interpreter, layout, values, float32)
        np.testing.assert_array_equal(subject.read(x), values)


def test_layouts_are_distinct() -> None:
    """No two layouts have both equal strides and base arrays of equal size; the stack keeps a number with size 1."""
    subject = Subject(Fuse(Numpy()), "numpy")
    facts = {}
    for layout in layouts.LAYOUTS:
        x: Any = layouts.laid(
            subject.call_counter, layout, chains.fitted(layouts.LAYOUTS[layout], VALUES), float32
        )
        owner = x.representation if x.representation.base is None else x.representation.base
        facts[layout] = (x.representation.strides, owner.size)
    assert facts.pop("number") == facts["whole"]
    assert len(set(facts.values())) == len(facts), facts
    operand: Any = layouts.laid(subject.stack, "number", VALUES, float32).representation
    assert operand.value.shape == (1, 1)


@pytest.mark.parametrize("make", [Numpy, Reference])
def test_correct_backends_pass(make: Callable[[], Any]) -> None:
    subject = Subject(Fuse(make()), make.__name__.lower())
    cases = list(LAW.cases(subject))
    assert {case.op for case in cases} >= {"pow", "where", "cast", "gather", "sort", "exp"}
    for case in random.Random(0).sample(cases, 150):
        result = examine(subject, LAW, case)
        assert result.status == "passed", (case.id, result.says)


def power_by_root(a: Any, b: Any) -> Any:
    """Compute powers as old versions of numpy did: by a square root for an exponent 0.5 of size 1."""
    y = np.power(a, b)
    if b.size and not any(b.strides) and b.item(0) == 0.5:
        y = np.where(a == -np.inf, y.dtype.type(np.inf), y + y.dtype.type(0))
    return y


class RootPower(Numpy):
    pow = quiet.method(power_by_root)


def test_a_power_that_treats_an_exponent_of_size_one_differently_fails() -> None:
    case = Case("values.layouts", "pow", "float32", "one", "special")
    assert examine(Subject(Fuse(Numpy()), "numpy"), LAW, case).status == "passed"
    result = examine(Subject(Fuse(RootPower()), "numpy"), LAW, case)
    assert result.status == "failed"
    assert result.says.startswith("pow(-0.0, 0.5) of float32 matrices that lie as whole, one")


def test_each_number_of_an_operand_meets_each_number_of_the_other() -> None:
    subject = Subject(Fuse(Numpy()), "numpy")
    for layout in layouts.LAYOUTS:
        case = Case("values.layouts", "sub", "int32", layout, "special")
        rounds = [calls for calls in layouts.rounds(subject, case) if calls[0].lies == (layout, "whole")]
        pairs = {
            pair
            for calls in rounds
            for call in calls
            for pair in zip(call.values[0].flat, call.values[1].flat, strict=True)
        }
        assert len(pairs) == layouts.COUNT**2, layout
