"""Rows of elementwise functions of one, two or three operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracles.sweep.operands import COMPLEX, INTEGERS, ends, numpy_dtype, pairs
from oracles.sweep.row import (
    MOVES,
    TRUTHS,
    Case,
    Row,
    always,
    arithmetic,
    binary,
    inexact,
    real,
    real_inexact,
    same,
)

ELEMENTWISE: dict[str, Row] = {}


def _rows(names: str, **facts: Any) -> None:
    """Rows of functions that numpy has, under the same name or the one after `=`."""
    for name in names.split():
        ours, _, theirs = name.partition("=")
        ELEMENTWISE[f"tk.{ours}"] = Row(getattr(np, theirs or ours), **facts)


# ---- functions of one operand ------------------------------------------------------------------------------------

_rows("exp sin cos tan sinh cosh tanh log log2 log10 sqrt cbrt")
_rows("acos=arccos acosh=arccosh asin=arcsin asinh=arcsinh atan=arctan atanh=arctanh")
_rows("deg2rad rad2deg")
_rows("fabs", result=real_inexact)
_rows("square", precision="same", result=arithmetic)
_rows("abs", precision="same", result=real, ulp=2)
_rows("floor ceil trunc positive conj", **MOVES)
_rows("negative", **MOVES)
_rows(
    "isnan isinf isfinite signbit logical_not isreal iscomplex isposinf isneginf",
    **TRUTHS,
)
_rows("round rint", **MOVES)
_rows("invert", precision="same", result=same)
_rows("bitwise_count", precision="same", result=always("uint8"))
_rows("real imag", precision="same", result=real)
_rows("angle", result=real_inexact)
_rows(
    "spacing", precision="floating", skip=lambda y, x: np.isinf(y[0]) | (x.dtype == "float16")
)  # numpy has another rule for float16, and an infinity for the largest number
_rows("nan_to_num", **MOVES)


def _exp2(x: Any) -> Any:
    if x.dtype.kind != "c":
        return np.exp2(x)
    return np.where(x.real == -np.inf, 0, _exp2_of_complex(x))


def _exp2_of_complex(x: Any) -> Any:
    return _complex(*(np.exp2(x.real) * f(np.log(np.longdouble(2)) * x.imag) for f in (np.cos, np.sin)))


def _log1p(z: Any) -> Any:
    """numpy's log1p of complex numbers loses the real part near 0."""
    if z.dtype.kind != "c":
        return np.log1p(z)
    x, y = z.real, z.imag
    small = np.abs(z) < 0.5
    with np.errstate(all="ignore"):
        near = np.log1p(np.where(small, x * (2 + x) + y * y, 0)) / 2
    return np.where(small, near, np.log(1 + z).real) + 1j * np.arctan2(y, 1 + x)


def _expm1(z: Any) -> Any:
    """numpy's expm1 is NaN at -inf + inf j, where its exp is 0."""
    return np.where(z.real == -np.inf, -1.0, np.expm1(z)) if z.dtype.kind == "c" else np.expm1(z)


def _sinc(x: Any) -> Any:
    """numpy's sinc is NaN at an infinity, and sin(pi * x) has the error of pi * x."""
    if x.dtype.kind == "c":
        return np.sinc(x)
    near = x - np.round(x)
    sign = np.where(np.round(x) % 2 == 0, 1, -1)
    with np.errstate(all="ignore"):
        y = sign * np.sin(np.pi * near.astype("longdouble")) / (np.longdouble(np.pi) * x)
    return np.where(x == 0, 1.0, np.where(np.isinf(x), 0.0, y))


def _sign(x: Any) -> Any:
    return np.sign(x.astype("clongdouble") if x.dtype.kind == "c" else x)


def _reciprocal(x: Any) -> Any:
    with np.errstate(all="ignore"):
        return 1 / x


ELEMENTWISE |= {
    # the rounding of an angle adds half a unit for each unit of its size
    "tk.exp2": Row(_exp2, ulp=14, skip=lambda y, x: (abs(x.imag) > 100) if x.dtype.kind == "c" else False),
    "tk.log1p": Row(_log1p),
    "tk.expm1": Row(_expm1),
    "tk.sinc": Row(_sinc, scale="one"),
    "tk.sign": Row(_sign, precision="same", result=same, ulp=3),
    "tk.reciprocal": Row(_reciprocal),
    "tk.sigmoid": Row(lambda x: logistic(x)),
    "tk.softplus": Row(lambda x: np.logaddexp(x, 0)),
    "tk.erf": Row(lambda x: _scipy("erf")(x)),
    "tk.erfinv": Row(lambda x: _scipy("erfinv")(x)),
    "tk.i0": Row(lambda x: np.where(np.isinf(x), np.inf, _scipy("i0")(x)), ulp=8),
    "tk.frexp": Row(np.frexp, ulp=0, result=(inexact, always("int32"))),
    "tk.modf": Row(np.modf, ulp=0, result=inexact),
}


def logistic(x: Any) -> Any:
    """The logistic function, which numpy has not."""
    with np.errstate(all="ignore"):
        if x.dtype.kind == "c":
            return np.where(x.real < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x)))
        e = np.exp(-np.abs(x))
        return np.where(x < 0, e / (1 + e), 1 / (1 + e))


def _scipy(name: str) -> Any:
    import scipy.special

    function = getattr(scipy.special, name)
    return lambda *xs: function(*[np.asarray(x, "float64") if x.dtype == "longdouble" else x for x in xs])


# ---- functions of two operands -----------------------------------------------------------------------------------


def exponents(name: str) -> list[Case]:
    """Pairs of bases and exponents; integers have no negative exponents in numpy."""
    a, b = pairs(name)
    if name in INTEGERS:
        a, b = a[b >= 0], b[b >= 0]
    return [Case("ends", (a, b)), Case("none", (a[:0], b[:0])), Case("one", (a[1], b[1]))]


def divisors(name: str) -> list[Case]:
    """Pairs of ends whose divisors are not 0 if they are integers: that result is undefined."""
    a, b = pairs(name)
    if name in ("bool", *INTEGERS):
        a, b = a[b != 0], b[b != 0]
    return [Case("ends", (a, b)), Case("none", (a[:0], b[:0])), Case("one", (a[0], b[0]))]


def shifts(name: str) -> list[Case]:
    """Numbers and how far to shift them: less than the bits that they have."""
    x = ends(name)
    bits = numpy_dtype(name).itemsize * 8
    counts = np.array([0, 1, bits // 2, bits - 1]).astype(x.dtype) if name not in COMPLEX else x[:4]
    a, b = np.repeat(x, len(counts)), np.tile(counts, len(x))
    return [Case("ends", (a, b)), Case("none", (a[:0], b[:0])), Case("one", (a[1], b[1]))]


_rows("add multiply maximum minimum fmax fmin", cases=binary, precision="same", result=same, ulp=1)
_rows("subtract", cases=binary, precision="same", result=same, ulp=1)
_rows("remainder fmod", cases=divisors, precision="same", result=arithmetic, ulp=1)
_rows("hypot logaddexp atan2=arctan2", cases=binary)
_rows("divide", cases=binary)
_rows("copysign heaviside", cases=binary, precision="floating", ulp=0)
_rows("nextafter", cases=binary, precision="floating", ulp=0)
_rows(
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor",
    cases=binary,
    **TRUTHS,
)
_rows("bitwise_and bitwise_or bitwise_xor gcd lcm", cases=binary, precision="same", result=same)
_rows("left_shift right_shift", cases=shifts, precision="same", result=arithmetic)


def _logaddexp2(a: Any, b: Any) -> Any:
    return np.logaddexp2(a.astype("longdouble"), b.astype("longdouble"))


def _floor_divide(a: Any, b: Any) -> Any:
    """The floor of the quotient, as docs/numerics.md says of infinities."""
    y = np.floor_divide(a, b)
    if a.dtype.kind != "f":
        return y
    with np.errstate(all="ignore"):
        return np.where(np.isinf(a) | np.isinf(b), np.floor(a / b), y)


def _power(a: Any, b: Any) -> Any:
    if a.dtype.kind in "iu":
        return np.power(a, b)
    if a.dtype.kind == "b":
        return np.power(a.astype("int32"), b.astype("int32"))
    return np.power(a.astype("longdouble"), b.astype("longdouble")) if a.dtype.kind == "f" else np.power(a, b)


def _complex_at_infinity(results: Any, a: Any, b: Any) -> Any:
    """Where a complex power has an infinite or unknown operand, of which no standard says anything."""
    known = np.isfinite(a.astype("complex128")) & np.isfinite(b.astype("complex128"))
    return ~known & (b != 0) & (a.dtype.kind == "c")


ELEMENTWISE |= {
    "tk.logaddexp2": Row(_logaddexp2, cases=binary),
    "tk.floor_divide": Row(_floor_divide, cases=divisors, precision="same", result=arithmetic, ulp=1),
    "tk.power": Row(_power, cases=exponents, precision="same", result=arithmetic, skip=_complex_at_infinity),
    "tk.float_power": Row(np.float_power, cases=binary, result=inexact, skip=_complex_at_infinity),
    "tk.divmod": Row(
        lambda a, b: (_floor_divide(a, b), np.remainder(a, b)),
        cases=divisors,
        precision="same",
        result=arithmetic,
        ulp=1,
    ),
    "tk.complex": Row(
        lambda a, b: _complex(a, b),
        cases=binary,
        precision="same",
        result=lambda d: "complex128" if d == "float64" else "complex64",
    ),
    "tk.ldexp": Row(
        lambda x, n: np.ldexp(x, n),
        cases=lambda d: [
            Case(
                "ends",
                (
                    np.repeat(ends(d), 6),
                    np.tile(np.array([0, 1, -1, 40, -40, 2**31 - 1], "int32"), len(ends(d))),
                ),
            )
        ],
        ulp=1,
    ),
    "tk.isclose": Row(np.isclose, cases=binary, result=always("bool")),
    "tk.where": Row(
        np.where,
        cases=lambda d: [Case("ends", (np.arange(len(pairs(d)[0])) % 2 == 0, *pairs(d)))],
        **MOVES,
    ),
    "tk.clip": Row(
        np.clip,
        cases=lambda d: [Case("ends", (ends(d), ends(d)[1], ends(d)[2 % len(ends(d))]))],
        **MOVES,
    ),
}


def _complex(a: Any, b: Any) -> Any:
    """numpy's complex numbers of these parts."""
    wide = {np.dtype("longdouble"): "clongdouble", np.dtype("float64"): "complex128"}
    y = np.empty(np.shape(a), wide.get(a.dtype, "complex64"))
    y.real, y.imag = a, b
    return y
