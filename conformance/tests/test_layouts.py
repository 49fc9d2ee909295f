"""values.layouts: right backends keep it; what lies in another way is another array; the values are those asked for."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken_conformance.laws  # noqa: F401, entering them is what it does
from core.tests.each import each_of
from tensorken_conformance.case import Case
from tensorken_conformance.law import LAWS
from tensorken_conformance.laws import layouts as law
from tensorken_conformance.operands import chains
from tensorken_conformance.running.examine import examine
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import float32
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy
from tensorken_numpy.quiet import quiet
from tensorken_reference.backend import Reference

LAW = LAWS["values.layouts"]
VALUES = np.arange(12, dtype=np.float32).reshape(3, 4)


@each_of("layout", law.LAYOUTS)
def test_an_operand_has_the_values_that_are_asked_for(layout: str) -> None:
    subject = Subject(Fuse(Numpy()), "numpy")
    values = chains.fitted(law.LAYOUTS[layout], VALUES)
    assert values.shape == VALUES.shape
    repeats = law.repeats(layout)
    assert [bool((np.diff(values, axis=i) == 0).all()) for i in range(2)] == [i in repeats for i in range(2)]
    for place in (subject.call_counter, subject.stack):
        x = law.laid(place, layout, values, float32)
        np.testing.assert_array_equal(subject.read(x), values)


def test_they_lie_differently() -> None:
    """No two have the same strides and the same first element of a larger array; one number is of size 1 where held."""
    subject = Subject(Fuse(Numpy()), "numpy")
    lies = {}
    for layout in law.LAYOUTS:
        x: Any = law.laid(subject.call_counter, layout, chains.fitted(law.LAYOUTS[layout], VALUES), float32)
        owner = x.representation if x.representation.base is None else x.representation.base
        lies[layout] = (x.representation.strides, owner.size)
    assert lies.pop("number") == lies["whole"]
    assert len(set(lies.values())) == len(lies), lies
    held: Any = law.laid(subject.stack, "number", VALUES, float32).representation
    assert held.value.shape == (1, 1)


@pytest.mark.parametrize("make", [Numpy, Reference])
def test_right_backends_keep_it(make: Callable[[], Any]) -> None:
    subject = Subject(Fuse(make()), make.__name__.lower())
    cases = list(LAW.cases(subject))
    assert {case.op for case in cases} >= {"pow", "where", "cast", "gather", "sort", "exp"}
    for case in random.Random(0).sample(cases, 150):
        result = examine(subject, LAW, case)
        assert result.status == "passed", (case.id, result.says)


def root(a: Any, b: Any) -> Any:
    """The power as it was: numpy takes the square root for one number 0.5, also of size 1."""
    y = np.power(a, b)
    if b.size and not any(b.strides) and b.item(0) == 0.5:
        y = np.where(a == -np.inf, y.dtype.type(np.inf), y + y.dtype.type(0))
    return y


class RootPower(Numpy):
    pow = quiet.method(root)


def test_it_finds_the_power_that_took_an_exponent_of_size_one_for_several() -> None:
    case = Case("values.layouts", "pow", "float32", "one", "special")
    assert examine(Subject(Fuse(Numpy()), "numpy"), LAW, case).status == "passed"
    result = examine(Subject(Fuse(RootPower()), "numpy"), LAW, case)
    assert result.status == "failed"
    assert result.says.startswith("pow(-0.0, 0.5) of float32 matrices that lie as whole, one")


def test_each_number_of_an_operand_stands_beside_each_of_the_others() -> None:
    subject = Subject(Fuse(Numpy()), "numpy")
    for layout in law.LAYOUTS:
        case = Case("values.layouts", "sub", "int32", layout, "special")
        whole = [some for some in law.rounds(subject, case) if some[0].lies == (layout, "whole")]
        pairs = {
            pair
            for some in whole
            for one in some
            for pair in zip(one.values[0].flat, one.values[1].flat, strict=True)
        }
        assert len(pairs) == law.COUNT**2, layout
