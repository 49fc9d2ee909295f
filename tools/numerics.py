"""Measure the errors of functions and their derivatives against mpmath, and update the table of docs/numerics.md.

Errors are in units in the last place of the exact value; for subnormal values, in units of the smallest subnormal.
Operands are drawn from every binade of both signs, and more densely near critical points. The table has, for each
function and dtype, the largest error of the numpy backend and the default bodies, rounded up. A test compares the
library with the table; `python -m tools.numerics` lowers numbers that are too high, and never raises any.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

import tensorken as tk
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tools.workspace import ROOT

PAGE = ROOT / "docs" / "numerics.md"
DTYPES = ("float32", "float64")
HEAD = "| function | value, float32 | float64 | derivative, float32 | float64 |"

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """A function and its derivative in mpmath, its domain, and the points near which operands are denser."""

    value: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    intervals: tuple[tuple[float, float], ...] = ((-2.0, 2.0), (-20.0, 20.0))
    around: tuple[float, ...] = (1.0, -1.0)
    defined: Callable[[float], bool] = field(default=lambda x: True)
    curvature: Callable[[Any], Any] | None = None  # the second derivative


def _sech(x: Any) -> Any:
    return 1 / mpmath.cosh(x)


_LN2, _LN10 = (lambda: mpmath.log(2)), (lambda: mpmath.log(10))
_WIDE = ((-2.0, 2.0), (-20.0, 20.0), (-110.0, 110.0), (-746.0, 746.0))
_EXP = ((-1.0, 1.0), (-104.0, 88.7), (-745.0, 709.7))
_POSITIVE: Callable[[float], bool] = lambda x: x > 0.0  # noqa: E731

ROWS: dict[str, Row] = {
    "exp": Row(mpmath.exp, mpmath.exp, _EXP, (88.72, 709.78, -103.9, -745.1), curvature=mpmath.exp),
    "expm1": Row(
        mpmath.expm1,
        mpmath.exp,
        _EXP,
        (0.35, -0.35, 18.0, -18.0, 38.0, -38.0, 88.72, 709.78),
        curvature=mpmath.exp,
    ),
    "exp2": Row(
        lambda x: mpf(2) ** x,
        lambda x: mpf(2) ** x * _LN2(),
        ((-1.0, 1.0), (-149.0, 127.9), (-1074.0, 1023.9)),
        defined=lambda x: not 128.0 <= x < 129.0 and not 1024.0 <= x < 1025.0,
    ),
    "sigmoid": Row(
        lambda x: 1 / (1 + mpmath.exp(-x)),
        lambda x: _sech(x / 2) ** 2 / 4,
        _WIDE,
        (40.0, -88.7, 88.7, -103.0, 103.0, -709.0, 709.0, 744.0),
        curvature=lambda x: -(_sech(x / 2) ** 2) * mpmath.tanh(x / 2) / 4,
    ),
    "softplus": Row(
        lambda x: mpmath.log1p(mpmath.exp(x)),
        lambda x: 1 / (1 + mpmath.exp(-x)),
        _WIDE,
        (40.0, -88.7, -103.0, -709.7, -744.0),
        curvature=lambda x: _sech(x / 2) ** 2 / 4,
    ),
    "tanh": Row(
        mpmath.tanh,
        lambda x: _sech(x) ** 2,
        ((-2.0, 2.0), (-20.0, 20.0), (-53.0, 53.0), (-374.0, 374.0)),
        (0.9, -0.9, 9.0, 19.0, 44.0, 51.5, 354.0, 372.0),
        curvature=lambda x: -2 * mpmath.tanh(x) * _sech(x) ** 2,
    ),
    "log": Row(mpmath.log, lambda x: 1 / x, ((0.4, 2.5), (0.0, 1e3)), (1.0,), _POSITIVE),
    "log1p": Row(
        mpmath.log1p,
        lambda x: 1 / (1 + x),
        ((-0.5, 1.5), (-1.0, -0.3), (0.0, 1e3)),
        (-0.4, 1.0, -1.0),
        lambda x: x > -1.0,
        lambda x: -1 / (1 + x) ** 2,
    ),
    "log2": Row(
        lambda x: mpmath.log(x) / _LN2(),
        lambda x: 1 / (x * _LN2()),
        ((0.4, 2.5), (0.0, 1e3)),
        (1.0,),
        _POSITIVE,
    ),
    "log10": Row(
        lambda x: mpmath.log(x) / _LN10(),
        lambda x: 1 / (x * _LN10()),
        ((0.4, 2.5), (0.0, 1e3)),
        (1.0,),
        _POSITIVE,
    ),
    "sqrt": Row(
        mpmath.sqrt,
        lambda x: 1 / (2 * mpmath.sqrt(x)),
        ((0.0, 4.0), (0.0, 1e3)),
        (1.0, 4.0),
        _POSITIVE,
        lambda x: -1 / (4 * x * mpmath.sqrt(x)),
    ),
    "erf": Row(
        mpmath.erf,
        lambda x: 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x),
        ((-1.5, 1.5), (-4.0, 4.0), (-10.3, 10.3), (-27.3, 27.3)),
        (1.0, -1.0, 3.9, 5.9, 9.4, 10.2, 26.6, 27.2),
        curvature=lambda x: -4 * x / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x),
    ),
    "sin": Row(mpmath.sin, mpmath.cos, ((-10.0, 10.0), (-1e4, 1e4)), (math.pi, math.pi / 2, 1e22)),
    "cos": Row(
        mpmath.cos, lambda x: -mpmath.sin(x), ((-10.0, 10.0), (-1e4, 1e4)), (math.pi, math.pi / 2, 1e22)
    ),
    "tan": Row(
        mpmath.tan, lambda x: 1 / mpmath.cos(x) ** 2, ((-2.0, 2.0), (-1e4, 1e4)), (math.pi, math.pi / 2)
    ),
    "asin": Row(
        mpmath.asin,
        lambda x: 1 / mpmath.sqrt((1 - x) * (1 + x)),
        ((-1.0, 1.0),),
        (0.5, 1.0, -1.0),
        lambda x: abs(x) < 1,
    ),
    "acos": Row(
        mpmath.acos,
        lambda x: -1 / mpmath.sqrt((1 - x) * (1 + x)),
        ((-1.0, 1.0),),
        (0.5, 1.0, -1.0),
        lambda x: abs(x) < 1,
    ),
    "atan": Row(mpmath.atan, lambda x: 1 / (1 + x * x), ((-1.0, 1.0), (-4.0, 4.0))),
    "sinh": Row(
        mpmath.sinh, mpmath.cosh, ((-10.0, 10.0), (79.0, 89.4), (-710.4, 710.4)), (80.0, 700.0, 89.41, 710.47)
    ),
    "cosh": Row(
        mpmath.cosh, mpmath.sinh, ((-10.0, 10.0), (79.0, 89.4), (-710.4, 710.4)), (80.0, 700.0, 89.41, 710.47)
    ),
    "asinh": Row(
        mpmath.asinh, lambda x: 1 / mpmath.sqrt(1 + x * x), ((-1.0, 1.0), (-10.0, 10.0)), (1e19, 1e154)
    ),
    "acosh": Row(
        mpmath.acosh,
        lambda x: 1 / mpmath.sqrt((x - 1) * (x + 1)),
        ((1.0, 1.5), (1.0, 10.0)),
        (1.0, 1e19),
        lambda x: x > 1,
    ),
    "atanh": Row(
        mpmath.atanh, lambda x: 1 / ((1 - x) * (1 + x)), ((-1.0, 1.0),), (1.0, -1.0), lambda x: abs(x) < 1
    ),
    "square": Row(lambda x: x * x, lambda x: 2 * x),
    "reciprocal": Row(lambda x: 1 / x, lambda x: -1 / (x * x)),
    "sech_squared": Row(
        lambda x: _sech(x) ** 2,
        lambda x: -2 * mpmath.tanh(x) * _sech(x) ** 2,
        ((-2.0, 2.0), (-20.0, 20.0), (-53.0, 53.0), (-374.0, 374.0)),
    ),
    "gaussian": Row(
        lambda x: mpmath.exp(-x * x),
        lambda x: -2 * x * mpmath.exp(-x * x),
        ((-1.5, 1.5), (-4.0, 4.0), (-10.3, 10.3), (-27.3, 27.3)),
    ),
}

SMOOTH = ("expm1", "log1p", "tanh", "sigmoid", "softplus", "erf", "sqrt")
"""Functions whose value and derivative must be within 4 units, on numpy and by the default body."""


# ---- operands and exact values --------------------------------------------------------------------


@cache
def operands(name: str, dtype: str, density: int = 1) -> Array:
    """Operands in the domain of the function: from every binade and sign, and more near critical points."""
    row, info, rng = ROWS[name], np.finfo(dtype), random.Random(f"{name} {dtype}")
    low, high = int(info.minexp - info.nmant), int(info.maxexp)
    numbers = [
        sign * math.ldexp(rng.uniform(1.0, 2.0), exponent)
        for exponent in range(low, high)
        for sign in (-1, 1)
        for _ in range(density)
    ]
    numbers += [rng.uniform(*interval) for interval in row.intervals for _ in range(200 * density)]
    for centre in row.around:
        numbers += [
            centre * (1.0 + rng.uniform(-1.0, 1.0) * 2.0 ** -rng.randrange(1, info.nmant + 2))
            for _ in range(60 * density)
        ]
    extremes = (info.max, info.tiny, info.smallest_subnormal, 3 * info.smallest_subnormal)
    numbers += [float(sign * x) for x in extremes for sign in (-1, 1)]
    with np.errstate(over="ignore"):
        x = np.array(numbers, dtype)
    result: Array = x[np.isfinite(x) & (x != 0) & np.array([row.defined(float(v)) for v in x])]
    return result


@cache
def exact_values(name: str, dtype: str, kind: str, density: int = 1) -> list[Any]:
    """The exact value, slope or curvature of the function at its operands."""
    oracle = getattr(ROWS[name], kind)
    with mpmath.workprec(200):
        return [oracle(mpf(float(v))) for v in operands(name, dtype, density)]


def distance(y: Any, true: Any, dtype: str) -> float:
    """The error of y in units in the last place of the true value; infinity counts as the next power of 2."""
    info = np.finfo(dtype)
    top = mpmath.ldexp(1, int(info.maxexp))
    y, true = (max(-top, min(top, mpf(v))) for v in (y, true))
    exponent = max(mpmath.frexp(true)[1], info.minexp + 1) if true else info.minexp + 1
    exponent = min(exponent, info.maxexp)
    return float(abs(y - true) / mpmath.ldexp(1, int(exponent - info.nmant - 1)))


def worst(name: str, dtype: str, kind: str, results: Array, density: int = 1) -> tuple[float, float]:
    """The largest error, and its operand; NaN counts as an infinite error."""
    true = exact_values(name, dtype, kind, density)
    with mpmath.workprec(200):
        errors = [
            math.inf if y != y else distance(float(y), t, dtype) for y, t in zip(results, true, strict=True)
        ]
    index = max(range(len(errors)), key=errors.__getitem__)
    return errors[index], float(operands(name, dtype, density)[index])


# ---- the table ------------------------------------------------------------------------------------


def function(name: str) -> Callable[[Any], Any]:
    """The op of this name as a function."""
    op = OPS[name]
    return lambda x: x.apply(op)


def measure(name: str, dtype: str, backend: RawTensor[Any], density: int = 1) -> tuple[float, float]:
    """The largest errors of the function and of its derivative on a backend."""
    f = function(name)
    x = tk.tensor(operands(name, dtype, density), backend=backend)
    value, slope = np.array(f(x)), np.array(tk.elementwise_grad(f)(x))
    return worst(name, dtype, "value", value, density)[0], worst(name, dtype, "slope", slope, density)[0]


def sweep(name: str, backend: RawTensor[Any]) -> tuple[float, float]:
    """The largest errors in float32 over a million operands in the intervals, against float64 on the numpy backend."""
    from tensorken_numpy.backend import Numpy

    row, rng = ROWS[name], np.random.default_rng(7)
    numbers = np.concatenate(
        [rng.uniform(*interval, 10**6 // len(row.intervals)) for interval in row.intervals]
    )
    narrow = numbers.astype(np.float32)
    narrow = narrow[np.array([row.defined(float(v)) for v in narrow])]
    errors = []
    for f in (function(name), tk.elementwise_grad(function(name))):
        results = np.array(f(tk.tensor(narrow, backend=backend)))
        true = np.array(f(tk.tensor(narrow.astype(np.float64), backend=Numpy())))
        finite = np.abs(true) < float(np.finfo(np.float32).max)
        unit = np.spacing(np.abs(true[finite]).astype(np.float32))
        errors.append(float(np.max(np.abs(results[finite] - true[finite]) / unit)))
    return errors[0], errors[1]


def published() -> dict[str, tuple[int, ...]]:
    """The numbers of the page: for each function, of value and derivative, each in float32 and float64."""
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|((?: *\d+ \|){4})$", text, re.MULTILINE)
    return {name: tuple(int(number) for number in re.findall(r"\d+", cells)) for name, cells in rows}


def main() -> None:
    """Measure more densely than the test, and write the numbers that have become lower."""
    from core.tests.support import Required
    from tensorken_numpy.backend import Numpy

    previous, lines = published(), []
    for name in ROWS:
        backends = (Numpy(), Required())
        errors = [[measure(name, dtype, backend, 8) for backend in backends] for dtype in DTYPES]
        errors[0] += [sweep(name, backend) for backend in backends]
        largest = [max(pair[kind] for pair in errors[i]) for kind in (0, 1) for i in (0, 1)]
        numbers = [math.ceil(error) for error in largest]
        print(f"{name:14}" + "".join(f"{error:8.2f}" for error in largest), flush=True)
        lower = [min(pair) for pair in zip(numbers, previous.get(name, numbers), strict=True)]
        lines.append(f"| `{name}` |" + "".join(f" {number} |" for number in lower))
    text = PAGE.read_text(encoding="utf-8")
    table = "\n".join([HEAD, "| --- |" + " --: |" * 4, *lines])
    pattern = re.escape(HEAD) + r"\n(?:\|.*\n)*"
    PAGE.write_text(re.sub(pattern, lambda _: table + "\n", text), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
