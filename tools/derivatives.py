"""Compare first and second derivatives with mpmath, and update a table of docs/numerics.md.

A row has a function of one operand and its exact value; the other operands are fixed.  The exact derivatives are those
of difference quotients with many digits, unless the row has them.  Errors are in units of eps, 2**-23 or 2**-52, times
the exact derivative; of derivatives that have zeros, times the larger of 1 and it.  A test compares the library with
the table, and with limits at the ends of the domains; `python -m tools.derivatives` writes the table.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

import tensorken as tk
from tools import numerics
from tools.special_numerics import rounded, rows_of, write

Function = Callable[..., Any]

DTYPES = ("float32", "float64")
HEAD = "| derivatives of | operands | compared with | first, float32 | float64 | second, float32 | float64 |"
COUNT = 300
"""The number of operands for the table."""

inf, nan = math.inf, math.nan


@dataclass(frozen=True, slots=True)
class Row:
    """A function of one operand.

    Attributes:
        function: the function of a tensor.
        exact: the function in mpmath.
        low, high: the ends of the domain.
        drawn: the interval from which operands are drawn for the table.
        relative: whether errors are compared with the derivative alone, and not with 1 if that is larger.
        slope, curvature: the derivatives in mpmath; None: difference quotients.
        kinks: further points at which the limits on both sides may differ.
        decided: by order and point the result that a convention decides.
        skipped: points at which the result has few digits or is unspecified, with the reason in a comment.
    """

    function: Function
    exact: Function
    low: float = -inf
    high: float = inf
    drawn: tuple[float, float] | None = None
    relative: bool = True
    slope: Function | None = None
    curvature: Function | None = None
    kinks: tuple[float, ...] = ()
    decided: dict[tuple[int, float], float] = field(default_factory=dict)
    skipped: tuple[float, ...] = ()

    def derivatives(self) -> list[Function]:
        """The function and its two derivatives, in mpmath."""
        return [
            self.exact,
            self.slope or quotient(self.exact, 1),
            self.curvature or quotient(self.exact, 2),
        ]

    def functions(self) -> list[Function]:
        """The function and its two derivatives, of tensors."""
        slope = tk.elementwise_grad(self.function)
        return [self.function, slope, tk.elementwise_grad(slope)]


def quotient(f: Function, order: int) -> Function:
    """The difference quotient of order 1 or 2, with so many bits that its error is below 1e-80."""

    def of(x: Any) -> Any:
        bits = abs(int(mpmath.floor(mpmath.log(abs(x), 2)))) if x else 0
        with mpmath.workprec(700 + 4 * bits):
            h = min(abs(x), mpf(1)) * mpf(2) ** -150
            if order == 1:
                return (f(x + h) - f(x - h)) / (2 * h)
            return (f(x + h) - 2 * f(x) + f(x - h)) / h**2

    return of


# ---- functions in mpmath ----------------------------------------------------------------------------------


def _precise(f: Function, bits: int = 700) -> Function:
    def of(x: Any) -> Any:
        with mpmath.workprec(max(bits, mpmath.mp.prec)):
            return f(x)

    return of


@_precise
def erfcx(x: Any) -> Any:
    """exp(x**2) * erfc(x); for large x its asymptotic series."""
    if x < 1000:
        return mpmath.exp(x * x) * mpmath.erfc(x)
    total, term = mpf(0), mpf(1)
    for n in range(1, 40):
        total += term
        term *= -(2 * n - 1) / (2 * x * x)
    return total / (x * mpmath.sqrt(mpmath.pi))


def _erfc(x: Any) -> Any:
    return mpmath.erfc(x) if abs(x) < 1e5 else mpf(0 if x > 0 else 2)


def _ncdf(x: Any) -> Any:
    return _erfc(-x / mpmath.sqrt(2)) / 2


def _log_ndtr(x: Any) -> Any:
    if x < 0:
        return mpmath.log(erfcx(-x / mpmath.sqrt(2)) / 2) - x * x / 2
    return mpmath.log1p(-_ncdf(-x))


@_precise
def _ndtri(p: Any) -> Any:
    """Newton's method for the logarithm of the tail."""
    if p in (0, 1):
        return -mpmath.inf if p == 0 else mpmath.inf
    share = min(p, 1 - p)
    x = -mpmath.sqrt(-2 * mpmath.log(share)) if share < 0.2 else mpf(0)
    for _ in range(14):
        x -= (_log_ndtr(x) - mpmath.log(share)) * _ncdf(x) / mpmath.npdf(x)
    return x if p < 0.5 else -x


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x)) if x > 0 else mpmath.exp(x) / (1 + mpmath.exp(x))


def _softplus(x: Any) -> Any:
    return mpmath.log1p(mpmath.exp(-abs(x))) + max(x, mpf(0))


def _bessel(n: int, scaled: bool) -> Function:
    @_precise
    def of(x: Any) -> Any:
        a = abs(x)
        if a > 300:
            total, term = mpf(0), mpf(1)
            for k in range(1, 80):
                total += term
                term *= -(4 * n * n - (2 * k - 1) ** 2) / (8 * a * k)
            value = total / mpmath.sqrt(2 * mpmath.pi * a) * (1 if scaled else mpmath.exp(a))
        else:
            value = mpmath.besseli(n, a) * (mpmath.exp(-a) if scaled else 1)
        return -value if x < 0 and n else value

    return of


def _hurwitz(s: float, q: Any) -> Any:
    """The sum of (q + k)**-s for k from 0; for negative q by the sum over all integers k."""
    order = mpf(s)
    if q <= 0:
        distance = q - mpmath.nint(q)
        if distance == 0:
            return mpmath.inf
        sign = 1 if int(s) % 2 == 0 else -1
        nearest = mpmath.sign(distance) ** int(s) * abs(distance) ** -order
        return nearest + _hurwitz(s, 1 + distance) + sign * (_hurwitz(s, 1 - distance) - _hurwitz(s, 1 - q))
    if q < 60:
        count = int(60 - q) + 1
        return mpmath.fsum([(q + k) ** -order for k in range(count)]) + _hurwitz(s, q + count)
    total, factor = q ** (1 - order) / (order - 1) + q**-order / 2, order * q ** (-order - 1)
    for k in range(1, 60):
        total += mpmath.bernoulli(2 * k) / mpmath.factorial(2 * k) * factor
        factor *= (order + 2 * k - 1) * (order + 2 * k) / (q * q)
    return total


def _gammaln(x: Any) -> Any:
    if x > 0:
        return mpmath.re(mpmath.loggamma(x))
    return mpmath.log(abs(mpmath.pi / mpmath.sinpi(x))) - mpmath.re(mpmath.loggamma(1 - x))


def _polygamma(n: int) -> Function:
    if n == 0:
        return mpmath.digamma  # type: ignore[no-any-return]
    return lambda x: (-1) ** (n + 1) * mpmath.factorial(n) * _hurwitz(n + 1, x)


def _gelu_by_tanh(x: Any) -> Any:
    return x * _sigmoid(2 * mpmath.sqrt(2 / mpmath.pi) * (x + mpf("0.044715") * x**3))


def _root(b: Any, x: Any) -> Any:
    root = mpmath.sqrt(x * x + b)
    return (x + root) / 2 if x >= 0 else b / (root - x) / 2


# ---- the rows ---------------------------------------------------------------------------------------------


def _elementary() -> dict[str, Row]:
    """The functions of `tools.numerics`, which has their values and first derivatives."""
    domains = {"log": (0, inf), "log2": (0, inf), "log10": (0, inf), "log1p": (-1, inf), "sqrt": (0, inf)}
    domains |= {"asin": (-1, 1), "acos": (-1, 1), "atanh": (-1, 1), "acosh": (1, inf)}
    zeros = {
        "sin",
        "cos",
        "cosh",
        "tan",
        "sinc",
        "sech_squared",
        "gaussian",
        "tanh",
        "sigmoid",
        "erf",
        "atan",
    }
    # The derivative at a pole of the derivative is not a number.
    skipped = {"asin": (1.0, -1.0), "acos": (1.0, -1.0)}
    rows = {}
    for name, row in numerics.ROWS.items():
        low, high = domains.get(name, (-inf, inf))
        rows[name] = Row(
            numerics.function(name),
            row.value,
            low,
            high,
            relative=name not in zeros,
            slope=row.slope,
            curvature=row.curvature,
            skipped=skipped.get(name, ()),
        )
    return rows


def _special() -> dict[str, Row]:
    s = tk.special
    rows = {
        "erfc": Row(s.erfc, _erfc, drawn=(-6, 9)),
        "erfcx": Row(s.erfcx, erfcx, drawn=(-4, 1e6)),
        "erfinv": Row(
            tk.erfinv,
            _precise(lambda x: _ndtri((x + 1) / 2) / mpmath.sqrt(2), 2400),
            -1,
            1,
            (-0.99, 0.99),
            skipped=(1.0, -1.0),  # the derivative at a pole of the derivative is NaN
        ),
        "ndtr": Row(
            s.ndtr, _ncdf, drawn=(-12, 12), slope=mpmath.npdf, curvature=lambda x: -x * mpmath.npdf(x)
        ),
        "log_ndtr": Row(s.log_ndtr, _log_ndtr, drawn=(-1e6, 10)),
        "ndtri": Row(
            s.ndtri,
            _ndtri,
            0,
            1,
            (1e-30, 0.999),
            relative=False,
            slope=lambda p: 1 / mpmath.npdf(_ndtri(p)),
            curvature=lambda p: _ndtri(p) / mpmath.npdf(_ndtri(p)) ** 2,
        ),
        "gammaln": Row(
            s.gammaln,
            _gammaln,
            drawn=(1e-6, 1e6),
            relative=False,
            slope=_polygamma(0),
            curvature=_polygamma(1),
            decided={(1, -float(n)): nan for n in range(1, 9)},
        ),
        "digamma": Row(
            s.digamma,
            _polygamma(0),
            drawn=(1e-3, 1e6),
            slope=_polygamma(1),
            curvature=_polygamma(2),
            decided={(0, -float(n)): nan for n in range(1, 9)},
        ),
        "i0": Row(s.i0, _bessel(0, False), drawn=(-80, 80)),
        "i0e": Row(s.i0e, _bessel(0, True), drawn=(-1e6, 1e6), decided={(1, 0.0): 0.0}),
        "i1": Row(s.i1, _bessel(1, False), drawn=(-80, 80)),
        "i1e": Row(s.i1e, _bessel(1, True), drawn=(-1e6, 1e6), relative=False, decided={(2, 0.0): 0.0}),
        "entr": Row(s.entr, lambda x: -x * mpmath.log(x), 0, inf, (1e-6, 1e6), relative=False),
        "logit": Row(
            s.logit, lambda p: mpmath.log(p) - mpmath.log1p(-p), 0, 1, (1e-30, 0.999), relative=False
        ),
        "expit": Row(s.expit, _sigmoid, drawn=(-80, 80)),
    }
    for n in (1, 2, 3):
        poles = {(k, -float(m)): (inf if (n + k) % 2 else -inf) for m in range(9) for k in range(3)}
        rows[f"polygamma of order {n}"] = Row(
            lambda x, n=n: s.polygamma(n, x),
            _polygamma(n),
            drawn=(1e-2, 1e4),
            slope=_polygamma(n + 1),
            curvature=_polygamma(n + 2),
            decided=poles | {(k, -inf): (inf if (n + k) % 2 else -inf) for k in range(3)},
        )
    for order in (1.5, 2.0, 3.0):
        rows[f"zeta({order}, q)"] = Row(
            lambda q, order=order: s.zeta(order, q),
            lambda q, order=order: _hurwitz(order, q),
            0,
            inf,
            (1e-2, 1e4),
            slope=lambda q, order=order: -order * _hurwitz(order + 1, q),
            curvature=lambda q, order=order: order * (order + 1) * _hurwitz(order + 2, q),
        )
    for y in (0.5, 1.0, 3.0):
        rows |= {
            f"xlogy({y}, y)": Row(lambda v, y=y: s.xlogy(y, v), lambda v, y=y: y * mpmath.log(v), 0, inf),
            f"xlog1py({y}, y)": Row(
                lambda v, y=y: s.xlog1py(y, v), lambda v, y=y: y * mpmath.log1p(v), -1, inf
            ),
            f"rel_entr(x, {y})": Row(
                lambda x, y=y: s.rel_entr(x, y), lambda x, y=y: x * mpmath.log(x / y), 0, inf, relative=False
            ),
            f"rel_entr({y}, y)": Row(
                lambda v, y=y: s.rel_entr(y, v), lambda v, y=y: y * mpmath.log(y / v), 0, inf
            ),
            f"kl_div(x, {y})": Row(
                lambda x, y=y: s.kl_div(x, y),
                lambda x, y=y: x * mpmath.log(x / y) - x + y,
                0,
                inf,
                relative=False,
                skipped=(inf,),  # as in scipy the difference of two infinities
            ),
            f"kl_div({y}, y)": Row(
                lambda v, y=y: s.kl_div(y, v),
                lambda v, y=y: y * mpmath.log(y / v) - y + v,
                0,
                inf,
                relative=False,
                skipped=(inf,),
            ),
            f"betaln(x, {y})": Row(
                lambda x, y=y: s.betaln(x, y),
                _precise(
                    lambda x, y=y: mpmath.loggamma(x) + mpmath.loggamma(y) - mpmath.loggamma(x + y), 2400
                ),
                0,
                inf,
                (1e-2, 1e4),
                relative=False,
                slope=_precise(lambda x, y=y: mpmath.digamma(x) - mpmath.digamma(x + y), 2400),
                curvature=_precise(lambda x, y=y: _hurwitz(2, x) - _hurwitz(2, x + y), 2400),
            ),
            f"logaddexp(x, {y})": Row(
                lambda x, y=y: tk.logaddexp(x, y), lambda x, y=y: _softplus(x - y) + y, drawn=(-60, 60)
            ),
            f"logaddexp2(x, {y})": Row(
                lambda x, y=y: tk.logaddexp2(x, y),
                lambda x, y=y: _softplus((x - y) * mpmath.log(2)) / mpmath.log(2) + y,
                drawn=(-60, 60),
            ),
        }
    return rows | _incomplete()


def _incomplete() -> dict[str, Row]:
    """The incomplete gamma and beta functions by their last operand."""
    rows = {}
    for a in (0.5, 1.0, 1.5, 2.0, 3.0, 20.0, 200.0):

        def density(x: Any, a: float = a) -> Any:
            return mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a))

        def bent(x: Any, a: float = a, density: Function = density) -> Any:
            return density(x) * ((a - 1) / x - 1)

        rows[f"gammainc({a}, x)"] = Row(
            lambda x, a=a: tk.special.gammainc(a, x),
            lambda x, a=a: (
                mpmath.gammainc(a, 0, x, regularized=True)
                if x < a
                else 1 - mpmath.gammainc(a, x, regularized=True)
            ),
            0,
            inf,
            (a / 4, 4 * a),
            False,
            density,
            bent,
        )
        rows[f"gammaincc({a}, x)"] = Row(
            lambda x, a=a: tk.special.gammaincc(a, x),
            lambda x, a=a: mpmath.gammainc(a, x, regularized=True),
            0,
            inf,
            (a / 4, 4 * a),
            False,
            lambda x, f=density: -f(x),
            lambda x, f=bent: -f(x),
        )
        for b in (0.5, 1.0, 2.0, 30.0):

            def beta_density(x: Any, a: float = a, b: float = b) -> Any:
                return mpmath.exp((a - 1) * mpmath.log(x) + (b - 1) * mpmath.log1p(-x)) / mpmath.beta(a, b)

            rows[f"betainc({a}, {b}, x)"] = Row(
                lambda x, a=a, b=b: tk.special.betainc(a, b, x),
                lambda x, a=a, b=b: mpmath.betainc(a, b, 0, x, regularized=True),
                0,
                1,
                (0.01, 0.99),
                False,
                beta_density,
                lambda x, a=a, b=b, f=beta_density: f(x) * ((a - 1) / x - (b - 1) / (1 - x)),
            )
    return rows


def _activations() -> dict[str, Row]:
    scale, alpha = mpf(1.0507009873554805), mpf(1.6732632423543772)
    kink = {(1, 0.0): 1.0, (2, 0.0): 1.0}
    return {
        "cbrt": Row(tk.cbrt, lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x))),
        "sinc": Row(
            tk.sinc, mpmath.sincpi, drawn=(-20, 20), relative=False, skipped=(inf, -inf)
        ),  # as in numpy
        "abs": Row(tk.abs, abs, decided={(1, 0.0): 1.0, (2, 0.0): 0.0}),
        "relu": Row(tk.relu, lambda x: max(x, mpf(0)), decided={(1, 0.0): 0.0}),
        "gelu": Row(tk.gelu, lambda x: x * _ncdf(x), drawn=(-30, 30), relative=False),
        "gelu by tanh": Row(lambda x: tk.gelu(x, "tanh"), _gelu_by_tanh, drawn=(-30, 30), relative=False),
        "silu": Row(tk.silu, lambda x: x * _sigmoid(x), drawn=(-80, 80), relative=False),
        "mish": Row(tk.mish, lambda x: x * mpmath.tanh(_softplus(x)), drawn=(-80, 80), relative=False),
        "log_sigmoid": Row(tk.log_sigmoid, lambda x: -_softplus(-x), drawn=(-80, 80)),
        "soft_sign": Row(tk.soft_sign, lambda x: x / (1 + abs(x)), decided={(2, 0.0): -2.0}),
        "squareplus": Row(tk.squareplus, lambda x: _root(mpf(4), x)),
        "elu": Row(tk.elu, lambda x: x if x > 0 else mpmath.expm1(x), drawn=(-80, 80), decided=kink),
        "celu": Row(
            lambda x: tk.celu(x, 2.0),
            lambda x: x if x > 0 else 2 * mpmath.expm1(x / 2),
            drawn=(-80, 80),
            decided={(2, 0.0): 0.5},
        ),
        "selu": Row(
            tk.selu,
            lambda x: scale * (x if x > 0 else alpha * mpmath.expm1(x)),
            drawn=(-80, 80),
            decided={(k, 0.0): float(scale * alpha) for k in (1, 2)},
        ),
        "leaky_relu": Row(tk.leaky_relu, lambda x: x if x > 0 else x * mpf(0.01), decided={(1, 0.0): 0.01}),
        "hard_swish": Row(
            tk.hard_swish,
            lambda x: mpf(0) if x <= -3 else x if x >= 3 else x * (x + 3) / 6,
            kinks=(-3.0, 3.0),
            relative=False,
        ),
    }


ROWS = {**_elementary(), **_special(), **_activations()}

WITH_POLES = ("gammaln", "digamma")
"""Functions with poles at negative integers; `decided` has the results there."""


# ---- ends of domains --------------------------------------------------------------------------------------


def ends(row: Row, dtype: str) -> list[float]:
    """Zeros, infinities, NaN, the largest, smallest and subnormal numbers, numbers around 1, integers, and kinks."""
    info = np.finfo(dtype)
    sizes: list[Any] = [info.max, info.tiny, info.smallest_subnormal, 1e-3, 0.5, 1, 2, 30, 1e4]
    sizes += [1 + info.eps, 1 - info.epsneg, info.eps]
    points = [
        0.0,
        -0.0,
        inf,
        -inf,
        -1.5,
        -2.25,
        -3.0,
        *row.kinks,
        *[s * float(x) for x in sizes for s in (1, -1)],
    ]
    inside = [float(np.array(x, dtype)) for x in points if row.low <= x <= row.high and x not in row.skipped]
    return list(dict.fromkeys(inside)) + [nan]


@cache
def expected(name: str, order: int, x: float) -> list[Any]:
    """The derivative at a point; at an end or a kink the limits on both sides; [] where no limit is found."""
    row = ROWS[name]
    if (order, x) in row.decided:
        return [row.decided[order, x]]
    f = row.derivatives()[order]
    with mpmath.workprec(300):
        if name in WITH_POLES and x < 0 and x == np.round(x):
            return []
        if math.isinf(x):
            return [y for y in [_limit(f, x, 0)] if y is not None]
        if x in (row.low, row.high, *row.kinks) or (x == round(x) and abs(x) < 40):
            sides = [s for s in (1, -1) if row.low < x + s * 1e-9 < row.high]
            return [y for y in [_limit(f, x, s) for s in sides] if y is not None]
        value = f(mpf(x))
        return [mpmath.re(value)] if mpmath.im(value) == 0 else [mpmath.nan]


def _limit(f: Function, point: float, side: int) -> Any:
    """The limit of f, from three points that approach it; None if they do not tell."""
    if math.isinf(point):
        steps = [mpf(10) ** k * (1 if point > 0 else -1) for k in (10, 20, 36)]
    else:
        steps = [mpf(point) + side * mpf(10) ** -k for k in (10, 20, 36)]
    first, second, third = [mpmath.re(f(x)) for x in steps]
    if any(map(mpmath.isnan, (first, second, third))):
        return None
    if mpmath.isinf(third) or abs(third - second) <= mpf(10) ** -9 * abs(third):
        return third
    if abs(third) > 20 and abs(third) > 1.3 * abs(second) > 1.3 * abs(first):
        return mpmath.inf * mpmath.sign(third)
    if abs(third) < mpf(10) ** -3 and abs(third) < 0.7 * abs(second):
        return mpf(0)
    return None


def faults(name: str, dtype: str, tolerance: float = 300.0) -> Iterator[str]:
    """What is wrong at the ends of a row: a result that is none of the limits, to some units of eps."""
    row, info = ROWS[name], np.finfo(dtype)
    points = ends(row, dtype)
    x = tk.tensor(np.array(points, dtype))
    for order, f in enumerate(row.functions()):
        for point, y in zip(points, np.asarray(f(x), "float64").tolist(), strict=True):
            wanted: list[Any] = [nan]
            if math.isnan(point):  # a derivative that does not depend on the operand remains a number
                right = order > 0 or math.isnan(y)
            else:
                wanted = expected(name, order, point)
                right = not wanted or any(
                    [_is_near(y, true, info, tolerance, row.relative) for true in wanted]
                )
            if not right:
                yield f"{name}, {dtype}: derivative {order} at {point:.9g} is {y:.9g}, not {[float(t) for t in wanted]}"


def _is_near(y: float, true: Any, info: Any, tolerance: float, relative: bool) -> bool:
    if math.isnan(y) or mpmath.isnan(true):
        return math.isnan(y) and bool(mpmath.isnan(true))
    if math.isinf(y) or mpmath.isinf(true):
        return bool(abs(true) > float(info.max) * 0.9 and (y > 0) == (true > 0))
    with mpmath.workprec(100):
        scale = abs(true) if relative else max(abs(true), mpf(1))
        return bool(abs(mpf(y) - true) <= tolerance * float(info.eps) * (scale + mpf(float(info.tiny))))


# ---- the table --------------------------------------------------------------------------------------------


@cache
def operands(name: str, dtype: str, count: int) -> list[float]:
    """Operands: half of them uniform in the interval, half of them of all sizes in it."""
    row, rng = ROWS[name], random.Random(f"{name} {dtype}")
    low, high = row.drawn or (max(row.low, -1e6), min(row.high, 1e6))
    found: list[float] = []
    while len(found) < count:
        size = 10.0 ** rng.uniform(-6, 6)
        number = (
            rng.uniform(low, high)
            if rng.random() < 0.5
            else rng.choice((low, 0.0, high)) + rng.choice((-size, size))
        )
        x = float(np.array(number, dtype))
        if low < x < high and row.low < x < row.high and abs(x) > 1e-30:
            found.append(x)
    return found


@cache
def exact(name: str, dtype: str, order: int, count: int) -> list[Any]:
    """The exact derivatives at the operands."""
    f = ROWS[name].derivatives()[order]
    with mpmath.workprec(200):
        return [mpmath.re(f(mpf(x))) for x in operands(name, dtype, count)]


def measure(name: str, dtype: str, order: int, count: int) -> float:
    """The largest error of a derivative, in units of eps."""
    row, info, worst = ROWS[name], np.finfo(dtype), 0.0
    xs = operands(name, dtype, count)
    found = np.asarray(row.functions()[order](tk.tensor(np.array(xs, dtype))), "float64").tolist()
    with mpmath.workprec(200):
        for y, true in zip(found, exact(name, dtype, order, count), strict=True):
            if not float(info.tiny) / float(info.eps) < abs(true) < float(info.max) / 4:
                continue
            scale = abs(true) if row.relative else max(abs(true), mpf(1))
            error = abs(mpf(y) - true) / scale / mpf(float(info.eps)) if math.isfinite(y) else mpf(inf)
            worst = max(worst, float(error))
    return worst


def published() -> dict[str, tuple[int, ...]]:
    """The numbers of the page, by row: first derivative in float32 and float64, then the second."""
    return {name: tuple(map(int, cells[-4:])) for name, *cells in rows_of(HEAD)}


def main() -> None:
    """Measure all rows, and write the table."""
    lines = []
    for name, row in ROWS.items():
        found = [measure(name, dtype, order, COUNT) for order in (1, 2) for dtype in DTYPES]
        print(f"{name:24}" + "".join(f"{error:12.2f}" for error in found), flush=True)
        low, high = row.drawn or (max(row.low, -1e6), min(row.high, 1e6))
        against = "it" if row.relative else "1 or it"
        numbers = "".join(f" {rounded(error)} |" for error in found)
        lines.append(f"| `{name}` | {low:g} to {high:g} | {against} |{numbers}")
    write(HEAD, 3, lines)


if __name__ == "__main__":
    main()
