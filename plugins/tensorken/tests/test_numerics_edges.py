"""Values and first derivatives at special points are correct in both modes: NaN only where no value is correct.

What is expected is what JAX gives where that is sane; where it gives a NaN or an arbitrary number and this library does
not, the row says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import FUSED, Required
from tensorken_core.rewriting.fuse import Fuse
from tensorken_reference.backend import Reference

pytestmark = pytest.mark.slow

inf, nan, pi = math.inf, math.nan, math.pi
BACKENDS = {"numpy": FUSED, "bodies": Required(), "fused bodies": Fuse(Required()), "reference": Reference()}

Row = tuple[str, Callable[..., Any], tuple[Any, ...], Any, tuple[Any, ...]]


def guarded_root(x: Any) -> Any:
    return tk.where(x > 0.0, tk.sqrt(tk.where(x > 0.0, x, 1.0)), 0.0)


# Name, function, operands, value, the derivative by each operand.
ROWS: list[Row] = [
    # ---- powers
    ("0**0", tk.power, (0.0, 0.0), 1.0, (0.0, 0.0)),  # JAX: NaN by the base in forward mode
    ("0**2", tk.power, (0.0, 2.0), 0.0, (0.0, 0.0)),
    ("0**1", tk.power, (0.0, 1.0), 0.0, (1.0, 0.0)),
    ("0**0.5", tk.power, (0.0, 0.5), 0.0, (inf, 0.0)),
    ("0**-1", tk.power, (0.0, -1.0), inf, (-inf, -inf)),  # JAX: NaN by the exponent
    ("(-0)**3", tk.power, (-0.0, 3.0), -0.0, (0.0, 0.0)),
    ("(-2)**3", tk.power, (-2.0, 3.0), -8.0, (12.0, nan)),
    ("(-2)**2", tk.power, (-2.0, 2.0), 4.0, (-4.0, nan)),
    ("(-2)**-1", tk.power, (-2.0, -1.0), -0.5, (-0.25, nan)),
    ("(-2)**0", tk.power, (-2.0, 0.0), 1.0, (0.0, nan)),
    ("(-2)**0.5", tk.power, (-2.0, 0.5), nan, (nan, nan)),
    ("inf**0", tk.power, (inf, 0.0), 1.0, (0.0, inf)),
    ("inf**2", tk.power, (inf, 2.0), inf, (inf, inf)),
    ("(-inf)**2", tk.power, (-inf, 2.0), inf, (-inf, nan)),
    ("2**inf", tk.power, (2.0, inf), inf, (inf, inf)),
    ("1**inf", tk.power, (1.0, inf), 1.0, (inf, 0.0)),
    ("x**2 at 0", lambda x: x**2, (0.0,), 0.0, (0.0,)),
    ("x**2 at -3", lambda x: x**2, (-3.0,), 9.0, (-6.0,)),
    ("x**2.0 at -3", lambda x: x**2.0, (-3.0,), 9.0, (-6.0,)),
    ("x**3 at -2", lambda x: x**3, (-2.0,), -8.0, (12.0,)),
    ("x**0 at 0", lambda x: x**0, (0.0,), 1.0, (0.0,)),
    ("x**-1 at 0", lambda x: x**-1.0, (0.0,), inf, (-inf,)),
    ("0**x at 0", lambda x: 0.0**x, (0.0,), 1.0, (0.0,)),
    ("0**x at 2", lambda x: 0.0**x, (2.0,), 0.0, (0.0,)),
    ("2**x at -inf", lambda x: 2.0**x, (-inf,), 0.0, (0.0,)),
    ("square at inf", tk.square, (inf,), inf, (inf,)),
    # ---- roots
    ("sqrt(0)", tk.sqrt, (0.0,), 0.0, (inf,)),
    ("sqrt(-0)", tk.sqrt, (-0.0,), -0.0, (-inf,)),
    ("sqrt(inf)", tk.sqrt, (inf,), inf, (0.0,)),
    ("sqrt(-1)", tk.sqrt, (-1.0,), nan, (nan,)),
    ("sqrt guarded at 0", guarded_root, (0.0,), 0.0, (0.0,)),
    ("sqrt guarded at 4", guarded_root, (4.0,), 2.0, (0.25,)),
    ("hypot(0, 0)", tk.hypot, (0.0, 0.0), 0.0, (0.0, 0.0)),  # JAX: 1/2 each
    ("hypot(0, 3)", tk.hypot, (0.0, 3.0), 3.0, (0.0, 1.0)),
    ("hypot(0, -3)", tk.hypot, (0.0, -3.0), 3.0, (0.0, -1.0)),
    ("hypot(inf, 1)", tk.hypot, (inf, 1.0), inf, (1.0, 0.0)),  # JAX: NaN
    ("hypot(1, -inf)", tk.hypot, (1.0, -inf), inf, (0.0, -1.0)),  # JAX: NaN
    ("hypot(inf, nan)", tk.hypot, (inf, nan), inf, (1.0, 0.0)),  # JAX: NaN
    ("hypot, tiny", tk.hypot, (3e-38, 4e-38), 5e-38, (0.6, 0.8)),
    ("hypot, huge", tk.hypot, (3e37, 4e37), 5e37, (0.6, 0.8)),
    # ---- exponentials and logarithms
    ("exp(-inf)", tk.exp, (-inf,), 0.0, (0.0,)),
    ("exp(1000)", tk.exp, (1000.0,), inf, (inf,)),
    ("expm1(-inf)", tk.expm1, (-inf,), -1.0, (0.0,)),
    ("expm1(-0)", tk.expm1, (-0.0,), -0.0, (1.0,)),
    ("exp2(-inf)", tk.exp2, (-inf,), 0.0, (0.0,)),
    ("log(0)", tk.log, (0.0,), -inf, (inf,)),
    ("log(inf)", tk.log, (inf,), inf, (0.0,)),
    ("log1p(-1)", tk.log1p, (-1.0,), -inf, (inf,)),
    ("log1p(-0)", tk.log1p, (-0.0,), -0.0, (1.0,)),
    ("log1p(inf)", tk.log1p, (inf,), inf, (0.0,)),
    ("log2(0)", tk.log2, (0.0,), -inf, (inf,)),
    ("log10(0)", tk.log10, (0.0,), -inf, (inf,)),
    # ---- what saturates
    *[("sigmoid", tk.sigmoid, (x,), y, (0.0,)) for x, y in ((1e3, 1.0), (-1e3, 0.0), (inf, 1.0), (-inf, 0.0))],
    ("sigmoid(0)", tk.sigmoid, (0.0,), 0.5, (0.25,)),
    *[("tanh", tk.tanh, (x,), y, (0.0,)) for x, y in ((1e3, 1.0), (-1e3, -1.0), (inf, 1.0), (-inf, -1.0))],
    ("tanh(-0)", tk.tanh, (-0.0,), -0.0, (1.0,)),
    *[("erf", tk.erf, (x,), y, (0.0,)) for x, y in ((1e30, 1.0), (-1e30, -1.0), (inf, 1.0), (-inf, -1.0))],
    ("softplus(1000)", tk.softplus, (1e3,), 1e3, (1.0,)),
    ("softplus(-1000)", tk.softplus, (-1e3,), 0.0, (0.0,)),
    ("softplus(inf)", tk.softplus, (inf,), inf, (1.0,)),
    ("softplus(-inf)", tk.softplus, (-inf,), 0.0, (0.0,)),
    ("softplus(0)", tk.softplus, (0.0,), math.log(2.0), (0.5,)),
    # ---- circular and hyperbolic functions
    ("asin(1)", tk.asin, (1.0,), pi / 2, (inf,)),
    ("acos(1)", tk.acos, (1.0,), 0.0, (-inf,)),
    ("atan(inf)", tk.atan, (inf,), pi / 2, (0.0,)),
    ("atan(-inf)", tk.atan, (-inf,), -pi / 2, (0.0,)),
    ("atan(1e30)", tk.atan, (1e30,), pi / 2, (0.0,)),
    ("atanh(1)", tk.atanh, (1.0,), inf, (inf,)),
    ("acosh(1)", tk.acosh, (1.0,), 0.0, (inf,)),
    ("acosh(inf)", tk.acosh, (inf,), inf, (0.0,)),
    ("asinh(-inf)", tk.asinh, (-inf,), -inf, (0.0,)),
    ("sinh(1000)", tk.sinh, (1e3,), inf, (inf,)),
    ("cosh(-1000)", tk.cosh, (-1e3,), inf, (-inf,)),
    ("sin(inf)", tk.sin, (inf,), nan, (nan,)),
    ("atan2(0, 0)", tk.atan2, (0.0, 0.0), 0.0, (0.0, 0.0)),  # JAX: NaN
    ("atan2(0, -1)", tk.atan2, (0.0, -1.0), pi, (-1.0, 0.0)),
    ("atan2(1, 0)", tk.atan2, (1.0, 0.0), pi / 2, (0.0, -1.0)),
    ("atan2(inf, 1)", tk.atan2, (inf, 1.0), pi / 2, (0.0, 0.0)),  # JAX: NaN
    ("atan2(inf, inf)", tk.atan2, (inf, inf), pi / 4, (0.0, 0.0)),  # JAX: NaN
    # ---- quotients, signs, extremes
    ("x/x at 0", lambda x: x / x, (0.0,), nan, (nan,)),
    ("x/x at 2", lambda x: x / x, (2.0,), 1.0, (0.0,)),
    ("1/0", tk.divide, (1.0, 0.0), inf, (inf, -inf)),
    ("1/inf", tk.divide, (1.0, inf), 0.0, (0.0, -0.0)),
    ("reciprocal(0)", tk.reciprocal, (0.0,), inf, (-inf,)),
    ("reciprocal(-inf)", tk.reciprocal, (-inf,), -0.0, (0.0,)),
    ("abs(0)", tk.abs, (0.0,), 0.0, (1.0,)),
    ("abs(-inf)", tk.abs, (-inf,), inf, (-1.0,)),
    ("abs(nan)", tk.abs, (nan,), nan, (nan,)),
    ("sign(0)", tk.sign, (0.0,), 0.0, (0.0,)),
    ("relu(0)", tk.relu, (0.0,), 0.0, (0.0,)),
    ("relu(-inf)", tk.relu, (-inf,), 0.0, (0.0,)),
    ("relu(inf)", tk.relu, (inf,), inf, (1.0,)),
    ("maximum, tied", tk.maximum, (1.0, 1.0), 1.0, (0.5, 0.5)),
    ("maximum, -inf", tk.maximum, (-inf, -inf), -inf, (0.5, 0.5)),
    ("maximum, inf", tk.maximum, (inf, 1.0), inf, (1.0, 0.0)),
    ("maximum, nan", tk.maximum, (nan, 1.0), nan, (0.0, 0.0)),
    ("minimum, tied", tk.minimum, (1.0, 1.0), 1.0, (0.5, 0.5)),
    ("minimum, nan", tk.minimum, (1.0, nan), nan, (0.0, 0.0)),
    ("clip at its bound", lambda x: tk.clip(x, -1.0, 1.0), (1.0,), 1.0, (0.5,)),
    ("clip beyond", lambda x: tk.clip(x, -1.0, 1.0), (inf,), 1.0, (0.0,)),
    ("remainder by inf", tk.remainder, (5.0, inf), 5.0, (1.0, 0.0)),
    ("where not chosen", lambda x: tk.where(x > 0.0, x, tk.log(-x)), (2.0,), 2.0, (1.0,)),
    # ---- sums of exponentials
    ("logaddexp(-inf, -inf)", tk.logaddexp, (-inf, -inf), -inf, (0.5, 0.5)),  # JAX: NaN
    ("logaddexp(inf, inf)", tk.logaddexp, (inf, inf), inf, (0.5, 0.5)),  # JAX: 1 each
    ("logaddexp(inf, 0)", tk.logaddexp, (inf, 0.0), inf, (1.0, 0.0)),  # JAX: 1 each
    ("logaddexp(-inf, 0)", tk.logaddexp, (-inf, 0.0), 0.0, (0.0, 1.0)),
    ("logaddexp(inf, -inf)", tk.logaddexp, (inf, -inf), inf, (1.0, 0.0)),
    ("logsumexp of -inf", tk.logsumexp, ([-inf, -inf],), -inf, ([0.5, 0.5],)),  # JAX: NaN
    ("logsumexp with -inf", tk.logsumexp, ([-inf, 0.0],), 0.0, ([0.0, 1.0],)),
    ("logsumexp with inf", tk.logsumexp, ([inf, 0.0],), inf, ([1.0, 0.0],)),  # JAX: NaN
    ("logsumexp of inf", tk.logsumexp, ([inf, inf],), inf, ([0.5, 0.5],)),  # JAX: NaN
    ("logsumexp with nan", tk.logsumexp, ([nan, 0.0],), nan, ([nan, nan],)),
    ("logsumexp, large", tk.logsumexp, ([1e3, 1e3],), 1e3 + math.log(2.0), ([0.5, 0.5],)),
    ("logsumexp of one", tk.logsumexp, ([-inf],), -inf, ([1.0],)),
    ("softmax with -inf", lambda x: tk.softmax(x)[0], ([-inf, 0.0],), 0.0, ([0.0, 0.0],)),
    ("softmax of -inf", lambda x: tk.softmax(x)[0], ([-inf, -inf],), 0.5, ([0.25, -0.25],)),  # JAX: NaN
    ("softmax with inf", lambda x: tk.softmax(x)[0], ([inf, 0.0],), 1.0, ([0.0, 0.0],)),  # JAX: NaN
    ("softmax, far apart", lambda x: tk.softmax(x)[0], ([1e3, -1e3],), 1.0, ([0.0, 0.0],)),
    ("log_softmax with -inf", lambda x: tk.log_softmax(x)[1], ([-inf, 0.0],), 0.0, ([0.0, 0.0],)),
    ("log_softmax of -inf", lambda x: tk.log_softmax(x)[0], ([-inf, -inf],), -math.log(2.0), ([0.5, -0.5],)),
    ("logaddexp2(-inf, -inf)", tk.logaddexp2, (-inf, -inf), -inf, (0.5, 0.5)),  # JAX: NaN
    ("logaddexp2(inf, 0)", tk.logaddexp2, (inf, 0.0), inf, (1.0, 0.0)),
    # ---- entropies
    ("entr(0)", tk.special.entr, (0.0,), 0.0, (inf,)),
    ("entr(-1)", tk.special.entr, (-1.0,), -inf, (0.0,)),
    ("entr(inf)", tk.special.entr, (inf,), -inf, (-inf,)),
    ("xlogy(0, 0)", tk.special.xlogy, (0.0, 0.0), 0.0, (-inf, 0.0)),
    ("xlogy(0, 2)", tk.special.xlogy, (0.0, 2.0), 0.0, (math.log(2.0), 0.0)),
    ("xlogy(2, 0)", tk.special.xlogy, (2.0, 0.0), -inf, (-inf, inf)),
    ("xlogy(0, inf)", tk.special.xlogy, (0.0, inf), 0.0, (inf, 0.0)),
    ("xlog1py(0, -1)", tk.special.xlog1py, (0.0, -1.0), 0.0, (-inf, 0.0)),
    ("rel_entr(0, 0)", tk.special.rel_entr, (0.0, 0.0), 0.0, (inf, 0.0)),
    ("rel_entr(0, 1)", tk.special.rel_entr, (0.0, 1.0), 0.0, (-inf, 0.0)),
    ("rel_entr(1, 0)", tk.special.rel_entr, (1.0, 0.0), inf, (inf, -inf)),
    ("kl_div(0, 0)", tk.special.kl_div, (0.0, 0.0), 0.0, (inf, 1.0)),
    ("kl_div(0, 1)", tk.special.kl_div, (0.0, 1.0), 1.0, (-inf, 1.0)),
    ("logit(0)", tk.special.logit, (0.0,), -inf, (inf,)),
    ("logit(1)", tk.special.logit, (1.0,), inf, (inf,)),
    # ---- replaced values
    ("nan_to_num(inf)", lambda x: tk.nan_to_num(x, posinf=9.0), (inf,), 9.0, (0.0,)),
    ("nan_to_num(nan)", lambda x: tk.nan_to_num(x, nan=inf, posinf=9.0), (nan,), inf, (0.0,)),
    # ---- along axes
    ("max, tied", tk.max, ([1.0, 1.0],), 1.0, ([0.5, 0.5],)),
    ("max, -inf", tk.max, ([-inf, -inf],), -inf, ([0.5, 0.5],)),
    ("max, inf", tk.max, ([inf, 1.0],), inf, ([1.0, 0.0],)),
    ("max, nan", tk.max, ([1.0, nan],), nan, ([nan, nan],)),
    ("min, tied", tk.min, ([1.0, 1.0, 2.0],), 1.0, ([0.5, 0.5, 0.0],)),
    ("min, inf", tk.min, ([inf, inf],), inf, ([0.5, 0.5],)),
    ("sum with inf", tk.sum, ([inf, 1.0],), inf, ([1.0, 1.0],)),
    ("mean with inf", tk.mean, ([inf, 1.0],), inf, ([0.5, 0.5],)),
    ("norm at 0", lambda x: tk.linalg.norm(x), ([0.0, 0.0],), 0.0, ([0.0, 0.0],)),  # JAX: NaN
    ("norm of 3, 4", lambda x: tk.linalg.norm(x), ([3.0, 4.0],), 5.0, ([0.6, 0.8],)),
]  # fmt: skip


# Expression, first and second derivative at 0, as docs/numerics.md has them; it says which of them are wrong.
KINKS: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "abs": (tk.abs, 1.0, 0.0),
    "square of abs": (lambda x: tk.abs(x) ** 2, 0.0, 2.0),
    "x times abs": (lambda x: x * tk.abs(x), 0.0, 2.0),
    "soft_sign": (tk.soft_sign, 1.0, -2.0),
    "elu": (tk.elu, 1.0, 1.0),
    "i0e": (tk.special.i0e, 0.0, 1.5),
    "square of relu": (lambda x: tk.relu(x) ** 2, 0.0, 0.0),
    "square of maximum": (lambda x: tk.maximum(x, 0.0) ** 2, 0.0, 0.5),
    "square of the larger of x and -x": (lambda x: tk.maximum(x, -x) ** 2, 0.0, 0.0),
    "square of hypot": (lambda x: tk.hypot(x, 0.0) ** 2, 0.0, 0.0),
    "square of norm": (lambda x: tk.linalg.norm(tk.stack([x, x * 0.0])) ** 2, 0.0, 0.0),
    "sqrt": (tk.sqrt, inf, -inf),
    "cbrt": (tk.cbrt, inf, -inf),
    "arcsin at 1": (lambda x: tk.asin(x + 1.0), inf, nan),
    "arctanh at 1": (lambda x: tk.atanh(x + 1.0), inf, inf),
    "x ** 0": (lambda x: tk.power(x, 0.0), 0.0, 0.0),
    "x ** 1": (lambda x: tk.power(x, 1.0), 1.0, 0.0),
    "x ** 1.5": (lambda x: x**1.5, 0.0, inf),
    "x ** 2": (lambda x: x**2.0, 0.0, 2.0),
    "floor": (tk.floor, 0.0, 0.0),
    "heaviside": (lambda x: tk.heaviside(x, 0.5), 0.0, 0.0),
    "mod": (lambda x: tk.mod(x, 1.0), 1.0, 0.0),
    "copysign": (lambda x: tk.copysign(x, 1.0), 1.0, 0.0),
}


@each_of(("name", "dtype"), [(name, dtype) for name in KINKS for dtype in ("float32", "float64")])
def test_derivatives_at_kinks(name: str, dtype: str) -> None:
    f, first, second = KINKS[name]
    x = tk.tensor(0.0, dtype)
    for transform in (tk.grad, tk.derivative):
        slope = transform(f)
        assert_same(slope(x), first, dtype)
        assert_same(tk.jit(slope)(x), first, dtype)
        assert_same(tk.grad(slope)(x), second, dtype)


def label(row: Row) -> str:
    return f"{row[0]}{row[2] if '(' not in row[0] else ''}"


def assert_same(found: Any, expected: Any, dtype: str) -> None:
    np.testing.assert_allclose(np.array(found), np.array(expected, dtype), rtol=1e-6, atol=1e-44)


@pytest.mark.feature(22, 178)
@each_of("backend", BACKENDS)
@pytest.mark.parametrize("row", ROWS, ids=label)
def test_values_and_derivatives_at_the_edges(row: Row, backend: str) -> None:
    _, f, at, value, slopes = row
    for dtype in ("float32", "float64"):
        operands = [tk.tensor(x, dtype, backend=BACKENDS[backend]) for x in at]
        y = f(*operands)
        assert_same(y, value, dtype)
        if value == 0.0:
            assert np.signbit(np.array(y)) == np.signbit(value)
        for place, slope in enumerate(slopes):
            x = operands[place]

            def by_one(x: Any, place: int = place, operands: list[Any] = operands) -> Any:
                return f(*operands[:place], x, *operands[place + 1 :])

            assert_same(tk.grad(by_one)(x), slope, dtype)
            directions = (
                [x.ones_like()] if not x.shape else [*tk.eye(x.size, dtype=dtype).to(BACKENDS[backend])]
            )
            pushed = [tk.jvp(by_one, (x,), (t,))[1] for t in directions]
            assert_same([t.item() for t in pushed], slope if x.shape else [slope], dtype)


@pytest.mark.parametrize("row", [row for row in ROWS if row[4] != (nan,)], ids=label)
def test_under_vmap_an_edge_does_not_reach_its_neighbours(row: Row) -> None:
    """A batch of a special point and a regular one: each derivative equals that of the example alone."""
    _, f, at, _, _ = row
    harmless = [np.full(np.shape(x), 0.5) + np.arange(np.size(x)).reshape(np.shape(x)) / 8 for x in at]
    places = tuple(range(len(at)))
    batch = [
        tk.tensor(np.stack([np.array(x), h]), "float64", backend=FUSED)
        for x, h in zip(at, harmless, strict=True)
    ]
    found = tk.vmap(tk.grad(f, places))(*batch)
    for i in range(2):
        alone = tk.grad(f, places)(*[x[i] for x in batch])
        for one, other in zip(found, alone, strict=True):
            np.testing.assert_allclose(np.array(one[i]), np.array(other), rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_sums_of_exponentials_over_no_elements(backend: str) -> None:
    nothing = tk.zeros((2, 0), backend=BACKENDS[backend])
    assert tk.logsumexp(nothing, 1).tolist() == [-inf, -inf]
    assert tk.logsumexp(nothing, 0).shape == (0,)
    assert tk.softmax(nothing).shape == tk.log_softmax(nothing).shape == (2, 0)
    assert tk.grad(lambda x: tk.softmax(x).sum())(nothing).shape == (2, 0)


def test_sums_of_exponentials_take_integers_as_the_elementary_functions_do() -> None:
    x = tk.tensor([1, 2, 3])
    for f in (tk.softmax, tk.log_softmax, tk.logsumexp):
        assert f(x).tolist() == f(x.astype("float32")).tolist()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("axis", [0, 1, -1, (0, 2), None])
def test_sums_of_exponentials_along_axes(axis: Any, backend: str) -> None:
    values = np.random.default_rng(0).normal(size=(2, 3, 4)) * 30.0
    x = tk.tensor(values, "float64", backend=BACKENDS[backend])
    total = np.log(np.exp(values).sum(axis, keepdims=True))
    np.testing.assert_allclose(np.array(tk.logsumexp(x, axis, keepdims=True)), total, rtol=1e-13)
    np.testing.assert_allclose(np.array(tk.logsumexp(x, axis)), total.squeeze(axis), rtol=1e-13)
    np.testing.assert_allclose(np.array(tk.softmax(x, axis)), np.exp(values - total), rtol=1e-12)
    np.testing.assert_allclose(np.array(tk.log_softmax(x, axis)), values - total, rtol=1e-11, atol=1e-13)
    for f in (tk.softmax, tk.log_softmax, tk.logsumexp):
        tk.testing.check_grads(lambda x, f=f: f(x, axis), (x / 30.0,), order=2)
