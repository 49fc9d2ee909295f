"""Measure the errors of `tk.special` and of complex functions against mpmath, and update tables of docs/numerics.md.

Errors of special functions are in units of eps, 2**-23 or 2**-52, times the result; for functions with zeros, times the
larger of 1 and the result.  Errors of complex functions are in units in the last place, of the modulus and of each
part.  A test compares the library with the tables; `python -m tools.special_numerics` writes them, with more operands
than the test.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

import tensorken as tk
from tensorken_conformance.laws.complex_values import BY_PARTS, TERMS, classes, drawn
from tensorken_conformance.oracles import complex_functions
from tools.numerics import PAGE

Array = np.ndarray[Any, Any]

DTYPES = ("float32", "float64")
HEAD = "| function | operands | error compared with | float32 | float64 |"
COMPLEX_HEAD = "| function | modulus, complex64 | complex128 | each part, complex64 | complex128 |"

Draw = Callable[[np.random.Generator, int], Sequence[Array]]


@dataclass(frozen=True, slots=True)
class Row:
    """A special function.

    Attributes:
        exact: the function in mpmath, at 200 bits.
        draw: operands, from a generator and their number.
        about: the operands, for the table.
        relative: whether errors are compared with the result alone, and not with 1 if that is larger.
        name: the function, if it is not the name of the row.
        first: arguments before the operands.
    """

    exact: Callable[..., Any]
    draw: Draw
    about: str
    relative: bool = True
    name: str = ""
    first: tuple[Any, ...] = ()


def _between(low: float, high: float) -> Draw:
    return lambda rng, count: [rng.uniform(low, high, count)]


def _powers(low: float, high: float) -> Draw:
    """Numbers of all sizes between two powers of 10."""
    return lambda rng, count: [10.0 ** rng.uniform(low, high, count)]


def _pairs(first: Draw, second: Draw) -> Draw:
    return lambda rng, count: [*first(rng, count), *second(rng, count)]


def _gamma(low: float, high: float, width: float = 3.0) -> Draw:
    """a, and x within some standard deviations of it."""

    def draw(rng: np.random.Generator, count: int) -> Sequence[Array]:
        a = 10.0 ** rng.uniform(low, high, count)
        return a, np.abs(a + width * np.sqrt(a) * rng.standard_normal(count)) + 1e-3

    return draw


def _beta(low: float, high: float) -> Draw:
    """a and b, and x within some standard deviations of the mean."""

    def draw(rng: np.random.Generator, count: int) -> Sequence[Array]:
        a, b = 10.0 ** rng.uniform(low, high, (2, count))
        deviation = np.sqrt(a * b / (a + b + 1)) / (a + b)
        return a, b, np.clip(a / (a + b) + 2 * deviation * rng.standard_normal(count), 1e-3, 1 - 1e-3)

    return draw


def _shares(rng: np.random.Generator, count: int) -> Sequence[Array]:
    """Numbers between 0 and 1, half of them close to 0."""
    return [
        np.where(
            rng.random(count) < 0.5, 10.0 ** rng.uniform(-35, 0, count), rng.uniform(0.001, 0.999, count)
        )
    ]


def _ndtri(p: Any) -> Any:
    with mpmath.workprec(500):
        x = mpf(float(tk.special.ndtri(tk.tensor(float(p), "float64", backend="numpy")).item()))
        for _ in range(5):
            x -= (mpmath.ncdf(x) - p) / mpmath.npdf(x)
        return x


def _xlogy(x: Any, y: Any) -> Any:
    return x * mpmath.log(y)


_POSITIVE = _powers(-6, 6)

ROWS: dict[str, Row] = {
    "erf": Row(mpmath.erf, _between(-6, 6), "-6 to 6"),
    "erfc": Row(mpmath.erfc, _between(-9, 9), "-9 to 9"),
    "erfcx": Row(lambda x: mpmath.exp(x * x) * mpmath.erfc(x), _between(-5, 30), "-5 to 30"),
    "erfinv": Row(mpmath.erfinv, _between(-0.999, 0.999), "-0.999 to 0.999"),
    "ndtr": Row(mpmath.ncdf, _between(-12, 12), "-12 to 12"),
    "log_ndtr": Row(lambda x: mpmath.log(mpmath.ncdf(x)), _between(-100, 0), "-100 to 0"),
    "ndtri": Row(_ndtri, _shares, "1e-35 to 0.999", False),
    "gammaln": Row(lambda x: mpmath.re(mpmath.loggamma(x)), _POSITIVE, "1e-6 to 1e6", False),
    "gammaln of negative operands": Row(
        lambda x: mpmath.log(abs(mpmath.gamma(x))),
        lambda rng, count: [-rng.integers(0, 9, count) - rng.uniform(0.02, 0.98, count)],
        "-9 to 0, 0.02 from poles",
        False,
        "gammaln",
    ),
    "digamma": Row(mpmath.digamma, _POSITIVE, "1e-6 to 1e6", False),
    "digamma of negative operands": Row(
        mpmath.digamma,
        lambda rng, count: [-rng.integers(0, 9, count) - rng.uniform(0.02, 0.98, count)],
        "-9 to 0, 0.02 from poles",
        False,
        "digamma",
    ),
    **{
        f"polygamma of order {n}": Row(
            lambda x, n=n: mpmath.psi(n, x), _powers(-2, 3), "0.01 to 1e3", True, "polygamma", (n,)
        )
        for n in (1, 2, 5)
    },
    "zeta": Row(mpmath.zeta, _pairs(_between(1.01, 30), _powers(-1, 2)), "s 1.01 to 30, q 0.1 to 100"),
    "betaln": Row(
        lambda a, b: mpmath.log(mpmath.beta(a, b)),
        _pairs(_powers(-2, 4), _powers(-2, 4)),
        "0.01 to 1e4",
        False,
    ),
    "i0": Row(lambda x: mpmath.besseli(0, x), _between(-80, 80), "-80 to 80"),
    "i0e": Row(lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)), _between(-200, 200), "-200 to 200"),
    "i1": Row(lambda x: mpmath.besseli(1, x), _between(-80, 80), "-80 to 80"),
    "i1e": Row(lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), _between(-200, 200), "-200 to 200"),
    "entr": Row(lambda x: -_xlogy(x, x), _powers(-6, 6), "1e-6 to 1e6", False),
    "expit": Row(lambda x: 1 / (1 + mpmath.exp(-x)), _between(-80, 80), "-80 to 80"),
    "logit": Row(lambda p: mpmath.log(p / (1 - p)), _shares, "1e-35 to 0.999", False),
    "xlogy": Row(_xlogy, _pairs(_powers(-3, 3), _powers(-3, 3)), "1e-3 to 1e3", False),
    "xlog1py": Row(
        lambda x, y: x * mpmath.log1p(y), _pairs(_powers(-3, 3), _powers(-6, 3)), "y from 1e-6 to 1e3"
    ),
    "rel_entr": Row(
        lambda x, y: _xlogy(x, x / y), _pairs(_powers(-3, 3), _powers(-3, 3)), "1e-3 to 1e3", False
    ),
    "kl_div": Row(
        lambda x, y: _xlogy(x, x / y) - x + y, _pairs(_powers(-3, 3), _powers(-3, 3)), "1e-3 to 1e3", False
    ),
    "gammainc": Row(
        lambda a, x: mpmath.gammainc(a, 0, x, regularized=True), _gamma(-1, 2.1), "a 0.1 to 120, x near a"
    ),
    "gammaincc": Row(
        lambda a, x: mpmath.gammainc(a, x, mpmath.inf, regularized=True),
        _gamma(-1, 2.1),
        "a 0.1 to 120, x near a",
    ),
    "gammainc of large a": Row(
        lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
        _gamma(2.2, 4),
        "a 160 to 1e4",
        name="gammainc",
    ),
    "gammaincc of large a": Row(
        lambda a, x: mpmath.gammainc(a, x, mpmath.inf, regularized=True),
        _gamma(2.2, 4),
        "a 160 to 1e4",
        name="gammaincc",
    ),
    "betainc": Row(
        lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True),
        _beta(-1, 3),
        "a, b 0.1 to 1e3, x near the mean",
    ),
}
"""The rows of the table, by function or by function and operands."""

COUNT = 600
"""The number of operands for the table."""

DRAWS = 10
"""The number of times that operands of complex functions are drawn for the table."""

ELSEWHERE = frozenset(("logsumexp", "softmax", "log_softmax", "psi"))
"""Functions of tk.special that other parts of the page describe, and the alias of digamma."""


@cache
def problem(name: str, dtype: str, count: int) -> tuple[list[Array], list[Any]]:
    """The first operands of a row, and the exact results."""
    row, rng = ROWS[name], np.random.default_rng(sum(map(ord, name)))
    operands = [np.asarray(x[:count], dtype) for x in row.draw(rng, COUNT)]
    with mpmath.workprec(250):
        exact = [row.exact(*[mpf(float(x)) for x in xs]) for xs in zip(*operands, strict=True)]
    return operands, exact


def measure(name: str, dtype: str, count: int, backend: Any = "numpy") -> tuple[float, str]:
    """The largest error of a row on a backend, and its operands."""
    row, limits = ROWS[name], np.finfo(dtype)
    operands, exact = problem(name, dtype, count)
    f = getattr(tk.special, row.name or name)
    found = np.asarray(f(*row.first, *[tk.tensor(x, backend=backend) for x in operands]))
    worst = (0.0, "")
    with mpmath.workprec(250):
        for y, true, *xs in zip(found.tolist(), exact, *operands, strict=True):
            if not limits.tiny * 4 < abs(true) < limits.max / 4:
                continue
            scale = abs(true) if row.relative else max(abs(true), mpf(1))
            error = (
                float(abs(mpf(y) - true) / scale / mpf(float(limits.eps))) if math.isfinite(y) else math.inf
            )
            worst = max(worst, (error, str([float(x) for x in xs])))
    return worst


def measure_complex(name: str, dtype: str, count: int, backend: Any = "numpy") -> tuple[float, float]:
    """The largest errors of a complex function, of the modulus and of each part, in units in the last place."""
    limits, worst = np.finfo(dtype), [0.0, 0.0]
    for values in classes(name):
        rng = np.random.default_rng(sum(map(ord, name + values)))
        for _ in range(count):
            parts = drawn(rng, values, name, dtype)
            y = getattr(tk, name)(tk.complex(*[tk.tensor(x, backend=backend) for x in parts]))
            found = np.asarray(y.real, "float64"), np.asarray(y.imag, "float64")
            for k, (a, b) in enumerate(parts.T.tolist()):
                true = complex_functions.exactly(name, a, b)
                apart = [
                    abs(mpf(float(x[k])) - t) for x, t in zip(found, (true.real, true.imag), strict=True)
                ]
                for place, error, size in (
                    (0, mpmath.hypot(*apart), abs(true)),
                    (1, apart[0], abs(true.real)),
                    (1, apart[1], abs(true.imag)),
                ):
                    if float(limits.tiny) / limits.eps < size < float(limits.max):
                        unit = mpmath.ldexp(1, int(mpmath.floor(mpmath.log(size, 2))) - limits.nmant)
                        worst[place] = max(worst[place], float(error / unit))
    return worst[0], worst[1]


# ---- the tables --------------------------------------------------------------------------------------------


def published() -> dict[str, tuple[int, int]]:
    """The errors of special functions on the page, in float32 and float64."""
    return {key: (int(a), int(b)) for key, *_, a, b in rows_of(HEAD)}


def published_complex() -> dict[str, tuple[int | None, ...]]:
    """The errors of complex functions on the page; None for parts without bound."""
    return {
        key: tuple([int(x) if x.isdigit() else None for x in rest]) for key, *rest in rows_of(COMPLEX_HEAD)
    }


def rows_of(head: str) -> list[list[str]]:
    """The cells of the table with this head, the first without quotes."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(head + "\n")
    lines = []
    for line in rest.splitlines()[1:]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        lines.append([cells[0].replace("`", "").removeprefix("tk."), *cells[1:]])
    return lines


def write(head: str, texts: int, lines: Sequence[str]) -> None:
    """Replace a table of the page; its first columns are texts, the others numbers."""
    text = PAGE.read_text(encoding="utf-8")
    numbers = head.count("|") - 1 - texts
    table = "\n".join([head, "|" + " --- |" * texts + " --: |" * numbers, *lines])
    pattern = re.escape(head) + r"\n(?:\|.*\n)*"
    PAGE.write_text(re.sub(pattern, lambda _: table + "\n", text), encoding="utf-8", newline="\n")


def rounded(error: float) -> int:
    """The number of the table: a quarter more than the measured error, rounded up."""
    return math.ceil(1.25 * error)


def main() -> None:
    """Measure on the numpy backend and on the default bodies, and write both tables."""
    from core.tests.support import Required
    from tensorken_numpy.backend import Numpy

    backends, lines = (Numpy(), Required()), []
    for name, row in ROWS.items():
        found = [max(measure(name, dtype, COUNT, backend) for backend in backends) for dtype in DTYPES]
        print(f"{name:30}" + "".join(f"{error:10.2f} {at}" for error, at in found), flush=True)
        function, _, rest = name.partition(" ")
        against = "the result" if row.relative else "1 or the result"
        cells = f"`{function}`{' ' * bool(rest)}{rest} | {row.about} | {against}"
        lines.append(f"| {cells} |" + "".join(f" {rounded(error)} |" for error, _ in found))
    write(HEAD, 3, lines)
    lines = []
    for name in TERMS:
        pairs = [[measure_complex(name, dtype, DRAWS, backend) for backend in backends] for dtype in DTYPES]
        largest = [max(pair[kind] for pair in pairs[i]) for kind in (0, 1) for i in (0, 1)]
        print(f"{name:14}" + "".join(f"{error:10.2f}" for error in largest), flush=True)
        numbers = [str(rounded(error)) for error in largest]
        if name not in BY_PARTS:
            numbers[2:] = ["-", "-"]
        lines.append(f"| `tk.{name}` |" + "".join(f" {number} |" for number in numbers))
    write(COMPLEX_HEAD, 1, lines)


if __name__ == "__main__":
    main()
