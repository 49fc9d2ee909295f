"""A Gaussian process by the Cholesky decomposition, with its length scale by the gradient of the evidence."""

from __future__ import annotations

import math

import tensorken as tk

x = tk.tensor([-2.0, -1.3, -0.4, 0.0, 0.8, 1.5, 2.2], dtype="float64")
y = tk.sin(2.0 * x) + 0.1 * tk.cos(17.0 * x)
grid = tk.linspace(-2.0, 2.0, 5, dtype="float64")
NOISE = 0.02


def kernel(a: tk.Tensor, b: tk.Tensor, scale: tk.Tensor) -> tk.Tensor:
    """The covariance of each value at a with each value at b."""
    return tk.exp(-0.5 * ((a[:, None] - b[None, :]) / scale) ** 2)


def factored(scale: tk.Tensor) -> tuple[tk.Tensor, tk.Tensor]:
    """The Cholesky factor of the covariance of the data, and its inverse applied to them."""
    factor = tk.linalg.cholesky(kernel(x, x, scale) + NOISE * tk.eye(len(x), dtype="float64"))
    half = tk.linalg.solve_triangular(factor, y, lower=True)
    return factor, tk.linalg.solve_triangular(factor.T, half, lower=False)


def loss(log_scale: tk.Tensor) -> tk.Tensor:
    """The negative logarithm of the evidence."""
    factor, weights = factored(tk.exp(log_scale))
    return 0.5 * y @ weights + tk.log(tk.diag(factor)).sum() + 0.5 * len(x) * math.log(2.0 * math.pi)


def prediction(scale: tk.Tensor, grid: tk.Tensor) -> tuple[tk.Tensor, tk.Tensor]:
    """The mean and the standard deviation on a grid."""
    factor, weights = factored(scale)
    across = kernel(grid, x, scale)
    explained = tk.linalg.solve_triangular(factor, across.T, lower=True)
    return across @ weights, tk.sqrt(1.0 - (explained**2).sum(axis=0))


log_scale = tk.tensor(0.0, dtype="float64")
step = tk.jit(tk.value_and_grad(loss))
for i in range(31):
    value, slope = step(log_scale)
    if i % 10 == 0:
        print(f"step {i:2}: scale {tk.exp(log_scale):.5f}, -log evidence {value:.6f}, slope {slope:.5f}")
    log_scale = log_scale - 0.05 * slope
mean, deviation = prediction(tk.exp(log_scale), grid)
print(f"mean on the grid: {mean:.4f}")
print(f"deviation:        {deviation:.4f}")


def draw(figure) -> None:
    """The mean of the process through seven points, with two standard deviations, which grow between the points."""
    axes = figure.subplots()
    fine = tk.linspace(-3.0, 3.0, 100, dtype="float64")
    mean, deviation = prediction(tk.exp(log_scale), fine)
    axes.fill_between(fine, mean - 2.0 * deviation, mean + 2.0 * deviation, alpha=0.25)
    axes.plot(fine, mean)
    axes.plot(x, y, "o", color="C1")
    axes.set(xlabel="x", ylabel="y")
