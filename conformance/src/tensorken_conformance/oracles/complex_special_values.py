"""Complex special values: results at infinities, NaN and poles, from the tables of the array API standard.

The tables have rows for numbers in the upper half-plane, for odd and even functions in the first quadrant; the others
follow from f(conj z) = conj f(z), f(-z) = -f(z) and f(-z) = f(z).  They are those of annex G of the C standard, except
that tanh of an infinity has an imaginary part with the sign of that of the operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable

inf, nan = math.inf, math.nan

Result = tuple[str, str]
"""The real and the imaginary part: a number, or one of `+-0` and `+-inf`, which may have either sign."""

Row = tuple[str, str, str, str]
"""Kinds of the real and of the imaginary part of an operand, and the parts of the result."""

KINDS: dict[str, Callable[[float], bool]] = {
    "any": lambda x: True,
    "0": lambda x: x == 0,
    "1": lambda x: x == 1,
    "-1": lambda x: x == -1,
    "finite": math.isfinite,
    "nonzero": lambda x: math.isfinite(x) and x != 0,
    "inf": lambda x: x == inf,
    "-inf": lambda x: x == -inf,
    "+-inf": math.isinf,
    "nan": math.isnan,
    "not 0": lambda x: x != 0,
    "-0": lambda x: x == 0 and math.copysign(1, x) < 0,
}
"""The kinds of a part; the first row with the kinds of both parts counts."""

_LOG: tuple[Row, ...] = (
    ("finite", "inf", "inf", "pi/2"),
    ("-inf", "finite", "inf", "pi"),
    ("inf", "finite", "inf", "0"),
    ("-inf", "inf", "inf", "3pi/4"),
    ("inf", "inf", "inf", "pi/4"),
    ("+-inf", "nan", "inf", "nan"),
    ("nan", "inf", "inf", "nan"),
    ("any", "any", "nan", "nan"),
)

TABLES: dict[str, tuple[Row, ...]] = {
    "exp": (
        ("finite", "any", "nan", "nan"),
        ("inf", "0", "inf", "0"),
        ("-inf", "finite", "0*cos", "0*sin"),
        ("inf", "nonzero", "inf*cos", "inf*sin"),
        ("-inf", "any", "+-0", "+-0"),
        ("inf", "any", "+-inf", "nan"),
        ("nan", "0", "nan", "0"),
        ("nan", "any", "nan", "nan"),
    ),
    "expm1": (
        ("0", "0", "0", "0"),
        ("finite", "any", "nan", "nan"),
        ("inf", "0", "inf", "0"),
        ("-inf", "finite", "-1", "0*sin"),
        ("inf", "nonzero", "inf*cos", "inf*sin"),
        ("-inf", "any", "-1", "+-0"),
        ("inf", "any", "+-inf", "nan"),
        ("nan", "0", "nan", "0"),
        ("nan", "any", "nan", "nan"),
    ),
    "log": (("-0", "0", "-inf", "pi"), ("0", "0", "-inf", "0"), *_LOG),
    "log1p": (("-1", "0", "-inf", "0"), ("0", "0", "+-0", "0"), *_LOG),
    "sqrt": (
        ("any", "inf", "inf", "inf"),
        ("-inf", "finite", "0", "inf"),
        ("inf", "finite", "inf", "0"),
        ("-inf", "nan", "nan", "+-inf"),
        ("inf", "nan", "inf", "nan"),
        ("any", "any", "nan", "nan"),
    ),
    "sinh": (
        ("0", "any", "+-0", "nan"),
        ("finite", "any", "nan", "nan"),
        ("inf", "0", "inf", "0"),
        ("inf", "finite", "inf*cos", "inf*sin"),
        ("inf", "any", "+-inf", "nan"),
        ("nan", "0", "nan", "0"),
        ("nan", "any", "nan", "nan"),
    ),
    "cosh": (
        ("0", "any", "nan", "+-0"),
        ("finite", "any", "nan", "nan"),
        ("inf", "0", "inf", "0"),
        ("inf", "finite", "inf*cos", "inf*sin"),
        ("inf", "any", "+-inf", "nan"),
        ("nan", "0", "nan", "+-0"),
        ("nan", "any", "nan", "nan"),
    ),
    "tanh": (
        ("0", "any", "0", "nan"),
        ("finite", "any", "nan", "nan"),
        ("inf", "finite", "1", "0"),
        ("inf", "any", "1", "+-0"),
        ("nan", "0", "nan", "0"),
        ("nan", "any", "nan", "nan"),
    ),
    "asinh": (
        ("finite", "inf", "inf", "pi/2"),
        ("inf", "finite", "inf", "0"),
        ("inf", "inf", "inf", "pi/4"),
        ("inf", "nan", "inf", "nan"),
        ("nan", "0", "nan", "0"),
        ("nan", "inf", "+-inf", "nan"),
        ("any", "any", "nan", "nan"),
    ),
    "acosh": (("0", "nan", "nan", "+-pi/2"), *_LOG),
    "acos": (
        ("0", "nan", "pi/2", "nan"),
        ("finite", "inf", "pi/2", "-inf"),
        ("-inf", "finite", "pi", "-inf"),
        ("inf", "finite", "0", "-inf"),
        ("-inf", "inf", "3pi/4", "-inf"),
        ("inf", "inf", "pi/4", "-inf"),
        ("+-inf", "nan", "nan", "+-inf"),
        ("nan", "inf", "nan", "-inf"),
        ("any", "any", "nan", "nan"),
    ),
    "atanh": (
        ("0", "nan", "0", "nan"),
        ("1", "0", "inf", "0"),
        ("finite", "inf", "0", "pi/2"),
        ("inf", "nan", "0", "nan"),
        ("inf", "any", "0", "pi/2"),
        ("nan", "inf", "+-0", "pi/2"),
        ("any", "any", "nan", "nan"),
    ),
}
"""The rows of functions; `inf*cos` has the sign of the cosine of the imaginary part."""

ODD = ("sinh", "tanh", "asinh", "atanh")

EVEN = ("cosh",)

TURNED = {"sin": "sinh", "tan": "tanh", "asin": "asinh", "atan": "atanh"}
"""Functions f(z) = -i g(iz)."""

FINITE: dict[str, tuple[complex, ...]] = {
    "log": (0j,),
    "log2": (0j,),
    "log10": (0j,),
    "log1p": (-1 + 0j, 0j),
    "expm1": (0j,),
    "atanh": (1 + 0j, -1 + 0j),
    "atan": (1j, -1j),
}
"""The finite numbers in the tables: poles, and zeros that lose their sign."""

DIVISORS = {"log2": math.log(2.0), "log10": math.log(10.0)}
"""Multiples of log."""


def special(name: str, x: float, y: float) -> Result | None:
    """The parts of the result at a number of the tables; None at other numbers.

    >>> special("exp", -inf, nan), special("sqrt", -inf, -1.0), special("sqrt", -4.0, 0.0)
    (('+-0', '+-0'), ('0.0', '-inf'), None)
    """
    if math.isfinite(x) and math.isfinite(y) and complex(x, y) not in FINITE.get(name, ()):
        return None
    if name in TURNED:
        real, imag = _found(TURNED[name], -y, x)
        return imag, _negated(real)
    if name == "cos":
        return _found("cosh", -y, x)
    real, imag = _found("log" if name in DIVISORS else name, x, y)
    return (real, _divided(imag, DIVISORS[name])) if name in DIVISORS else (real, imag)


def _found(name: str, x: float, y: float) -> Result:
    if math.copysign(1, y) < 0 and not math.isnan(y):
        real, imag = _found(name, x, -y)
        return real, _negated(imag)
    if math.copysign(1, x) < 0 and not math.isnan(x) and name in (*ODD, *EVEN):
        # f(-z) = f(conj(-conj z)): the number with the opposite real part
        real, imag = _found(name, -x, y)
        return (_negated(real), imag) if name in ODD else (real, _negated(imag))
    for first, second, real, imag in TABLES[name]:
        if KINDS[first](x) and KINDS[second](y):
            return _evaluated(real, y), _evaluated(imag, y)
    raise LookupError(f"the table of {name} has no row for {complex(x, y)}")


def _evaluated(text: str, y: float) -> str:
    size, _, function = text.partition("*")
    if function:
        return repr(math.copysign(float(size), getattr(math, function)(y)))
    if text.startswith("+-"):
        return text
    return repr(_number(text))


def _number(text: str) -> float:
    if "pi" not in text:
        return float(text)
    times, _, over = text.partition("pi")
    return float(times or 1) * math.pi / float(over.lstrip("/") or 1)


def _negated(text: str) -> str:
    return text if text.startswith("+-") else repr(-float(text))


def _divided(text: str, by: float) -> str:
    return text if text.startswith("+-") else repr(float(text) / by)


def agrees(found: float, expected: str, tolerance: float) -> bool:
    """Whether a part of a result is the expected one, up to a relative error where this is neither 0 nor infinite."""
    either = expected.startswith("+-")
    value = _number(expected[2:]) if either else float(expected)
    if math.isnan(value) or math.isnan(found):
        return math.isnan(value) and math.isnan(found)
    same_sign = either or math.copysign(1, found) == math.copysign(1, value)
    if value == 0 or math.isinf(value):
        return abs(found) == abs(value) and same_sign
    return same_sign and abs(abs(found) - abs(value)) <= tolerance * abs(value)
