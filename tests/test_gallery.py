"""The programs of the gallery print the expected output, which is numpy's where numpy can run them."""

from __future__ import annotations

import contextlib
import functools
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.stats

import tensorken as tk
from core.tests.each import each_of
from tests.printed import check_printed

TESTS = Path(__file__).parent
FILES = {path.stem: path for path in sorted((TESTS.parent / "examples" / "gallery").glob("*.py"))}
IMPORT = "import tensorken as tk\n"

OF_NUMPY = ("chains", "clusters", "grids", "images", "regression", "resampling", "spectra", "tables")
"""The programs that run with numpy in place of Tensorken."""

CHEAP = ("chains", "clusters", "fixed_point", "grids", "images", "newton", "regression", "tables")
"""The programs that the reference backend runs in a second."""

RELATIVE, ABSOLUTE = 1e-6, 1e-9


def expected(name: str) -> str:
    return (TESTS / "golden" / "gallery" / f"{name}.txt").read_text(encoding="utf-8")


def run(text: str, name: str) -> tuple[str, dict[str, Any]]:
    """The output of a program, and its variables."""
    names: dict[str, Any] = {"__name__": name}
    output = io.StringIO()
    with contextlib.redirect_stdout(output), tk.printoptions(), np.printoptions():
        exec(compile(text, str(FILES[name]), "exec"), names)
    return output.getvalue(), names


@functools.cache
def result_of(name: str) -> tuple[str, dict[str, Any]]:
    """The output of a program on numpy's backend, and its variables."""
    return run(FILES[name].read_text(encoding="utf-8"), name)


@pytest.mark.slow
@each_of("name", FILES)
def test_a_program_prints_the_expected_output(name: str) -> None:
    check_printed(result_of(name)[0], expected(name), RELATIVE, ABSOLUTE)


@each_of("name", OF_NUMPY)
def test_numpy_prints_the_same(name: str) -> None:
    text = FILES[name].read_text(encoding="utf-8")
    assert IMPORT in text
    check_printed(
        run(text.replace(IMPORT, "import numpy as tk\n"), name)[0], expected(name), RELATIVE, ABSOLUTE
    )


@pytest.mark.slow
@each_of("name", CHEAP)
def test_the_reference_backend_prints_the_same(name: str) -> None:
    with tk.use_backend("reference"):
        check_printed(run(FILES[name].read_text(encoding="utf-8"), name)[0], expected(name), 1e-5, 1e-5)


def arrays(*values: Any) -> Any:
    return [np.asarray(value) for value in values]


def gaussian_process(names: dict[str, Any]) -> Any:
    """The mean and the deviation by the inverse of the covariance."""
    x, y, grid, scale = arrays(names["x"], names["y"], names["grid"], tk.exp(names["log_scale"]))

    def kernel(a: Any, b: Any) -> Any:
        return np.exp(-0.5 * ((a[:, None] - b[None, :]) / scale) ** 2)

    inverse = np.linalg.inv(kernel(x, x) + names["NOISE"] * np.eye(len(x)))
    across = kernel(grid, x)
    deviation = np.sqrt(1.0 - np.einsum("ij,jk,ik->i", across, inverse, across))
    return (names["mean"], names["deviation"]), (across @ inverse @ y, deviation)


def kalman(names: dict[str, Any]) -> Any:
    """The last mean of the state, given all measurements, by the joint normal distribution of both."""
    f, q, h, z = arrays(names["F"], names["Q"], names["H"][0], names["measured"])
    covariance, covariances = 10.0 * np.eye(2), []
    for _ in z:
        covariance = f @ covariance @ f.T + q
        covariances.append(covariance)
    powers = [np.linalg.matrix_power(f, k) for k in range(len(z))]
    last = len(z) - 1
    with_last = np.array([h @ covariances[i] @ powers[last - i].T for i in range(len(z))])
    joint = np.array(
        [
            [
                h @ powers[max(i - j, 0)] @ covariances[min(i, j)] @ powers[max(j - i, 0)].T @ h
                for j in range(len(z))
            ]
            for i in range(len(z))
        ]
    )
    return names["means"][-1], with_last.T @ np.linalg.solve(joint + np.eye(len(z)), z)


def quantum(names: dict[str, Any]) -> Any:
    """The infidelity of the complex amplitudes, by scipy's exponentials of the Hamiltonian."""
    x, y = np.array([[0, 1], [1, 0]]), np.array([[0, -1j], [1j, 0]])
    state, target = np.array([1.0, 0.0]), np.array([1.0, 1j]) / math.sqrt(2.0)
    for a, b in np.asarray(names["pulse"]):
        state = scipy.linalg.expm(-0.2j * (a * x + b * y + 1.5 * np.diag([1, -1]))) @ state
    return names["infidelity"](names["pulse"]), 1.0 - abs(np.vdot(target, state)) ** 2


def dynamics(names: dict[str, Any]) -> Any:
    """The orbits by an adaptive method of order eight."""

    def lorenz(_: float, s: Any) -> Any:
        return [10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]]

    def planet(_: float, s: Any) -> Any:
        return [*s[2:], *(-s[:2] / np.hypot(*s[:2]) ** 3)]

    options = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-11}
    weather = scipy.integrate.solve_ivp(lorenz, (0, 1), names["start"].tolist(), **options).y[:, -1]
    orbit = scipy.integrate.solve_ivp(planet, (0, 10), [1.0, 0.0, 0.0, 1.2], **options).y[:, -1]
    found = names["weather"](names["start"]), tk.concatenate([names["q_end"], names["p_end"]])
    return found, (weather, orbit)


def newton(names: dict[str, Any]) -> Any:
    """The coefficients by a general minimiser."""
    inputs, labels = arrays(names["inputs"], names["labels"])

    def loss(w: Any) -> Any:
        return (np.logaddexp(0, inputs @ w) - labels * (inputs @ w)).sum()

    return names["w"], scipy.optimize.minimize(loss, np.zeros(3), tol=1e-8).x


def options(names: dict[str, Any]) -> Any:
    """The value and its sensitivities by their formulas, and implied volatilities by bisection."""
    s, k, r, v, t = (
        names["market"][name].item() for name in ("price", "strike", "rate", "volatility", "time")
    )

    def d1(k: float, v: float) -> float:
        return (math.log(s / k) + (r + v * v / 2) * t) / (v * math.sqrt(t))

    def value(k: float, v: float) -> float:
        n = scipy.stats.norm.cdf
        return s * n(d1(k, v)) - k * math.exp(-r * t) * n(d1(k, v) - v * math.sqrt(t))

    density = scipy.stats.norm.pdf(d1(k, v))
    pairs = zip(names["strikes"].tolist(), names["quotes"].tolist(), strict=True)
    smile = [scipy.optimize.brentq(lambda v, k=k, q=q: value(k, v) - q, 0.05, 1.0) for k, q in pairs]
    slopes, curvatures = names["slopes"], names["curvatures"]["price"]["price"]
    found = (
        names["call"](**names["market"]),
        slopes["price"],
        slopes["volatility"],
        curvatures,
        names["smile"],
    )
    delta, gamma = scipy.stats.norm.cdf(d1(k, v)), density / (s * v * math.sqrt(t))
    return found, (value(k, v), delta, s * density * math.sqrt(t), gamma, smile)


def transport(names: dict[str, Any]) -> Any:
    """The plan by Sinkhorn's iteration on scaling factors."""
    a, b, cost = arrays(names["a"], names["b"], names["cost"])
    kernel, v = np.exp(-cost / names["BLUR"]), np.ones(8)
    for _ in range(3000):
        u = a / (kernel @ v)
        v = b / (u @ kernel)
    return names["plan"], u[:, None] * kernel * v


def fixed_point(names: dict[str, Any]) -> Any:
    """The solution of Kepler's equation by bisection."""
    return names["anomaly"], scipy.optimize.brentq(lambda x: 1.0 + 0.3 * math.sin(x) - x, 0.0, 3.0)


def phase_retrieval(names: dict[str, Any]) -> Any:
    """The error of the last guess, whose true value is 0."""
    return names["error"](names["guess"]), 0.0


def hmc(names: dict[str, Any]) -> Any:
    """The moments of the distribution."""
    samples = names["samples"]
    return (samples.mean(axis=(0, 1)), tk.cov(samples.reshape(-1, 2).T)), (
        [1.0, -2.0],
        [[2.0, 1.2], [1.2, 1.0]],
    )


METHODS = {
    dynamics: 5e-4,  # of a symplectic method of order two
    fixed_point: 1e-11,
    gaussian_process: 1e-9,
    hmc: 0.15,  # four standard errors of the mean of 1800 samples
    kalman: 1e-9,
    newton: 1e-4,
    options: 1e-9,
    phase_retrieval: 1e-3,
    quantum: 1e-9,
    transport: 1e-6,
}
"""Other methods for the results of programs, and their tolerances."""


@pytest.mark.slow
@each_of("method", METHODS)
def test_another_method_computes_the_same(method: Callable[..., Any]) -> None:
    found, wanted = method(result_of(method.__name__)[1])
    pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
    for x, y in pairs:
        np.testing.assert_allclose(np.asarray(x), y, rtol=0, atol=METHODS[method])


def test_every_program_is_compared_with_another() -> None:
    alone = {"convolutional"}  # its accuracy is on images of known kinds
    assert {method.__name__ for method in METHODS} | set(OF_NUMPY) | alone == set(FILES)
