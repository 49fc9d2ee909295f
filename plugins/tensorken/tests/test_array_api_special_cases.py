"""The special cases of the array API standard: every sentence of its text that states one is read and tried.

The text is that of the package `array-api-stubs`: sentences such as "If `x1_i` is `+0` and `x2_i` is less than `0`, the
result is `-infinity`", each of which is held against all pairs of a list of values that it is about.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from array_api_stubs import _draft as stubs

import tensorken as tk
from core.tests.each import each_of

pytestmark = pytest.mark.slow

VALUES = [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 7.0, 1e3, 1e30, math.inf]
VALUES = [*VALUES, *[-v for v in VALUES], math.nan]
NUMBER = r"``([^`]+)``"
CONSTANTS = {"NaN": math.nan, "+infinity": math.inf, "-infinity": -math.inf, "infinity": math.inf}

Case = tuple[Callable[..., bool], Callable[..., float], bool]


def number(text: str) -> float:
    """The number written as `+0`, `-infinity` or `3π/4`."""
    if "π" in text:
        sign, times, over = re.fullmatch(r"([+-]?)(\d?)π(?:/(\d))?", text).groups()
        return (-1 if sign == "-" else 1) * int(times or 1) * math.pi / int(over or 1)
    return CONSTANTS[text] if text in CONSTANTS else float(text)


def same(a: float, b: float) -> bool:
    """Equal, zeros with their signs, or both NaN."""
    return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))


KINDS: list[tuple[str, Callable[..., Callable[[float], bool]]]] = [
    (rf"either {NUMBER} or {NUMBER}", lambda a, b: lambda x: same(x, number(a)) or same(x, number(b))),
    (rf"less than {NUMBER}", lambda a: lambda x: x < number(a)),
    (rf"greater than {NUMBER}", lambda a: lambda x: x > number(a)),
    (rf"not equal to {NUMBER}", lambda a: lambda x: x != number(a)),
    (rf"not {NUMBER}", lambda a: lambda x: not same(x, number(a))),
    (r"a positive \(i\.e\., greater than ``0``\) finite number", lambda: lambda x: 0 < x < math.inf),
    (r"a negative \(i\.e\., less than ``0``\) finite number", lambda: lambda x: -math.inf < x < 0),
    (r"a nonzero finite number", lambda: lambda x: math.isfinite(x) and x != 0),
    (r"a finite number", lambda: math.isfinite),
    (r"an odd integer value", lambda: lambda x: math.isfinite(x) and x % 2 == 1),
    (r"not an odd integer value", lambda: lambda x: not (math.isfinite(x) and x % 2 == 1)),
    (r"not an integer value", lambda: lambda x: not x.is_integer()),
    (r"already integer-valued", lambda: lambda x: x.is_integer()),
    (NUMBER, lambda a: lambda x: same(x, number(a))),
]
"""Phrases about an operand, and the tests that they mean."""


def condition(text: str) -> Callable[..., bool] | None:
    """When a sentence is about operands; None if that cannot be read."""
    clauses = re.split(r",? and (?=``x)|, (?=``x)", text)
    tests = []
    for clause in clauses:
        found = re.fullmatch(r"``(x\d?)_i`` is (.*)", clause)
        if found is None:
            return None
        place = int(found[1][1:] or 1) - 1
        if found[2] == "``-x1_i``":
            tests.append(lambda *xs: xs[1] == -xs[0])
            continue
        for pattern, make in KINDS:
            if said := re.fullmatch(pattern, found[2]):
                holds = make(*said.groups())
                tests.append(lambda *xs, holds=holds, place=place: holds(xs[place]))
                break
        else:
            return None
    return lambda *xs: all(test(*xs) for test in tests)


@cache
def case(sentence: str) -> Case | None:
    """A sentence, parsed to a test of operands, the result for them, and whether it is approximate.

    A note may allow the result of another library; the result of the sentence itself is the right one.
    """
    found = re.match(r"If (.*?), the result is (.*)", sentence)
    holds = condition(found[1]) if found else None
    if holds is None:
        return None
    result = found[2].partition(" (**note**")[0]
    approximate = result.startswith("an implementation-dependent approximation to ")
    given = re.match(NUMBER, result.removeprefix("an implementation-dependent approximation to "))
    if given is None:
        return None
    if operand := re.fullmatch(r"x(\d?)_i", given[1]):
        place = int(operand[1] or 1) - 1
        return holds, lambda *xs: xs[place], approximate
    return holds, lambda *xs: number(given[1]), approximate


def sentences() -> list[Any]:
    """All sentences, each with the name of its function or method."""
    rows = []
    for name, thing in {**vars(stubs.elementwise_functions), **vars(stubs.array_object.array)}.items():
        if (
            not inspect.isfunction(thing)
            or not thing.__doc__
            or not (name.startswith("__") or hasattr(tk, name))
        ):
            continue
        text = inspect.cleandoc(thing.__doc__)
        real = text.partition("For real-valued")[2].partition("For complex")[0] or text
        for line in re.findall(r"^ *- (If ``x\d?_i``.*)$", real, re.MULTILINE):
            rows.append(pytest.param(name, line, id=f"{name}: {line}"))
    return rows


SENTENCES = sentences()


def test_nearly_all_sentences_are_understood():
    unread = {row.values[1] for row in SENTENCES if case(row.values[1]) is None}
    assert len(SENTENCES) > 260
    assert len(unread) <= 7, unread
    assert all("sign" in sentence for sentence in unread)  # of products: the signs of their factors


def wrong(sentence: str, function: Callable[..., Any], arrays: list[Any], operands: list[Any]) -> list[str]:
    """The operands covered by a sentence for which a function returns another result."""
    _, right, approximate = case(sentence)
    told = []
    for xs, found in zip(operands, function(*arrays).tolist(), strict=True):
        close = approximate and math.isclose(found, right(*xs), rel_tol=1e-6)
        if not close and not same(float(found), right(*xs)):
            told.append(f"{xs} gives {found}")
    return told


def concerned(sentence: str, dtype: str) -> tuple[list[Any], list[Any]]:
    """Tensors of the operands that a sentence is about, and the operands."""
    arity = 2 if "x1_i" in sentence or "x2_i" in sentence else 1
    operands = [
        xs for xs in product(np.array(VALUES, dtype).tolist(), repeat=arity) if case(sentence)[0](*xs)
    ]
    assert operands
    return [tk.asarray(column, dtype=getattr(tk, dtype)) for column in zip(*operands, strict=True)], operands


@each_of("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "sentence"), [row for row in SENTENCES if case(row.values[1])])
def test_the_special_case_holds(name, sentence, dtype):
    function = getattr(tk.Tensor if name.startswith("__") else tk, name)
    assert wrong(sentence, function, *concerned(sentence, dtype)) == []


@each_of("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "sentence"), [row for row in SENTENCES if case(row.values[1])])
def test_the_special_case_holds_where_an_operand_is_one_number(name, sentence, dtype):
    function = getattr(tk.Tensor if name.startswith("__") else tk, name)
    _, operands = concerned(sentence, dtype)
    numbers = [[tk.asarray(x, dtype=getattr(tk, dtype)) for x in xs] for xs in operands]
    results = [function(*xs) for xs in numbers]
    if len(operands[0]) == 2:
        wide = [(tk.broadcast_to(x, (3,)), y) for x, y in numbers]
        results += [function(x, y)[1] for x, y in wide] + [function(x, float(y))[1] for x, y in wide]
        results += [function(x, tk.broadcast_to(y, (3,)))[1] for x, y in numbers]
    times = len(results) // len(operands)
    assert wrong(sentence, lambda *_: tk.stack(results), [], operands * times) == []


@pytest.mark.parametrize(
    ("sentence", "function"),
    [
        ("If ``x_i`` is ``-0``, the result is ``-0``.", tk.abs),
        ("If ``x_i`` is ``NaN``, the result is ``NaN``.", tk.isnan),
        ("If ``x_i`` is less than ``-1``, the result is ``NaN``.", tk.asinh),
        (
            "If ``x_i`` is ``+infinity``, the result is an implementation-dependent approximation to ``+π/2``.",
            tk.tanh,
        ),
        ("If ``x1_i`` is ``NaN`` and ``x2_i`` is not equal to ``0``, the result is ``NaN``.", tk.equal),
        (
            "If ``x1_i`` is a finite number and ``x2_i`` is either ``+0`` or ``-0``, the result is ``x1_i``.",
            tk.multiply,
        ),
    ],
)
def test_a_function_that_is_wrong_would_be_seen(sentence, function):
    assert wrong(sentence, function, *concerned(sentence, "float64"))
