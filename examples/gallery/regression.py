"""Fits: polynomials by least squares, a line that ignores outliers, and a ridge path."""

from __future__ import annotations

import numpy as np

import tensorken as tk

tk.set_printoptions(precision=4, suppress=True)

rng = np.random.default_rng(1)
x = tk.linspace(-1, 1, 21, dtype="float64")
y = 1.0 - 2.0 * x + 3.0 * x**3 + 0.1 * rng.normal(size=21)

coefficients = tk.polyfit(x, y, 3)
print("polyfit, degree 3:", coefficients)
a = tk.vander(x, 4)
solution, residual, rank, _ = tk.linalg.lstsq(a, y)
print("lstsq:", solution, "rank", rank)
fit = tk.polyval(coefficients, x)
r2 = 1 - ((y - fit) ** 2).sum() / ((y - y.mean()) ** 2).sum()
print(f"R2 {r2:.5f}, residual {residual[0]:.5f}, largest {tk.max(tk.abs(y - fit)):.5f}")
print("derivative at the ends:", tk.polyval(tk.polyder(coefficients), tk.array([-1.0, 1.0], dtype="float64")))

for degree in range(6):
    fit = tk.polyval(tk.polyfit(x[::2], y[::2], degree), x[1::2])
    print(f"degree {degree}: error on the other points {tk.sqrt(tk.mean((y[1::2] - fit) ** 2)):.4f}")

# Ridge regression: the same system with a penalty.
for penalty in (0.01, 1.0, 100.0):
    w = tk.linalg.solve(a.T @ a + penalty * tk.eye(4, dtype="float64"), a.T @ y)
    print(f"ridge {penalty}:", w)

# A line by least absolute deviations: weighted least squares, repeated.
line = 0.5 + 2.0 * x
line = tk.where(tk.arange(21) % 7 == 3, line + 5.0, line)
a = tk.column_stack([x, tk.ones_like(x)])
w = tk.ones_like(x)
for _ in range(60):
    slope, intercept = tk.linalg.solve(a.T @ (w[:, None] * a), a.T @ (w * line))
    w = 1 / tk.maximum(tk.abs(line - slope * x - intercept), 1e-8)
print(f"with outliers: least squares {tk.polyfit(x, line, 1)[0]:.4f}, least deviations {slope:.4f}")


def draw(figure) -> None:
    """A cubic polynomial through noisy points, and two lines for data with outliers, one of which ignores them."""
    left, right = figure.subplots(1, 2)
    left.plot(x, y, "o", color="C1")
    left.plot(x, tk.polyval(coefficients, x))
    left.set_title("polynomial")
    right.plot(x, line, "o", color="C1")
    right.plot(x, tk.polyval(tk.polyfit(x, line, 1), x), "--", label="least squares")
    right.plot(x, slope * x + intercept, label="least deviations")
    right.set(title="outliers", ylim=(-5, 8))
    right.legend(loc="lower right")
