"""Millions of random numbers have their distributions and moments, with usual and with extreme parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import FUSED, array
from plugins.tensorken.tests.test_random_distributions import ROWS, LogGamma, Row, distance, rows_of
from plugins.tensorken.tests.test_random_statistics import DISTRIBUTIONS, kolmogorov_smirnov

pytestmark = pytest.mark.nightly

KEYS = tuple(tk.random.split(tk.random.key(2026, backend=FUSED), 2))
COUNT = 1_000_000

EXTREME = [
    *rows_of("gamma", stats.gamma, (1e-3,), (0.01,), (0.999,), (1e8,)),
    *rows_of("loggamma", LogGamma, (1e-3,), (1e6,)),
    *rows_of("beta", stats.beta, (0.1, 0.1), (0.01, 5.0), (1.0, 1.0), (1e5, 3.0)),
    *rows_of("chisquare", stats.chi2, (0.05,), (1e5,)),
    *rows_of("t", stats.t, (0.3,), (1e6,)),
    *rows_of("f", stats.f, (0.2, 0.3), (1e4, 1e4)),
    *rows_of("generalized_normal", stats.gennorm, (0.2,), (60.0,)),
    *rows_of("lognormal", stats.lognorm, (1e-3,), (5.0,)),
    *rows_of("pareto", stats.pareto, (0.2,), (100.0,)),
    *rows_of("weibull_min", lambda scale, c: stats.weibull_min(c, scale=scale), (1.0, 0.1), (2.0, 50.0)),
    *rows_of("wald", stats.invgauss, (0.01,), (100.0,)),
    *rows_of(
        "truncated_normal", stats.truncnorm, (4.5, 5.0), (5.0, math.inf), (-12.0, -9.0), (-math.inf, -6.0)
    ),
    *rows_of("poisson", stats.poisson, (1e-3,), (1e4,), (1e6,), counts=True),
    *rows_of("binomial", stats.binom, (1, 0.25), (10**5, 1e-4), (10**6, 1e-7), (10**6, 0.5), counts=True),
    *rows_of("geometric", stats.geom, (1e-4,), (0.999,), counts=True),
]


@each_of("dtype", ["float32", "float64"])
@each_of("row", [*ROWS, *EXTREME])
def test_numbers_have_their_distribution_and_moments(row: Row, dtype: str) -> None:
    """Bounds of moments are those that a normal number exceeds once in 100,000."""
    for key in KEYS:
        x = array(row.draw(key, (COUNT,), dtype))
        assert distance(row, x) < 1.0
        if not hasattr(row.scipy, "stats"):
            continue
        mean, variance, _, kurtosis = (float(moment) for moment in row.scipy.stats("mvsk"))
        if not 0.0 <= kurtosis + 2.0 < 1e3:  # means of numbers with heavier tails are not normal
            continue
        x, rounding = x.astype("float64"), abs(mean) * float(np.finfo(dtype).eps)
        assert abs(x.mean() - mean) < 4.4 * math.sqrt(variance / COUNT) + rounding
        error = variance * math.sqrt((kurtosis + 2.0) / COUNT)
        assert abs(((x - mean) ** 2).mean() - variance) < 4.4 * error + 2.0 * rounding * math.sqrt(variance)


@each_of("dtype", ["float32", "float64"])
@each_of("name", DISTRIBUTIONS)
def test_common_numbers_have_their_distribution(name: str, dtype: str) -> None:
    draw, distribution = DISTRIBUTIONS[name]
    for key in KEYS:
        assert kolmogorov_smirnov(array(draw(key, (COUNT,), dtype)), distribution) < 1.95


# ---- components of vectors ---------------------------------------------------------------------------------


def dirichlet(*alpha: float) -> tuple[Callable[..., Any], list[Row]]:
    rows = [Row("dirichlet", (), stats.beta(a, sum(alpha) - a)) for a in alpha]
    return lambda key, dtype: array(
        tk.random.dirichlet(key, tk.tensor(alpha, dtype, backend=FUSED), (COUNT,), dtype)
    ), rows


def multinomial(n: int, *p: float) -> tuple[Callable[..., Any], list[Row]]:
    rows = [Row("multinomial", (), stats.binom(n, chance), counts=True) for chance in p]
    return lambda key, dtype: array(
        tk.random.multinomial(key, n, tk.tensor(p, dtype, backend=FUSED), shape=(COUNT,), dtype=dtype)
    ), rows


def ball(d: int, p: float) -> tuple[Callable[..., Any], list[Row]]:
    """The d-th powers of norms are uniform."""

    def draw(key: Any, dtype: str) -> Any:
        x = array(tk.random.ball(key, d, p, (COUNT,), dtype))
        return (np.abs(x).astype("float64") ** p).sum(-1, keepdims=True) ** (d / p)

    return draw, [Row("ball", (), stats.uniform())]


def orthogonal(n: int) -> tuple[Callable[..., Any], list[Row]]:
    """The squares of elements are numbers of beta."""

    def draw(key: Any, dtype: str) -> Any:
        return array(tk.random.orthogonal(key, n, (COUNT // 10,), dtype)).reshape((-1, n * n)) ** 2

    return draw, [Row("orthogonal", (), stats.beta(0.5, (n - 1) / 2))] * (n * n)


VECTORS = {
    "dirichlet": dirichlet(0.5, 2.0, 1.5),
    "dirichlet of tiny concentrations": dirichlet(1e-3, 2e-3, 0.01),
    "dirichlet of large concentrations": dirichlet(1e4, 3.0),
    "multinomial": multinomial(10, 0.25, 0.5, 0.25),
    "multinomial of many": multinomial(10**6, 0.5, 0.25, 0.125, 0.125),
    "ball": ball(3, 2.0),
    "ball of another norm": ball(2, 0.5),
    "orthogonal": orthogonal(3),
}


@each_of("dtype", ["float32", "float64"])
@each_of("name", VECTORS)
def test_components_have_their_distributions(name: str, dtype: str) -> None:
    draw, rows = VECTORS[name]
    for key in KEYS:
        columns = draw(key, dtype)
        assert columns.shape[-1] == len(rows)
        for i, row in enumerate(rows):
            assert distance(row, columns[:, i]) < 1.0, i


# ---- derivatives of numbers that are made of two -----------------------------------------------------------


@each_of(("a", "b"), [(0.3, 0.8), (2.0, 3.0), (1.0, 20.0), (50.0, 30.0)])
def test_means_of_derivatives_of_beta_are_derivatives_of_quantiles(a: float, b: float) -> None:
    """Among numbers near x, the mean derivative is that of the quantile at x: a finite difference of scipy's."""
    first, second = (tk.full((50_000,), v, "float64", backend=FUSED) for v in (a, b))
    for key in KEYS:
        for place in (0, 1):
            tangents = [tk.full((50_000,), float(place == i), "float64", backend=FUSED) for i in (0, 1)]
            x, slopes = (
                array(v)
                for v in tk.jvp(
                    lambda a, b, key=key: tk.random.beta(key, a, b, None, "float64"),
                    (first, second),
                    tangents,
                )
            )
            u = stats.beta.cdf(x, a, b)
            h = 1e-4 * (a, b)[place]
            ends = [stats.beta.ppf(u, *np.add((a, b), np.eye(2)[place] * s * h)) for s in (-1, 1)]
            deviations = slopes - (ends[1] - ends[0]) / (2 * h)
            bins = (u * 50).astype("int64").clip(0, 49)
            for i in range(50):
                inside = deviations[bins == i]
                assert abs(inside.mean()) < 4.4 * inside.std() / math.sqrt(inside.size) + 1e-7
