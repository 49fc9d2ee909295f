"""values.signs: zeros have the sign of IEEE 754, in results of public functions and of compiled programs.

The laws on single ops check signs as well. This law is about functions of several ops, and programs of exact steps,
whose results a rewrite of `x + 0.0` to `x` or of `0.0 - x` to `-x` would change.  The expected results
come from numpy, where numpy decides; the sign of a NaN is ignored.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.oracles import ulp
from tensorken_conformance.programs.compiling import function_of
from tensorken_conformance.programs.program import Expression, Leaf, Node, Program, Step
from tensorken_conformance.subject import Array, Depth, Subject, put
from tensorken_core.language.dtypes import DTYPES, DType, float32

ZEROS = (0.0, -0.0)
SMALL = (0.0, -0.0, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0)
"""The numbers from which elements are drawn: many zeros of both signs, and numbers that cancel and round to zero."""

SPECIAL = (0.0, -0.0, 0.5, -0.5, float("inf"), -float("inf"), float("nan"))

SIZES = (1, 17, 67)
"""Sizes of the last axis: below and beyond the width of vector registers, none a multiple of it."""

COMPILED = 17
"""The size at which a function also runs under vmap and jit, in float32; in a deep run in all dtypes."""

CHAINS: dict[Depth, tuple[int, int]] = {"smoke": (0, 0), "default": (4, 5), "deep": (24, 20)}
"""The number of cases for each dtype, and of programs in each."""

LENGTH = 7
"""The number of steps of a program."""


@dataclass(frozen=True, slots=True)
class Row(Expression):
    """A function of tensors of shape (2, n), and its expected results, of arrays of float64.

    Attributes:
        either: on the arrays: where a zero may have either sign; None: nowhere.
        values: the numbers from which elements are drawn.
    """

    either: Callable[..., Array] | None = None
    values: tuple[float, ...] = SMALL


def _opposite(a: Array, b: Any) -> Array:
    """Where two zeros have different signs."""
    b = np.broadcast_to(np.asarray(b, np.float64), a.shape)
    found: Array = (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
    return found


def _both_signs(x: Array) -> Array:
    """Which rows contain zeros of both signs."""
    zero = x == 0
    found: Array = (zero & np.signbit(x)).any(-1) & (zero & ~np.signbit(x)).any(-1)
    return found


def _negative_zeros(x: Array) -> Array:
    """Which rows consist of -0.0."""
    found: Array = ((x == 0) & np.signbit(x)).all(-1)
    return found


def _sum(x: Array) -> Array:
    """The sums of rows, 0.0 if they are 0."""
    return np.asarray(x.sum(-1) + 0.0)


def _no_sum(x: Array) -> Array:
    return np.zeros(x.shape[:-1])


def _only_negative_zeros_yet(x: Array) -> Array:
    return np.asarray(np.logical_and.accumulate((x == 0) & np.signbit(x), axis=-1))


def _stable(x: Array) -> Array:
    return np.take_along_axis(x, np.argsort(x, -1, kind="stable"), -1)


def _stable_descending(x: Array) -> Array:
    """Equal elements keep their order, and NaN is the greatest of all."""
    backwards = np.flip(x, -1)
    return np.flip(np.take_along_axis(backwards, np.argsort(backwards, -1, kind="stable"), -1), -1)


def _median(x: Array) -> Array:
    ordered = _stable(x)
    low, high = ordered[..., (x.shape[-1] - 1) // 2], ordered[..., x.shape[-1] // 2]
    return low if x.shape[-1] % 2 else low * 0.5 + high * 0.5


def _with_last(change: Callable[[Array], Any]) -> Callable[[Array], Array]:
    """The function that changes the last element of each row."""

    def model(x: Array) -> Array:
        y = x.copy()
        y[..., -1] = change(y[..., -1])
        return y

    return model


ODD = ("sqrt", "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "expm1", "log1p", "erf") + (
    "positive",
    "stop_gradient",
)
"""Functions that are tried at zeros alone, where they return their operand."""


STEPS: dict[str, Row] = {
    "neg": Row("-{0}"),
    "abs": Row("abs({0})"),
    "sign": Row("tk.sign({0})", lambda x: np.sign(x) + 0.0),
    "floor": Row("tk.floor({0})"),
    "ceil": Row("tk.ceil({0})"),
    "trunc": Row("tk.trunc({0})"),
    "round": Row("tk.round({0})"),
    "square": Row("tk.square({0})"),
    "plus-zero": Row("{0} + 0.0"),
    "plus-minus-zero": Row("{0} + -0.0"),
    "minus-zero": Row("{0} - 0.0"),
    "minus-minus-zero": Row("{0} - -0.0"),
    "from-zero": Row("0.0 - {0}"),
    "from-minus-zero": Row("-0.0 - {0}"),
    "times-zero": Row("{0} * 0.0"),
    "times-minus-zero": Row("{0} * -0.0"),
    "times-minus-one": Row("{0} * -1.0"),
    "half": Row("{0} / 2.0"),
    "by-minus-one": Row("{0} / -1.0"),
    "of-one": Row("1.0 / {0}"),
    "reciprocal": Row("tk.reciprocal({0})"),
    "zero-by": Row("0.0 / {0}"),
    "remainder": Row("{0} % 2.0"),
    "remainder-of-negative": Row("{0} % -2.0"),
    "fmod": Row("tk.fmod({0}, 2.0)"),
    "floor-divide": Row("{0} // 2.0", lambda x: np.floor(x / 2.0)),
    "power-of-two": Row("{0} ** 2.0"),
    "power-of-three": Row("{0} ** 3.0"),
    "whole-power": Row("{0} ** 3"),
    "nan-to-num": Row("tk.nan_to_num({0}, nan=-0.0, posinf=1.0, neginf=-1.0)"),
    "where-negative": Row("tk.where({0} < 0.0, -0.0, {0})"),
    "where-zero": Row("tk.where({0} == 0.0, {0}, -{0})"),
    "by-integers": Row(
        "tk.nan_to_num({0}, nan=0.0, posinf=7.0, neginf=-7.0).astype(int32).astype({0}.dtype)",
        lambda x: np.trunc(np.nan_to_num(x, nan=0.0, posinf=7.0, neginf=-7.0)) + 0.0,
    ),
    "flip": Row("tk.flip({0}, 1)"),
    "roll": Row("tk.roll({0}, 1, 1)"),
    "prod": Row("tk.prod({0}, 1, keepdims=True) * {0}"),
    "differences": Row("tk.diff({0}, axis=1, prepend={0}[:, :1])"),
    "sort": Row("tk.sort({0}, 1)", _stable),
    "sort-descending": Row("tk.sort({0}, 1, descending=True)", _stable_descending),
    "set": Row("{0}.at[:, -1].set(-0.0)", _with_last(lambda last: -0.0)),
    "add-at": Row("{0}.at[:, -1].add(0.0)", _with_last(lambda last: last + 0.0)),
    "pad": Row("tk.pad({0}, ((0, 0), (0, 1)))[:, 1:]"),
    "add": Row("{0} + {1}"),
    "sub": Row("{0} - {1}"),
    "mul": Row("{0} * {1}"),
    "div": Row("{0} / {1}"),
    "reverse-difference": Row("-({0} - {1})"),
    "nested-products": Row("{0} * {1} - ({0} * {0} - {1} * {1})"),
    "copysign": Row("tk.copysign({0}, {1})"),
    "fmod-of-two": Row("tk.fmod({0}, {1})"),
    "remainder-of-two": Row("{0} % {1}"),
    "where-less": Row("tk.where({0} < {1}, {0}, {1})"),
}
"""Functions that are exact and decide the sign of every zero, which are the steps of programs, too."""

NOT_A_NUMBER = (*SMALL, float("nan"))

OTHERS: dict[str, Row] = {
    # the larger and the smaller: either of two zeros that differ in sign
    "maximum": Row("tk.maximum({0}, {1})", either=_opposite),
    "minimum": Row("tk.minimum({0}, {1})", either=_opposite),
    "fmax": Row("tk.fmax({0}, {1})", either=_opposite, values=NOT_A_NUMBER),
    "fmin": Row("tk.fmin({0}, {1})", either=_opposite, values=NOT_A_NUMBER),
    "relu": Row("tk.relu({0})", lambda x: np.maximum(x, 0.0), either=lambda x: _opposite(x, 0.0)),
    "clip": Row("tk.clip({0}, -0.5, 0.0)", either=lambda x: _opposite(x, 0.0)),
    "max": Row("tk.max({0}, 1)", either=_both_signs),
    "min": Row("tk.min({0}, 1)", either=_both_signs),
    "median": Row("tk.median({0}, 1)", _median, either=_both_signs),
    # sums: never -0.0, except that a sum of -0.0 alone may have either sign
    "sum": Row("tk.sum({0}, 1)", _sum, either=_negative_zeros),
    "mean": Row("tk.mean({0}, 1)", _sum, either=_negative_zeros, values=ZEROS),
    "cumsum": Row("tk.cumsum({0}, 1)", lambda x: np.cumsum(x, 1) + 0.0, either=_only_negative_zeros_yet),
    "matmul": Row("({0} @ {0}.ones_like().T)[:, 0]", _sum, either=_negative_zeros),
    "sum-of-opposites": Row("tk.sum(tk.concatenate([{0}, -{0}], 1), 1)", _no_sum),
    "sum-of-nothing": Row("tk.sum({0}[:, :0], 1)", _no_sum),
    # functions that keep the sign of a zero
    **{name: Row(f"tk.{name}({{0}})", np.copy, values=ZEROS) for name in ODD},
    "atan2": Row("tk.atan2({0}, abs({0}) + 1.0)", np.copy, values=ZEROS),
    "hypot": Row("tk.hypot({0}, {0})", values=ZEROS),
    "norm": Row("tk.linalg.vector_norm({0}, axis=1)", lambda x: _sum(np.abs(x)), values=ZEROS),
    # indices, and constants of programs
    "argmax": Row("tk.argmax({0}, 1).astype({0}.dtype)"),
    "argmin": Row("tk.argmin({0}, 1).astype({0}.dtype)"),
    "topk": Row("tk.topk({0}, 1).values", lambda x: _stable_descending(x)[..., :1]),
    "concatenate": Row("tk.concatenate([{0}, -{0}], 1)"),
    "take": Row("tk.take({0}, [0, 0], 1)"),
    "full": Row("tk.full_like({0}, -0.0)"),
    "constant": Row(
        "{0}.constant([-0.0, 0.0, -0.0], {0}.dtype, (3,)) + {0}[:, :1] * 0.0 * {0}[:, :1]",
        lambda x: np.array([-0.0, 0.0, -0.0]) + x[..., :1] * 0.0 * x[..., :1],
    ),
    "signbit": Row("tk.signbit({0}).astype({0}.dtype)"),
}

ROWS: dict[str, Row] = {**STEPS, **OTHERS}
"""All functions, by their names in reports."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each function and dtype; programs of a seed."""
    floats = [dtype for dtype in subject.dtypes() if dtype.kind == "float"]
    for dtype in floats:
        if subject.depth == "smoke":
            yield Case("values.signs", "neg", dtype.name)
            continue
        for name in ROWS:
            yield Case("values.signs", name, dtype.name)
        for number in range(CHAINS[subject.depth][0]):
            yield Case("values.signs", "program", dtype.name, detail=str(number))


@law("values.signs", cases, level=2)
def signs(subject: Subject, case: Case) -> None:
    """A zero has the sign of IEEE 754: in single calls, under jit and vmap, and in programs of many steps.

    Of zeros of different sign `maximum`, `minimum`, `max`, `min`, and functions of them, may return either; a sum of
    -0.0 alone may be a zero of either sign.
    """
    dtype = DTYPES[case.dtype]
    if case.op == "program":
        count = CHAINS[subject.depth][1]
        for number in range(int(case.detail) * count, (int(case.detail) + 1) * count):
            _check_program(subject, dtype, random.Random(f"{subject.seed} signs {number}"))
        return
    row, rng = ROWS[case.op], subject.random(case)
    for n in SIZES:
        xs, expected = _operands(row, rng, n)
        with np.errstate(all="ignore"):
            free = np.zeros(expected.shape, bool) if row.either is None else row.either(*xs)
        tensors = [put(subject.stack, x, dtype) for x in xs]
        _agree(case.op, subject.read(row(*tensors)), expected, free, xs)
        if n != COMPILED or not (dtype is float32 or subject.depth == "deep"):
            continue
        batch = [put(subject.stack, np.stack([x, x]), dtype) for x in xs]
        got = subject.read(tk.vmap(row)(*batch))
        _agree(f"{case.op} under vmap", got, np.stack([expected] * 2), np.stack([free] * 2), xs)
        _agree(f"{case.op} under jit", subject.read(tk.jit(row)(*tensors)), expected, free, xs)


def _operands(row: Row, rng: random.Random, n: int) -> tuple[list[Array], Array]:
    """Operands with rows of n elements, and a result that every float dtype represents."""
    while True:
        xs = [_drawn(rng, row.values, n) for _ in range(row.arity)]
        with np.errstate(all="ignore"):
            expected = row.value(*xs)
        if _exact(expected):
            return xs, expected


def _check_program(subject: Subject, dtype: DType, rng: random.Random) -> None:
    """Draw steps whose results are exact; run them one by one, then as one compiled program."""
    n = rng.choice(SIZES)
    values = SPECIAL if rng.random() < 0.3 else SMALL
    arrays = [_drawn(rng, values, n) for _ in range(2)]
    nodes: list[Node] = [Leaf(x.astype(dtype.name), dtype) for x in arrays]
    while len(nodes) < 2 + LENGTH:
        name = rng.choice([*STEPS])
        row = STEPS[name]
        positions = [rng.randrange(max(0, len(arrays) - 3), len(arrays)) for _ in range(row.arity)]
        with np.errstate(all="ignore"):
            y = row.value(*[arrays[i] for i in positions])
        if not _exact(y) or (name == "copysign" and np.isnan(arrays[positions[1]]).any()):
            continue  # the sign of a NaN is unspecified
        nodes.append(row.at(positions))
        arrays.append(y)
    program = Program(tuple(nodes))
    function, leaves = function_of(program)
    tensors = [put(subject.stack, leaf.values, dtype) for leaf in leaves]
    for way, results in (("", function(*tensors)), (" under jit", tk.jit(function)(*tensors))):
        for i, result in zip(program.ends, results, strict=True):
            says, free = program.needed(i).text(Step) + way, np.zeros(arrays[i].shape, bool)
            _agree(says, subject.read(result), arrays[i], free, arrays[:2])


def _drawn(rng: random.Random, values: Sequence[float], n: int) -> Array:
    """Two rows of n elements; the second is often all negative zeros."""
    x = np.array([rng.choice(values) for _ in range(2 * n)]).reshape(2, n)
    if rng.random() < 0.25:
        x[1] = -0.0
    return x


def _exact(values: Array) -> bool:
    """Whether every float dtype represents these numbers, and the result of one more step."""
    finite = values[np.isfinite(values)]
    return bool((np.abs(finite) <= 256.0).all() and (finite * 8.0 == np.rint(finite * 8.0)).all())


def _agree(what: str, got: Array, expected: Array, free: Array, xs: Sequence[Array]) -> None:
    converted = expected.astype(got.dtype)
    if got.shape != converted.shape:
        raise Failure(f"{what}: expected shape {converted.shape}, got {got.shape}")
    wrong = (ulp.distance(got, converted) > 0) & ~(free & (got == 0) & (converted == 0))
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        operands = ", ".join(str(x.tolist()) for x in xs)
        raise Failure(
            f"{what}: expected {converted[index]} at {list(index)}, got {got[index]}; of {operands}"
        )
