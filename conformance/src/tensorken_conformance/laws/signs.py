"""values.signs: zeros have the sign of IEEE 754, in results of public functions and of compiled programs.

The laws on single ops check signs as well. This law is about functions of several ops, and programs of exact steps,
whose results a rewrite of `x + 0.0` to `x` or of `0.0 - x` to `-x` would change.  The expected results
come from numpy, where numpy decides; the sign of a NaN is ignored.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Failure
from tensorken_conformance.law import law
from tensorken_conformance.oracles import ulp
from tensorken_conformance.subject import Array, Depth, Subject, put
from tensorken_core.language.dtypes import DTYPES, DType, float32, int32
from tensorken_core.tensor.tensor import Tensor

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
class Row:
    """A function, and its expected results.

    Attributes:
        call: on tensors of shape (2, n).
        model: on arrays of float64: the result.
        either: on the same: where a zero may have either sign; None: nowhere.
        values: the numbers from which elements are drawn.
        text: the call as in a report, `{0}` and `{1}` being the operands; empty if programs do not use it as a step.
        operands: their number.
    """

    call: Callable[..., Tensor]
    model: Callable[..., Array]
    either: Callable[..., Array] | None = None
    values: tuple[float, ...] = SMALL
    text: str = ""
    operands: int = 1


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


def _step(
    text: str, call: Callable[..., Any], model: Callable[..., Array] | None = None, operands: int = 1
) -> Row:
    """A row that programs use as a step: it is exact, and decides the sign of each zero."""
    return Row(call, call if model is None else model, text=text, operands=operands)


def _same(text: str, function: Callable[..., Any], operands: int = 1) -> Row:
    """A step whose function takes the namespace first, tensorken for the call and numpy for the model."""
    return _step(text, partial(function, tk), lambda *xs: np.asarray(function(np, *xs)), operands)


def _called(name: str, x: Tensor) -> Tensor:
    y: Tensor = getattr(tk, name)(x)  # looked up at each call, as faults replace functions
    return y


ODD = ("sqrt", "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "expm1", "log1p", "erf") + (
    "positive",
    "stop_gradient",
)
"""Functions that are tried at zeros alone, where they return their operand."""


STEPS: dict[str, Row] = {
    "neg": _step("-{0}", lambda x: -x),
    "abs": _step("abs({0})", abs),
    "sign": _step("sign({0})", tk.sign, lambda x: np.sign(x) + 0.0),
    "floor": _same("floor({0})", lambda xp, x: xp.floor(x)),
    "ceil": _same("ceil({0})", lambda xp, x: xp.ceil(x)),
    "trunc": _same("trunc({0})", lambda xp, x: xp.trunc(x)),
    "round": _same("round({0})", lambda xp, x: xp.round(x)),
    "square": _same("square({0})", lambda xp, x: xp.square(x)),
    "plus-zero": _step("{0} + 0.0", lambda x: x + 0.0),
    "plus-minus-zero": _step("{0} + -0.0", lambda x: x + -0.0),
    "minus-zero": _step("{0} - 0.0", lambda x: x - 0.0),
    "minus-minus-zero": _step("{0} - -0.0", lambda x: x - -0.0),
    "from-zero": _step("0.0 - {0}", lambda x: 0.0 - x),
    "from-minus-zero": _step("-0.0 - {0}", lambda x: -0.0 - x),
    "times-zero": _step("{0} * 0.0", lambda x: x * 0.0),
    "times-minus-zero": _step("{0} * -0.0", lambda x: x * -0.0),
    "times-minus-one": _step("{0} * -1.0", lambda x: x * -1.0),
    "half": _step("{0} / 2.0", lambda x: x / 2.0),
    "by-minus-one": _step("{0} / -1.0", lambda x: x / -1.0),
    "of-one": _step("1.0 / {0}", lambda x: 1.0 / x),
    "reciprocal": _step("reciprocal({0})", tk.reciprocal, lambda x: 1.0 / x),
    "zero-by": _step("0.0 / {0}", lambda x: 0.0 / x),
    "remainder": _step("{0} % 2.0", lambda x: x % 2.0),
    "remainder-of-negative": _step("{0} % -2.0", lambda x: x % -2.0),
    "fmod": _same("fmod({0}, 2.0)", lambda xp, x: xp.fmod(x, 2.0)),
    "floor-divide": _step("{0} // 2.0", lambda x: x // 2.0, lambda x: np.floor(x / 2.0)),
    "power-of-two": _step("{0} ** 2.0", lambda x: x**2.0),
    "power-of-three": _step("{0} ** 3.0", lambda x: x**3.0),
    "whole-power": _step("{0} ** 3", lambda x: x**3),
    "nan-to-num": _same("nan_to_num({0})", lambda xp, x: xp.nan_to_num(x, nan=-0.0, posinf=1.0, neginf=-1.0)),
    "where-negative": _same("where({0} < 0.0, -0.0, {0})", lambda xp, x: xp.where(x < 0.0, -0.0, x)),
    "where-zero": _same("where({0} == 0.0, {0}, -{0})", lambda xp, x: xp.where(x == 0.0, x, -x)),
    "by-integers": _step(
        "{0}.astype(int32).astype({0}.dtype)",
        lambda x: tk.nan_to_num(x, nan=0.0, posinf=7.0, neginf=-7.0).astype(int32).astype(x.dtype),
        lambda x: np.trunc(np.nan_to_num(x, nan=0.0, posinf=7.0, neginf=-7.0)) + 0.0,
    ),
    "flip": _same("flip({0}, 1)", lambda xp, x: xp.flip(x, -1)),
    "roll": _same("roll({0}, 1, 1)", lambda xp, x: xp.roll(x, 1, -1)),
    "prod": _same("prod({0}, 1, keepdims=True) * {0}", lambda xp, x: xp.prod(x, -1, keepdims=True) * x),
    "differences": _same(
        "diff({0}, prepend={0}[:, :1])", lambda xp, x: xp.diff(x, axis=-1, prepend=x[..., :1])
    ),
    "sort": _step("sort({0}, 1)", lambda x: tk.sort(x, 1), _stable),
    "sort-descending": _step(
        "sort({0}, 1, descending=True)", lambda x: tk.sort(x, 1, descending=True), _stable_descending
    ),
    "set": _step("{0}.at[:, -1].set(-0.0)", lambda x: x.at[:, -1].set(-0.0), _with_last(lambda last: -0.0)),
    "add-at": _step(
        "{0}.at[:, -1].add(0.0)", lambda x: x.at[:, -1].add(0.0), _with_last(lambda last: last + 0.0)
    ),
    "pad": _step(
        "pad({0})[:, 1:]",
        lambda x: tk.pad(x, ((0, 0), (0, 1)))[:, 1:],
        lambda x: np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, 1)])[..., 1:],
    ),
    "add": _step("{0} + {1}", lambda a, b: a + b, operands=2),
    "sub": _step("{0} - {1}", lambda a, b: a - b, operands=2),
    "mul": _step("{0} * {1}", lambda a, b: a * b, operands=2),
    "div": _step("{0} / {1}", lambda a, b: a / b, operands=2),
    "reverse-difference": _step("-({0} - {1})", lambda a, b: -(a - b), operands=2),
    "nested-products": _step(
        "{0} * {1} - ({0} * {0} - {1} * {1})", lambda a, b: a * b - (a * a - b * b), operands=2
    ),
    "copysign": _same("copysign({0}, {1})", lambda xp, a, b: xp.copysign(a, b), 2),
    "fmod-of-two": _same("fmod({0}, {1})", lambda xp, a, b: xp.fmod(a, b), 2),
    "remainder-of-two": _step("{0} % {1}", lambda a, b: a % b, operands=2),
    "where-less": _same("where({0} < {1}, {0}, {1})", lambda xp, a, b: xp.where(a < b, a, b), 2),
}
"""Functions that are exact and decide the sign of every zero, which are the steps of programs, too."""

NOT_A_NUMBER = (*SMALL, float("nan"))

OTHERS: dict[str, Row] = {
    # the larger and the smaller: either of two zeros that differ in sign
    "maximum": Row(tk.maximum, np.maximum, _opposite, operands=2),
    "minimum": Row(tk.minimum, np.minimum, _opposite, operands=2),
    "fmax": Row(tk.fmax, np.fmax, _opposite, NOT_A_NUMBER, operands=2),
    "fmin": Row(tk.fmin, np.fmin, _opposite, NOT_A_NUMBER, operands=2),
    "relu": Row(tk.relu, lambda x: np.maximum(x, 0.0), lambda x: _opposite(x, 0.0)),
    "clip": Row(
        lambda x: tk.clip(x, -0.5, 0.0), lambda x: np.clip(x, -0.5, 0.0), lambda x: _opposite(x, 0.0)
    ),
    "max": Row(lambda x: tk.max(x, 1), lambda x: x.max(-1), _both_signs),
    "min": Row(lambda x: tk.min(x, 1), lambda x: x.min(-1), _both_signs),
    "median": Row(lambda x: tk.median(x, 1), _median, _both_signs),
    # sums: never -0.0, except that a sum of -0.0 alone may have either sign
    "sum": Row(lambda x: tk.sum(x, 1), _sum, _negative_zeros),
    "mean": Row(lambda x: tk.mean(x, 1), _sum, _negative_zeros, ZEROS),
    "cumsum": Row(lambda x: tk.cumsum(x, 1), lambda x: np.cumsum(x, -1) + 0.0, _only_negative_zeros_yet),
    "matmul": Row(lambda x: (x @ x.ones_like().T)[:, 0], _sum, _negative_zeros),
    "sum-of-opposites": Row(lambda x: tk.sum(tk.concatenate([x, -x], 1), 1), _no_sum),
    "sum-of-nothing": Row(lambda x: tk.sum(x[:, :0], 1), _no_sum),
    # functions that keep the sign of a zero
    **{name: Row(partial(_called, name), np.copy, values=ZEROS) for name in ODD},
    "atan2": Row(lambda x: tk.atan2(x, abs(x) + 1.0), np.copy, values=ZEROS),
    "hypot": Row(lambda x: tk.hypot(x, x), np.abs, values=ZEROS),
    "norm": Row(lambda x: tk.linalg.vector_norm(x, axis=1), lambda x: _sum(np.abs(x)), values=ZEROS),
    # indices, and constants of programs
    "argmax": Row(lambda x: tk.argmax(x, 1).astype(x.dtype), lambda x: np.argmax(x, -1).astype(float)),
    "argmin": Row(lambda x: tk.argmin(x, 1).astype(x.dtype), lambda x: np.argmin(x, -1).astype(float)),
    "topk": Row(lambda x: tk.topk(x, 1).values, lambda x: _stable_descending(x)[..., :1]),
    "concatenate": Row(lambda x: tk.concatenate([x, -x], 1), lambda x: np.concatenate([x, -x], -1)),
    "take": Row(lambda x: tk.take(x, [0, 0], 1), lambda x: np.take(x, [0, 0], -1)),
    "full": Row(lambda x: tk.full_like(x, -0.0), lambda x: np.full_like(x, -0.0)),
    "constant": Row(
        lambda x: x.constant([-0.0, 0.0, -0.0], x.dtype, (3,)) + x[:, :1] * 0.0 * x[:, :1],
        lambda x: np.array([-0.0, 0.0, -0.0]) + x[..., :1] * 0.0 * x[..., :1],
    ),
    "signbit": Row(lambda x: tk.signbit(x).astype(x.dtype), lambda x: np.signbit(x).astype(float)),
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
        _agree(case.op, subject.read(row.call(*tensors)), expected, free, xs)
        if n != COMPILED or not (dtype is float32 or subject.depth == "deep"):
            continue
        batch = [put(subject.stack, np.stack([x, x]), dtype) for x in xs]
        got = subject.read(tk.vmap(row.call)(*batch))
        _agree(f"{case.op} under vmap", got, np.stack([expected] * 2), np.stack([free] * 2), xs)
        _agree(f"{case.op} under jit", subject.read(_jitted(row.call, tensors)), expected, free, xs)


def _operands(row: Row, rng: random.Random, n: int) -> tuple[list[Array], Array]:
    """Operands with rows of n elements, and a result that every float dtype represents."""
    while True:
        xs = [_drawn(rng, row.values, n) for _ in range(row.operands)]
        with np.errstate(all="ignore"):
            expected = np.asarray(row.model(*xs))
        if _exact(expected):
            return xs, expected


def _check_program(subject: Subject, dtype: DType, rng: random.Random) -> None:
    """Draw steps whose results are exact; run them one by one, then as one compiled program."""
    n = rng.choice(SIZES)
    values = SPECIAL if rng.random() < 0.3 else SMALL
    leaves = [_drawn(rng, values, n) for _ in range(2)]
    arrays, texts, used = list(leaves), ["a", "b"], set[int]()
    steps: list[tuple[Row, list[int]]] = []
    while len(steps) < LENGTH:
        name = rng.choice([*STEPS])
        row = STEPS[name]
        positions = [rng.randrange(max(0, len(arrays) - 3), len(arrays)) for _ in range(row.operands)]
        with np.errstate(all="ignore"):
            y = np.asarray(row.model(*[arrays[i] for i in positions]))
        if not _exact(y) or (name == "copysign" and np.isnan(arrays[positions[1]]).any()):
            continue  # the sign of a NaN is unspecified
        steps.append((row, positions))
        used.update(positions)
        arrays.append(y)
        texts.append(row.text.format(*[_bracketed(texts[i]) for i in positions]))
    ends = [i for i in range(2, len(arrays)) if i not in used]

    def function(*xs: Tensor) -> list[Tensor]:
        tensors = list(xs)
        for row, positions in steps:
            tensors.append(row.call(*[tensors[i] for i in positions]))
        return [tensors[i] for i in ends]

    tensors = [put(subject.stack, x, dtype) for x in leaves]
    for way, results in (("", function(*tensors)), (" under jit", _jitted(function, tensors))):
        for i, y in zip(ends, results, strict=True):
            _agree(f"{texts[i]}{way}", subject.read(y), arrays[i], np.zeros(arrays[i].shape, bool), leaves)


def _bracketed(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


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


def _jitted(function: Callable[..., Any], tensors: Sequence[Tensor]) -> Any:
    return tk.jit(lambda *xs: function(*xs))(*tensors)


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
