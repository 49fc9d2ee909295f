"""Measure the errors of derivatives of random numbers against mpmath, and update the table of docs/numerics.md.

A number is a quantile of its distribution, which depends on the parameters.  Errors are in units of eps, 2**-23 or
2**-52, times the exact derivative.  A test compares the library with the table; `python -m tools.random_numerics`
writes it, with more numbers than the test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf
from scipy import special

import tensorken as tk
from tensorken.special.gamma_quantiles import log_quantile_derivative
from tools.special_numerics import DTYPES, rounded, rows_of, write

Array = np.ndarray[Any, Any]

HEAD = "| numbers | parameters | derivative of | float32 | float64 |"

Problem = tuple[Any, list[list[float]]]
"""The derivatives found, and for each the operands of the exact one."""


@dataclass(frozen=True, slots=True)
class Row:
    """Random numbers with parameters from a range.

    Attributes:
        parameters: the range, for the table.
        of: the function of the numbers that is differentiated, and the parameter.
        find: from a generator, a count, a dtype and a backend to derivatives and operands.
        exact: from operands to the exact derivative.
    """

    parameters: str
    of: str
    find: Callable[[np.random.Generator, int, str, Any], Problem]
    exact: Callable[..., Any]


# ---- exact derivatives -------------------------------------------------------------------------------------


@cache
def slope_of_quantile(a: float, y: float) -> Any:
    """The derivative of y = log(x) with respect to a, where x is a quantile of the gamma distribution.

    It is -dP/da divided by x times the density: a difference quotient with 40 digits, or for large a, for which
    mpmath's incomplete gamma function does not converge, the integral of dp/da.
    """
    with mpmath.workdps(40):
        a, x = mpf(a), mpmath.exp(mpf(y))
        lower = x < a
        if a < 1e3:
            sides = (0, x) if lower else (x, mpmath.inf)
            h = mpf(10) ** -14
            high, low = (mpmath.gammainc(a * (1 + s * h), *sides, regularized=True) for s in (1, -1))
            density = mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(a))
            by_a = (high - low) / (2 * a * h) / density
        else:
            deviation, psi = mpmath.sqrt(a), mpmath.digamma(a)
            ends = [x + (-k if lower else k) * deviation for k in (0, 1, 2, 4, 8, 16)]
            by_a = mpmath.quad(
                lambda t: (mpmath.log(t) - psi) * mpmath.exp((a - 1) * mpmath.log(t / x) - (t - x)), ends
            )
            by_a = -by_a / x if lower else by_a / x
        return -by_a if lower else by_a


def slope_of_beta(a: float, x: float, y: float) -> Any:
    """The derivative with respect to a of exp(x) / (exp(x) + exp(y)), x the logarithm of a number of gamma."""
    with mpmath.workdps(40):
        share = 1 / (1 + mpmath.exp(mpf(y) - mpf(x)))
        return share * (1 - share) * slope_of_quantile(a, x)


def slope_of_wald(mean: float, x: float) -> Any:
    """The derivative of a quantile of the inverse Gaussian distribution with respect to its mean."""

    def below(x: Any, m: Any) -> Any:
        root = mpmath.sqrt(x)
        return mpmath.ncdf((x / m - 1) / root) + mpmath.exp(2 / m) * mpmath.ncdf(-(x / m + 1) / root)

    with mpmath.workdps(60):
        mean, x = mpf(mean), mpf(x)
        by_mean = mpmath.diff(lambda m: below(x, m), mean)
        return -by_mean / mpmath.diff(lambda z: below(z, mean), x)


# ---- the rows ----------------------------------------------------------------------------------------------


def _quantiles(low: float, high: float) -> Row:
    """Quantiles of gamma from the far tails to the middle, with parameters of all sizes in a range and at its ends."""

    def find(rng: np.random.Generator, count: int, dtype: str, backend: Any) -> Problem:
        a = np.exp(rng.uniform(math.log(low), math.log(high), count))
        a[:2] = low, high
        tail = 10.0 ** rng.uniform(-12, math.log10(0.5), count)
        is_lower = rng.random(count) < 0.5
        x = np.where(is_lower, special.gammaincinv(a, tail), special.gammainccinv(a, tail))
        small = (np.log(tail) + special.gammaln(a + 1.0)) / a  # where x underflows
        y = np.where(x > 1e-290, np.log(np.maximum(x, 1e-300)), small)
        operands = [np.asarray(v, dtype) for v in (a, y)]
        found = log_quantile_derivative(*[tk.tensor(v, backend=backend) for v in operands])
        return found, np.stack(operands, -1).tolist()

    return Row(f"a from {low:g} to {high:g}", "log(x), by a", find, slope_of_quantile)


def _of_beta(rng: np.random.Generator, count: int, dtype: str, backend: Any) -> Problem:
    given = [np.asarray(10.0 ** rng.uniform(-1, 2, count), dtype) for _ in range(2)]
    a, b = (tk.tensor(v, backend=backend) for v in given)
    key = tk.random.key(int(rng.integers(2**31)), backend=backend)
    _, found = tk.jvp(lambda a: tk.random.beta(key, a, b, None, dtype), (a,), (tk.ones_like(a),))
    logs = [tk.random.loggamma(k, v, None, dtype) for k, v in zip(tk.random.split(key), (a, b), strict=True)]
    return found, np.stack([np.asarray(v, "float64") for v in (a, *logs)], -1).tolist()


def _of_wald(rng: np.random.Generator, count: int, dtype: str, backend: Any) -> Problem:
    mean = tk.tensor(np.asarray(10.0 ** rng.uniform(-1, 2, count), dtype), backend=backend)
    key = tk.random.key(int(rng.integers(2**31)), backend=backend)
    x, found = tk.jvp(lambda m: tk.random.wald(key, m, None, dtype), (mean,), (tk.ones_like(mean),))
    return found, np.stack([np.asarray(v, "float64") for v in (mean, x)], -1).tolist()


ROWS: dict[str, list[Row]] = {
    "gamma": [
        _quantiles(low, high)
        for low, high in ((1e-3, 0.1), (0.1, 1.0), (1.0, 10.0), (10.0, 60.0), (60.0, 1e3), (1e3, 1e6))
    ],
    "beta": [Row("a and b from 0.1 to 100", "x, by a", _of_beta, slope_of_beta)],
    "wald": [Row("mean from 0.1 to 100", "x, by the mean", _of_wald, slope_of_wald)],
}
"""The rows of the table, by function."""

COUNT = 400
"""The number of derivatives of a row for the table."""


def measure(row: Row, dtype: str, count: int, seed: int, backend: Any = "numpy") -> tuple[float, str]:
    """The largest error of a row on a backend, and its operands."""
    found, operands = row.find(np.random.default_rng(seed), count, dtype, backend)
    limits, worst = np.finfo(dtype), (0.0, "")
    for y, given in zip(found.tolist(), operands, strict=True):
        with mpmath.workdps(40):
            true = row.exact(*given)
            if abs(true) > limits.tiny * 4:
                error = float(abs(mpf(y) / true - 1)) / float(limits.eps)
                worst = max(worst, (error if math.isfinite(error) else math.inf, str(given)))
    return worst


def published() -> dict[tuple[str, str], tuple[int, int]]:
    """The errors on the page, in float32 and float64, by function and parameters."""
    return {(name, parameters): (int(a), int(b)) for name, parameters, _, a, b in rows_of(HEAD)}


def main() -> None:
    """Measure on the numpy backend and on the default bodies, and write the table."""
    from core.tests.support import Required
    from tensorken_numpy.backend import Numpy

    lines: list[str] = []
    for name, rows in ROWS.items():
        for row in rows:
            found = [
                max(measure(row, dtype, COUNT, 0, backend) for backend in (Numpy(), Required()))
                for dtype in DTYPES
            ]
            print(f"{name:8}{row.parameters:26}" + "".join(f"{e:10.2f} {at}" for e, at in found), flush=True)
            numbers: Sequence[int] = [rounded(error) for error, _ in found]
            cells = f"`{name}` | {row.parameters} | {row.of}"
            lines.append(f"| {cells} |" + "".join(f" {number} |" for number in numbers))
    write(HEAD, 3, lines)


if __name__ == "__main__":
    main()
