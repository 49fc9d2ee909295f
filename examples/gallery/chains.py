"""Markov chains: ranks of pages, the weather, and a hidden chain by the forward and Viterbi algorithms."""

from __future__ import annotations

import tensorken as tk

tk.set_printoptions(precision=4, suppress=True)

# The rank of pages: the chain follows a random link, or jumps to any page with probability 0.15.
links = tk.array([[0, 1, 1, 0], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 1, 0]], dtype="float64")
step = 0.85 * links / links.sum(axis=1, keepdims=True) + 0.15 / 4
rank = tk.full(4, 0.25, dtype="float64")
while True:
    following = rank @ step
    if tk.abs(following - rank).sum() < 1e-12:
        break
    rank = following
print("ranks:", rank, "order:", tk.argsort(rank)[::-1])
print("by a power of the matrix:", tk.linalg.matrix_power(step, 64)[0])

# The stationary distribution as a linear system: pi (P - I) = 0 with sum 1.
weather = tk.array([[0.9, 0.1, 0.0], [0.3, 0.5, 0.2], [0.1, 0.4, 0.5]], dtype="float64")
system = tk.vstack([(weather - tk.eye(3)).T, tk.ones(3)])
pi = tk.linalg.lstsq(system, tk.array([0, 0, 0, 1], dtype="float64"))[0]
print("weather:", pi, "stationary:", tk.allclose(pi @ weather, pi))

# A hidden chain: moods that are seen only through what is done.
start = tk.array([0.6, 0.4], dtype="float64")
moods = tk.array([[0.7, 0.3], [0.4, 0.6]], dtype="float64")
deeds = tk.array([[0.1, 0.4, 0.5], [0.6, 0.3, 0.1]], dtype="float64")
seen = [2, 2, 1, 0, 0, 1, 2]

alpha = start * deeds[:, seen[0]]
for deed in seen[1:]:
    alpha = (alpha @ moods) * deeds[:, deed]
print(f"probability of the sequence {alpha.sum():.6e}; last mood {alpha / alpha.sum()}")

score, back = tk.log(start * deeds[:, seen[0]]), []
for deed in seen[1:]:
    candidates = score[:, None] + tk.log(moods)
    back.append(candidates.argmax(axis=0))
    score = candidates.max(axis=0) + tk.log(deeds[:, deed])
path = [int(score.argmax())]
for pointers in reversed(back):
    path.insert(0, int(pointers[path[0]]))
print("most likely moods:", path)


def draw(figure) -> None:
    """The chance of fair weather in the next ten days: after fair, mixed or rainy weather it approaches one value."""
    axes = figure.subplots()
    days = tk.stack([tk.linalg.matrix_power(weather, n)[:, 0] for n in range(11)])
    axes.plot(days, "o-", label=["fair today", "mixed today", "rain today"])
    axes.axhline(pi[0], color="C3", linestyle="--", label="stationary")
    axes.set(xlabel="days", ylabel="chance of fair weather", ylim=(0, 1.05))
    axes.legend()
