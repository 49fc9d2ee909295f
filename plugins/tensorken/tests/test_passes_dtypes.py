"""Passes on every dtype: what a rule states of an op holds for all dtypes that the op takes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.plain import elements_of, on
from tensorken.programs.passes.algebra import simplified
from tensorken.programs.passes.constants import with_constants_folded
from tensorken.programs.passes.movement import with_movement_merged
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.errors import TensorkenError
from tensorken_core.language.dtypes import DTYPES, DType, integer_bounds, round_float
from tensorken_core.program.program import Program
from tensorken_numpy.backend import Numpy

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

Function = Callable[..., Any]

UNARY: dict[str, Function] = {
    "-{}": lambda x: -x,
    "abs({})": abs,
    "square({})": tk.square,
    "sign({})": tk.sign,
    "~{}": lambda x: ~x,
    "{} * 1": lambda x: x * 1,
    "{}.astype(wider)": lambda x: x.astype(WIDER.get(x.dtype.name, x.dtype)),
    "{}.astype(bool)": lambda x: x.astype(bool),
    "{}.astype(int8)": lambda x: x.astype("int8"),
    "{}.astype(uint8)": lambda x: x.astype("uint8"),
    "{}.astype(float32)": lambda x: x.astype("float32"),
    "reversed({})": lambda x: tk.flip(x),
    "sum({})": lambda x: x.sum_in_own_dtype(0, keepdims=True),
    "max({})": lambda x: x.max(0, keepdims=True),
}
BINARY: dict[str, Function] = {
    "{} + {}": lambda a, b: a + b,
    "{} - {}": lambda a, b: a - b,
    "{} * {}": lambda a, b: a * b,
    "{} / {}": lambda a, b: a / b,
    "{} // {}": lambda a, b: a // b,
    "{} % {}": lambda a, b: a % b,
    "{} ** {}": lambda a, b: a**b,
    "{} & {}": lambda a, b: a & b,
    "{} | {}": lambda a, b: a | b,
    "{} ^ {}": lambda a, b: a ^ b,
    "{} << {}": lambda a, b: a << b,
    "{} >> {}": lambda a, b: a >> b,
    "{} == {}": lambda a, b: a == b,
    "{} < {}": lambda a, b: a < b,
    "{} <= {}": lambda a, b: a <= b,
    "maximum({}, {})": tk.maximum,
    "minimum({}, {})": tk.minimum,
    "where(a < b, {}, {})": lambda a, b: tk.where(a < b, a, b),
}
WIDER = {"bool": "uint8", "int8": "uint16", "uint8": "int16", "float16": "float32", "bfloat16": "float64"}
WIDER |= {"int16": "int32", "uint16": "int64", "int32": "int64", "uint32": "uint64", "float32": "float64"}


def operands_of(dtype: DType) -> tuple[list[Any], list[Any]]:
    """Two vectors that pair all numbers at the ends of a dtype."""
    if dtype.kind == "bool":
        numbers: list[Any] = [False, True]
    elif dtype.kind == "int":
        low, high = integer_bounds(dtype)
        numbers = [*{low, low + 1, 0, 1, 2, 3, 7, 100, high - 1, high, *([-1, -2] if dtype.signed else [])}]
    else:
        numbers = [0.0, -0.0, 1.0, -1.0, 1.5, -3.0, 100.0, math.inf, -math.inf, math.nan]
        numbers += [2.0**dtype.least, 1.5 * 2.0 ** (dtype.limit - 1)]
        numbers = [round_float(x, dtype) for x in numbers]
    pairs = [*itertools.product(numbers, numbers)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def literals_of(dtype: DType) -> list[Any]:
    """The numbers that rules know."""
    if dtype.kind == "bool":
        return [False, True]
    if dtype.kind == "int":
        return [0, 1, 2, integer_bounds(dtype)[1], -1 if dtype.signed else 3]
    return [0.0, -0.0, 1.0, -1.0, 2.0, 0.25, 3.0]


def functions(dtype: DType) -> Iterator[tuple[str, Function]]:
    """Every op on both operands, on one of them and a literal, on results of every op of one operand, and these ops
    in turn.
    """
    for (outer, f), (inner, g) in itertools.product(UNARY.items(), UNARY.items()):
        yield outer.format(inner.format("a")), lambda a, b, f=f, g=g: f(g(a))
    for name, f in BINARY.items():
        yield name.format("a", "b"), f
        yield name.format("a", "a"), lambda a, b, f=f: f(a, a)
        for number in literals_of(dtype):
            yield name.format("a", number), lambda a, b, f=f, n=number: f(a, n)
            yield name.format(number, "a"), lambda a, b, f=f, n=number: f(a.scalar(n), a)
        for inner, g in UNARY.items():
            x, y = inner.format("a"), inner.format("b")
            yield name.format(x, "b"), lambda a, b, f=f, g=g: f(g(a), b)
            yield name.format("b", x), lambda a, b, f=f, g=g: f(b, g(a))
            yield name.format(x, "a"), lambda a, b, f=f, g=g: f(g(a), a)
            yield name.format("a", x), lambda a, b, f=f, g=g: f(a, g(a))
            yield name.format(x, y), lambda a, b, f=f, g=g: f(g(a), g(b))
            yield inner.format(name.format("a", "b")), lambda a, b, f=f, g=g: g(f(a, b))
            yield inner.format(name.format("a", "a")), lambda a, b, f=f, g=g: g(f(a, a))
            for number in literals_of(dtype):
                yield inner.format(name.format("a", number)), lambda a, b, f=f, g=g, n=number: g(f(a, n))


def rewritten(program: Program, dtype: DType, backend: Numpy) -> Program:
    """The program after all passes for integers, and for floats after those that keep the bits."""
    if dtype.kind != "float":
        return optimised(program, backend)
    for change in (
        with_constants_folded,
        simplified,
        with_movement_merged,
        with_constants_folded,
        simplified,
    ):
        program = change(program, backend)
    return program


def exact(elements: list[Any]) -> list[str]:
    """The elements with the signs of zeros; NaN has no sign."""
    return ["nan" if x != x else repr(x) for x in elements]


@each_of("name", [*DTYPES])
def test_rewritten_programs_give_the_bits_of_the_programs(name: str) -> None:
    dtype, backend = DTYPES[name], Numpy()
    a, b = (tk.tensor(x, dtype=dtype) for x in operands_of(dtype))
    elements = elements_of((a, b))
    tried, wrong = 0, []
    for text, function in functions(dtype):
        try:
            program = tk.trace(function)(a, b)
        except TensorkenError:  # the ops are not defined for the dtype
            continue
        expected = on(program, backend, elements)
        found = on(rewritten(program, dtype, backend), backend, elements)
        tried += 1
        if list(map(exact, expected)) != list(map(exact, found)):
            wrong.append(text)
    assert wrong == []
    assert tried > 500
