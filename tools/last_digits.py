"""A plugin of pytest, `-p tools.last_digits`: numpy's functions round as another library's might.

Each result of `exp`, `log`, `sin` and their like that is not a round number may be the float next to it, as its bits
decide: so the same number always gives the same.  What a page or a docstring prints must not change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

FUNCTIONS = (
    "exp", "exp2", "expm1", "log", "log2", "log1p", "log10", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
    "arctan2", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "power", "float_power", "logaddexp",
    "cbrt", "hypot",
)  # fmt: skip
"""numpy's functions that are not rounded correctly."""

ROUND = 12
"""Numbers whose last bits, so many of them, are zeros stay: 1, 0.5, 1024 are what any library gives."""


def moved(x: Any) -> Any:
    """The numbers of an array of float32 or float64, a third to a half of them replaced by the float next to them.

    >>> x = np.array([0.5, 1024.0, np.inf, np.nan, 0.0])
    >>> np.array_equal(moved(x), x, equal_nan=True)
    True
    """
    x = np.asarray(x)
    bits = np.ascontiguousarray(x).view(f"i{x.dtype.itemsize}").reshape(x.shape)
    drawn = (bits ^ (bits >> 7) ^ (bits >> 13)) & 3
    may = (bits & (2**ROUND - 1) != 0) & np.isfinite(x) & (np.abs(x) > 4 * np.finfo(x.dtype).tiny)
    infinity = x.dtype.type(np.inf)
    with np.errstate(all="ignore"):
        above, below = np.nextafter(x, infinity), np.nextafter(x, -infinity)
    return np.where(may & (drawn == 1), above, np.where(may & (drawn == 2), below, x))


class Other:
    """A function of numpy, rounded otherwise; in all else the function."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    def __call__(self, *operands: Any, **named: Any) -> Any:
        result = self.function(*operands, **named)
        if not isinstance(result, np.ndarray | np.generic) or result.dtype not in (np.float32, np.float64):
            return result
        if not isinstance(result, np.ndarray):
            return moved(result)[()]
        result[...] = moved(result)  # which may be what `out` named
        return result


def pytest_configure() -> None:
    """Put the others in the places of numpy's functions."""
    for name in FUNCTIONS:
        setattr(np, name, Other(getattr(np, name)))
