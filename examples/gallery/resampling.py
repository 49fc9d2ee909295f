"""Uncertainty without formulas: the bootstrap, a permutation test and cross-validation."""

from __future__ import annotations

import numpy as np

import tensorken as tk

tk.set_printoptions(precision=4, suppress=True)

rng = np.random.default_rng(3)
before = tk.asarray(rng.gamma(3.0, 2.0, size=40))
after = tk.asarray(rng.gamma(3.0, 2.6, size=30))

# The bootstrap: statistics of samples that are drawn with replacement.
samples = before[rng.integers(0, len(before), size=(2000, len(before)))]
for name, values in (
    ("mean", samples.mean(axis=1)),
    ("median", tk.median(samples, axis=1)),
    ("std", samples.std(axis=1, ddof=1)),
    ("90th percentile", tk.quantile(samples, 0.9, axis=1)),
):
    low, high = tk.quantile(values, [0.025, 0.975])
    print(f"{name}: {values.mean():.3f}, 95% from {low:.3f} to {high:.3f}")

# A permutation test of the difference of means.
pooled = tk.concatenate([before, after])
observed = after.mean() - before.mean()
orders = rng.permuted(np.tile(np.arange(70), (2000, 1)), axis=1)
shuffled = pooled[orders]
differences = shuffled[:, 40:].mean(axis=1) - shuffled[:, :40].mean(axis=1)
print(f"difference {observed:.3f}, p = {(tk.abs(differences) >= tk.abs(observed)).mean():.3f}")

# Cross-validation: the degree of a polynomial with the least error on left-out points.
x = tk.linspace(0, 3, 30, dtype="float64")
y = tk.sin(2 * x) + 0.1 * rng.normal(size=30)
folds = tk.arange(30) % 5
errors = []
for degree in range(1, 8):
    square = 0.0
    for fold in range(5):
        fit = tk.polyfit(x[folds != fold], y[folds != fold], degree)
        square += ((tk.polyval(fit, x[folds == fold]) - y[folds == fold]) ** 2).sum()
    errors.append(tk.sqrt(square / 30))
print("errors by degree:", tk.stack(errors))
print("best degree:", 1 + tk.argmin(tk.stack(errors)))


def draw(figure) -> None:
    """Differences of the means of shuffled groups, with the observed one, and errors of polynomials by degree."""
    left, right = figure.subplots(1, 2)
    left.hist(tk.asarray(differences).tolist(), bins=30)
    left.axvline(observed, color="C1", label="observed")
    left.set(xlabel="difference of means", title="permutations")
    left.margins(y=0.25)
    left.legend()
    right.plot(tk.arange(1, 8), tk.stack(errors), "o-")
    right.set(xlabel="degree", title="error on left-out points")
