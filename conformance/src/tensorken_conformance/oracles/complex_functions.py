"""Complex functions: the elementary functions of complex numbers, with enough digits, by mpmath.

A zero stands for a number of its sign that is too small to be represented, in the imaginary part for an even smaller
one.  So results on branch cuts, and the signs of zeros in results, are limits, as in annex G of the C standard.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from tensorken_conformance.oracles.elementwise_functions import mp

SMALL = -300, -900
"""The exponents of the numbers that zeros stand for, in the real and in the imaginary part."""

VANISHES = -140
"""The exponent below which a part of a result is a zero with its sign."""

Number = Any
"""A complex number of mpmath."""


def _sigmoid(z: Number) -> Number:
    return 1 / (1 + mp.exp(-z))


FUNCTIONS: dict[str, Callable[[Number], Number]] = {
    **{name: getattr(mp, name) for name in ("exp", "log", "sqrt", "sin", "cos", "tan")},
    **{name: getattr(mp, name) for name in ("sinh", "cosh", "tanh", "asin", "acos", "atan")},
    **{name: getattr(mp, name) for name in ("asinh", "acosh", "atanh")},
    "expm1": lambda z: mp.exp(z) - 1,
    "exp2": lambda z: mp.exp(z * mp.log(2)),
    "log1p": lambda z: mp.log(1 + z),
    "log2": lambda z: mp.log(z) / mp.log(2),
    "log10": lambda z: mp.log(z) / mp.log(10),
    "sigmoid": _sigmoid,
    "square": lambda z: z * z,
    "reciprocal": lambda z: 1 / z,
    "sign": lambda z: z / abs(z),
}
"""The functions of one number, at the precision of `mp`."""


def precision(*parts: float) -> int:
    """The bits with which a function is evaluated: 200 after those that a small part takes from 1."""
    sizes = [abs(math.frexp(x)[1]) if x else -SMALL[1] for x in parts if math.isfinite(x)]
    return 200 + 3 * max([0, *sizes])


def exactly(name: str, x: float, y: float) -> Number:
    """The value of a function at x + iy, of which no part is infinite or NaN.

    >>> mp.nstr(exactly("sqrt", -4.0, -0.0).imag, 5)
    '-2.0'
    """
    return _exactly(name, x.hex(), y.hex())  # as keys of a cache 0.0 and -0.0 are equal


@functools.cache
def _exactly(name: str, *numbers: str) -> Number:
    x, y = [float.fromhex(number) for number in numbers]
    with mp.workprec(precision(x, y)):
        parts = [
            mp.ldexp(math.copysign(1, part), exponent) if part == 0 else mp.mpf(part)
            for part, exponent in zip((x, y), SMALL, strict=True)
        ]
        return FUNCTIONS[name](mp.mpc(*parts))


def part(x: Number) -> float:
    """A part of a result as the nearest float64, with the sign of zeros."""
    return math.copysign(0.0, -1.0 if x < 0 else 1.0) if abs(x) < mp.ldexp(1, VANISHES) else float(x)
