"""Rows of random numbers: they have no oracle, but a support, and parameters whose ends give NaN or a limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tensorken as tk
from oracles.sweep.operands import INTEGERS, numpy_dtype
from oracles.sweep.row import Case, Row, always, same

DRAWS: dict[str, Row] = {}
COUNT = 64
KEY = np.asarray(tk.random.key(3))


def support(low: float, high: float, *, integers: bool = False) -> Callable[[Any], Any]:
    """Which numbers a distribution has: those from `low` to `high`."""

    def inside(y: Any) -> Any:
        wide = y.astype("float64")
        good = (wide >= low) & (wide <= high) & np.isfinite(wide)
        return good & (wide == np.floor(wide)) if integers else good

    return inside


def _drawn(name: str, inside: Callable[[Any], Any], *parameters: Any, **facts: Any) -> None:
    """A row of a distribution: numbers of a dtype, for regular parameters and for those at the ends of their range."""
    ends = facts.pop("ends", ())
    extra = facts.pop("extra", {})

    def cases(d: str) -> list[Case]:
        found = [Case("regular", (KEY, *parameters), {"dtype": d, "shape": (COUNT,), **extra})]
        for k, given in enumerate(ends):
            arrays = [np.asarray(v).astype("float64" if d == "float64" else "float32") for v in given]
            found.append(Case(f"ends {k}", (KEY, *arrays), {"dtype": d, "shape": (COUNT,), **extra}))
        return found

    facts = {"result": same, "precision": "kept", **facts}
    DRAWS[f"tk.random.{name}"] = Row(None, cases=cases, inside=inside, **facts)


_any, _positive, _unit = support(-np.inf, np.inf), support(0.0, np.inf), support(0.0, 1.0)
for _name in ("normal", "gumbel", "laplace", "logistic", "cauchy"):
    _drawn(_name, _any)
for _name in ("exponential", "maxwell"):
    _drawn(_name, _positive)
_drawn("uniform", _unit)
_drawn("beta", _unit, 0.5, 2.0, ends=((1e-3, 1e-3), (1e5, 1e5)))
_drawn("gamma", _positive, 0.5, ends=((1e-4,), (1e4,)))
_drawn("loggamma", _any, 0.5, ends=((1e-4,), (1e4,)))
_drawn("chisquare", _positive, 3.0, ends=((1e-3,), (1e4,)))
_drawn("dirichlet", _unit, (0.5, 1.0, 2.0), ends=(((1e-3, 1e-3),),))
_drawn("double_sided_maxwell", _any, 0.0, 1.0)
_drawn("f", _positive, 3.0, 4.0)
_drawn("generalized_normal", _any, 1.5)
_drawn("lognormal", _positive, 1.0)
_drawn("pareto", support(1.0, np.inf), 3.0)
_drawn("rayleigh", _positive, 1.0)
_drawn("t", _any, 3.0)
_drawn("triangular", _unit, 0.0, 0.5, 1.0, ends=((0.0, 0.0, 1.0), (0.0, 1.0, 1.0)))
_drawn("truncated_normal", support(-1.0, 2.0), -1.0, 2.0)
_drawn("wald", _positive, 2.0)
_drawn("weibull_min", _positive, 1.0, 2.0)
_drawn("poisson", support(0, np.inf, integers=True), 3.0, ends=((0.0,), (1e4,)))
_drawn("geometric", support(1, np.inf, integers=True), 0.25, ends=((1.0,),))
_drawn("binomial", support(0, 10, integers=True), 10, 0.5, ends=((10.0, 0.0), (10.0, 1.0)))
_drawn("multinomial", support(0, 10, integers=True), 10, (0.25, 0.25, 0.5))
_drawn("rademacher", support(-1, 1, integers=True))
_drawn("multivariate_normal", _any, (0.0, 1.0), ((2.0, 1.0), (1.0, 2.0)))
_drawn("bits", lambda y: np.ones(y.shape, bool))
_drawn("ball", support(-1, 1), 2)
_drawn("orthogonal", support(-1.001, 1.001), 2)


def _whole(d: str) -> list[Case]:
    """The whole range of an integer dtype, and a few numbers of it."""
    found = [Case("regular", (KEY, 0, 5), {"dtype": d})]
    if d in INTEGERS:
        info = np.iinfo(numpy_dtype(d))
        found.append(Case("limits", (KEY, int(info.min), int(info.max)), {"dtype": d}))
    return found


def _with_key(label: str, numbers: list[float]) -> Callable[[str], list[Case]]:
    """The key, and a vector of these numbers in the dtype."""
    return lambda d: [Case(label, (KEY, np.array(numbers).astype(numpy_dtype(d))))]


DRAWS["tk.random.randint"] = Row(
    None,
    cases=_whole,
    call=lambda f, key, *xs, **params: f(key, (COUNT,), *xs, **params),
    inside=lambda y: np.ones(y.shape, bool),
    result=same,
    precision="kept",
)
DRAWS["tk.random.bernoulli"] = Row(
    None,
    cases=_with_key("ends", [0.0, 1.0]),
    inside=lambda y: np.asarray(y) == np.array([False, True]),
    result=always("bool"),
    precision="kept",
)
DRAWS["tk.random.permutation"] = Row(
    lambda key, x: np.sort(x),
    cases=_with_key("regular", [1, 0, 1, 0, 1]),
    call=lambda f, key, x: tk.sort(f(key, x)),
    result=same,
    precision="kept",
    ulp=0,
)
DRAWS["tk.random.choice"] = Row(
    None,
    cases=_with_key("regular", [1, 0, 1]),
    call=lambda f, key, x: f(key, x, (COUNT,)),
    inside=lambda y: (y == 0) | (y == 1),
    result=same,
    precision="kept",
)
DRAWS["tk.random.categorical"] = Row(
    None,
    cases=_with_key("ends", [0.0, 1.0, 0.5]),
    call=lambda f, key, x: f(key, x, shape=(COUNT,)),
    inside=support(0, 2, integers=True),
    result=always("int32"),
    precision="kept",
)
