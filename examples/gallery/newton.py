"""Logistic regression by Newton's method, with gradients of single examples and errors of the coefficients."""

from __future__ import annotations

import numpy as np

import tensorken as tk

rng = np.random.default_rng(6)
inputs = tk.column_stack([tk.ones(60, dtype="float64"), tk.asarray(rng.normal(size=(60, 2)))])
chance = 1.0 / (1.0 + tk.exp(-(inputs @ tk.tensor([0.5, 1.5, -1.0], dtype="float64"))))
labels = (tk.asarray(rng.uniform(size=60)) < chance).astype("float64")


def loss(w: tk.Tensor, x: tk.Tensor, label: tk.Tensor) -> tk.Tensor:
    """The negative log-likelihood of one example."""
    score = x @ w
    return tk.softplus(score) - label * score


def total(w: tk.Tensor) -> tk.Tensor:
    """The negative log-likelihood of all examples."""
    return tk.vmap(loss, in_axes=(None, 0, 0))(w, inputs, labels).sum()


gradient, hessian = tk.jit(tk.grad(total)), tk.jit(tk.hessian(total))
w = tk.zeros(3, dtype="float64")
for i in range(6):
    slope = gradient(w)
    print(f"step {i}: loss {total(w):.8f}, length of the gradient {tk.linalg.norm(slope):.6f}")
    w = w - tk.linalg.solve(hessian(w), slope)
print(f"coefficients {w:.6f}")
print(f"standard errors {tk.sqrt(tk.diag(tk.linalg.inv(hessian(w)))):.6f}")

# The gradient of each example, all at once: their covariance makes errors that trust the model less.
single = tk.vmap(tk.grad(loss), in_axes=(None, 0, 0))(w, inputs, labels)
print("gradients of single examples:", single.shape, f"largest {tk.linalg.norm(single, axis=1).max():.5f}")
spread, inverse = single.T @ single, tk.linalg.inv(hessian(w))
print(f"robust errors {tk.sqrt(tk.diag(inverse @ spread @ inverse)):.6f}")


def draw(figure) -> None:
    """Sixty examples of two classes, and the lines on which the model gives a class 10, 50 and 90 percent."""
    axes = figure.subplots()
    for label, name in enumerate(("class 0", "class 1")):
        axes.scatter(inputs[labels == label, 1], inputs[labels == label, 2], s=14, label=name)
    x, y = tk.meshgrid(
        tk.linspace(-3.0, 3.0, 40, dtype="float64"), tk.linspace(-3.0, 3.0, 40, dtype="float64")
    )
    lines = axes.contour(x, y, tk.sigmoid(w[0] + w[1] * x + w[2] * y), levels=[0.1, 0.5, 0.9], colors="C2")
    axes.clabel(lines, fmt=lambda level: f"{level:.0%}")
    axes.legend(loc="upper left")
