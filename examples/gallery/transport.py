"""Optimal transport between two histograms by Sinkhorn's iteration, and its gradient."""

from __future__ import annotations

import tensorken as tk

position = tk.linspace(0.0, 1.0, 8, dtype="float64")
cost = (position[:, None] - position[None, :]) ** 2
a = tk.softmax(-8.0 * (position - 0.3) ** 2)
b = tk.softmax(-8.0 * (position - 0.7) ** 2)
BLUR = 0.01


def transport(a: tk.Tensor, b: tk.Tensor) -> tuple[tk.Tensor, tk.Tensor]:
    """The blurred cost of moving a to b, and the plan: the mass that goes from each place to each other."""

    def step(_, potentials):
        _, g = potentials
        f = -BLUR * tk.logsumexp((g - cost) / BLUR + tk.log(b), axis=1)
        return f, -BLUR * tk.logsumexp((f[:, None] - cost) / BLUR + tk.log(a)[:, None], axis=0)

    f, g = tk.fori_loop(0, 300, step, (tk.zeros_like(a), tk.zeros_like(b)))
    plan = tk.exp((f[:, None] + g - cost) / BLUR) * a[:, None] * b
    return a @ f + b @ g, plan


value, plan = tk.jit(transport)(a, b)
print(f"cost {value:.6f}, without blur at least {((position @ a - position @ b) ** 2):.6f}")
print(f"sums of the plan: off by less than 1e-9: {tk.abs(plan.sum(axis=1) - a).max() < 1e-9}")
print(f"{plan[::2, ::2]:.5f}")
gradient = tk.grad(lambda a: transport(a, b)[0])(a)
print(f"gradient, up to a constant: {gradient - gradient.mean():.5f}")

# Its mean with the other histogram half way: gradient steps on logits.
logits = tk.zeros(8, dtype="float64")


def loss(logits: tk.Tensor) -> tk.Tensor:
    """The sum of the costs to both histograms."""
    middle = tk.softmax(logits)
    return transport(a, middle)[0] + transport(middle, b)[0]


step = tk.jit(tk.value_and_grad(loss))
for i in range(21):
    value, slope = step(logits)
    if i % 10 == 0:
        print(f"step {i:2}: {value:.6f}, mean position {position @ tk.softmax(logits):.5f}")
    logits = logits - 20.0 * slope


def draw(figure) -> None:
    """The plan that moves one histogram to another, and both histograms with their mean, which lies half way."""
    left, right = figure.subplots(1, 2)
    left.imshow(plan, origin="lower")
    left.set(xlabel="to", ylabel="from", title="plan")
    right.plot(position, a, "o-", label="a")
    right.plot(position, b, "o-", label="b")
    right.plot(position, tk.softmax(logits), "o--", label="mean")
    right.set(xlabel="position", title="histograms", ylim=(0, 0.4))
    right.legend()
