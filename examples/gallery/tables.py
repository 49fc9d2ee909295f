"""A table with gaps: cleaning, standardising, correlations, principal components and groups."""

from __future__ import annotations

import tensorken as tk

tk.set_printoptions(precision=3, suppress=True)
nan = float("nan")

# The length, width, height and kind of fish.
table = tk.array(
    [
        [23.2, 4.0, 11.5, 0],
        [24.0, nan, 12.4, 0],
        [26.3, 4.7, nan, 0],
        [11.6, 1.7, 2.2, 1],
        [13.8, nan, 2.8, 1],
        [9.8, 1.4, 1.7, 1],
        [30.0, 5.1, 12.6, 2],
        [31.8, nan, 15.1, 2],
    ],
    dtype="float64",
)
sizes, kind = table[:, :3], table[:, 3].astype(int)

print("gaps in each column:", tk.isnan(sizes).sum(axis=0))
print("means:", tk.nanmean(sizes, axis=0), "medians:", tk.nanmedian(sizes, axis=0))
filled = tk.where(tk.isnan(sizes), tk.nanmedian(sizes, axis=0), sizes)
z = (filled - filled.mean(axis=0)) / filled.std(axis=0, ddof=1)
print("standardised, the first rows:")
print(z[:3])
print("correlations:")
print(tk.corrcoef(filled, rowvar=False))

values, vectors = tk.linalg.eigh(tk.cov(z.T))
order = tk.argsort(-values)
share = values[order] / values.sum()
print("share of variance of each component:", share, "together", tk.cumsum(share))
first = vectors[:, order[0]]
print("scores of the first:", z @ (first * tk.sign(first[0])))

names, counts = tk.unique(kind, return_counts=True)
print("kinds:", names, "with", counts, "fish")
for name in names:
    print("kind", name, "has mean", filled[kind == name].mean(axis=0))
print("by length:", tk.argsort(filled[:, 0])[::-1], "longest three:", tk.sort(filled[:, 0])[-3:])
print("quartiles:")
print(tk.percentile(filled, [25, 50, 75], axis=0))


def draw(figure) -> None:
    """Eight fish by their two principal components: the three kinds lie apart."""
    axes = figure.subplots()
    second = vectors[:, order[1]]
    scores = tk.column_stack([z @ (first * tk.sign(first[0])), z @ (second * tk.sign(second[0]))])
    for name in names:
        axes.scatter(scores[kind == name, 0], scores[kind == name, 1], s=40, label=f"kind {int(name)}")
    axes.set(xlabel="first component", ylabel="second component")
    axes.legend()
