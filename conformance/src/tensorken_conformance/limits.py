"""Limits: the largest errors that the levels of the kit allow in a rounded op, with their sources.

An error is a distance in representable numbers (ulp.py) from the correctly rounded result. A backend that declares a
smaller error must keep to it; one that declares a larger error does not reach the level. Exact ops (all ops on ints and
bools, comparisons, signs, rounding to integers, and nextafter) have no error at any level.

Level 2 takes the table of the OpenCL SPIR-V environment specification, "ULP values for math instructions, full
profile", which devices are tested for, and 4 where the table has less, since vector functions of processors may have
such errors (numpy's validation sets allow 4 for its logarithm).  A real error of e units in the
last place is at most `floor(e + 1/2)` numbers from the correctly rounded one. Functions that are not in the table are
bounded by the sum of the errors in their formula.

Level 1 is only for required ops on ordinary numbers, which must be usable: the same specification's bound for the
`half_` variants of a function, 10 bits or 8192 units in float32, and rounding towards zero in sums and products, as
its embedded profile has it.

If float16 is computed in float32 and rounded at the end, sums, differences, products, quotients and roots are still
correctly rounded, since 24 bits are two more than twice 11 (S. A. Figueroa, "When is double rounding
innocuous?", 1995); so are those of bfloat16, which has 8 bits.  So these have no error in float16 and bfloat16 either;
functions have the errors of the table for float16.
"""

from __future__ import annotations

from tensorken_core.language.capabilities import Capabilities

ARITHMETIC = ("add", "sub", "mul", "square")
"""The ops that every device rounds correctly."""

QUOTIENTS = ("div", "reciprocal", "sqrt")
"""The ops that the table rounds correctly, but in float32 within 2.5 (div) or 3 units (sqrt)."""

FUNCTIONS: dict[str, int] = {
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log2", "log10", "log1p"), 4),
    **dict.fromkeys(("sin", "cos", "asin", "acos", "sinh", "cosh", "asinh", "acosh", "hypot"), 4),
    **dict.fromkeys(("tan", "atan", "tanh", "atanh"), 5),
    "atan2": 6,
    **dict.fromkeys(("pow", "erf", "erfinv"), 16),
    "sigmoid": 7,  # 1 / (1 + exp(-x)): 4, 1/2 and 2.5
    "softplus": 9,  # max(x, 0) + log1p(exp(-abs(x))): 4, 4 and 1/2
    "logaddexp": 9,  # as softplus, relative to its operands (see laws/elementwise.py)
    "sech_squared": 11,  # 1 / (cosh(x) * cosh(x)): twice 4, 1/2 and 2.5
    "gaussian": 5,  # exp(-x**2) from the exact square: 4 and a correction
}
"""Units in the last place at level 2 in float32 and float64."""

NARROW = ("float16", "bfloat16")
"""The dtypes that are narrower than float32."""

IN_NARROW = {"pow": 4, "erf": 4, "erfinv": 4}
"""The same in narrow dtypes, for functions with more than 2."""

OTHERS = 16
"""The same for functions of plugins."""

USABLE = {"float16": 4, "bfloat16": 4, "float32": 8192, "float64": 8192}
"""Level 1."""


def largest(op: str, dtype: str, level: int) -> int:
    """The largest error of a rounded op at a level.

    >>> largest("exp", "float32", 2), largest("exp", "float16", 2), largest("div", "float64", 2)
    (4, 2, 0)
    """
    if level < 2:
        return 1 if op in ARITHMETIC else USABLE[dtype]
    if op in ARITHMETIC:
        return 0
    if op in QUOTIENTS:
        return 3 if dtype == "float32" else 0
    if dtype in NARROW:
        return IN_NARROW.get(op, 2)
    return FUNCTIONS.get(op, OTHERS)


def allowed(capabilities: Capabilities, op: str, dtype: str, level: int) -> int:
    """The allowed error of a rounded op: the declared one, and at most the limit of its level.

    >>> [allowed(Capabilities(ulp={"exp": ulp}), "exp", "float32", 2) for ulp in (1, 9)]
    [1, 4]
    """
    declared = capabilities.largest_error(op, dtype)
    cap = largest(op, dtype, level)
    return cap if declared is None else min(cap, declared)
