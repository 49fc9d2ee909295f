"""The special functions: against scipy and mpmath on grids, their derivatives, limits, compiled and batched values.

Errors are in units of the dtype's eps, relative to max(1, abs(result)) or, where it says so, to the result itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special

import tensorken as tk
from core.tests.drawing import Array
from core.tests.each import each_of
from plugins.tensorken.tests.namespace.laws import check_derivatives, quiet
from tensorken_core.errors import ArgumentError, DTypeError

pytestmark = pytest.mark.usefixtures("on_numpy")

WIDE = np.concatenate([np.linspace(-30, 30, 301), np.linspace(-3, 3, 301)])
POSITIVE = np.concatenate([np.logspace(-8, 6, 301), np.linspace(0.01, 12, 301)])
SHARES = np.concatenate([np.logspace(-300, -0.4, 301), np.linspace(0.001, 0.999, 301)])
NEGATIVE = np.array([x for x in np.linspace(-9.97, -0.03, 201) if abs(x - round(x)) > 0.01])


def exactly(name: str) -> Callable[[Array], Array]:
    """mpmath's function, to 30 digits."""

    def of(x: Array) -> Array:
        with mpmath.workdps(30):
            return np.array([float(getattr(mpmath, name)(v)) for v in x])

    return of


def log_of_beta(a: Array, b: Array) -> Array:
    with mpmath.workdps(40):
        return np.array([float(mpmath.log(mpmath.beta(x, y))) for x, y in zip(a, b, strict=True)])


def divergence(a: Array, b: Array) -> Array:
    """kl_div, whose terms cancel where a and b are close."""
    with mpmath.workdps(40):
        terms = [(mpmath.mpf(x), mpmath.mpf(y)) for x, y in zip(a, b, strict=True)]
        return np.array([float(x * mpmath.log(x / y) - x + y) for x, y in terms])


def of_one(name: str) -> Callable[..., Any]:
    return getattr(special, name)  # type: ignore[no-any-return]


ONE: dict[str, tuple[Array, Callable[[Array], Array], bool, float]] = {
    "erfc": (WIDE[abs(WIDE) < 26], exactly("erfc"), True, 8),
    "erfcx": (np.abs(WIDE), of_one("erfcx"), True, 8),
    "ndtr": (WIDE[WIDE > -30], exactly("ncdf"), True, 8),
    "log_ndtr": (WIDE[WIDE < 0], of_one("log_ndtr"), True, 8),
    "ndtri": (SHARES, of_one("ndtri"), False, 8),
    "gammaln": (POSITIVE, of_one("gammaln"), False, 6),
    "digamma": (POSITIVE, of_one("digamma"), False, 12),
    "psi": (POSITIVE, of_one("digamma"), False, 12),
    "i0": (WIDE, of_one("i0"), True, 10),
    "i0e": (WIDE, of_one("i0e"), True, 8),
    "i1": (WIDE, of_one("i1"), True, 16),
    "i1e": (WIDE, of_one("i1e"), True, 16),
    "entr": (np.abs(WIDE) / 10, of_one("entr"), False, 4),
    "logit": (SHARES, of_one("logit"), False, 4),
    "expit": (WIDE, of_one("expit"), True, 4),
    "erf": (WIDE, of_one("erf"), True, 4),
    "erfinv": (WIDE / 31, of_one("erfinv"), False, 8),
}
"""For each function of one operand its grid, its oracle, whether the error is relative, and its bound."""

RNG = np.random.default_rng(0)
A, B = (np.concatenate([10 ** RNG.uniform(-2, 1, 200), 10 ** RNG.uniform(1, 3, 200)]) for _ in range(2))
NEAR_A = np.abs(A * (1 + 2 * RNG.standard_normal(400) / np.sqrt(A)))
MIDDLE = np.clip(
    A / (A + B) + RNG.standard_normal(400) * np.sqrt(A * B / (A + B + 1)) / (A + B), 1e-3, 1 - 1e-3
)
SEVERAL: dict[str, tuple[tuple[Array, ...], Callable[..., Any], float]] = {
    "gammainc": ((A, NEAR_A), special.gammainc, 40),
    "gammaincc": ((A, NEAR_A), special.gammaincc, 40),
    "betainc": ((A, B, MIDDLE), special.betainc, 60),
    "betaln": ((A, B), lambda a, b: log_of_beta(a, b), 20),
    "xlogy": ((A, B), special.xlogy, 4),
    "xlog1py": ((A, B), special.xlog1py, 4),
    "rel_entr": ((A, B), special.rel_entr, 6),
    "kl_div": ((A, B), lambda a, b: divergence(a, b), 40),
    "zeta": ((1 + A, B), special.zeta, 10),
}
"""For each function of several operands its operands, its oracle, and its bound."""


def assert_close(found: tk.Tensor, expected: Array, dtype: str, bound: float, relative: bool = False) -> None:
    assert str(found.dtype) == dtype
    limits = np.finfo(dtype)
    mine = np.asarray(found, "float64")
    regular = np.isfinite(expected) & (abs(expected) < limits.max) & (abs(expected) > limits.tiny)
    scale = abs(expected) if relative else np.maximum(abs(expected), 1)
    errors = abs(mine - expected)[regular] / scale[regular] / limits.eps
    assert regular.sum() > len(expected) / 4
    assert errors.max() <= bound, errors.max()


@each_of(("name", "dtype"), [(name, dtype) for name in ONE for dtype in ("float32", "float64")])
def test_functions_of_one_operand(name: str, dtype: str) -> None:
    grid, oracle, relative, bound = ONE[name]
    x = grid[abs(grid) >= np.finfo(dtype).tiny].astype(dtype)
    with quiet():
        expected = oracle(x.astype("float64"))
    f = getattr(tk.special, name)
    found = f(tk.tensor(x))
    assert_close(found, expected, dtype, bound, relative)
    with quiet():
        compiled = tk.jit(f)(tk.tensor(x))
    assert_close(compiled, expected, dtype, bound, relative)
    np.testing.assert_array_equal(np.asarray(tk.vmap(f)(tk.tensor(x))), np.asarray(found))


@each_of(("name", "dtype"), [(name, dtype) for name in SEVERAL for dtype in ("float32", "float64")])
def test_functions_of_several_operands(name: str, dtype: str) -> None:
    operands, oracle, bound = SEVERAL[name]
    xs = [x.astype(dtype) for x in operands]
    with quiet():
        expected = oracle(*[x.astype("float64") for x in xs])
    f = getattr(tk.special, name)
    found = f(*map(tk.tensor, xs))
    assert_close(found, expected, dtype, bound)
    with quiet():
        compiled = tk.jit(f)(*map(tk.tensor, xs))
    assert_close(compiled, expected, dtype, bound)
    assert_close(tk.vmap(f)(*map(tk.tensor, xs)), expected, dtype, bound)
    broadcast = f(tk.tensor(xs[0][:3]).reshape(3, 1), *[tk.tensor(x[:2]) for x in xs[1:]])
    assert broadcast.shape == (3, 2)


@each_of("n", [1, 2, 5])
def test_polygamma(n: int) -> None:
    x = np.logspace(-2, 3, 101)
    assert_close(tk.special.polygamma(n, x), special.polygamma(n, x), "float64", 8, relative=True)


def test_negative_operands_are_reflected() -> None:
    with mpmath.workdps(30):
        logs = np.array([float(mpmath.log(abs(mpmath.gamma(x)))) for x in NEGATIVE])
        slopes = np.array([float(mpmath.digamma(x)) for x in NEGATIVE])
    assert_close(tk.special.gammaln(tk.tensor(NEGATIVE)), logs, "float64", 20)
    assert_close(tk.special.digamma(tk.tensor(NEGATIVE)), slopes, "float64", 60)


SPECIAL_VALUES = [
    ("erfc", [(0.0,), (np.inf,), (-np.inf,), (np.nan,)]),
    ("erfcx", [(np.inf,), (-np.inf,), (np.nan,)]),
    ("ndtr", [(np.inf,), (-np.inf,), (np.nan,)]),
    ("log_ndtr", [(np.inf,), (-np.inf,), (np.nan,)]),
    ("ndtri", [(0.0,), (1.0,), (-1.0,), (2.0,), (np.nan,)]),
    ("gammaln", [(0.0,), (1.0,), (2.0,), (-1.0,), (-2.0,), (np.inf,), (np.nan,)]),
    ("digamma", [(0.0,), (-0.0,), (-1.0,), (np.inf,), (np.nan,)]),
    ("zeta", [(1.0, 1.0), (0.5, 1.0), (2.0, 0.0), (np.nan, 1.0)]),
    ("i0", [(0.0,), (np.inf,), (-np.inf,), (800.0,), (np.nan,)]),
    ("i1", [(0.0,), (800.0,), (-800.0,), (np.nan,)]),
    ("entr", [(0.0,), (1.0,), (-1.0,), (np.inf,), (np.nan,)]),
    ("logit", [(0.0,), (1.0,), (0.5,), (-1.0,), (2.0,), (np.nan,)]),
    ("xlogy", [(0.0, 0.0), (0.0, np.inf), (1.0, 0.0), (0.0, np.nan), (np.nan, 1.0)]),
    ("xlog1py", [(0.0, -1.0), (1.0, -1.0), (0.0, np.nan)]),
    ("rel_entr", [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (1.0, -1.0), (np.nan, 1.0)]),
    ("kl_div", [(0.0, 0.0), (0.0, 2.0), (1.0, 0.0), (-1.0, 1.0), (1.0, np.nan)]),
    (
        "gammainc",
        [
            (0.0, 1.0),
            (1.0, 0.0),
            (0.0, 0.0),
            (-1.0, 1.0),
            (1.0, -1.0),
            (np.inf, 1.0),
            (1.0, np.inf),
            (200.0, 0.0),
        ],
    ),
    ("gammaincc", [(0.0, 1.0), (1.0, 0.0), (np.nan, 1.0), (200.0, 1e5)]),
    ("betainc", [(1.0, 2.0, 0.0), (1.0, 2.0, 1.0), (1.0, 2.0, 1.5), (-1.0, 2.0, 0.5), (1.0, 2.0, np.nan)]),
]


def parameters(low: float, high: float) -> Array:
    return 10 ** np.random.default_rng(int(100.0 + low * 10)).uniform(low, high, 2000)


@pytest.mark.parametrize(("low", "high"), [(-6, -3), (-3, 0), (0, 4), (4, 9)])
@pytest.mark.parametrize(("low_b", "high_b"), [(-6.1, -3), (-3.1, 0), (0.1, 4), (4.1, 9)])
def test_incomplete_beta_functions_of_all_parameters(
    low: float, high: float, low_b: float, high_b: float
) -> None:
    """The error is small, compared with that which the rounding of x causes, also far from the mean."""
    a, b = parameters(low, high), parameters(low_b, high_b)
    mean, width = a / (a + b), np.sqrt(a * b / (a + b + 1.0)) / (a + b)
    places = np.random.default_rng(0)
    near = mean + width * 3.0 * places.standard_normal(a.size)
    for x in (np.clip(near, 1e-300, 1.0), np.clip(mean * 10 ** places.uniform(-3, 3, a.size), 0.0, 1.0)):
        found = np.asarray(tk.special.betainc(a, b, x))
        assert np.all((found >= 0.0) & (found <= 1.0))
        rounding = np.finfo("float64").eps * np.sqrt(a * b / (a + b))
        assert np.all(np.abs(found - special.betainc(a, b, x)) <= 2e-14 + 2.0 * rounding)


def test_incomplete_gamma_functions_of_tiny_and_huge_parameters() -> None:
    """A share of a half at the mean, and the whole for a tiny a."""
    huge = 10.0 ** np.array([16.0, 17.0, 18.0, 20.0, 31.0, 40.0, 100.0, 300.0])
    tiny = np.array([5e-324, 1e-310, 1e-300, 1e-20])
    for name, sign in (("gammainc", 1.0), ("gammaincc", -1.0)):
        function = getattr(tk.special, name)
        at_mean = 0.5 + sign / (3.0 * np.sqrt(2.0 * np.pi) * np.sqrt(huge))
        np.testing.assert_allclose(np.asarray(function(huge, huge)), at_mean, rtol=2e-15)
        whole = np.asarray(function(tiny, np.array([0.5, 1e-300, 3.0, 0.1])))
        np.testing.assert_allclose(whole, (1.0 + sign) / 2.0, atol=2e-15)


def test_betaln_of_a_negative_and_a_large_operand() -> None:
    low, high = (x.ravel() for x in np.meshgrid([-0.5, -1.5, -3.3, -20.7], [12.0, 50.0, 1e5, 1e15, 1e20]))
    with mpmath.workdps(60):
        expected = np.array(
            [
                float(
                    mpmath.log(abs(mpmath.gamma(x))) + mpmath.re(mpmath.loggamma(y) - mpmath.loggamma(x + y))
                )
                for x, y in zip(map(mpmath.mpf, low), map(mpmath.mpf, high), strict=True)
            ]
        )
    for found in (tk.special.betaln(low, high), tk.special.betaln(high, low)):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=2e-14, atol=2e-14)


LIMITS_OF_OWN = {("i0", np.inf): np.inf, ("i0", -np.inf): np.inf}
"""Where scipy's result is NaN."""


@each_of(("name", "operands"), [(name, row) for name, rows in SPECIAL_VALUES for row in rows])
def test_limits(name: str, operands: tuple[float, ...]) -> None:
    expected = LIMITS_OF_OWN.get((name, *operands), getattr(special, name)(*operands))
    found = getattr(tk.special, name)(*[np.float64(x) for x in operands])
    np.testing.assert_allclose(found.item(), expected, rtol=1e-15)


SMOOTH: dict[str, tuple[Array, ...]] = {
    **{
        name: (np.array([-2.7, -0.8, 0.3, 1.4, 9.2]),)
        for name in ("erfc", "erfcx", "ndtr", "log_ndtr", "i0e", "i1e", "i1", "expit", "erf")
    },
    "i0": (np.array([-2.7, 0.3, 9.2]),),
    "ndtri": (np.array([0.01, 0.3, 0.7, 0.97]),),
    "logit": (np.array([0.01, 0.3, 0.7, 0.97]),),
    "entr": (np.array([0.1, 0.9, 3.0]),),
    "gammaln": (np.array([-1.3, 0.2, 1.0, 2.0, 5.5, 20.0]),),
    "digamma": (np.array([-1.3, 0.2, 1.4, 5.5, 20.0]),),
    "gammainc": (np.array([0.5, 3.0, 9.0, 300.0]), np.array([1.5, 2.0, 9.5, 310.0])),
    "gammaincc": (np.array([0.5, 3.0, 9.0, 300.0]), np.array([1.5, 2.0, 9.5, 310.0])),
    "betainc": (np.array([0.5, 3.0, 20.0]), np.array([1.5, 2.0, 30.0]), np.array([0.3, 0.8, 0.4])),
    "betaln": (np.array([0.5, 3.0, 20.0]), np.array([1.5, 12.0, 30.0])),
    "zeta": (np.array([1.5, 3.0, 8.0]), np.array([0.5, 2.0, 30.0])),
    "xlogy": (np.array([0.5, 2.0]), np.array([0.5, 2.0])),
    "xlog1py": (np.array([0.5, 2.0]), np.array([0.5, 2.0])),
    "rel_entr": (np.array([0.5, 2.0]), np.array([0.6, 8.0])),
    "kl_div": (np.array([0.5, 2.0]), np.array([0.6, 8.0])),
}


@each_of("name", SMOOTH)
def test_derivatives_are_those_of_difference_quotients(name: str) -> None:
    f = getattr(tk.special, name)
    check_derivatives(lambda *xs: [f(*xs)], [tk.tensor(x) for x in SMOOTH[name]])


@each_of("name", SMOOTH)
def test_second_derivatives(name: str) -> None:
    """Those by two operands, in either order, too."""
    f, operands = getattr(tk.special, name), [tk.tensor(x) for x in SMOOTH[name]]
    partials = [tk.derivative(f, index) for index in range(len(operands))]
    check_derivatives(lambda *xs: [partial(*xs) for partial in partials], operands)


def test_known_derivatives() -> None:
    x = tk.tensor(0.0, "float64")
    assert tk.grad(tk.special.i0)(x).item() == 0.0
    assert tk.grad(tk.special.i1)(x).item() == pytest.approx(0.5)
    assert tk.grad(tk.special.xlogy)(tk.tensor(0.0), 2.0).item() == pytest.approx(np.log(2), rel=1e-6)
    assert tk.grad(tk.special.log_ndtr)(tk.tensor(-1e4, "float64")).item() == pytest.approx(1e4, rel=1e-7)
    assert tk.grad(tk.special.gammaln)(tk.tensor(1.0, "float64")).item() == pytest.approx(-np.euler_gamma)


@each_of("name", ["gammaln", "ndtr", "i0e", "xlogy", "betaln"])
def test_dtypes(name: str) -> None:
    f = getattr(tk.special, name)
    count = len(SMOOTH[name])
    assert str(f(*[tk.tensor([1, 2])] * count).dtype) == "float32"
    half = f(*[tk.tensor([1.5, 2.5], "float16")] * count)
    single = f(*[tk.tensor([1.5, 2.5], "float32")] * count)
    assert str(half.dtype) == "float16"
    np.testing.assert_array_equal(np.asarray(half), np.asarray(single.astype("float16")))
    assert f(*[tk.zeros((0, 2))] * count).shape == (0, 2)


def test_errors() -> None:
    with pytest.raises(ArgumentError, match="polygamma: n must not be negative"):
        tk.special.polygamma(-1, 1.0)
    with pytest.raises((ArgumentError, DTypeError), match="polygamma: n must be an int"):
        tk.special.polygamma(1.5, 1.0)


def test_every_function_is_tested() -> None:
    assert set(tk.special.__all__) == {*ONE, *SEVERAL, "polygamma", "logsumexp", "softmax", "log_softmax"}
    assert tk.special.logsumexp is tk.logsumexp


@each_of("name", ["logsumexp", "softmax", "log_softmax"])
def test_sums_of_exponentials_have_the_axes_of_scipy(name: str) -> None:
    x = RNG.standard_normal((2, 3, 4))
    for axes in ((), (1,), ((0, 2),)):
        found, expected = getattr(tk.special, name)(tk.tensor(x), *axes), getattr(special, name)(x, *axes)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)
