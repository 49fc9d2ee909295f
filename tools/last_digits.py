"""A pytest plugin, `-p tools.last_digits`, that perturbs the rounding of numpy's functions.

Each result of `exp`, `log`, `sin` and similar functions, unless it is a round number, may become an adjacent float. The
choice depends on its bits, so it is deterministic. Output in pages and docstrings must not change.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

with contextlib.suppress(ImportError):
    import ml_dtypes  # noqa: F401, which adds loops for bfloat16 to numpy's functions when it is imported

FUNCTIONS = (
    "exp", "exp2", "expm1", "log", "log2", "log1p", "log10", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
    "arctan2", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "power", "float_power", "logaddexp",
    "cbrt", "hypot",
)  # fmt: skip
"""numpy functions that are not correctly rounded."""

ZERO_BITS = 12
"""Numbers with this many trailing zero bits are not perturbed: every library returns 1, 0.5 or 1024 exactly."""


def perturbed(x: Any) -> Any:
    """Replace a third to a half of the numbers of a float32 or float64 array by an adjacent float.

    >>> x = np.array([0.5, 1024.0, np.inf, np.nan, 0.0])
    >>> np.array_equal(perturbed(x), x, equal_nan=True)
    True
    """
    x = np.asarray(x)
    bits = np.ascontiguousarray(x).view(f"i{x.dtype.itemsize}").reshape(x.shape)
    choice = (bits ^ (bits >> 7) ^ (bits >> 13)) & 3
    changeable = (bits & (2**ZERO_BITS - 1) != 0) & np.isfinite(x) & (np.abs(x) > 4 * np.finfo(x.dtype).tiny)
    infinity = x.dtype.type(np.inf)
    with np.errstate(all="ignore"):
        above, below = np.nextafter(x, infinity), np.nextafter(x, -infinity)
    return np.where(changeable & (choice == 1), above, np.where(changeable & (choice == 2), below, x))


class Perturbed:
    """A numpy function with perturbed results; otherwise it behaves as the function."""

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
            return perturbed(result)[()]
        result[...] = perturbed(result)  # in place, as it may be `out`
        return result


def pytest_configure() -> None:
    """Replace numpy's functions."""
    for name in FUNCTIONS:
        setattr(np, name, Perturbed(getattr(np, name)))
