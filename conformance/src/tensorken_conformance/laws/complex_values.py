"""values.complex: functions of complex numbers, within the sum of the errors of their formulas.

Formulas are real ops on the parts (`tensorken/complex_numbers/`), so their errors are those of the real ops.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law
from tensorken_conformance.numbers.rounding import FORMATS
from tensorken_conformance.oracles import complex_functions, terms
from tensorken_conformance.oracles.bounds import Arithmetic, Array
from tensorken_conformance.oracles.elementwise_functions import mp
from tensorken_conformance.subject import Subject, put_parts
from tensorken_core.language.dtypes import DTYPES

ID = "values.complex"

COUNT = 40
"""The number of operands of a case, the same for all, so that a backend compiles each op once."""

_ROOT = ("hypot", "add", "mul", "sqrt", "div", "mul", "mul")
_ROOTS = (*_ROOT, *_ROOT, "add", "add", "mul", "mul", "sub")
_HYPERBOLIC = ("cosh", "exp", "sin", "mul", "mul", "mul")
_TANGENT = ("sinh", "cosh", "sin", "cos", "sinh", "cos", "mul", "mul", "mul", "add", "div")
_LOGARITHM = ("hypot", "log", "log1p", "mul", "mul", "mul", "add", "add", "add", "atan2")

TERMS: dict[str, tuple[str, ...]] = {
    "exp": ("exp", "sin", "mul", "mul", "mul"),
    "exp2": ("exp2", "sin", "mul", "mul", "mul"),
    "expm1": ("expm1", "exp", "sin", "sin", "cos", "mul", "mul", "mul", "sub"),
    "sigmoid": ("exp", *("expm1",) * 2, "sin", *("cos",) * 4, *("mul",) * 6, "add", "add", "div"),
    "log": _LOGARITHM,
    "log2": (*_LOGARITHM, "div", "mul"),
    "log10": (*_LOGARITHM, "div", "mul"),
    "log1p": (*_LOGARITHM, "add", "mul"),
    "sqrt": _ROOT,
    **dict.fromkeys(("sinh", "cosh", "sin", "cos"), _HYPERBOLIC),
    **dict.fromkeys(("tanh", "tan"), (*_TANGENT, "exp")),
    **dict.fromkeys(("asinh", "asin", "acosh", "acos"), (*_ROOTS, "asinh", "atan2")),
    **dict.fromkeys(("atanh", "atan"), ("log1p", "atan2", "div", "div", *("mul",) * 6, "add", "add", "add")),
    "square": ("add", "add", "mul"),
    "reciprocal": ("div", "div", "div", "mul", "mul", "add", "add"),
    "sign": ("div", "div", "div", "sqrt", "mul", "add"),
}
"""The real ops whose relative errors add up to that of a function of one number."""

BY_PARTS = frozenset(TERMS) - {"log", "log2", "log10", "log1p", "expm1", "exp2", "sigmoid"}
"""The functions whose parts have small relative errors each; those of the others are relative to the modulus.

Near the unit circle the real part of a logarithm is a difference, as that of expm1 where exp(x) cos(y) is near 1.
"""

PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
}
"""The operators of two numbers."""

TERMS_OF_PAIRS: dict[str, tuple[str, ...]] = {
    "add": ("add",),
    "sub": ("sub",),
    "mul": ("mul", "add", "add"),
    "div": ("div", "div", "div", "mul", "mul", "add", "add", "add", "add"),
    "pow": ("exp", "sin", "mul", "mul", "mul"),
}

GROWING = frozenset(("exp", "exp2", "expm1", "sigmoid", "sinh", "cosh", "sin", "cos", "tanh", "tan"))
"""Functions that are not tried far from 0, since a part may be an angle or an exponent."""

AT_THE_BRINK = ("exp", "expm1", "sinh", "cosh", "sin", "cos")
"""Functions whose exponential overflows before the result does."""

VALUES = ("normals", "wide", "near", "steep", "far", "brink")
"""Value classes; `near`: 1, -1, i, -i and other critical points; `far`: of all exponents; `brink`: just finite."""

CRITICAL = (
    *(1, -1, 1j, -1j, 2, cmath.exp(1j), cmath.exp(2.5j), 1.2784645427610738j),
    *(math.pi, math.pi / 2, math.pi / 2 * 1j),
)


def classes(name: str) -> tuple[str, ...]:
    """The value classes of a function."""
    if name in PAIRS:
        return ("normals",) if name == "pow" else ("normals", "wide", "far")
    return tuple(
        [v for v in VALUES if (v != "far" or name not in GROWING) and (v != "brink" or name in AT_THE_BRINK)]
    )


def cases(subject: Subject) -> Iterator[Case]:
    """Each function and value class; in a smoke run one of two functions."""
    wide = [dtype for dtype in subject.dtypes() if dtype.name in ("float32", "float64")]
    for dtype in subject.sampled(wide):
        if subject.depth == "smoke":
            yield from [Case(ID, f"complex-{name}", dtype.name, values="normals") for name in ("mul", "sqrt")]
            continue
        for name in (*TERMS, *PAIRS):
            for values in classes(name):
                yield Case(ID, f"complex-{name}", dtype.name, values=values)


def drawn(rng: np.random.Generator, values: str, name: str, dtype: str) -> Array:
    """The parts of numbers of a value class."""
    n = rng.standard_normal((2, COUNT))
    steep = {"float32": 87.0, "float64": 700.0}[dtype]
    if values == "wide":
        n = n * np.exp(rng.uniform(-12, 3, (2, COUNT)))
    elif values == "near":
        offset = 2.0 ** -rng.uniform(1, 20, COUNT) * np.exp(2j * np.pi * rng.random(COUNT))
        w = rng.choice(CRITICAL, COUNT) * (1 + offset)
        n = np.stack([w.real, w.imag])
    elif values == "far":
        most = {"float32": 62, "float64": 505}[dtype]
        n = n * 2.0 ** rng.uniform(-most, most, (1, COUNT)) * 2.0 ** rng.uniform(-4, 4, (2, COUNT))
    elif values == "steep":
        n = np.stack([rng.uniform(-steep, steep, COUNT), rng.uniform(-20, 20, COUNT)])
    elif values == "brink":
        top = math.log(float(FORMATS[dtype].largest)) + (0.0 if name.startswith("exp") else math.log(2.0))
        quarter = np.pi / 4 + np.pi / 2 * rng.integers(-3, 3, COUNT) + rng.uniform(-0.1, 0.1, COUNT)
        n = np.stack([top + rng.uniform(0.05, 0.2, COUNT), quarter])
    if name in ("sin", "cos", "tan"):
        n = n[::-1]
    return np.array(n, dtype)


@dataclass(frozen=True, slots=True)
class Problem:
    """The parts of the operands, the exact results, and what the errors of each are multiplied by."""

    operands: list[Array]
    results: list[Any]
    growth: list[float]


@terms.remembered
def problem(subject: Subject, case: Case) -> Problem:
    """The operands and the exact results of a case."""
    rng, name = terms.generator(subject, case), case.op.partition("-")[2]
    first = drawn(rng, case.values, name, case.dtype)
    if name not in PAIRS:
        points = [(float(x), float(y)) for x, y in first.T]
        results = [complex_functions.exactly(name, *point) for point in points]
        turns = math.log(2.0) if name == "exp2" else 0.0  # the angle is rounded
        return Problem([first], results, [abs(y) * turns for _, y in points])
    second = drawn(rng, case.values, name, case.dtype)
    if name == "div" and case.values == "far":  # squares of divisors overflow, quotients are of moderate size
        most = {"float32": 110, "float64": 1000}[case.dtype]
        scale = 2.0 ** rng.uniform(-most, most, COUNT)
        first, second = [drawn(rng, "normals", name, case.dtype) * scale.astype(case.dtype) for _ in range(2)]
    results, growth = [], []
    with mp.workprec(400):
        for a, b in zip(first.T, second.T, strict=True):
            p, q = [mp.mpc(float(x), float(y)) for x, y in (a, b)]
            results.append(PAIRS[name](p, q))
            growth.append(4 * float(abs(q * mp.log(p))) if name == "pow" else 0.0)  # the exponent is rounded
    return Problem([first, second], results, growth)


@law(ID, cases, level=2)
def check_complex(subject: Subject, case: Case) -> Measured:
    """Functions of complex numbers are off by no more than the errors of the real ops in their formulas.

    The error is relative to the modulus, and for most functions also to each part, where these are normal numbers.  No
    result overflows before a part of it does.
    """
    name, dtype = case.op.partition("-")[2], DTYPES[case.dtype]
    given = problem(subject, case)
    operands = [put_parts(subject.stack, x, dtype) for x in given.operands]
    y = PAIRS[name](*operands) if name in PAIRS else getattr(tk, name)(operands[0])
    real, imag = subject.read(y.real), subject.read(y.imag)
    arithmetic = Arithmetic(subject.capabilities, case.dtype)
    share = sum([arithmetic.error(op) for op in (TERMS | TERMS_OF_PAIRS)[name]], Fraction(0))
    form, worst = arithmetic.format, (0.0, "")
    least, most = mp.mpf(float(form.normal / form.unit**2)), mp.mpf(float(form.largest)) * (1 - 2.0**-8)
    for k, (expected, growth) in enumerate(zip(given.results, given.growth, strict=True)):
        got = float(real[k]), float(imag[k])
        parts = expected.real, expected.imag
        size = abs(expected)
        if size < least or max(map(abs, parts)) > most:
            continue
        allowed = float(share) + growth * float(2 * form.unit)
        where = f"{name}({', '.join([str(complex(*x[:, k])) for x in given.operands])})"
        sizes = {"modulus": size}
        if name in BY_PARTS or name in ("add", "sub"):
            sizes |= {"real part": abs(parts[0]), "imaginary part": abs(parts[1])}
        if not all(map(math.isfinite, got)):
            raise Failure(f"{where}: expected {_shown(expected)}, got {complex(*got)}")
        apart = [abs(mp.mpf(g) - p) for g, p in zip(got, parts, strict=True)]
        errors = {"modulus": mp.hypot(*apart), "real part": apart[0], "imaginary part": apart[1]}
        for what, compared in sizes.items():
            if compared < least:
                continue
            error = float(errors[what] / compared)
            units = error / float(2 * form.unit)
            if error > allowed:
                raise Failure(
                    f"{where}: expected {_shown(expected)}, got {complex(*got)}, which is off by {units:.3g} units of "
                    f"the {what}, at most {allowed / float(2 * form.unit):.3g} are allowed",
                    ulp=units,
                )
            worst = max(worst, (units, where))
    return Measured(*worst)


def _shown(z: Any) -> str:
    return f"{mp.nstr(z.real, 17)} + {mp.nstr(z.imag, 17)}i"
