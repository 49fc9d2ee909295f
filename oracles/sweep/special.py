"""Rows of special functions, activations, losses and clipping: numbers in scipy or by their definitions."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import scipy.special

from oracles.sweep.arrays import log_softmax, on_vectors, softmax
from oracles.sweep.elementwise import logistic
from oracles.sweep.modes import is_operand
from oracles.sweep.operands import INTEGERS, ends, kind, limits, numpy_dtype, regular
from oracles.sweep.row import Case, Row, binary, real_inexact, same, unary

SPECIAL: dict[str, Row] = {}


def in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of scipy, which has no longer numbers than float64."""

    def computed(*xs: Any) -> Any:
        if any(np.iscomplexobj(x) for x in xs):
            raise TypeError("not of complex numbers")
        return function(*[np.asarray(x, "float64") if is_operand(x) else x for x in xs])

    return computed


def in_mpmath(exact: Callable[..., Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """A function of mpmath, with 40 digits; scipy's at large numbers and poles, where mpmath takes forever."""

    def computed(*xs: Any) -> Any:
        y = np.array(in_double(otherwise)(*xs), dtype="longdouble")
        for k in np.ndindex(y.shape):
            given = [x if isinstance(x, int) else float(x[k]) for x in xs]
            if all(abs(v) < 1e6 for v in given):
                with (
                    contextlib.suppress(ValueError, ArithmeticError, mpmath.libmp.NoConvergence),
                    mpmath.workdps(40),
                ):
                    y[k] = np.longdouble(mpmath.nstr(exact(*[mpmath.mpf(v) for v in given]), 25))
        return y

    return computed


def _scipy(names: str, **facts: Any) -> None:
    for name in names.split():
        SPECIAL[f"tk.special.{name}"] = Row(in_double(getattr(scipy.special, name)), **facts)


def _kl_div(x: Any, y: Any) -> Any:
    """scipy's overflows in the quotient of a subnormal y."""
    return np.where(
        (x > 0) & (y > 0) & np.isfinite(x) & np.isfinite(y),
        x * (np.log(x) - np.log(y)) - x + y,
        scipy.special.kl_div(x, y),
    )


_POLES = (-1.0, -2.0, -3.0, -20.0, 4.5, 1e-3, 20.0, -0.5, -2.5, 170.0)
_scipy("i0e i1e", cases=unary(5.0, -5.0, 9.0, -9.0, 27.0, -27.0), ulp=32)
SPECIAL["tk.special.expit"] = Row(
    lambda x: logistic(x), cases=unary(5.0, -5.0, 9.0, -9.0, 27.0, -27.0), ulp=32
)
# scipy's is NaN at infinities
SPECIAL["tk.special.i1"] = Row(
    in_double(lambda x: np.where(np.isinf(x), x, scipy.special.i1(x))),
    cases=unary(5.0, -5.0, 9.0, -27.0),
    ulp=32,
)
for _name, _exact in {
    "erfc": mpmath.erfc,
    "ndtr": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "log_ndtr": lambda x: mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2),
}.items():
    SPECIAL[f"tk.special.{_name}"] = Row(
        in_mpmath(_exact, getattr(scipy.special, _name)),
        cases=unary(5.0, -5.0, 9.0, -9.0, 27.0, -27.0),
        ulp=8,
    )
_scipy("erfcx", cases=unary(5.0, -5.0, 9.0, -9.0, 27.0, -27.0), ulp=8)
SPECIAL["tk.special.psi"] = Row(
    in_mpmath(lambda x: mpmath.psi(0, x), scipy.special.psi), cases=unary(*_POLES), ulp=16, scale="one"
)
# in C the function of -inf is inf too; scipy's is infinite at subnormal numbers
SPECIAL["tk.special.gammaln"] = Row(
    in_double(lambda x: np.where(x == -np.inf, np.inf, scipy.special.gammaln(x))),
    cases=unary(*_POLES),
    skip=lambda y, x: abs(x) < 1e-307,
    ulp=16,
    scale="one",
)
_scipy("logit", cases=unary(1e-10, 0.999, 0.25), ulp=16, scale="one")
_scipy("ndtri", cases=unary(1e-10, 0.999, 0.25), ulp=16, scale="one")
SPECIAL["tk.special.kl_div"] = Row(in_double(_kl_div), cases=binary, ulp=32)
_scipy("entr", cases=unary(0.25), ulp=4)
_scipy("xlogy xlog1py rel_entr", cases=binary, ulp=32)


def grid(*axes: Sequence[float]) -> Callable[[str], list[Case]]:
    """Every combination of some numbers; of integers those that are integers."""

    def cases(name: str) -> list[Case]:
        if name in ("bool", *INTEGERS):
            numbers = [[v for v in axis if 0 <= v < 100 and v == int(v)] for axis in axes]
        else:
            numbers = [list(axis) for axis in axes]
        table = np.array(list(itertools.product(*numbers))).T
        return [
            Case("ends", tuple(np.asarray(row).astype(numpy_dtype(name)) for row in table)),
            Case("none", tuple(np.zeros(0, numpy_dtype(name)) for _ in table)),
        ]

    return cases


_INF, _NAN = np.inf, np.nan
SPECIAL["tk.special.betaln"] = Row(
    in_mpmath(
        lambda a, b: mpmath.log(abs(mpmath.beta(a, b))),
        lambda a, b: np.where(
            np.isnan(a + b), np.nan, np.where((a == _INF) & (b == _INF), -_INF, scipy.special.betaln(a, b))
        ),
    ),
    cases=grid((0.0, 0.25, 1.0, 3.0, 500.0, _INF, -0.5, _NAN), (0.0, 0.5, 1.0, 20.0, _INF, _NAN)),
    ulp=64,
    scale="one",
)
_scipy(
    "gammainc gammaincc",
    cases=grid(
        (0.0, 0.25, 1.0, 3.0, 40.0, 500.0, _INF, -1.0, _NAN),
        (0.0, 1e-4, 0.5, 1.0, 20.0, 480.0, _INF, -1.0, _NAN),
    ),
    ulp=8192,
)
_scipy(
    "betainc",
    cases=grid(
        (0.0, 0.25, 1.0, 3.0, 40.0, _INF, -1.0, _NAN),
        (0.0, 0.5, 1.0, 20.0, _INF, _NAN),
        (0.0, 1e-3, 0.5, 1.0, -0.5, 2.0, _NAN),
    ),
    ulp=256,
)
# scipy has no limits for infinite and NaN operands
_scipy(
    "zeta",
    cases=grid((1.0, 1.5, 2.0, 7.0, 40.0, 0.5, 0.0, -1.0, -2.5), (1.0, 0.25, 3.0, 50.0, 0.0, -0.5, -3.0)),
    ulp=128,
    scale="one",
)


def _orders(name: str) -> list[Case]:
    x = ends(name)
    if kind(name) == "float":
        x = np.concatenate([x, np.array(_POLES).astype(x.dtype)])
    return [Case("ends", (n, x)) for n in (0, 1, 2, 3)]


SPECIAL["tk.special.polygamma"] = Row(
    in_mpmath(lambda n, x: mpmath.psi(int(n), x), scipy.special.polygamma), cases=_orders, ulp=128
)

SPECIAL["tk.special.softmax"] = Row(lambda x, axis=None: softmax(x, axis), cases=on_vectors("ends"), ulp=6)
SPECIAL["tk.special.log_softmax"] = Row(
    lambda x, axis=None: log_softmax(x, axis), cases=on_vectors("ends", "largest"), ulp=6, scale="one"
)

# ---- activations ------------------------------------------------------------------------------------------------


def _at_minus_infinity(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function whose formula is NaN at -inf, where it has the limit 0."""
    return lambda x: np.where(x == -np.inf, 0.0, f(x))


_elu = lambda x: np.where(x > 0, x, np.expm1(x))  # noqa: E731
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x > 0, x, x * 0.01),
    "elu": _elu,
    "celu": _elu,
    "selu": lambda x: (
        1.0507009873554804934193349852946
        * np.where(x > 0, x, 1.6732632423543772848170429916717 * np.expm1(x))
    ),
    "gelu": _at_minus_infinity(lambda x: x * in_double(scipy.special.ndtr)(x)),
    "silu": _at_minus_infinity(lambda x: x * logistic(x)),
    "mish": _at_minus_infinity(lambda x: x * np.tanh(np.logaddexp(x, 0))),
    "log_sigmoid": lambda x: -np.logaddexp(-x, 0),
    "soft_sign": lambda x: np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x))),
    "squareplus": lambda x: np.where(x < 0, 2 / (np.sqrt(x * x + 4) - x), (x + np.sqrt(x * x + 4)) / 2),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: np.where(x <= -3, 0, np.where(x >= 3, x, x * (x + 3) / 6)),
}


def _subnormal(exact: Any, *xs: Any) -> Any:
    """Products with a subnormal factor have few digits."""
    return (np.abs(exact[0]) < 1.2e-38) & (np.abs(exact[0]) > 1e-300)


def _beyond_reach(exact: Any, *xs: Any) -> Any:
    """As `_subnormal`, and complex numbers whose angle is less precise than a turn."""
    return _subnormal(exact, *xs) | (np.iscomplexobj(xs[0]) & (np.abs(xs[0]) > 1e30))


def _real(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def computed(x: Any) -> Any:
        if x.dtype.kind == "c":
            raise TypeError("not of complex numbers")
        return f(x)

    return computed


for _name, _f in ACTIVATIONS.items():
    SPECIAL[f"tk.{_name}"] = Row(
        _f if _name == "silu" else _real(_f),
        cases=unary(-5.0, 5.0, -3.0, 6.0, -20.0),
        ulp=8,
        scale="one" if _name == "gelu" else "result",
        skip=_beyond_reach,
    )
SPECIAL["tk.glu"] = Row(
    _real(lambda x: np.where(x[..., 3:] == -np.inf, 0.0, x[..., :3] * logistic(x[..., 3:]))),
    cases=lambda d: [Case("regular", (regular(d, (2, 6)),)), Case("none", (regular(d, (0, 6)),))],
    ulp=8,
    skip=_subnormal,
)

# ---- losses -------------------------------------------------------------------------------------------------------


def on_floats(*make: Callable[[str], Any]) -> Callable[[str], list[Case]]:
    """Operands of a dtype; losses refuse outputs of other kinds, in one case."""
    return lambda name: [Case("ends", tuple(f(name) for f in make), {"reduction": "none"})]


def _signs(d: str) -> Any:
    return np.where(np.arange(len(ends(d))) % 2, 1, -1).astype(numpy_dtype(d))


def _shares(d: str) -> Any:
    return (np.arange(len(ends(d))) % 3 / 2).astype(numpy_dtype(d))


def _chances(d: str) -> Any:
    x = np.array([0.0, 1.0, 0.5, 0.25, 0.125, 1e-3, 0.75, 0.9])
    return x.astype(numpy_dtype(d))


def _targets(d: str) -> Any:
    return np.array([0.0, 1.0, 0.5, 0.0, 1.0, 0.25, 0.0, 1.0]).astype(numpy_dtype(d))


def _row(name: str, oracle: Callable[..., Any], cases: Callable[[str], list[Case]], **facts: Any) -> None:
    def of_reals(*xs: Any, **params: Any) -> Any:
        if any(x.dtype.kind == "c" for x in xs if isinstance(x, np.ndarray)):
            raise TypeError("not of complex numbers")
        params.pop("reduction", None)
        return oracle(*xs, **params)

    SPECIAL[f"nn.{name}"] = Row(of_reals, cases=cases, **{"ulp": 16, **facts})


def _huber(x: Any, y: Any) -> Any:
    e = np.abs(x - y)
    return np.where(e <= 1, e * e / 2, e - 0.5)


def _bce(p: Any, t: Any) -> Any:
    log_p, log_q = (np.maximum(np.log(v), -100) for v in (p, 1 - p))
    return -t * log_p - (1 - t) * log_q


def _poisson(x: Any, t: Any) -> Any:
    return np.exp(x) - np.where((t == 0), 0.0, t * x)


_pair = on_floats(ends, lambda d: regular(d, ends(d).shape))
_row("squared_error", lambda x, y: (x - y) ** 2, _pair)
_row("l1", lambda x, y: np.abs(x - y), _pair)
_row("huber", _huber, _pair)
_row("smooth_l1", _huber, _pair)
_row("hinge", lambda x, t: np.maximum(1 - x * t, 0), on_floats(ends, _signs), scale="one")
_row("soft_margin", lambda x, t: np.logaddexp(-x * t, 0), on_floats(ends, _signs))
_row(
    "hinge_embedding",
    lambda x, t: np.where(t > 0, x, np.maximum(1 - x, 0)),
    on_floats(ends, _signs),
    scale="one",
)
_row(
    "margin_ranking",
    lambda x, y, t: np.maximum(-t * (x - y), 0),
    on_floats(ends, lambda d: regular(d, ends(d).shape), _signs),
)
_row(
    "binary_cross_entropy_with_logits",
    lambda x, t: (
        np.where(t == 0, 0, t * np.logaddexp(-x, 0)) + np.where(t == 1, 0, (1 - t) * np.logaddexp(x, 0))
    ),
    on_floats(ends, _shares),
)
_row("binary_cross_entropy", _bce, on_floats(_chances, _targets), scale="one")
_row("poisson_negative_log_likelihood", _poisson, on_floats(ends, _shares), scale="terms")
_row(
    "gaussian_negative_log_likelihood",
    lambda x, y, v: (np.log(np.maximum(v, 1e-6)) + (x - y) ** 2 / np.maximum(v, 1e-6)) / 2,
    on_floats(_chances, _targets, lambda d: (_chances(d) + _chances(d)).astype(numpy_dtype(d))),
    scale="largest",
)


def _rows_of(*labels: int) -> Callable[[str], list[Case]]:
    """Rows of outputs with ends, and their labels."""

    def cases(d: str) -> list[Case]:
        x = regular(d, (len(labels), 3)).copy()
        found = [Case("regular", (x, np.array(labels, "int32")), {"reduction": "none"})]
        if kind(d) == "float":
            y = x.copy()
            y[0] = (-np.inf, 0, 1)
            y[1] = (np.inf, 0, 1)
            y[2] = limits(d).max, 0, 1
            found.append(Case("ends", (y, np.array(labels, "int32")), {"reduction": "none"}))
        return found

    return cases


_pick = lambda x, i: np.take_along_axis(x, i.astype(int)[:, None], -1)[:, 0]  # noqa: E731
_row("cross_entropy", lambda x, i: -_pick(log_softmax(x), i), _rows_of(1, 0, 2), scale="one")
_row("negative_log_likelihood", lambda x, i: -_pick(x, i), _rows_of(1, 0, 2), ulp=0.5)
_row(
    "multi_margin",
    lambda x, i: (np.maximum(1 - _pick(x, i)[:, None] + x, 0).sum(-1) - 1) / 3,
    lambda d: _rows_of(1, 0, 2)(d)[:1],
    scale="terms",
)
_row(
    "kl_divergence",
    lambda x, t: scipy.special.xlogy(*np.asarray((t, t), "float64")).sum(-1) - (t * x).sum(-1),
    lambda d: [
        Case(
            "regular",
            (regular(d, (2, 3)), np.array([[0.5, 0.5, 0], [1, 0, 0]]).astype(numpy_dtype(d))),
            {"reduction": "none"},
        )
    ],
    scale="terms",
)
_vectors = lambda d: [Case("regular", (regular(d, (2, 3)), regular(d, (2, 3), 1)))]  # noqa: E731
_lengths = lambda x: np.sqrt((x * x).sum(-1))  # noqa: E731
_similarity = lambda x, y: (x * y).sum(-1) / (_lengths(x) * _lengths(y))  # noqa: E731


def _similarity_cases(d: str) -> list[Case]:
    found = _vectors(d)
    if kind(d) == "float":
        big = float(limits(d).max) / 4
        for label, v in (("largest", big), ("smallest", float(limits(d).smallest_normal))):
            x = np.array([[v, v / 2, 0.0]]).astype(numpy_dtype(d))
            found.append(Case(label, (x, x)))
        found.append(Case("zero", (np.zeros((1, 3), numpy_dtype(d)), np.ones((1, 3), numpy_dtype(d)))))
    return found


def _similarity_exact(x: Any, y: Any) -> Any:
    return (x * y).sum(-1) / (np.maximum(_lengths(x), 1e-8) * np.maximum(_lengths(y), 1e-8))


_row("cosine_similarity", _similarity_exact, _similarity_cases, scale="one")
_row(
    "cosine_embedding",
    lambda x, y, t: np.where(t > 0, 1 - _similarity(x, y), np.maximum(_similarity(x, y), 0)),
    lambda d: [
        Case(
            "regular",
            (regular(d, (2, 3)), regular(d, (2, 3), 1), np.array([1, -1]).astype(numpy_dtype(d))),
            {"reduction": "none"},
        )
    ],
    scale="one",
)
_row("pairwise_distance", lambda x, y: _lengths(x - y + 1e-6), _vectors)
_row(
    "triplet_margin",
    lambda a, p, n: np.maximum(1 + _lengths(a - p + 1e-6) - _lengths(a - n + 1e-6), 0),
    lambda d: [Case("regular", tuple(regular(d, (2, 3), k) for k in range(3)), {"reduction": "none"})],
    scale="terms",
)
_row(
    "ctc",
    lambda x, i: np.array(
        [
            -np.log(
                np.exp(x[0, :, 1]).prod() + np.exp(x[0, 0, 0] + x[0, 1, 1]) + np.exp(x[0, 0, 1] + x[0, 1, 0])
            )
        ]
    ),
    lambda d: [
        Case(
            "regular",
            (
                -abs(regular(d, (1, 2, 3))) if kind(d) == "float" else regular(d, (1, 2, 3)),
                np.array([[1]], "int32"),
            ),
            {"reduction": "none"},
        )
    ],
    scale="one",
    result=same,
)

# ---- clipping -----------------------------------------------------------------------------------------------------


def _trees(d: str) -> list[Case]:
    found = [Case("regular", (regular(d, (2, 3)), regular(d, (2,), 1)))]
    if kind(d) == "float":
        big, small = float(limits(d).max) / 8, float(limits(d).smallest_normal)
        for label, v in (
            ("largest", big),
            ("smallest", small),
            ("infinite", np.inf),
            ("nan", np.nan),
            ("zero", 0.0),
        ):
            found.append(
                Case(
                    label,
                    (
                        np.array([v * 0.75, v]).astype(numpy_dtype(d)),
                        np.array([v / 2]).astype(numpy_dtype(d)),
                    ),
                )
            )
    return found


def _norm(*xs: Any) -> Any:
    return np.sqrt(
        sum((np.abs(x.astype("longdouble" if x.dtype.kind == "f" else x.dtype)) ** 2).sum() for x in xs)
    )


def _clipped(*xs: Any) -> Any:
    norm = _norm(*xs)
    if np.isinf(norm):
        return tuple(np.where(np.isinf(x), np.nan, 0.0) for x in xs)
    return tuple(x * (1.0 if norm <= 1 else 1 / norm) for x in xs)


SPECIAL["nn.global_norm"] = Row(
    _norm,
    cases=_trees,
    call=lambda f, *xs: f(list(xs)),
    ulp=16,
    result=lambda d: "float32" if d in ("float16", "bfloat16") else real_inexact(d),
)
SPECIAL["nn.clip_by_global_norm"] = Row(
    _clipped, cases=_trees, call=lambda f, *xs: tuple(f(list(xs), 1.0)), ulp=16, result=same
)
SPECIAL["nn.clip_by_value"] = Row(
    _real(lambda x: np.clip(x, -1, 1)), cases=unary(), call=lambda f, x: f([x], 1.0)[0], ulp=0
)
