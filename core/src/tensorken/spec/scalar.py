"""The meaning of elementwise ops on single Python floats: math functions that follow IEEE and never raise."""

from __future__ import annotations

import math
from collections.abc import Callable


def _total(function: Callable[[float], float], beyond: Callable[[float], float]) -> Callable[[float], float]:
    """`function`, with the value that IEEE gives where the math module raises."""

    def call(x: float) -> float:
        try:
            return function(x)
        except (ValueError, OverflowError):
            return beyond(x)

    return call


def _nan(x: float) -> float:
    return math.nan


exp = _total(math.exp, lambda x: math.inf)
log = _total(math.log, lambda x: -math.inf if x == 0 else math.nan)
sin = _total(math.sin, _nan)
cos = _total(math.cos, _nan)
tan = _total(math.tan, _nan)
sqrt = _total(math.sqrt, _nan)
log1p = _total(math.log1p, lambda x: -math.inf if x == -1 else math.nan)
expm1 = _total(math.expm1, lambda x: math.inf)
sinh = _total(math.sinh, lambda x: math.copysign(math.inf, x))
cosh = _total(math.cosh, lambda x: math.inf)
asin = _total(math.asin, _nan)
acos = _total(math.acos, _nan)
acosh = _total(math.acosh, _nan)
atanh = _total(math.atanh, lambda x: math.copysign(math.inf, x) if abs(x) == 1 else math.nan)


def div(a: float, b: float) -> float:
    """a / b, with IEEE's infinities and NaN where b is 0."""
    if b != 0 or math.isnan(b):
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)


def pow(a: float, b: float) -> float:
    """a**b as C's pow."""
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:
        if a == 0:
            return math.copysign(math.inf, a) if b % 2 == 1 else math.inf
        return math.nan


def sigmoid(x: float) -> float:
    """1 / (1 + e**-x)."""
    z = exp(-abs(x))
    return (z if x < 0 else 1.0) / (1.0 + z)


def sign(x: float) -> float:
    """-1, 0 or 1; zeros and NaN stay as they are."""
    return x if x == 0 or x != x else math.copysign(1.0, x)


def maximum(a: float, b: float) -> float:
    """The larger; NaN if either is."""
    return b if a < b or b != b else a


def minimum(a: float, b: float) -> float:
    """The smaller; NaN if either is."""
    return b if b < a or b != b else a


def relu(x: float) -> float:
    """max(x, 0); NaN stays."""
    return x if x > 0 or x != x else 0.0
