"""Functions and derivatives have the accuracy stated in docs/numerics.md, over the full range, in bodies and numpy."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import Required
from tensorken_core.language.op import OPS
from tensorken_numpy.backend import Numpy
from tools import numerics
from tools.numerics import DTYPES, ROWS, SMOOTH, distance, exact_values, function, operands, worst

pytestmark = pytest.mark.slow

inf = math.inf
BACKENDS = {"bodies": Required(), "numpy": Numpy()}
STATED = numerics.published()
BOUND = 4.0
"""The error in units in the last place."""

over_backends = each_of("backend", BACKENDS)
over_dtypes = each_of("dtype", DTYPES)


def forward(f: Callable[[Any], Any], x: Any) -> Any:
    return tk.derivative(f)(x)


def reverse(f: Callable[[Any], Any], x: Any) -> Any:
    return tk.elementwise_grad(f)(x)


# ---- functions of one number -------------------------------------------------------------------------------


def test_the_table_has_every_smooth_function_of_one_number() -> None:
    assert list(STATED) == list(ROWS)
    elementwise = [op for op in OPS.values() if op.elementwise and op.arity == 1 and op.differentiable]
    piecewise_linear = {"neg", "abs", "relu"}
    elsewhere = {"erfinv"}  # held to its own bound, where random numbers are
    assert {op.name for op in elementwise} - piecewise_linear - elsewhere <= set(ROWS)


def test_documented_functions_are_stated_to_be_within_4_units() -> None:
    assert {name: STATED[name] for name in SMOOTH if max(STATED[name]) > BOUND} == {}


@cache
def worst_of(name: str, dtype: str, kind: str, found: bytes) -> tuple[float, float]:
    """`numerics.worst`, cached, since it is slow and most results of backends and modes are equal bit for bit."""
    return worst(name, dtype, kind, np.frombuffer(found, dtype))


@pytest.mark.nightly
@pytest.mark.feature(65, 178)
@pytest.mark.parametrize("name", ROWS)
@over_dtypes
@over_backends
def test_values_and_derivatives_are_as_accurate_as_stated(name: str, dtype: str, backend: str) -> None:
    f, place = function(name), DTYPES.index(dtype)
    x = tk.tensor(operands(name, dtype), backend=BACKENDS[backend])
    value, pulled, pushed = f(x), reverse(f, x), forward(f, x)
    for kind, found, stated in (
        ("value", value, STATED[name][place]),
        ("slope", pulled, STATED[name][2 + place]),
        ("slope", pushed, STATED[name][2 + place]),
    ):
        assert str(found.dtype) == dtype
        error, at = worst_of(name, dtype, kind, np.array(found).tobytes())
        assert error <= stated, f"the {kind} of {name} at {at!r} is off by {error} units, not {stated}"


@over_backends
@over_dtypes
@pytest.mark.parametrize("name", SMOOTH)
def test_second_derivatives_are_finite_where_the_true_ones_are(name: str, dtype: str, backend: str) -> None:
    """In all four mixes of the modes."""
    x = tk.tensor(operands(name, dtype), backend=BACKENDS[backend])
    largest = mpf(float(np.finfo(dtype).max))
    with mpmath.workprec(200):
        may_overflow = np.array([abs(v) > largest / 64 for v in exact_values(name, dtype, "curvature")])
    for outer in (forward, reverse):
        for inner in (forward, reverse):
            found = np.array(outer(lambda x, inner=inner: inner(function(name), x), x))
            assert not np.isnan(found).any(), operands(name, dtype)[np.isnan(found)][:3]
            spurious = np.isinf(found) & ~may_overflow
            assert not spurious.any(), operands(name, dtype)[spurious][:3]


@over_backends
@over_dtypes
@pytest.mark.parametrize("name", ["expm1", "tanh", "sigmoid", "softplus", "erf"])
def test_derivatives_of_saturated_functions_are_finite_to_third_order(
    name: str, dtype: str, backend: str
) -> None:
    x = tk.tensor([-inf, -1e30, -1000.0, 0.0, 1000.0, 1e30, inf], dtype, backend=BACKENDS[backend])
    if name == "expm1":
        x = x[:4]
    f = function(name)
    for _ in range(3):
        f = tk.elementwise_grad(f)
        assert np.isfinite(np.array(f(x))).all()


# ---- functions of two numbers ------------------------------------------------------------------------------

PAIRS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]] = {
    "hypot": (
        mpmath.hypot,
        lambda a, b: a / mpmath.hypot(a, b),
        lambda a, b: b / mpmath.hypot(a, b),
    ),
    "atan2": (
        mpmath.atan2,
        lambda a, b: b / (a * a + b * b),
        lambda a, b: -a / (a * a + b * b),
    ),
    "div": (lambda a, b: a / b, lambda a, b: 1 / b, lambda a, b: -a / (b * b)),
    "mul": (lambda a, b: a * b, lambda a, b: b, lambda a, b: a),
}


@over_backends
@over_dtypes
@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two_numbers_and_their_derivatives_are_within_4_units(
    name: str, dtype: str, backend: str
) -> None:
    rng = random.Random(name)
    drawn = [
        [rng.choice((-1, 1)) * math.ldexp(rng.uniform(1.0, 2.0), rng.randrange(-30, 30)) for _ in range(800)]
        for _ in range(2)
    ]
    a, b = (tk.tensor(column, dtype, backend=BACKENDS[backend]) for column in drawn)

    def f(a: Any, b: Any) -> Any:
        return a.apply(OPS[name], b)

    found = [f(a, b), *[tk.elementwise_grad(f, place)(a, b) for place in (0, 1)]]
    with mpmath.workprec(400):
        for oracle, values in zip(PAIRS[name], found, strict=True):
            for p, q, y in zip(a.tolist(), b.tolist(), values.tolist(), strict=True):
                error = distance(y, oracle(mpf(p), mpf(q)), dtype)
                assert error <= BOUND, f"{name}({p!r}, {q!r}): {y!r} is off by {error} units"


@over_backends
@over_dtypes
def test_powers(dtype: str, backend: str) -> None:
    """The value, and, for exponents that are integers or half-integers, the derivative with respect to the base."""
    rng = random.Random(dtype)
    a = tk.tensor([math.ldexp(rng.uniform(1.0, 2.0), rng.randrange(-8, 8)) for _ in range(600)], dtype)
    b = tk.tensor([rng.choice((-2.0, -1.0, 0.5, 1.0, 1.5, 2.0, 3.0, 7.0)) for _ in range(600)], dtype)
    a, b = (x.to(BACKENDS[backend]) for x in (a, b))
    values, slopes = a**b, tk.elementwise_grad(lambda a, b: a**b)(a, b)
    with mpmath.workprec(200):
        for p, q, y, t in zip(a.tolist(), b.tolist(), values.tolist(), slopes.tolist(), strict=True):
            assert distance(y, mpf(p) ** mpf(q), dtype) <= 2.0
            assert distance(t, mpf(q) * mpf(p) ** (mpf(q) - 1), dtype) <= BOUND


# ---- sums of exponentials ----------------------------------------------------------------------------------


def rows_of(dtype: str) -> list[np.ndarray[Any, Any]]:
    """Few terms and many, close together and far apart, large and small, some of them -inf."""
    rng = random.Random(dtype)
    far, huge = (100.0, 1e30) if dtype == "float32" else (740.0, 1e300)
    rows = []
    for trial in range(160):
        scale = rng.choice((1e-30, 1e-3, 1.0, 10.0, far, 1e4, huge))
        shift = rng.choice((0.0, 0.0, 1.0, -1.0, 50.0, -50.0, 1e3, -1e3, 1e5))
        row = np.array(
            [rng.uniform(-1.0, 1.0) * scale + shift for _ in range((1, 2, 3, 5, 17, 64, 100)[trial % 7])],
            dtype,
        )
        if trial % 5 == 0 and row.size > 1:
            row[rng.randrange(row.size)] = -inf
        if trial % 6 == 0:
            row[:] = np.where(rng.random() < 0.5, row, row[0])  # all of them the maximum
        rows.append(row)
    return [row for row in rows if row.max() > -inf]


@pytest.mark.nightly
@pytest.mark.feature(178)
@over_backends
@over_dtypes
def test_softmax_and_related_functions_are_within_4_units_in_every_component(
    dtype: str, backend: str
) -> None:
    for row in rows_of(dtype):
        x = tk.tensor(row, backend=BACKENDS[backend])
        weights, logarithms, total = tk.softmax(x), tk.log_softmax(x), tk.logsumexp(x)
        pulled = tk.grad(tk.logsumexp)(x)
        pushed = [
            tk.jvp(tk.logsumexp, (x,), (tk.one_hot(i, x.size, dtype=dtype).to(BACKENDS[backend]),))[1]
            for i in (0, x.size - 1)
        ]
        with mpmath.workprec(300):
            exact = [mpf(float(v)) if v > -inf else -mpmath.inf for v in row]
            top = max(exact)
            powers = [mpmath.exp(v - top) if v > -mpmath.inf else mpf(0) for v in exact]
            first = exact.index(top)
            rest = mpmath.log1p(sum(powers[:first] + powers[first + 1 :]))
            true = [p / sum(powers) for p in powers]
            for found in (weights.tolist(), pulled.tolist()):
                assert max(distance(y, t, dtype) for y, t in zip(found, true, strict=True)) <= BOUND
            for y, place in zip(pushed, (0, -1), strict=True):
                assert distance(y.item(), true[place], dtype) <= BOUND
            for y, v in zip(logarithms.tolist(), exact, strict=True):
                if v == -mpmath.inf:
                    assert y == -inf
                else:
                    assert distance(y, v - top - rest, dtype) <= BOUND
            unit = np.spacing(np.array(max(abs(float(top)), abs(float(top + rest))), dtype))
            assert abs(mpf(total.item()) - (top + rest)) <= BOUND * mpf(float(unit))
            if top >= 0:  # nothing cancels
                assert distance(total.item(), top + rest, dtype) <= BOUND


@over_dtypes
def test_a_long_sum_adds_little(dtype: str) -> None:
    rng = np.random.default_rng(0)
    row = rng.uniform(-20.0, 20.0, 20_000).astype(dtype)
    found = np.array(tk.softmax(tk.tensor(row, backend="numpy")))
    with mpmath.workprec(200):
        powers = [mpmath.exp(mpf(float(v))) for v in row]
        total = sum(powers)
        assert (
            max(distance(float(y), p / total, dtype) for y, p in zip(found, powers, strict=True))
            <= BOUND + 14
        )
