"""Distributions: against those of scipy, on all backends and under all transforms, derivatives, limits, errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special, stats

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import FUSED, STACKS, array
from plugins.tensorken.tests.test_random_statistics import chi_squared, kolmogorov_smirnov
from tensorken.special.gamma_quantiles import log1p_minus
from tensorken_core.errors import ArgumentError, DTypeError, LinearAlgebraError, MixedBackendError, ShapeError

BACKENDS: dict[str, Any] = {**STACKS, "reference": "reference"}
KEY = tk.random.key(2010, backend=FUSED)
inf, nan = math.inf, math.nan


@dataclass(frozen=True)
class Row:
    """One distribution with parameters, and scipy's frozen distribution of the same numbers."""

    name: str
    parameters: tuple[Any, ...]
    scipy: Any
    counts: bool = False

    def draw(self, key: Any, shape: Any, *dtype: Any) -> Any:
        return getattr(tk.random, self.name)(key, *self.parameters, shape, *dtype)

    @property
    def wide(self) -> str:
        """The dtype in which counts do not have gaps."""
        return "float64" if self.counts else "float32"


def rows_of(name: str, make: Any, *parameters: tuple[Any, ...], counts: bool = False) -> list[Row]:
    return [Row(name, one, make(*one), counts) for one in parameters]


class LogGamma:
    """The logarithm of the gamma distribution; scipy's has the density of its exponential form too."""

    def __init__(self, a: float) -> None:
        self.cdf = stats.loggamma(a).cdf


class TwoSided:
    """A Maxwell distribution with a random sign."""

    def __init__(self, loc: float, scale: float) -> None:
        self.loc, self.scale = loc, scale

    def cdf(self, x: Any) -> Any:
        z = (x - self.loc) / self.scale
        return 0.5 + 0.5 * np.sign(z) * stats.maxwell.cdf(np.abs(z))


CONTINUOUS = [
    *rows_of("gamma", stats.gamma, (0.3,), (1.0,), (2.5,), (59.0,), (1e4,), (1e6,)),
    *rows_of("loggamma", LogGamma, (0.01,), (0.3,), (7.0,)),
    *rows_of("beta", stats.beta, (0.5, 0.5), (2.0, 3.0), (0.2, 30.0), (1e3, 2e3)),
    *rows_of("chisquare", stats.chi2, (1.0,), (5.0,)),
    *rows_of("t", stats.t, (1.0,), (3.0,), (40.0,)),
    *rows_of("f", stats.f, (3.0, 5.0), (20.0, 0.7)),
    *rows_of("generalized_normal", stats.gennorm, (0.5,), (2.0,), (7.0,)),
    *rows_of("double_sided_maxwell", TwoSided, (1.0, 2.0)),
    *rows_of("lognormal", stats.lognorm, (0.5,)),
    *rows_of("pareto", stats.pareto, (3.0,)),
    *rows_of("rayleigh", lambda scale: stats.rayleigh(scale=scale), (3.0,)),
    *rows_of("weibull_min", lambda scale, c: stats.weibull_min(c, scale=scale), (2.0, 0.5), (2.0, 3.0)),
    *rows_of(
        "triangular",
        lambda low, mode, high: stats.triang((mode - low) / (high - low), low, high - low),
        (-1.0, 0.0, 3.0),
        (0.0, 0.0, 1.0),
        (0.0, 1.0, 1.0),
    ),
    *rows_of("wald", stats.invgauss, (0.2,), (1.0,), (9.0,)),
    *rows_of("laplace", stats.laplace, ()),
    *rows_of("logistic", stats.logistic, ()),
    *rows_of("cauchy", stats.cauchy, ()),
    *rows_of("maxwell", stats.maxwell, ()),
]
DISCRETE = [
    *rows_of("poisson", stats.poisson, (0.1,), (3.0,), (9.99,), (10.0,), (37.5,), (300.0,), counts=True),
    *rows_of("poisson", stats.poisson, (1e5,), counts=True),
    *rows_of("binomial", stats.binom, (10, 0.3), (100, 0.05), (40, 0.25), (50, 0.9), (20, 0.5), counts=True),
    *rows_of("binomial", stats.binom, (1000, 0.5), (100_000, 0.3), (10**6, 2e-5), counts=True),
    *rows_of("geometric", stats.geom, (0.9,), (0.2,), (0.01,), counts=True),
]
ROWS = [*CONTINUOUS, *DISCRETE]
FIRST = {row.name: row for row in reversed(ROWS)}
"""One row for each function."""


def distance(row: Row, x: Any) -> float:
    """The statistic of the fitting test, divided by the bound that is exceeded once in 1000."""
    x = np.asarray(x)
    assert not np.isnan(x).any()
    if not row.counts:
        return kolmogorov_smirnov(x, row.scipy.cdf) / 1.95
    low, high = (int(row.scipy.ppf(share)) for share in (0.0005, 0.9995))
    edges = np.unique(np.linspace(low, high, min(high - low, 200) + 1).astype("int64"))
    chances = np.diff(np.concatenate([[0.0], row.scipy.cdf(edges), [1.0]]))
    counts = np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1)
    frequent = chances * x.size > 10.0
    counts = np.append(counts[frequent], counts[~frequent].sum())
    chances = np.append(chances[frequent], chances[~frequent].sum())
    kept = chances > 0
    assert counts[~kept].sum() == 0
    return chi_squared(counts[kept], chances[kept]) / 3.1


@each_of("row", ROWS)
def test_numbers_have_their_distribution(row: Row) -> None:
    assert distance(row, array(row.draw(KEY, (8000,)))) < 1.0


@each_of("row", ROWS)
def test_the_fitting_tests_find_a_difference_of_3_percent(row: Row) -> None:
    x = array(row.draw(KEY, (8000,)))
    if row.counts:
        x[:240] = row.scipy.ppf(0.97)
        assert distance(row, x) > 1.0
    else:
        assert kolmogorov_smirnov(x, lambda x: np.clip(row.scipy.cdf(x) + 0.03, 0.0, 1.0)) > 1.95


# ---- the same under all transforms and on all backends -----------------------------------------------------


@pytest.mark.parametrize("name", FIRST)
def test_numbers_under_jit_and_vmap_are_those_of_plain_calls(name: str) -> None:
    row = FIRST[name]
    keys = tk.random.split(KEY, 3)
    loop = np.stack([array(row.draw(keys[i], (4,))) for i in range(3)])
    assert np.array_equal(array(tk.vmap(lambda key: row.draw(key, (4,)))(keys)), loop)
    compiled = tk.jit(lambda key: row.draw(key, (4,)))
    assert near(array(compiled(keys[0])), loop[0])
    assert np.array_equal(array(tk.jit(tk.vmap(compiled))(keys)), array(tk.vmap(compiled)(keys)))


@pytest.mark.parametrize("name", FIRST)
def test_the_first_numbers_do_not_depend_on_how_many_are_drawn(name: str) -> None:
    row = FIRST[name]
    assert array(row.draw(KEY, (50,)))[:7].tolist() == array(row.draw(KEY, (7,))).tolist()


@pytest.mark.parametrize("name", [name for name in FIRST if FIRST[name].parameters])
def test_parameters_broadcast_and_are_independent_of_each_other(name: str) -> None:
    row = FIRST[name]
    shape = (2, 1, *[1] * 0)
    first = tk.asarray(row.parameters[0]).astype("float32").to(FUSED)
    both = tk.stack([first, first * 1.0]).reshape((2, 1))
    rest = [tk.asarray(x).astype("float32").to(FUSED).broadcast_to((3,)) for x in row.parameters[1:]]
    draw = getattr(tk.random, name)
    x = draw(KEY, both, *rest, (2, 3))
    assert x.shape == (2, 3)
    assert array(x).tolist() == array(row.draw(KEY, (2, 3))).tolist()
    assert draw(KEY, both, *rest).shape == ((2, 3) if rest else (2, 1)) == (2, 3 if rest else 1)
    with pytest.raises(
        ShapeError, match=rf"^{name}: \w+ of shape \(2, 1\) does not broadcast to the shape \(4,\)"
    ):
        draw(KEY, both, *rest, (4,))
    assert shape


@each_of("backend", BACKENDS.values())
@pytest.mark.parametrize("name", FIRST)
def test_numbers_are_near_on_all_backends(name: str, backend: Any) -> None:
    row = FIRST[name]
    assert near(array(row.draw(KEY.to(backend), (3,))), array(row.draw(KEY, (3,))))


def near(found: Any, expected: Any) -> bool:
    """Whether numbers are equal to some units in the last place, and counts are equal."""
    if expected.dtype.kind != "f":
        return np.array_equal(found, expected)
    return bool((np.abs(found - expected) <= 32 * np.spacing(np.abs(expected))).all())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", FIRST)
def test_shapes_and_dtypes_are_the_requested_ones(name: str, dtype: str) -> None:
    for shape in ((), (0,), (3, 1, 2)):
        x = FIRST[name].draw(KEY, shape, dtype)
        assert (x.shape, str(x.dtype)) == (shape, dtype)
    with pytest.raises(DTypeError, match=rf"^{name}: the dtype must be "):
        FIRST[name].draw(KEY, (), "bool")
    with pytest.raises(ArgumentError, match=rf"^{name}: need a key"):
        FIRST[name].draw(3, ())


# ---- derivatives -------------------------------------------------------------------------------------------


def test_log1p_minus_does_not_cancel() -> None:
    x = np.concatenate([np.logspace(-18, 1, 100), -np.logspace(-18, -0.001, 100)])
    with mpmath.workdps(60):
        expected = np.array([float(mpmath.log1p(mpmath.mpf(v)) - mpmath.mpf(v)) for v in x])
    assert np.abs(array(log1p_minus(tk.tensor(x))) / expected - 1.0).max() < 4e-15


@pytest.mark.parametrize("a", [0.2, 0.9, 1.0, 3.0, 45.0, 200.0])
def test_derivatives_of_gamma_are_those_of_quantiles_to_the_second_order(a: float) -> None:
    def draw(a: Any) -> Any:
        return tk.random.gamma(KEY, a, (20,), "float64")

    x = array(draw(a))
    u, h = special.gammainc(a, x), 1e-3 * a
    before, at, after = (special.gammaincinv(a + s * h, u) for s in (-1, 0, 1))
    keep = (u > 1e-3) & (u < 0.999)
    assert keep.sum() > 15
    p = tk.tensor(a, "float64", backend=FUSED)
    by_a = array(tk.derivative(draw)(tk.full((20,), a, dtype="float64", backend=FUSED)))
    np.testing.assert_allclose(array(tk.jacfwd(draw)(p)), by_a, rtol=1e-12)
    np.testing.assert_allclose(array(tk.jacrev(draw)(p)), by_a, rtol=1e-12)
    np.testing.assert_allclose(by_a[keep], ((after - before) / (2 * h))[keep], rtol=1e-4)
    second = array(tk.jacfwd(tk.jacrev(draw))(p))
    np.testing.assert_allclose(array(tk.jacrev(tk.jacrev(draw))(p)), second, rtol=1e-10)
    scale = np.abs(at) / a**2
    quotient = (after - 2 * at + before) / h**2
    np.testing.assert_allclose((second / scale)[keep], (quotient / scale)[keep], rtol=2e-3, atol=2e-3)
    logs = array(tk.jacfwd(lambda a: tk.random.loggamma(KEY, a, (20,), "float64"))(p))
    np.testing.assert_allclose(logs * x, by_a, rtol=1e-12)


@pytest.mark.parametrize("mean", [0.1, 1.0, 5.0])
def test_derivatives_of_wald_are_those_of_quantiles(mean: float) -> None:
    def draw(mean: Any) -> Any:
        return tk.random.wald(KEY, mean, (12,), "float64")

    def below(x: Any, m: Any) -> Any:
        root = mpmath.sqrt(x)
        return mpmath.ncdf((x / m - 1) / root) + mpmath.exp(2 / m) * mpmath.ncdf(-(x / m + 1) / root)

    found = array(tk.jacrev(draw)(tk.tensor(mean, "float64", backend=FUSED)))
    with mpmath.workdps(50):
        for x, slope in zip(array(draw(mean)).tolist(), found.tolist(), strict=True):
            by_mean = mpmath.diff(lambda m, x=x: below(x, m), mean)
            by_x = mpmath.diff(lambda z: below(z, mean), x)
            assert slope == pytest.approx(float(-by_mean / by_x), rel=1e-9)


trigamma = lambda x: special.polygamma(1, x)  # noqa: E731
LOGARITHMS: dict[str, tuple[Callable[..., Any], tuple[float, ...], tuple[float, ...]]] = {
    "gamma": (tk.random.gamma, (0.7,), (trigamma(0.7),)),
    "chisquare": (tk.random.chisquare, (3.0,), (trigamma(1.5) / 2,)),
    "beta": (tk.random.beta, (0.8, 3.0), (trigamma(0.8) - trigamma(3.8), -trigamma(3.8))),
    "t": (tk.random.t, (5.0,), (0.1 - trigamma(2.5) / 4,)),
    "f": (
        tk.random.f,
        (5.0, 3.0),
        (trigamma(2.5) / 2 - 1 / 5, 1 / 3 - trigamma(1.5) / 2),
    ),
    "generalized_normal": (
        tk.random.generalized_normal,
        (3.0,),
        (-special.digamma(1 / 3) / 9 - trigamma(1 / 3) / 27,),
    ),
    "lognormal": (lambda *args: tk.random.lognormal(*args).square(), (0.5,), (0.0,)),
    "pareto": (tk.random.pareto, (3.0,), (-1 / 9,)),
    "weibull_min": (
        tk.random.weibull_min,
        (2.0, 3.0),
        (1 / 2, np.euler_gamma / 9),
    ),
    "rayleigh": (tk.random.rayleigh, (2.0,), (1 / 2,)),
}
"""Distributions, their parameters, and the derivatives of the mean of log(abs(x)) with respect to these."""


@pytest.mark.parametrize("name", LOGARITHMS)
def test_means_of_derivatives_are_derivatives_of_means(name: str) -> None:
    draw, parameters, expected = LOGARITHMS[name]
    points = [tk.full((40_000,), x, dtype="float64", backend=FUSED) for x in parameters]
    gradients = tk.grad(
        lambda *xs: draw(KEY, *xs, None, "float64").abs().log().sum(), tuple(range(len(points)))
    )(*points)
    for slopes, mean in zip([array(g) for g in gradients], expected, strict=True):
        error = slopes.std() / math.sqrt(slopes.size)
        assert abs(slopes.mean() - mean) <= 3.3 * error + 1e-12


def test_derivatives_of_dirichlet_numbers() -> None:
    alpha = tk.tensor([0.8, 2.0, 1.0], "float64", backend=FUSED)

    def mean_log(alpha: Any) -> Any:
        return tk.random.dirichlet(KEY, alpha, (40_000,), "float64").log().mean(0)

    found = array(tk.jacrev(mean_log)(alpha))
    expected = np.diag(trigamma(array(alpha))) - trigamma(3.8)
    assert np.abs(found - expected).max() < 0.03


def test_counts_have_no_derivative() -> None:
    def total(rate: Any) -> Any:
        return tk.random.poisson(KEY, rate * 20.0, (5,), "float32").sum() + rate

    assert tk.grad(total)(tk.tensor(1.0, backend=FUSED)).item() == 1.0
    assert tk.jvp(total, (at(1.0)[0],), (at(1.0)[0],))[1].item() == 1.0

    def successes(p: Any) -> Any:
        return tk.random.binomial(KEY, 50, p, (5,)).sum() + tk.random.multinomial(KEY, 9, [p, p]).sum() + p

    assert tk.grad(successes)(at(0.4)[0]).item() == 1.0


# ---- limits ------------------------------------------------------------------------------------------------


def at(*values: float) -> Any:
    return tk.tensor(values, backend=FUSED)


def traced(draw: Any, *parameters: Any, **options: Any) -> Any:
    """Draws with parameters that are not known, so they are not checked."""
    return array(tk.jit(lambda *xs: draw(KEY, *xs, **options))(*parameters))


def test_parameters_at_the_ends_of_their_range_and_beyond() -> None:
    edge = at(0.0, -1.0, nan, inf)
    np.testing.assert_array_equal(traced(tk.random.gamma, edge), [0.0, nan, nan, inf])
    np.testing.assert_array_equal(traced(tk.random.loggamma, edge), [-inf, nan, nan, inf])
    np.testing.assert_array_equal(traced(tk.random.beta, edge, 2.0), [0.0, nan, nan, 1.0])
    np.testing.assert_array_equal(traced(tk.random.poisson, edge), [0, -1, -1, 2**31 - 1])
    np.testing.assert_array_equal(traced(tk.random.poisson, edge, dtype="float32"), [0.0, nan, nan, inf])
    assert tk.random.poisson(KEY, at(1e20), dtype="int16").tolist() == [2**15 - 1]
    p = at(0.0, 1.0, -0.1, 1.1, nan)
    np.testing.assert_array_equal(traced(tk.random.binomial, 7, p), [0.0, 7.0, nan, nan, nan])
    np.testing.assert_array_equal(traced(tk.random.binomial, 7, p, dtype="int32"), [0, 7, -1, -1, -1])
    np.testing.assert_array_equal(traced(tk.random.binomial, at(-1.0, 0.0, inf), 0.5), [nan, 0.0, nan])
    np.testing.assert_array_equal(traced(tk.random.geometric, p), [2**31 - 1, 1, -1, -1, -1])


@pytest.mark.parametrize("a", [1e-30, 1e-5, 1e10, 1e30, 3e38])
def test_gamma_numbers_of_extreme_parameters_end(a: float) -> None:
    x, y = (array(f(KEY, a, (100,))) for f in (tk.random.gamma, tk.random.loggamma))
    assert not np.isnan(x).any()
    assert not np.isnan(y).any()
    if a > 1.0:
        np.testing.assert_allclose(x, a, rtol=1e-3)


@pytest.mark.parametrize("mean", [1e6, 2.0**24, 1e12, 1e30])
def test_counts_of_large_means_end_near_them(mean: float) -> None:
    x = array(tk.random.poisson(KEY, mean, (500,), "float32")).astype("float64")
    spread = math.sqrt(mean) + mean * 2.0**-23
    assert np.abs(x - mean).max() < 6.0 * spread
    n = array(tk.random.binomial(KEY, mean, 0.25, (500,))).astype("float64")
    assert np.abs(n - mean / 4).max() < 6.0 * spread


def test_float64_counts_are_exact_beyond_the_integers_of_float32() -> None:
    mean = tk.tensor(1e10, "float64", backend=FUSED)
    x = array(tk.random.poisson(KEY, mean, (4000,), "int64"))
    assert (x % 2).mean() == pytest.approx(0.5, abs=0.03)
    assert kolmogorov_smirnov(x, stats.norm(1e10, 1e5).cdf) < 1.95


# ---- vectors and matrices ----------------------------------------------------------------------------------


def test_rademacher_numbers_are_the_first_random_bits() -> None:
    x = tk.random.rademacher(KEY, (1000,))
    bits = array(tk.random.bits(KEY, (1000,)))
    assert array(x).tolist() == np.where(bits < 0, -1, 1).tolist()
    assert str(tk.random.rademacher(KEY, (2,), "float64").dtype) == "float64"
    with pytest.raises(DTypeError, match=r"^rademacher: the dtype must be .*got bool"):
        tk.random.rademacher(KEY, (2,), "bool")


def test_multinomial_counts_add_up_and_have_their_means() -> None:
    p = at(0.2, 0.0, 0.3, 0.5, 0.0)
    x = array(tk.random.multinomial(KEY, 100, p, shape=(4000,)))
    assert (x.sum(1) == 100).all()
    assert x.min() >= 0
    assert x[:, [1, 4]].max() == 0
    for i, share in ((0, 0.2), (2, 0.3), (3, 0.5)):
        row = Row("binomial", (100, share), stats.binom(100, share), counts=True)
        assert distance(row, x[:, i]) < 1.0
    covariance = np.cov(x.T)
    assert covariance[0, 3] == pytest.approx(-100 * 0.2 * 0.5, rel=0.1)
    counts = tk.random.multinomial(KEY, at(3.0, 5.0), tk.ones((4, 1, 3), backend=FUSED), dtype="int32")
    assert (counts.shape, str(counts.dtype)) == ((4, 2, 3), "int32")
    assert array(counts).sum(-1).tolist() == [[3, 5]] * 4
    with pytest.raises(ShapeError, match=r"^multinomial: p must have an axis, got shape \(\)"):
        tk.random.multinomial(KEY, 3, 0.5)
    with pytest.raises(
        ShapeError, match=r"^multinomial: n of shape \(2,\) and p without .* do not broadcast"
    ):
        tk.random.multinomial(KEY, at(1.0, 2.0), tk.ones((3, 4), backend=FUSED))


def test_dirichlet_vectors_have_beta_numbers_as_components() -> None:
    alpha = at(0.5, 2.0, 1.5)
    x = array(tk.random.dirichlet(KEY, alpha, (8000,)))
    np.testing.assert_allclose(x.sum(1), 1.0, rtol=1e-6)
    for i, a in enumerate((0.5, 2.0, 1.5)):
        assert kolmogorov_smirnov(x[:, i], stats.beta(a, 4.0 - a).cdf) < 1.95
    tiny = array(tk.random.dirichlet(KEY, at(1e-4, 1e-4), (50,)))
    assert ((tiny.max(1) > 0.99) & ~np.isnan(tiny).any(1)).all()
    assert tk.random.dirichlet(KEY, tk.ones((2, 3), backend=FUSED)).shape == (2, 3)
    with pytest.raises(ShapeError, match=r"^dirichlet: alpha must have an axis, got shape \(\)"):
        tk.random.dirichlet(KEY, 1.0)
    with pytest.raises(
        ShapeError, match=r"^dirichlet: alpha of shape \(2, 3\) does not broadcast to .*\(4, 3\)"
    ):
        tk.random.dirichlet(KEY, tk.ones((2, 3), backend=FUSED), (4,))


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_normal_vectors_have_their_mean_and_covariance(method: str) -> None:
    factor = np.random.default_rng(0).normal(size=(3, 3))
    mean, cov = np.array([1.0, -2.0, 5.0]), factor @ factor.T
    x = array(
        tk.random.multivariate_normal(
            KEY, at(*mean), tk.tensor(cov, "float32", backend=FUSED), (8000,), method=method
        )
    )
    white = np.linalg.solve(np.linalg.cholesky(cov), (x - mean).T)
    for component in white:
        assert kolmogorov_smirnov(component, stats.norm.cdf) < 1.95
    assert np.abs(np.corrcoef(white) - np.eye(3)).max() < 4.0 / math.sqrt(8000)


def test_normal_vectors_of_singular_covariances_batches_and_errors() -> None:
    flat = tk.tensor([[1.0, 1.0], [1.0, 1.0]], backend=FUSED)
    for method in ("eigh", "svd"):
        x = array(tk.random.multivariate_normal(KEY, at(0.0, 0.0), flat, (20,), method=method))
        np.testing.assert_allclose(x[:, 0], x[:, 1], atol=1e-5)
    with pytest.raises(LinearAlgebraError):
        tk.random.multivariate_normal(KEY, at(0.0, 0.0), flat * -1.0)
    eye = tk.eye(2, backend=FUSED).broadcast_to((3, 1, 2, 2))
    means = tk.zeros((4, 2), backend=FUSED)
    assert tk.random.multivariate_normal(KEY, means, eye).shape == (3, 4, 2)
    assert tk.random.multivariate_normal(KEY, means, eye, (5, 3, 4), "float64").shape == (5, 3, 4, 2)
    with pytest.raises(
        ShapeError, match=r"^multivariate_normal: need a mean of shape \(\.\.\., n\) and a cov"
    ):
        tk.random.multivariate_normal(KEY, means, tk.eye(3, backend=FUSED))
    with pytest.raises(ArgumentError, match=r"^multivariate_normal: method must be .*got 'qr'"):
        tk.random.multivariate_normal(KEY, means, eye, method="qr")
    slope = tk.grad(lambda c: tk.random.multivariate_normal(KEY, at(0.0, 0.0), c, (5,)).square().sum())
    assert np.isfinite(array(slope(tk.eye(2, backend=FUSED)))).all()


@pytest.mark.parametrize(("n", "m"), [(3, None), (5, 2), (2, 5), (1, 1)])
def test_orthogonal_matrices(n: int, m: int | None) -> None:
    q = array(tk.random.orthogonal(KEY, n, (40,), "float64", m))
    columns = n if m is None else m
    assert q.shape == (40, n, columns)
    product = q @ q.swapaxes(1, 2) if n < columns else q.swapaxes(1, 2) @ q
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(min(n, columns)), product.shape), atol=1e-12)
    with pytest.raises(ArgumentError, match=r"^orthogonal: n and m must be positive, got 0 and 0"):
        tk.random.orthogonal(KEY, 0)


def test_parameters_live_on_the_backend_of_the_key() -> None:
    with pytest.raises(MixedBackendError, match=r"^gamma: operands live on different backends"):
        tk.random.gamma(KEY, tk.tensor(1.0, backend="reference"))


def test_orthogonal_matrices_are_uniformly_distributed() -> None:
    """In three dimensions each component of a column is uniform on [-1, 1], and a rotation changes nothing."""
    q = array(tk.random.orthogonal(KEY, 3, (4000,), "float64"))
    turned = stats.ortho_group.rvs(3, random_state=0) @ q
    for matrices in (q, turned):
        for i in range(3):
            for j in range(3):
                assert kolmogorov_smirnov(matrices[:, i, j], lambda x: (x + 1.0) / 2.0) < 1.95
    assert abs(np.linalg.det(q).mean()) < 3.3 / math.sqrt(4000)


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 8.0])
def test_points_of_a_ball_are_uniform(p: float) -> None:
    """The share of the volume within radius r is r**d."""
    x = array(tk.random.ball(KEY, 3, p, (8000,), "float64"))
    radius = (np.abs(x) ** p).sum(1) ** (1.0 / p)
    assert kolmogorov_smirnov(radius, lambda r: r**3) < 1.95
    with pytest.raises(ArgumentError, match=r"^ball: d must be positive, got 0"):
        tk.random.ball(KEY, 0)


FAR_BOUNDS = [(20.0, np.inf), (-np.inf, -20.0), (35.0, 40.0), (20.0, 20.01), (4.001, 4.5)]


@each_of(("bounds", "dtype"), [(bounds, d) for bounds in FAR_BOUNDS for d in ("float32", "float64")])
def test_truncated_normal_in_the_far_tail(bounds: tuple[float, float], dtype: str) -> None:
    """Kolmogorov and Smirnov's distance to scipy's distribution function, and the derivatives by the bounds."""
    x = np.asarray(tk.random.truncated_normal(tk.random.key(1), *bounds, (20_000,), dtype), "float64")
    low, high = np.array(bounds, dtype)
    assert low <= x.min() and x.max() <= high
    assert stats.kstest(x, stats.truncnorm(*bounds).cdf).statistic < 1.95 / np.sqrt(x.size)
    if dtype == "float64":
        draw = lambda *b: tk.random.truncated_normal(tk.random.key(2), *b, (), dtype)  # noqa: E731
        for place in [i for i in (0, 1) if np.isfinite(bounds[i])]:
            ends = [tk.tensor(b, dtype) for b in bounds]
            moved = [[b + (i == place) * s * 1e-5 for i, b in enumerate(bounds)] for s in (1, -1)]
            quotient = (draw(*moved[0]).item() - draw(*moved[1]).item()) / 2e-5
            assert tk.grad(draw, place)(*ends).item() == pytest.approx(quotient, rel=1e-5, abs=1e-7)
