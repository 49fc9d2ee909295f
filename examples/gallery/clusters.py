"""Points in the plane: distances between pairs, clusters by k-means, and the loneliest points."""

from __future__ import annotations

import numpy as np

import tensorken as tk

tk.set_printoptions(precision=4, suppress=True)

rng = np.random.default_rng(0)
centers = tk.array([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]], dtype="float64")
points = tk.concatenate([center + 0.4 * rng.normal(size=(20, 2)) for center in centers])


def distances(a: tk.Tensor, b: tk.Tensor) -> tk.Tensor:
    """The distance of each point of a to each point of b."""
    return tk.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=-1))


i, j = tk.triu_indices(len(points), k=1)
pairs = distances(points, points)[i, j]
closest, farthest = tk.argmin(pairs), tk.argmax(pairs)
print(f"{pairs.size} pairs, mean distance {pairs.mean():.4f}")
print("closest:", i[closest], j[closest], "farthest:", i[farthest], j[farthest])

means = points[[0, 1, 2]]
steps = 0
while True:
    steps += 1
    labels = distances(points, means).argmin(axis=1)
    updated = tk.stack([points[labels == k].mean(axis=0) for k in range(3)])
    moved = tk.abs(updated - means).max()
    means = updated
    if moved < 1e-9:
        break
order = tk.lexsort((means[:, 1], means[:, 0]))
print(f"k-means ended after {steps} steps with clusters of", tk.bincount(labels)[order], "points:")
print(means[order])
print("distance from the true centers:", distances(means[order], centers).min(axis=1))

nearest = tk.sort(distances(points, points), axis=1)[:, 1:4].mean(axis=1)
print("loneliest points:", tk.argsort(nearest)[-3:][::-1])
edges = tk.linspace(0, 6, 7)
counts, _ = tk.histogram(pairs, bins=edges)
print("histogram of distances:", counts)


def draw(figure) -> None:
    """Sixty points in three clusters, each with its mean."""
    axes = figure.subplots()
    for k in range(3):
        axes.scatter(points[labels == k, 0], points[labels == k, 1], s=14)
    axes.scatter(means[:, 0], means[:, 1], marker="+", s=160, linewidth=2, color="C3", label="means")
    axes.legend()
